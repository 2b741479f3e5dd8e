"""Training and predicting on a GPU."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from estimator.small import SETS, X, Y, classifier
from numpy.testing import assert_allclose

from ruleout.estimator import load


@pytest.mark.cuda
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_gpu_learns_what_a_cpu_does(model: str, tmp_path: Path) -> None:
    here = classifier(model=model, precision="float64").fit(X, SETS)
    there = classifier(model=model, precision="float64", device="cuda").fit(X, SETS)
    assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-8)
    there.partial_fit(X, SETS)
    assert_allclose(there.predict_proba(X), here.partial_fit(X, SETS).predict_proba(X), atol=1e-8)
    there.save(tmp_path / "model")
    assert_allclose(load(tmp_path / "model").predict_proba(X), there.predict_proba(X), atol=1e-8)
    again = load(tmp_path / "model", device="cuda")
    assert_allclose(again.predict_proba(X), there.predict_proba(X), atol=1e-12)
    pickle.loads(pickle.dumps(there)).predict(X)  # our own object, made in this test


@pytest.mark.cuda
def test_a_grid_is_searched_on_a_gpu() -> None:
    clf = classifier(grid={"learning_rate": [0.1, 1e-6]}, device="cuda", precision="tf32")
    assert clf.fit(X, SETS).configuration_["learning_rate"] == 0.1
    assert clf.score(X, Y) > 0.5


def test_a_model_of_a_gpu_is_loaded_anywhere(tmp_path: Path) -> None:
    """The device is a fact in the card; loading does not ask for it."""
    clf = classifier().fit(X, SETS)
    clf.device = "cuda"
    clf.save(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "card.json").read_text())["config"]["device"] == "cuda"
    assert load(tmp_path / "model").predict(X).shape == (300,)
