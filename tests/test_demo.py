"""The command line: what it prints, and how it leaves."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app
from ruleout.methods import PAPER

run = CliRunner().invoke


def test_version_and_help() -> None:
    assert run(app, ["--version"]).output.strip() == f"ruleout {ro.__version__}"
    assert "demo" in run(app, ["--help"]).output
    assert run(app, ["demoo"]).exit_code == 2


def test_help_does_not_load_torch() -> None:
    code = "import sys, ruleout.cli; print('torch' in sys.modules, 'sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"


def test_demo_trains_every_approach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few steps here; `make demo` runs it in full."""
    monkeypatch.setattr(sys.modules["ruleout.cli.demo"], "_STEPS", 15)
    result = run(app, ["demo", "--figure", str(tmp_path / "demo.png")])
    assert result.exit_code == 0, result.output
    for name in PAPER:
        assert ro.approach(name).label in result.output
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
