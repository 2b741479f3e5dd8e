"""Projects that grow: a count of changes; what leads decide; tokens for programs."""

from ruleout.web.database import run_step

revision, down_revision = "0004", "0003"


def upgrade() -> None:
    """Add what is new; nothing that was written changes."""
    run_step(revision)
