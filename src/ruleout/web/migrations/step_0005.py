"""Gold items are found by an index, however many others there are."""

from functools import partial

from ruleout.web.database import run_step

revision, down_revision = "0005", "0004"
upgrade = partial(run_step, revision)
