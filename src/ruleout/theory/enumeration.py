"""Every set there is: exact distributions and expectations for small k."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import LabelError, Law, size_law, wrong_class_rate

__all__ = ["Outcomes", "answer_outcomes", "every_set", "proposals", "set_distribution"]

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]


def every_set(k: int, s: int | None = None) -> Mask:
    """Return every set of s classes, or every proper non-empty set, bool (m, k).

    >>> every_set(3, 1).astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1]])
    >>> len(every_set(4))  # 2^4 - 2
    14
    """
    if not 2 <= k <= 20:
        raise LabelError(f"{k} classes cannot be enumerated", "use k from 2 to 20")
    if s is not None:
        size_law(s, k)  # raises unless 1 <= s <= k - 1
    sizes = range(1, k) if s is None else [s]
    chosen = [members for size in sizes for members in combinations(range(k), size)]
    mask = np.zeros((len(chosen), k), np.bool_)
    for row, members in enumerate(chosen):
        mask[row, list(members)] = True
    return mask


def set_distribution(posterior: Any, law: Law) -> tuple[Mask, Vector]:
    r"""Return every set with its probability given x under the MCL process (Eq. 4).

    .. math:: \bar p(\bar Y \mid x) = \frac{p(s)}{\binom{k-1}{s}} \sum_{y \notin \bar Y} p(y \mid x)

    Parameters
    ----------
    posterior
        p(y | x), k numbers.
    law
        See :func:`ruleout.size_law`.

    Examples
    --------
    >>> sets, p = set_distribution([0.5, 0.3, 0.2], "paper")
    >>> float(round(p.sum(), 12))  # Theorem 1
    1.0
    """
    truth = _posterior(posterior)
    k = len(truth)
    sets = every_set(k)
    s = sets.sum(1)
    ways = np.array([comb(k - 1, int(size)) for size in s])
    return sets, size_law(law, k)[s - 1] / ways * (~sets @ truth)


def _posterior(values: Any) -> Vector:
    truth = np.asarray(values, np.float64)
    if truth.ndim != 1 or not (truth >= 0).all() or abs(truth.sum() - 1) > 1e-6:
        raise LabelError(f"the posterior is {truth.tolist()}", "give k probabilities, sum 1")
    return truth


def proposals(k: int, law: Law) -> tuple[Mask, Vector]:
    """Return every set with its probability of being proposed (Section 3.2).

    >>> sets, p = proposals(3, "released")
    >>> p
    array([0.16666667, 0.16666667, 0.16666667, 0.16666667, 0.16666667, 0.16666667])
    """
    sets = every_set(k)
    s = sets.sum(1)
    return sets, size_law(law, k)[s - 1] / [comb(k, int(size)) for size in s]


class Outcomes(NamedTuple):
    """Everything that asking can lead to, with probabilities that sum to 1."""

    excluded: Mask  #: what the answers rule out, (m, k)
    rates: Vector  #: how likely a wrong class stays possible, (m,)
    probabilities: Vector  #: (m,)


def answer_outcomes(posterior: Any, law: Law, questions: int = 1) -> Outcomes:
    """Return every outcome of asking `questions` independent questions about one example.

    >>> outcomes = answer_outcomes([0.5, 0.3, 0.2], "released")
    >>> float(round(outcomes.probabilities.sum(), 12))
    1.0
    """
    truth = _posterior(posterior)
    k = len(truth)
    asked, chance = proposals(k, law)
    rate = wrong_class_rate(asked.sum(1), k)
    results = []
    for y in range(k):
        ruled_out = np.where(asked[:, y : y + 1], ~asked, asked)
        excluded, rates, p = np.zeros((1, k), np.bool_), np.ones(1), truth[y : y + 1]
        for _ in range(questions):
            excluded = (excluded[:, None] | ruled_out).reshape(-1, k)
            rates = np.outer(rates, rate).ravel()
            p = np.outer(p, chance).ravel()
        results.append((excluded, rates, p))
    return Outcomes(*(np.concatenate(parts) for parts in zip(*results, strict=True)))
