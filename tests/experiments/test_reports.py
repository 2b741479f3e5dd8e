"""Writing: every format from one set of records, the same bytes each time."""

from __future__ import annotations

import csv
import io
import re
import sys
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.made import held, record, spec

from ruleout.experiments import (
    FORMATS,
    Failure,
    Holdings,
    Record,
    page,
    paper_tables,
    plan,
    printed,
    write_report,
)
from ruleout.experiments.reports import COLUMNS, accuracies
from ruleout.labels.errors import InputError
from ruleout.report import Curves, latex, markdown, render, text

KEYS = ("table", "dataset", "model", "sizes", "group", "approach")
FEW = ("log", "exp", "mae", "mse", "gce", "phuber", "cce", "ga-before")


def some(**settings: Any) -> list[Record]:
    return [record(spec(n, d, **settings)) for d in ("yeast", "texture") for n in FEW]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def names(files: list[Path], folder: Path) -> set[str]:
    return {str(file.relative_to(folder)) for file in files}


# ---------------------------------------------------------------------- accuracy.csv


def usual(table: str) -> list[Record]:
    return [
        record(one, configurations=[{"learning_rate": 1e-3, "weight_decay": 1e-6}] * 4)
        for one in plan(table)
    ]


def test_accuracy_csv_has_a_row_for_each_cell_spelt_as_in_the_paper() -> None:
    """In the order of the paper's file, whatever the order of the records."""
    records = [*usual("linear"), *usual("uci"), *usual("fixed-mlp")]
    found = rows(accuracies(records[::-1]))
    cells = [one for one in printed() if one.table in ("uci", "linear", "fixed_mlp")]
    assert [tuple(row[name] for name in KEYS) for row in found] == [
        tuple(getattr(one, name) for name in KEYS) for one in cells
    ]
    assert [(row["paper_mean"], row["paper_std"]) for row in found] == [
        (f"{one.mean:.2f}", f"{one.std:.2f}") for one in cells
    ]


def test_accuracy_csv_begins_with_the_columns_of_the_papers_file() -> None:
    file = files("ruleout.experiments").joinpath("printed.csv")
    head, *theirs = file.read_text("utf-8").splitlines()
    assert head.split(",")[:6] == list(COLUMNS[:6]) == list(KEYS)
    ours = accuracies([one for t in ("uci", "linear", "deep", "fixed-linear", "fixed-mlp")
                       for one in usual(t)]).splitlines()[1:]  # fmt: skip
    assert [line.split(",")[:6] for line in ours] == [line.split(",")[:6] for line in theirs]


def test_accuracy_csv_says_what_was_found_and_how() -> None:
    one = record(spec("log", trials=2), [0.5, 0.75], chosen=np.array([2, 2]))
    (row,) = rows(accuracies([one]))
    assert {name: row[name] for name in COLUMNS[6:]} == {
        "mean": "62.50", "std": "17.68", "trials": "2", "learning_rate": "0.01",
        "weight_decay": "0", "protocol": "released", "chosen_by": "accuracy",
        "paper_mean": "60.11", "paper_std": "1.93", "difference": "2.39", "verdict": "agrees",
    }  # fmt: skip


def test_a_cell_searched_in_one_trial_stands_beside_the_others_and_says_so() -> None:
    whole, quick = record(spec("exp")), record(spec("log", search_trials=1))
    (table,) = paper_tables(held(whole, quick))
    assert len(table.records) == 2
    assert [row["chosen_by"] for row in rows(accuracies([quick]))] == ["accuracy in 1 trial"]
    for form in (markdown, latex, text):
        told = " ".join(form(table.cells).split())
        assert "In 1 of 2 cells 1 of 3 trials searched the grid for all" in told
    facts = [row.cells[0].facts["Trials that searched the grid"] for row in table.cells.rows]
    assert facts == ["3 of 3", "1 of 3"]


def test_the_fullest_search_of_a_cell_that_has_run_is_shown() -> None:
    quick, whole = spec("log", search_trials=1), spec("log")
    both = Holdings((whole, quick), (record(whole), record(quick)))
    assert [one.spec for one in paper_tables(both)[0].records] == [whole]
    begun = Holdings((quick, whole), (record(quick),))
    assert [one.spec for one in paper_tables(begun)[0].records] == [quick]


