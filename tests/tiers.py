"""How much is run, and what a machine must have: set by the environment."""

from __future__ import annotations

import os

COUNT = float(os.environ.get("RULEOUT_COUNT", "1"))  # scales the slow tier
STRICT = os.environ.get("RULEOUT_STRICT") == "1"  # a skipped test has failed
