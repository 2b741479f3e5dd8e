"""The first schema: settings, people, items, questions, answers, slots."""

from functools import partial

from ruleout.web.database import run_step

revision, down_revision = "0001", None
upgrade = partial(run_step, revision)
