"""Data sets and losses of a user's own, from the registry to the report."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import ruleout as ro
from ruleout.datasets.registry import REGISTRY
from ruleout.experiments import drive, gather, paper_tables, plan, write_report


@pytest.fixture(autouse=True)
def _own() -> Iterator[None]:
    from experiments import owned

    importlib.reload(owned)
    yield
    owned.forget()


def test_a_registered_data_set_is_loaded_and_listed_like_the_others(tmp_path: Path) -> None:
    data = ro.datasets.load("own-points")
    assert repr(data) == "Dataset('own-points', 120 rows of shape (3,), 4 classes, no test rows)"
    assert (data.x_train.dtype.name, data.y_train.dtype.name) == ("float32", "int64")
    assert (data.classes, data.source) == (("a", "b", "c", "d"), "Made up.")
    assert ro.datasets.names()[-1] == "own-points"
    last = ro.datasets.survey(tmp_path)[-1]
    assert (last.name, last.rows, last.features, last.classes) == ("own-points", (120, 0), 3, 4)
    assert (last.present, last.folder) == (True, None)
    assert last.where == "registered by experiments.owned"


def test_test_rows_and_images_keep_their_place() -> None:
    images = np.zeros((6, 1, 2, 2))
    ro.datasets.register("own-images", lambda: (images, [1, 0] * 3, images[:2], [0, 1]))
    try:
        data = ro.datasets.load("own-images")
        assert (data.shape, data.x_train.shape) == ((1, 2, 2), (6, 4))
        assert data.test is not None
        assert data.test[1].tolist() == [0, 1]
    finally:
        del REGISTRY["own-images"]


@pytest.mark.parametrize(
    ("name", "made", "sentence"),
    [
        ("mnist", None, "data set 'mnist' is registered already; choose another name"),
        ("", None, "a data set cannot be named ''; give a word"),
        ("own-bad", [1, 2], "the loader of data set 'own-bad' gave list; let it return a Dataset"),
        ("own-bad", (np.ones((3, 2)), [0, 1]), "x has shape (3, 2) for 2 labels"),
        (
            "own-bad",
            (np.ones((2, 2)), ["a", "b"], np.ones((1, 2)), ["c"]),
            "row 0, column 'labels': unknown class 'c'",
        ),
        ("own-bad", (np.ones((0, 2)), []), "x has shape (0, 2) for 0 labels"),
        ("own-bad", ([["a"], ["b"]], [0, 1]), "the loader of data set 'own-bad' gave what is no"),
        ("own-bad", ([[1, 2], [3]], [0, 1]), "the loader of data set 'own-bad' gave what is no"),
        ("own-bad", (np.ones((2, 2)), ["a", None]), "the loader of data set 'own-bad' gave what"),
        (
            "own-bad",
            (np.ones((2, 2)), [0, 1], np.ones((2, 3)), [0, 1]),
            "the loader of data set 'own-bad' gave test rows of another size",
        ),
    ],
)
def test_what_cannot_be_registered_or_loaded_is_named(
    name: str, made: object, sentence: str
) -> None:
    def both() -> None:
        ro.datasets.register(name, lambda: made)
        ro.datasets.load(name)

    with pytest.raises(ValueError) as caught:
        both()
    REGISTRY.pop("own-bad", None)
    assert str(caught.value).startswith(sentence)


def test_a_list_of_data_sets_names_the_one_that_cannot_be_loaded() -> None:
    ro.datasets.register("own-bad", lambda: None)
    try:
        with pytest.raises(ValueError, match="data set 'own-bad' gave NoneType"):
            ro.datasets.survey()
    finally:
        del REGISTRY["own-bad"]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_ones_own_runs_in_a_table_beside_log_with_marks(tmp_path: Path, workers: int) -> None:
    specs = plan(
        None,
        datasets=["own-points"],
        approaches=["log", "own-brier"],
        trials=2,
        epochs=4,
        average=2,
        grid=json.dumps({"learning_rate": [0.1, 0.01]}),
    )
    drive(tmp_path / "a.sqlite", specs, workers=workers)
    held = gather(tmp_path / "a.sqlite")
    assert held.failures == ()
    (table,) = paper_tables(held)
    assert list(table.cells.columns) == ["own-points"]
    assert [row.label for row in table.cells.rows] == ["LOG", "OWN-BRIER"]
    assert table.cells.rows[1].cells[0].p_value is not None
    assert not table.cells.compared
    made = write_report(held, tmp_path / "out", ["html", "csv"])
    assert "OWN-BRIER" in made[0].read_text()
