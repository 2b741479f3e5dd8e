"""How far a project is, how fast it goes, and how long it will take."""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from itertools import pairwise
from math import ceil
from typing import Any

from sqlalchemy import Connection, Integer, Label, Select, Table, bindparam, exists, func, select

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
    row = db.execute(_statements(user is not None)[0], {"user": user}).one()
    wanted, left = row.items * settings.rounds, int(row.left)  # PostgreSQL sums to a Decimal
    given = wanted - left
    answered = row.filled if user is not None else given + row.filled
    ordinary = (row.items - row.known) * settings.rounds  # beside which gold questions come
    every = max(wanted, ceil(ordinary / (1 - settings.gold_rate)))
    so_far = min(given + row.gold, every - 1) if left else every
    if user is not None:
        wanted, given = every, so_far
    team = per_hour(db, settings)
    return Progress(
        items=row.items,
        done=row.items - row.unfinished,
        wanted=wanted,
        given=given,
        answers=answered,
        skips=row.skips,
        per_hour=team if user is None else per_hour(db, settings, user),
        seconds_left=0.0 if not left else (every - so_far) / team * 3600 if team else None,
    )


def per_hour(db: Connection, settings: Settings, user: int | None = None) -> float | None:
    """Return how many questions somebody, or all, answered per hour of work, if that is known.

    Of the last rows of the log; imported ones are left out, and gaps longer than a lease.
    """
    rows = db.execute(_statements(user is not None)[1], {"user": user})
    given = [row.received for row in rows if row.kind in _GIVEN and row.status != IMPORTED]
    pause = timedelta(seconds=settings.lease_seconds)
    gaps = [b - a for a, b in pairwise(sorted(given)) if b - a <= pause]
    seconds = sum(gaps, timedelta()).total_seconds()
    return len(gaps) / seconds * 3600 if seconds > 0 else None


_RECENT = 100  # rows of the log that the pace is taken from
_GIVEN = ("yes", "no", "excluded")


@lru_cache
def _statements(own: bool) -> tuple[Select[Any], Select[Any]]:
    """Return what counts the project, or what is an annotator's `own` there, and its last rows.

    Slots are counted rather than answers: every answer that counts fills one, and there are fewer.
    Of the last rows, what does not tell the pace is left out after they are read.
    """

    def count(name: str, table: Table, *where: Any) -> Label[Any]:
        return select(func.count()).select_from(table).where(*where).scalar_subquery().label(name)

    user, further = bindparam("user", type_=Integer), ~slots.c.needed
    filled, taken_back = slots.c.answer.is_not(None), undone.c.answer == answers.c.number
    said, held = ([answers.c.user == user], slots.c.holder == user) if own else ([], further)
    open_slots = slots.c.needed, slots.c.answer.is_(None)
    by_item = select(func.count().label("n")).where(*open_slots).group_by(slots.c.item).subquery()
    left = select(func.coalesce(func.sum(by_item.c.n), 0).label("left"),
                  func.count().label("unfinished")).subquery()  # fmt: skip
    skips = answers.c.kind == "skip", ~answers.c.late, ~exists().where(taken_back)
    counts = select(
        left,
        count("items", items),
        count("known", items, items.c.gold.is_not(None)),
        count("gold", slots, further, slots.c.test, filled),
        count("filled", slots, held, filled),
        count("skips", answers, *skips, *said),
    )
    last = select(answers.c.received, answers.c.kind, answers.c.status).where(*said)
    return counts, last.order_by(answers.c.number.desc()).limit(_RECENT)
