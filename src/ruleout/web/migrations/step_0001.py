"""The first schema: settings, people, items, questions, answers, slots."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _column(name: str, kind: Any, *more: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, *more, **{"nullable": False, **options})


def _key(name: str, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, sa.Integer, primary_key=True, **options)


def upgrade() -> None:
    """Make the tables."""
    _people_and_items()
    _asked_and_answered()
    _slots()


def _people_and_items() -> None:
    op.create_table(
        "project", _key("id"), _column("settings", sa.Text), _column("created", sa.BigInteger),
        sa.CheckConstraint("id = 1", name="ck_project_one"),
    )  # fmt: skip
    op.create_table(
        "users", _key("id"), _column("name", sa.Text), _column("folded", sa.Text),
        _column("role", sa.Text), _column("disabled", sa.Boolean), _column("added", sa.BigInteger),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sa.UniqueConstraint("folded", name="uq_users_folded"),
    )  # fmt: skip
    op.create_table(
        "items", _key("id", autoincrement=False), _column("name", sa.Text),
        _column("kind", sa.Text), _column("path", sa.Text, nullable=True),
        _column("text", sa.Text, nullable=True), _column("cells", sa.Text),
        _column("sha256", sa.Text), _column("gold", sa.Integer, nullable=True),
        _column("place", sa.Integer),
        sa.UniqueConstraint("name", name="uq_items_name"),
        sa.UniqueConstraint("place", name="uq_items_place"),
    )  # fmt: skip


def _asked_and_answered() -> None:
    op.create_table(
        "questions", _key("id"), _column("item", sa.Integer, sa.ForeignKey("items.id")),
        _column("user", sa.Integer, sa.ForeignKey("users.id")), _column("round", sa.Integer),
        _column("mode", sa.Text), _column("proposed", sa.Text), _column("size", sa.Integer),
        _column("law", sa.Text), _column("seed", sa.BigInteger), _column("gold", sa.Boolean),
        _column("given", sa.BigInteger),
        sa.UniqueConstraint("item", "user", "round", name="uq_questions_item_user_round"),
    )  # fmt: skip
    op.create_index("ix_questions_user_id", "questions", ["user", "id"])
    op.create_table(
        "answers", _key("number"), _column("id", sa.Text),
        _column("user", sa.Integer, sa.ForeignKey("users.id")),
        _column("question", sa.Integer, sa.ForeignKey("questions.id"), nullable=True),
        _column("kind", sa.Text), _column("excluded", sa.Text),
        _column("which", sa.Integer, nullable=True),
        _column("undoes", sa.Text, sa.ForeignKey("answers.id"), nullable=True),
        _column("late", sa.Boolean), _column("status", sa.Text),
        _column("took_ms", sa.Integer, nullable=True),
        _column("sent", sa.BigInteger, nullable=True), _column("received", sa.BigInteger),
        _column("content", sa.Text),
        sa.UniqueConstraint("id", name="uq_answers_id"),
    )  # fmt: skip
    op.create_index("ix_answers_question", "answers", ["question"])
    op.create_index("ix_answers_user_number", "answers", ["user", "number"])
    op.create_table(
        "undone",
        sa.Column(
            "answer", sa.Integer, sa.ForeignKey("answers.number"), primary_key=True,
            autoincrement=False,
        ),
        _column("by", sa.Integer, sa.ForeignKey("answers.number")),
    )  # fmt: skip


def _slots() -> None:
    op.create_table(
        "slots",
        sa.Column(
            "item", sa.Integer, sa.ForeignKey("items.id"), primary_key=True, autoincrement=False
        ),
        _key("round", autoincrement=False), _column("place", sa.Integer),
        _column("needed", sa.Boolean), _column("test", sa.Boolean),
        _column("question", sa.Integer, sa.ForeignKey("questions.id"), nullable=True),
        _column("holder", sa.Integer, sa.ForeignKey("users.id"), nullable=True),
        _column("expires", sa.BigInteger, nullable=True),
        _column("answer", sa.Integer, sa.ForeignKey("answers.number"), nullable=True),
        sa.UniqueConstraint("holder", "item", name="uq_slots_holder_item"),
        sa.CheckConstraint("(question IS NULL) = (holder IS NULL)", name="ck_slots_held"),
        sa.CheckConstraint("(question IS NULL) = (expires IS NULL)", name="ck_slots_until"),
        sa.CheckConstraint("answer IS NULL OR question IS NOT NULL", name="ck_slots_asked"),
    )  # fmt: skip
    slot = sa.table(
        "slots", sa.column("question"), sa.column("answer"), sa.column("needed", sa.Boolean)
    ).c
    leased = sa.and_(slot.question.is_not(None), slot.answer.is_(None))
    _partial("uq_slots_question", ["question"], slot.question.is_not(None), unique=True)
    _partial("uq_slots_answer", ["answer"], slot.answer.is_not(None), unique=True)
    _partial(
        "ix_slots_free", ["test", "round", "place"], sa.and_(slot.question.is_(None), slot.needed)
    )
    _partial("ix_slots_expires", ["expires"], leased)
    _partial("ix_slots_left", ["item"], sa.and_(slot.answer.is_(None), slot.needed))


def _partial(name: str, columns: list[str], where: Any, unique: bool = False) -> None:
    op.create_index(
        name, "slots", columns, unique=unique, sqlite_where=where, postgresql_where=where
    )
