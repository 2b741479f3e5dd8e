"""Many annotators in one transaction: what their turns need is read and written for all at once.

Most turns are alike: an answer to an open question, and another question. Those are done together,
with as many statements for fifty as for one. What is out of the ordinary (an answer sent again, a
late one, "which", an undo, a gold question, the last free items) is then done turn by turn.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row

from ruleout.web import bulk, queries, replies
from ruleout.web.answering import Answering, answer_row
from ruleout.web.desk import Desk, question_of
from ruleout.web.errors import RefusedError
from ruleout.web.leases import Asking, gold_is_due, question_row
from ruleout.web.proposals import Proposer
from ruleout.web.records import Question, Receipt, Reply, Settings, Turn
from ruleout.web.schema import answers, key, questions
from ruleout.web.users import allowed

__all__ = ["Sitting", "Wish"]

_NOTHING = Receipt(id="", status="nothing")
_ODD = ("undo", "which")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What an annotator sends: a reply or none, and how many questions to hold after it."""

    user: int
    hold: int
    now: datetime
    reply: Reply | None = None


@dataclass
class _Seat:
    """An annotator whose turn is like most: the reply with its question, and what else is open."""

    desk: Desk
    hold: int
    said: tuple[Reply, Row[Any]] | None
    open: list[Row[Any]]
    receipt: Receipt = _NOTHING
    questions: list[Question] = field(default_factory=list)

    @property
    def user(self) -> int:
        return self.desk.user

    @property
    def missing(self) -> int:
        return self.hold - len(self.questions)


