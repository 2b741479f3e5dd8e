"""Many annotators in one transaction: what their turns need is read and written for all at once.

Most turns are alike: an answer to an open question, and another question. Those are done together,
with as many statements for fifty as for one. What is out of the ordinary (an answer sent again, a
late one, "which", an undo, a gold question, the last free items) is then done turn by turn.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

from sqlalchemy import Connection, Executable, Row

from ruleout.labels.errors import brief
from ruleout.web import queries, users
from ruleout.web.entities import (
    IMPORTED,
    Kind,
    Mode,
    Question,
    Receipt,
    RefusedError,
    Reply,
    Settings,
    Turn,
    TurnRequest,
)
from ruleout.web.proposals import Proposal, Proposer, chance
from ruleout.web.schema import answers, key, questions
from ruleout.web.users import allowed

_NOTHING = Receipt(id="", status="nothing")
_ODD = ("undo", "which")


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

    def alone(self, wish: TurnRequest) -> Turn:
        """Do what one annotator wants, whatever it is."""
        desk, receipt = self._desk(wish), _NOTHING
        if wish.reply is None:
            desk.lock()
        else:
            receipt = Answering(desk, wish.reply, wish.hold).receipt()
        return Turn(receipt=receipt, questions=_asked(desk, wish.hold))

    def turns(self, wishes: Sequence[TurnRequest]) -> list[Turn | RefusedError]:
        """Do what many want; return what each gets, or why it is refused."""
        found = self._sat_down(wishes)
        seats = [seat for seat in found.values() if isinstance(seat, _Seat)]
        self._answer(seats)
        self._ask(seats)
        queries.hold(self._db, [slot for seat in seats for slot in seat.desk.changed()])
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

    def _odd(self, wish: TurnRequest) -> Turn | RefusedError:
        """Do what is out of the ordinary; where it is refused, nothing of it is written."""
        try:
            with self._db.begin_nested():
                return self.alone(wish)
        except RefusedError as error:
            return error

    # ------------------------------------------------------------------ who sits down

    def _sat_down(self, wishes: Sequence[TurnRequest]) -> dict[int, _Seat | RefusedError]:
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
        self, wishes: Sequence[TurnRequest], refused: dict[int, _Seat | RefusedError]
    ) -> dict[int, TurnRequest]:
        """Lock everybody; return the first wish of each who may act, and add who is refused."""
        people = {"users": sorted({wish.user for wish in wishes})}
        users = {row.id: row for row in self._db.execute(queries.USERS, people)}
        first: dict[int, TurnRequest] = {}
        for place, wish in _first_of_each(wishes):
            try:
                if wish.reply is not None:
                    check(wish.reply)
                allowed(users.get(wish.user), wish.user)
            except RefusedError as error:
                refused[place] = error
            else:
                first[place] = wish
        return first

    def _seat(self, wish: TurnRequest, opened: list[Row[Any]], known: set[str]) -> _Seat | None:
        """Return the seat of an annotator; None for a reply that is sent again, or late."""
        desk, reply = self._desk(wish), wish.reply
        if reply is None:
            return _Seat(desk, wish.hold, None, opened[: wish.hold])
        number = key(reply.question)
        question = next((row for row in opened if row.id == number), None)
        if question is None or reply.id in known:
            return None
        check_against(reply, question, len(self._settings.classes))
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
        added = queries.add(self._db, answers, rows, "id", "number")
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
        added = queries.add(self._db, questions, rows, "item", "round", "id")
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

    def _desk(self, wish: TurnRequest) -> Desk:
        return Desk(self._db, self._settings, self._proposer, wish.user, wish.now)


def _first_of_each(wishes: Sequence[TurnRequest]) -> Iterator[tuple[int, TurnRequest]]:
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


@dataclass(frozen=True)
class Answering:
    """Takes one reply of one annotator, who wants `hold` questions open after it."""

    desk: Desk
    reply: Reply
    hold: int = 0

    def receipt(self) -> Receipt:
        """Record the reply, unless it has been, and return its receipt."""
        check(self.reply)
        known = self.desk.lock_for(self.reply.id)
        return self._recorded() if known is None else self._replayed(known)

    def _replayed(self, row: Row[Any]) -> Receipt:
        if row.by != self.desk.user or row.content != content(self.reply):
            problem = f"the reply id {brief(self.reply.id)} has been used for another reply"
            raise RefusedError(problem, "give every reply an id of its own", reason="conflict")
        return Receipt(id=row.known, status=row.status, item=row.item, question=row.question)

    def _recorded(self) -> Receipt:
        if self.reply.kind == "undo":
            return self._undo()
        question = self._question()
        check_against(self.reply, question, len(self.desk.settings.classes))
        return self._which(question) if self.reply.kind == "which" else self._answer(question)

    def _question(self) -> Row[Any]:
        number = key(self.reply.question)
        row = self._among_open(number) or self.desk.row(queries.QUESTION, question=number)
        if row is None:
            problem = f"there is no question {brief(self.reply.question)}"
            raise RefusedError(problem, "ask for the next question", reason="unknown")
        if row.user != self.desk.user:
            problem = f"question {row.id} was asked of somebody else"
            raise RefusedError(problem, "log in as who got it", reason="foreign")
        return row

    def _among_open(self, number: int) -> Row[Any] | None:
        """Look among the open questions, which are read anyway if some are to follow."""
        rows = self.desk.open(self.hold + 1) if self.hold else ()
        return next((row for row in rows if row.id == number), None)

    # ------------------------------------------------------------------ answers

    def _answer(self, question: Row[Any]) -> Receipt:
        late = question.held != question.id or question.answered is not None
        number = self._write(question, late=late)
        if not late and self.reply.kind == "skip":
            self.desk.hold(question, None)
        elif not late:
            self.desk.hold(question, question.id, number)
        self.desk.drop(question.id)
        return self._told("late" if late else "recorded", question)

    def _which(self, question: Row[Any]) -> Receipt:
        """Record which class it is; it counts with the "yes" that it belongs to."""
        yes = self.desk.row(queries.STANDING_ON, question=question.id, kind="yes")
        if yes is None:
            problem = f"question {question.id} has no 'yes' yet"
            raise RefusedError(problem, "answer 'yes' first", reason="conflict")
        told = self.desk.row(queries.STANDING_ON, question=question.id, kind="which")
        late = yes.late or told is not None
        self._write(question, late=late)
        return self._told("late" if late else "recorded", question)

    # ------------------------------------------------------------------ undo

    def _undo(self) -> Receipt:
        target = self.desk.row(queries.LAST_ANSWER) if self.reply.undoes is None else self._named()
        if target is None:
            self._write(None, status="nothing")
            return self._told("nothing", None)
        question = self.desk.db.execute(queries.QUESTION, {"question": target.question}).one()
        by = self._write(question, undoes=target.id)
        for number in (target.number, *self._followers(target)):
            self.desk.db.execute(queries.ADD_UNDONE, {"answer": number, "by": by})
        self._reopen(question, target)
        return self._told("recorded", question)

    def _named(self) -> Row[Any] | None:
        """Return the answer that the undo names, None if it has been taken back already."""
        row = self.desk.row(queries.REPLY, id=self.reply.undoes)
        theirs = row is not None and row.user == self.desk.user and row.status != IMPORTED
        if row is None or not theirs or row.kind == "undo":
            problem = f"there is no answer {brief(self.reply.undoes)} of yours to take back"
            raise RefusedError(problem, "name one of your own answers", reason="unknown")
        return self.desk.row(queries.STANDING, number=row.number)

    def _followers(self, target: Row[Any]) -> list[int]:
        """Return the "which" that falls with its "yes"."""
        if target.kind != "yes":
            return []
        on = {"user": self.desk.user, "question": target.question, "kind": "which"}
        return [row.number for row in self.desk.db.execute(queries.STANDING_ON, on)]

    def _reopen(self, question: Row[Any], target: Row[Any]) -> None:
        """Give the question back to its annotator, where the slot is theirs or free."""
        answered = question.answered == target.number
        skipped = target.kind == "skip" and question.held is None and not target.late
        if answered or skipped:
            self.desk.hold(question, question.id)
            self.desk.forget()

    # ------------------------------------------------------------------ rows

    def _write(
        self,
        question: Row[Any] | None,
        *,
        late: bool = False,
        status: str | None = None,
        undoes: str | None = None,
    ) -> int:
        about = None if question is None else question.id
        row = answer_row(self.reply, self.desk.user, about, self.desk.now) | {
            "undoes": undoes, "late": late, "status": status or ("late" if late else "recorded"),
        }  # fmt: skip
        return int(self.desk.db.execute(queries.ADD_ANSWER, row).scalar_one())

    def _told(self, status: Any, question: Row[Any] | None) -> Receipt:
        place = {} if question is None else {"item": question.item, "question": question.id}
        return Receipt(id=self.reply.id, status=status, **place)


def answer_row(reply: Reply, user: int, question: int | None, now: datetime) -> dict[str, Any]:
    """Return the row of a reply that counts."""
    return {
        "id": reply.id, "user": user, "question": question, "kind": reply.kind,
        "excluded": tuple(sorted(set(reply.excluded))), "which": reply.which, "undoes": None,
        "late": False, "status": "recorded", "took_ms": took(reply.took_ms),
        "sent": sent(reply.sent), "received": now, "content": content(reply),
    }  # fmt: skip


_GOLD = 1  # tells the draw of "gold or not" from every other draw


@dataclass(frozen=True)
class Asking:
    """Asks one annotator, who is locked."""

    desk: Desk

    def next(self, count: int) -> list[Question]:
        """Return up to `count` questions that are now this annotator's."""
        found = [self.desk.still_open(row) for row in self.desk.open(count)]
        while len(found) < count and (slot := self._pick()) is not None:
            found.append(self._lease(slot))
        return found

    # ------------------------------------------------------------------ what is next

    def _pick(self) -> Row[Any] | None:
        """Take a round that needs this annotator, or a gold one in its stead."""
        desk = self.desk
        slot = desk.row(queries.FREE) or desk.row(queries.EXPIRED, now=desk.now)
        if slot is not None and self._gold_is_due():
            return self._gold() or slot
        return slot

    def _gold_is_due(self) -> bool:
        settings = self.desk.settings
        if not settings.gold_rate:
            return False
        last = self.desk.row(queries.LAST_QUESTION)
        return gold_is_due(settings, self.desk.user, last and last[0])

    def _gold(self) -> Row[Any] | None:
        """Take a round of a gold item, a further one where all are taken."""
        item = self.desk.row(queries.GOLD_ITEM)
        if item is None:
            return None
        taken = self.desk.row(queries.GOLD_SLOT, item=item.id, now=self.desk.now)
        return taken or self._further(item)

    def _further(self, item: Row[Any]) -> Row[Any]:
        number = self.desk.db.execute(queries.LAST_ROUND, {"item": item.id}).scalar_one() + 1
        row = {"item": item.id, "round": number, "place": item.place, "needed": False, "test": True}
        return self.desk.db.execute(queries.ADD_SLOT, row).one()

    # ------------------------------------------------------------------ the lease

    def _lease(self, slot: Row[Any]) -> Question:
        """Give the slot to this annotator, with the question they had there before, if any."""
        if slot.earlier is None:
            question = self._ask(slot)
        else:
            row = self.desk.db.execute(queries.QUESTION, {"question": slot.earlier}).one()
            question = question_of(row._mapping, self.desk.until)
        self.desk.hold(slot, question.id)
        self.desk.write()
        return question

    def _ask(self, slot: Row[Any]) -> Question:
        desk, gold = self.desk, None
        if slot.test:
            gold = desk.db.execute(queries.GOLD_CLASS, {"item": slot.item}).scalar_one()
        drawn = desk.proposer.proposal(slot.item, slot.round, gold)
        row = question_row(slot, desk.user, drawn, desk.settings.mode, desk.now)
        number = desk.db.execute(queries.ADD_QUESTION, row).scalar_one()
        return question_of(row | {"id": number}, desk.until)


