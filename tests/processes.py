"""Processes that start soon: forked from one that has imported what takes long, without threads."""

from __future__ import annotations

import multiprocessing

QUICK = multiprocessing.get_context("forkserver")
QUICK.set_forkserver_preload(["pytest", "sqlalchemy", "ruleout.experiments", "ruleout.web"])
