"""Accounts: passwords, invites, sessions; and rounds that hold imported answers."""

from functools import partial

from ruleout.web.database import run_step

revision, down_revision = "0002", "0001"
upgrade = partial(run_step, revision)
