"""Columns that are scaled inside the model: what a user sees is raw rows in, and better classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.sparse import csr_matrix
from torch import nn

import ruleout as ro
from ruleout.datasets.tables import Scaling
from ruleout.estimator import RuleOutClassifier, load

SIZES = np.float32(10.0) ** np.arange(-4, 4)  # of the columns


def made(n: int = 400, seed: int = 0) -> tuple[Any, Any, ro.LabelSets]:
    """Return rows of four classes whose columns differ in size and lie far from zero."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    x = rng.normal(size=(n, 8)) + 2 * np.eye(8)[2 * y]
    return ((x + 30) * SIZES).astype(np.float32), y, ro.draw(y, classes=4, seed=seed)


def classifier(**told: Any) -> RuleOutClassifier:
    return RuleOutClassifier(**{"learning_rate": 0.1, "epochs": 20, "random_state": 0} | told)


def test_a_column_loses_its_mean_and_its_size() -> None:
    """By plain loops; mostly zero, constant and ordinary columns."""
    rng = np.random.default_rng(0)
    x = rng.normal(5, 2, (50, 6)) * 10.0 ** np.arange(6)
    x[rng.random(50) < 0.8, 1] = 0
    x[:, 2], x[:, 3] = 7, 0
    found = Scaling.of(x.astype(np.float32))
    for column, mean, spread in zip(x.T.tolist(), found.mean, found.spread, strict=True):
        other = [value for value in column if value]
        if 2 * len(other) < len(column):
            wanted = 0.0, (sum(v**2 for v in other) / len(other)) ** 0.5 if other else 1.0
        else:
            middle = sum(column) / len(column)
            away = (sum((v - middle) ** 2 for v in column) / len(column)) ** 0.5
            wanted = middle, away or 1.0
        assert (mean, spread) == pytest.approx(wanted, rel=1e-5)
    assert_allclose(found(x), (x - found.mean) / found.spread)


def test_a_sparse_matrix_stays_sparse() -> None:
    x = np.random.default_rng(0).normal(5, 2, (40, 3)) * [1, 100, 1e4]
    x[::3] = 0
    found = Scaling.of(csr_matrix(x))
    scaled = found(csr_matrix(x))
    assert not found.mean.any()
    assert scaled.nnz == np.count_nonzero(x)
    assert_allclose(scaled.toarray(), x / found.spread)
    assert_allclose(np.square(scaled.toarray()).sum(0) / np.count_nonzero(x, 0), 1, rtol=1e-5)


@pytest.mark.parametrize(
    ("columns", "apart"),
    [([1, 50], False), ([1, 500], True), ([1e-3, 1e-3], True), ([500, 400], True), ([1], False)],
)
def test_columns_are_apart_from_a_hundred_times_on(columns: list[float], apart: bool) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (100, len(columns))) * columns
    problem = Scaling.of(x).problem(["a", "b"])
    assert (problem is not None) == apart
    offset = Scaling.of(x / columns + 1000).problem(["a", "b"])  # a year, say
    assert offset is not None


def test_the_worst_columns_are_named() -> None:
    problem = Scaling.of(made()[0]).problem([f"c{i}" for i in range(8)])
    assert problem == (
        "Columns differ in size, from each other or from 1: 'c7' holds values of about 30000, and "
        "'c0' varies by about 0.00013"
    )


def test_a_scaled_model_learns_what_a_raw_one_misses() -> None:
    x, y, sets = made(1000)
    raw, scaled = (classifier(scale=way).fit(x[:700], sets[:700]) for way in (False, True))
    assert scaled.score(x[700:], y[700:]) > 0.8
    assert raw.score(x[700:], y[700:]) < 0.6
    assert scaled.record_["scaled"] is True


def test_raw_rows_mean_what_rows_scaled_by_hand_mean() -> None:
    x, _, sets = made()
    own = (x - x.mean(0, dtype=np.float64)) / x.std(0, dtype=np.float64)
    by_hand = classifier(precision="float64").fit(own, sets)
    inside = classifier(precision="float64", scale=True).fit(x, sets)
    assert_allclose(inside.predict_proba(x), by_hand.predict_proba(own), atol=2e-3)


