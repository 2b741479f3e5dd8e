r"""What sets alone can say about how they came about.

The assumption behind every method: given the true class y and a size s, all sets of s classes
without y are equally likely. With unknown class shares :math:`\pi`, a set A of size s then has

.. math:: P(A \mid s) = \Bigl(1 - \sum_{a \in A} \pi_a\Bigr) \Big/ \binom{k-1}{s}.

The shares are unknown, yet three things can be tested.

1. Pairs. With :math:`c = \frac{s(s-1)}{(k-1)(k-2)}`,

   .. math::
      P(a \in A) = \frac{s}{k-1} (1 - \pi_a), \qquad P(a, b \in A) = c\,(1 - \pi_a - \pi_b):

   a share fixes how often its class is ruled out, and two of them how often both are, so that
   pairs follow from single counts. Each class's pairs add up to s-1 times its single count, which
   leaves :math:`\binom k2 - k = k(k-3)/2` degrees of freedom. Three classes at a time could be
   tested alike; preferences show in pairs first.
2. Sizes. All sizes must give the same shares, unless the size depends on the true class:
   :math:`k-1` degrees of freedom for every size but one.
3. Signs. No share is negative: no class is ruled out in more than :math:`s/(k-1)` of the rows.

How often single classes are ruled out says nothing more: any counts that obey 3 fit some shares.
An annotator who favours a class looks like one who rarely meets it. Only if the classes are known
to be balanced can that be told apart (:func:`marginals`), or if true labels are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import bits
from ruleout.labels.chisquare import EXPECTED, Test
from ruleout.labels.sets import LabelSets

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_WORK = 4e10  # multiplications spent on pairs; more rows than that allows are sampled


@dataclass(frozen=True)
class Counts:
    """The rows that rule out `size` classes: how many, each class, and each pair of classes."""

    size: int
    rows: int
    classes: Vector  # [k]
    pairs: NDArray[np.float64] | None  # [k, k], symmetric; its diagonal is `classes`


def count_by_size(sets: LabelSets, *, pairs: bool = False) -> Iterator[Counts]:
    """Yield the counts of each size that occurs, sizes rising; size 0 is left out."""
    sizes, k = sets.sizes, len(sets.classes)
    order = np.argsort(sizes, kind="stable")
    found, starts = np.unique(sizes[order], return_index=True)
    for size, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
        if size == 0:
            continue
        each, joint = np.zeros(k), np.zeros((k, k)) if pairs else None
        for piece in bits.chunks(len(rows), k):
            mask = bits.unpack(sets.packed[rows[piece]], k)
            if joint is None:
                each += mask.sum(0)
            else:  # float32 holds counts of a block exactly
                numbers = mask.astype(np.float32)
                joint += numbers.T @ numbers
        if joint is not None:
            each = joint.diagonal().copy()
        yield Counts(size, len(rows), each, joint)


def count_by_truth(sets: LabelSets, truth: NDArray[np.intp]) -> NDArray[np.float64]:
    """Count, for each true class (row), how often each class is ruled out (column)."""
    k = len(sets.classes)
    table, every = np.zeros((k, k)), np.eye(k, dtype=np.float32)
    for piece in bits.chunks(len(sets), k):
        mask = bits.unpack(sets.packed[piece], k).astype(np.float32)
        table += every[truth[piece]].T @ mask
    return table


def some_rows(sets: LabelSets) -> NDArray[np.intp] | slice:
    """Return all rows, or a random part where counting pairs in all of them would take long."""
    n, k = sets.shape
    most = int(_WORK / k**2)
    if n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


@dataclass(frozen=True)
class Shares:
    """Class shares estimated from sets alone, unbiased, so an estimate may be negative."""

    shares: Vector  # [k], sums to 1
    errors: Vector  # [k], standard errors
    rates: Vector  # [k], in which part of the rows each class is ruled out

    @property
    def clipped(self) -> Vector:
        """The nearest thing to probabilities."""
        positive = np.maximum(self.shares, 0)
        return np.asarray(positive / positive.sum())


def marginals(counts: Iterable[Counts], k: int) -> tuple[Shares, Test | None]:
    r"""Estimate the class shares, and test whether all classes are ruled out equally often.

    A row of size s gives the unbiased estimate :math:`1 - \frac{k-1}{s} [a \in A]` of each share;
    rows are weighted by :math:`s/(k-s)`, their inverse variance under balanced classes.

    Under balanced classes :math:`\sum_a (N_a - \bar N)^2`, over its mean per degree of freedom
    :math:`\sum_i s_i (k - s_i) / (k (k-1))`, is chi-square with k-1 degrees.
    """
    rows = 0
    total = squares = spread = 0.0
    seen, first, cross, second = np.zeros((4, k))
    for one in counts:
        s, weight = one.size, one.size / (k - one.size)
        rows += one.rows
        total += weight * one.rows
        squares += weight**2 * one.rows
        spread += one.rows * s * (k - s) / (k * (k - 1))
        seen += one.classes
        first += weight * (k - 1) / s * one.classes
        cross += weight**2 * (k - 1) / s * one.classes
        second += (weight * (k - 1) / s) ** 2 * one.classes
    left = first / total  # 1 - share
    variance = second - 2 * left * cross + left**2 * squares
    shares = Shares(1 - left, np.sqrt(np.maximum(variance, 0)) / total, seen / rows)
    statistic = float(((seen - seen.mean()) ** 2).sum())
    return shares, Test(statistic / spread, k - 1) if spread >= EXPECTED else None


def same(counts: Iterable[Counts], shares: Shares) -> Test | None:
    """Test whether all sizes give the same shares: 2 above."""
    pi, k = shares.clipped, len(shares.shares)
    if k < 3:
        return None
    parts = []
    for one in counts:
        p = one.size / (k - 1) * (1 - pi)
        if one.rows * min(p.min(), (1 - p).min()) < EXPECTED:
            continue
        cover = both(k, one.size) * (1 - pi[:, None] - pi) - np.outer(p, p)
        np.fill_diagonal(cover, p * (1 - p))
        scale = (k - 1) / one.size
        cover += cover.trace() / k**2  # sums are known, not random: this makes it invertible
        inverse = np.linalg.inv(cover) * one.rows / scale**2
        parts.append((1 - scale * one.classes / one.rows, inverse))
    if len(parts) < 2:
        return None
    weight = np.sum([inverse for _, inverse in parts], axis=0)
    middle = np.linalg.solve(weight, np.sum([inverse @ found for found, inverse in parts], axis=0))
    statistic = sum((found - middle) @ inverse @ (found - middle) for found, inverse in parts)
    return Test(float(statistic), (len(parts) - 1) * (k - 1))


def both(k: int, s: int) -> float:
    """Return how likely two classes that are not the true one are both in a set of size s."""
    return s * (s - 1) / ((k - 1) * (k - 2))


def given_truth(table: Matrix, rows: Vector, sums: Vector, squares: Vector) -> Test | None:
    r"""Test, with true labels known, whether all wrong classes are ruled out equally often.

    Parameters
    ----------
    table
        How often each class (column) is ruled out where the truth is the row's class, [k, k].
    rows, sums, squares
        For each true class the number of its rows, the sum of their sizes, and of the squares.

    Notes
    -----
    For one true class, the counts of the k-1 others scatter with
    :math:`\sum_i s_i (k-1-s_i) / ((k-1)(k-2))` per degree of freedom, of which there are k-2.
    """
    k = len(rows)
    if k < 3:
        return None
    spread = (sums * (k - 1) - squares) / ((k - 1) * (k - 2))
    expected = np.minimum(sums, rows * (k - 1) - sums) / (k - 1)
    use = np.flatnonzero(expected >= EXPECTED)
    if not len(use):
        return None
    wrong = table[use] - (sums[use] / (k - 1))[:, None]
    wrong[np.arange(len(use)), use] = 0  # the truth itself
    statistic = float(((wrong**2).sum(1) / spread[use]).sum())
    return Test(statistic, len(use) * (k - 2))


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
    from scipy.sparse.linalg import LinearOperator, cg  # late: it takes a while

    k = len(pi)
    cover = LinearOperator(
        (k * k, k * k), lambda flat: _cover(flat.reshape(k, k), scales, pi).ravel(), dtype=float
    )  # close to a multiple of the identity: a few steps are enough
    solved, _ = cg(cover, residual.ravel(), rtol=1e-10, maxiter=100)
    return Test(float(residual.ravel() @ solved / 2), k * (k - 3) // 2)


def _cover(matrix: Matrix, scales: Vector, pi: Vector) -> Matrix:
    """Multiply by the covariance: `matrix` is symmetric and its rows sum to zero."""
    k = len(pi)
    row = pi @ matrix
    shared = (pi[:, None] + pi) * matrix * (k - 2) / (k - 3) - (row[:, None] + row) / (k - 3)
    np.fill_diagonal(shared, 0)
    return np.asarray(scales[1] * matrix + (scales[0] - scales[1]) * shared)
