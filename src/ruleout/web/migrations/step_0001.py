"""The first schema: settings, people, items, questions, answers, slots."""

from ruleout.web.database import run_step

revision, down_revision = "0001", None


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    run_step(revision)
