"""Reads the log of a project into columns, many times quicker than row by row."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import numpy as np
from sqlalchemy import Connection, Integer, Text, func, select, type_coerce

from ruleout.web.exporting.evidence import IMPORTED
from ruleout.web.schema import answers, invites, items, questions, undone, users
from ruleout.web.team.columns import KINDS, Columns, numbered

__all__ = ["doors", "extent", "gold_classes", "read"]


def extent(db: Connection) -> tuple[int, int]:
    """Return what changes with every answer and with nothing else: the last number, the count."""
    last, count = db.execute(select(func.max(answers.c.number), func.count(answers.c.number))).one()
    return last or 0, count


def gold_classes(db: Connection) -> dict[str, int]:
    """Return the class of each item where it is known, by the item's name."""
    query = select(items.c.name, items.c.gold).where(items.c.gold.is_not(None))
    return {name: gold for name, gold in db.execute(query)}  # noqa: C416 - rows are no pairs to mypy


def doors(db: Connection) -> dict[int, tuple[bool, datetime | None]]:
    """Return for each user whether they have a password, and until when an invite holds."""
    query = (
        select(users.c.id, users.c.password.is_not(None), func.max(invites.c.expires))
        .outerjoin(invites, invites.c.user == users.c.id)
        .group_by(users.c.id, users.c.password)
    )
    return {number: (bool(has), until) for number, has, until in db.execute(query)}


def read(db: Connection) -> Columns:
    """Read all items, all users and every answer in the order of arrival."""
    raw = db.execute(_QUERY).all()
    cells: list[tuple[Any, ...]] = list(zip(*raw, strict=True)) or [()] * 14
    number, user, item, round_, kind, proposed, excluded, which, took, received = cells[:10]
    gold, late, law, taken_back = cells[10:]
    place = {kind: at for at, kind in enumerate(KINDS)}
    user_ids, user_names = _names(db, users)
    item_ids, item_names = _names(db, items)
    used, sets = numbered(proposed + excluded)
    kinds = np.array([place[one] for one in kind], np.intp)
    stands = np.array([by is None for by in taken_back], np.bool_)
    is_late = np.array(late, np.bool_)
    return Columns(
        users=user_names, items=item_names, sets=tuple(tuple(json.loads(text)) for text in sets),
        user=numbered(user, user_ids)[0], item=numbered(item, item_ids)[0],
        number=np.array(number, np.intp), round=np.array(round_, np.intp), kind=kinds,
        proposed=used[: len(raw)], excluded=used[len(raw) :], which=_or_none(which),
        took_ms=_or_none(took), received=np.array(received, np.intp),
        gold=np.array(gold, np.bool_), late=is_late,
        counts=stands & ~is_late & (kinds != place["undo"]),
        imported=np.array([one == IMPORTED for one in law], np.bool_),
    )  # fmt: skip


# Plain values: what SQLAlchemy would make of each cell is made of each distinct one instead.
_QUERY = (
    select(
        answers.c.number, answers.c.user, questions.c.item, questions.c.round, answers.c.kind,
        type_coerce(questions.c.proposed, Text), type_coerce(answers.c.excluded, Text),
        answers.c.which, answers.c.took_ms, type_coerce(answers.c.received, Integer),
        type_coerce(questions.c.gold, Integer), type_coerce(answers.c.late, Integer),
        questions.c.law, undone.c.answer,
    )
    .join(questions, answers.c.question == questions.c.id)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .order_by(answers.c.number)
)  # fmt: skip


def _names(db: Connection, table: Any) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return the place of each id, and the names in that order."""
    found = db.execute(select(table.c.id, table.c.name).order_by(table.c.id)).all()
    return {number: at for at, (number, _) in enumerate(found)}, tuple(name for _, name in found)


def _or_none(values: tuple[int | None, ...]) -> Any:
    return np.array([-1 if value is None else value for value in values], np.intp)
