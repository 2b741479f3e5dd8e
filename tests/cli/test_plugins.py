"""Losses and data sets of a user's own, known to every command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.fitted import QUICK, run, trained

import ruleout as ro
from ruleout.cli.common import PLUGINS, _load_plugins

MODULE = """
import ruleout as ro

@ro.losses.register("{name}", family="bounded", paper="mine")
def loss(logits, excluded):
    "One less the probability of what is left."
    return 1 - (logits.softmax(-1) * (1 - excluded)).sum(-1)

ro.datasets.register("{name}-blobs", lambda: ([[0.0, 1.0], [1.0, 0.0]] * 4, ["a", "b"] * 4))
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a module of a user's own lies; afterwards everything is as it was."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before, known = set(ro.losses.names()), dict(ro.datasets.registry.REGISTRY)
    _load_plugins.cache_clear()
    yield tmp_path
    for name in set(ro.losses.names()) - before:
        ro.losses.forget(name)
    ro.datasets.registry.REGISTRY.clear()
    ro.datasets.registry.REGISTRY.update(known)
    PLUGINS.clear()
    _load_plugins.cache_clear()


def test_a_module_of_the_current_folder_is_known_to_commands(folder: Path) -> None:
    (folder / "own_loss.py").write_text(MODULE.format(name="own"))
    _, data = trained()
    ask = ["--excluded", "not", "--ignore", "is", "--approach", "own", "--out", "model", *QUICK]
    assert run("fit", data, *ask).exit_code == 1
    done = run("--plugin", "own_loss", "fit", data, *ask)
    assert done.exit_code == 0, done.output
    assert ro.load(folder / "model").approach == "own"
    assert "own-blobs" in run("--plugin", "own_loss", "data", "list").stdout


def test_an_installed_package_is_known_without_being_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "installed_loss.py").write_text(MODULE.format(name="installed"))
    about = folder / "installed_loss-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: installed-loss\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[ruleout.plugins]\ninstalled = installed_loss\n")
    monkeypatch.syspath_prepend(folder)
    assert "installed-blobs" in run("data", "list").stdout


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "ModuleNotFoundError"), ("1 / 0", "ZeroDivisionError"), ("(", "SyntaxError")],
)
def test_a_plugin_that_does_not_load_is_one_sentence(
    folder: Path, content: str | None, said: str
) -> None:
    name = f"broken_{said.lower()}"
    if content is not None:
        (folder / f"{name}.py").write_text(content)
    done = run("--plugin", name, "data", "list")
    assert done.exit_code == 1
    assert done.stderr.startswith(f"ruleout: the plugin '{name}' does not load ({said}: ")


def test_a_file_is_told_from_its_module(folder: Path) -> None:
    (folder / "own_file.py").write_text("")
    done = run("--plugin", "own_file.py", "data", "list")
    assert done.exit_code == 1
    assert done.stderr.endswith("; say --plugin own_file in the folder of that file\n")


def test_help_loads_no_plugin(folder: Path) -> None:
    (folder / "loud.py").write_text("raise SystemExit(3)")
    assert run("--plugin", "loud", "fit", "--help").exit_code == 0


def test_workers_know_what_a_plugin_registers(folder: Path) -> None:
    """A rule, and a data set whose loader is of another module."""
    (folder / "own_rows.py").write_text(
        "def rows():\n    return [[0, 1], [1, 0]] * 20, ['a', 'b'] * 20\n"
    )
    (folder / "own_rule.py").write_text(
        "import own_rows, ruleout as ro\n"
        "from ruleout.methods import register_rule\n"
        "ro.datasets.register('twenty', own_rows.rows)\n"
        "@register_rule('own-rule', paper='mine')\n"
        "def rule(logits, excluded, prior, weight):\n"
        "    return (excluded * logits.log_softmax(-1)).mean((-2, -1))\n"
    )
    told = ["--datasets", "twenty", "--approaches", "log,own-rule-after", "--epochs", 2]
    told += ["--trials", 2, "--grid", "small", "--ledger", "a.sqlite", "--workers", 2]
    try:
        done = run("--plugin", "own_rule", "paper", "own", *told, "--out", "out")
    finally:
        ro.methods.forget_rule("own-rule")
    assert done.exit_code == 0, done.output
    assert "OWN-RULE" in done.stdout
    plain = run(
        "paper", "own", "--datasets", "digits", "--approaches", "log", *told[4:], "--dry-run"
    )
    assert plain.exit_code == 0, plain.output  # what is there of others needs no plugin
