"""Numbers that tell nothing: a secret, and the order in which items were given; who did what."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is new; items keep their numbers, and what was asked stays as it was."""
    op.add_column("project", sa.Column("secret", sa.BigInteger))
    secret = sa.table("project", sa.column("secret", sa.BigInteger))
    op.execute(secret.update().values(secret=secrets.randbits(63)))
    op.add_column("items", sa.Column("position", sa.Integer))
    op.execute("UPDATE items SET position = id")
    op.create_table(
        "events",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Integer, sa.ForeignKey("users.id")),
        sa.Column("action", sa.Text, nullable=False),
        sa.Column("user", sa.Integer, sa.ForeignKey("users.id"), nullable=False),
    )
