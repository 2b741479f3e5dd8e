"""The store: everything a labelling project knows, in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import secrets
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from shutil import disk_usage
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, func, insert, literal, select, union_all, update

from ruleout.labels.classes import class_names, storable
from ruleout.labels.errors import brief
from ruleout.web import accounts, answer_log, schema
from ruleout.web.accounts import Accounts, lock_user, moment, number_of
from ruleout.web.answer_log import AnswerLog
from ruleout.web.database import LOST, Database, make, one_by_one, upgrade
from ruleout.web.entities import (
    IMPORTED,
    MOST_HELD,
    Brought,
    Grown,
    Item,
    LogRow,
    Mode,
    Question,
    Receipt,
    RefusedError,
    Reply,
    Settings,
    StoreError,
    Turn,
    TurnRequest,
    UnavailableError,
    User,
)
from ruleout.web.project_progress import Progress, progress
from ruleout.web.proposals import Proposer, capped_law
from ruleout.web.queries import REVISION, add, hold, in_chunks
from ruleout.web.schema import answers, decisions, items, key, project, questions, slots
from ruleout.web.turns import sent, take_turns, took

if TYPE_CHECKING:  # its reader needs pyarrow, which the service does without
    from ruleout.web.importing import Earlier

_ITEM = select(items).where(items.c.id == bindparam("item"))
_ASKED = _ITEM.where(
    select(questions.c.id)
    .where(questions.c.item == items.c.id, questions.c.user == bindparam("user"))
    .exists()
)

#: Every round that an item has had, and the last of them: a skip has a question and no slot.
_HAD = union_all(*(select(one.c.item, one.c.round) for one in (slots, questions))).subquery()
_LAST = func.max(_HAD.c.round).label("last")

_ROOM = 1 << 16  # bytes of a disk that count as none: an answer takes a page or two


class Store(Accounts, AbstractContextManager["Store"]):
    """A labelling project; :meth:`create` makes one and :meth:`open` opens it.

    Every method may be called from any thread, and any number of processes may have the same
    project open. What a method returns is on disk; where it raises, nothing has changed.
    Times come from `now`, by default this machine's clock.
    """

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.lanes = database.lanes  # how many calls of `turns` are worth running at a time
        with database.looking() as db:
            row = db.execute(select(project)).one_or_none()
        self._current = _read_settings(row)
        #: 16 hex digits, the same for the life of the project.
        made = f"ruleout {row.created.isoformat()}" if row else ""
        self.identity = hashlib.sha256(made.encode()).hexdigest()[:16]

    @property
    def settings(self) -> Settings:
        """What is asked, and how, as it was when something was read or written last."""
        return self._current[1]

    def _refreshed(self, db: Connection, revision: int | None = None) -> tuple[Settings, Proposer]:
        """Return how to ask, read anew where the project has grown."""
        now = db.execute(REVISION).scalar_one() if revision is None else revision
        if now > self._current[0]:
            self._current = _read_settings(db.execute(select(project)).one())
        return self._current[1:]

    @classmethod
    def create(cls, url: str, settings: Settings, items: Iterable[Item]) -> Store:
        """Make a project in an empty database; the file, where it is one, is made too."""
        with _opening(url) as database:
            if database.file and not database.file.parent.is_dir():
                problem = f"there is no folder {str(database.file.parent)!r}"
                raise StoreError(problem, "make it first")
            every = list(items)
            _check_settings(settings)
            if not every:
                raise StoreError("there are no items", "give at least one")
            _check_items(every, len(settings.classes))
            row = {"id": 1, "settings": json.dumps(asdict(settings)), "created": moment(None)}
            with database.writing() as db:
                make(database, db)
                db.execute(insert(project).values({**row, "revision": 0, "secret": new_secret()}))
                _write_items(db, settings, every)
                database.settle(db, schema.items, schema.slots)
            database.keep_a_journal()
            return cls(database)

    @classmethod
    def open(cls, url: str) -> Store:
        """Open a project; older tables are brought up to date first."""
        with _opening(url) as database:
            if database.file and not database.file.is_file():
                raise StoreError(f"there is no file {str(database.file)!r}", LOST)
            with database.writing() as db:
                upgrade(database, db)
            database.keep_a_journal()
            return cls(database)

    def grow(self, settings: Settings, given: Iterable[Item] = ()) -> Grown:
        """Ask about more, while others are labelling: all of it, or nothing.

        The settings may have more classes (at the end of the list), more rounds, and another gold
        rate. Items that are there already are known by name; they may be of a known class now.
        """
        every = list(given)
        with self._database.writing() as db:
            self._database.alone(db)
            self._database.hold_turns(db)
            before, _ = self._refreshed(db)
            grown = grow_project(db, before, settings, every)
            self._database.settle(db, schema.items, schema.slots)
        with self.reading():
            return grown

    def next(self, user: User | int, count: int = 1, now: datetime | None = None) -> list[Question]:
        """Return up to `count` questions for the annotator: those still open, then new ones."""
        return self.turn(user, None, count, now).questions

    def answer(self, user: User | int, reply: Reply, now: datetime | None = None) -> Receipt:
        """Record a reply; the same reply again gets the same receipt."""
        return self.turn(user, reply, 0, now).receipt

    def turn(
        self, user: User | int, reply: Reply | None, hold: int, now: datetime | None = None
    ) -> Turn:
        """Record a reply and return up to `hold` questions that are then open, in one step."""
        least = 1 if reply is None else 0
        if type(hold) is not int or not least <= hold <= MOST_HELD:
            remedy = f"ask for {least} to {MOST_HELD}"
            raise RefusedError(f"{brief(hold)} questions asked for", remedy)
        request = TurnRequest(user=number_of(user), hold=hold, now=moment(now), reply=reply)
        found = self.turns([request])[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def turns(self, requests: Sequence[TurnRequest]) -> list[Turn | BaseException]:
        """Take many turns, at best in one transaction; return what each gets, or is to raise."""
        try:
            return [*self._together(requests)]
        except Exception as error:  # of one of them, who must not harm the others
            if not one_by_one(error):
                raise
        found: list[Turn | BaseException] = []
        for request in requests:
            try:
                found += self._together([request])
            except Exception as error:
                found.append(error)
        return found

    def _together(self, requests: Sequence[TurnRequest]) -> list[Turn | RefusedError]:
        with self._database.writing() as db:
            self._database.by_index(db)
            return take_turns(db, self._refreshed, requests)

    def bring(self, answers: Iterable[Earlier], now: datetime | None = None) -> Brought:
        """Import answers that were given elsewhere; those that are known are not added again.

        An answer takes a free round that its item needs, so that it is not asked for again; else,
        or where its annotator has had a round of the item, a further one that is not needed. A
        "skip" takes none. A "which" goes with the "yes" of its annotator to a set that holds the
        class, if there is one.
        """
        given, at = list(answers), moment(now)
        with self._database.writing() as db:
            self._database.alone(db)
            settings, fresh = self._refreshed(db)[0], _fresh(db, given)
            for one in fresh:
                _check_earlier(one, len(settings.classes))
            numbers = _item_numbers(db, fresh)
            who, added = _people(db, fresh, at)
            rounds = _Rounds(db, list(numbers.values()))
            found = {  # "which" comes last, when every "yes" has its place
                one.id: rounds.place(one, numbers[one.item], who[one.annotator])
                for one in sorted(fresh, key=lambda one: one.kind == "which")
            }
            if fresh:
                _write_earlier(db, settings.mode, [(one, found[one.id]) for one in fresh], at)
                self._database.settle(db, schema.slots, schema.questions, schema.answers)
            return Brought(added=len(fresh), known=len(given) - len(fresh), users=added)

    def decide(
        self,
        item: int,
        by: User,
        *,
        which: int | None = None,
        voids: Iterable[int] = (),
        seen: int | None = None,
        now: datetime | None = None,
    ) -> None:
        """Decide what an item is, or which answers about it to leave out; the last decision counts.

        With a class, answers that rule it out are left out. With neither, nothing is decided any
        more. No row is ever changed: the decisions before stay in the database. Who says how many
        decisions about the item they have `seen` overrides no other.
        """
        out, at, number = sorted({key(one) for one in voids}), moment(now), key(item)
        row = {"by": by.id, "item": number, "which": which, "voids": tuple(out), "at": at}
        with self._database.writing() as db:
            if lock_user(db, by.id).role != "lead":
                raise RefusedError("only leads decide", "ask one of them", reason="foreign")
            k = len(self._refreshed(db)[0].classes)
            if which is not None and key(which) not in range(k):
                raise RefusedError(f"there is no class {brief(which)}", f"classes are 0 to {k - 1}")
            _check_decision(db, number, out, seen)
            db.execute(insert(decisions).values(row))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One view of the database for several queries, whatever is written meanwhile."""
        with self._database.reading() as db:
            self._refreshed(db)
            yield db

    def answer_log(self) -> AnswerLog:
        """Return every answer as it stands now, in columns, with all items and users."""
        with self.reading() as db:
            return answer_log.read(db, self.settings)

    def log(self) -> Iterator[LogRow]:
        """Yield every answer as it stood when reading began, in the order of arrival."""
        yield from self.answer_log()

    def progress(self, user: User | int | None = None) -> Progress:
        """Return how far the project is, with the counts and the pace of one annotator or all."""
        with self.reading() as db:
            return progress(db, self.settings, None if user is None else number_of(user))

    def items(self, first: int = 1, last: int | None = None) -> Iterator[tuple[int, Item]]:
        """Yield the items with their numbers, in the order they were given, from some on."""
        query = select(items).where(items.c.position >= first).order_by(items.c.position)
        if last is not None:
            query = query.where(items.c.position <= last)
        with self._database.reading() as db:
            for row in db.execute(query.execution_options(yield_per=1000)):
                yield row.id, _item(row)

    def item(self, number: int, user: User | None = None) -> Item:
        """Return one item that this user may see: a lead any, others what they were asked about."""
        query = _ITEM if user is None or user.role == "lead" else _ASKED
        with self._database.looking() as db:
            row = db.execute(query, {"item": key(number), "user": user and user.id}).first()
        if row is None:
            problem = f"there is no item {brief(number)}"
            raise RefusedError(problem, "use a number that a question names", reason="unknown")
        return _item(row)

    def some_items(self, numbers: Iterable[int]) -> dict[int, Item]:
        with self._database.looking() as db:
            rows = in_chunks(db, select(items), items.c.id, numbers)
            return {row.id: _item(row) for row in rows}

    def ping(self) -> None:
        """Raise :class:`UnavailableError` where no database answers, or it can keep nothing."""
        file = self._database.file
        if file is not None and not file.is_file():  # an open one would still take answers
            raise UnavailableError("the database failed (its file is gone)")
        if file is not None and disk_usage(file.parent).free < _ROOM:
            raise UnavailableError("the database failed (its disk is full)")
        with self._database.looking() as db:
            db.execute(select(1))

    def check(self) -> list[str]:
        """Return what is broken, one sentence each; empty: nothing is."""
        with self._database.reading() as db:
            return self._database.damage(db) + answer_log.disagreements(db)

    def copy_to(self, file: Path) -> None:
        """Write the database as it is at one moment into a new SQLite file."""
        self._database.copy_to(file)

    def close(self) -> None:
        self._database.close()

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def _opening(url: str) -> Iterator[Database]:
    """Yield a database, which is closed again where it cannot be used."""
    database = Database(url)
    try:
        yield database
    except BaseException as error:
        database.close()
        if not isinstance(error, UnavailableError):
            raise
        problem = f"cannot open {database.name} ({error.cause})"
        remedy = "check the address and the server"
        if database.file:
            remedy = "see that you may write it, or restore it from a backup"
        raise StoreError(problem, remedy) from None


