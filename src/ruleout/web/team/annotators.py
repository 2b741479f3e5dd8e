"""Who answered how much, how fast and when, and how the work grew over time."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import NamedTuple

import numpy as np

from ruleout.web.answer_log import KINDS, AnswerLog, Whole, keys
from ruleout.web.schema import moment


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """What one person did: counts of what stands, of what was late, and of what was taken back."""

    name: str
    answers: int = 0  # questions: skips answer none, and "which" belongs to its "yes"
    yes: int = 0
    no: int = 0
    which: int = 0
    excluded: int = 0
    skips: int = 0
    late: int = 0
    undone: int = 0
    items: int = 0  # that these are about
    median_seconds: float | None = None  # of standing answers and skips; None if no client said


def annotators(log: AnswerLog) -> list[Annotator]:
    """Count for everybody who answered, those with most answers first."""
    found = [_counted(log, user) for user in np.unique(log.user).tolist()]
    return sorted(found, key=lambda one: (-one.answers, one.name))


def _counted(log: AnswerLog, user: int) -> Annotator:
    mine = log.user == user
    standing = mine & log.counts
    said = standing & ~log.is_kind("skip")
    took = log.took_ms[standing & (log.took_ms >= 0)]
    kinds = np.bincount(log.kind[standing], minlength=len(KINDS)).tolist()
    by_kind = dict(zip(KINDS, kinds, strict=True))
    return Annotator(
        name=log.users[user],
        answers=len(np.unique(keys(log.item[said], log.round[said]))),
        **{name: by_kind[name] for name in ("yes", "no", "which", "excluded")},
        skips=by_kind["skip"],
        late=int((mine & log.late).sum()),
        undone=int((mine & ~(log.counts | log.late | log.is_kind("undo"))).sum()),
        items=len(np.unique(log.item[standing])),
        median_seconds=float(np.median(took)) / 1000 if len(took) else None,
    )


_DAY, _HOUR = 86_400_000_000, 3_600_000_000  # microseconds


class WorkDay(NamedTuple):
    """What one person did on one day, in UTC: questions answered that stand, and hours of work."""

    annotator: str
    day: date
    answers: int
    hours: float


def work_days(log: AnswerLog, pause: timedelta) -> list[WorkDay]:
    """Add up everybody's days; imported answers are left out.

    Hours are the gaps between whatever somebody sent, those above `pause` left out, and belong to
    the day on which a gap ends.
    """
    found, given = [], log.counts & log.is_kind("yes", "no", "excluded")
    for user in np.unique(log.user).tolist():
        mine = np.flatnonzero((log.user == user) & ~log.imported)
        mine = mine[np.argsort(log.received[mine], kind="stable")]
        gaps = np.diff(log.received[mine], prepend=log.received[mine[:1]])
        gaps[gaps > pause // timedelta(microseconds=1)] = 0
        days, at = np.unique(log.received[mine] // _DAY, return_inverse=True)
        answers = np.bincount(at, given[mine], len(days)).astype(int).tolist()
        hours = (np.bincount(at, gaps, len(days)) / _HOUR).tolist()
        found += [
            WorkDay(log.users[user], moment(day * _DAY).date(), *done)
            for day, *done in zip(days.tolist(), answers, hours, strict=True)
        ]
    return sorted(found, key=lambda one: (one.day, one.annotator))


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Rising moments, and by each how many questions had standing answers, about how many items.

    Skips answer none, and "which" belongs to its "yes". The first and the last answer are among
    the moments.
    """

    times: tuple[datetime, ...] = ()
    answers: tuple[int, ...] = ()
    items: tuple[int, ...] = ()


def growth(log: AnswerLog, points: int = 500) -> Growth:
    """Count standing answers over time, thinned to about `points` moments, evenly by answers.

    Answers that were taken back since do not show: the curve is of what stands today.
    """
    standing = np.flatnonzero(log.counts & ~log.is_kind("skip"))
    standing = standing[np.lexsort((log.number[standing], log.received[standing]))]
    if not len(standing):
        return Growth()
    item, at = log.item[standing], log.received[standing]
    questions = _so_far(keys(log.user[standing], item, log.round[standing]))
    step = max(1, -(-len(standing) // points))
    chosen = np.unique(np.r_[at[::step], at[-1]])
    last = np.searchsorted(at, chosen, side="right") - 1  # of the answers of one moment
    return Growth(
        times=tuple(moment(one) for one in chosen.tolist()),
        answers=tuple(questions[last].tolist()),
        items=tuple(_so_far(item)[last].tolist()),
    )


def _so_far(key: Whole) -> Whole:
    """Count the different numbers up to and including each."""
    is_new = np.zeros(len(key), np.intp)
    is_new[np.unique(key, return_index=True)[1]] = 1
    return np.cumsum(is_new)
