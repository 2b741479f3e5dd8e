"""Class weights: what each row weighs, from what its classes weigh."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import LabelSets
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.labels.sets import chunks

Array = NDArray[np.float64]


def weigh_rows(
    sets: LabelSets,
    names: Sequence[Any],
    class_weight: Any,
    given: Array | None = None,
    rate: Array | None = None,
) -> Array:
    """Return what each row weighs: the mean of the classes it may still be, times what was given.

    A class weighs what a dictionary says (1 where it is missing), or 1 / (k · its share) where
    balanced. `names` are the classes as the user names them.
    """
    if isinstance(class_weight, str) and class_weight == "balanced":
        own = 1 / (len(names) * class_shares(sets, given, rate))
    else:
        own = _named(names, class_weight)
    total = [sets[piece].candidates @ own for piece in chunks(*sets.shape)]
    mean = np.concatenate(total) / (sets.shape[1] - sets.sizes)
    weight = mean if given is None else mean * given
    if not weight.any():
        raise InputError("every row weighs zero", "give some class a weight above zero")
    return np.asarray(weight)


def _named(names: Sequence[Any], class_weight: Any) -> Array:
    if not isinstance(class_weight, Mapping):
        say = "give a dictionary, 'balanced' or None"
        raise InputError(f"class_weight is {brief(class_weight)}", say)
    for name, value in class_weight.items():
        if name not in names:
            say = nearest(name, names, f"the classes are {shown(names)}")
            raise InputError(f"class_weight names an unknown class {brief(name)}", say)
        if not isinstance(value, int | float | np.integer | np.floating) or not 0 <= value < np.inf:
            problem = f"class_weight of {brief(name)} is {brief(value)}"
            raise InputError(problem, "give numbers, zero or above")
    return np.array([class_weight.get(name, 1.0) for name in names], np.float64)


def class_shares(sets: LabelSets, weight: Array | None = None, rate: Array | None = None) -> Array:
    r"""Estimate how frequent each class is, from what was ruled out.

    .. math:: \hat\pi_c = \frac1n \sum_i \Bigl(1 - \frac{k-1}{s_i} 1(c \in \bar Y_i)\Bigr),

    without bias where sets are drawn uniformly, and exact for ordinary labels. With the rates q of
    answers :math:`1/(1-q_i)` takes the place of :math:`(k-1)/s_i`. A share below its own standard
    error, also a negative one, counts as that error; of ordinary labels none is.
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
    return np.asarray(np.maximum(np.maximum(shares, errors), np.finfo(float).tiny))