def test_accuracy_csv_lists_choices_that_differ_and_leaves_out_what_is_unknown() -> None:
    one = record(
        spec("log", per_trial=True, criterion="risk"),
        [0.5, np.nan, 0.5],
        chosen=np.array([0, 2, 0]),
    )
    (row,) = rows(accuracies([one, record(spec(dataset="digits"))]))
    assert row["learning_rate"] == "0.1|0.01"
    assert row["chosen_by"] == "risk per trial"
    assert row["mean"] == row["std"] == row["difference"] == row["verdict"] == ""


# ---------------------------------------------------------------------- files


def test_every_format_is_written(tmp_path: Path) -> None:
    made = write_report(held(*some()), tmp_path / "new" / "out")
    name = "uci-own-grid-trials-3-epochs-6-average-2"
    assert made[0] == tmp_path / "new" / "out" / "report.html"
    assert names(made, tmp_path / "new" / "out") == {
        "report.html", f"{name}.tex", f"{name}.md", f"{name}.csv", "accuracy.csv",
        *(f"ledger/{n}.parquet" for n in ("cells", "trials", "configurations", "curves")),
        *(f"figure-{n}.{end}" for n in (1, 2) for end in ("png", "pdf")),
    }  # fmt: skip
    assert all(file.stat().st_size > 100 for file in made)
    assert (made[0].parent / "figure-1.png").read_bytes().startswith(b"\x89PNG")
    assert (made[0].parent / "figure-1.pdf").read_bytes().startswith(b"%PDF")
    assert len(list((tmp_path / "new" / "out").iterdir())) == 10  # nothing else is left


@pytest.mark.parametrize("form", FORMATS)
def test_one_format_alone(tmp_path: Path, form: str) -> None:
    made = write_report(held(*some()), tmp_path, [form])
    ends = {"latex": {".tex"}, "markdown": {".md"}}.get(form, {f".{form}"})
    assert {file.suffix for file in made} == ends
    assert {file for file in tmp_path.rglob("*") if file.is_file()} == set(made)


def test_every_setting_has_files_of_its_own(tmp_path: Path) -> None:
    both = held(*some(), *some(features="standardised"))
    made = write_report(both, tmp_path, ["csv", "latex"])
    assert len(made) == len(set(made)) == 6
    one, other = sorted(file for file in made if file.name.startswith("accuracy"))
    assert len(rows(one.read_text())) == len(rows(other.read_text())) == len(some())


def test_files_come_in_one_order(tmp_path: Path) -> None:
    """People read the list; it does not depend on how words are hashed, nor on what was asked."""
    both = held(record(spec()), record(spec(features="standardised")))
    made = write_report(both, tmp_path, ["csv", "markdown", "latex", "html"])
    ends = [file.suffix for file in made]
    assert ends == [".html", ".tex", ".md", ".csv", ".tex", ".md", ".csv", ".csv", ".csv"]


def test_the_same_records_give_the_same_bytes(tmp_path: Path) -> None:
    """Pictures too: reports can be compared, and kept in version control."""
    for name in ("a", "b"):
        write_report(held(*some()), tmp_path / name)
    files = sorted(f.relative_to(tmp_path / "a") for f in (tmp_path / "a").rglob("*.*"))
    assert len(files) == 13
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


def test_a_report_is_written_over_an_older_one(tmp_path: Path) -> None:
    write_report(held(*some()[:1]), tmp_path, ["html", "csv"])
    before = (tmp_path / "report.html").read_bytes()
    write_report(held(*some()), tmp_path, ["html", "csv"])
    assert (tmp_path / "report.html").read_bytes() != before
    assert len(rows((tmp_path / "accuracy.csv").read_text())) == len(some())


def test_tables_agree_in_every_form(tmp_path: Path) -> None:
    """The same percentages in LaTeX, Markdown, CSV and on the page."""
    write_report(held(*some()), tmp_path, ["latex", "markdown", "csv", "html"])
    one = some()[0]
    shown = f"{100 * one.mean:.2f}"
    for file in tmp_path.glob("*.tex"):
        assert shown in file.read_text()
    for file in tmp_path.glob("uci*.md"):
        assert shown in file.read_text()
    assert shown in (tmp_path / "report.html").read_text()
    assert shown in (tmp_path / "accuracy.csv").read_text()


