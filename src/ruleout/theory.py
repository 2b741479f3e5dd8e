"""Beside the road: bounds, purity, and exact enumeration of small cases."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import LabelError, Law, size_law, wrong_class_rate

__all__ = ["ErrorBound", "bound", "error_bound", "linear_complexity", "lipschitz", "purity"]
__all__ += ["Outcomes", "answer_outcomes", "every_set", "proposals", "set_distribution"]


def purity(k: int, s: int, *, decomposed: bool = False) -> float:
    r"""Return the supervision purity of a set of s ruled-out classes (Table 1).

    :math:`1/(k-s)` for the set as a whole, :math:`1/(k-1)` once decomposed into single labels.

    >>> purity(10, 8), purity(10, 8, decomposed=True)
    (0.5, 0.1111111111111111)
    """
    size_law(operator.index(s), k)  # raises unless 1 <= s <= k - 1
    return 1 / (k - 1) if decomposed else 1 / (k - s)


def bound(loss: str, **options: float) -> float:
    """Return the least upper bound of a base loss (Appendix D).

    >>> bound("gce", q=0.5), bound("cce")
    (2.0, inf)
    """
    from ruleout.losses import get

    return get(loss, **options).bound


def lipschitz(loss: str, **options: float) -> float:
    """Return the least Lipschitz constant of a base loss in the logits (Euclidean norm), for any k.

    >>> round(lipschitz("cce") ** 2, 12)
    2.0
    """
    from ruleout.losses import get

    return get(loss, **options).lipschitz


def linear_complexity(n: int, *, weight_norm: float, feature_norm: float) -> float:
    r"""Bound the Rademacher complexity of :math:`x \mapsto w^\top x` by :math:`WX/\sqrt n`.

    For :math:`\|w\| \le W` and :math:`\|x\| \le X`.

    >>> linear_complexity(100, weight_norm=2, feature_norm=5)
    1.0
    """
    return weight_norm * feature_norm / math.sqrt(n)


@dataclass(frozen=True)
class ErrorBound:
    """Theorem 4, size by size."""

    value: float  #: the bound
    complexity: NDArray[np.float64]  #: its first term for each size 1 … k-1, times p(s)
    deviation: NDArray[np.float64]  #: its second term, likewise
    left_out: tuple[int, ...]  #: sizes of the law without examples, on which the bound is silent

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        note = f" (sizes left out, no examples: {list(self.left_out)})" if self.left_out else ""
        return f"{self.value:.6g}{note}"


def error_bound(
    rho: float,
    k: int,
    law: Law,
    counts: Any,
    delta: float,
    bound: float,
    complexity: Callable[[int], Any],
) -> ErrorBound:
    r"""Bound :math:`R(\hat f) - R(f^\star)` with probability at least :math:`1-\delta` (Theorem 4).

    .. math::
        \sum_{j=1}^{k-1} p(s{=}j) \Big(
        \frac{4\sqrt2 \rho k(k-1)}{j} \sum_y \mathfrak R_{n_j}(\mathcal G_y)
        + \frac{(4k-4j-2)\, C_{\mathcal L}}{\sqrt{n_j}}
        \sqrt{\tfrac12 \log \tfrac{2(k-1)}{\delta}} \Big)

    The constant is the theorem's, not the one printed in the appendix lemma.

    `rho` is the Lipschitz constant of the loss, :func:`lipschitz`; `law` is p(s), see
    :func:`ruleout.size_law`; `counts` are :math:`n_1, \dots, n_{k-1}`, how many examples have each
    size (sizes without any are left out and listed in the result; without any at all the bound is
    infinite); `bound` is :math:`C_{\mathcal L}`, the largest value of the loss, :func:`bound`;
    `complexity` is :math:`n \mapsto \mathfrak R_n(\mathcal G_y)`, one number for all classes or k
    numbers, :func:`linear_complexity` for linear models.

    >>> linear = lambda n: linear_complexity(n, weight_norm=1, feature_norm=1)
    >>> print(error_bound(lipschitz("mae"), 3, "paper", [900, 0], 0.05, 2.0, linear))
    1.99472 (sizes left out, no examples: [2])
    """
    p = size_law(law, k)
    n = np.asarray(counts)
    if n.shape != p.shape or n.dtype.kind not in "iu" or (n < 0).any():
        say = f"give {k - 1} whole numbers, for sizes 1 to {k - 1}"
        raise LabelError(f"counts is {counts!r}", say)
    if not 0 < delta < 1:
        raise LabelError(f"delta is {delta}", "choose it between 0 and 1")
    if not (rho >= 0 and bound >= 0):
        raise LabelError(f"rho is {rho}, bound is {bound}", "neither can be negative")
    j = np.arange(1, k)
    seen = (n > 0) & (p > 0)
    total = np.zeros(k - 1)
    for place in np.flatnonzero(seen):
        values = np.asarray(complexity(int(n[place])), np.float64)
        if values.shape not in ((), (k,)):
            raise LabelError(f"the complexity has shape {values.shape}", f"give one number, or {k}")
        total[place] = k * values if values.ndim == 0 else values.sum()
    first = p * seen * 4 * np.sqrt(2) * rho * k * (k - 1) / j * total
    spread = np.sqrt(np.log(2 * (k - 1) / delta) / 2)
    second = np.zeros(k - 1)
    second[seen] = (p * (4 * k - 4 * j - 2))[seen] * bound * spread / np.sqrt(n[seen])
    value = float(first.sum() + second.sum()) if seen.any() else math.inf
    missing = tuple(int(size) for size in j[(n == 0) & (p > 0)])
    return ErrorBound(value, first, second, missing)


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

    `posterior` is p(y | x), k numbers; for `law` see :func:`ruleout.size_law`.

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
