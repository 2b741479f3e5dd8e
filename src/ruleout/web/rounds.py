"""Where imported answers go: which round of an item each one fills."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Column, Connection, Row, Select, and_, func, or_, select

from ruleout.web.records import IMPORTED
from ruleout.web.schema import answers, questions, slots, undone

__all__ = ["Place", "Rounds", "in_chunks"]

_CHUNK = 1000  # values in one statement; databases allow some ten thousand


def in_chunks(
    db: Connection, query: Select[Any], column: Column[Any], values: Iterable[Any]
) -> Iterator[Row[Any]]:
    """Yield the rows in which the column has one of the values, however many there are."""
    every = list(values)
    for start in range(0, len(every), _CHUNK):
        yield from db.execute(query.where(column.in_(every[start : start + _CHUNK])))


@dataclass
class Place:
    """A round of an item for an annotator's answer.

    `taker` is the id of the answer that fills it, None where it was filled before. `needed` says
    whether the item needs the round, None that there is no such round, as for a skip.
    """

    item: int
    user: int
    round: int
    needed: bool | None = None
    taker: str | None = None
    question: int | None = None


class Rounds:
    """The rounds of some items: what is free, who has had one, what the last is."""

    def __init__(self, db: Connection, items: Iterable[int]) -> None:
        self._items = list(items)
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._last: dict[int, int] = {}
        self._yes: defaultdict[tuple[int, int], list[tuple[Place, tuple[int, ...]]]]
        self._yes = defaultdict(list)
        self._read_slots(db)
        self._read_yes(db)

    def _read_slots(self, db: Connection) -> None:
        free = select(slots.c.item, slots.c.round).where(slots.c.question.is_(None), slots.c.needed)
        free = free.order_by(slots.c.item, slots.c.round.desc()).with_for_update(key_share=True)
        for row in in_chunks(db, free, slots.c.item, self._items):
            self._free[row.item].append(row.round)
        # Who skipped a round may take that back, and gets the same question there again.
        same = and_(slots.c.item == questions.c.item, slots.c.round == questions.c.round)
        asked = select(questions.c.item, questions.c.user).join(slots, same)
        asked = asked.where(or_(slots.c.needed, slots.c.test))
        rows = in_chunks(db, asked, questions.c.item, self._items)
        self._had = {(row.item, row.user) for row in rows}
        for table in (slots, questions):  # a skip has a question and no slot
            last = select(table.c.item, func.max(table.c.round).label("last"))
            for row in in_chunks(db, last.group_by(table.c.item), table.c.item, self._items):
                self._last[row.item] = max(row.last, self._last.get(row.item, 0))

    def _read_yes(self, db: Connection) -> None:
        """Find every imported "yes" that no "which" has followed."""
        query = (
            select(questions, answers.c.kind)
            .join(answers, answers.c.question == questions.c.id)
            .outerjoin(undone, undone.c.answer == answers.c.number)
            .where(questions.c.law == IMPORTED, undone.c.answer.is_(None))
            .where(answers.c.kind.in_(("yes", "which")))
        )
        rows = list(in_chunks(db, query, questions.c.item, self._items))
        followed = {row.id for row in rows if row.kind == "which"}
        for row in rows:
            if row.id not in followed:
                self.said_yes(Place(row.item, row.user, row.round, question=row.id), row.proposed)

    def take(self, item: int, user: int, taker: str, *, fills: bool) -> Place:
        """Take a free round, or make a further one."""
        free = self._free[item]
        if fills and free and (item, user) not in self._had:
            self._had.add((item, user))
            return Place(item, user, free.pop(), needed=True, taker=taker)
        self._last[item] += 1
        needed = False if fills else None
        return Place(item, user, self._last[item], needed=needed, taker=taker)

    def said_yes(self, place: Place, proposed: tuple[int, ...]) -> None:
        """Remember a "yes", which a "which" may follow."""
        self._yes[place.item, place.user].append((place, proposed))

    def of_yes(self, item: int, user: int, which: int | None) -> Place | None:
        """Return where a "yes" to a set with this class stands, once."""
        said = self._yes[item, user]
        for number, (place, proposed) in enumerate(said):
            if which in proposed:
                del said[number]
                return place
        return None