class Sitting:
    """Takes turns inside one transaction."""

    def __init__(self, db: Connection, settings: Settings, proposer: Proposer) -> None:
        self._db = db
        self._settings = settings
        self._proposer = proposer

    def alone(self, wish: Wish) -> Turn:
        """Do what one annotator wants, whatever it is."""
        desk, receipt = self._desk(wish), _NOTHING
        if wish.reply is None:
            desk.lock()
        else:
            receipt = Answering(desk, wish.reply, wish.hold).receipt()
        return Turn(receipt=receipt, questions=_asked(desk, wish.hold))

    def turns(self, wishes: Sequence[Wish]) -> list[Turn | RefusedError]:
        """Do what many want; return what each gets, or why it is refused."""
        found = self._sat_down(wishes)
        seats = [seat for seat in found.values() if isinstance(seat, _Seat)]
        self._answer(seats)
        self._ask(seats)
        bulk.hold(self._db, [slot for seat in seats for slot in seat.desk.changed()])
        return [
            self._done(found[place]) if place in found else self._odd(wish)
            for place, wish in enumerate(wishes)
        ]

    def _done(self, seat: _Seat | RefusedError) -> Turn | RefusedError:
        if isinstance(seat, RefusedError):
            return seat
        if seat.missing:
            seat.questions = _asked(seat.desk, seat.hold)
        return Turn(receipt=seat.receipt, questions=seat.questions)

    def _odd(self, wish: Wish) -> Turn | RefusedError:
        """Do what is out of the ordinary; where it is refused, nothing of it is written."""
        try:
            with self._db.begin_nested():
                return self.alone(wish)
        except RefusedError as error:
            return error

    # ------------------------------------------------------------------ who sits down

    def _sat_down(self, wishes: Sequence[Wish]) -> dict[int, _Seat | RefusedError]:
        """Return whose turn is like most, and who is refused, by their place in line."""
        found: dict[int, _Seat | RefusedError] = {}
        first = self._who_may_act(wishes, found)
        known = self._known(wish.reply.id for wish in first.values() if wish.reply)
        opened = self._open(wish.user for wish in first.values())
        for place, wish in first.items():
            try:
                seat = self._seat(wish, opened[wish.user], known)
            except RefusedError as error:
                found[place] = error
            else:
                if seat is not None:
                    found[place] = seat
        return found

    def _who_may_act(
        self, wishes: Sequence[Wish], refused: dict[int, _Seat | RefusedError]
    ) -> dict[int, Wish]:
        """Lock everybody; return the first wish of each who may act, and add who is refused."""
        people = {"users": sorted({wish.user for wish in wishes})}
        users = {row.id: row for row in self._db.execute(queries.USERS, people)}
        first: dict[int, Wish] = {}
        for place, wish in _first_of_each(wishes):
            try:
                if wish.reply is not None:
                    replies.check(wish.reply)
                allowed(users.get(wish.user), wish.user)
            except RefusedError as error:
                refused[place] = error
            else:
                first[place] = wish
        return first

    def _seat(self, wish: Wish, opened: list[Row[Any]], known: set[str]) -> _Seat | None:
        """Return the seat of an annotator; None for a reply that is sent again, or late."""
        desk, reply = self._desk(wish), wish.reply
        if reply is None:
            return _Seat(desk, wish.hold, None, opened[: wish.hold])
        number = key(reply.question)
        question = next((row for row in opened if row.id == number), None)
        if question is None or reply.id in known:
            return None
        replies.check_against(reply, question, len(self._settings.classes))
        others = [row for row in opened if row is not question]
        return _Seat(desk, wish.hold, (reply, question), others[: wish.hold])

    def _known(self, ids: Iterable[str]) -> set[str]:
        return set(self._db.execute(queries.KNOWN, {"ids": sorted(ids)}).scalars())

    def _open(self, people: Iterable[int]) -> defaultdict[int, list[Row[Any]]]:
        found: defaultdict[int, list[Row[Any]]] = defaultdict(list)
        for row in self._db.execute(queries.OPEN_OF_MANY, {"users": sorted(people)}):
            found[row.user].append(row)
        return found

    # ------------------------------------------------------------------ answers

    def _answer(self, seats: list[_Seat]) -> None:
        said = [(seat, *seat.said) for seat in seats if seat.said is not None]
        rows = [answer_row(reply, s.user, asked.id, s.desk.now) for s, reply, asked in said]
        added = bulk.add(self._db, answers, rows, "id", "number")
        numbers = {row.id: row.number for row in added}
        for seat, reply, asked in said:
            if reply.kind == "skip":
                seat.desk.hold(asked, None)
            else:
                seat.desk.hold(asked, asked.id, numbers[reply.id])
            seat.receipt = Receipt(
                id=reply.id, status="recorded", item=asked.item, question=asked.id
            )

    # ------------------------------------------------------------------ questions

    def _ask(self, seats: list[_Seat]) -> None:
        for seat in seats:
            seat.questions = [seat.desk.still_open(row) for row in seat.open]
        given = [*self._given([seat for seat in seats if seat.missing])]
        rows = [self._question(seat, slot) for seat, slot in given]
        added = bulk.add(self._db, questions, rows, "item", "round", "id")
        numbers = {(row.item, row.round): row.id for row in added}
        for (seat, slot), new in zip(given, rows, strict=True):
            number = numbers[slot.item, slot.round]
            seat.desk.hold(slot, number)
            seat.questions.append(question_of(new | {"id": number}, seat.desk.until))

    def _question(self, seat: _Seat, slot: Row[Any]) -> dict[str, Any]:
        drawn = self._proposer.proposal(slot.item, slot.round)
        return question_row(slot, seat.user, drawn, self._settings.mode, seat.desk.now)

    def _given(self, seats: list[_Seat]) -> Iterator[tuple[_Seat, Row[Any]]]:
        """Yield who gets which free round, each about an item that is surely new to them."""
        if self._settings.gold_rate:
            seats = self._without_gold(seats)
        if not seats:
            return
        wanted = {"count": sum(seat.missing for seat in seats)}
        free: list[Row[Any]] = [*self._db.execute(queries.FREE_FOR_MANY, wanted)]
        about = {"items": [slot.item for slot in free]}
        asked = {(row.item, row.user) for row in self._db.execute(queries.ASKED, about)}
        for seat in seats:
            for _ in range(seat.missing):
                slot = next((s for s in free if (s.item, seat.user) not in asked), None)
                if slot is None:
                    break
                free.remove(slot)
                asked.add((slot.item, seat.user))
                yield seat, slot

    def _without_gold(self, seats: list[_Seat]) -> list[_Seat]:
        """Leave out who is due a gold question, or wants more than one."""
        people = {"users": [seat.user for seat in seats]}
        last = {row.user: row.last for row in self._db.execute(queries.LAST_QUESTIONS, people)}
        return [
            seat for seat in seats
            if seat.missing == 1 and not gold_is_due(self._settings, seat.user, last.get(seat.user))
        ]  # fmt: skip

    def _desk(self, wish: Wish) -> Desk:
        return Desk(self._db, self._settings, self._proposer, wish.user, wish.now)


def _first_of_each(wishes: Sequence[Wish]) -> Iterator[tuple[int, Wish]]:
    """Yield the first wish of each annotator and with each reply id, unless it is an odd one."""
    seen: set[object] = set()
    for place, wish in enumerate(wishes):
        keys: list[object] = [wish.user] if wish.reply is None else [wish.user, wish.reply.id]
        odd = wish.reply is not None and wish.reply.kind in _ODD
        if not odd and seen.isdisjoint(keys):
            yield place, wish
        seen.update(keys)


def _asked(desk: Desk, count: int) -> list[Question]:
    """Ask, and have everything written that changed hands."""
    found = Asking(desk).next(count) if count else []
    desk.write()
    return found
