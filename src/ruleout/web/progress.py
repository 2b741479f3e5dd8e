"""How far a project is, how fast it goes, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from sqlalchemy import ColumnElement, Connection, func, select

from ruleout.web.records import Settings
from ruleout.web.schema import answers, items, key, slots, undone

__all__ = ["Progress", "pace", "progress"]

_LAST = 100  # answers that the pace is taken from
_COUNTED = ("yes", "no", "excluded")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts of a project, or of one annotator in it.

    Attributes
    ----------
    items, done
        The items, and those that have all their answers.
    wanted, given
        The answers that the items need, and those of them they have.
    answers, skips
        What stands, of everybody or of the one annotator; gold questions included.
    per_hour
        The pace of the last answers, pauses left out; None before there are two.
    seconds_left
        Until everything is answered at the pace of all together; None where that is unknown.
    """

    items: int
    done: int
    wanted: int
    given: int
    answers: int
    skips: int
    per_hour: float | None
    seconds_left: float | None


def progress(db: Connection, settings: Settings, user: int | None) -> Progress:
    """Count."""
    total = db.execute(select(func.count()).select_from(items)).scalar_one()
    left = select(func.count(), func.count(slots.c.item.distinct()))
    open_slots, open_items = db.execute(left.where(slots.c.needed, slots.c.answer.is_(None))).one()
    team = _pace(db, settings)
    return Progress(
        items=total,
        done=total - open_items,
        wanted=total * settings.rounds,
        given=total * settings.rounds - open_slots,
        answers=_count(db, answers.c.kind.in_(_COUNTED), *_of(user)),
        skips=_count(db, answers.c.kind == "skip", *_of(user)),
        per_hour=team if user is None else _pace(db, settings, *_of(user)),
        seconds_left=0.0 if not open_slots else open_slots / team * 3600 if team else None,
    )


def pace(moments: Sequence[datetime], pause: timedelta) -> float | None:
    """Return how many come per hour; gaps longer than `pause` are left out.

    >>> at = [datetime(2026, 1, 1, 12, 0, second) for second in (0, 10, 20)]
    >>> pace(at, timedelta(minutes=10))
    360.0
    """
    rising = sorted(moments)
    gaps = [b - a for a, b in pairwise(rising) if b - a <= pause]
    seconds = sum(gaps, timedelta()).total_seconds()
    return len(gaps) / seconds * 3600 if seconds > 0 else None


def _of(user: int | None) -> tuple[ColumnElement[bool], ...]:
    return () if user is None else (answers.c.user == key(user),)


def _count(db: Connection, *where: ColumnElement[bool]) -> int:
    query = select(func.count()).select_from(answers)
    query = query.outerjoin(undone, undone.c.answer == answers.c.number)
    stands = ~answers.c.late, undone.c.answer.is_(None)
    return int(db.execute(query.where(*stands, *where)).scalar_one())


def _pace(db: Connection, settings: Settings, *where: ColumnElement[bool]) -> float | None:
    query = select(answers.c.received).where(answers.c.kind.in_(_COUNTED), *where)
    last = db.execute(query.order_by(answers.c.number.desc()).limit(_LAST)).scalars().all()
    return pace(last, timedelta(seconds=settings.lease_seconds))
