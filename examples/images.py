"""A folder of images.

`labels.csv` in the folder names files and what was ruled out. Images are scaled to
0–1 and may be resized. It needs the extra `images`.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits

import ruleout as ro

digits = load_digits()
sets = ro.draw(
    digits.target[:600], classes=[f"digit {number}" for number in range(10)], seed=0
)
with TemporaryDirectory() as folder:
    lines = ["file,not"]
    for row, names in enumerate(sets.to_lists()):
        pixels = (digits.images[row] * 15.9).astype(np.uint8)
        Image.fromarray(pixels).save(Path(folder, f"{row:04}.png"))
        lines.append(f"{row:04}.png,{'|'.join(names)}")
    Path(folder, "labels.csv").write_text("\n".join(lines))

    table = ro.datasets.read_table(folder, excluded="not")

print(table.x.shape, table.shape, table.row_names[:2])
clf = ro.RuleOutClassifier(
    model="mlp", learning_rate=0.01, epochs=30, random_state=0
)
clf.fit(table.x[:500], table.sets[:500])
estimate = clf.score(table.x[500:], table.sets[500:])
print(f"on the other 100 images, without true labels: {100 * estimate:.0f} %")
