"""Numbers that tell nothing: a secret, and the order in which items were given; who did what."""

from functools import partial

from ruleout.web.database import run_step

revision, down_revision = "0003", "0002"
upgrade = partial(run_step, revision)
