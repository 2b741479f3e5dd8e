"""How sure `resolve` is: by models that did not see a row, and as all that was said allows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import resolve_calibration
import torch
from estimator.small import SETS, X, Y, classifier
from scipy.optimize import minimize

import ruleout as ro
from ruleout.estimator import classifier as room
from ruleout.estimator import load
from ruleout.training import Trial, fit_grid

FRESH = ro.datasets.load("digits").x_train[300:500]
FRESH_SETS = ro.draw(ro.datasets.load("digits").y_train[300:500], classes=10, seed=1)


def _spied(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the models made of the rows, as it comes to be combined with what was said."""
    seen: list[Any] = []

    def spy(logits: Any, *_: Any) -> tuple[Any, Any]:
        seen.append(logits)
        return logits, logits

    monkeypatch.setattr(room, "_posterior", spy)
    return seen


def _by_hand(logits: Any, doubt: float, cases: Any) -> tuple[Any, Any]:
    """The mean over cases, powers, how equal classes are, and shares, in plain loops."""
    n, k = logits.shape
    shares = [1e-6, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.55, 0.75]
    widths = [0.01, *(np.subtract(shares[2:], shares[:-2]) / 2), 0.2]
    every = []

    def uneven(v: Any) -> float:
        """At its least where classes are equally frequent, but for what was known before."""
        rows = sum(np.log(sum(np.exp(logits[row, c] + v[c]) for c in range(k))) for row in range(n))
        return float(rows - n / k * sum(v) + 5 * sum(np.square(v)) / 2)

    evening = minimize(uneven, np.zeros(k), tol=1e-9).x
    for plausible, table in cases:
        for power, even in product(np.geomspace(1 / 16, 16, 17), (0, 0.5, 1)):
            for share, width in zip(shares, widths, strict=True):
                likely, said, before = plausible - np.log(power) ** 2 / 4.5 - even, [], []
                likely += np.log(width) - share / doubt
                for row in range(n):
                    odds = [np.exp(logits[row, c] + even * evening[c]) for c in range(k)]
                    raised = [one**power for one in odds]
                    mixed = [(1 - share) * one / sum(raised) + share / k for one in raised]
                    joint = [mixed[c] * np.exp(table[row, c]) for c in range(k)]
                    likely += np.log(sum(joint))
                    said.append([one / sum(joint) for one in joint])
                    before.append(mixed)
                every.append((likely, np.array(said), np.array(before)))
    top = max(likely for likely, _, _ in every)
    weights = [np.exp(likely - top) for likely, _, _ in every]
    pairs = list(zip(weights, every, strict=True))
    means = [sum(weight * one[place] for weight, one in pairs) / sum(weights) for place in (1, 2)]
    return means[0], means[1]


@pytest.mark.parametrize("doubt", [0.002, 0.3])
def test_the_mean_over_all_that_may_be_is_that_of_plain_loops(doubt: float) -> None:
    random = np.random.default_rng(0)
    logits = random.normal(size=(12, 4))
    cases = [(float(w), np.log(random.random((12, 4)))) for w in (0.0, -1.5)]
    cases[1][1][0, 2] = -np.inf
    said, before = room._posterior(
        torch.from_numpy(logits), doubt, [(w, torch.from_numpy(table)) for w, table in cases]
    )
    expected = _by_hand(logits, doubt, cases)
    assert np.allclose(said, expected[0], atol=0.002)  # what hardly counts is left out
    assert np.allclose(before, expected[1], atol=0.002)


