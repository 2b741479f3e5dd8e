"""From a spec to what is trained on: splits, label sets and features of every trial.

Approaches share them: a trial of one approach sees the same rows, sets and batch order as that
trial of another, so that tests of significance can be paired.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import Dataset, load
from ruleout.experiments.specs import Spec
from ruleout.labels import draw
from ruleout.labels.classes import ClassName
from ruleout.selection import split
from ruleout.training import Trial, Watch

__all__ = ["Prepared", "prepare", "stream"]

_TRAINING, _SPLIT, _SETS = range(3)  # what random numbers are for


@dataclass(frozen=True, eq=False)
class Prepared:
    """What the trials of a spec train on and are measured on."""

    x: NDArray[np.float32]
    trials: list[Trial]
    test: Watch
    train: Watch
    shape: tuple[int, ...]
    classes: tuple[ClassName, ...]


def stream(seed: int, trial: int, purpose: int) -> int:
    """Return a seed of its own for each trial and purpose."""
    return int(np.random.SeedSequence([seed, trial, purpose]).generate_state(1)[0])


def prepare(spec: Spec) -> Prepared:
    """Load the data of a spec, split them and draw label sets; the last few are remembered."""
    return _prepared(spec.dataset, spec.law, spec.features, spec.trials, spec.test_share, spec.seed)


@lru_cache(maxsize=1)
def _prepared(
    dataset: str, law: str, features: str, trials: int, test_share: float, seed: int
) -> Prepared:
    data = _loaded(dataset)
    parts = [_rows(data, test_share, stream(seed, t, _SPLIT)) for t in range(trials)]
    if features == "standardised":
        data, parts = _standardised(data, parts)
    made = [
        Trial(
            draw(data.y_train[rows], len(data.classes), law, stream(seed, t, _SETS)),
            rows,
            seed=stream(seed, t, _TRAINING),
        )
        for t, (rows, _) in enumerate(parts)
    ]
    train = Watch([data.y_train[rows] for rows, _ in parts], rows=[rows for rows, _ in parts])
    if data.test is not None:
        test = Watch(data.test[1], x=data.test[0])
    else:
        test = Watch([data.y_train[rows] for _, rows in parts], rows=[rows for _, rows in parts])
    return Prepared(data.x_train, made, test, train, data.shape, data.classes)


@lru_cache(maxsize=1)
def _loaded(dataset: str) -> Dataset:
    return load(dataset)


def _rows(data: Dataset, share: float, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows that train and those that test, the latter only without official ones."""
    n = len(data.y_train)
    if data.test is not None:
        return np.arange(n), np.arange(0)
    return split(n, share, seed=seed)


def _standardised(data: Dataset, parts: list[Any]) -> tuple[Dataset, list[Any]]:
    """Scale features by the training rows of each trial, which so gets a copy of its own."""
    if data.test is not None:
        mean, std = _moments(data.x_train)
        x, test = (
            ((part - mean) / std).astype(np.float32) for part in (data.x_train, data.test[0])
        )
        return replace(data, x_train=x, x_test=test), parts
    n = len(data.y_train)
    copies, moved = [], []
    for t, (train, test) in enumerate(parts):
        mean, std = _moments(data.x_train[train])
        copies.append(((data.x_train - mean) / std).astype(np.float32))
        moved.append((train + t * n, test + t * n))
    y = np.tile(data.y_train, len(parts))
    return replace(data, x_train=np.concatenate(copies), y_train=y), moved


def _moments(x: NDArray[np.float32]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of each feature; a constant one is left as it is."""
    mean, std = x.mean(0, dtype=np.float64), x.std(0, dtype=np.float64)
    return mean, np.where(std > 0, std, 1.0)
