"""The store: everything a labelling project knows, in SQLite or PostgreSQL."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, insert, select

from ruleout.labels.classes import class_names, storable
from ruleout.labels.errors import brief
from ruleout.web import answer_log, schema
from ruleout.web.accounts import Accounts, moment, number_of
from ruleout.web.answer_log import AnswerLog
from ruleout.web.database import Database, make, one_by_one, upgrade
from ruleout.web.earlier_answers import bring
from ruleout.web.entities import (
    MOST_HELD,
    Brought,
    Item,
    LogRow,
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
from ruleout.web.queries import in_chunks
from ruleout.web.schema import items, key, project, questions, slots
from ruleout.web.turns import take_turns

if TYPE_CHECKING:  # its reader needs pyarrow, which the service does without
    from ruleout.web.importing import Earlier

_ITEM = select(items).where(items.c.id == bindparam("item"))
_ASKED = _ITEM.where(
    select(questions.c.id)
    .where(questions.c.item == items.c.id, questions.c.user == bindparam("user"))
    .exists()
)


class Store(Accounts):
    """A labelling project; :meth:`create` makes one and :meth:`open` opens it.

    Every method may be called from any thread, and any number of processes may have the same
    project open. What a method returns is on disk; where it raises, nothing has changed.
    Times come from `now`, by default this machine's clock.
    """

    def __init__(self, database: Database, settings: Settings) -> None:
        super().__init__(database)
        self.settings = settings
        self.lanes = database.lanes  # how many calls of `turns` are worth running at a time
        with database.looking() as db:
            made, secret = db.execute(select(project.c.created, project.c.secret)).one()
        #: 16 hex digits, the same for the life of the project.
        self.identity = hashlib.sha256(f"ruleout {made.isoformat()}".encode()).hexdigest()[:16]
        self._proposer = Proposer(settings, secret)

    @classmethod
    def create(cls, url: str, settings: Settings, items: Iterable[Item]) -> Store:
        """Make a project in an empty database; the file, where it is one, is made too."""
        with _opening(url) as database:
            if database.file and not database.file.parent.is_dir():
                problem = f"there is no folder {str(database.file.parent)!r}"
                raise StoreError(problem, "make it first")
            with database.writing() as db:
                make(database, db)
                write_project(db, settings, items, moment(None))
                database.settle(db, schema.items, schema.slots)
            database.keep_a_journal()
            return cls(database, settings)

    @classmethod
    def open(cls, url: str) -> Store:
        """Open a project; older tables are brought up to date first."""
        with _opening(url) as database:
            if database.file and not database.file.is_file():
                problem = f"there is no file {str(database.file)!r}"
                raise StoreError(problem, "make a project with `ruleout label init`")
            with database.writing() as db:
                upgrade(database, db)
                settings = _read_settings(db)
            database.keep_a_journal()
            return cls(database, settings)

    def next(self, user: User | int, count: int = 1, now: datetime | None = None) -> list[Question]:
        """Return up to `count` questions for the annotator: those still open, then new ones."""
        return self._turn(user, None, count, now, least=1).questions

    def answer(self, user: User | int, reply: Reply, now: datetime | None = None) -> Receipt:
        """Record a reply; the same reply again gets the same receipt."""
        return self._turn(user, reply, 0, now).receipt

    def turn(self, user: User | int, reply: Reply, hold: int, now: datetime | None = None) -> Turn:
        """Record a reply and return up to `hold` questions that are then open, in one step."""
        return self._turn(user, reply, hold, now)

    def turns(self, requests: Sequence[TurnRequest]) -> list[Turn | BaseException]:
        """Take many turns, at best in one transaction; return what each gets, or is to raise."""
        try:
            return [*self._together(requests)]
        except Exception as error:  # of one of them, who must not harm the others
            if not one_by_one(error):
                raise
        return [self._alone(request) for request in requests]

    def _turn(
        self, user: User | int, reply: Reply | None, hold: int, now: datetime | None, least: int = 0
    ) -> Turn:
        if type(hold) is not int or not least <= hold <= MOST_HELD:
            remedy = f"ask for {least} to {MOST_HELD}"
            raise RefusedError(f"{brief(hold)} questions asked for", remedy)
        request = TurnRequest(user=number_of(user), hold=hold, now=moment(now), reply=reply)
        found = self.turns([request])[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def _together(self, requests: Sequence[TurnRequest]) -> list[Turn | RefusedError]:
        with self._database.writing() as db:
            self._database.by_index(db)
            return take_turns(db, self.settings, self._proposer, requests)

    def _alone(self, request: TurnRequest) -> Turn | BaseException:
        try:
            return self._together([request])[0]
        except Exception as error:
            return error

    def bring(self, answers: Iterable[Earlier], now: datetime | None = None) -> Brought:
        """Import answers that were given elsewhere; those that are known are not added again."""
        given, at = list(answers), moment(now)
        with self._database.writing() as db:
            self._database.alone(db)
            brought = bring(db, self.settings, given, at)
            if brought.added:
                self._database.settle(db, schema.slots, schema.questions, schema.answers)
            return brought

    def reading(self) -> AbstractContextManager[Connection]:
        """One view of the database for several queries, whatever is written meanwhile."""
        return self._database.reading()

    def answer_log(self) -> AnswerLog:
        """Return every answer as it stands now, in columns, with all items and users."""
        with self._database.reading() as db:
            return answer_log.read(db, self.settings.classes)

    def log(self) -> Iterator[LogRow]:
        """Yield every answer as it stood when reading began, in the order of arrival."""
        yield from self.answer_log()

    def progress(self, user: User | int | None = None) -> Progress:
        """Return how far the project is, with the counts and the pace of one annotator or all."""
        with self._database.reading() as db:
            return progress(db, self.settings, None if user is None else number_of(user))

    def items(self, first: int = 1, last: int | None = None) -> Iterator[tuple[int, Item]]:
        """Yield the items with their numbers, in the order they were given, from some on."""
        query = select(items).where(items.c.position >= first).order_by(items.c.position)
        if last is not None:
            query = query.where(items.c.position <= last)
        with self._database.reading() as db:
            for row in db.execute(query.execution_options(yield_per=1000)):
                yield row.id, _item(row)

    def item(self, number: int) -> Item:
        return self._one_item(_ITEM, number)

    def item_for(self, user: User, number: int) -> Item:
        """Return one item that this user may see: a lead any, others what they were asked about."""
        return self._one_item(_ITEM if user.role == "lead" else _ASKED, number, user.id)

    def _one_item(self, query: Any, number: int, user: int = -1) -> Item:
        with self._database.looking() as db:
            row = db.execute(query, {"item": key(number), "user": user}).first()
        if row is None:
            problem = f"there is no item {brief(number)}"
            raise RefusedError(problem, "use a number that a question names", reason="unknown")
        return _item(row)

    def some_items(self, numbers: Iterable[int]) -> dict[int, Item]:
        with self._database.looking() as db:
            rows = in_chunks(db, select(items), items.c.id, numbers)
            return {row.id: _item(row) for row in rows}

    def ping(self) -> None:
        """Raise :class:`UnavailableError` where the database does not answer."""
        file = self._database.file
        if file is not None and not file.is_file():  # an open one would still take answers
            raise UnavailableError("the database failed (its file is gone)")
        with self._database.looking() as db:
            db.execute(select(1))

    def check(self) -> list[str]:
        """Return what is broken, one sentence each; empty: nothing is."""
        with self._database.reading() as db:
            return self._database.damage(db) + answer_log.disagreements(db)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

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
        raise StoreError(problem, "check the address and the server") from None


def write_project(db: Connection, settings: Settings, given: Iterable[Item], now: datetime) -> None:
    """Check the settings and the items and write them down, with a slot for every answer."""
    every = list(given)
    _check_settings(settings)
    _check_items(every, len(settings.classes))
    text, secret = json.dumps(asdict(settings)), new_secret()
    db.execute(insert(project).values(id=1, settings=text, created=now, secret=secret))
    # Annotators see the numbers, and the order of asking: neither may tell which file it is.
    numbers = np.random.default_rng(secret).permutation(len(every))
    places = np.random.default_rng(settings.seed).permutation(len(every))
    rows = [
        {**vars(one), "id": int(number) + 1, "cells": json.dumps(dict(one.cells), default=str),
         "place": int(places[number]), "position": position}
        for position, (one, number) in enumerate(zip(every, numbers, strict=True), 1)
    ]  # fmt: skip
    db.execute(insert(items), rows)
    rounds = [
        {"item": row["id"], "round": n, "place": row["place"], "needed": True,
         "test": settings.gold_rate > 0 and row["gold"] is not None}
        for row in rows for n in range(settings.rounds)
    ]  # fmt: skip
    db.execute(insert(slots), rounds)


def new_secret() -> int:
    """Return what nobody can guess: it goes into the numbers of items and into every draw."""
    return secrets.randbits(63)


def _read_settings(db: Connection) -> Settings:
    text = db.execute(select(project.c.settings)).scalar_one_or_none()
    try:
        found = json.loads(text)  # type: ignore[arg-type]
        settings = Settings(**{**found, "classes": tuple(found["classes"])})
        _check_settings(settings)
    except (ValueError, TypeError, KeyError, RecursionError):
        problem = "the settings of the project are damaged"
        raise StoreError(problem, "restore the database from a backup") from None
    return settings


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
    if not every:
        raise StoreError("there are no items", "give at least one")
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
