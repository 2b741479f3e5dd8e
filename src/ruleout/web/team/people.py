"""Who answered how much, and how fast."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from ruleout.web.records import Kind, LogRow

__all__ = ["Annotator", "annotators"]


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """What one person did.

    Attributes
    ----------
    kinds
        How many answers of each kind stand.
    answers
        How many questions they answer: skips answer none, and "which" belongs to its "yes".
    late, undone
        How many came too late to count, and how many were taken back.
    items
        How many different items the standing answers are about.
    median_seconds
        How long a standing answer took, skips included; None if no client said.
    """

    name: str
    kinds: Mapping[Kind, int]
    answers: int
    late: int
    undone: int
    items: int
    median_seconds: float | None


def annotators(rows: Iterable[LogRow]) -> list[Annotator]:
    """Count per annotator, those with most answers first."""
    own: dict[str, list[LogRow]] = {}
    for row in rows:
        own.setdefault(row.user_name, []).append(row)
    found = [_one(name, log) for name, log in own.items()]
    return sorted(found, key=lambda one: (-one.answers, one.name))


def _one(name: str, log: list[LogRow]) -> Annotator:
    standing = [row for row in log if row.counts]
    kinds = Counter(row.kind for row in standing)
    times = [row.took_ms / 1000 for row in standing if row.took_ms is not None]
    return Annotator(
        name=name,
        kinds=dict(kinds),
        answers=len({(row.item_name, row.round) for row in standing if row.kind != "skip"}),
        late=sum(row.late for row in log),
        undone=sum(not (row.counts or row.late or row.kind == "undo") for row in log),
        items=len({row.item_name for row in standing}),
        median_seconds=median(times) if times else None,
    )
