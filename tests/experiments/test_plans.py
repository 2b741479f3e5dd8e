"""Plans: the paper's 518 cells, each once, in names that the software knows."""

from __future__ import annotations

import csv
from collections import Counter
from hashlib import sha256
from importlib.resources import files
from itertools import product
from typing import Any

import pytest

import ruleout as ro
from ruleout.datasets import names as dataset_names
from ruleout.experiments import TABLES, Spec, plan, printed, printed_for, protocol
from ruleout.experiments.plans import label_of
from ruleout.methods import PAPER
from ruleout.models import MODELS

CELLS = {"uci": 72, "linear": 72, "deep": 102, "fixed-linear": 136, "fixed-mlp": 136}


def test_what_is_printed_is_the_papers_file() -> None:
    """The file was typed from the paper and checked once; its sum keeps it so."""
    file = files("ruleout.experiments").joinpath("printed.csv").read_bytes()
    assert sha256(file).hexdigest() == (
        "f575627cb26f3f5f8fdc102cdfdc08ccb6572157bbc0052c6e3227ec4fc4d9c8"
    )
    rows = list(csv.DictReader(file.decode().splitlines()))
    assert len(rows) == len(printed()) == 518
    for row, found in zip(rows, printed(), strict=True):
        for name in ("table", "dataset", "model", "sizes", "group", "approach"):
            assert getattr(found, name) == row[name]
        assert (f"{found.mean:.2f}", f"{found.std:.2f}") == (row["mean"], row["std"])
        marks = {"yes": True, "no": False, "": None}
        assert found.marked_worse is marks[row["marked_worse_than_ours"]]
        assert found.best is (row["best"] == "yes")


def test_every_printed_cell_has_a_place_of_its_own() -> None:
    assert len({one.place for one in printed()}) == 518
    assert Counter(one.table for one in printed()) == {TABLES[t]: n for t, n in CELLS.items()}


@pytest.mark.parametrize("table", list(CELLS))
@pytest.mark.parametrize("reading", ["released", "text"])
def test_a_plan_has_a_spec_for_each_cell_and_no_other(table: str, reading: str) -> None:
    specs = plan(table, protocol=reading)
    cells = [printed_for(spec) for spec in specs]
    assert len(specs) == len({spec.key for spec in specs}) == CELLS[table]
    assert set(cells) == {one for one in printed() if one.table == TABLES[table]}


@pytest.mark.parametrize("table", list(CELLS))
def test_every_name_of_a_plan_is_known(table: str) -> None:
    for spec in [*plan(table), *plan(table, protocol="text")]:
        assert spec.approach in PAPER
        assert ro.approach(spec.runs).form == ro.approach(spec.approach).form
        assert spec.model in MODELS
        assert spec.dataset in dataset_names()
        assert ro.size_law(spec.law, 10).sum() == pytest.approx(1)


def test_rows_bear_the_papers_names() -> None:
    for cell in printed():
        row = ro.approach(cell.row)
        assert (row.family, row.label) == (cell.group, cell.approach)
        assert label_of(cell.place[0]) == cell.dataset


@pytest.mark.parametrize("table", ["fixed-linear", "fixed-mlp"])
def test_fixed_tables_have_one_size_per_column(table: str) -> None:
    """Whatever the protocol: a size leaves nothing to draw."""
    for reading in ("released", "text"):
        specs = plan(table, protocol=reading)
        assert {spec.dataset for spec in specs} == {"kmnist"}
        assert [spec.law for spec in specs[::17]] == [f"fixed:{s}" for s in range(1, 9)]
        assert "clpl" not in {spec.approach for spec in specs}


def test_elsewhere_the_protocol_draws_sizes() -> None:
    for reading in ("released", "text"):
        laws = {spec.law for spec in plan("linear", protocol=reading)}
        assert laws == {protocol(reading).law}


def test_a_plan_goes_data_set_by_data_set_in_the_order_of_the_rows() -> None:
    specs = plan("uci")
    assert [spec.dataset for spec in specs[::18]] == [
        "yeast", "texture", "dermatology", "synthetic-control",
    ]  # fmt: skip
    rows = [spec.approach for spec in specs[:18]]
    assert rows == ["exp", "log", *PAPER[2:]]
    assert rows == [spec.approach for spec in specs[54:]]


@pytest.mark.parametrize(
    "names", [["Synthetic Control"], ["synthetic-control"], ["SYNTHETIC-control"]]
)
def test_data_sets_go_by_their_names_here_and_in_the_paper(names: list[str]) -> None:
    assert {spec.dataset for spec in plan("uci", datasets=names)} == {"synthetic-control"}


