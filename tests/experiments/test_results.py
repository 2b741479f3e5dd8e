"""Tables: marks, the best, and what the paper printed, against plain loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.made import held, record, spec
from scipy import stats

from ruleout.experiments import (
    Failure,
    Holdings,
    PaperTable,
    Record,
    Spec,
    gather,
    page,
    paper_tables,
    plan,
    printed,
    verdict,
)
from ruleout.experiments.plans import DATASETS, MODELS, label_of, printed_for
from ruleout.experiments.reports import count, difference, findings, trends
from ruleout.methods import approach
from ruleout.report import TableCell

RESULTS = Path(__file__).parents[2] / "results" / "ledger"
LEVEL = 0.05


def only(tables: Sequence[PaperTable]) -> PaperTable:
    (table,) = tables
    return table


def cell(table: PaperTable, row: str, column: str) -> TableCell:
    place = list(table.cells.columns).index(column)
    (found,) = (
        one.cells[place]
        for one in table.cells.rows
        if (one.group, one.label) == (approach(row).family, approach(row).label)
    )
    return found


# ---------------------------------------------------------------------- the reference


def reference(column: list[Record]) -> dict[str, dict[str, Any]]:
    """What a column must show: p-values by SciPy, Holm and the rest in plain loops."""
    finite = [one for one in column if all(math.isfinite(a) for a in one.accuracy.tolist())]
    means = {one.spec.approach: sum(one.accuracy.tolist()) / len(one.accuracy) for one in finite}
    told: dict[str, dict[str, Any]] = {}
    for one in column:
        name = one.spec.approach
        told[name] = {"p": None, "holm": None, "mark": "", "mark_holm": "", "ours": False}
        told[name]["mean"] = means.get(name)
    shown = {name: f"{100 * mean:.2f}" for name, mean in means.items()}
    most = max(shown.values(), key=float, default="")
    for name in told:
        told[name]["best"] = shown.get(name) == most
    ours = None
    for name in ("exp", "log"):
        if name in means and (ours is None or means[name] > means[ours]):
            ours = name
    if ours is None:
        return told
    told[ours]["ours"] = True
    mine = next(one for one in finite if one.spec.approach == ours).accuracy
    tested = []
    for one in finite:
        if one.spec.approach == ours or len(one.accuracy) < len(mine):  # which cannot be paired
            continue
        if np.allclose(one.accuracy - mine, (one.accuracy - mine)[0], rtol=0, atol=1e-14):
            p = 1.0 if abs((one.accuracy - mine)[0]) < 1e-14 else 0.0
        else:
            p = float(stats.ttest_rel(mine, one.accuracy).pvalue)
        tested.append((p, one.spec.approach))
    highest = 0.0
    for place, (p, name) in enumerate(sorted(tested)):
        highest = max(highest, min(1.0, p * (len(tested) - place)))
        worse = means[name] < means[ours]
        sign = "•" if worse else "○"
        same = means[name] == means[ours]
        told[name]["p"], told[name]["holm"] = p, highest
        told[name]["mark"] = sign if p < LEVEL and not same else ""
        told[name]["mark_holm"] = sign if highest < LEVEL and not same else ""
    return told


def check(table: PaperTable, column: str, records: list[Record]) -> None:
    expected = reference(records)
    ours = [name for name, one in expected.items() if one["ours"]]
    place = list(table.cells.columns).index(column)
    assert table.cells.ours[place] == (approach(ours[0]).label if ours else "")
    for name, one in expected.items():
        found = cell(table, name, column)
        if one["mean"] is None:
            assert found.mean is None
            continue
        assert found.mean == pytest.approx(one["mean"], abs=1e-15)
        assert found.best is one["best"]
        assert (found.mark, found.holm) == (one["mark"], one["mark_holm"])
        assert found.p_value == (None if one["p"] is None else pytest.approx(one["p"], rel=1e-9))
        assert found.p_holm == (None if one["p"] is None else pytest.approx(one["holm"], rel=1e-9))


def plain_verdict(one: Record) -> str:
    (theirs,) = (
        each
        for each in printed()
        if DATASETS[each.dataset] == one.spec.dataset
        and MODELS[each.model] == one.spec.model
        and each.row == one.spec.approach
        and each.sizes == one.spec.sizes
    )
    values = [100 * a for a in one.accuracy.tolist()]
    mean = sum(values) / len(values)
    scatter = sum((a - mean) ** 2 for a in values)
    std = math.sqrt(scatter / (len(values) - 1)) if len(values) > 1 else 0.0
    if abs(mean - theirs.mean) <= 2 * math.sqrt(std**2 + theirs.std**2):
        return "agrees"
    return "better" if mean > theirs.mean else "worse"


# ---------------------------------------------------------------------- against it


@pytest.fixture(scope="module")
def real() -> Holdings:
    """Our own results, from the repository."""
    if not RESULTS.is_dir():
        pytest.skip(f"{RESULTS} is not there")
    return gather(RESULTS)


def head_of(spec: Spec, table: PaperTable) -> str:
    """Return the column of a cell: its data set, with the network of several, or one size."""
    if spec.law.startswith("fixed:"):
        return spec.sizes.replace("=", " = ")
    several = len({one.spec.model for one in table.records if one.spec.dataset == spec.dataset}) > 1
    return label_of(spec.dataset) + f" ({spec.model})" * several


def test_marks_and_the_best_of_our_results_are_those_of_plain_loops(real: Holdings) -> None:
    checked = 0
    for table in paper_tables(real):
        for head in dict.fromkeys(head_of(one.spec, table) for one in table.records):
            records = [one for one in table.records if head_of(one.spec, table) == head]
            check(table, head, records)
            checked += len(records)
    assert checked == len(real.records) > 0


def test_verdicts_of_our_results_are_those_of_plain_loops(real: Holdings) -> None:
    found: dict[str, int] = {"run": 0, "agrees": 0, "better": 0, "worse": 0}
    for table in paper_tables(real):
        if not table.cells.compared:
            assert {one.verdict for one in table.cells.cells} == {""}
            assert not table.cells.beside_paper
            continue
        for one in table.records:
            expected = plain_verdict(one)
            shown = cell(table, one.spec.approach, head_of(one.spec, table))
            assert verdict(one) == shown.verdict == expected
            found[expected] += 1
            found["run"] += 1
            theirs = printed_for(one.spec)
            assert theirs is not None
            assert shown.paper_mean == pytest.approx(theirs.mean / 100)
            assert shown.paper_std == pytest.approx(theirs.std / 100)
            assert difference(one) == pytest.approx(100 * one.mean - theirs.mean)
    compared = [r for t in paper_tables(real) if t.cells.compared for r in t.records]
    assert count(compared) == found
    assert min(found.values()) > 0


@pytest.mark.parametrize("seed", range(8))
def test_marks_of_made_up_numbers_are_those_of_plain_loops(seed: int) -> None:
    """Columns with clear and unclear differences, ties, and trials that diverged."""
    random = np.random.default_rng(seed)
    base = random.uniform(0.5, 0.6, 5)
    gaps = {"exp": 0.2, "log": 0.21, "mae": 0.0, "mse": 0.19, "gce": 0.25, "clpl": 0.1}
    records = [
        record(spec(name, trials=5), base + gap + random.normal(0, 0.01, 5))
        for name, gap in gaps.items()
    ]
    twin = record(spec("pc-after", trials=5), records[seed % 2].accuracy)
    gone = record(spec("cce", trials=5), [0.5, math.nan, 0.5, 0.5, 0.5])
    records += [twin, gone]
    check(only(paper_tables(held(*records))), "Yeast", records)


@pytest.mark.parametrize(("exp", "log", "ours"), [(0.6, 0.5, "EXP"), (0.5, 0.6, "LOG")])
def test_ours_is_the_better_of_exp_and_log_in_each_column(
    exp: float, log: float, ours: str
) -> None:
    """Also where another approach is better still."""

    def of(dataset: str, **means: float) -> list[Record]:
        return [record(spec(n, dataset), [m, m + 0.01, m - 0.01]) for n, m in means.items()]

    yeast, texture = (
        of("yeast", exp=exp, log=log, mae=0.9),
        of("texture", exp=0.9, log=0.8, mae=0.1),
    )
    table = only(paper_tables(held(*yeast, *texture)))
    assert list(table.cells.ours) == [ours, "EXP"]
    assert cell(table, ours.lower(), "Yeast").mark == ""
    assert cell(table, ours.lower(), "Yeast").p_value is None
    assert cell(table, "mae", "Yeast").mark == "○"
    assert cell(table, "mae", "Texture").mark == "•"


def test_a_column_without_ours_has_no_marks() -> None:
    table = only(paper_tables(held(record(spec("mae")), record(spec("mse")))))
    assert list(table.cells.ours) == [""]
    assert {one.mark for one in table.cells.cells} == {""}


def test_ours_that_diverged_is_not_ours() -> None:
    gone = record(spec("exp"), [math.nan, 0.9, 0.9])
    table = only(paper_tables(held(gone, record(spec("log"), [0.5, 0.6, 0.5]))))
    assert list(table.cells.ours) == ["LOG"]
    assert cell(table, "exp", "Yeast").mean is None
    assert cell(table, "exp", "Yeast").note == "training diverged in some trial"


def test_one_trial_is_no_test() -> None:
    table = only(paper_tables(held(*(record(spec(n, trials=1)) for n in ("log", "exp", "mae")))))
    assert all(one.p_value is None and one.mark == "" for one in table.cells.cells)
    assert all(one.std is None and one.mean is not None for one in table.cells.cells)


# ---------------------------------------------------------------------- what is missing


def test_cells_that_were_not_run_are_there_with_a_note() -> None:
    done, open_, failed = spec("log"), spec("exp"), spec("mae")
    once = Failure(spec("mse"), 1, "KeyError: 'b'")
    given = Holdings(
        (done, open_, failed, spec("mse"), spec("log", "texture")),
        (record(done),),
        (Failure(failed, 4, "ValueError: no | good"), once),
    )
    table = only(paper_tables(given))
    assert list(table.cells.columns) == ["Yeast", "Texture"]
    assert cell(table, "log", "Yeast").mean is not None
    assert cell(table, "exp", "Yeast").note == "not run yet"
    assert cell(table, "mae", "Yeast").note == "failed 4 times: ValueError: no | good"
    assert cell(table, "mse", "Yeast").note == "failed 1 time: KeyError: 'b'"
    assert cell(table, "log", "Texture").note == "not run yet"
    assert cell(table, "exp", "Texture").note == "not run"
    assert cell(table, "exp", "Yeast").paper_mean == pytest.approx(0.5494)
    assert table.records == list(given.records)


def test_nothing_gives_no_table() -> None:
    assert paper_tables(Holdings((), ())) == []


# ---------------------------------------------------------------------- the paper's shape


def in_print(table: str) -> tuple[list[tuple[str, str, str]], list[str]]:
    cells = [one for one in printed() if one.table == table]
    columns = dict.fromkeys((one.dataset, one.model, one.sizes) for one in cells)
    return list(columns), list(dict.fromkeys(one.row for one in cells))


@pytest.mark.parametrize("name", ["uci", "linear", "deep", "fixed-linear", "fixed-mlp"])
def test_rows_and_columns_stand_as_in_the_paper(name: str) -> None:
    """Whatever the order of the tasks."""
    specs = plan(name)
    np.random.default_rng(0).shuffle(specs)
    table = only(paper_tables(Holdings(tuple(specs), ())))
    columns, rows = in_print(name.replace("-", "_"))
    assert table.cells.name == name
    assert table.setting == ""
    labels = [approach(row) for row in rows]
    assert [(r.group, r.label) for r in table.cells.rows] == [(a.family, a.label) for a in labels]
    for place, (dataset, model, sizes) in enumerate(columns):
        head = table.cells.columns[place]
        assert head == f"s = {sizes[2:]}" if sizes.startswith("s=") else head.startswith(dataset)
        if dataset == "CIFAR-10":
            assert head == f"CIFAR-10 ({MODELS[model]})"
    papers = [[one.paper_mean for one in row.cells] for row in table.cells.rows]
    means = {(one.place[:3], one.sizes): one.mean for one in printed()}
    for row, shown in zip(rows, papers, strict=True):
        for (dataset, model, sizes), paper in zip(columns, shown, strict=True):
            expected = means[(DATASETS[dataset], MODELS[model], row), sizes]
            assert paper == pytest.approx(expected / 100)


def test_cells_that_the_paper_does_not_have_are_a_table_of_their_own() -> None:
    table = only(paper_tables(held(record(spec(dataset="digits")))))
    assert table.cells.name.startswith("own")
    assert list(table.cells.columns) == ["digits"]
    assert not table.cells.beside_paper
    assert verdict(table.records[0]) == ""
    assert difference(table.records[0]) is None


SETTINGS: list[dict[str, Any]] = [
    {},
    {"features": "standardised"},
    {"protocol": "text", "law": "paper"},
    {"law": "paper"},
    {"trials": 4},
    {"epochs": 9},
    {"seed": 5},
    {"per_trial": True},
    {"criterion": "risk"},
    {"grid": '{"learning_rate": [1]}'},
    {"grid": '{"learning_rate": [2]}'},
    {"precision": "float64"},
    {"precision": "bf16"},
    {"share": 0.25},
]


def test_every_setting_is_a_table_with_a_name_of_its_own() -> None:
    """Numbers of different settings never share a table, nor do their files share a name."""
    records = [record(spec(name, **one)) for one in SETTINGS for name in ("log", "exp")]
    tables = paper_tables(held(*records))
    assert len(tables) == len(SETTINGS)
    assert len({table.cells.name for table in tables}) == len(SETTINGS)
    for table in tables:
        assert len({repr(one.spec.setting) for one in table.records}) == 1
        assert len(table.records) == 2
        assert set(table.cells.name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-.")


def test_a_table_says_how_its_sets_were_drawn() -> None:
    """A law that is not the protocol's is in title and name, and the note claims no other."""
    laws = ("fixed:2", "released", "paper")
    records = [record(spec(law=law, dataset=d)) for law in laws for d in ("digits", "yeast")]
    found = {table.records[0].spec.law: table.cells for table in paper_tables(held(*records))
             if table.records[0].spec.dataset == "digits"}  # fmt: skip
    assert ["sizes uniform" in one.note for one in found.values()] == [True, False, False]
    assert [one.name.endswith("-fixed") for one in found.values()] == [False, False, True]
    assert "float32" not in "".join(one.name for one in found.values())
    assert found["released"].columns == ["digits"]
    assert "law" not in found["released"].name
    assert found["paper"].name.startswith("own-law-paper-")
    assert ", law paper, " in found["paper"].title
    assert found["fixed:2"].columns == ["Yeast (fixed:2)", "digits (fixed:2)"]


