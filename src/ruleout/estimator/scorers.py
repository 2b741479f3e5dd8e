"""Scorers for scikit-learn's ``scoring=``: a model is judged by what was ruled out.

Each takes ``(estimator, X, y, sample_weight=None)``, where y is label sets, a table of 0 and 1,
answers, or ordinary labels. The estimator is any fitted classifier, also a pipeline.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ruleout.estimator.inputs import check_rows, holds_sets, known_target, per_row, positions
from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError
from ruleout.selection import criterion

Array = NDArray[np.float64]


def unbiased_accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    r"""Estimate the accuracy without bias, :math:`1 - \frac{k-1}{s} 1(\hat y \in \bar Y)` per row.

    Of ordinary labels it is their accuracy; of answers :math:`1/(1-q)` takes the place of
    :math:`(k-1)/s`. Rows that rule nothing out do not count.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> clf = ro.RuleOutClassifier(learning_rate=0.1, epochs=3, random_state=0)
    >>> scores = cross_val_score(clf, x, sets, scoring=unbiased_accuracy, cv=2)
    >>> bool(scores.min() > 0.7)
    True
    """
    ruled_out, sizes, rate = _predictions_ruled_out(estimator, X, y)
    k = len(estimator.classes_)
    scaled = ruled_out * (k - 1) / np.maximum(sizes, 1) if rate is None else ruled_out / (1 - rate)
    return _mean(1 - scaled, sizes, sample_weight)


def consistency(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the share of predictions that were not ruled out.

    Of ordinary labels it is their accuracy; otherwise it is larger, since a wrong prediction may
    not have been ruled out. Rows that rule nothing out do not count.
    """
    ruled_out, sizes, _ = _predictions_ruled_out(estimator, X, y)
    return _mean(1.0 - ruled_out, sizes, sample_weight)


def _predictions_ruled_out(
    estimator: Any, X: Any, y: Any
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.float64] | None]:
    """Return whether each prediction was ruled out, how many classes were, and answers' rates."""
    predicted = np.asarray(estimator.predict(X))
    classes = np.asarray(estimator.classes_)
    y, rate = per_row(y, len(predicted))
    sets = known_target(y if holds_sets(y) else column_or_1d(y, warn=True), classes)
    check_rows(len(predicted), sets)
    codes = positions(predicted, classes)
    bits = sets.packed[np.arange(len(codes)), codes // 8]
    return (bits >> (codes % 8)).astype(np.uint8) % 2 == 1, sets.sizes, rate


def _mean(values: NDArray[Any], sizes: NDArray[np.intp], sample_weight: Any) -> float:
    weight = (sizes > 0) * (1.0 if sample_weight is None else np.asarray(sample_weight, float))
    if not weight.sum() > 0:
        raise InputError("no row with weight rules anything out", "give rows to judge by")
    return float((weight * values).sum() / weight.sum())


def judge_sets(probabilities: Array, sets: LabelSets, rate: Array | None = None) -> dict[str, Any]:
    """Judge ``[n, k]`` by what was ruled out, or by answers with their rates.

    Returns ``accuracy`` (unbiased) and ``consistency``, each with its standard error, and ``rows``.
    """
    scores, mask = torch.from_numpy(probabilities), torch.from_numpy(sets.excluded)
    found: dict[str, Any] = {"rows": int((sets.sizes > 0).sum())}
    for name in ("accuracy", "consistency"):
        estimate, error = criterion(name)(scores, mask, rate)
        found[name] = (float(estimate), float(error))
    return found


def judge_labels(probabilities: Array, codes: NDArray[np.intp]) -> dict[str, Any]:
    """Judge ``[n, k]`` by the positions of the true labels.

    Returns ``accuracy`` with its standard error; ``calibration_error``; ``classes``: for each class
    how many rows it has, precision, recall and F1 (NaN where nothing says); and ``rows``.
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
    r"""Return :math:`\sum_b \frac{n_b}{n} |acc_b - conf_b|` of bins of equal width (Guo 2017)."""
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = np.bincount(place, hits - confidence, minlength=bins)
    return float(np.abs(gaps).sum() / len(confidence))
