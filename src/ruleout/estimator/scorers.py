"""Scorers for scikit-learn's ``scoring=``: a model is judged by what was ruled out.

Each takes ``(estimator, X, y, sample_weight=None)``, where y is label sets, a table of 0 and 1,
answers, or ordinary labels. The estimator is any fitted classifier, also a pipeline.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from ruleout.estimator.inputs import check_rows, holds_sets, known_target, per_row, positions
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Credit, Evidence, Interval, judge, wilson
from ruleout.labels.sets import has
from ruleout.training import Trial

Array = NDArray[np.float64]


def unbiased_accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    r"""Estimate the accuracy without bias, :math:`1 - \frac{k-1}{s} 1(\hat y \in \bar Y)` per row.

    Of ordinary labels it is their accuracy; of answers :math:`1/(1-q)` takes the place of
    :math:`(k-1)/s`, and of evidence its credit that of all, where rows that say little count
    little. Rows that rule nothing out do not count. It rests on sets that are equally likely given
    their size and the true class.

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
    if isinstance(y, Evidence):
        predicted = np.asarray(estimator.predict(X))
        check_rows(len(predicted), y.sets)
        earned = y.credit.of(positions(predicted, np.asarray(estimator.classes_)))
        return _mean(earned.value, earned.row_weight, sample_weight)
    ruled_out, sizes, rate = _predictions_ruled_out(estimator, X, y)
    k = len(estimator.classes_)
    scaled = ruled_out * (k - 1) / np.maximum(sizes, 1) if rate is None else ruled_out / (1 - rate)
    return _mean(1 - scaled, sizes > 0, sample_weight)