def test_the_usual_setting_comes_first_and_has_the_plain_name() -> None:
    usual: dict[str, Any] = {"trials": 5, "epochs": 250, "average": 10, "grid": "paper"}
    odd = record(spec("log", **usual, features="standardised"))
    plain = record(spec("log", **usual))
    assert [t.cells.name for t in paper_tables(held(odd, plain))] == ["uci", "uci-standardised"]


def test_standardised_features_are_not_set_beside_the_paper() -> None:
    table = only(paper_tables(held(record(spec("log", features="standardised")))))
    assert not table.cells.compared
    assert not table.cells.beside_paper
    assert cell(table, "log", "Yeast").verdict == ""


def test_a_cell_opens_to_its_trials_choice_and_curves() -> None:
    one = record(spec("log"), chosen=np.array([0, 3, 3]))
    found = cell(only(paper_tables(held(one))), "log", "Yeast")
    assert list(found.trials) == one.accuracy.tolist()
    assert found.chosen == {
        "learning rate": "0.1 / 0.01 / 0.01",
        "weight decay": "0 / 0.001 / 0.001",
    }
    assert found.facts["Key"] == one.spec.key[:16]
    assert len(found.curves) == 2
    np.testing.assert_allclose(
        np.asarray(found.curves[0].mean, float), one.curves["test"].astype(float).mean(0)
    )


