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
from ruleout.experiments.reports import COLUMNS, accuracies, findings
from ruleout.labels.errors import InputError
from ruleout.report import Curves, Listing, Note, Ranks, latex, markdown, render, text
from ruleout.report.number_format import known

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


def cifar(name: str, **settings: Any) -> Record:
    usual: dict[str, Any] = {"trials": 5, "epochs": 250, "average": 10, "grid": "paper"}
    return record(spec(name, "cifar10", model="resnet32", **usual | settings))


def test_cells_of_the_paper_stand_in_its_table_however_much_was_computed() -> None:
    """And say what chose, in the file and beneath the table; tests need as many trials."""
    plain = [cifar("gce"), cifar("mse", precision="tf32"), cifar("cce", search_trials=1)]
    printed_one, halved = cifar("log", grid="printed"), cifar("mae", grid="halving", trials=1)
    (table,) = paper_tables(held(*plain, printed_one, halved))
    assert table.cells.name == "deep"
    assert len(table.records) == 5
    found = {row["approach"]: row["chosen_by"] for row in rows(accuracies(table.records))}
    assert (found["LOG"], found["MAE"]) == ("printed", "accuracy by halving")
    told = " ".join(text(table.cells).split())
    assert (
        "In 1 of 5 cells 1 of 5 trials searched the grid for all; in 1 of 5 cells the paper's "
        "source prints the configuration; in 1 of 5 cells successive halving searched the grid; in "
        "1 of 5 cells there are fewer trials, and no test; in 1 of 5 cells another precision was "
        "used: see “chosen_by” in accuracy.csv." in told
    )
    tested = {row.label: known(row.cells[0].p_value) for row in table.cells.rows}
    assert tested == {"LOG": False, "MAE": False, "GCE": True, "MSE": True, "CCE": True}
    claims = {one.claim: one.counts for one in findings(table.records)}
    assert all("cells it speaks of are missing or have fewer trials" in n for n in claims.values())
    assert "5 or 1 trials" in page(held(*plain, halved)).sections[0].text


def test_a_fuller_record_keeps_its_place_and_the_other_gets_a_table_of_its_own() -> None:
    full, less = cifar("log"), cifar("log", grid="halving", precision="bf16")
    least = cifar("log", grid="printed", trials=3)
    tables = paper_tables(held(least, less, full, cifar("mae", grid="halving", trials=1)))
    assert [table.cells.name for table in tables] == ["deep", "deep-trials-3", "deep-bf16"]
    assert [one.spec.approach for one in tables[0].records] == ["log", "mae"]
    assert [table.records[0].spec for table in tables] == [full.spec, least.spec, less.spec]
    (begun,) = paper_tables(Holdings((full.spec, less.spec), (less,)))
    assert [one.spec for one in begun.records] == [less.spec]


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

PAPERS: dict[str, Any] = {"trials": 5, "epochs": 250, "average": 10, "grid": "paper"}


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


