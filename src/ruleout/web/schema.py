"""The tables of a project, the same for SQLite and PostgreSQL.

Items, questions and answers are only ever added. What changes hands lives in `slots`: one row for
each round of each item, so that its primary key allows one lease or one counted answer there and
no more, whatever clients, clocks and threads do. Indexes, and what else the database watches over,
are in the steps that make the tables (``migrations``).
"""

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeAlias

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Integer, MetaData, Table, Text
from sqlalchemy.types import TypeDecorator

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Codes: TypeAlias = tuple[int, ...]


def moment(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=int(microseconds))


class Moment(TypeDecorator[datetime]):
    """A moment in UTC, kept as whole microseconds since 1970, exact on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, _: object) -> int | None:
        return None if value is None else (value - _EPOCH) // timedelta(microseconds=1)

    def process_result_value(self, value: Any | None, _: object) -> datetime | None:
        return None if value is None else moment(value)


class Codes(TypeDecorator[_Codes]):
    """Positions of classes, kept as a JSON list."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: _Codes | None, _: object) -> str | None:
        return None if value is None else json.dumps(value, separators=(",", ":"))

    def process_result_value(self, value: Any | None, _: object) -> _Codes | None:
        return None if value is None else tuple(json.loads(value))


METADATA = MetaData()


def key(number: object) -> int:
    """Return a row's number as clients send it; -1, which no row has, for what cannot be one."""
    return number if type(number) is int and 0 <= number < 2**31 else -1


_full = partial(Column, nullable=False)  # in every row

#: One row: the settings, as JSON; `secret` goes into every draw, so that nobody can foretell one;
#: `revision` counts the changes of the settings, so that other processes see one.
project = Table(
    "project", METADATA,
    Column("id", Integer, primary_key=True), _full("settings", Text), _full("created", Moment),
    Column("secret", BigInteger), Column("revision", Integer),
)  # fmt: skip

#: `folded` is the name without case and look-alike forms, so that no two people look the same;
#: `password` is its hash, NULL for who has none.
users = Table(
    "users", METADATA,
    Column("id", Integer, primary_key=True),
    _full("name", Text), _full("folded", Text), _full("role", Text), _full("disabled", Boolean),
    _full("added", Moment), Column("password", Text),
)  # fmt: skip

#: Links by which people choose a password; `token` is a hash, here and in sessions, so that who
#: reads the database can use neither.
invites = Table(
    "invites", METADATA,
    Column("token", Text, primary_key=True),
    _full("user", Integer, ForeignKey("users.id")), _full("expires", Moment),
)  # fmt: skip

#: Who is logged in; `seconds` is how long a session lasts after each use. What has a name is a
#: token for programs.
sessions = Table(
    "sessions", METADATA,
    Column("token", Text, primary_key=True),
    _full("user", Integer, ForeignKey("users.id")), _full("began", Moment),
    _full("expires", Moment), _full("seconds", Integer), Column("name", Text),
)  # fmt: skip

#: Who let somebody in or out; `by` is NULL for the command line.
events = Table(
    "events", METADATA,
    Column("number", Integer, primary_key=True), _full("at", Moment),
    Column("by", Integer, ForeignKey("users.id")), _full("action", Text),
    _full("user", Integer, ForeignKey("users.id")),
)  # fmt: skip

#: `id` is drawn by lot, `position` is the order in which items were given, `place` that of asking.
items = Table(
    "items", METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    _full("name", Text), _full("kind", Text), Column("path", Text), Column("text", Text),
    _full("cells", Text), _full("sha256", Text), Column("gold", Integer), _full("place", Integer),
    Column("position", Integer),
)  # fmt: skip

#: What was asked of whom.
questions = Table(
    "questions", METADATA,
    Column("id", Integer, primary_key=True),
    _full("item", Integer, ForeignKey("items.id")), _full("user", Integer, ForeignKey("users.id")),
    _full("round", Integer), _full("mode", Text), _full("proposed", Codes), _full("size", Integer),
    _full("law", Text), _full("seed", BigInteger), _full("gold", Boolean), _full("given", Moment),
)  # fmt: skip

#: What was answered, in the order of arrival; `id` and `content` are the client's.
answers = Table(
    "answers", METADATA,
    Column("number", Integer, primary_key=True),
    _full("id", Text), _full("user", Integer, ForeignKey("users.id")),
    Column("question", Integer, ForeignKey("questions.id")),
    _full("kind", Text), _full("excluded", Codes), Column("which", Integer),
    Column("undoes", Text, ForeignKey("answers.id")), _full("late", Boolean), _full("status", Text),
    Column("took_ms", Integer), Column("sent", Moment), _full("received", Moment),
    _full("content", Text),
)  # fmt: skip

#: Which answers were taken back, and by which undo.
undone = Table(
    "undone", METADATA,
    Column("answer", Integer, ForeignKey("answers.number"), primary_key=True, autoincrement=False),
    _full("by", Integer, ForeignKey("answers.number")),
)  # fmt: skip

#: What leads decided about items whose answers contradict each other; the last one about an item is
#: in force. `which` is its class, or NULL; `voids` are the numbers of answers that are left out.
decisions = Table(
    "decisions", METADATA,
    Column("number", Integer, primary_key=True), _full("at", Moment),
    _full("by", Integer, ForeignKey("users.id")), _full("item", Integer, ForeignKey("items.id")),
    Column("which", Integer), _full("voids", Codes),
)  # fmt: skip

#: Each round of each item: free (no question), leased (no answer), or answered. Rounds that are
#: not `needed` are further gold questions and imported answers; `test` says that the item is asked
#: as gold.
slots = Table(
    "slots", METADATA,
    Column("item", Integer, ForeignKey("items.id"), primary_key=True, autoincrement=False),
    Column("round", Integer, primary_key=True, autoincrement=False),
    _full("place", Integer), _full("needed", Boolean), _full("test", Boolean),
    Column("question", Integer, ForeignKey("questions.id")),
    Column("holder", Integer, ForeignKey("users.id")), Column("expires", Moment),
    Column("answer", Integer, ForeignKey("answers.number")),
)  # fmt: skip
