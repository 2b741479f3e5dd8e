"""Accounts: passwords, invites, sessions; and rounds that hold imported answers."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_slot = sa.table(
    "slots", sa.column("question"), sa.column("answer"), sa.column("holder"),
    sa.column("needed", sa.Boolean), sa.column("test", sa.Boolean),
).c  # fmt: skip
_leased = sa.and_(_slot.question.is_not(None), _slot.answer.is_(None))


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    op.add_column("users", sa.Column("password", sa.Text))
    _tokens("invites")
    _tokens(
        "sessions", sa.Column("began", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Integer, nullable=False),
    )  # fmt: skip
    op.create_index("ix_sessions_expires", "sessions", ["expires"])
    if op.get_context().dialect.name == "sqlite":
        _rebuild_slots()
    else:
        op.drop_constraint("uq_slots_holder_item", "slots")
    _index_slots()
    skip = sa.table("answers", sa.column("kind", sa.Text)).c.kind == "skip"
    _partial("ix_answers_skips", "answers", ["user"], skip)


def _tokens(name: str, *more: sa.Column[Any]) -> None:
    op.create_table(
        name, sa.Column("token", sa.Text, primary_key=True),
        sa.Column("user", sa.Integer, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("expires", sa.BigInteger, nullable=False), *more,
    )  # fmt: skip
    op.create_index(f"ix_{name}_user", name, ["user"])


def _index_slots() -> None:
    either = sa.or_(_slot.needed, _slot.test)
    _partial("uq_slots_holder_item", "slots", ["holder", "item"], either, unique=True)
    held = sa.and_(_slot.holder.is_not(None), _slot.answer.is_(None))
    _partial("ix_slots_open", "slots", ["holder", "question"], held)
    _partial("ix_slots_given", "slots", ["holder"], _slot.answer.is_not(None))
    _partial("ix_slots_further", "slots", ["answer"], ~_slot.needed)


def _rebuild_slots() -> None:
    """Write the table anew without its constraint, which SQLite cannot drop."""
    op.rename_table("slots", "slots_0001")
    op.create_table(
        "slots",
        sa.Column(
            "item", sa.Integer, sa.ForeignKey("items.id"), primary_key=True, autoincrement=False
        ),
        sa.Column("round", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("needed", sa.Boolean, nullable=False),
        sa.Column("test", sa.Boolean, nullable=False),
        sa.Column("question", sa.Integer, sa.ForeignKey("questions.id")),
        sa.Column("holder", sa.Integer, sa.ForeignKey("users.id")),
        sa.Column("expires", sa.BigInteger),
        sa.Column("answer", sa.Integer, sa.ForeignKey("answers.number")),
        sa.CheckConstraint("(question IS NULL) = (holder IS NULL)", name="ck_slots_held"),
        sa.CheckConstraint("(question IS NULL) = (expires IS NULL)", name="ck_slots_until"),
        sa.CheckConstraint("answer IS NULL OR question IS NOT NULL", name="ck_slots_asked"),
    )  # fmt: skip
    op.execute("INSERT INTO slots SELECT * FROM slots_0001")
    op.drop_table("slots_0001")
    _partial("uq_slots_question", "slots", ["question"], _slot.question.is_not(None), unique=True)
    _partial("uq_slots_answer", "slots", ["answer"], _slot.answer.is_not(None), unique=True)
    free = sa.and_(_slot.question.is_(None), _slot.needed)
    _partial("ix_slots_free", "slots", ["test", "round", "place"], free)
    _partial("ix_slots_expires", "slots", ["expires"], _leased)
    left = sa.and_(_slot.answer.is_(None), _slot.needed)
    _partial("ix_slots_left", "slots", ["item"], left)


def _partial(name: str, table: str, columns: list[str], where: Any, unique: bool = False) -> None:
    op.create_index(name, table, columns, unique=unique, sqlite_where=where, postgresql_where=where)
