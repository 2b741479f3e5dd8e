"""A matrix that is learnt without true labels: near the one that drew the sets, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ruleout as ro
from ruleout.labels.origins import Transition, biased_matrix, learn_origin, named_origin
from ruleout.training import Trial

X, Y = ro.datasets.load("digits").train


def far(one: Any, other: Any) -> float:
    return float(np.abs(np.asarray(one) - np.asarray(other)).sum(1).mean())


@pytest.mark.parametrize("bias", ["weak", "strong"])
def test_the_matrix_that_drew_sets_is_found(bias: str) -> None:
    sets, truth = named_origin(f"{bias}:released", 10).draw(Y, 10, seed=3), biased_matrix(bias, 10)
    found = ro.find_origin(X, sets)
    assert found.origin is not None
    assert found.spread is not None
    assert far(found.origin.rates, truth) < 0.25
    assert far(found.origin.rates, truth) < far(found.origin.rates, biased_matrix("weak", 10)) + 0.1
    off = np.abs(found.origin.rates - truth) / found.spread.mean()
    assert np.median(off) < 3  # the spread says about how far off it is


@pytest.mark.slow
def test_a_model_that_is_mostly_wrong_at_first_is_led_by_clusters() -> None:
    sets = named_origin("strong:fixed:3", 10).draw(Y, 10, seed=3)
    found = ro.find_origin(X, sets)
    assert found.tried["clusters"][0] > found.tried["model"][0] + 0.1
    assert found.origin is not None
    assert far(found.origin.rates, biased_matrix("strong", 10)) < 0.6


def test_sets_that_depend_on_more_than_the_class_are_refused() -> None:
    """What looks like the row is left possible: a matrix foretells sets, but names are worse."""
    random = np.random.default_rng(0)
    near = X @ random.normal(size=(64, 10)).astype(np.float32)
    near[np.arange(len(Y)), Y] = np.inf
    sets = ro.LabelSets(near < np.sort(near, 1)[:, -3:-2], 10)
    found = ro.find_origin(X, sets)
    assert found.origin is None
    assert "ruled out more often" in found.why


@pytest.mark.slow
def test_true_classes_of_some_rows_help() -> None:
    """Single labels of 1,797 rows do not tell names; a tenth of the true classes does."""
    sets, truth = (
        named_origin("strong:fixed:1", 10).draw(Y, 10, seed=3),
        biased_matrix("strong", 10),
    )
    known = np.where(np.arange(len(Y)) % 10 == 0, Y, -1)
    said = ro.evidence(sets, truth=known)
    plain, helped = (ro.find_origin(X, one) for one in (sets, Trial(sets, evidence=said)))
    assert plain.origin is not None
    assert helped.origin is not None
    assert far(helped.origin.rates, truth) < far(plain.origin.rates, truth) - 0.1


def test_several_answers_about_each_row_tell_the_matrix() -> None:
    """Without features and without true labels."""
    rows = np.repeat(np.arange(600), 5)
    y, truth = Y[:600], biased_matrix("strong", 10)
    sets = Transition(truth, 4).draw(y[rows], 10, seed=1)
    even = (1 - np.eye(10)) / 9
    assert far(even, truth) > 0.8
    assert far(learn_origin(Transition, sets, items=rows).rates, truth) < 0.35
    with pytest.raises(ro.LabelError, match="nothing is known of the rows"):
        learn_origin(Transition, sets)
