"""`partial_fit`: what was learned before is kept, moments and all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from estimator.small import SETS, X, Y, classifier
from numpy.testing import assert_allclose, assert_array_equal
from torch import nn

from ruleout.estimator import RuleOutClassifier
from ruleout.estimator.classifier import TrainingState


def _whole(**parameters: Any) -> RuleOutClassifier:
    """One batch holds all rows, so that their order makes no difference."""
    return classifier(batch_size=300, precision="float64", **parameters)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "sgd-momentum"])
def test_five_calls_are_a_fit_of_five_epochs(optimizer: str) -> None:
    fit = _whole(optimizer=optimizer).fit(X, SETS)
    part = _whole(optimizer=optimizer)
    for _ in range(5):
        part.partial_fit(X, SETS)
    assert_allclose(part.predict_proba(X), fit.predict_proba(X), atol=1e-10)
    assert_allclose(part.history_["loss"], fit.history_["loss"], atol=1e-10)
    assert part.n_iter_ == 5


def test_a_fit_goes_on_where_it_ended() -> None:
    long = _whole(epochs=7).fit(X, SETS)
    part = _whole(epochs=5).fit(X, SETS).partial_fit(X, SETS).partial_fit(X, SETS)
    assert_allclose(part.predict_proba(X), long.predict_proba(X), atol=1e-10)
    assert_array_equal(part.history_["epoch"], range(1, 8))


def test_every_call_walks_in_another_order() -> None:
    seeds = {TrainingState(3, calls, "adam", None).order for calls in range(50)}
    assert len(seeds) == 50
    assert TrainingState(3, 0, "adam", None).order == 3


def test_calls_are_repeatable() -> None:
    def run() -> Any:
        clf = classifier(batch_size=32)
        for start in range(0, 300, 100):
            clf.partial_fit(X[start : start + 100], SETS[start : start + 100])
        return clf.predict_proba(X)

    assert_array_equal(run(), run())


def test_labels_need_all_classes_in_the_first_call() -> None:
    clf = classifier().partial_fit(X[:2], Y[:2], classes=range(10))
    clf.partial_fit(X[2:4], Y[2:4])
    assert_array_equal(clf.classes_, range(10))
    named = classifier(classes=10).partial_fit(X[:2], Y[:2])
    assert_array_equal(named.classes_, range(10))


def test_sets_and_labels_may_take_turns() -> None:
    clf = classifier().partial_fit(X, SETS).partial_fit(X, Y).partial_fit(X, SETS.excluded)
    assert clf.n_iter_ == 3


def test_a_learning_rate_may_be_changed_on_the_way() -> None:
    clf = classifier().partial_fit(X, SETS)
    before = clf.predict_proba(X)
    clf.set_params(learning_rate=0.0).partial_fit(X, SETS)
    assert_array_equal(clf.predict_proba(X), before)


def test_the_configuration_that_was_chosen_goes_on() -> None:
    clf = classifier(learning_rate=1.0, grid={"learning_rate": [0.1, 1e-6]}).fit(X, SETS)
    clf.partial_fit(X, SETS)
    assert clf.configuration_["learning_rate"] == 0.1
    assert not hasattr(clf, "criterion_")  # it judged the model before


def test_buffers_and_frozen_weights_are_kept() -> None:
    def own(shape: tuple[int, ...], classes: int) -> nn.Module:
        model = nn.Sequential(nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.Linear(8, classes))
        model[0].requires_grad_(False)
        return model

    clf = classifier(model=own, batch_size=100).partial_fit(X, SETS)
    first = clf.module_.state_dict()
    second = clf.partial_fit(X, SETS).module_.state_dict()
    assert torch.equal(first["0.weight"], second["0.weight"])
    assert (first["1.num_batches_tracked"], second["1.num_batches_tracked"]) == (3, 6)


@pytest.mark.filterwarnings("ignore:a learning rate of")
def test_a_call_that_fails_changes_nothing() -> None:
    clf = classifier(optimizer="sgd", approach="cce").partial_fit(X, SETS)
    before = clf.predict_proba(X)
    clf.set_params(learning_rate=1e30)
    with pytest.raises(ValueError, match="training diverged"):
        clf.partial_fit(X, SETS).partial_fit(X, SETS)
    clf.set_params(learning_rate=0.0)
    assert np.isfinite(clf.predict_proba(X)).all() or (before == clf.predict_proba(X)).all()


def test_another_optimizer_starts_its_moments_anew() -> None:
    clf = _whole().partial_fit(X, SETS)
    clf.set_params(optimizer="sgd").partial_fit(X, SETS)
    clf.set_params(optimizer="adam").partial_fit(X, SETS)
    assert clf.n_iter_ == 3


def test_the_record_holds_all_data_ever_seen() -> None:
    one, two = classifier().partial_fit(X, SETS), classifier().partial_fit(X, SETS)
    assert one.record_["data"] == two.record_["data"]
    assert (
        one.partial_fit(X, SETS).record_["data"]
        != two.partial_fit(X[:50], SETS[:50]).record_["data"]
    )
    assert one.record_["model"] == "linear"
