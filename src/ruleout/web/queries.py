"""The statements of taking turns, built once: building them anew took half the time.

Each serves any number of annotators. SQLite leaves ``FOR UPDATE`` out, since it has one writer.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy import bindparam, func, select
from sqlalchemy.dialects.postgresql import ARRAY

from ruleout.web.entities import IMPORTED
from ruleout.web.schema import Moment, answers, items, project, questions, slots, undone, users

_CHUNK = 1000  # values in one statement; databases allow some ten thousand
_Rows = Sequence[dict[str, Any]]


def _any_of(name: str) -> Any:
    return bindparam(name, expanding=True)


#: By its key: where whole tables are not to be read, PostgreSQL would compile a query that does.
REVISION = select(project.c.revision).where(project.c.id == 1)

#: Locked in one order, so that no two wait for each other; with the revision of the settings.
USERS = (
    select(users, REVISION.scalar_subquery().label("revision"))
    .where(users.c.id.in_(_any_of("users")))
    .order_by(users.c.id)
    .with_for_update(of=users, key_share=True)
)

#: What was recorded under the ids of replies.
KNOWN = (
    select(
        answers.c.id, answers.c.user, answers.c.content, answers.c.status, answers.c.question,
        questions.c.item,
    )
    .outerjoin(questions, answers.c.question == questions.c.id)
    .where(answers.c.id.in_(_any_of("ids")))
)  # fmt: skip

#: The open questions of annotators, oldest first.
# In the words of ix_slots_open, and so that no other index fits: in a project that has just been
# made no slot has a question yet, and PostgreSQL would read all that have one, for a good while.
OPEN = (
    select(questions, slots.c.expires)
    .join(slots, func.coalesce(slots.c.question, -1) == questions.c.id)
    .where(slots.c.answer.is_(None), slots.c.holder.is_not(None))
    .where(slots.c.holder.in_(_any_of("users")))
    .order_by(questions.c.id)
    .with_for_update(of=slots, key_share=True)
)

#: Questions, and what now holds their rounds (`held`, `answered`).
QUESTIONS = (
    select(questions, slots.c.question.label("held"), slots.c.answer.label("answered"))
    .join(slots, sa.and_(slots.c.item == questions.c.item, slots.c.round == questions.c.round))
    .where(questions.c.id.in_(_any_of("questions")))
    .with_for_update(of=slots, key_share=True)
)

#: Answers by their ids; `gone` is not NULL where one was taken back.
NAMED = (
    select(answers, undone.c.answer.label("gone"))
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .where(answers.c.id.in_(_any_of("ids")))
)

_mine = answers.alias()
_last = (
    select(_mine.c.number)
    .outerjoin(undone, undone.c.answer == _mine.c.number)
    .where(_mine.c.user == users.c.id, undone.c.answer.is_(None), ~_mine.c.late)
    .where(_mine.c.kind.not_in(("undo", "which")), _mine.c.status != IMPORTED)
    .order_by(_mine.c.number.desc())
    .limit(1)
    .correlate(users)
)

#: The last answer of each annotator that counts and was given here; a "which" has its "yes".
LAST_ANSWERS = (
    select(answers)
    .select_from(users)
    .join(answers, answers.c.number == _last.scalar_subquery())
    .where(users.c.id.in_(_any_of("users")))
)

#: The answers to questions that were not taken back, those that count first.
STANDING = (
    select(answers)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .where(answers.c.question.in_(_any_of("questions")), undone.c.answer.is_(None))
    .order_by(answers.c.late, answers.c.number)
)

_said = (
    select(answers.c.number)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .where(answers.c.question == questions.c.id, answers.c.kind != "undo")
    .where(undone.c.answer.is_(None))
)
_other = slots.alias()
_holds = select(_other.c.item).where(
    _other.c.item == questions.c.item, _other.c.round == questions.c.round,
    _other.c.question == questions.c.id,
)  # fmt: skip

#: Whether who was asked a question said something that stands, or holds its round.
# Not EXISTS, for which PostgreSQL would read all answers at once, however few questions there are.
_busy = sa.or_(*(one.limit(1).correlate(questions).scalar_subquery().is_not(None)
                 for one in (_said, _holds)))  # fmt: skip
_of_users = func.coalesce(questions.c.user, -1).in_(_any_of("users"))  # the item's index is better

#: What annotators were asked about items before; `busy` where they need no other question there.
ASKED = select(questions, _busy.label("busy")).where(
    questions.c.item.in_(_any_of("items")), _of_users
)


def _rounds(where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Look for rounds that are new to one of `users`, who are so many `people`, and lock them."""
    busy = select(func.count(questions.c.user.distinct())).where(
        questions.c.item == slots.c.item, _of_users, _busy
    )
    new = busy.correlate(slots).scalar_subquery() < bindparam("people", type_=sa.Integer)
    return (
        select(slots)
        .where(where, slots.c.needed, new)
        .order_by(slots.c.test, slots.c.round, slots.c.place)
        .limit(bindparam("count", type_=sa.Integer))
        .with_for_update(of=slots, skip_locked=True, key_share=True)
    )


