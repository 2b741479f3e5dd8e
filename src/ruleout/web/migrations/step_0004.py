"""Projects that grow: a count of changes; what leads decide; tokens for programs."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    op.add_column("project", sa.Column("revision", sa.Integer))
    op.execute("UPDATE project SET revision = 0")
    op.add_column("sessions", sa.Column("name", sa.Text))
    op.create_table(
        "decisions",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("by", sa.Integer, sa.ForeignKey("users.id"), nullable=False),
        sa.Column("item", sa.Integer, sa.ForeignKey("items.id"), nullable=False),
        sa.Column("which", sa.Integer),
        sa.Column("voids", sa.Text, nullable=False),
    )
