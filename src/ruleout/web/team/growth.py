"""How the work grew over time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from ruleout.web.records import LogRow

__all__ = ["Growth", "growth"]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Counts up to and including each moment, for a plot.

    Attributes
    ----------
    times
        Rising moments, the first and last answer among them.
    answers
        How many questions had standing answers by then; skips answer none, and "which" belongs to
        its "yes".
    items
        How many different items they were about.
    """

    times: tuple[datetime, ...]
    answers: tuple[int, ...]
    items: tuple[int, ...]


def growth(rows: Iterable[LogRow], points: int = 500) -> Growth:
    """Count standing answers over time, thinned to about `points` moments, evenly by answers.

    Answers that were taken back since do not show: the curve is of what stands today.
    """
    standing = sorted(
        (row for row in rows if row.counts and row.kind != "skip"),
        key=lambda row: (row.received, row.number),
    )
    step = max(1, -(-len(standing) // points))
    questions: set[tuple[str, str, int]] = set()
    items: set[str] = set()
    found: dict[datetime, tuple[int, int]] = {}
    for count, row in enumerate(standing):
        questions.add((row.user_name, row.item_name, row.round))
        items.add(row.item_name)
        if count % step == 0 or count == len(standing) - 1 or row.received in found:
            found[row.received] = (len(questions), len(items))
    return Growth(
        times=tuple(found),
        answers=tuple(count for count, _ in found.values()),
        items=tuple(count for _, count in found.values()),
    )