def _write_items(db: Connection, settings: Settings, every: Sequence[Item]) -> None:
    """Write items down after those that are there, with a slot for every answer."""
    secret = db.execute(select(project.c.secret)).scalar_one()
    taken = {*db.execute(select(items.c.id)).scalars()}
    # Annotators see the numbers, and the order of asking: neither may tell which file it is.
    rng, first = np.random.default_rng((secret, settings.seed, len(taken))), len(taken)
    numbers, places = _lots(rng, len(every), taken), rng.permutation(len(every)) + first
    rows = [
        {**vars(one), "id": number, "cells": json.dumps(dict(one.cells), default=str),
         "place": place, "position": position}
        for position, (one, number, place)
        in enumerate(zip(every, numbers, places.tolist(), strict=True), first + 1)
    ]  # fmt: skip
    rounds = [
        {"item": row["id"], "round": n, "place": row["place"], "needed": True,
         "test": settings.gold_rate > 0 and row["gold"] is not None}
        for row in rows for n in range(settings.rounds)
    ]  # fmt: skip
    if rows:
        db.execute(insert(items), rows)
        db.execute(insert(slots), rounds)


def _lots(rng: np.random.Generator, count: int, taken: set[int]) -> list[int]:
    """Draw numbers with so many free ones between them that nobody can tell when one was drawn."""
    end = 10**6 if count + len(taken) <= 10**5 else 10**9
    found: dict[int, None] = {}
    while len(found) < count:
        drawn = rng.integers(1, end, count - len(found)).tolist()
        found |= dict.fromkeys(one for one in drawn if one not in taken)
    return list(found)


