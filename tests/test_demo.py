"""The command line: what it prints, and how it leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app
from ruleout.methods import PAPER

run = CliRunner().invoke


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few epochs and trials here; `make demo` runs it in full."""
    module = sys.modules["ruleout.cli.demo"]
    monkeypatch.setattr(module, "_EPOCHS", 1)
    monkeypatch.setattr(module, "_TRIALS", 2)
    monkeypatch.setattr(module, "_GRID", {"learning_rate": [1e-2, 1e-1]})


def test_version_and_help() -> None:
    assert run(app, ["--version"]).output.strip() == f"ruleout {ro.__version__}"
    assert "demo" in run(app, ["--help"]).output
    assert run(app, ["demoo"]).exit_code == 2


@pytest.mark.usefixtures("quick")
def test_demo_compares_every_approach(tmp_path: Path) -> None:
    threads = torch.get_num_threads()
    out, figure = tmp_path / "new" / "demo", tmp_path / "demo.png"
    result = run(app, ["demo", "--out", str(out), "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    for name in PAPER:
        assert f" {name} " in result.output
    assert result.output.rfind("cross entropy") > result.output.rfind("ga-after")
    assert str(out / "report.html") in result.output
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert torch.get_num_threads() == threads
    found = json.loads((out / "results.json").read_text("utf-8"))
    assert [row["approach"] for row in found["rows"]] == [*PAPER, "cross entropy"]
    page = (out / "report.html").read_text("utf-8")
    assert "Digits, learned from what they are not" in page


def test_demo_runs_the_paper_in_small() -> None:
    """At least six configurations and three trials, as promised."""
    from ruleout.training import configurations

    module = sys.modules["ruleout.cli.demo"]
    assert len(configurations(module._GRID)) >= 6
    assert module._TRIALS >= 3


@pytest.mark.usefixtures("quick")
def test_demo_prints_plain_lines_without_a_terminal(tmp_path: Path) -> None:
    result = run(app, ["demo", "--out", str(tmp_path)])
    assert "  0 %  log\n" in result.output
    assert "\x1b" not in result.output


def test_demo_without_matplotlib_says_so_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run(app, ["demo", "--out", str(tmp_path / "x"), "--figure", "demo.png"])
    assert result.exit_code == 1
    assert "pip install 'ruleout[plot]'" in result.output
    assert not (tmp_path / "x").exists()
