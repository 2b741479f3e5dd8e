"""The statements of asking and answering, built once: building them anew took half the time.

Parameters are named ``at_…`` or after what they are; `user`, `item` and `now` mean what they say.
SQLite leaves ``FOR UPDATE`` out, since it has one writer anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Column,
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Row,
    Select,
    Table,
    TableValuedAlias,
    and_,
    any_,
    bindparam,
    column,
    exists,
    func,
    insert,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from ruleout.web import queries
from ruleout.web.entities import IMPORTED
from ruleout.web.schema import Moment, answers, items, questions, slots, undone, users

__all__ = [
    "ADD_ANSWER",
    "ADD_QUESTION",
    "ADD_SLOT",
    "ADD_UNDONE",
    "ASKED",
    "EXPIRED",
    "FREE",
    "FREE_FOR_MANY",
    "GOLD_CLASS",
    "GOLD_ITEM",
    "GOLD_SLOT",
    "HOLD",
    "KNOWN",
    "LAST_ANSWER",
    "LAST_QUESTION",
    "LAST_QUESTIONS",
    "LAST_ROUND",
    "OPEN",
    "OPEN_OF_MANY",
    "QUESTION",
    "REPLY",
    "SENDER",
    "STANDING",
    "STANDING_ON",
    "USER",
    "USERS",
]


_user: Any = bindparam("user")
_users: Any = bindparam("users", expanding=True)
_count: Any = bindparam("count", type_=Integer)
_now: Any = bindparam("now", type_=Moment())


def _free_of_others(query: Select[Any], table: Table) -> Select[Any]:
    """Take the first row that nobody else is taking just now."""
    return query.limit(1).with_for_update(of=table, skip_locked=True, key_share=True)


def _new(item: Column[int]) -> ColumnElement[bool]:
    """Whether the user has said nothing about the item that stands, and does not hold it."""
    said = (
        select(answers.c.number)
        .join(questions, answers.c.question == questions.c.id)
        .outerjoin(undone, undone.c.answer == answers.c.number)
        .where(questions.c.item == item, questions.c.user == _user)
        .where(answers.c.kind != "undo", undone.c.answer.is_(None))
    )
    other = slots.alias()
    held = select(other.c.item).where(other.c.item == item, other.c.holder == _user)
    return and_(~exists(said.correlate(item.table)), ~exists(held.correlate(item.table)))


def _with_earlier(where: ColumnElement[bool]) -> Select[Any]:
    """Look for slots, each with the question that the user had there before, if any."""
    same = questions.c.item == slots.c.item, questions.c.round == slots.c.round
    earlier = questions.c.id.label("earlier")
    joined = (
        select(slots, earlier)
        .select_from(slots)
        .outerjoin(questions, and_(*same, questions.c.user == _user))
    )
    return joined.where(where)


def _first(where: ColumnElement[bool]) -> Select[Any]:
    query = _with_earlier(where).where(slots.c.needed, _new(slots.c.item))
    return _free_of_others(query.order_by(slots.c.test, slots.c.round, slots.c.place), slots)


USER = select(users).where(users.c.id == _user).with_for_update(key_share=True)

#: A user who sends a reply, and what was recorded under the reply's id (`known`, …). Where the
#: user's lock was waited for, `known` may be out of date: then the id turns out to be taken.
SENDER = (
    select(
        users.c.id, users.c.name, users.c.role, users.c.disabled, answers.c.id.label("known"),
        answers.c.user.label("by"), answers.c.content, answers.c.status, answers.c.question,
        questions.c.item,
    )
    .select_from(users)
    .outerjoin(answers, answers.c.id == bindparam("id"))
    .outerjoin(questions, answers.c.question == questions.c.id)
    .where(users.c.id == _user)
    .with_for_update(of=users, key_share=True)
)  # fmt: skip

#: The same for many users, who are locked in one order, so that no two wait for each other.
USERS = (
    select(users).where(users.c.id.in_(_users)).order_by(users.c.id).with_for_update(key_share=True)
)
KNOWN = select(answers.c.id).where(answers.c.id.in_(bindparam("ids", expanding=True)))

# ---------------------------------------------------------------------- asking

_held = slots.c.question.label("held"), slots.c.answer.label("answered"), slots.c.expires

#: The open questions of a user, oldest first.
# In the words of ix_slots_open, and so that no other index fits: in a project that has just been
# made no slot has a question yet, and PostgreSQL would read all that have one, for a good while.
_open = (
    select(questions, *_held)
    .join(slots, func.coalesce(slots.c.question, -1) == questions.c.id)
    .where(slots.c.answer.is_(None), slots.c.holder.is_not(None))
    .order_by(questions.c.id)
    .with_for_update(of=slots, key_share=True)
)
OPEN = _open.where(slots.c.holder == _user).limit(_count)
OPEN_OF_MANY = _open.where(slots.c.holder.in_(_users))
_free = slots.c.question.is_(None)
_expired = and_(
    slots.c.question.is_not(None), slots.c.answer.is_(None), slots.c.expires <= _now
)  # fmt: skip
FREE, EXPIRED = _first(_free), _first(_expired)
LAST_QUESTION = select(func.max(questions.c.id)).where(questions.c.user == _user)
LAST_QUESTIONS = (
    select(questions.c.user, func.max(questions.c.id).label("last"))
    .where(questions.c.user.in_(_users))
    .group_by(questions.c.user)
)

#: Free rounds for anybody who has never been asked about their items (`ASKED` says who was).
FREE_FOR_MANY = (
    select(slots.c.item, slots.c.round, slots.c.test)
    .where(_free, slots.c.needed, ~slots.c.test)
    .order_by(slots.c.test, slots.c.round, slots.c.place)
    .limit(_count)
    .with_for_update(of=slots, skip_locked=True, key_share=True)
)
ASKED = select(questions.c.item, questions.c.user).where(
    questions.c.item.in_(bindparam("items", expanding=True))
)

#: A gold item that is new to the user; locked, so that rounds are added in turn.
GOLD_ITEM = _free_of_others(
    select(items.c.id, items.c.place)
    .where(items.c.gold.is_not(None), _new(items.c.id))
    .order_by(items.c.place),
    items,
)
_of_item = slots.c.item == bindparam("item")
GOLD_SLOT = _free_of_others(
    _with_earlier(and_(_of_item, or_(_free, _expired))).order_by(slots.c.round), slots
)
LAST_ROUND = select(func.max(slots.c.round)).where(_of_item)
GOLD_CLASS = select(items.c.gold).where(items.c.id == bindparam("item"))
ADD_SLOT = insert(slots).returning(*slots.c, null().label("earlier"))
ADD_QUESTION = insert(questions).returning(questions.c.id)

# ---------------------------------------------------------------------- answering

#: A question, and what now holds its slot (`held`, `answered`, `expires`).
QUESTION = (
    select(questions, *_held)
    .join(slots, and_(slots.c.item == questions.c.item, slots.c.round == questions.c.round))
    .where(questions.c.id == bindparam("question"))
    .with_for_update(of=slots, key_share=True)
)
_place = slots.c.item == bindparam("at_item"), slots.c.round == bindparam("at_round")
HOLD = (
    update(slots)
    .where(*_place)
    .values({name: bindparam(name) for name in ("question", "holder", "expires", "answer")})
)

#: A reply by its id, with the item it was about.
REPLY = (
    select(answers, questions.c.item)
    .outerjoin(questions, answers.c.question == questions.c.id)
    .where(answers.c.id == bindparam("id"))
)
ADD_ANSWER = insert(answers).returning(answers.c.number)
ADD_UNDONE = insert(undone)
_standing = (
    select(answers)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .where(answers.c.user == _user, undone.c.answer.is_(None))
)

#: One answer, unless it was taken back.
STANDING = _standing.where(answers.c.number == bindparam("number"))

#: The answers of a kind to a question that were not taken back, those that count first.
STANDING_ON = _standing.where(
    answers.c.question == bindparam("question"), answers.c.kind == bindparam("kind")
).order_by(answers.c.late, answers.c.number)

#: The user's last answer that counts and was given here; a "which" belongs to its "yes".
LAST_ANSWER = (
    _standing.where(~answers.c.late, answers.c.kind.not_in(("undo", "which")))
    .where(answers.c.status != IMPORTED)
    .order_by(answers.c.number.desc())
    .limit(1)
)


_Rows = Sequence[dict[str, Any]]


def add(db: Connection, table: Table, rows: _Rows, *told: str) -> Sequence[Row[Any]]:
    """Add rows that have the same columns; return the columns `told` of each, in any order."""
    if not rows:
        return []
    if _takes_arrays(db):
        return db.execute(_added(table, tuple(rows[0]), told), _columns(rows)).all()
    return db.execute(_insert(table, told), rows).all()


def hold(db: Connection, rows: _Rows) -> None:
    """Have slots change hands: rows as :data:`HOLD` takes them."""
    if rows and _takes_arrays(db):
        db.execute(_hold_many(), _columns(rows))
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
def _hold_many() -> Executable:
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
