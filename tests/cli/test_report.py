"""``ruleout report``: pages, tables and figures from ledgers, nothing computed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import typer
from experiments.made import record, spec
from typer.testing import CliRunner

from ruleout.cli.report import report
from ruleout.experiments import Ledger
from ruleout.experiments.ledger import write_parquet

app = typer.Typer()
app.command()(report)


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(word) for word in words])
    return result.exit_code, re.sub(r"[│\s]+", " ", result.output)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two cells with a result, one without."""
    with Ledger(tmp_path / "a.sqlite") as made:
        for name in ("log", "mae"):
            made.write(record(spec(name)))
        made.add([spec("exp")])
    return tmp_path / "a.sqlite"


def test_a_ledger_becomes_a_folder_of_everything(ledger: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    code, text = run(ledger, "--out", out)
    assert code == 0, text
    assert text.startswith("2 cells, 1 without a result ")
    ends = {file.suffix for file in out.rglob("*") if file.is_file()}
    assert ends == {".html", ".tex", ".md", ".csv", ".parquet", ".png", ".pdf"}
    for file in out.rglob("*.*"):
        assert str(file) in text
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.sqlite", "new"]


def test_a_folder_of_parquet_files_is_a_ledger_too(ledger: Path, tmp_path: Path) -> None:
    assert run(ledger, "--out", tmp_path / "a", "--format", "parquet,csv")[0] == 0
    code, text = run(tmp_path / "a" / "ledger", "--out", tmp_path / "b", "--format", "parquet,csv")
    assert code == 0, text
    assert text.startswith("2 cells ")
    one, other = ((tmp_path / name / "accuracy.csv").read_bytes() for name in "ab")
    assert one == other
    for file in (tmp_path / "a" / "ledger").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / "ledger" / file.name).read_bytes()


def test_of_several_ledgers_each_cell_counts_once(ledger: Path, tmp_path: Path) -> None:
    write_parquet([record(spec("exp")), record(spec("log"))], tmp_path / "more")
    code, text = run(ledger, tmp_path / "more", "--out", tmp_path / "out", "--format", "csv")
    assert code == 0, text
    assert text.startswith("3 cells ")
    assert len((tmp_path / "out" / "accuracy.csv").read_text().splitlines()) == 4


def test_formats_can_be_named(ledger: Path, tmp_path: Path) -> None:
    code, text = run(ledger, "--out", tmp_path / "out", "--format", "html", "--format", "latex")
    assert code == 0, text
    assert {file.suffix for file in (tmp_path / "out").iterdir()} == {".html", ".tex"}


def test_the_ledger_stays_as_it_is(ledger: Path, tmp_path: Path) -> None:
    before = ledger.read_bytes()
    run(ledger, "--out", tmp_path / "out")
    assert ledger.read_bytes() == before


def test_an_empty_ledger_has_a_report(tmp_path: Path) -> None:
    Ledger(tmp_path / "a.sqlite").close()
    code, text = run(tmp_path / "a.sqlite", "--out", tmp_path / "out")
    assert code == 0, text
    assert text.startswith("0 cells ")
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (
            ["a.sqlite", "--out", "out", "--format", "htlm"],
            2,
            "unknown format 'htlm'; did you mean 'html'?",
        ),
        (
            ["a.sqlite", "--out", "out", "--format", "docx"],
            2,
            "unknown format 'docx'; say html, latex, markdown, csv, parquet, png, pdf",
        ),
        (
            ["none.sqlite", "--out", "out"],
            1,
            "none.sqlite: there is no such ledger; run `ruleout paper` first",
        ),
        (
            ["text", "--out", "out"],
            1,
            "text: this is not a ledger (file is not a database); name a file that",
        ),
        (
            ["folder", "--out", "out"],
            1,
            "cells.parquet: the file is missing; name a ledger, or the folder of its",
        ),
        (["a.sqlite", "--out", "text/out"], 1, "text: this is a file; name a folder with --out"),
        (["a.sqlite"], 2, "--out"),
        ([], 2, "LEDGER"),
    ],
)
def test_bad_words_are_one_sentence(
    ledger: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    code: int,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("text").write_text("no database, although it is long enough for the header of one" * 9)
    Path("folder").mkdir()
    got, text = run(*words)
    assert got == code, text
    assert sentence in text
    assert "Traceback" not in text
    assert ledger.exists()
    assert sorted(f.name for f in tmp_path.iterdir()) == ["a.sqlite", "folder", "text"]


def test_figures_without_matplotlib_are_one_sentence(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, text = run(ledger, "--out", tmp_path / "out", "--format", "png")
    assert code == 1
    assert "ruleout: figures need matplotlib; pip install 'ruleout[plot]'" in text
