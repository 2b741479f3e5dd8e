"""The test of pairs: two classes are ruled out together as often as single counts imply."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.inspection.counting import Counts
from ruleout.datasets.inspection.uniformity import Shares, both
from ruleout.labels.chisquare import EXPECTED, Test

__all__ = ["PairTest", "pairs"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class PairTest:
    """The test of pairs: over all sizes, for each size, and the pair that stands out most."""

    pooled: Test
    by_size: dict[int, Test]
    pair: tuple[int, int]
    ratio: float  # of how often that pair is ruled out to what is expected
    z: float  # the same in standard deviations


def pairs(counts: Iterable[Counts], shares: Shares) -> PairTest | None:
    r"""Test how often two classes are ruled out together, whatever the class shares are.

    The residual of a row, :math:`d_{ab} = [a, b \in A] - t\,([a \in A] + [b \in A]) + c` with
    :math:`t = (s-1)/(k-2)`, has mean zero whatever the shares are, and its rows sum to zero: it
    lies in the space of dimension :math:`k(k-3)/2` that is orthogonal to single counts. Its
    covariance there is :math:`\lambda_2 I + (\lambda_1 - \lambda_2) \sum_y \pi_y \Pi_y`, where
    :math:`\Pi_y` projects on what row y determines, so the Wald statistic
    :math:`R^\top C^{-1} R` of the summed residuals takes a few products with k × k matrices.
    """
    pi, k = shares.clipped, len(shares.shares)
    if k < 4:
        return None
    residual, expected, apart, variance = np.zeros((4, k, k))
    scales, tests = np.zeros(2), {}
    for one in counts:
        if one.pairs is None or not 2 <= one.size <= k - 2:
            continue
        mine, (joint, neither, spread) = _residual(one, k), _moments(one, pi)
        if _enough(joint, neither):
            tests[one.size] = _wald(mine, one.rows * _spreads(k, one.size), pi)
        residual += mine
        expected += joint
        apart += neither
        variance += spread
        scales += one.rows * _spreads(k, one.size)
    if not _enough(expected, apart):
        return None
    above = np.triu_indices(k, 1)
    z = residual[above] / np.sqrt(variance[above])
    most = int(np.argmax(np.abs(z)))
    a, b = int(above[0][most]), int(above[1][most])
    ratio = float(1 + residual[a, b] / expected[a, b])
    return PairTest(_wald(residual, scales, pi), tests, (a, b), ratio, float(z[most]))


def _moments(one: Counts, pi: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """Return how often both and neither of two classes are expected, and the variance."""
    k, s = len(pi), one.size
    c, t = both(k, s), (s - 1) / (k - 2)
    joint = c * (1 - pi[:, None] - pi) * one.rows
    rate = s / (k - 1) * (1 - pi) * one.rows
    single = rate[:, None] + rate - 2 * joint
    neither = one.rows - single - joint
    spread = joint * (1 - 2 * t + c) ** 2 + single * (c - t) ** 2 + neither * c**2
    return joint, neither, spread


def _enough(expected: Matrix, apart: Matrix) -> bool:
    upper = np.triu_indices(len(expected), 1)
    return bool(min(expected[upper].min(), apart[upper].min()) >= EXPECTED)


def _residual(one: Counts, k: int) -> Matrix:
    assert one.pairs is not None
    t = (one.size - 1) / (k - 2)
    mine = one.pairs - t * (one.classes[:, None] + one.classes) + both(k, one.size) * one.rows
    np.fill_diagonal(mine, 0)
    return np.asarray(mine)


def _spreads(k: int, s: int) -> Vector:
    r"""Return :math:`\lambda_1, \lambda_2`: the variance of a row in each part of the space.

    Given y, the space splits into what the k-1 pairs with y determine (dimension k-2) and the rest
    (dimension (k-1)(k-4)/2); the symmetry among the other classes allows one variance for each.
    """
    c, t = both(k, s), (s - 1) / (k - 2)
    whole = (
        s * (s - 1) / 2 * (1 - 2 * t + c) ** 2
        + s * (k - s) * (c - t) ** 2
        + (k - s) * (k - s - 1) / 2 * c**2
    )
    row = (s * (c - t) ** 2 + (k - 1 - s) * c**2) / (k - 3)
    rest = (k - 1) * (k - 4) / 2
    return np.array([row, (whole - (k - 2) * row) / rest if rest else row])


def _wald(residual: Matrix, scales: Vector, pi: Vector) -> Test:
    k = len(pi)
    solved = _solve(lambda matrix: _cover(matrix, scales, pi), residual)
    return Test(float((residual * solved).sum() / 2), k * (k - 3) // 2)


def _cover(matrix: Matrix, scales: Vector, pi: Vector) -> Matrix:
    """Multiply by the covariance: `matrix` is symmetric and its rows sum to zero."""
    k = len(pi)
    row = pi @ matrix
    shared = (pi[:, None] + pi) * matrix * (k - 2) / (k - 3) - (row[:, None] + row) / (k - 3)
    np.fill_diagonal(shared, 0)
    return np.asarray(scales[1] * matrix + (scales[0] - scales[1]) * shared)


def _solve(apply: Callable[[Matrix], Matrix], right: Matrix) -> Matrix:
    """Conjugate gradients; the operator is close to a multiple of the identity."""
    solution, rest = np.zeros_like(right), right.copy()
    step, size = rest.copy(), float((rest * rest).sum())
    enough = 1e-20 * size
    for _ in range(100):
        if size <= enough:
            break
        image = apply(step)
        length = size / float((step * image).sum())
        solution += length * step
        rest -= length * image
        size, before = float((rest * rest).sum()), size
        step = rest + size / before * step
    return solution