@pytest.mark.parametrize("told", [{}, {"model": "mlp", "hidden": 5}, {"precision": "float64"}])
def test_a_folder_and_onnx_hold_the_scaling(tmp_path: Path, told: dict[str, Any]) -> None:
    x, _, sets = made()
    clf = classifier(scale=True, **told).fit(x, sets)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.scale is True
    assert np.array_equal(again.predict_proba(x), clf.predict_proba(x))
    one, other = (each.partial_fit(x, sets) for each in (again, load(tmp_path / "model")))
    assert np.array_equal(one.predict_proba(x), other.predict_proba(x))
    onnx = pytest.importorskip("onnxruntime")
    clf.export(tmp_path / "model.onnx")
    session = onnx.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {"x": x})
    assert_allclose(found, clf.predict_proba(x), atol=1e-4)


def test_parts_go_on_with_the_first_scaling() -> None:
    x, _, sets = made()
    clf = classifier(scale=True).fit(x, sets)
    first = clf.module_.state_dict()["mean"].clone()
    before = clf.score(x, made()[1])
    for _ in range(3):
        clf.partial_fit(x[:50] * 2, sets[:50])
    assert torch.equal(clf.module_.state_dict()["mean"], first)
    clf = classifier(scale=True)
    for _ in range(40):
        clf.partial_fit(x, sets)
    assert clf.score(x, made()[1]) > before - 0.05


def test_a_network_of_images_is_scaled_too() -> None:
    x, y, sets = made()

    def net(shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Conv2d(shape[0], 4, 1), nn.Flatten(), nn.Linear(16, classes))

    images = x.reshape(-1, 2, 2, 2)
    clf = classifier(scale=True, model=net, epochs=5).fit(images, sets)
    assert clf.predict(images).shape == y.shape
    assert np.isfinite(clf.predict_proba(images)).all()


def test_rows_may_be_sparse() -> None:
    x, _, sets = made()
    kept = csr_matrix(np.where(np.random.default_rng(0).random(x.shape) < 0.3, x, 0))
    clf = classifier(scale=True).fit(kept, sets)
    assert_allclose(clf.predict_proba(kept), clf.predict_proba(kept.toarray()))


def test_scale_is_yes_or_no() -> None:
    with pytest.raises(ValueError, match=r"say True, False or .range."):
        classifier(scale="auto").fit(*made()[::2])


def test_a_folder_from_before_scaling_opens(tmp_path: Path) -> None:
    from ruleout.estimator import model_folder as folder

    x, _, sets = made()
    clf = classifier().fit(x, sets)
    clf.save(tmp_path / "model")
    card = folder._parse(tmp_path / "model" / folder.CARD)
    del card["config"]["scale"]
    for name in ("format", "schema"):
        card.pop(name)
    (tmp_path / "model" / folder.CARD).write_bytes(folder._card_bytes(card))
    assert load(tmp_path / "model").scale is False


def test_resolve_knows_the_rows_that_trained_a_scaled_model() -> None:
    """They are named by others of its kind, trained on scaled columns as it was."""
    x, y, sets = made()
    clf = classifier(scale=True).fit(x, sets)
    known, crossed, alone = (clf.resolve(x, sets, cross=cross) for cross in (None, True, False))
    assert np.array_equal(known.probability, crossed.probability)
    assert not np.array_equal(known.probability, alone.probability)
    assert (known.labels == y).mean() > 0.85


def test_settings_may_be_numpy_numbers_as_in_a_grid_of_scikit_learn() -> None:
    x, _, sets = made(100)
    plain = {"scale": True, "validation_fraction": 0.25, "early_stopping": True}
    told = {**plain, "scale": np.True_, "validation_fraction": np.float32(0.25)}
    one, other = (classifier(**each).fit(x, sets).predict_proba(x) for each in (plain, told))
    assert np.array_equal(one, other)