def gold_is_due(settings: Settings, user: int, last: int | None) -> bool:
    """Tell whether the question after the user's last one is a gold one."""
    return chance(settings.seed, _GOLD, user, last or 0) < settings.gold_rate


def question_row(
    slot: Row[Any], user: int, drawn: Proposal, mode: Mode, now: datetime
) -> dict[str, Any]:
    """Return the row of a question about the item of a slot."""
    return {
        "item": slot.item, "user": user, "round": slot.round, "gold": slot.test, "mode": mode,
        "proposed": drawn.classes, "size": len(drawn.classes), "law": drawn.law,
        "seed": drawn.seed, "given": now,
    }  # fmt: skip


class Desk:
    """One annotator at work: their open questions, and the slots that change hands."""

    def __init__(
        self, db: Connection, settings: Settings, proposer: Proposer, user: int, now: datetime
    ) -> None:
        self.db = db
        self.settings = settings
        self.proposer = proposer
        self.user = user
        self.now = now
        self.until = now + timedelta(seconds=settings.lease_seconds)
        self._slots: list[dict[str, Any]] = []
        self._open: list[Row[Any]] | None = None

    def row(self, query: Executable, **values: Any) -> Row[Any] | None:
        """Return the first row."""
        return self.db.execute(query, {"user": self.user, **values}).first()

    def lock(self) -> None:
        """Let nobody else act in the annotator's name until the transaction ends."""
        users.locked(self.db, self.user)

    def lock_for(self, reply: str) -> Row[Any] | None:
        """Lock, and return what was recorded under the id of a reply."""
        row = users.allowed(self.row(queries.SENDER, id=reply), self.user)
        return row if row.known is not None else None

    # ------------------------------------------------------------------ open questions

    def open(self, count: int) -> list[Row[Any]]:
        """Return the first open questions, `count` of them at most."""
        if self._open is None:
            self.write()
            query = {"user": self.user, "count": count}
            self._open = list(self.db.execute(queries.OPEN, query))
        return self._open[:count]

    def drop(self, question: int) -> None:
        """Leave out a question that was answered just now."""
        if self._open is not None:
            self._open = [row for row in self._open if row.id != question]

    def forget(self) -> None:
        """Have the open questions read again, since others may be open now."""
        self._open = None

    # ------------------------------------------------------------------ slots

    def hold(self, place: Any, question: int | None, answer: int | None = None) -> None:
        """Give the slot of a question to this annotator; to nobody where there is none."""
        mine = question is not None
        self._slots.append({
            "at_item": place.item, "at_round": place.round, "question": question,
            "holder": self.user if mine else None, "expires": self.until if mine else None,
            "answer": answer,
        })  # fmt: skip

    def still_open(self, row: Row[Any]) -> Question:
        """Return an open question; a lease that ran out begins anew."""
        if row.expires > self.now:
            return question_of(row._mapping, row.expires)
        self.hold(row, row.id)
        return question_of(row._mapping, self.until)

    def write(self) -> None:
        """Write down what changed hands."""
        queries.hold(self.db, self.changed())

    def changed(self) -> list[dict[str, Any]]:
        """Return what changed hands, for who writes it down."""
        changed, self._slots = self._slots, []
        return changed


