"""The real files, where $RULEOUT_DATA has them: counts as their publishers state them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from ruleout.datasets import Dataset, load
from ruleout.datasets.registry import REGISTRY

ROOT = Path(os.environ.get("RULEOUT_DATA", "no-such-folder"))

MNIST_TRAIN = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
MNIST_TEST = [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
COUNTS = {
    "mnist": (MNIST_TRAIN, MNIST_TEST),
    "fashion-mnist": ([6000] * 10, [1000] * 10),
    "kmnist": ([6000] * 10, [1000] * 10),
}


def real(name: str) -> Dataset:
    """Load without downloading: the tests never use the network."""
    for part in REGISTRY[name].files:
        path = ROOT / part.folder / part.name
        if not path.exists():
            pytest.skip(f"{path} is missing: set RULEOUT_DATA to a folder with the original files")
    return load(name, ROOT)


@pytest.mark.parametrize("name", list(COUNTS))
def test_real_files_hold_what_their_publishers_say(name: str) -> None:
    data = real(name)
    assert data.test is not None
    for (x, y), counts in zip((data.train, data.test), COUNTS[name], strict=True):
        assert np.bincount(y).tolist() == counts
        assert x.shape == (sum(counts), 784)
        assert (x.dtype.name, y.dtype.name) == ("float32", "int64")
        assert (x.min(), x.max()) == (0, 1)
    assert data.shape == (1, 28, 28)
    assert len(data.classes) == 10


def test_fashion_classes_are_in_the_publishers_order() -> None:
    """Trousers are narrow and bags are wide: the mean images tell the names apart."""
    data = real("fashion-mnist")
    image = {
        name: data.x_train[data.y_train == place].mean(0).reshape(28, 28)
        for place, name in enumerate(data.classes)
    }
    edge = {name: mean[14:, :5].mean() for name, mean in image.items()}
    assert edge["Trouser"] < 0.05 < 0.2 < edge["Bag"]
