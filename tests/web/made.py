"""Small projects, replies and moments for the tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Protocol

from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect

from ruleout.web import Item, LogRow, Receipt, Reply, Store, User
from ruleout.web.database import TABLE
from ruleout.web.schema import METADATA
from ruleout.web.store import _lots

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_NUMBERS = count()

#: How items get their numbers outside of the tests.
sparse_lots = _lots


class Make(Protocol):
    """Makes a project."""

    def __call__(self, items: int | list[Item] = 5, **settings: Any) -> Store:
        """Make it of so many items, or of these; settings by name."""


def make_items(n: int, gold: int = 0) -> list[Item]:
    """Make n items, the first `gold` of them of a known class."""
    return [
        Item(name=f"{i}.png", kind="image", path=f"{i}.png", gold=i % 6 if i < gold else None)
        for i in range(n)
    ]


def at(seconds: float) -> datetime:
    """Return a moment so long after the start."""
    return START + timedelta(seconds=seconds)


def said(kind: Any, question: int | None = None, **more: Any) -> Reply:
    """Make a reply with an id of its own."""
    return Reply(**{"id": f"reply-{next(_NUMBERS)}", "kind": kind, "question": question, **more})


def asked_and_said(store: Store, user: User, kind: Any = "no", now: datetime = START) -> Receipt:
    """Ask for one question and answer it."""
    question = store.next(user, 1, now)[0]
    return store.answer(user, said(kind, question.id), now)


def counted(store: Store) -> list[LogRow]:
    """Return the answers that stand and fill a round."""
    return [row for row in store.log() if row.counts and row.kind in ("yes", "no", "excluded")]


#: Columns of the indexes of each table; "*": what they hold is unique.
INDEXES = {
    "answers": {"ix_answers_question": "question", "ix_answers_skips": "user",
                "ix_answers_user_number": "user number"},
    "invites": {"ix_invites_user": "user"},
    "items": {"ix_items_gold": "place"},
    "questions": {"ix_questions_user_id": "user id"},
    "sessions": {"ix_sessions_expires": "expires", "ix_sessions_user": "user"},
    "slots": {"ix_slots_expires": "expires", "ix_slots_free": "test round place",
              "ix_slots_further": "answer", "ix_slots_given": "holder", "ix_slots_left": "item",
              "ix_slots_open": "holder question", "uq_slots_answer": "* answer",
              "uq_slots_holder_item": "* holder item", "uq_slots_question": "* question"},
}  # fmt: skip
UNIQUE = {"answers": {"id"}, "items": {"name", "place"}, "questions": {"item user round"},
          "users": {"name", "folded"}}  # fmt: skip
CHECKS = {"project": {"ck_project_one"}, "slots": {"ck_slots_asked", "ck_slots_held",
                                                   "ck_slots_until"}}  # fmt: skip


def assert_expected_tables(db: Connection) -> None:
    """Raise unless the tables have the columns of the code, and all that is to watch over them."""
    kinds = ("table", "column", "foreign_key_constraint")
    opts = {"version_table": TABLE, "compare_type": True,
            "include_object": lambda _, __, kind, *___: kind in kinds}  # fmt: skip
    assert compare_metadata(MigrationContext.configure(db, opts=opts), METADATA) == []
    seen = inspect(db)
    for table in METADATA.tables:
        found = {
            one["name"]: " ".join(["*"] * bool(one["unique"]) + list(map(str, one["column_names"])))
            for one in seen.get_indexes(table)
            if "duplicates_constraint" not in one
        }
        assert found == INDEXES.get(table, {})
        unique = {" ".join(one["column_names"]) for one in seen.get_unique_constraints(table)}
        assert unique == UNIQUE.get(table, set())
        checks = {one["name"] for one in seen.get_check_constraints(table)}
        assert checks == CHECKS.get(table, set())