_now: Any = bindparam("now", type_=Moment())
_free = slots.c.question.is_(None)
_expired = sa.and_(slots.c.question.is_not(None), slots.c.answer.is_(None), slots.c.expires <= _now)
FREE, EXPIRED = _rounds(_free), _rounds(_expired)


def _of_each(name: str, found: sa.Select[Any]) -> sa.Select[Any]:
    """Return the first that is found for each of `users`, or NULL."""
    first = found.limit(1).correlate(users).scalar_subquery().label(name)
    return select(users.c.id.label("user"), first).where(users.c.id.in_(_any_of("users")))


_signs = select(answers.c.received).where(answers.c.user == users.c.id)
_theirs = select(questions.c.id).where(questions.c.user == users.c.id)
_before = _theirs.where(questions.c.item == items.c.id, _busy).correlate(items, users)
_gold = select(items.c.id).where(items.c.gold.is_not(None), ~sa.exists(_before))

#: When each annotator sent something last, what they were asked last, and the first gold item that
#: is new to them, locked: rounds may be added to it. Nobody waits for who adds some just now.
LAST_SIGNS = _of_each("at", _signs.order_by(answers.c.number.desc()))
LAST_QUESTIONS = _of_each("last", _theirs.order_by(questions.c.id.desc()))
GOLD_ITEMS = _of_each(
    "item", _gold.order_by(items.c.place).with_for_update(skip_locked=True, key_share=True)
)
_of_items = slots.c.item.in_(_any_of("items"))
GOLD_ROUNDS = (
    select(slots)
    .where(_of_items, sa.or_(_free, _expired))
    .order_by(slots.c.round)
    .with_for_update(of=slots, skip_locked=True, key_share=True)
)
LAST_ROUNDS = (
    select(
        slots.c.item, func.max(slots.c.round).label("last"), func.max(slots.c.place).label("place")
    )
    .where(_of_items)
    .group_by(slots.c.item)
)
GOLD_CLASSES = select(items.c.id, items.c.gold).where(items.c.id.in_(_any_of("items")))

# Many rows in one statement.
# With PostgreSQL each column goes as one array, so that the statement is the same text for any
# number of rows: it is read and planned once. SQLite takes rows one after another at no cost.

_AT = {"at_item": slots.c.item, "at_round": slots.c.round}
_HELD = {name: slots.c[name] for name in ("question", "holder", "expires", "answer")}


def add(db: sa.Connection, table: sa.Table, rows: _Rows, *told: str) -> Sequence[sa.Row[Any]]:
    """Add rows that have the same columns; return the columns `told` of each, in any order."""
    if not rows:
        return []
    if db.dialect.name == "postgresql":
        return db.execute(_add_arrays(table, tuple(rows[0]), told), _columns(rows)).all()
    return db.execute(sa.insert(table).returning(*(table.c[name] for name in told)), rows).all()


def hold(db: sa.Connection, rows: _Rows) -> None:
    """Have rounds change hands, each at its ``at_item`` and ``at_round``."""
    arrays = db.dialect.name == "postgresql"
    if rows:
        db.execute(_holding(arrays), _columns(rows) if arrays else rows)


def in_chunks(
    db: sa.Connection, query: sa.Select[Any], column: sa.ColumnElement[Any], values: Iterable[Any]
) -> Iterator[sa.Row[Any]]:
    """Yield the rows in which the column has one of the values, however many there are."""
    every = list(values)
    for start in range(0, len(every), _CHUNK):
        yield from db.execute(query.where(column.in_(every[start : start + _CHUNK])))


def _columns(rows: _Rows) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


@lru_cache
def _add_arrays(table: sa.Table, names: tuple[str, ...], told: tuple[str, ...]) -> sa.Executable:
    given = _given({name: table.c[name] for name in names})
    rows = sa.insert(table).from_select(names, select(*given.c))
    return rows.returning(*(table.c[name] for name in told))


@lru_cache
def _holding(arrays: bool) -> sa.Executable:
    sent: Any = _given(_AT | _HELD).c if arrays else {one: bindparam(one) for one in _AT | _HELD}
    here = [place == sent[name] for name, place in _AT.items()]
    return sa.update(slots).where(*here).values({name: sent[name] for name in _HELD})


def _given(columns: dict[str, sa.Column[Any]]) -> sa.TableValuedAlias:
    """Return a table of what is sent along: an array for each column, by its name."""
    arrays = [
        bindparam(name, type_=ARRAY(like.type, dimensions=1)) for name, like in columns.items()
    ]
    named = (sa.column(name, like.type) for name, like in columns.items())
    return func.unnest(*arrays).table_valued(*named).render_derived(name="given")
