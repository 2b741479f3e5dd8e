"""Gold items are found by an index, however many others there are."""

from ruleout.web.database import run_step

revision, down_revision = "0005", "0004"


def upgrade() -> None:
    """Add the index."""
    run_step(revision)
