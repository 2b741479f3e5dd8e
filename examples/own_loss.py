"""A loss of your own.

A loss reads logits and what was ruled out, and is known everywhere by its name once
it is registered: in the classifier, in `compare`, on the command line (`--plugin`).
`check_approach` holds it to the contract that all losses keep.
"""

import ruleout as ro


@ro.losses.register("square", family="mine", paper="this example")
def square(logits, excluded):
    """The squared probability of what was ruled out."""
    return (logits.softmax(-1) * excluded).sum(-1).square()


ro.testing.check_approach("square")

x, y = ro.datasets.load("digits").train
sets = ro.draw(y, classes=10, seed=0)
table = ro.compare(
    x,
    sets,
    approaches=["log", "square"],
    grid={"learning_rate": [0.1, 0.01]},
    epochs=20,
)
for row in table.ranked:
    print(f"{row.approach:8}{100 * row.score:6.1f} % ± {100 * row.spread:.1f}")

ro.losses.forget("square")
