"""Size laws: how many classes are ruled out per example."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import Classes, class_names, to_array
from ruleout.labels.errors import LabelError, brief, nearest

Law: TypeAlias = str | int | Sequence[float] | NDArray[Any]
Vector: TypeAlias = NDArray[np.float64]


def _binomials(n: int) -> Iterator[int]:
    """Yield C(n, 1), C(n, 2), … exactly; ratios of whole numbers round only once, for any k."""
    value = 1
    for s in range(1, n + 1):
        value = value * (n - s + 1) // s
        yield value


def _paper(k: int) -> list[float]:
    return [ways / (2 ** (k - 1) - 1) for ways in _binomials(k - 1)]


def _released(k: int) -> list[float]:
    return [ways / (2**k - 2) for ways in islice(_binomials(k), k - 1)]


LAWS: dict[str, Callable[[int], list[float]]] = {"paper": _paper, "released": _released}


def size_law(law: Law, classes: Classes) -> Vector:
    r"""Return :math:`p(s)` for :math:`s = 1, \dots, k-1`.

    Parameters
    ----------
    law
        - ``"paper"``: :math:`\binom{k-1}{s} / (2^{k-1}-1)`, every set without the true class
          equally likely. The paper prints the denominator :math:`2^k - 2`, which sums to one half.
        - ``"released"``: :math:`\binom{k}{s} / (2^k-2)`, as in the authors' code.
        - ``3`` or ``"fixed:3"``: always three classes.
        - a vector of k-1 probabilities.
    classes
        The number of classes k, or their names.

    Returns
    -------
    numpy.ndarray
        k-1 probabilities that sum to 1.

    Examples
    --------
    >>> size_law("paper", 4)
    array([0.42857143, 0.42857143, 0.14285714])
    >>> size_law("fixed:2", 4)
    array([0., 1., 0.])
    """
    k = len(class_names(classes))
    if isinstance(law, str):
        return _named(law, k)
    if isinstance(law, numbers.Integral) and not isinstance(law, bool):
        return _fixed(int(law), k)
    return _vector(law, k)


def _named(law: str, k: int) -> Vector:
    if law in LAWS:
        return np.array(LAWS[law](k))
    if law.startswith("fixed:") and law[6:].isascii() and law[6:].isdigit() and len(law) < 16:
        return _fixed(int(law[6:]), k)
    say = "use 'paper', 'released', 'fixed:j', a whole number, or a vector of probabilities"
    raise LabelError(f"unknown size law {brief(law)}", nearest(law, [*LAWS, "fixed:1"], say))


def _fixed(size: int, k: int) -> Vector:
    if not 1 <= size <= k - 1:
        raise LabelError(
            f"size {size} is impossible with {k} classes", f"choose a size from 1 to {k - 1}"
        )
    return np.asarray(np.arange(1, k) == size, np.float64)


def _vector(law: Any, k: int) -> Vector:
    try:
        p = to_array(law, "the size law").astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LabelError):
            raise
        raise LabelError(
            f"size law {brief(law)} is not a list of numbers", f"give {k - 1} probabilities"
        ) from None
    if p.shape != (k - 1,):
        raise LabelError(
            f"the size law has shape {p.shape}",
            f"with {k} classes give {k - 1} probabilities, for sizes 1 to {k - 1}",
        )
    if not np.isfinite(p).all() or (p < 0).any():
        place = int(np.argmax(~np.isfinite(p) | (p < 0)))
        raise LabelError(
            f"p(s={place + 1}) is {p[place]:g}", "probabilities are numbers from 0 to 1"
        )
    if abs(p.sum() - 1) > 1e-6:
        raise LabelError(f"the size law sums to {p.sum():g}", "divide it by its sum")
    return np.asarray(p / p.sum())


def kept_law(law: Law, classes: Classes) -> Vector:
    r"""Return the law of the sizes that survive when only "no" answers are kept.

    A proposed set of size s misses the true class with probability :math:`(k-s)/k` (Lemma 1), so
    keeping "no" tilts the law to :math:`p(s)(k-s)/k`, normalised. Theorem 2 is exact for each
    size and leaves this tilt out.

    Examples
    --------
    >>> np.allclose(kept_law("released", 10), size_law("paper", 10))
    True
    """
    p = size_law(law, classes)
    k = len(p) + 1
    tilted = p * (k - np.arange(1, k)) / k
    return np.asarray(tilted / tilted.sum())


def wrong_class_rate(sizes: Any, classes: Classes) -> Vector:
    r"""Return how likely a wrong class stays possible after one answered question.

    For a proposed set of size s, whatever the answer,
    :math:`q_s = \frac{s(s-1) + (k-s)(k-s-1)}{k(k-1)}`. Several independent questions about one
    item multiply.

    Examples
    --------
    >>> wrong_class_rate([1, 5, 9], 10)
    array([0.8       , 0.44444444, 0.8       ])
    """
    k = len(class_names(classes))
    s = to_array(sizes, "sizes").astype(np.float64)
    if not ((s >= 1) & (s <= k - 1)).all():
        raise LabelError("a size is impossible", f"with {k} classes, sizes go from 1 to {k - 1}")
    return np.asarray((s * (s - 1) + (k - s) * (k - s - 1)) / (k * (k - 1)))
