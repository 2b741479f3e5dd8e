"""How much is known of each item, and where answers contradict each other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ruleout.web.exporting.evidence import by_item, every, ruled_out, standing
from ruleout.web.records import LogRow

__all__ = ["Clash", "Knowledge", "clashes", "knowledge"]


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known of each item, in the order the items were given.

    Attributes
    ----------
    answers
        How many answers stand.
    candidates
        How many classes all answers together leave; 0 is a contradiction.
    bits
        The entropy left, log2 of `candidates`: every candidate is as likely as the others. NaN
        for a contradiction, and log2 k where nothing is known.
    """

    answers: NDArray[np.intp]
    candidates: NDArray[np.intp]
    bits: NDArray[np.float64]

    @property
    def mean_bits(self) -> float | None:
        """The mean over items without contradictions; None if there are none."""
        good = self.bits[self.candidates > 0]
        return float(good.mean()) if len(good) else None


@dataclass(frozen=True, kw_only=True)
class Clash:
    """An item whose answers leave nothing.

    `pairs` are people who contradict each other outright, one "no" and "yes" to the same set, say.
    It may be empty: three answers can leave nothing while any two leave something.
    """

    item: str
    people: tuple[str, ...]
    answers: int
    pairs: tuple[tuple[str, str], ...]


def knowledge(rows: Iterable[LogRow], items: Sequence[str], k: int) -> Knowledge:
    """Say for each item how much its answers leave open, tests left out.

    Examples
    --------
    >>> knowledge([], ["a"], 8).bits
    array([3.])
    """
    answers = by_item(standing(rows))
    left = [k - _union(answers.get(item, []), k).bit_count() for item in items]
    candidates = np.array(left, np.intp)
    return Knowledge(
        answers=np.array([len(answers.get(item, [])) for item in items], np.intp),
        candidates=candidates,
        bits=np.where(candidates > 0, np.log2(np.maximum(candidates, 1)), np.nan),
    )


def clashes(rows: Iterable[LogRow], k: int) -> list[Clash]:
    """List the items whose answers leave nothing, in the order of the log."""
    found = []
    for item, answers in by_item(standing(rows)).items():
        if _union(answers, k) == every(k):
            opposed = {
                _sorted(one.user_name, other.user_name)
                for one, other in combinations(answers, 2)
                if ruled_out(one, k) | ruled_out(other, k) == every(k)
            }
            people = tuple(sorted({row.user_name for row in answers}))
            pairs = tuple(sorted(opposed))
            found.append(Clash(item=item, people=people, answers=len(answers), pairs=pairs))
    return found


def _sorted(one: str, other: str) -> tuple[str, str]:
    return (one, other) if one <= other else (other, one)


def _union(rows: Iterable[LogRow], k: int) -> int:
    mask = 0
    for row in rows:
        mask |= ruled_out(row, k)
    return mask
