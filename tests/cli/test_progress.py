"""How far a command is: a bar on a terminal, lines elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from ruleout.cli.common import watching


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """A terminal that remembers what was written to it."""
    text = io.StringIO()
    console = Console(file=text, force_terminal=True, width=80)
    monkeypatch.setattr("ruleout.cli.common.Console", lambda **_: console)
    return text


@pytest.mark.parametrize("whole", [True, False])
def test_a_terminal_gets_a_bar_with_the_time_left(screen: io.StringIO, whole: bool) -> None:
    with watching(whole=whole) as (show, say):
        show("log", 1, 4)
        show("exp", 2, 4)
        say("half of it [is] done")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert "exp" in text
    assert "50 %" in text
    assert "half of it [is] done" in text
    assert ("25 %" in text) is not whole  # a bar of its own stays


def test_elsewhere_each_stage_of_the_whole_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(lambda stage, done, _: f"{done} {stage}", whole=True) as (show, _):
        for done, stage in ((0, "log"), (0.4, "log"), (0.5, "exp"), (0.9, "exp")):
            show(stage, done, 1)
    assert capsys.readouterr() == ("", "0 log\n0.5 exp\n")


def test_elsewhere_each_quarter_of_a_stage_gets_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with watching(lambda stage, done, total: f"{stage} {done}/{total}") as (show, _):
        for done in range(1, 9):
            show("choosing", done, 8)
    lines = [f"choosing {done}/8" for done in (1, 2, 4, 6, 8)]
    assert capsys.readouterr().err.splitlines() == lines