def grow_project(
    db: Connection, before: Settings, settings: Settings, given: Sequence[Item]
) -> Grown:
    """Add what is new, inside one transaction; what was asked and answered stays as it is."""
    _check_growth(before, settings)
    columns = items.c.id, items.c.name, items.c.kind, items.c.sha256, items.c.gold
    there = db.execute(select(*columns)).all()
    known = {unicodedata.normalize("NFC", row.name): row for row in there}
    fresh, tests = [], []
    for one in given:
        row = known.get(unicodedata.normalize("NFC", one.name))
        if row is None:
            fresh.append(one)
            continue
        if (row.kind, row.sha256) != (one.kind, one.sha256):
            problem = f"item {brief(one.name)} is there already, with another content"
            remedy = "bring the old one back, or give the new one a name of its own"
            raise StoreError(problem, remedy)
        if one.gold is not None and row.gold not in (None, one.gold):
            problem = f"item {brief(one.name)} is known to be {brief(before.classes[row.gold])}"
            raise StoreError(problem, "leave it out, or decide what it is on the team page")
        if one.gold is not None and row.gold is None:
            tests.append({"at": row.id, "known": one.gold})
    _check_items(fresh, len(settings.classes))
    if any(one.kind != there[0].kind for one in fresh):
        problem = f"the items of the project are of the kind {there[0].kind!r}, not the new ones"
        raise StoreError(problem, "give items of one kind (--text COLUMN makes rows texts)")
    if settings.rounds > before.rounds:
        _write_rounds(db, settings.rounds - before.rounds)
    if tests:
        gold = update(items).where(items.c.id == bindparam("at")).values(gold=bindparam("known"))
        db.execute(gold, tests)
    _write_items(db, settings, fresh)
    if settings.gold_rate:
        free = slots.c.item.in_(select(items.c.id).where(items.c.gold.is_not(None)))
        db.execute(update(slots).where(slots.c.question.is_(None), free).values(test=True))
    grown = before.grown
    if len(settings.classes) > len(before.classes):
        asked = db.execute(select(func.max(questions.c.id))).scalar_one() or 0
        grown = (*grown, (asked, len(before.classes)))
    text = json.dumps(asdict(replace(settings, grown=grown)))
    db.execute(update(project).values(settings=text, revision=project.c.revision + 1))
    named = sum(one.gold is not None for one in fresh) + len(tests)
    return Grown(items=len(fresh), known=len(given) - len(fresh), gold=named)


