"""Counts of classes and of pairs of classes, a few MiB of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import bits
from ruleout.labels.sets import LabelSets

__all__ = ["Counts", "count_by_size", "count_by_truth", "some_rows"]

Vector = NDArray[np.float64]
_WORK = 4e10  # multiplications spent on pairs; more rows than that allows are sampled


@dataclass(frozen=True)
class Counts:
    """The rows that rule out `size` classes: how many, each class, and each pair of classes."""

    size: int
    rows: int
    classes: Vector  # [k]
    pairs: NDArray[np.float64] | None  # [k, k], symmetric; its diagonal is `classes`


def count_by_size(sets: LabelSets, *, pairs: bool = False) -> Iterator[Counts]:
    """Yield the counts of each size that occurs, sizes rising; size 0 is left out."""
    sizes, k = sets.sizes, len(sets.classes)
    order = np.argsort(sizes, kind="stable")
    found, starts = np.unique(sizes[order], return_index=True)
    for size, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if size == 0:
            continue
        each, joint = np.zeros(k), np.zeros((k, k)) if pairs else None
        for piece in bits.chunks(len(rows), k):
            mask = bits.unpack(sets.packed[rows[piece]], k)
            if joint is None:
                each += mask.sum(0)
            else:  # float32 holds counts of a block exactly
                numbers = mask.astype(np.float32)
                joint += numbers.T @ numbers
        if joint is not None:
            each = joint.diagonal().copy()
        yield Counts(size, len(rows), each, joint)


def count_by_truth(sets: LabelSets, truth: NDArray[np.intp]) -> NDArray[np.float64]:
    """Count, for each true class (row), how often each class is ruled out (column)."""
    k = len(sets.classes)
    table, every = np.zeros((k, k)), np.eye(k, dtype=np.float32)
    for piece in bits.chunks(len(sets), k):
        mask = bits.unpack(sets.packed[piece], k).astype(np.float32)
        table += every[truth[piece]].T @ mask
    return table


def some_rows(sets: LabelSets) -> NDArray[np.intp] | slice:
    """Return all rows, or a random part where counting pairs in all of them would take long."""
    n, k = sets.shape
    most = int(_WORK / k**2)
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))
