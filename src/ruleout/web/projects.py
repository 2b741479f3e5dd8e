"""A project's settings and items: checked once when it is made, read back as they were."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Row, bindparam, insert, select

from ruleout.labels.classes import class_names
from ruleout.labels.errors import brief
from ruleout.web.earlier_answers import in_chunks
from ruleout.web.entities import Item, RefusedError, Settings, StoreError, User
from ruleout.web.names import storable
from ruleout.web.proposals import capped_law
from ruleout.web.schema import items as table
from ruleout.web.schema import key, project, questions, slots

__all__ = [
    "add_items",
    "identity",
    "item",
    "item_for",
    "items",
    "read_settings",
    "some_items",
    "write_settings",
]


def write_settings(db: Connection, settings: Settings, now: datetime) -> None:
    """Check the settings and write them down."""
    _check(settings)
    text = json.dumps(asdict(settings))
    db.execute(insert(project).values(id=1, settings=text, created=now))


def read_settings(db: Connection) -> Settings:
    """Return the settings of the project."""
    text = db.execute(select(project.c.settings)).scalar_one_or_none()
    try:
        found = json.loads(text)  # type: ignore[arg-type]
        settings = Settings(**{**found, "classes": tuple(found["classes"])})
        _check(settings)
    except (ValueError, TypeError, KeyError, RecursionError):
        problem = "the settings of the project are damaged"
        raise StoreError(problem, "restore the database from a backup") from None
    return settings


def identity(db: Connection) -> str:
    """Return 16 hex digits that no other project here has; they follow from when it was made."""
    made = db.execute(select(project.c.created)).scalar_one()
    return hashlib.sha256(f"ruleout {made.isoformat()}".encode()).hexdigest()[:16]


def _check(settings: Settings) -> None:
    class_names(settings.classes)
    capped_law(settings.law, len(settings.classes), settings.cap)
    wrong = {
        "mode": settings.mode not in ("propose", "rule-out"),
        "rounds": not 1 <= settings.rounds <= 1000,
        "gold_rate": not 0 <= settings.gold_rate <= 0.5,
        "lease_seconds": not 1 <= settings.lease_seconds <= 30 * 86400,
        "seed": not 0 <= settings.seed < 2**63,
    }
    for name, is_wrong in wrong.items():
        if is_wrong:
            raise StoreError(f"{name} = {brief(getattr(settings, name))}", _LIMITS[name])


_LIMITS = {
    "mode": "use 'propose' or 'rule-out'",
    "rounds": "ask for 1 to 1000 answers per item",
    "gold_rate": "choose a share from 0 to 0.5",
    "lease_seconds": "choose from 1 second to 30 days",
    "seed": "choose a whole number from 0 to 2^63 - 1",
}


def add_items(db: Connection, settings: Settings, given: Iterable[Item]) -> None:
    """Write the items down, in the project's own order, and make a slot for every answer."""
    every = list(given)
    _check_items(every, len(settings.classes))
    places = np.random.default_rng(settings.seed).permutation(len(every))
    rows = [
        {**vars(one), "id": n + 1, "cells": json.dumps(dict(one.cells), default=str),
         "place": int(places[n])}
        for n, one in enumerate(every)
    ]  # fmt: skip
    db.execute(insert(table), rows)
    db.execute(insert(slots), [_slot(settings, row, r) for row in rows
                               for r in range(settings.rounds)])  # fmt: skip


def _slot(settings: Settings, row: dict[str, Any], number: int) -> dict[str, Any]:
    test = settings.gold_rate > 0 and row["gold"] is not None
    return {"item": row["id"], "round": number, "place": row["place"], "needed": True, "test": test}


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


def items(db: Connection, first: int, last: int | None) -> Iterator[tuple[int, Item]]:
    """Yield the items with their numbers, in the order they were given."""
    query = select(table).where(table.c.id >= first).order_by(table.c.id)
    if last is not None:
        query = query.where(table.c.id <= last)
    for row in db.execute(query.execution_options(yield_per=1000)):
        yield row.id, _item(row)


def item(db: Connection, number: int) -> Item:
    """Return one item."""
    return _found(db.execute(_ITEM, {"item": key(number)}).first(), number)


def some_items(db: Connection, numbers: Iterable[int]) -> dict[int, Item]:
    """Return the items of these numbers."""
    rows = in_chunks(db, select(table), table.c.id, numbers)
    return {row.id: _item(row) for row in rows}


def item_for(db: Connection, user: User, number: int) -> Item:
    """Return one item, if this user leads or was ever asked about it."""
    query = _ITEM if user.role == "lead" else _ASKED
    return _found(db.execute(query, {"item": key(number), "user": user.id}).first(), number)


_ITEM = select(table).where(table.c.id == bindparam("item"))
_ASKED = _ITEM.where(
    select(questions.c.id)
    .where(questions.c.item == table.c.id, questions.c.user == bindparam("user"))
    .exists()
)


def _found(row: Row[Any] | None, number: object) -> Item:
    if row is None:
        problem = f"there is no item {brief(number)}"
        raise RefusedError(problem, "use a number that a question names", reason="unknown")
    return _item(row)


def _item(row: Row[Any]) -> Item:
    return Item(
        name=row.name, kind=row.kind, path=row.path, text=row.text,
        cells=json.loads(row.cells), sha256=row.sha256, gold=row.gold,
    )  # fmt: skip
