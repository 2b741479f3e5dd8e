"""How often annotators are right where the class is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ruleout.web.team.columns import Bits, Columns, Rows, Whole, columns

__all__ = ["GoldScore", "Rate", "gold_scores"]


@dataclass(frozen=True)
class Rate:
    """How many of the answers that were asked for were right."""

    right: int
    asked: int

    @property
    def share(self) -> float | None:
        """The share that was right; None if nothing was asked."""
        return self.right / self.asked if self.asked else None

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        r"""Return Wilson's interval, which stays inside [0, 1] and holds for few answers too.

        .. math::
           \frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

        Wilson (1927), Journal of the American Statistical Association 22. Nothing asked: [0, 1].

        >>> low, high = Rate(9, 10).interval()
        >>> round(low, 4), round(high, 4)
        (0.5958, 0.9821)
        """
        n = self.asked
        if not n:
            return 0.0, 1.0
        z = float(ndtri((1 + level) / 2))
        p = self.right / n
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        low, high = max(middle - half, 0.0), min(middle + half, 1.0)
        return 0.0 if self.right == 0 else low, 1.0 if self.right == n else high


@dataclass(frozen=True)
class GoldScore:
    """One annotator's answers to gold questions.

    `sensitivity`: "yes" where the proposed set holds the class. `specificity`: "no" where it does
    not. `free`: "which" and rule-out answers that do not rule the class out.
    """

    name: str
    sensitivity: Rate
    specificity: Rate
    free: Rate


def gold_scores(rows: Rows, gold: Mapping[str, int], k: int) -> list[GoldScore]:
    """Score the standing answers to gold questions, by name.

    Parameters
    ----------
    gold
        The class of each item where it is known, by the item's name.
    """
    log = columns(rows)
    classes = np.array([gold.get(name, -1) for name in log.items], np.intp)
    tests = log.standing(gold=True)
    tests = tests[classes[log.item[tests]] >= 0]
    truth = classes[log.item[tests]]
    held = _has(log.masks(k)[log.proposed[tests]], truth)
    right = ~_has(log.ruled_out(tests, k), truth)
    form = np.where(log.is_kind("yes", "no")[tests], np.where(held, 0, 1), 2)
    asked = _table(log, tests, form)
    good = _table(log, tests[right], form[right])
    found = [
        GoldScore(name, *(Rate(*pair) for pair in zip(good[place], asked[place], strict=True)))
        for place, name in enumerate(log.users)
        if any(asked[place])
    ]
    return sorted(found, key=lambda score: score.name)


def _has(masks: Bits, classes: Whole) -> NDArray[np.bool_]:
    """Tell of each row of bits whether the class is in it."""
    byte = masks[np.arange(len(classes)), classes >> 3]
    return np.asarray(byte >> (classes & 7).astype(np.uint8) & 1, np.bool_)


def _table(log: Columns, places: Whole, form: Whole) -> list[list[int]]:
    """Count by annotator and form."""
    cells = np.bincount(3 * log.user[places] + form, minlength=3 * len(log.users))
    return cells.reshape(-1, 3).tolist()
