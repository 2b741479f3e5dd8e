"""What commands load before they need it: checked in one process, from the lightest on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache

import pytest

CODE = """
import json, sys

found = {}

def note(stage, *heavy):
    found[stage] = sorted(set(heavy) & set(sys.modules))

import ruleout.cli
heavy = ["torch", "sklearn", "scipy", "pyarrow", "pandas", "PIL", "rich.table"]
heavy += ["sqlalchemy", "alembic", "starlette", "uvicorn", "argon2"]
note("the command line", *heavy)
import ruleout.report
note("a report", "torch", "matplotlib")
from ruleout.cli.data import show
show()
note("the list of data sets", "torch", "sklearn", "scipy", "pyarrow")
print(json.dumps(found))
"""


@cache
def loaded() -> dict[str, list[str]]:
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", CODE], capture_output=True, text=True, check=True, env=env
    )
    found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("stage", ["the command line", "a report", "the list of data sets"])
def test_nothing_heavy_is_loaded_early(stage: str) -> None:
    assert loaded()[stage] == []