# ---------------------------------------------------------------------- verdicts


@pytest.mark.parametrize(
    ("mean", "word"),
    [(60.11, "agrees"), (56.26, "agrees"), (63.96, "agrees"), (56.24, "worse"), (63.98, "better")],
)
def test_two_means_agree_within_two_combined_standard_deviations(mean: float, word: str) -> None:
    """LOG on Yeast: 60.11 with 1.93 in the paper; ours has no spread here."""
    one = record(spec("log", trials=2), [mean / 100, mean / 100])
    assert verdict(one) == word


def test_our_spread_counts_too() -> None:
    wide = record(spec("log", trials=2), [0.40, 0.60])  # 50 with a std of 14.1
    tight = record(spec("log", trials=2), [0.49, 0.51])
    assert (verdict(wide), verdict(tight)) == ("agrees", "worse")


def test_a_cell_that_diverged_has_no_verdict() -> None:
    gone = record(spec("log"), [math.nan, 0.5, 0.5])
    assert verdict(gone) == ""
    assert count([gone]) == {"run": 1, "agrees": 0, "better": 0, "worse": 0}


# ---------------------------------------------------------------------- the paper's sentences


def whole_column(dataset: str) -> list[Record]:
    return [record(one) for one in plan("uci", datasets=[dataset], trials=3, epochs=6, average=2)]


