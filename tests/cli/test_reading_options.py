"""Options that say how a table is read, in every command that reads one."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.fitted import run
from typer.main import get_command

from ruleout.cli import app

TABLES = ("check", "fit", "predict", "evaluate", "resolve", "compare", "draw")
QUICK = ("--grid", "none", "--epochs", "2")


def options_of(command: str) -> set[str]:
    found = get_command(app).commands[command].params  # type: ignore[attr-defined]
    return {name for one in found for name in one.opts}


@pytest.mark.parametrize("command", TABLES)
def test_every_command_that_reads_a_table_has_them(command: str) -> None:
    assert {"data", "--separator", "--labels-file"} <= options_of(command)


@pytest.fixture
def piped(tmp_path: Path) -> Path:
    file = tmp_path / "pets.csv"
    file.write_text("a~is~not\n" + "1~cat~dog|hen\n2~dog~cat\n3~hen~dog\n" * 6)
    return file


def test_a_separator_reaches_each_command(piped: Path) -> None:
    told, model = ("--separator", "~"), piped.with_name("model")
    sets = ("--excluded", "not", *told)
    results = [
        run("check", piped, *sets, "--ignore", "is"),
        run("fit", piped, "--out", model, *sets, "--ignore", "is", *QUICK),
        run("predict", model, piped, *told),
        run("evaluate", model, piped, "--label", "is", *told),
        run("resolve", model, piped, *sets),
        run("draw", piped, "--label", "is", "--out", piped.with_name("drawn.csv"), *told),
    ]
    assert [one.exit_code for one in results] == [0] * 6, [one.output for one in results]


def test_a_separator_that_is_none_is_one_sentence(piped: Path) -> None:
    result = run("check", piped, "--excluded", "not", "--separator", "~~")
    assert result.exit_code == 1
    assert result.stderr == (
        f"ruleout: {piped}: '~~' cannot separate cells; give one character such as ; or |, or the "
        "word tab, as --separator\n"
    )
