"""A matrix that is learnt without true labels: near the one that drew the sets, or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from torch import nn

import ruleout as ro
from ruleout.labels.errors import InputError, LabelError
from ruleout.labels.origins import Transition, biased_matrix, learn_origin, named_origin
from ruleout.selection import DivergedError, origin_search
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


def small(shape: tuple[int, ...], classes: int, *, width: int = 4) -> Any:
    return nn.Sequential(nn.Linear(shape[0], width), nn.ReLU(), nn.Linear(width, classes))


def test_models_keep_their_options_to_themselves() -> None:
    sets = named_origin("strong:released", 10).draw(Y[:200], 10, seed=3)
    found = ro.find_origin(X[:200], sets, model=small, model_options={"width": 8}, epochs=3)
    assert "model" in found.tried


def test_a_matrix_that_tells_no_classes_apart_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """No accuracy follows from it; on Italian, with 90 classes, `auto` ended with that error."""
    even = Transition(np.full((10, 10), 0.1))
    sets = named_origin("strong:released", 10).draw(Y, 10, seed=3)
    with pytest.raises(LabelError, match="do not tell classes apart"):
        ro.evidence(sets, origin=even)
    monkeypatch.setattr(origin_search, "learn_origin", lambda *_: even)
    found = ro.find_origin(X, sets, epochs=2)
    assert found.origin is None
    assert "tells classes apart" in found.why


def test_fewer_rows_than_classes_make_no_clusters() -> None:
    sets = named_origin("released", 10).draw(Y[:8], 10, seed=3)
    assert "clusters" not in ro.find_origin(X[:8], sets, epochs=2).tried


def test_what_cannot_be_told_is_said() -> None:
    sets = named_origin("released", 10).draw(Y[:30], 10, seed=3)
    with pytest.raises(InputError, match="find_origin has its own grid; leave it out"):
        ro.find_origin(X[:30], sets, grid="small")
    with pytest.raises(InputError, match="2 trials are given; give one"):
        ro.find_origin(X[:30], [sets, sets])  # type: ignore[arg-type]
    lost = pytest.raises(DivergedError, match="training diverged; scale the features")
    with pytest.warns(UserWarning, match="will hardly train"), lost:
        ro.find_origin(X[:30] * 1e12, sets, learning_rate=1e30, epochs=3)


def test_an_option_of_learning_may_be_in_a_grid() -> None:
    sets = named_origin("weak:released", 10).draw(Y[:300], 10, seed=3)
    fit = ro.fit_grid(X[:300], sets, approach="cpe-t", grid={"wait": [1, 99]}, epochs=3)
    assert fit.state is not None
    assert fit.state.memory is not None
    moved, even = fit.state.memory["kept.transition"][0, :, 0].view(2, 10, 10)
    assert np.allclose(even, (1 - np.eye(10)) / 9)
    assert not np.allclose(moved, even)