_OF_QUESTION = ("id", "item", "user", "round", "mode", "proposed", "law", "seed", "gold")


def question_of(row: Mapping[Any, Any], expires: datetime) -> Question:
    """Return the question of a row."""
    return Question(expires=expires, **{name: row[name] for name in _OF_QUESTION})


_LONGEST_ID = 100  # characters of a reply's id
_RESERVED = "import-"  # so that no reply can stand in for an answer that is yet to be imported
_KINDS = {"propose": ("yes", "no", "skip", "which"), "rule-out": ("excluded", "skip")}


def check(reply: Reply) -> None:
    """Raise unless the reply is well formed, whatever it answers."""
    for name, text in (("id", reply.id), ("undoes", reply.undoes)):
        if text is not None and not _is_id(text):
            problem = f"the reply's {name} is {brief(text)}"
            raise RefusedError(
                problem, f"use 1 to {_LONGEST_ID} letters, digits and marks of ASCII"
            )
    if str(reply.id).startswith(_RESERVED):
        problem = f"the reply's id begins with {_RESERVED!r}, as those of imported answers do"
        raise RefusedError(problem, "begin it otherwise")
    if reply.id is None or reply.kind not in get_args(Kind):
        raise RefusedError(f"there is no reply of kind {brief(reply.kind)}", "reload the page")
    for code in (*reply.excluded, *(() if reply.which is None else (reply.which,))):
        if type(code) is not int:
            raise RefusedError(f"there is no class {brief(code)}", "name classes by their numbers")
    extra = {
        "excluded": bool(reply.excluded) and reply.kind != "excluded",
        "which": reply.which is not None and reply.kind != "which",
        "undoes": reply.undoes is not None and reply.kind != "undo",
    }
    for name, is_wrong in extra.items():
        if is_wrong:
            raise RefusedError(f"a reply of kind {reply.kind!r} has no {name!r}", "leave it out")