def test_a_figure_names_every_loss_and_mixes_no_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the first panel has; curves of other epochs and laws have panels of their own."""
    from matplotlib.figure import Figure

    told: list[tuple[list[str], dict[str, int]]] = []

    def look(figure: Figure, *_: object, **__: object) -> None:
        names = [text.get_text() for text in figure.legends[0].get_texts()]
        told.append((names, {a.get_title(): len(a.lines) for a in figure.axes if a.get_visible()}))

    monkeypatch.setattr(Figure, "savefig", look)
    settings: list[tuple[str, str, dict[str, Any]]] = [
        ("cce", "texture", {"epochs": 30}),
        ("mae", "yeast", {}),
        ("cce", "texture", {}),
        ("gce", "texture", {}),
        ("mse", "texture", {"law": "strong:released"}),
    ]
    found = [record(spec(n, data, **PAPERS | own)) for n, data, own in settings]
    write_report(held(*found), tmp_path, ["png"])
    assert told[0][0] == ["MAE", "MSE", "GCE", "CCE"]
    assert told[0][1] == {
        "Yeast, linear": 1,
        "Texture, linear": 2,
        "Texture, linear, epochs 30": 1,
        "Texture, linear, strong released": 1,
    }


@pytest.mark.filterwarnings("error")
def test_names_of_ones_own_are_drawn_as_they_are(tmp_path: Path) -> None:
    """With what would be a formula, and with letters that the font does not have."""
    own = [record(spec(a, d)) for d in ("$x_$ ^", "日本") for a in ("mae", "gce")]
    ranked = [record(spec(a, law=f"fixed:{s}")) for s in range(1, 7) for a in ("log", "$x_$")]
    made = write_report(held(*own, *ranked), tmp_path, ["png"])
    assert {name.partition("-")[0] for name in names(made, tmp_path)} == {"figure", "ranks"}


def test_without_matplotlib_figures_are_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError) as caught:
        write_report(held(*some()), tmp_path, ["png"])
    assert str(caught.value) == (
        "figures need matplotlib; pip install 'ruleout[plot]', or leave out png and pdf"
    )


# ---------------------------------------------------------------------- across data sets


def whole(columns: int, **settings: Any) -> list[Record]:
    """LOG ahead of MAE, MAE ahead of GA, in every column."""
    steps = {"log": 0.8, "mae": 0.6, "ga-before": 0.4}
    return [
        record(spec(name, law=f"fixed:{s}", **settings), np.full(3, level + 0.01 * s))
        for s in range(1, columns + 1)
        for name, level in steps.items()
    ]


def test_approaches_are_ranked_over_all_columns_in_which_all_were_run(tmp_path: Path) -> None:
    records = [*whole(8), record(spec("cce")), record(spec("log", "texture"))]
    made = write_report(held(*records), tmp_path, ["png", "pdf"])
    assert {"ranks-own-grid-trials-3-epochs-6-average-2.png"} < names(made, tmp_path)
    section = next(one for one in page(held(*records)).sections if "across" in one.title)
    ranks, told = section.parts
    assert isinstance(ranks, Ranks)
    assert isinstance(told, Listing)
    assert list(ranks.names) == ["LOG", "MAE", "GA (before)"]
    assert list(ranks.ranks) == [1, 2, 3]
    assert told.rows == {
        "Approaches": "3",
        "Columns": "8: Yeast 8",
        "Friedman": "χ² = 16.00, F(2, 14) = inf, p <0.001",
        "Pairs told apart": "3 of 3",
        "Left out, not run in all": "CCE",
    }
    assert "Nemenyi" in section.text


def test_too_few_columns_to_rank_are_told_and_not_drawn(tmp_path: Path) -> None:
    few = held(*whole(4))
    section = next(one for one in page(few).sections if "across" in one.title)
    assert [part.text.partition(": ")[2] for part in section.parts if isinstance(part, Note)] == [
        "all 3 approaches have scores in 4 data sets; average ranks need 5 data sets and two "
        "approaches."
    ]
    assert write_report(few, tmp_path, ["png"]) == []
    section = next(one for one in page(held(*whole(5))).sections if "across" in one.title)
    told = next(dict(part.rows) for part in section.parts if isinstance(part, Listing))
    assert told["Pairs told apart"] == "0 of 3: with 3 approaches it takes 7 columns"


def test_settings_are_ranked_apart() -> None:
    both = held(*whole(6), *whole(7, features="standardised"))
    section = next(one for one in page(both).sections if "across" in one.title)
    facts = [part.rows["Columns"] for part in section.parts
             if isinstance(part, Listing) and isinstance(part.rows, dict)]  # fmt: skip
    assert facts == ["6: Yeast 6", "7: Yeast 7"]


# ---------------------------------------------------------------------- the page


def test_the_page_has_a_section_for_each_table() -> None:
    both = held(*some(), *some(features="standardised"), record(spec(dataset="digits")))
    made = page(both)
    assert len(made.sections) == 5  # and one for the ranks, one for the figures
    assert len({one.title for one in made.sections}) == 5
    text = render(made)
    for section in made.sections:
        assert section.title in text


def test_the_page_has_both_figures_with_a_panel_for_each_data_set() -> None:
    assert len(page(held(record(spec("log")))).sections) == 1  # none of the losses drawn there
    found = [record(spec(name, data, **PAPERS)) for data in ("texture", "yeast")
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
    assert "By Welch's test at 5 %, 2 differ." in summary


def test_the_page_counts_a_cell_once_whatever_its_settings() -> None:
    """In its usual one, and none that the paper does not print."""
    own = record(spec("log-text", **PAPERS))
    usual = record(spec("log", **PAPERS), [0.60, 0.6022, 0.6, 0.6, 0.6])
    others = [
        record(spec("log", **PAPERS | told), [0.1] * 5) for told in ({"seed": 1}, {"epochs": 19})
    ]
    for order in ([*others, usual, own], [usual, own, *others]):
        summary = " ".join(page(held(*order)).summary)
        assert summary.startswith("1 cell stands beside the paper's: 1 agrees, 0 are better, 0 are")


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


def test_cells_that_give_way_stand_in_a_table_of_their_own() -> None:
    """Also where only the trials that searched differ, in the paper's tables and in others."""
    for dataset in ("yeast", "digits"):
        both = [record(spec("log", dataset, search_trials=n)) for n in (0, 1)]
        tables = paper_tables(held(*both, record(spec("exp", dataset))))
        assert [len(table.records) for table in tables] == [2, 1]
        assert tables[1].records[0].spec.search_trials == 1
        assert tables[1].cells.name.endswith("-searched-in-1")
        assert tables[1].cells.title.endswith(", searched in 1")


def test_cells_of_data_that_changed_are_told_and_not_tested() -> None:
    worse = np.array([0.1, 0.11, 0.1, 0.11, 0.1])
    same = [record(spec(name), 0.9 - worse, about={"data": "a"}) for name in ("log", "exp")]
    for other, told in (("a", False), ("b", True)):
        (table,) = paper_tables(held(*same, record(spec("mae"), worse, about={"data": other})))
        said = "Cells of Yeast were not all trained on the same data, and those that differ are not"
        assert (said in table.cells.note) == told
        marks = {row.label: row.cells[0].mark for row in table.cells.rows}
        assert marks["MAE"] == ("" if told else "•")


@pytest.mark.parametrize("lost", [("exp", "log"), FEW, ("mae", "mse")])
def test_columns_in_which_training_diverged_are_reported(
    lost: tuple[str, ...], tmp_path: Path
) -> None:
    """Whole rows, or a whole column."""
    records = [record(one, [np.nan] * 5 if one.approach in lost else None) for one in plan("uci")]
    records += [record(one, [np.nan] * 5) for one in plan("linear", datasets=["mnist"])]
    write_report(held(*records), tmp_path, ["html", "csv"])
    made = (tmp_path / "report.html").read_text()
    assert "no two cells can be compared" in made
