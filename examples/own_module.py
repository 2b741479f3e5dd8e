"""A module of your own.

`model` is a function from the shape of an example and the number of classes to any
`nn.Module` that returns logits. All else stays: grids, early stopping, saving. Here
a small convolutional network reads the digits as images.
"""

from torch import nn

import ruleout as ro


def small_cnn(shape, classes):
    channels, height, width = shape
    return nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(16 * (height // 2) * (width // 2), classes),
    )


x, y = ro.datasets.load("digits").train
train, test = ro.selection.split(len(y), 0.2, seed=0)
sets = ro.draw(y[train], classes=10, seed=0)
clf = ro.RuleOutClassifier(
    model=small_cnn, shape=(1, 8, 8), learning_rate=0.01, epochs=10, random_state=0
)
clf.fit(x[train], sets)
print(f"without true labels, estimated: {100 * clf.score(x[train], sets):.1f} %")
print(f"by true labels of other rows: {100 * clf.score(x[test], y[test]):.1f} %")
