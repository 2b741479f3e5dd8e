"""Probabilities, decisions, and what annotation teams are after."""

from __future__ import annotations

import numpy as np
import pytest
from estimator.small import NAMES, SETS, X, Y, classifier
from numpy.testing import assert_allclose, assert_array_equal

import ruleout as ro
from ruleout.estimator import Resolved
from ruleout.estimator import classifier as room


def test_probabilities_sum_to_one_and_decide() -> None:
    clf = classifier().fit(X, SETS)
    found = clf.predict_proba(X)
    assert_allclose(found.sum(1), 1, atol=1e-12)
    assert_array_equal(clf.classes_[found.argmax(1)], clf.predict(X))
    assert_allclose(clf.predict_log_proba(X), np.log(found), atol=1e-9)


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    for model in ("linear", "mlp"):
        clf = classifier(model=model).fit(X, SETS)
        alone = np.concatenate([clf.decision_function(X[i : i + 1]) for i in range(20)])
        assert_allclose(clf.decision_function(X)[:20], alone, rtol=0, atol=1e-12)


def test_two_classes_have_one_decision() -> None:
    clf = classifier().fit(X, Y % 2)
    decision = clf.decision_function(X)
    assert decision.shape == (300,)
    assert_array_equal(decision > 0, clf.predict(X) == 1)
    assert_allclose(1 / (1 + np.exp(-decision)), clf.predict_proba(X)[:, 1], atol=1e-12)


def test_resolve_takes_the_best_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    """With classes as frequent as the model sees them."""
    monkeypatch.setattr(room, "_EVEN", (0.0,))
    clf = classifier(classes=NAMES).fit(X, SETS.excluded)
    named = ro.LabelSets(SETS.excluded, NAMES)
    found = clf.resolve(X, named, cross=False)
    assert isinstance(found, Resolved)
    for row, probabilities in enumerate(clf.predict_proba(X)):
        candidates = np.flatnonzero(SETS.candidates[row])
        assert found.labels[row] == NAMES[candidates[probabilities[candidates].argmax()]]
    assert (found.probability >= found.before - 1e-12).all()


def test_resolve_knows_what_is_certain() -> None:
    found = classifier().fit(X, SETS).resolve(X, ro.LabelSets.from_labels(Y, 10))
    assert_array_equal(found.labels, Y)
    assert_array_equal(found.probability, 1)


def test_resolve_holds_where_all_candidates_are_unlikely() -> None:
    clf = classifier().fit(X, SETS)
    sure = X[:5] * 1e4  # one class has all the probability that float64 can hold
    others = ro.LabelSets.from_single(clf.predict(sure), 10)
    found = clf.resolve(sure, others)
    assert np.isfinite(found.probability).all()
    assert (found.probability > 0.1).all()
    assert (found.before < 0.1).any()


def test_resolve_beats_predict() -> None:
    clf = classifier(epochs=20).fit(X, SETS)
    assert (clf.resolve(X, SETS).labels == Y).mean() >= clf.score(X, Y)
