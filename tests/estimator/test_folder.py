# ruff: noqa: E501  # the sentences stand as users read them
"""Saving and loading: what comes back, and what is never left half-written."""

from __future__ import annotations

import errno
import json
import os
import pickle
import resource
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from estimator.small import NAMES, SETS, X, Y, classifier
from numpy.testing import assert_array_equal
from torch import nn

import ruleout as ro
from ruleout.estimator import RuleOutClassifier, load, model_folder


def own(shape: tuple[int, ...], classes: int, *, width: int = 4) -> nn.Module:
    return nn.Sequential(
        nn.Linear(shape[0], width), nn.BatchNorm1d(width), nn.Linear(width, classes)
    )


def _wider(shape: tuple[int, ...], classes: int, *, width: int, extra: int) -> nn.Module:
    return own(shape, classes, width=width + extra)


# ---------------------------------------------------------------------- what comes back


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"model": "mlp", "hidden": (7, 5)},
        {"precision": "float64"},
        {"grid": {"learning_rate": np.array([0.1, 0.01])}, "early_stopping": True},
        {"approach": "gce", "approach_options": {"q": 0.5}, "class_weight": {0: 2.0, 3: 0.5}},
        {
            "grid": [{"weight_decay": 0.1}, {"weight_decay": 0.0}],
            "random_state": np.random.RandomState(0),
        },
    ],
    ids=["linear", "mlp", "float64", "grid", "options", "list"],
)
def test_a_model_comes_back_as_it_was(parameters: dict[str, Any], tmp_path: Path) -> None:
    clf = classifier(**parameters).fit(X, SETS)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert isinstance(again, RuleOutClassifier)
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(again.classes_, clf.classes_)
    for name in ("configuration_", "n_iter_", "n_features_in_"):
        assert getattr(again, name) == getattr(clf, name)
    assert_array_equal(again.history_["loss"], clf.history_["loss"])
    if hasattr(clf, "criterion_"):
        assert again.criterion_ == clf.criterion_
        assert_array_equal(again.search_["estimate"], clf.search_["estimate"])
    again.fit(X, SETS)  # parameters work as before


def test_the_folder_holds_weights_and_a_card(tmp_path: Path) -> None:
    clf = classifier(grid={"learning_rate": [0.1, 0.01]}).fit(X, SETS)
    reading = {"kind": "images", "shape": [1, 8, 8]}
    clf.save(tmp_path / "model", reading=reading)
    assert {one.name for one in (tmp_path / "model").iterdir()} == {
        "card.json",
        "folds.safetensors",
        "model.safetensors",
    }
    card = json.loads((tmp_path / "model" / "card.json").read_text())
    assert (card["format"], card["schema"], card["seed"]) == ("ruleout model", 1, 0)
    assert card["config"]["grid"] == {"learning_rate": [0.1, 0.01]}
    assert card["criterion"] == list(clf.criterion_)
    assert card["record"]["data"] == clf.record_["data"]
    assert set(card["record"]["versions"]) >= {"ruleout", "torch", "python"}
    assert load(tmp_path / "model").reading_ == reading


def test_a_folder_of_before_has_no_models_of_folds(tmp_path: Path) -> None:
    """It opens, and fresh rows are resolved by the one model."""
    clf = classifier(grid={"learning_rate": [0.1, 0.01]}).fit(X[:200], SETS[:200])
    clf.save(tmp_path / "model")
    (tmp_path / "model" / "folds.safetensors").unlink()
    file = tmp_path / "model" / "card.json"
    card = json.loads(file.read_text())
    del card["folds"], card["sha256"]
    file.write_text(json.dumps(card | {"sha256": model_folder._sum(card)}))
    again = load(tmp_path / "model")
    clf._fold_models = torch.nn.ModuleList()
    found, one = (each.resolve(X[200:], SETS[200:]) for each in (again, clf))
    assert_array_equal(found.probability, one.probability)
    again.save(tmp_path / "model")
    assert not (tmp_path / "model" / "folds.safetensors").exists()


def test_a_pickle_of_before_has_no_models_of_folds(tmp_path: Path) -> None:
    clf = classifier().fit(X, SETS)
    del clf.__dict__["_fold_models"]
    again = pickle.loads(pickle.dumps(clf))  # our own object
    assert_array_equal(
        again.resolve(X, SETS, cross=False).labels, clf.resolve(X, SETS, cross=False).labels
    )
    again.save(tmp_path / "m")
    assert not (tmp_path / "m" / "folds.safetensors").exists()


def test_how_files_were_read_survives_a_second_save(tmp_path: Path) -> None:
    classifier().fit(X, SETS).save(tmp_path / "a", reading={"kind": "columns"})
    load(tmp_path / "a").save(tmp_path / "b")
    assert load(tmp_path / "b").reading_ == {"kind": "columns"}