def _write_rounds(db: Connection, more: int) -> None:
    """Add rounds to every item, after those that it has had."""
    row = select(_HAD.c.item, _LAST + 1, items.c.place, literal(True), literal(False))
    row = row.join(items, items.c.id == _HAD.c.item).group_by(_HAD.c.item, items.c.place)
    names = ("item", "round", "place", "needed", "test")
    for _ in range(more):
        db.execute(insert(slots).from_select(names, row))


def _check_decision(db: Connection, item: int, out: Sequence[int], seen: int | None) -> None:
    """Lock an item, so that leads decide about it in turn, and raise where they cannot."""
    about = db.execute(_ITEM.with_for_update(key_share=True), {"item": item}).first()
    said = select(answers.c.number).join(questions, answers.c.question == questions.c.id)
    there = {*in_chunks(db, said.where(questions.c.item == item), answers.c.number, out)}
    if about is None or len(there) < len(out):
        problem = "there is no such item, or no such answer about it"
        raise RefusedError(problem, "reload the page", reason="unknown")
    made = select(func.count()).where(decisions.c.item == item)
    if seen not in (None, db.execute(made).scalar_one()):
        problem = f"a lead decided about {brief(about.name)} after this page was loaded"
        remedy = "see how it stands now, and decide again if that is wrong"
        raise RefusedError(problem, remedy, reason="conflict")