def test_a_sentence_is_not_tested_without_the_cells_it_speaks_of() -> None:
    """LOG alone is the best of itself: that says nothing about the paper."""
    assert {one.holds for one in findings([record(spec("log"))])} == {"not tested"}
    ours_best = findings(whole_column("yeast"))[3]
    assert ours_best.claim.startswith("The upper bounds achieve the best performance")
    assert ours_best.holds == "not tested"
    assert ours_best.counts.startswith("54 of the 72 cells it speaks of are missing; so far: best ")


def test_a_sentence_that_speaks_of_few_rows_needs_only_those() -> None:
    names = ("mae", "mse", "gce", "phuber", "cce")
    records = [record(spec(n, d)) for d in list(DATASETS.values())[:4] for n in names]
    told = [one.holds == "not tested" for one in findings(records)]
    assert told == [False, False, True, True, True]


def test_level_with_the_best_is_best_in_whatever_order_records_come() -> None:
    records = [record(one, [0.5, 0.6, 0.7]) for one in plan("uci", trials=3, epochs=6, average=2)]
    for order in (records, records[::-1]):
        assert findings(order)[3].counts.startswith("best on 4 of 4 data sets")


def test_tables_without_marks_are_not_asked_about_them() -> None:
    records = [record(one) for one in plan("fixed-linear", trials=3, epochs=6, average=2)]
    found = findings(records)
    assert len(found) == 4
    assert "of 8 sizes" in found[3].counts


