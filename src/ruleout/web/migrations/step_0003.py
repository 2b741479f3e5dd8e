"""Numbers that tell nothing: a secret, and the order in which items were given; who did what."""

from ruleout.web.database import run_step

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    run_step(revision)