def _fresh(db: Connection, given: Sequence[Earlier]) -> list[Earlier]:
    """Return each answer once that is not there yet."""
    by_id: dict[str, Earlier] = {}
    for one in given:
        by_id.setdefault(one.id, one)
    logged = {one.logged for one in given if one.logged and storable(one.logged)}
    ids = [*by_id, *sorted(logged)]
    known = {row.id for row in in_chunks(db, select(answers.c.id), answers.c.id, ids)}
    return [one for number, one in by_id.items() if not known & {number, one.logged}]


def _check_earlier(one: Earlier, k: int) -> None:
    which = () if one.which is None else (one.which,)
    codes = (*one.proposed, *one.excluded, *which)
    most = {"yes": one.proposed, "no": one.proposed, "excluded": one.excluded}.get(one.kind, ())
    wrong = (
        one.kind not in ("yes", "no", "which", "excluded", "skip")
        or any(type(code) is not int or not 0 <= code < k for code in codes)
        or len(set(most)) == k
        or (one.kind in ("yes", "no") and not one.proposed)
        or (one.kind == "which") == (one.which is None)
    )
    if wrong:
        problem = f"the answer {brief(one.kind)} about {brief(one.item)} makes no sense here"
        raise RefusedError(problem, f"name classes 0 to {k - 1}, and not all of them")


def _item_numbers(db: Connection, fresh: Sequence[Earlier]) -> dict[str, int]:
    """Return the numbers of the items by name; locked, so that rounds are added in turn."""
    names = dict.fromkeys(one.item for one in fresh)
    query = select(items.c.id, items.c.name).with_for_update(key_share=True)
    rows = in_chunks(db, query, items.c.name, [name for name in names if storable(name)])
    found = {row.name: row.id for row in rows}
    for name in names:
        if name not in found:
            problem = f"there is no item {brief(name)}"
            raise RefusedError(problem, "name items as the project does", reason="unknown")
    return found


