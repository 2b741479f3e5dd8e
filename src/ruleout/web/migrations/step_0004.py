"""Projects that grow: a count of changes; what leads decide; tokens for programs."""

from functools import partial

from ruleout.web.database import run_step

revision, down_revision = "0004", "0003"
upgrade = partial(run_step, revision)
