"""How far a project is, how fast it goes, and how long it will take."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from math import ceil
from typing import Any

from sqlalchemy import Connection, Integer, Label, Select, bindparam, exists, func, select

from ruleout.web.entities import IMPORTED, Settings
from ruleout.web.schema import answers, items, slots, undone


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Counts of a project, or of one annotator in it.

    As one annotator sees it, gold questions are among `wanted` and `given`, those to come by their
    rate: else who looks after each answer could tell which question was gold.
    """

    items: int
    done: int  # items that have all their answers
    wanted: int  # answers that the items need
    given: int  # those of them they have
    answers: int  # what stands, gold questions included
    skips: int
    per_hour: float | None  # of the last answers, pauses left out; None before there are two
    seconds_left: float | None  # at the pace of all together; None where that is unknown


def progress(db: Connection, settings: Settings, user: int | None) -> Progress:
    row = db.execute(_COUNTS if user is None else _OWN_COUNTS, {"user": user}).one()
    wanted, left = row.items * settings.rounds, int(row.left)  # PostgreSQL sums to a Decimal
    given = wanted - left
    answered = row.answers if user is not None else given + row.further
    ordinary = (row.items - row.known) * settings.rounds  # beside which gold questions come
    every = max(wanted, ceil(ordinary / (1 - settings.gold_rate)))
    so_far = min(given + row.gold, every - 1) if left else every
    if user is not None:
        wanted, given = every, so_far
    team = _pace(db, settings, _LAST)
    return Progress(
        items=row.items,
        done=row.items - row.unfinished,
        wanted=wanted,
        given=given,
        answers=answered,
        skips=row.skips,
        per_hour=team if user is None else _pace(db, settings, _OWN_LAST, user),
        seconds_left=0.0 if not left else (every - so_far) / team * 3600 if team else None,
    )


def pace(moments: Sequence[datetime], pause: timedelta) -> float | None:
    """Return how many come per hour; gaps longer than `pause` are left out."""
    gaps = [b - a for a, b in pairwise(sorted(moments)) if b - a <= pause]
    seconds = sum(gaps, timedelta()).total_seconds()
    return len(gaps) / seconds * 3600 if seconds > 0 else None


def _pace(
    db: Connection, settings: Settings, last: Select[Any], user: int | None = None
) -> float | None:
    rows = db.execute(last, {"user": user}).all()
    given = [row.received for row in rows if row.kind in _GIVEN and row.status != IMPORTED]
    return pace(given, timedelta(seconds=settings.lease_seconds))


RECENT = 100  # rows of the log that the pace is taken from
_GIVEN = ("yes", "no", "excluded")
_user: Any = bindparam("user", type_=Integer)


def _count(*where: Any) -> Select[Any]:
    return select(func.count()).where(*where)


def _counts(*more: Label[Any]) -> Select[Any]:
    """Count slots rather than answers: every answer that counts fills one, and there are fewer."""
    open_slots = slots.c.needed, slots.c.answer.is_(None)
    by_item = select(func.count().label("n")).where(*open_slots).group_by(slots.c.item).subquery()
    left = select(func.coalesce(func.sum(by_item.c.n), 0).label("left"),
                  func.count().label("unfinished")).subquery()  # fmt: skip
    every = select(func.count()).select_from(items).scalar_subquery()
    return select(left, every.label("items"), *more)


def _skips(*where: Any) -> Label[Any]:
    taken_back = exists().where(undone.c.answer == answers.c.number)
    skips = _count(answers.c.kind == "skip", ~answers.c.late, ~taken_back, *where)
    return skips.select_from(answers).scalar_subquery().label("skips")


def _last(*where: Any) -> Select[Any]:
    """The last of the log; what does not tell the pace is left out after it is read."""
    columns = answers.c.received, answers.c.kind, answers.c.status
    return select(*columns).where(*where).order_by(answers.c.number.desc()).limit(RECENT)


_further = _count(~slots.c.needed, slots.c.answer.is_not(None)).scalar_subquery()
_gold = _count(~slots.c.needed, slots.c.test, slots.c.answer.is_not(None)).scalar_subquery()
_known = _count(items.c.gold.is_not(None)).select_from(items).scalar_subquery()
_own = _count(slots.c.holder == _user, slots.c.answer.is_not(None)).scalar_subquery()
_both = _known.label("known"), _gold.label("gold")
_COUNTS = _counts(*_both, _further.label("further"), _skips())
_OWN_COUNTS = _counts(*_both, _own.label("answers"), _skips(answers.c.user == _user))
_LAST, _OWN_LAST = _last(), _last(answers.c.user == _user)
