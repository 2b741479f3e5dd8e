"""``ruleout doctor`` says what there is, and never fails."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import typer
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli.doctor import doctor

app = typer.Typer(pretty_exceptions_enable=False)
app.command()(doctor)
run = CliRunner().invoke


def found() -> Any:
    result = run(app, ["--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_it_says_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path))
    parts = found()
    assert parts["versions"]["ruleout"] == ro.__version__
    assert parts["versions"]["torch"] == torch.__version__
    assert int(parts["machine"]["cores"]) > 0
    assert parts["machine"]["memory"].endswith(" GB")
    assert parts["data"]["folder"] == str(tmp_path)
    assert parts["data"]["writable"] == "yes"
    assert parts["extras"]["plot"] == "installed"
    assert "dev" not in parts["extras"]
    text = run(app, [])
    assert text.exit_code == 0
    assert torch.__version__ in text.stdout


def test_an_extra_that_is_missing_comes_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import metadata

    real = metadata.version

    def version(name: str) -> str:
        if name == "matplotlib":
            raise metadata.PackageNotFoundError
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    assert found()["extras"]["plot"] == "missing matplotlib: pip install 'ruleout[plot]'"


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RULEOUT_DATA", str(tmp_path / "new"))

    def refuse(**_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    data = found()["data"]
    assert data["folder"] == f"{tmp_path / 'new'} (will be made when needed)"
    assert data["writable"] == f"no: {tmp_path} refuses; set RULEOUT_DATA"
    assert not (tmp_path / "new").exists()


def test_gpus_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    about = SimpleNamespace(name="H200", total_memory=141_000_000_000)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: about)
    assert found()["GPU"]["device 0"] == "H200, 141.0 GB"


def test_whatever_breaks_is_reported_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise RuntimeError("driver\nis too old")

    monkeypatch.setattr(torch.cuda, "is_available", broken)
    parts = found()
    assert parts["GPU"] == {"unknown": "RuntimeError: driver is too old"}
    assert "numpy" in parts["versions"]
