"""Accounts: passwords, invites, sessions; and rounds that hold imported answers."""

from ruleout.web.database import run_step

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    run_step(revision)
