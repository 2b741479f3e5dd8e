"""How far a project is, how fast it goes, and how long it will take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Label,
    Select,
    bindparam,
    exists,
    func,
    select,
)

from ruleout.web.entities import IMPORTED, Settings
from ruleout.web.schema import answers, items, slots, undone


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts of a project, or of one annotator in it.

    Attributes
    ----------
    items, done
        The items, and those that have all their answers.
    wanted, given
        The answers that the items need, and those of them they have. As one annotator sees it,
        gold questions are counted in, those to come by their rate: else who looks after each
        answer could tell which question was gold.
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
    counts, last = (_COUNTS, _LAST) if user is None else (_OWN_COUNTS, _OWN_LAST)
    row = db.execute(counts, {"user": user}).one()
    wanted, left = row.items * settings.rounds, int(row.left)  # PostgreSQL sums to a Decimal
    given, to_come = wanted - left, left / (1 - settings.gold_rate)
    answered = row.answers if user is not None else given + row.further
    if user is not None:
        wanted = ceil(wanted / (1 - settings.gold_rate))
        given = min(given + row.gold, wanted - 1) if left else wanted
        to_come = wanted - given
    team = _pace(db, settings, _LAST)
    return Progress(
        items=row.items,
        done=row.items - row.unfinished,
        wanted=wanted,
        given=given,
        answers=answered,
        skips=row.skips,
        per_hour=team if user is None else _pace(db, settings, last, user),
        seconds_left=0.0 if not left else to_come / team * 3600 if team else None,
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


def _pace(
    db: Connection, settings: Settings, last: Select[Any], user: int | None = None
) -> float | None:
    rows = db.execute(last, {"user": user}).all()
    given = [row.received for row in rows if row.kind in _GIVEN and row.status != IMPORTED]
    return pace(given, timedelta(seconds=settings.lease_seconds))


# ---------------------------------------------------------------------- statements

_RECENT = 100  # rows of the log that the pace is taken from
_GIVEN = ("yes", "no", "excluded")
_user: Any = bindparam("user", type_=Integer)


def _count(*where: ColumnElement[bool]) -> Select[Any]:
    return select(func.count()).where(*where)


def _counts(*more: Label[Any]) -> Select[Any]:
    """Count slots rather than answers: every answer that counts fills one, and there are fewer."""
    open_slots = slots.c.needed, slots.c.answer.is_(None)
    by_item = select(func.count().label("n")).where(*open_slots).group_by(slots.c.item).subquery()
    left = select(func.coalesce(func.sum(by_item.c.n), 0).label("left"),
                  func.count().label("unfinished")).subquery()  # fmt: skip
    return select(
        left, select(func.count()).select_from(items).scalar_subquery().label("items"), *more
    )


def _skips(*where: ColumnElement[bool]) -> Label[Any]:
    taken_back = exists().where(undone.c.answer == answers.c.number)
    skips = _count(answers.c.kind == "skip", ~answers.c.late, ~taken_back, *where)
    return skips.select_from(answers).scalar_subquery().label("skips")


def _last(*where: ColumnElement[bool]) -> Select[Any]:
    """The last of the log; what does not tell the pace is left out after it is read."""
    columns = answers.c.received, answers.c.kind, answers.c.status
    return select(*columns).where(*where).order_by(answers.c.number.desc()).limit(_RECENT)


_further = _count(~slots.c.needed, slots.c.answer.is_not(None)).scalar_subquery()
_gold = _count(~slots.c.needed, slots.c.test, slots.c.answer.is_not(None)).scalar_subquery()
_own = _count(slots.c.holder == _user, slots.c.answer.is_not(None)).scalar_subquery()
_COUNTS = _counts(_further.label("further"), _skips())
_OWN_COUNTS = _counts(_own.label("answers"), _gold.label("gold"), _skips(answers.c.user == _user))
_LAST, _OWN_LAST = _last(), _last(answers.c.user == _user)
