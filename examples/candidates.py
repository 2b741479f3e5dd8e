"""Candidates instead of exclusions.

Partial labels say what each example may still be. That is the same table seen from
the other side: what is not a candidate is ruled out. `resolve` then says which
candidate it is, and how sure the model is.
"""

import ruleout as ro

x, y = ro.datasets.load("digits").train
names = [f"digit {number}" for number in range(10)]
drawn = ro.draw(y, classes=names, law=7, seed=0)
candidates = [
    [name for name in names if name not in out] for out in drawn.to_lists()
]
print(f"row 0 is one of {', '.join(candidates[0])}")

sets = ro.LabelSets.from_candidates(candidates, classes=names)
clf = ro.RuleOutClassifier(learning_rate=0.03, epochs=30, random_state=0).fit(
    x, sets
)
found = clf.resolve(x, sets)
print(f"it is {found.labels[0]}, at {100 * found.probability[0]:.0f} %")
right = [
    label == names[digit] for label, digit in zip(found.labels, y, strict=True)
]
print(f"right for {100 * sum(right) / len(right):.1f} % of {len(y)} rows")
