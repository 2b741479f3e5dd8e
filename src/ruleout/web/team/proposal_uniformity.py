r"""Whether proposals were drawn as the law says.

Sizes: Pearson's chi-square of how often each size was drawn against the law, neighbouring sizes
taken together until five are expected. Classes: given its size s, a set is uniform among all
:math:`\binom ks`. Over n sets, a class is then in :math:`ns/k` on average, and

.. math:: \sum_a \Bigl(N_a - \frac{ns}{k}\Bigr)^2 \Big/ \frac{n s (k-s)}{k (k-1)}

is chi-square with k-1 degrees of freedom: counts within a set are not independent, hence the
denominator. Sizes are tested apart and their statistics added; sizes drawn too rarely are counted
together, their denominators added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.chisquare import EXPECTED, Test
from ruleout.web.answer_log import AnswerLog, Whole

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Uniformity:
    """Counts as drawn and as expected, and a test of each; None where too little was drawn.

    `sizes` and `sizes_expected` are for s = 1 … k-1; `classes` and `classes_expected` for the k
    classes, given the sizes that were drawn.
    """

    draws: int
    sizes: Whole
    sizes_expected: Vector
    sizes_test: Test | None
    classes: Whole
    classes_expected: Vector
    classes_test: Test | None


def uniformity(log: AnswerLog, law: Vector) -> Uniformity:
    """Compare the proposals in the log with the law p(1 … k-1) of the project, its cap included.

    Every draw counts once, whether its answer stands or not. Gold questions, whose sets are not
    drawn at random, and imported answers are left out.
    """
    k = log.k
    asked = np.flatnonzero(log.is_kind("yes", "no", "skip") & ~log.gold & ~log.imported)
    times = np.bincount(log.proposed[log.draws(asked)], minlength=len(log.sets)).tolist()
    sizes, counts = np.zeros(k, np.intp), np.zeros((k, k), np.intp)
    for codes, n in zip(log.sets, times, strict=True):
        if n and 0 < len(codes) < k:
            sizes[len(codes)] += n
            counts[len(codes), list(codes)] += n
    total = int(sizes.sum())
    expected = total * np.asarray(law, np.float64)
    return Uniformity(
        draws=total,
        sizes=sizes[1:],
        sizes_expected=expected,
        sizes_test=_pearson(sizes[1:], expected),
        classes=counts.sum(0),
        classes_expected=np.full(k, float(np.arange(k) @ sizes) / k),
        classes_test=_classes(sizes, counts),
    )


def _pearson(observed: Whole, expected: Vector) -> Test | None:
    if (observed[expected == 0] > 0).any():
        return Test(float("inf"), max(int((expected > 0).sum()) - 1, 1))
    cells = list(_cells(observed, expected))
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    return Test(float(statistic), len(cells) - 1) if len(cells) > 1 else None


def _cells(observed: Whole, expected: Vector) -> Iterator[tuple[float, float]]:
    """Take neighbours together until enough is expected; the rest joins the last."""
    done: list[tuple[float, float]] = []
    seen = mean = 0.0
    for count, share in zip(observed.tolist(), expected.tolist(), strict=True):
        seen, mean = seen + count, mean + share
        if mean >= EXPECTED:
            done.append((seen, mean))
            seen = mean = 0.0
    if done and (seen or mean):
        last = done.pop()
        done.append((last[0] + seen, last[1] + mean))
    yield from done


def _classes(sizes: Whole, counts: Whole) -> Test | None:
    k = len(sizes)
    s = np.arange(k)
    spread = sizes * s * (k - s) / (k * (k - 1))
    thick = (sizes * np.minimum(s, k - s) / k >= EXPECTED) & (s > 0)
    groups = [(counts[one], spread[one]) for one in np.flatnonzero(thick)]
    if (spread[~thick]).sum() >= EXPECTED:
        groups.append((counts[~thick].sum(0), spread[~thick].sum()))
    statistic = sum(float(((seen - seen.mean()) ** 2).sum() / over) for seen, over in groups)
    return Test(statistic, len(groups) * (k - 1)) if groups else None
