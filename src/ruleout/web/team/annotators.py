"""Who answered how much, and how fast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from ruleout.web.answer_log import KINDS, Columns, Rows, Whole, columns, keys, moment
from ruleout.web.entities import Kind
from ruleout.web.project_progress import pace

_LAST = 100  # rows that a pace is taken from


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


def annotators(rows: Rows) -> list[Annotator]:
    """Count per annotator, those with most answers first."""
    log = columns(rows)
    found = [_one(log, user) for user in np.unique(log.user).tolist()]
    return sorted(found, key=lambda one: (-one.answers, one.name))


def _one(log: Columns, user: int) -> Annotator:
    mine = log.user == user
    standing = mine & log.counts
    said = standing & ~log.is_kind("skip")
    took = log.took_ms[standing & (log.took_ms >= 0)]
    kinds = np.bincount(log.kind[standing], minlength=len(KINDS)).tolist()
    undone = mine & ~(log.counts | log.late | log.is_kind("undo"))
    return Annotator(
        name=log.users[user],
        kinds={kind: count for kind, count in zip(KINDS, kinds, strict=True) if count},
        answers=len(np.unique(keys(log.item[said], log.round[said]))),
        late=int((mine & log.late).sum()),
        undone=int(undone.sum()),
        items=len(np.unique(log.item[standing])),
        median_seconds=float(np.median(took)) / 1000 if len(took) else None,
    )


def paces(rows: Rows, pause: timedelta) -> dict[str, float]:
    """Return how many questions each annotator answers per hour of work, where that is known.

    The last hundred rows of theirs are looked at, imported ones and pauses left out, as on the
    annotator's own page.
    """
    log, found = columns(rows), {}
    given = log.is_kind("yes", "no", "excluded") & ~log.imported
    for user in np.unique(log.user).tolist():
        last = np.flatnonzero(log.user == user)[-_LAST:]
        moments = log.received[last[given[last]]].tolist()
        per_hour = pace([moment(received) for received in moments], pause)
        if per_hour is not None:
            found[log.users[user]] = per_hour
    return found


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


def growth(rows: Rows, points: int = 500) -> Growth:
    """Count standing answers over time, thinned to about `points` moments, evenly by answers.

    Answers that were taken back since do not show: the curve is of what stands today.
    """
    log = columns(rows)
    standing = np.flatnonzero(log.counts & ~log.is_kind("skip"))
    standing = standing[np.lexsort((log.number[standing], log.received[standing]))]
    if not len(standing):
        return Growth(times=(), answers=(), items=())
    item, at = log.item[standing], log.received[standing]
    questions = _so_far(keys(log.user[standing], item, log.round[standing]))
    items = _so_far(item)
    step = max(1, -(-len(standing) // points))
    chosen = np.unique(np.r_[at[::step], at[-1]])
    last = np.searchsorted(at, chosen, side="right") - 1  # of the answers of one moment
    return Growth(
        times=tuple(moment(one) for one in chosen.tolist()),
        answers=tuple(questions[last].tolist()),
        items=tuple(items[last].tolist()),
    )


def _so_far(key: Whole) -> Whole:
    """Count the different numbers up to and including each."""
    is_new = np.zeros(len(key), np.intp)
    is_new[np.unique(key, return_index=True)[1]] = 1
    return np.cumsum(is_new)
