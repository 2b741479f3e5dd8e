"""A turn: an annotator's reply is recorded once, and questions are handed out after it.

Turns are taken in batches, of one or of many: what all of them need is read at once and written at
once, with as many statements for fifty annotators as for two.

Whether an answer counts depends on its round alone, never on the clock: a lease that ran out but
was not given away still counts, and however a clock jumps, a round takes one answer.

An annotator's own open questions come first. Then free rounds of items in the project's order,
then rounds whose lease has expired (last, since an answer to those may still be on its way).
Gold questions come in between at the project's rate, each item once per annotator.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, get_args

from sqlalchemy import Connection, Row, Select

from ruleout.labels.errors import brief
from ruleout.web import queries
from ruleout.web.accounts import allowed
from ruleout.web.entities import (
    IMPORTED,
    MOST_HELD,
    Kind,
    Question,
    Receipt,
    RefusedError,
    Reply,
    Settings,
    Turn,
    TurnRequest,
)
from ruleout.web.proposals import Proposer
from ruleout.web.schema import answers, key, questions, slots, undone

_LONGEST_ID = 100  # characters of a reply's id
_RESERVED = "import-"  # so that no reply can stand in for an answer that is yet to be imported
_KINDS = {"propose": ("yes", "no", "skip", "which"), "rule-out": ("excluded", "skip")}
_LONGEST_ABSENCE = timedelta(hours=1)  # or two leases, after the last sign of an annotator
_NOTHING = Receipt(id="", status="nothing")


def take_turns(
    db: Connection,
    current: Callable[[Connection, int], tuple[Settings, Proposer]],
    requests: Sequence[TurnRequest],
) -> list[Turn | RefusedError]:
    """Do what annotators want, in one transaction; return what each gets, or why it is refused.

    `current` returns how a revision of the project asks.
    """
    found: dict[int, Turn | RefusedError] = {}
    everyone = sorted({request.user for request in requests})
    people = {row.id: row for row in db.execute(queries.USERS, {"users": everyone})}
    settings, proposer = current(db, max((row.revision for row in people.values()), default=-1))
    for wave in _waves(requests):
        seats: dict[int, _Seat] = {}
        for place in wave:
            request = requests[place]
            try:
                if request.reply is not None:
                    _check(request.reply)
                allowed(people.get(request.user), request.user)
                seats[place] = _Seat(request, request.user, request.now)
            except RefusedError as error:
                found[place] = error
        _Wave(db, settings, proposer, list(seats.values())).take()
        found |= {place: seat.refused or seat.turn for place, seat in seats.items()}
    return [found[place] for place in range(len(requests))]


def _waves(requests: Sequence[TurnRequest]) -> list[list[int]]:
    """Part the batch so that nobody and no reply is twice in a wave; mostly there is one."""
    waves: defaultdict[int, list[int]] = defaultdict(list)
    after: dict[object, int] = {}
    for place, request in enumerate(requests):
        keys = [request.user] if request.reply is None else [request.user, str(request.reply.id)]
        wave = max(after.get(one, 0) for one in keys)
        waves[wave].append(place)
        after |= dict.fromkeys(keys, wave + 1)
    return [waves[number] for number in sorted(waves)]


@dataclass
class _Seat:
    """An annotator in a wave: what they sent, what they hold, and what comes of it."""

    request: TurnRequest
    user: int
    now: datetime
    open: dict[int, Question] = field(default_factory=dict)
    given: dict[int, datetime] = field(default_factory=dict)  # when each of them was asked first
    receipt: Receipt = _NOTHING
    refused: RefusedError | None = None

    @property
    def missing(self) -> int:
        return max(0, self.request.hold - len(self.open)) if self.refused is None else 0

    @property
    def turn(self) -> Turn:
        return Turn(receipt=self.receipt, questions=[*self.open.values()][: self.request.hold])


class _Wave:
    """Takes the turns of annotators who are locked, each once."""

    def __init__(
        self, db: Connection, settings: Settings, proposer: Proposer, seats: list[_Seat]
    ) -> None:
        self._db = db
        self._settings = settings
        self._proposer = proposer
        self._seats = seats
        self._changed: dict[tuple[int, int], dict[str, Any]] = {}  # by item and round
        self._undone: list[dict[str, Any]] = []

    def take(self) -> None:
        by_user = {seat.user: seat for seat in self._seats}
        for row in self._rows(queries.OPEN, users=sorted(by_user)):
            by_user[row.user].open[row.id] = _question(row._mapping, row.expires)
            by_user[row.user].given[row.id] = row.given
        self._answer()
        self._ask()
        self._write()

    def _rows(self, query: Select[Any], **values: Any) -> Sequence[Row[Any]]:
        """Return the rows; there are none where a list to look for is empty."""
        if any(isinstance(value, list) and not value for value in values.values()):
            return []
        return self._db.execute(query, values).all()

    def _until(self, seat: _Seat) -> datetime:
        return seat.now + timedelta(seconds=self._settings.lease_seconds)

    def _hold(
        self, seat: _Seat, place: Any, question: int | None, answer: int | None = None
    ) -> None:
        """Give a round to an annotator; to nobody where there is no question."""
        mine = question is not None
        self._changed[place.item, place.round] = {
            "at_item": place.item, "at_round": place.round, "question": question,
            "holder": seat.user if mine else None, "expires": self._until(seat) if mine else None,
            "answer": answer,
        }  # fmt: skip

    def _write(self) -> None:
        queries.hold(self._db, list(self._changed.values()))
        self._changed.clear()

    def _answer(self) -> None:
        fresh = self._without_copies()
        self._look_up(fresh)
        recorded: list[tuple[_Seat, dict[str, Any]]] = []
        for seat, reply in fresh:
            try:
                recorded.append((seat, self._row(seat, reply)))
            except RefusedError as error:
                seat.refused = error
        added = queries.add(self._db, answers, [row for _, row in recorded], "id", "number")
        numbers = {row.id: row.number for row in added}
        for seat, row in recorded:
            self._take_effect(seat, row, numbers[row["id"]])
        queries.add(self._db, undone, self._undone, "answer")

    def _without_copies(self) -> list[tuple[_Seat, Reply]]:
        """Return who sent a new reply; a copy gets the receipt of the first."""
        sent = {seat.request.reply.id: (seat, seat.request.reply)
                for seat in self._seats if seat.request.reply is not None}  # fmt: skip
        for row in self._rows(queries.KNOWN, ids=sorted(sent)):
            seat, reply = sent.pop(row.id)
            seat.receipt = Receipt(
                id=row.id, status=row.status, item=row.item, question=row.question
            )
            if row.user != seat.user or row.content != _content(reply):
                problem = f"the reply id {brief(row.id)} has been used for another reply"
                remedy = "give every reply an id of its own"
                seat.refused = RefusedError(problem, remedy, reason="conflict")
        return list(sent.values())

    def _look_up(self, fresh: Sequence[tuple[_Seat, Reply]]) -> None:
        """Read what replies are about, where that is not an open question."""
        undos = [(seat.user, reply.undoes) for seat, reply in fresh if reply.kind == "undo"]
        names = [name for _, name in undos if name is not None]
        self._named = {row.id: row for row in self._rows(queries.NAMED, ids=names)}
        unnamed = [user for user, name in undos if name is None]
        self._last = {row.user: row for row in self._rows(queries.LAST_ANSWERS, users=unnamed)}
        targets = [*self._named.values(), *self._last.values()]
        self._asked: dict[int, Any] = {
            one.id: one for seat in self._seats for one in seat.open.values()
        }
        about = {key(reply.question) for _, reply in fresh if reply.kind != "undo"}
        about |= {row.question for row in targets if row.question is not None}
        about -= self._asked.keys()
        for row in self._rows(queries.QUESTIONS, questions=sorted(about)):
            self._asked[row.id] = row
        followed = {key(reply.question) for _, reply in fresh if reply.kind == "which"}
        followed |= {row.question for row in targets if row.kind == "yes"}
        self._standing: defaultdict[tuple[int, str], list[Row[Any]]] = defaultdict(list)
        for row in self._rows(queries.STANDING, questions=sorted(followed)):
            self._standing[row.question, row.kind].append(row)

    def _row(self, seat: _Seat, reply: Reply) -> dict[str, Any]:
        """Return how a reply is recorded, or raise."""
        undoes, status = None, "recorded"
        if reply.kind == "undo":
            undoes = self._undone_by(seat, reply)
            question = None if undoes is None else undoes.question
            status = "nothing" if undoes is None else status
        else:
            question = self._question_of(seat, reply).id
            status = "late" if self._is_late(seat, reply, question) else status
        return {
            "id": reply.id, "user": seat.user, "question": question, "kind": reply.kind,
            "excluded": tuple(sorted(set(reply.excluded))), "which": reply.which,
            "undoes": undoes and undoes.id, "late": status == "late", "status": status,
            "took_ms": took(reply.took_ms), "sent": sent(reply.sent), "received": seat.now,
            "content": _content(reply),
        }  # fmt: skip

    def _question_of(self, seat: _Seat, reply: Reply) -> Any:
        """Return the question that a reply answers, or raise."""
        asked = self._asked.get(key(reply.question))
        if asked is None:
            problem = f"there is no question {brief(reply.question)}"
            raise RefusedError(problem, "ask for the next question", reason="unknown")
        if asked.user != seat.user:
            problem = f"question {asked.id} was asked of somebody else"
            raise RefusedError(problem, "log in as who got it", reason="foreign")
        known, k = _KINDS[asked.mode], len(self._settings.classes)
        if reply.kind not in known:
            problem = f"{reply.kind!r} does not answer question {asked.id}"
            raise RefusedError(problem, f"use {', '.join(known)}")
        if reply.kind == "which" and reply.which not in asked.proposed:
            problem = f"class {brief(reply.which)} is not in the proposed set"
            raise RefusedError(problem, "choose one of the classes that were proposed")
        for code in reply.excluded:  # of that kind alone
            if not 0 <= code < k:
                raise RefusedError(f"there is no class {brief(code)}", f"classes are 0 to {k - 1}")
        if reply.kind == "excluded" and not 1 <= len(set(reply.excluded)) <= k - 1:
            problem = f"{len(set(reply.excluded))} of {k} classes are ruled out"
            raise RefusedError(problem, f"rule out 1 to {k - 1}, or skip")
        return asked

    def _is_late(self, seat: _Seat, reply: Reply, question: int) -> bool:
        """Tell whether an answer comes too late to count; a "which" goes with its "yes"."""
        if reply.kind != "which":
            return question not in seat.open
        if not self._standing[question, "yes"]:
            problem = f"question {question} has no 'yes' yet"
            raise RefusedError(problem, "answer 'yes' first", reason="conflict")
        return bool(self._standing[question, "yes"][0].late or self._standing[question, "which"])

    def _undone_by(self, seat: _Seat, reply: Reply) -> Row[Any] | None:
        """Return the answer that an undo takes back; None where nothing is left of it."""
        if reply.undoes is None:
            return self._last.get(seat.user)
        row = self._named.get(reply.undoes)
        theirs = row is not None and row.user == seat.user and row.status != IMPORTED
        if row is None or not theirs or row.kind == "undo":
            problem = f"there is no answer {brief(reply.undoes)} of yours to take back"
            raise RefusedError(problem, "name one of your own answers", reason="unknown")
        return row if row.gone is None else None

    def _take_effect(self, seat: _Seat, row: dict[str, Any], number: int) -> None:
        if row["question"] is None:  # an undo that found nothing
            seat.receipt = Receipt(id=row["id"], status=row["status"])
            return
        asked = self._asked[row["question"]]
        seat.receipt = Receipt(
            id=row["id"], status=row["status"], item=asked.item, question=asked.id
        )
        if row["kind"] == "undo":
            self._take_back(seat, asked, number)
        elif row["kind"] != "which" and not row["late"]:
            stays = None if row["kind"] == "skip" else asked.id
            self._hold(seat, asked, stays, stays and number)
            del seat.open[asked.id]

    def _take_back(self, seat: _Seat, asked: Any, by: int) -> None:
        """Undo an answer, with the "which" that followed it; its question is open again."""
        name = seat.request.reply and seat.request.reply.undoes
        target = self._named[name] if name else self._last[seat.user]
        fallen = self._standing[asked.id, "which"] if target.kind == "yes" else []
        self._undone += [{"answer": row.number, "by": by} for row in (target, *fallen)]
        if asked.id in seat.open:
            return
        free = asked.held is None and (asked.item, asked.round) not in self._changed
        skipped = target.kind == "skip" and free and not target.late
        if skipped or asked.answered == target.number:  # its round is still theirs, or free
            self._lease(seat, asked, asked._mapping)
            seat.open = dict(sorted(seat.open.items()))

    def _lease(self, seat: _Seat, place: Any, row: Mapping[Any, Any]) -> None:
        """Let the annotator hold a question of theirs, from now on."""
        self._hold(seat, place, row["id"])
        seat.open[row["id"]] = _question(row, self._until(seat))

    def _ask(self) -> None:
        self._renew()
        for search in (queries.FREE, queries.EXPIRED):
            wanting = [seat for seat in self._seats if seat.missing]
            while wanting:
                wanting = self._give(search, wanting)

    def _renew(self) -> None:
        """Begin leases anew that ran out, unless nobody is there: a page asks by itself."""
        over = [
            (seat, one) for seat in self._seats if seat.refused is None
            for one in seat.turn.questions if one.expires <= seat.now
        ]  # fmt: skip
        quiet = sorted({seat.user for seat, _ in over if seat.request.reply is None})
        last = {row.user: row.at for row in self._rows(queries.LAST_SIGNS, users=quiet) if row.at}
        longest = max(_LONGEST_ABSENCE, 2 * timedelta(seconds=self._settings.lease_seconds))
        for seat, asked in over:
            given = seat.given.get(asked.id, seat.now)
            sign = seat.now if seat.request.reply else max(given, last.get(seat.user, given))
            if seat.now - sign <= longest:
                self._lease(seat, asked, vars(asked))

    def _give(self, search: Select[Any], wanting: list[_Seat]) -> list[_Seat]:
        """Hand questions out; return who should try again.

        Where there is gold, one each at a time: whether the next is gold depends on the last.
        """
        if any(row["answer"] is None for row in self._changed.values()):
            self._write()  # what was freed or leased again just now is to be seen
        each = 1 if self._settings.gold_rate else MOST_HELD
        users, now = [seat.user for seat in wanting], max(seat.now for seat in wanting)
        wanted = sum(min(each, seat.missing) for seat in wanting)
        gold = _Gold(self, wanting) if self._settings.gold_rate else None
        found = self._rows(search, users=users, people=len(users), count=wanted, now=now)
        left: list[Any] = [*found]
        about = {one.item for one in left} | (gold.items if gold else set())
        before = self._rows(queries.ASKED, items=sorted(about), users=users)
        busy = {(row.item, row.user) for row in before if row.busy}
        given: list[tuple[_Seat, Any]] = []  # with the rounds that they get
        for seat in wanting:
            for _ in range(min(each, seat.missing)):
                new = (one for one in left if (one.item, seat.user) not in busy
                       and (one.expires is None or one.expires <= seat.now))  # fmt: skip
                place = next(new, None)
                if place is None:
                    break
                place = (gold and gold.take(seat)) or place
                if place in left:
                    left.remove(place)
                busy.add((place.item, seat.user))
                given.append((seat, place))
        if gold:
            queries.add(self._db, slots, list(gold.further.values()), "item")
        self._hand_out(given, {(row.item, row.user, row.round): row._mapping for row in before})
        got = {seat.user for seat, _ in given}
        ended = len(found) < wanted or not got
        return [
            seat for seat in wanting
            if seat.missing and not (ended and (gold is None or seat.user not in got))
        ]  # fmt: skip

    def _hand_out(
        self, given: Sequence[tuple[_Seat, Any]], before: Mapping[tuple[int, int, int], Any]
    ) -> None:
        """Ask the questions, those again that an annotator had there before."""
        tests = sorted({place.item for _, place in given if place.test})
        gold = {row.id: row.gold for row in self._rows(queries.GOLD_CLASSES, items=tests)}
        new: dict[tuple[int, int], dict[str, Any]] = {}
        for seat, place in given:
            if (place.item, seat.user, place.round) not in before:
                drawn = self._proposer.proposal(place.item, place.round, gold.get(place.item))
                new[place.item, place.round] = {
                    "item": place.item, "user": seat.user, "round": place.round,
                    "gold": place.test, "mode": self._settings.mode, "proposed": drawn.classes,
                    "size": len(drawn.classes), "law": drawn.law, "seed": drawn.seed,
                    "given": seat.now,
                }  # fmt: skip
        for row in queries.add(self._db, questions, list(new.values()), "item", "round", "id"):
            new[row.item, row.round]["id"] = row.id
        for seat, place in given:
            earlier = before.get((place.item, seat.user, place.round))
            self._lease(seat, place, earlier or new[place.item, place.round])


class _Gold:
    """The gold questions of annotators whose next one is to be gold."""

    def __init__(self, wave: _Wave, wanting: Sequence[_Seat]) -> None:
        rows = wave._rows
        users, now = [seat.user for seat in wanting], max(seat.now for seat in wanting)
        last = {row.user: row.last or 0 for row in rows(queries.LAST_QUESTIONS, users=users)}
        due = [user for user in users if wave._proposer.is_gold(user, last[user])]
        found = rows(queries.GOLD_ITEMS, users=due)
        self._item = {row.user: row.item for row in found if row.item is not None}
        self.items = {*self._item.values()}
        items = sorted(self.items)
        self._free: defaultdict[int, list[Any]] = defaultdict(list)
        for row in rows(queries.GOLD_ROUNDS, items=items, now=now):
            self._free[row.item].append(row)
        self._last = {row.item: row for row in rows(queries.LAST_ROUNDS, items=items)}
        self.further: dict[tuple[int, int], dict[str, Any]] = {}  # by item and round

    def take(self, seat: _Seat) -> Any:
        """Take a round of a gold item, a further one where all are taken; None: no gold is due."""
        item = self._item.get(seat.user)
        if item is None:
            return None
        free = self._free[item]
        for one in free:
            if one.expires is None or one.expires <= seat.now:
                free.remove(one)
                return one
        last = self._last[item]
        number = last.last + 1 + sum(place[0] == item for place in self.further)
        row = {"item": item, "round": number, "place": last.place, "needed": False, "test": True}
        self.further[item, number] = row
        return SimpleNamespace(**row)


def _question(row: Mapping[Any, Any], expires: datetime) -> Question:
    names = ("id", "item", "user", "round", "mode", "proposed", "law", "seed", "gold")
    return Question(expires=expires, **{name: row[name] for name in names})


def _check(reply: Reply) -> None:
    """Raise unless the reply is well formed, whatever it answers."""
    for name, text in (("id", reply.id), ("undoes", reply.undoes)):
        fits = isinstance(text, str) and 1 <= len(text) <= _LONGEST_ID
        if text is not None and not (fits and all("!" <= c <= "~" for c in text)):
            problem = f"the reply's {name} is {brief(text)}"
            remedy = f"use 1 to {_LONGEST_ID} letters, digits and marks of ASCII"
            raise RefusedError(problem, remedy)
    if str(reply.id).startswith(_RESERVED):
        problem = f"the reply's id begins with {_RESERVED!r}, as those of imported answers do"
        raise RefusedError(problem, "begin it otherwise")
    if reply.id is None or reply.kind not in get_args(Kind):
        raise RefusedError(f"there is no reply of kind {brief(reply.kind)}", "reload the page")
    for code in (*reply.excluded, *(() if reply.which is None else (reply.which,))):
        if type(code) is not int:
            raise RefusedError(f"there is no class {brief(code)}", "name classes by their numbers")
    for name, given, kind in (
        ("excluded", bool(reply.excluded), "excluded"),
        ("which", reply.which is not None, "which"),
        ("undoes", reply.undoes is not None, "undo"),
    ):
        if given and reply.kind != kind:
            raise RefusedError(f"a reply of kind {reply.kind!r} has no {name!r}", "leave it out")


def _content(reply: Reply) -> str:
    """Return what the reply says as text; a copy sent again says the same."""
    excluded = sorted(set(reply.excluded))
    return json.dumps([reply.kind, reply.question, excluded, reply.which, reply.undoes])


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