def check_against(reply: Reply, question: Row[tuple[object, ...]], classes: int) -> None:
    """Raise unless the reply answers the question."""
    if reply.kind not in _KINDS[question.mode]:
        known = ", ".join(_KINDS[question.mode])
        raise RefusedError(f"{reply.kind!r} does not answer question {question.id}", f"use {known}")
    if reply.kind == "which" and reply.which not in question.proposed:
        problem = f"class {brief(reply.which)} is not in the proposed set"
        raise RefusedError(problem, "choose one of the classes that were proposed")
    if reply.kind == "excluded":
        _check_excluded(reply.excluded, classes)


def _check_excluded(excluded: tuple[int, ...], classes: int) -> None:
    for code in excluded:
        if not 0 <= code < classes:
            raise RefusedError(
                f"there is no class {brief(code)}", f"classes are 0 to {classes - 1}"
            )
    if not 1 <= len(set(excluded)) <= classes - 1:
        problem = f"{len(set(excluded))} of {classes} classes are ruled out"
        raise RefusedError(problem, f"rule out 1 to {classes - 1}, or skip")


def content(reply: Reply) -> str:
    """Return what the reply says as text; a copy sent again says the same."""
    said = [reply.kind, reply.question, sorted(set(reply.excluded)), reply.which, reply.undoes]
    return json.dumps(said)


def took(ms: int | None) -> int | None:
    """Return the time taken, None where a client's clock made no sense."""
    return ms if type(ms) is int and 0 <= ms < 2**31 else None


def sent(at: datetime | None) -> datetime | None:
    """Return when a client sent something, by its own clock; no zone means UTC."""
    if at is None or at.tzinfo is None:
        return at and at.replace(tzinfo=UTC)
    try:
        return at.astimezone(UTC)
    except OverflowError:  # at the edge of what a calendar can hold
        return None


def _is_id(text: object) -> bool:
    fits = isinstance(text, str) and 1 <= len(text) <= _LONGEST_ID
    return fits and all("!" <= c <= "~" for c in str(text))
