"""How often annotators are right where the class is known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scipy.special import ndtri

from ruleout.web.exporting.evidence import ruled_out, standing
from ruleout.web.exporting.weights import Form, form_of
from ruleout.web.records import LogRow

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


@dataclass(frozen=True, kw_only=True)
class GoldScore:
    """One annotator's answers to gold questions.

    `sensitivity`: "yes" where the proposed set holds the class. `specificity`: "no" where it does
    not. `free`: "which" and rule-out answers that do not rule the class out.
    """

    name: str
    sensitivity: Rate
    specificity: Rate
    free: Rate


def gold_scores(rows: Iterable[LogRow], gold: Mapping[str, int], k: int) -> list[GoldScore]:
    """Score the standing answers to gold questions, by name.

    Parameters
    ----------
    gold
        The class of each item where it is known, by the item's name.
    """
    asked: Counter[tuple[str, Form]] = Counter()
    right: Counter[tuple[str, Form]] = Counter()
    for row in standing(rows, gold=True):
        if row.item_name in gold:
            truth = gold[row.item_name]
            test = (row.user_name, form_of(row, truth))
            asked[test] += 1
            right[test] += not ruled_out(row, k) >> truth & 1
    return [
        GoldScore(
            name=name,
            sensitivity=Rate(right[name, "yes"], asked[name, "yes"]),
            specificity=Rate(right[name, "no"], asked[name, "no"]),
            free=Rate(right[name, "free"], asked[name, "free"]),
        )
        for name in sorted({name for name, _ in asked})
    ]