def _people(
    db: Connection, fresh: Sequence[Earlier], now: datetime
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the numbers of the annotators by name; who is absent is added, disabled."""
    known = {row.folded: row.id for row in db.execute(select(schema.users))}
    found, added = {}, []
    for name in dict.fromkeys(one.annotator for one in fresh):
        plain = accounts.folded(accounts.checked_name(name))
        if plain not in known:
            user = accounts.add_user(db, name, "annotator", now, disabled=True)
            known[plain] = user.id
            added.append(user.name)
        found[name] = known[plain]
    return found, tuple(added)


@dataclass
class _Place:
    """A round of an item for an annotator's answer."""

    item: int
    user: int
    round: int
    needed: bool | None = None  # by the item; None: there is no such round, as for a skip
    taker: str | None = None  # the id of the answer that fills it; None: it was filled before
    question: int | None = None


class _Rounds:
    """The rounds of some items: what is free, who has had one, what the last is."""

    def __init__(self, db: Connection, numbers: list[int]) -> None:
        free = select(slots.c.item, slots.c.round).where(slots.c.question.is_(None), slots.c.needed)
        free = free.order_by(slots.c.item, slots.c.round.desc()).with_for_update(key_share=True)
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        for row in in_chunks(db, free, slots.c.item, numbers):
            self._free[row.item].append(row.round)
        # Who skipped a round may take that back, and gets the same question there again.
        same = (slots.c.item == questions.c.item) & (slots.c.round == questions.c.round)
        asked = select(questions.c.item, questions.c.user).join(slots, same)
        asked = asked.where(slots.c.needed | slots.c.test)
        rows = in_chunks(db, asked, questions.c.item, numbers)
        self._had = {(row.item, row.user) for row in rows}
        last = select(_HAD.c.item, _LAST).group_by(_HAD.c.item)
        self._last = {row.item: row.last for row in in_chunks(db, last, _HAD.c.item, numbers)}
        self._yes: defaultdict[tuple[int, int], list[tuple[_Place, tuple[int, ...]]]]
        self._yes = defaultdict(list)  # every imported "yes" that no "which" has followed
        query = (
            select(questions, answers.c.kind)
            .join(answers, answers.c.question == questions.c.id)
            .outerjoin(schema.undone, schema.undone.c.answer == answers.c.number)
            .where(questions.c.law == IMPORTED, schema.undone.c.answer.is_(None))
            .where(answers.c.kind.in_(("yes", "which")))
        )
        said = list(in_chunks(db, query, questions.c.item, numbers))
        followed = {row.id for row in said if row.kind == "which"}
        for row in said:
            if row.id not in followed:
                place = _Place(row.item, row.user, row.round, question=row.id)
                self._yes[row.item, row.user].append((place, row.proposed))

    def place(self, one: Earlier, item: int, user: int) -> _Place:
        """Return the round that an answer takes, or that of the "yes" it goes with."""
        said = self._yes[item, user]
        if one.kind == "which":
            for number, (place, proposed) in enumerate(said):
                if one.which in proposed:
                    del said[number]
                    return place
        fills, free = one.kind != "skip", self._free[item]
        if fills and free and (item, user) not in self._had:
            self._had.add((item, user))
            place = _Place(item, user, free.pop(), needed=True, taker=one.id)
        else:
            self._last[item] += 1
            needed = False if fills else None
            place = _Place(item, user, self._last[item], needed=needed, taker=one.id)
        if one.kind == "yes":
            said.append((place, one.proposed))
        return place


def _write_earlier(
    db: Connection, mode: Mode, pairs: Sequence[tuple[Earlier, _Place]], now: datetime
) -> None:
    """Write a question down for every place that is taken now, all answers, and fill the rounds."""
    modes = {"excluded": "rule-out", "skip": mode}
    taken = {(at.item, at.round): (one, at) for one, at in pairs if at.taker == one.id}
    rows: list[dict[str, Any]] = [
        {"item": at.item, "user": at.user, "round": at.round, "gold": False,
         "mode": modes.get(one.kind, "propose"), "proposed": tuple(sorted(set(one.proposed))),
         "size": len(set(one.proposed)), "law": IMPORTED, "seed": 0, "given": now}
        for one, at in taken.values()
    ]  # fmt: skip
    for row in add(db, questions, rows, "item", "round", "id"):
        taken[row.item, row.round][1].question = row.id
    rows = [
        {"id": one.id, "user": at.user, "question": at.question, "kind": one.kind,
         "excluded": tuple(sorted(set(one.excluded))), "which": one.which, "late": False,
         "status": IMPORTED, "took_ms": took(one.took_ms), "sent": sent(one.time),
         "received": now, "content": IMPORTED}
        for one, at in pairs
    ]  # fmt: skip
    numbers = {row.id: row.number for row in add(db, answers, rows, "id", "number")}
    filled = [(one, at) for one, at in taken.values() if at.needed is not None]
    add(db, slots, [  # nobody is asked for them, so that their place in the order does not matter
        {"item": at.item, "round": at.round, "place": 0, "needed": False, "test": False}
        for _, at in filled if not at.needed
    ], "item")  # fmt: skip
    hold(db, [
        {"at_item": at.item, "at_round": at.round, "question": at.question,
         "holder": at.user, "expires": now, "answer": numbers[one.id]}
        for one, at in filled
    ])  # fmt: skip


def new_secret() -> int:
    """Return what nobody can guess: it goes into the numbers of items and into every draw."""
    return secrets.randbits(63)


def _read_settings(row: Row[Any] | None) -> tuple[int, Settings, Proposer]:
    """Return the revision of the project, and how it asks."""
    try:
        found = json.loads(row.settings)  # type: ignore[union-attr]
        grown = tuple((int(question), int(k)) for question, k in found.pop("grown", ()))
        settings = Settings(**{**found, "classes": tuple(found["classes"]), "grown": grown})
        _check_settings(settings)
        return row.revision, settings, Proposer(settings, row.secret)  # type: ignore[union-attr]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        problem = "the settings of the project are damaged"
        raise StoreError(problem, "restore the database from a backup") from None


def _check_growth(before: Settings, settings: Settings) -> None:
    _check_settings(settings)
    k, rounds, rate = len(before.classes), before.rounds, before.gold_rate
    same = replace(settings, classes=settings.classes[:k], rounds=rounds, gold_rate=rate)
    if replace(same, grown=before.grown) != before or settings.rounds < rounds:
        problem = f"the project asks about {k} classes in {rounds} round(s)"
        remedy = "add classes at the end of the list, or rounds; else make a new project"
        raise StoreError(problem, remedy)


def _check_settings(one: Settings) -> None:
    class_names(one.classes)
    capped_law(one.law, len(one.classes), one.cap)
    month = 30 * 86400
    for name, fits, remedy in (
        ("mode", one.mode in ("propose", "rule-out"), "use 'propose' or 'rule-out'"),
        ("rounds", 1 <= one.rounds <= 1000, "ask for 1 to 1000 answers per item"),
        ("gold_rate", 0 <= one.gold_rate <= 0.5, "choose a share from 0 to 0.5"),
        ("lease_seconds", 1 <= one.lease_seconds <= month, "choose from 1 second to 30 days"),
        ("seed", 0 <= one.seed < 2**63, "choose a whole number from 0 to 2^63 - 1"),
    ):
        if not fits:
            raise StoreError(f"{name} = {brief(getattr(one, name))}", remedy)


def _check_items(every: Sequence[Item], classes: int) -> None:
    seen: set[str] = set()
    for row, one in enumerate(every):
        if not one.name or one.name in seen:
            problem = f"item name {brief(one.name)} is {'taken' if one.name else 'empty'}"
            raise StoreError(problem, "give every item a name of its own", row=row)
        seen.add(one.name)
        if not all(map(storable, (one.name, one.path or "", one.text or ""))):
            problem = f"item {brief(one.name)} holds a character that cannot be stored"
            raise StoreError(problem, "rename the file, or write the text as UTF-8", row=row)
        if one.gold is not None and not 0 <= one.gold < classes:
            problem = f"item {brief(one.name)} has gold class {one.gold}"
            raise StoreError(problem, f"classes go from 0 to {classes - 1}", row=row)


def _item(row: Row[Any]) -> Item:
    return Item(
        name=row.name, kind=row.kind, path=row.path, text=row.text,
        cells=json.loads(row.cells), sha256=row.sha256, gold=row.gold,
    )  # fmt: skip