@pytest.mark.parametrize(
    "y",
    [
        NAMES[Y % 3],
        NAMES[Y % 3].astype(object),
        Y % 2 == 0,
        Y / 4,
        np.array(["ä|b", "\ud800"])[Y % 2],
    ],
    ids=["text", "object", "bool", "float", "odd text"],
)
def test_class_names_come_back_as_they_were(y: Any, tmp_path: Path) -> None:
    clf = classifier(classes=np.unique(y)).fit(X, y)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(again.predict(X), clf.predict(X))
    assert again.classes_.dtype.kind == clf.classes_.dtype.kind


def test_feature_names_come_back(tmp_path: Path) -> None:
    frame = pd.DataFrame(X, columns=[f"p{i}" for i in range(64)])
    classifier().fit(frame, SETS).save(tmp_path / "model")
    again = load(tmp_path / "model")
    again.predict(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame.rename(columns={"p0": "q0"}))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_columns_of_a_file_are_picked_by_name(make: Callable[..., Any], tmp_path: Path) -> None:
    names = [f"p{place}" for place in range(X.shape[1])]
    clf = classifier().fit(X, SETS)
    clf.save(tmp_path / "model", reading={"kind": "columns", "features": names})
    again, wanted = load(tmp_path / "model"), clf.predict_proba(X)
    columns = {name: X[:, place] for place, name in enumerate(names)}
    frame = make({"more": Y, **dict(reversed(columns.items()))})
    assert_array_equal(again.predict_proba(frame), wanted)
    assert_array_equal(again.predict_proba(X), wanted)
    with pytest.raises(ValueError, match="X lacks the column 'p3', which the model was trained on"):
        again.predict(frame[[name for name in frame.columns if name != "p3"]])
    again.partial_fit(frame, SETS)
    assert again.reading_["features"] == names


_SHARES = (1 - np.eye(10)) / 9


@pytest.mark.parametrize(
    ("parameters", "name", "options"),
    [
        ({"approach": ro.approach("gce")}, "gce", None),
        ({"approach": ro.approach("gce", q=0.5)}, "gce", {"q": 0.5}),
        ({"approach": ro.approach("gce", q=0.5).named("log")}, "gce", {"q": 0.5}),
        (
            {"approach": ro.approach("gce", q=0.5), "approach_options": {"q": 0.3}},
            "gce",
            {"q": 0.3},
        ),
        ({"approach": ro.approach("ga-after").named("mine")}, "ga-after", None),
        (
            {"approach": ro.approach("forward-before", transition=_SHARES)},
            "forward-before",
            {"transition": _SHARES.tolist()},
        ),
    ],
    ids=["plain", "options", "named", "overridden", "rule", "matrix"],
)
def test_an_approach_given_as_an_object_comes_back_by_name(
    parameters: dict[str, Any], name: str, options: Any, tmp_path: Path
) -> None:
    clf = classifier(optimizer="sgd", **parameters).fit(X, SETS)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.approach, again.approach_options) == (name, options)
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(
        again.partial_fit(X, SETS).predict_proba(X), clf.partial_fit(X, SETS).predict_proba(X)
    )


def test_an_approach_that_is_not_registered_is_named(tmp_path: Path) -> None:
    @ro.losses.register("half-log", family="upper-bound", paper="a test")
    def half_log(logits: Any, excluded: Any) -> Any:
        return ro.losses.get("log").function(logits, excluded) / 2

    gone = ro.approach("half-log")
    ro.losses.forget("half-log")
    for own, kept in ((gone, "half-log"), (gone.named("log"), None)):
        clf = classifier(approach=own).fit(X, SETS)
        clf.save(tmp_path / "model")
        again = load(tmp_path / "model")
        assert again.approach == kept
        assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
        with pytest.raises(ValueError, match=r"unknown approach 'half-log'|approach is None"):
            again.fit(X, SETS)


def test_options_that_no_card_can_hold_stop_no_save(tmp_path: Path) -> None:
    clf = classifier(approach=ro.approach("gce", q=0.5)).fit(X, SETS)
    clf.approach = ro.approach("pc-after", binary=print)
    clf.save(tmp_path / "model")
    assert load(tmp_path / "model").approach is None


def test_a_loaded_model_learns_on(tmp_path: Path) -> None:
    clf = classifier(optimizer="sgd").fit(X, SETS)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(
        again.partial_fit(X, SETS).predict_proba(X), clf.partial_fit(X, SETS).predict_proba(X)
    )
    assert again.n_iter_ == 6


