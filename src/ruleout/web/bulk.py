"""Many rows in one statement.

With PostgreSQL each column goes as one array, so that the statement is the same text for any number
of rows: it is read and planned once. SQLite takes rows one after another at no cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    Connection,
    Executable,
    Row,
    Table,
    TableValuedAlias,
    any_,
    bindparam,
    column,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from ruleout.web import queries
from ruleout.web.schema import slots

__all__ = ["add", "hold"]

_Rows = Sequence[dict[str, Any]]


def add(db: Connection, table: Table, rows: _Rows, *told: str) -> Sequence[Row[Any]]:
    """Add rows that have the same columns; return the columns `told` of each, in any order."""
    if not rows:
        return []
    if _takes_arrays(db):
        return db.execute(_added(table, tuple(rows[0]), told), _columns(rows)).all()
    return db.execute(_insert(table, told), rows).all()


def hold(db: Connection, rows: _Rows) -> None:
    """Have slots change hands, see :func:`ruleout.web.desk.held`."""
    if rows and _takes_arrays(db):
        db.execute(_held(), _columns(rows))
    elif rows:
        db.execute(queries.HOLD, rows)


def _takes_arrays(db: Connection) -> bool:
    return db.dialect.name == "postgresql"


def _columns(rows: _Rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


@lru_cache
def _insert(table: Table, told: tuple[str, ...]) -> Executable:
    return insert(table).returning(*(table.c[name] for name in told))


@lru_cache
def _added(table: Table, names: tuple[str, ...], told: tuple[str, ...]) -> Executable:
    given = _given({name: table.c[name] for name in names}.items())
    rows = insert(table).from_select(names, select(*given.c))
    return rows.returning(*(table.c[name] for name in told))


@lru_cache
def _held() -> Executable:
    changed = ("question", "holder", "expires", "answer")
    places = {"at_item": slots.c.item, "at_round": slots.c.round}
    given = _given((places | {name: slots.c[name] for name in changed}).items())
    here = [place == given.c[name] for name, place in places.items()]
    here.append(slots.c.item == any_(_array("at_item", slots.c.item)))  # else all slots are read
    return update(slots).where(*here).values({name: given.c[name] for name in changed})


def _given(columns: Iterable[tuple[str, Column[Any]]]) -> TableValuedAlias:
    """Return a table of what is sent along: an array for each column, by its name."""
    every = list(columns)
    arrays = [_array(name, like) for name, like in every]
    named = func.unnest(*arrays).table_valued(*(column(name, like.type) for name, like in every))
    return named.render_derived(name="given")


def _array(name: str, like: Column[Any]) -> BindParameter[Any]:
    return bindparam(name, type_=ARRAY(like.type, dimensions=1))
