"""What pictures of the best approach are drawn from: how sure it is, and what it contradicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ruleout.comparison.judging import Judging
from ruleout.labels import LabelSets
from ruleout.selection import criterion
from ruleout.training import GridFit
from ruleout.training.result import predict

__all__ = ["Bins", "Pictures", "bins", "look", "pairs"]

_FEWEST = 10  # rows in a bin


@dataclass(frozen=True, eq=False)
class Bins:
    """Rows by how sure the model is: one entry per bin."""

    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    error: NDArray[np.float64]
    count: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Pictures:
    """What is known about the predictions of one approach.

    Attributes
    ----------
    approach
        Which one.
    bins
        How often it is right when it is this sure.
    ruled
        ``[k, k]``: how often a class (row) was ruled out where another (column) was predicted.
    ruled_rows
        How many rows that is, and what rows they are.
    confusion
        ``[k, k]``: true against predicted classes, where the true ones are known.
    """

    approach: str
    bins: Bins
    ruled: NDArray[np.int64]
    ruled_rows: str
    confusion: NDArray[np.int64] | None


def look(x: Any, judging: Judging, fit: GridFit, approach: str) -> Pictures:
    """Look at the predictions of a trained approach.

    Where trials share their judging rows, the first trial alone is looked at.
    """
    k = len(judging.trials[0].sets.classes)
    sure, right, counted = [], [], np.zeros((k, k), np.int64)
    for trial in range(judging.apart):
        logits, known = judging.logits(fit, trial), judging.targets[trial]
        predicted = logits.argmax(-1).numpy()
        says = known.sizes > 0 if isinstance(known, LabelSets) else np.full(len(known), True)
        sure.append(logits.double().softmax(-1).amax(-1).numpy()[says])
        right.append(_right(judging, trial, logits)[says])
        if isinstance(known, LabelSets):
            counted += pairs(known, predicted)
        else:
            counted += _table(np.asarray(known), predicted, k)
    found = bins(np.concatenate(sure), np.concatenate(right))
    if judging.kind != "labels":
        return Pictures(approach, found, counted, f"{judging.count:,} judging rows", None)
    own = judging.trials[0]
    rows = np.arange(x.shape[0]) if own.rows is None else own.rows
    predicted = predict(fit.module(0), x[rows]).argmax(-1).numpy()
    said = f"{len(rows):,} training rows of the first trial"
    return Pictures(approach, found, pairs(own.sets, predicted), said, counted)


def _right(judging: Judging, trial: int, logits: torch.Tensor) -> NDArray[np.float64]:
    """Return 1 and 0 for true labels, else the unbiased estimate of each row."""
    target = judging.target(trial, logits)
    if judging.kind == "labels":
        values = judging.values(logits, target)
    else:
        values = criterion("accuracy").values(logits, target)
    return np.asarray(values.double().numpy())


def pairs(sets: LabelSets, predicted: NDArray[Any]) -> NDArray[np.int64]:
    """Count, for each ruled-out class (row), what was predicted instead (column).

    >>> pairs(LabelSets([[1, 1, 0], [0, 1, 0]]), np.array([2, 1]))
    array([[0, 0, 1],
           [0, 1, 1],
           [0, 0, 0]])
    """
    rows, codes = sets.nonzero()
    return _table(codes, predicted[rows], len(sets.classes))


def _table(rows: NDArray[Any], columns: NDArray[Any], k: int) -> NDArray[np.int64]:
    return np.bincount(rows * k + columns, minlength=k * k).reshape(k, k)


def bins(confidence: NDArray[np.float64], right: NDArray[np.float64], count: int = 10) -> Bins:
    """Sort rows into bins of equal width; a bin of fewer than 10 rows joins the next.

    >>> found = bins(np.repeat([0.45, 0.95], 30), np.repeat([0.0, 1.0], 30))
    >>> found.confidence, found.accuracy, found.count
    (array([0.45, 0.95]), array([0., 1.]), array([30, 30]))
    """
    order = np.argsort(confidence, kind="stable")
    places = np.minimum((confidence * count).astype(int), count - 1)
    parts = np.split(order, _cuts(np.bincount(places, minlength=count)))
    kept = [part for part in parts if len(part)]
    spread = [right[p].std(ddof=1) / np.sqrt(len(p)) if len(p) > 1 else np.nan for p in kept]
    return Bins(
        np.array([confidence[part].mean() for part in kept]),
        np.array([right[part].mean() for part in kept]),
        np.array(spread),
        np.array([len(part) for part in kept]),
    )


def _cuts(counts: NDArray[np.intp]) -> list[int]:
    """Return where bins end, so that each holds enough rows; the last one takes what is left."""
    cuts, start, end = [], 0, 0
    for count in counts.tolist():
        end += count
        if end - start >= _FEWEST:
            cuts.append(end)
            start = end
    return cuts if start == end else cuts[:-1]
