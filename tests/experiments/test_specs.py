"""Specs: an experiment is data, and its key the hash of it."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from experiments.made import spec

from ruleout.experiments import Spec, protocol
from ruleout.labels.errors import InputError

OTHER: dict[str, Any] = {
    "dataset": "texture",
    "approach": "exp",
    "model": "mlp",
    "law": "paper",
    "protocol": "text",
    "features": "standardised",
    "grid": '{"learning_rate": [0.1]}',
    "criterion": "risk",
    "share": 0.2,
    "per_trial": True,
    "trials": 4,
    "epochs": 300,
    "batch_size": 128,
    "average": 5,
    "test_share": 0.25,
    "seed": 1,
    "precision": "float64",
    "search_trials": 1,
}
CELL = {"dataset", "model", "approach", "search_trials"}


@pytest.mark.parametrize("name", [one.name for one in fields(Spec)])
def test_the_key_depends_on_every_field(name: str) -> None:
    usual = Spec(dataset="yeast", approach="log")
    other = replace(usual, **{name: OTHER[name]})
    assert other.key != usual.key
    assert (other.setting == usual.setting) is (name in CELL)


def test_no_two_changes_share_a_key() -> None:
    usual = Spec(dataset="yeast", approach="log")
    keys = {replace(usual, **{name: value}).key for name, value in OTHER.items()}
    assert len(keys | {usual.key}) == len(fields(Spec)) + 1


def test_keys_never_change() -> None:
    """Ledgers made before, by other processes, are found again: each key is worth its record."""
    assert Spec(dataset="yeast", approach="log").key == (
        "9ad5f28cfdffb92ffa0466079b19a8a0f9720bf10b22ffa50a1f79d56b0aba6f"
    )
    assert Spec(dataset="kmnist", approach="log", law="fixed:3").key == (
        "124aa30f7dc438bf09d6bd1ee0a3dbf4663dae7821eb1ad956dc4154ec0c4617"
    )


def test_the_key_depends_on_nothing_else() -> None:
    """Another order of arguments, another object."""
    usual = Spec(dataset="yeast", approach="log", trials=2)
    assert Spec(trials=2, approach="log", dataset="yeast").key == usual.key
    assert Spec.from_json(usual.to_json()).key == usual.key


@pytest.mark.parametrize("law", ["fixed:1", "fixed:8"])
def test_sizes_are_cells_of_one_table(law: str) -> None:
    one, two = (Spec(dataset="kmnist", approach="log", law=each) for each in (law, "fixed:3"))
    assert one.setting == two.setting
    assert one.key != two.key
    assert one.sizes == law.replace("fixed:", "s=")
    assert str(one) == f"kmnist, linear, log, {one.sizes}"


def test_text_and_back() -> None:
    changed = Spec(**OTHER | {"per_trial": False})
    assert Spec.from_json(changed.to_json()) == changed
    assert set(json.loads(changed.to_json())) == set(OTHER)


def test_unknown_names_are_refused() -> None:
    text = json.dumps(json.loads(spec().to_json()) | {"colour": "red"})
    with pytest.raises(InputError) as caught:
        Spec.from_json(text)
    assert str(caught.value) == (
        "a spec has the unknown name 'colour'; it was written by a newer version of ruleout: "
        "update it"
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"features": "scaled"}, "features are 'scaled'; say 'raw' or 'standardised'"),
        ({"protocol": "relesed"}, "unknown protocol 'relesed'; did you mean 'released'?"),
        (
            {"epochs": 5, "average": 10},
            "the last 10 of 5 epochs cannot be averaged; give at least as many epochs",
        ),
        (
            {"grid": "printed"},
            "the paper prints no configuration for yeast, linear, log; search a grid",
        ),
        (
            {"grid": "printed", "search_trials": 1},
            "a printed configuration is not searched; leave search_trials out",
        ),
        ({"average": 0}, "the last 0 of 6 epochs cannot be averaged; give at least as many epochs"),
    ],
)
def test_bad_settings_are_one_sentence(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        spec(**change)
    assert str(caught.value) == sentence


def test_protocols_differ_as_the_paper_and_its_code_do() -> None:
    released, text = protocol("released"), protocol("text")
    assert (released.law, released.refit) == ("released", True)
    assert (text.law, text.refit) == ("paper", False)
    rows = ("log", "exp", "mae", "ga-before", "nn-after", "free-before", "pc-after")
    assert [released.runs(row) for row in rows] == [
        "log", "exp", "mae", "ga-2019-before", "nn-2019-after", "free-2019-before", "pc-after",
    ]  # fmt: skip
    assert [text.runs(row) for row in rows] == ["log-text", "exp-text", *rows[2:]]


def test_a_spec_runs_the_form_of_its_protocol() -> None:
    assert spec("ga-after").runs == "ga-2019-after"
    assert spec("log", protocol="text").runs == "log-text"
    assert spec("log").values == json.loads(spec().grid)
    assert spec("log", grid="paper").values == "paper"


@pytest.mark.parametrize(
    ("model", "approach", "rate", "decay"),
    [
        ("resnet32", "exp", 1e-3, 1e-3),
        ("resnet32", "log", 1e-2, 1e-6),
        ("densenet22", "exp", 1e-3, 1e-5),
        ("densenet22", "log", 1e-2, 1e-5),
    ],
)
def test_a_printed_configuration_is_that_of_the_papers_source(
    model: str, approach: str, rate: float, decay: float
) -> None:
    one = Spec(dataset="cifar10", model=model, approach=approach, grid="printed")
    assert one.values == [{"learning_rate": rate, "weight_decay": decay}]
    assert one.searching == 0


def test_cells_compare_however_much_was_computed() -> None:
    usual = Spec(dataset="cifar10", model="resnet32", approach="log")
    less = {"grid": "halving", "trials": 1, "precision": "bf16", "search_trials": 1}
    same = {n for n, v in (OTHER | less).items() if replace(usual, **{n: v}).comparable
            == usual.comparable}  # fmt: skip
    assert same == {"dataset", "model", "approach", *less}
    assert replace(usual, grid=OTHER["grid"]).comparable != usual.comparable
