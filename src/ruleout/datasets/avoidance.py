r"""Whether what is ruled out depends on what the features make plausible.

People do not like to rule out what looks plausible. Sets alone hardly show that; features can. A
model that learnt from other rows ranks the classes of a row, 0 for the most plausible. If sets are
drawn at random among the wrong classes, then for every row, however bad the model is:

1. Ranks. The ranks of the s ruled-out classes sum to at most :math:`s k / 2` on average, and with
   the variance :math:`s (k-1-s) k / 12`: that is Wilcoxon's rank sum where the truth ranks first,
   and a truth that ranks lower makes the sum stochastically smaller.
2. Pairs. The residual of :func:`~ruleout.datasets.data_checks.pairs` has mean zero for every pair
   of classes, so the sum of :math:`d_{ab} / ((1 + r_a) (1 + r_b))` has, too. Plausible classes
   that are avoided together, or beside the truth, raise it. Only sets of several classes have it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Matrix = NDArray[np.float32]

_PARTS, _STEPS = 4, 60
_FEWEST = 40  # rows
_CRITICAL, _OFTEN = 3.29, 1.28  # of the normal distribution: 0.0005 lie above, 0.9 below


def by_rank(x: Matrix, mask: Mask, taught: Mask, work: float = 4e10) -> Mask | None:
    """Return what `mask` lists, the most plausible class of each row first, ``[m, k]``.

    Rows come in four parts. Those of a part are ranked by their `x`, ``[n, d]``, and a model that
    learnt from what `taught` rules out in all parts before, so it knows no set that it ranks. As
    many rows are used as `work`, a number of multiplications, allows; None where they are too few.
    """
    k = mask.shape[1]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(mask.any(1)))
    rows = rows[: int(work / (2 * _PARTS * _STEPS * k * (x.shape[1] + 1)))]
    if len(rows) < _FEWEST or k < 3:
        return None
    parts, listed = np.array_split(rows, _PARTS), []
    for place in range(1, _PARTS):
        past, new = np.concatenate(parts[:place]), parts[place]
        order = np.argsort(-_plausibility(x[past], taught[past], x[new]), 1, kind="stable")
        listed.append(np.take_along_axis(mask[new], order, 1))
    return np.concatenate(listed)


class Avoidance(NamedTuple):
    """What ranks tell."""

    p: float  #: of both tests together: how likely random sets are to look like this, at most
    ranks: float  #: the first, in standard deviations above what is allowed
    pairs: float  #: the second
    mean: float  #: the mean rank of ruled-out classes, the most plausible class being 1
    shows: float  #: noticed in 9 of 10 cases: ranks 2 and 3 ruled out so many times as often


def avoidance(listed: Mask) -> Avoidance | None:
    """Test whether plausible classes are avoided; None where every set is an ordinary label."""
    from scipy.special import ndtr  # late: it takes a while

    k = listed.shape[1]
    ranks, s = np.arange(k), listed.sum(1)
    spread = float((s * (k - 1 - s)).sum() * k / 12)
    if not spread:
        return None
    z = float((listed @ ranks - s * k / 2).sum() / np.sqrt(spread))
    near = 1 / (1 + ranks)
    one, two, both = listed @ near, listed @ near**2, near.sum() ** 2 - near @ near
    t, c = (s - 1) / (k - 2), s * (s - 1) / ((k - 1) * (k - 2))
    residual = (one**2 - two) / 2 - t * (one * near.sum() - two) + c * both / 2
    residual[np.isin(s, (1, k - 1))] = 0  # exactly: they say nothing of pairs
    pairs = float(residual.sum() / max(np.sqrt(residual @ residual), 1e-12))
    p = min(1.0, 2 * float(ndtr(-max(z, pairs))))
    mean = 1 + float((listed @ ranks).sum() / s.sum())
    return Avoidance(p, z, pairs, mean, _shows(z, spread, k))


def _shows(z: float, spread: float, k: int) -> float:
    r"""Return the factor f that ranks would have noticed in 9 of 10 cases; 0 where there is none.

    Weights f of ranks 1 and 2 move the sum of a row by :math:`-\log f \frac{k-3}{(k-1)(k-2)} s
    (k-1-s)`, to first order; what the model ranks wrong moves it by what is seen below zero.
    """
    move = 12 * (k - 3) / (k * (k - 1) * (k - 2)) * np.sqrt(spread)
    return float(np.exp(-(_CRITICAL + _OFTEN - min(z, 0)) / move)) if move else 0.0


def _plausibility(x: Matrix, mask: Mask, new: Matrix) -> Matrix:
    r"""Learn from rows, and return the scores of new ones: a linear model with the loss LOG.

    Accelerated gradient steps on :math:`-\sum \log(1 - \sum_{\bar y \in \bar Y} p_{\bar y})`, with
    a weight decay of one row, on features scaled as the rows are.
    """
    centre, width = x.mean(0), x.std(0)
    width[width == 0] = 1
    x, new = (
        np.pad((part - centre) / width, ((0, 0), (0, 1)), constant_values=1) for part in (x, new)
    )
    weights = ahead = np.zeros((x.shape[1], mask.shape[1]), np.float32)
    step, speed = 1 / (np.linalg.norm(x.T @ x, 2) / 2 + 1), 1.0
    for _ in range(_STEPS):
        p = x @ ahead
        p = np.exp(p - p.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        left = np.where(mask, 0, p)
        left /= np.maximum(left.sum(1, keepdims=True), 1e-9)
        last, weights = weights, ahead - step * (x.T @ (p - left) + ahead)
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead, speed = weights + np.float32((speed - 1) / faster) * (weights - last), faster
    return np.asarray(new @ weights)