# ---------------------------------------------------------------------- a user's own


def test_own_approaches_stand_beside_the_papers_with_marks() -> None:
    good, bad = [0.9, 0.91, 0.92], [0.5, 0.52, 0.51]
    table = only(paper_tables(held(record(spec("log"), good), record(spec("log-text"), bad))))
    assert table.cells.name.startswith("uci")
    assert cell(table, "log-text", "Yeast").mark == "•"
    assert cell(table, "log-text", "Yeast").verdict == ""


def test_an_approach_that_is_not_registered_here_leaves_the_rest_alone() -> None:
    records = [record(spec("log")), record(spec("from-elsewhere"))]
    table = only(paper_tables(held(*records)))
    assert [row.label for row in table.cells.rows] == ["LOG", "from-elsewhere"]
    assert table.cells.rows[1].group == "not registered here"
    assert len(findings(records)) == 5
    page(held(*records))


# ---------------------------------------------------------------------- trends


def test_accuracy_that_rises_with_the_size_is_told_from_one_that_does_not() -> None:
    noise = np.random.default_rng(0).normal(0, 0.005, (2, 8, 5))
    records = [
        record(
            spec(name, "kmnist", law=f"fixed:{s}", trials=5), 0.5 + slope * s + noise[row, s - 1]
        )
        for row, (name, slope) in enumerate({"log": 0.01, "exp": 0.0}.items())
        for s in range(1, 9)
    ]
    sizes, found = trends(records)
    assert sizes == list(range(1, 9))
    assert [one.label for one in found] == ["EXP (upper-bound)", "LOG (upper-bound)"]
    level, rising = found
    assert rising.p_value < 1e-4 < 0.05 < level.p_value
    assert rising.p_holm == pytest.approx(2 * rising.p_value)
    assert rising.means[0] == pytest.approx(100 * records[0].mean)
    assert trends(records[:-1])[1][0].label == "LOG (upper-bound)"  # EXP lacks a size
    assert trends([record(spec("log"))]) == ([], [])