# ---------------------------------------------------------------------- figures


def test_figures_need_curves_of_the_unbiased_losses(tmp_path: Path) -> None:
    assert write_report(held(record(spec("log"))), tmp_path, ["png", "pdf"]) == []
    bare = record(spec("mae"), curves={})
    assert write_report(held(bare), tmp_path, ["png"]) == []
    one = record(spec("mae", trials=1))
    made = write_report(held(one), tmp_path, ["png"])
    assert names(made, tmp_path) == {"figure-1.png", "figure-2.png"}


def test_a_figure_has_no_empty_panels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    seen: list[list[bool]] = []
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *_, **__: seen.append([a.get_visible() for a in self.axes])
    )
    sets = ("yeast", "texture", "dermatology", "synthetic-control", "digits")
    write_report(held(*(record(spec("mae", dataset=one)) for one in sets)), tmp_path, ["png"])
    assert seen == [[True] * 5 + [False] * 3] * 2


def test_without_matplotlib_figures_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError) as caught:
        write_report(held(*some()), tmp_path, ["png"])
    assert str(caught.value) == (
        "figures need matplotlib; pip install 'ruleout[plot]', or leave out png and pdf"
    )


# ---------------------------------------------------------------------- the page


def test_the_page_has_a_section_for_each_table() -> None:
    both = held(*some(), *some(features="standardised"), record(spec(dataset="digits")))
    made = page(both)
    assert len(made.sections) == 4  # and one for the figures
    assert len({one.title for one in made.sections}) == 4
    text = render(made)
    for section in made.sections:
        assert section.title in text


def test_the_page_has_both_figures_with_a_panel_for_each_data_set() -> None:
    assert len(page(held(record(spec("log")))).sections) == 1  # none of the losses drawn there
    found = [record(spec(name, dataset=data)) for data in ("texture", "yeast")
             for name in ("cce", "mae", "log")]  # fmt: skip
    figures = page(held(*found)).sections[-1]
    assert figures.title == "Figures 1 and 2: accuracy by epoch"
    assert [part.title for part in figures.parts if isinstance(part, Curves)] == [
        "Yeast, linear: test accuracy",
        "Yeast, linear: training accuracy with true labels",
        "Texture, linear: test accuracy",
        "Texture, linear: training accuracy with true labels",
    ]
    first = figures.parts[0]
    assert isinstance(first, Curves)
    assert [line.name for line in first.lines] == ["MAE", "CCE"]
    ours = found[4].curves["test"].mean(0)
    assert list(first.lines[0].mean) == pytest.approx(ours.tolist(), rel=1e-6)
    assert 'class="part half curves"' in render(page(held(*found)))


def test_the_page_counts_what_agrees() -> None:
    records = [
        record(spec("log", trials=2), [0.60, 0.6022]),
        record(spec("exp", trials=2), [0.90, 0.9022]),
        record(spec("mae", trials=2), [0.01, 0.0122]),
    ]
    summary = " ".join(page(held(*records)).summary)
    assert summary.startswith(
        "3 cells stand beside the paper's: 1 agrees, 1 is better, 1 is worse."
    )


def test_the_page_says_what_is_missing() -> None:
    given = Holdings(
        (spec("log"), spec("exp"), spec("mae")),
        (record(spec("log")),),
        (Failure(spec("exp"), 4, "ValueError: <b>no</b> [/good]"),),
    )
    made = page(given)
    summary = " ".join(made.summary)
    assert re.search(r"\b1 cells? ha(s|ve) not been run yet", summary)
    assert re.search(r"\b1 cells? failed", summary)
    text = render(made)
    assert "ValueError: &lt;b&gt;no&lt;/b&gt; [/good]" in text
    assert "<b>no</b>" not in text


@pytest.mark.parametrize("given", [Holdings((), ()), Holdings((spec(),), ())])
def test_an_empty_ledger_has_a_page_too(tmp_path: Path, given: Holdings) -> None:
    made = write_report(given, tmp_path)
    assert made[0].name == "report.html"
    assert "No cell of the paper's tables has been run." in " ".join(page(given).summary)