def test_a_model_of_ones_own_needs_its_function(tmp_path: Path) -> None:
    clf = classifier(model=own, model_options={"width": 6}).fit(X, SETS)
    clf.save(tmp_path / "model")
    with pytest.raises(ValueError) as caught:
        load(tmp_path / "model")
    assert str(caught.value) == (
        f"{tmp_path}/model/card.json: the model was made by a function of your own (own), which no card can "
        "rebuild; hand it in: load(path, model=...)"
    )
    again = load(tmp_path / "model", model=own)
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    with pytest.raises(ValueError, match="the model needs F32"):
        load(tmp_path / "model", model=partial(_wider, extra=1))


# ---------------------------------------------------------------------- where it may be written


def test_a_model_folder_is_replaced(tmp_path: Path) -> None:
    classifier(random_state=1).fit(X, SETS).save(tmp_path / "model")
    clf = classifier(random_state=2).fit(X, SETS)
    clf.save(tmp_path / "model")
    assert_array_equal(load(tmp_path / "model").predict_proba(X), clf.predict_proba(X))
    assert [one.name for one in tmp_path.iterdir()] == ["model"]


def test_an_empty_folder_and_a_link_are_written_to(tmp_path: Path) -> None:
    clf = classifier().fit(X, SETS)
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    clf.save(tmp_path / "empty")
    clf.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "link").n_iter_ == 5


PLACES: list[tuple[str, Callable[[Path], Path], str]] = [
    (
        "a file",
        lambda tmp: _touch(tmp / "file"),
        "{tmp}/file: this is a file; give the name of a folder",
    ),
    (
        "other things",
        lambda tmp: _touch(tmp / "papers" / "thesis.tex").parent,
        "{tmp}/papers: the folder holds something else; choose another name",
    ),
    (
        "a foreign card",
        lambda tmp: _touch(tmp / "hf" / "card.json").parent,
        "{tmp}/hf: the folder holds something else; choose another name",
    ),
    (
        "no parent",
        lambda tmp: tmp / "no" / "model",
        "{tmp}/no: the folder does not exist; make it first",
    ),
    (
        "a model with more",
        lambda tmp: _model_and(tmp / "m", "notes.txt"),
        "{tmp}/m: the model folder also holds 'notes.txt', which would be lost; move it, or choose another name",
    ),
]


def _touch(file: Path) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    return file


def _model_and(path: Path, name: str) -> Path:
    classifier(epochs=1).fit(X, SETS).save(path)
    _touch(path / name)
    return path


@pytest.mark.parametrize(
    ("make", "sentence"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_nothing_of_others_is_overwritten(
    make: Callable[[Path], Path], sentence: str, tmp_path: Path
) -> None:
    path = make(tmp_path)
    before = sorted(str(one) for one in tmp_path.rglob("*"))
    with pytest.raises(ValueError) as caught:
        classifier().fit(X, SETS).save(path)
    assert str(caught.value) == sentence.format(tmp=tmp_path)
    assert sorted(str(one) for one in tmp_path.rglob("*")) == before


def test_what_json_cannot_hold_is_refused(tmp_path: Path) -> None:
    clf = classifier().fit(X, SETS)
    with pytest.raises(ValueError) as caught:
        clf.save(tmp_path / "model", reading={"path": Path("a")})
    assert str(caught.value).startswith("the card holds a ")
    assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------- full disks


def _full(*_: object, **__: object) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("name", "nth"),
    [(name, nth) for name in ("mkdir", "atomic_write", "fsync", "rename") for nth in (1, 2)][1:],
)
def test_a_full_disk_leaves_the_old_model(
    name: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = classifier(random_state=1).fit(X, SETS)
    old.save(tmp_path / "model")
    where: Any = {"fsync": os, "atomic_write": model_folder}.get(name, Path)
    real, calls = getattr(where, name), [()] * (name == "mkdir")  # it is called once

    def fails(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return _full() if len(calls) == nth else real(*given, **named)

    new = classifier(random_state=2).fit(X, SETS)
    with monkeypatch.context() as patch:
        patch.setattr(where, name, fails)
        with pytest.raises(OSError, match=f"No space left on device: '{tmp_path}/model'"):
            new.save(tmp_path / "model")
    assert [one.name for one in tmp_path.iterdir()] == ["model"]
    assert_array_equal(load(tmp_path / "model").predict_proba(X), old.predict_proba(X))


def test_a_limit_on_file_sizes_leaves_nothing(tmp_path: Path) -> None:
    clf = classifier(model="mlp").fit(X, SETS)  # 150 kB of weights
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, before[1]))
        with pytest.raises(OSError, match="File too large"):
            clf.save(tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert not list(tmp_path.iterdir())


def test_the_folder_has_ordinary_permissions(tmp_path: Path) -> None:
    classifier().fit(X, SETS).save(tmp_path / "model")
    (tmp_path / "other").mkdir()
    modes = [os.stat(tmp_path / name).st_mode for name in ("model", "other")]
    assert modes[0] == modes[1]