@pytest.mark.parametrize("equal", [True, False])
def test_answers_tell_how_frequent_classes_are(
    equal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that sees one class too often is put right; one that is right stays as it is."""
    random = np.random.default_rng(0)
    y = random.choice(4, 1000, p=None if equal else [0.7, 0.1, 0.1, 0.1])
    logits = 1.5 * (1.5 * np.eye(4)[y] + random.normal(size=(1000, 4))) + np.log([7, 1, 1, 1])
    likely = np.where(ro.draw(y, classes=4, seed=1).excluded, -np.inf, 0.0)
    told = (torch.from_numpy(logits), 0.01, [(0.0, torch.from_numpy(likely))])
    found = room._posterior(*told)[0].numpy()
    monkeypatch.setattr(room, "_EVEN", (0.0,))
    as_seen = room._posterior(*told)[0].numpy()
    right, before = (np.mean(one.argmax(1) == y) for one in (found, as_seen))
    assert right > before + 0.02 if equal else np.allclose(found, as_seen, atol=0.01)


def test_a_class_that_training_lost_is_named_again() -> None:
    """Answers say that it is there; of few rows nobody knows whether it should be."""
    random = np.random.default_rng(1)
    y = random.integers(5, size=1000)
    logits = 4 * np.eye(5)[y] + random.normal(size=(1000, 5)) - 8 * np.eye(5)[0]
    likely = np.where(ro.draw(y, classes=5, law=1, seed=1).excluded, -np.inf, 0.0)
    assert (logits.argmax(1) != 0).all()
    for few, rows in ((False, np.arange(1000)), (True, np.flatnonzero(y == 0)[:3])):
        told = torch.from_numpy(logits[rows]), 0.01, [(0.0, torch.from_numpy(likely[rows]))]
        named = room._posterior(*told)[0].argmax(-1).numpy()[y[rows] == 0]
        assert np.mean(named == 0) < 0.5 if few else np.mean(named == 0) > 0.85


def test_every_row_is_named_by_models_that_did_not_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "_CUTS", (1, 1))
    clf = classifier().fit(X, SETS)
    seen = _spied(monkeypatch)
    clf.resolve(X, SETS)
    parts = ro.selection.folds(300, 5, np.arange(300), np.random.default_rng(0))
    assert sorted(np.concatenate(parts).tolist()) == list(range(300))
    for place, part in enumerate(parts):
        rest = np.setdiff1d(np.arange(300), part)
        fit = fit_grid(
            X, [Trial(SETS[rest], rest)], grid=[clf.configuration_], epochs=5, seed=place
        )
        expected = fit.logits(X[part])[0, 0].double().log_softmax(-1)
        assert np.allclose(seen[0][part], expected, atol=1e-4)


def test_the_rows_that_trained_are_known_again(tmp_path: Path) -> None:
    """Of a model that was loaded, too; fresh rows are named by the model itself."""
    clf = classifier().fit(X, SETS)
    crossed = clf.resolve(X, SETS, cross=True)
    clf.save(tmp_path / "model")
    for one in (clf, load(tmp_path / "model")):
        assert np.array_equal(one.resolve(X, SETS).probability, crossed.probability)
    own = clf.resolve(X, SETS, cross=False)
    assert not np.array_equal(own.probability, crossed.probability)
    turned = np.random.default_rng(0).permutation(len(X))  # as in a file that was sorted since
    mixed = clf.resolve(X[turned], SETS[turned])
    again = clf.resolve(X[turned], SETS[turned], cross=True)
    assert np.array_equal(mixed.probability, again.probability)
    fresh = clf.resolve(FRESH, FRESH_SETS)
    again = clf.resolve(FRESH, FRESH_SETS, cross=False)
    assert np.array_equal(fresh.probability, again.probability)


@pytest.mark.parametrize("scale", [False, True])
def test_fresh_rows_are_named_by_the_mean_of_folds(
    scale: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a model that was loaded, too; as many doubts as folds that name another class."""
    clf = classifier(grid={"learning_rate": [0.1, 0.01]}, scale=scale).fit(X, SETS)
    clf.save(tmp_path / "model")
    seen: list[Any] = []

    def spy(*told: Any) -> tuple[Any, Any]:
        seen.append(told)
        return told[0], told[0]

    monkeypatch.setattr(room, "_posterior", spy)
    for one in (clf, load(tmp_path / "model")):
        one.resolve(FRESH, FRESH_SETS)
    fit = ro.selection.search(
        X if not scale else ro.datasets.tables.Scaling.of(X)(X), SETS, folds=5, seed=0,
        grid=[clf.configuration_], epochs=5,
    )  # fmt: skip
    rows = FRESH if not scale else ro.datasets.tables.Scaling.of(X)(FRESH)
    each = [fit.grid.logits(rows)[fold, 0].double().softmax(-1) for fold in range(5)]
    mean = torch.stack(each).mean(0)
    other = sum(bool(p[i].argmax() != mean[i].argmax()) for p in each for i in range(200)) / 800
    assert 0.02 < other < 0.5
    for logits, doubt, _ in seen:
        assert np.allclose(logits.exp(), mean, atol=1e-5)
        assert doubt == pytest.approx(1.5 * other**2 + 0.002)


def _large(shape: Any, k: int) -> Any:
    return torch.nn.Sequential(torch.nn.Linear(shape[0], k), torch.nn.LayerNorm(k))


def test_one_model_names_fresh_rows_where_folds_left_none() -> None:
    """One share was held out, or models are large; nor do folds know what was learned later."""
    for more in ({"validation_fraction": 0.2}, {"model": _large}):
        told: dict[str, Any] = {"grid": {"learning_rate": [0.1, 0.01]}, "epochs": 1, **more}
        assert not classifier(**told).fit(X[:40], SETS[:40])._fold_models
    clf = classifier(grid={"learning_rate": [0.1]}).fit(X, SETS)
    assert len(clf._fold_models) == 5
    assert not clf.partial_fit(FRESH, FRESH_SETS)._fold_models


def test_rows_of_which_some_trained() -> None:
    """The others are named by all the models, since none has seen them."""
    rows, both = np.arange(0, 300, 2), np.where(SETS.excluded, -np.inf, 0.0)
    clf = classifier().fit(X[rows], SETS[rows])
    found = clf.resolve(X, SETS[rows], likelihood=both, cross=rows)
    assert np.mean(found.labels == Y) > 0.6
    assert not SETS.excluded[np.arange(300), found.labels].any()


def test_who_learned_nothing_does_not_say_much() -> None:
    """Features of pure noise: whoever asks the model about its own rows is told a fairy tale."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(150, 60)).astype(np.float32), random.integers(0, 5, 150)
    sets = ro.draw(y, classes=5, seed=0)
    clf = classifier(epochs=200).fit(x, sets)
    crossed, own = clf.resolve(x, sets), clf.resolve(x, sets, cross=False)
    assert abs(np.mean(crossed.probability) - np.mean(crossed.labels == y)) < 0.1
    assert np.mean(own.probability) - np.mean(own.labels == y) > 0.2


def test_equal_rows_are_left_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever saw the twin of a row has seen the row, so twins are named by the same models."""
    seen = _spied(monkeypatch)
    twice, sets = np.repeat(X[:60], 2, axis=0), SETS[:120]
    classifier().fit(twice, sets).resolve(twice, sets)
    assert np.array_equal(seen[0][::2], seen[0][1::2])


def test_what_cannot_be_crossed_is_said() -> None:
    clf = classifier().fit(X, SETS)
    with pytest.raises(ValueError, match="with cross the sets that trained"):
        clf.resolve(X, likelihood=np.zeros((300, 10)), cross=True)
    with pytest.raises(ValueError, match=r"train on more, or leave .* cross=False"):
        clf.resolve(X, SETS, groups=np.zeros(300), cross=True)


def test_projects_of_a_stack_are_resolved_as_by_the_classifier() -> None:
    """What the benchmark measures is what users get; eight epochs, one of two settings."""
    given: dict[str, Any] = {"grid": {"learning_rate": [0.1, 0.01]}, "epochs": 8}
    both = resolve_calibration.simulate("pairs", 60, 1, 0.1, [3, 4], **given)[1]
    own, fresh = resolve_calibration.drawn("pairs", 60, 1, 0.1, 4)
    clf = ro.RuleOutClassifier(approach="likelihood", random_state=4, **given).fit(own.x, own.known)
    for rows, one in zip((own, fresh), both, strict=True):
        found = clf.resolve(rows.x, rows.known)
        assert np.allclose(found.probability, one.said, atol=1e-3)
        assert np.array_equal(found.labels == rows.y, one.right)
        assert clf.score(rows.x, rows.y) == one.predicted


@pytest.mark.slow
@pytest.mark.parametrize(("wrong", "answers"), [(0.0, 1), (0.1, 1), (0.1, 3)])
def test_it_is_right_as_often_as_it_says(wrong: float, answers: int) -> None:
    """A small share of ``benchmarks/resolve_calibration.py``: three bins instead of five."""
    given: dict[str, Any] = {"grid": {"learning_rate": [0.01]}, "epochs": 300}
    pairs = [
        both
        for world in resolve_calibration.WORLDS
        for both in resolve_calibration.simulate(world, 300, answers, wrong, range(3), **given)
    ]
    for every in zip(*pairs, strict=True):  # rows that trained, and fresh ones
        for said, right, error in resolve_calibration.bins(every, 3):
            assert abs(said - right) < 0.03 + 2 * error
        found = resolve_calibration.summary(every)
        assert found["resolve"] > max(found["predict"], found["answers"])
        assert found["worse than both"] == 0
