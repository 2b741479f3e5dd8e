"""What a classifier is trained on: rows of finite numbers, and what each weighs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.estimator.targets import Target
from ruleout.labels import LabelSets
from ruleout.labels.bits import chunks
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.training import Trial
from ruleout.training.validation import first_not_finite

Array = NDArray[np.float64]


class TrainingData(NamedTuple):
    """What a classifier is trained on."""

    x: Any  # [n, d]: an array or a CSR matrix
    sets: LabelSets
    weight: Array | None
    classes: NDArray[Any]
    rate: Array | None = None  # where answers made the sets

    @property
    def trial(self) -> Trial:
        """The same for the engine."""
        return Trial(self.sets, weight=self.weight, rate=self.rate)

    def used(self) -> TrainingData:
        """Leave out rows that weigh nothing, and those without an answer where answers teach."""
        keep = np.ones(len(self.sets), np.bool_) if self.weight is None else self.weight > 0
        if self.rate is not None:
            keep &= self.sets.sizes > 0
        if keep.all():
            return self
        if not keep.any():
            raise InputError("every row with an answer weighs zero", "give some row a weight")
        rows = np.flatnonzero(keep)
        weight = None if self.weight is None else self.weight[rows]
        rate = None if self.rate is None else self.rate[rows]
        return TrainingData(self.x[rows], self.sets[rows], weight, self.classes, rate)


def check_finite(x: Any, names: Sequence[Any] | None = None) -> None:
    """Raise where a number is not finite, naming its row and column."""
    bad = first_not_finite(x)
    if bad is None:
        return
    row, column, value = bad
    where = column if names is None else str(names[column])
    problem, remedy = "X holds NaN", "fill in or drop missing values"
    if not np.isnan(value):
        problem = "X holds infinity (inf) or a number beyond its precision"
        remedy = "fix it, scale the features, or use precision='float64'"
        if x.dtype == np.float64:
            remedy = "fix it, or drop the row"
    raise InputError(problem, remedy, row=row, column=where)


def row_weights(known: Target, sample_weight: Any, class_weight: Any) -> Array | None:
    """Return one weight per row, or None where all rows count alike.

    Parameters
    ----------
    known
        What was ruled out.
    sample_weight
        One number per row, zero or above; None counts all rows once.
    class_weight
        A dictionary from class to weight (1 where a class is missing), or ``"balanced"``: a class
        weighs 1 / (k · its share), with shares as :func:`class_shares` estimates them. A row weighs
        the mean of the classes it may still be; of an ordinary label that is its own class.
    """
    given = None if sample_weight is None else _checked_weights(sample_weight, len(known.sets))
    if class_weight is None:
        return given
    weight = _over_candidates(known.sets, _of_classes(known, class_weight, given))
    weight = weight if given is None else weight * given
    if not weight.any():
        raise InputError("every row weighs zero", "give some class a weight above zero")
    return weight


def _checked_weights(sample_weight: Any, n: int) -> Array:
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape}", f"give {n}, one for each row")
    if not np.isfinite(weight).all() or (weight < 0).any():
        row = int(np.argmax(~(np.isfinite(weight) & (weight >= 0))))
        raise InputError(f"sample_weight is {weight[row]}", "give numbers, zero or above", row=row)
    if not weight.any():
        raise InputError("every sample_weight is zero", "give at least one row a weight")
    return weight


def _of_classes(known: Target, class_weight: Any, given: Array | None) -> Array:
    names, k = known.classes.tolist(), len(known.classes)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return 1 / (k * class_shares(known.sets, given, known.rate))
    if not isinstance(class_weight, Mapping):
        raise InputError(
            f"class_weight is {brief(class_weight)}", "give a dictionary, 'balanced' or None"
        )
    for name in class_weight:
        if name not in names:
            say = f"the classes are {shown(names)}"
            raise InputError(
                f"class_weight names an unknown class {brief(name)}", nearest(name, names, say)
            )
    for name, value in class_weight.items():
        if not isinstance(value, (int, float)) or not 0 <= value < np.inf:
            raise InputError(
                f"class_weight of {brief(name)} is {brief(value)}", "give numbers, zero or above"
            )
    return np.array([class_weight.get(name, 1.0) for name in names], np.float64)


def _over_candidates(sets: LabelSets, of_classes: Array) -> Array:
    """Return for each row the mean weight of the classes it may still be."""
    total = [sets[piece].candidates @ of_classes for piece in chunks(*sets.shape)]
    return np.asarray(np.concatenate(total) / (sets.shape[1] - sets.sizes))


def class_shares(sets: LabelSets, weight: Array | None = None, rate: Array | None = None) -> Array:
    r"""Estimate how frequent each class is, from what was ruled out.

    .. math:: \hat\pi_c = \frac1n \sum_i \Bigl(1 - \frac{k-1}{s_i} 1(c \in \bar Y_i)\Bigr),

    without bias where sets are drawn uniformly, and exact for ordinary labels. With the rates q of
    answers :math:`1/(1-q_i)` takes the place of :math:`(k-1)/s_i`. A share below its own standard
    error, also a negative one, counts as that error; of ordinary labels none is.

    Examples
    --------
    >>> class_shares(LabelSets.from_labels([0, 0, 0, 1], classes=2))
    array([0.75, 0.25])
    """
    n, k = sets.shape
    given = (np.ones(n) if weight is None else weight) * (sets.sizes > 0)
    scale = (k - 1) / np.maximum(sets.sizes, 1) if rate is None else 1 / (1 - rate)
    total, square, cross = np.zeros(k), np.zeros(k), np.zeros(k)
    for piece in chunks(n, k):
        part, own = sets[piece], given[piece]
        values = 1 - part.excluded * scale[piece][:, None]
        total += own @ values
        square += np.square(own) @ np.square(values)
        cross += np.square(own) @ values
    shares = total / given.sum()
    spread = square - 2 * shares * cross + np.square(shares) * np.square(given).sum()
    errors = np.sqrt(np.maximum(spread, 0)) / given.sum()
    return np.asarray(np.maximum(np.maximum(shares, errors), _NEVER))


_NEVER = np.finfo(float).tiny  # the share of a class that no row may be