def test_approaches_go_by_their_names_here_and_in_the_paper() -> None:
    found = plan("uci", datasets=["yeast"], approaches=["GA", "phuber", "PHuber-CE", "log"])
    assert [spec.approach for spec in found] == ["log", "phuber", "ga-before", "ga-after"]


def test_settings_reach_every_spec() -> None:
    found = plan("uci", protocol="text", features="standardised", trials=2, seed=7)
    assert {(s.protocol, s.law, s.features, s.trials, s.seed) for s in found} == {
        ("text", "paper", "standardised", 2, 7)
    }


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"table": "uic"}, "unknown table 'uic'; did you mean 'uci'?"),
        (
            {"table": "zzz"},
            "unknown table 'zzz'; the tables are uci, linear, deep, fixed-linear, fixed-mlp, "
            "linear-mlp",
        ),
        ({"datasets": ["yaest"]}, "the table has no data set 'yaest'; did you mean 'yeast'?"),
        ({"datasets": ["MNIST"]}, "the table has no data set 'MNIST'; it has "),
        ({"approaches": ["lgo"]}, "the table has no approach 'lgo'; did you mean 'log'?"),
        ({"protocol": "txt"}, "unknown protocol 'txt'; did you mean 'text'?"),
    ],
)
def test_names_that_a_table_does_not_have_are_refused(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        plan(**({"table": "uci"} | words))
    assert str(caught.value).lower().startswith(sentence.lower())


def test_linear_models_and_mlps_have_a_name_for_all_their_cells() -> None:
    """Those of the tables themselves: what was run one by one counts here, and the reverse."""
    one_by_one = [
        spec
        for table in CELLS
        for spec in plan(table, precision="tf32", search_trials=0 if "linear" in table else 1)
        if spec.dataset != "cifar10" and table != "uci"
    ]
    found = plan("linear-mlp", precision="tf32", search_trials=1)
    assert {one.key for one in found[72:]} == {one.key for one in one_by_one}
    assert [one.key for one in found[:72]] == [one.key for one in plan("uci", precision="tf32")]
    assert len(found) == 484


def test_of_all_tables_each_has_the_rows_and_columns_that_are_its_own() -> None:
    found = plan("linear-mlp", datasets=["Kuzushiji", "Yeast"], approaches=["LOG", "CLPL"])
    assert [(one.dataset, one.model, one.approach) for one in found if one.law == "released"] == [
        ("yeast", "linear", "log"),
        ("yeast", "linear", "clpl"),
        ("kmnist", "linear", "log"),
        ("kmnist", "linear", "clpl"),
        ("kmnist", "mlp", "log"),
    ]
    assert len(found) == 5 + 16
    own = plan("linear-mlp", datasets=["digits"], approaches=["log"])
    assert len(own) == len(set(own)) == 2 + 16
    with pytest.raises(ValueError, match="no data set 'CIFAR-10'"):
        plan("linear-mlp", datasets=["CIFAR-10"])


def test_data_sets_and_approaches_that_the_paper_has_nowhere_join_a_table() -> None:
    found = plan("uci", datasets=["yeast", "digits"], approaches=["log", "log-text"], trials=2)
    assert [str(spec) for spec in found] == [
        "yeast, linear, log",
        "yeast, linear, log-text",
        "digits, linear, log",
        "digits, linear, log-text",
    ]
    sizes = plan("fixed-mlp", datasets=["digits"], approaches=["log"])
    assert [(s.model, s.law) for s in sizes] == [("mlp", f"fixed:{s}") for s in range(1, 9)]


def test_a_table_of_ones_own_takes_any_names() -> None:
    found = plan(
        None,
        datasets=["digits", "yeast"],
        approaches=["LOG", "clpl"],
        models=["linear", "mlp"],
        laws=["fixed:3", "paper"],
    )
    assert len(found) == 2 * 2 * 2 * 2
    assert {(s.dataset, s.approach, s.model, s.law) for s in found} == set(
        product(("digits", "yeast"), ("log", "clpl"), ("linear", "mlp"), ("fixed:3", "paper"))
    )
    assert {s.law for s in plan(None, datasets=["digits"], approaches=["log"])} == {"released"}
    with pytest.raises(ValueError, match="needs data sets and approaches"):
        plan(None, datasets=["digits"])


@pytest.mark.parametrize(
    "spec",
    [
        Spec(dataset="digits", approach="log"),
        Spec(dataset="yeast", approach="log", model="mlp"),
        Spec(dataset="yeast", approach="log", law="fixed:2"),
        Spec(dataset="kmnist", approach="log", law="fixed:9"),
        Spec(dataset="mnist", approach="clpl", model="mlp"),
    ],
    ids=str,
)
def test_the_paper_prints_nothing_for_other_cells(spec: Spec) -> None:
    assert printed_for(spec) is None
