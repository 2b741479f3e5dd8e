"""Judging predictions: by true labels where there are some, else by what was ruled out."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ruleout.labels import LabelSets
from ruleout.selection import criterion

__all__ = ["calibration_error", "judge_labels", "judge_sets"]

Array = NDArray[np.float64]


def judge_sets(probabilities: Array, sets: LabelSets, rate: Array | None = None) -> dict[str, Any]:
    """Judge by what was ruled out; no true label is needed.

    Parameters
    ----------
    probabilities
        ``[n, k]``.
    sets
        What was ruled out for each row.
    rate
        Where answers made the sets: how likely a wrong class stays possible in each row.

    Returns
    -------
    dict
        ``accuracy`` (unbiased) and ``consistency``, each with its standard error, and ``rows``.

    Examples
    --------
    >>> sure = np.eye(3)[[0, 1]]
    >>> judge_sets(sure, LabelSets([[0, 1, 1], [0, 1, 0]]))["consistency"]
    (0.5, 0.5)
    """
    scores, mask = torch.from_numpy(probabilities), torch.from_numpy(sets.excluded)
    found: dict[str, Any] = {"rows": int((sets.sizes > 0).sum())}
    for name in ("accuracy", "consistency"):
        estimate, error = criterion(name)(scores, mask, rate)
        found[name] = (float(estimate), float(error))
    return found


def judge_labels(probabilities: Array, codes: NDArray[np.intp]) -> dict[str, Any]:
    """Judge by true labels.

    Parameters
    ----------
    probabilities
        ``[n, k]``.
    codes
        ``[n]``: the position of each true label.

    Returns
    -------
    dict
        ``accuracy`` with its standard error; ``calibration_error``; ``classes``: for each class how
        many rows it has, precision, recall and F1 (NaN where nothing says); and ``rows``.

    Examples
    --------
    >>> sure = np.eye(3)[[0, 1, 1]]
    >>> judge_labels(sure, np.array([0, 1, 2]))["classes"]["recall"]
    array([1., 1., 0.])
    """
    n, k = probabilities.shape
    predicted = probabilities.argmax(1)
    hits = predicted == codes
    error = np.sqrt(hits.var() / (n - 1)) if n > 1 else np.inf
    both = np.bincount(codes[hits], minlength=k)
    rows, said = np.bincount(codes, minlength=k), np.bincount(predicted, minlength=k)
    with np.errstate(invalid="ignore"):
        table = {"precision": both / said, "recall": both / rows, "f1": 2 * both / (rows + said)}
    return {
        "rows": n,
        "accuracy": (float(hits.mean()), float(error)),
        "calibration_error": calibration_error(probabilities.max(1), hits),
        "classes": {"rows": rows, **table},
    }


def calibration_error(confidence: Array, hits: NDArray[np.bool_], bins: int = 15) -> float:
    r"""Return the expected calibration error, :math:`\sum_b \frac{n_b}{n} |acc_b - conf_b|`.

    Bins are equally wide, as in Guo et al. 2017.

    >>> calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(place, hits - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))
