"""``ruleout label`` without its extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from cli.labelled import make_images, make_project

ABSENT = """
import json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from typer.testing import CliRunner
from ruleout.cli import app
done = [CliRunner().invoke(app, words) for words in json.loads(sys.argv[2])]
print(json.dumps([[one.exit_code, one.stdout, one.stderr, repr(one.exception)] for one in done]))
"""
COMMANDS = ["init", "serve", "users", "status", "export", "import"]


def without(package: str, commands: Sequence[Sequence[object]]) -> list[list[Any]]:
    """Run commands, all in one process, where a package is not installed."""
    words = json.dumps([[str(word) for word in command] for command in commands])
    done = subprocess.run(
        [sys.executable, "-c", ABSENT, package, words],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    found: list[list[Any]] = json.loads(done.stdout)
    return found


def test_every_command_says_what_to_install_and_help_works(tmp_path: Path) -> None:
    options = {
        "init": ("--items", make_images(tmp_path / "images"), "--classes", "a,b"),
        "export": ("--out", tmp_path / "out"),
        "import": ("answers.csv",),
    }
    asked = [("label", one, tmp_path / "p", *options.get(one, ())) for one in COMMANDS]
    helped = [("--help",), ("label", "--help"), ("label", "init", "--help")]
    *done, top, group, command = without("sqlalchemy", [*asked, *helped])
    problem = "ruleout: labelling needs the package sqlalchemy, which is not installed"
    for found in done:
        assert found[:3] == [1, "", f"{problem}; run pip install 'ruleout[label]'\n"]
    assert [file.name for file in tmp_path.iterdir() if file.name != "images"] == []
    for found in (top, group, command):
        assert found[0] == 0
        assert "Usage" in found[1]


@pytest.mark.parametrize("package", ["uvicorn", "argon2", "starlette"])
def test_serving_says_what_to_install(package: str, tmp_path: Path) -> None:
    (done,) = without(package, [("label", "serve", make_project(tmp_path))])
    assert done[0] == 1
    assert f"needs the package {package}, which is not installed" in done[2]


def test_other_missing_modules_are_not_hidden(tmp_path: Path) -> None:
    words = ("label", "export", make_project(tmp_path), "--out", tmp_path / "o")
    (done,) = without("pyarrow", [(*words, "--format", "parquet", "--unlabelled")])
    assert "ModuleNotFoundError" in done[3]
