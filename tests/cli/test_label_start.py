"""``ruleout label`` without its extra, and what the command line loads before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli.labelled import make_images, make_project

ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == sys.argv[1]:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from ruleout.cli import app
app(sys.argv[2:])
"""


def without(package: str, *words: object) -> subprocess.CompletedProcess[str]:
    """Run the command line where a package is not installed."""
    command = [sys.executable, "-c", ABSENT, package, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("--help",), ("label", "--help"), ("label", "init", "--help")])
def test_help_works_without_the_extra(words: tuple[str, ...]) -> None:
    done = without("sqlalchemy", *words)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


@pytest.mark.parametrize("command", ["init", "serve", "users", "status", "export", "import"])
def test_every_command_says_what_to_install(command: str, tmp_path: Path) -> None:
    options = {
        "init": ("--items", make_images(tmp_path / "images"), "--classes", "a,b"),
        "export": ("--out", tmp_path / "out"),
        "import": ("answers.csv",),
    }
    done = without("sqlalchemy", "label", command, tmp_path / "p", *options.get(command, ()))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "ruleout: labelling needs the package sqlalchemy, which is absent; run pip install "
        "'ruleout[label]'\n"
    )
    assert [file.name for file in tmp_path.iterdir() if file.name != "images"] == []


@pytest.mark.parametrize("package", ["uvicorn", "argon2", "starlette"])
def test_serving_says_what_to_install(package: str, tmp_path: Path) -> None:
    done = without(package, "label", "serve", make_project(tmp_path))
    assert done.returncode == 1
    assert done.stderr == (
        f"ruleout: labelling needs the package {package}, which is absent; run pip install "
        "'ruleout[label]'\n"
    )


def test_other_missing_modules_are_not_hidden(tmp_path: Path) -> None:
    done = without("pyarrow", "label", "status", make_project(tmp_path))
    assert "ModuleNotFoundError" in done.stderr


def test_the_command_line_loads_no_database() -> None:
    code = """
import sys
from ruleout.cli import app
heavy = {"sqlalchemy", "alembic", "starlette", "uvicorn", "argon2", "torch", "pyarrow"}
print(sorted(heavy & set(sys.modules)))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