def consistency(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Return the share of predictions that were not ruled out.

    Of ordinary labels it is their accuracy; otherwise it is larger, since a wrong prediction may
    not have been ruled out. Rows that rule nothing out do not count.
    """
    ruled_out, sizes, _ = _predictions_ruled_out(estimator, X, y)
    return _mean(1.0 - ruled_out, sizes > 0, sample_weight)


def _predictions_ruled_out(
    estimator: Any, X: Any, y: Any
) -> tuple[NDArray[np.bool_], NDArray[np.intp], NDArray[np.float64] | None]:
    """Return whether each prediction was ruled out, how many classes were, and answers' rates."""
    predicted = np.asarray(estimator.predict(X))
    classes = np.asarray(estimator.classes_)
    y, rate = per_row(y, len(predicted))
    sets = known_target(y if holds_sets(y) else column_or_1d(y, warn=True), classes)
    check_rows(len(predicted), sets)
    return has(sets.packed, positions(predicted, classes)), sets.sizes, rate


def _mean(values: NDArray[Any], weight: NDArray[Any], sample_weight: Any) -> float:
    weight = weight * (1.0 if sample_weight is None else np.asarray(sample_weight, float))
    if not weight.sum() > 0:
        raise InputError("no row with weight rules anything out", "give rows to judge by")
    return float((weight * values).sum() / weight.sum())


class Share(NamedTuple):
    """An estimated share."""

    estimate: float
    standard_error: float
    low: float  #: the ends of its 95 % interval
    high: float


class SetScores:
    """Predictions judged by what was ruled out, in batches: how often each credit occurs."""

    def __init__(self) -> None:
        self._earned: Counter[tuple[float, ...]] = Counter()  # value and its two variances
        self._stayed: Counter[bool] = Counter()
        self._judged: Interval | None = None

    def add(
        self, probabilities: Array, sets: Any, rate: Array | None = None, groups: Any = None
    ) -> SetScores:
        """Take in ``[n, k]`` with sets, or answers with rates.

        Evidence, and rows that belong to `groups`, ``[n]``, all at once.
        """
        predicted = probabilities.argmax(1)
        said = sets if isinstance(sets, Evidence) else Trial(sets, rate=rate).said
        if said is sets or groups is not None:
            self._judged = said.judge(predicted, groups=groups) or Interval(np.nan, 0.0, 1.0)
        says = np.flatnonzero(said.sets.sizes)
        rows = np.stack(said.credit.of(predicted))[:, says]
        keys, times = np.unique(rows, axis=1, return_counts=True)
        self._earned.update(
            dict(zip(zip(*keys.tolist(), strict=True), times.tolist(), strict=True))
        )
        self._stayed.update(said.sets.candidates[says, predicted[says]].tolist())
        return self

    def result(self) -> dict[str, Any]:
        """Return ``accuracy`` and ``consistency``, each a :class:`Share`, and ``rows``."""
        n = self._stayed.total()
        stayed = _share(self._stayed[True], n)
        return {"rows": n, "accuracy": self._accuracy(n), "consistency": stayed}

    def _accuracy(self, n: int) -> Share:
        if not n:
            return Share(np.nan, np.inf, 0.0, 1.0)
        if self._judged is not None:
            return _spread_over(self._judged.proper)
        keys, times = zip(*sorted(self._earned.items()), strict=True)
        credit, count = Credit(*np.array(keys).T), np.array(times)
        found = judge(credit, count).proper
        weight = credit.row_weight
        off = weight @ (count * weight * np.square(credit.value - found.estimate))
        error = np.sqrt(off * n / (n - 1)) / (count @ weight) if n > 1 else np.inf
        return Share(found.estimate, float(error), found.low, found.high)


def _spread_over(found: Interval) -> Share:
    error = (found.high - found.low) / 3.92 if np.isfinite(found.estimate) else np.inf
    return Share(found.estimate, error, found.low, found.high)


def _share(hits: int, n: int) -> Share:
    if n == 0:
        return Share(np.nan, np.inf, 0.0, 1.0)
    p, low, high = wilson(hits, n)
    return Share(p, float(np.sqrt(p * (1 - p) / (n - 1))) if n > 1 else np.inf, low, high)


class LabelScores:
    r"""Predictions judged by true labels, a batch of rows at a time.

    The calibration error is :math:`\sum_b \frac{n_b}{n} |acc_b - conf_b|` over 15 bins of equal
    width (Guo 2017).
    """

    def __init__(self) -> None:
        self._counts: Any = 0  # [3, k]: how often each class is right, true, and predicted
        self._gaps = np.zeros(15)  # of each bin: hits less confidence
        self._judged: Interval | None = None

    def add(self, probabilities: Array, codes: NDArray[np.intp], groups: Any = None) -> LabelScores:
        """Take in ``[n, k]`` with the positions of the true labels; with `groups` all rows."""
        k, predicted = probabilities.shape[1], probabilities.argmax(1)
        hits = predicted == codes
        if groups is not None:
            sure = np.zeros(len(hits))
            found = judge(Credit(hits.astype(float), sure, sure), groups=groups)
            self._judged = found._replace(estimate=float(hits.mean()))  # to the last bit
        parts = (codes[hits], codes, predicted)
        self._counts = self._counts + np.array([np.bincount(part, minlength=k) for part in parts])
        confidence, most = probabilities.max(1), len(self._gaps)
        place = np.minimum((confidence * most).astype(int), most - 1)
        np.add.at(self._gaps, place, hits - confidence)  # row after row, whatever the batches
        return self

    def result(self) -> dict[str, Any]:
        """Return ``rows``, ``accuracy`` with its error, ``calibration_error`` and ``classes``.

        Of each class: how many rows it has, precision, recall and F1, NaN where nothing says.
        """
        both, rows, said = self._counts
        n, right = int(rows.sum()), int(both.sum())
        with np.errstate(invalid="ignore"):
            table = {
                "precision": both / said,
                "recall": both / rows,
                "f1": 2 * both / (rows + said),
            }
        return {
            "rows": n,
            "accuracy": _spread_over(self._judged) if self._judged else _share(right, n),
            "calibration_error": float(np.abs(self._gaps).sum() / n),
            "classes": {"rows": rows, **table},
        }
