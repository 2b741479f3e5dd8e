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

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.inspection.counting import Counts
from ruleout.labels.chisquare import EXPECTED, Test

__all__ = ["Shares", "both", "given_truth", "marginals", "same"]

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


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
