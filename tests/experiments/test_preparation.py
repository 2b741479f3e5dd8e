"""Preparation: what the trials of a cell train on and are measured on."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from experiments.made import spec
from numpy.typing import NDArray

from ruleout.datasets import Dataset, load, survey
from ruleout.experiments import Spec, runner
from ruleout.experiments.runner import Prepared, prepare, stream
from ruleout.training import Trial

TABLE_5 = {
    "yeast": (1335, 149),
    "texture": (4950, 550),
    "dermatology": (329, 37),
    "synthetic-control": (540, 60),
}


def digits(**settings: Any) -> Spec:
    return spec(dataset="digits", **settings)


def made_up(monkeypatch: pytest.MonkeyPatch, *, official: bool = False) -> Dataset:
    """Let a small data set with a constant column stand in for digits."""
    random = np.random.default_rng(3)
    x = random.normal(7, 3, (60, 4)).astype(np.float32) * np.array([1, 1e-3, 1e4, 0], np.float32)
    x[:, 3] = 5
    y = random.integers(3, size=60)
    test: dict[str, Any] = {"x_test": x[50:] + 1, "y_test": y[50:]} if official else {}
    data = Dataset(
        name="digits", x_train=x, y_train=y, classes=(0, 1, 2), shape=(4,), source="", **test
    )
    monkeypatch.setattr(runner, "_loaded", lambda _: data)
    runner._prepared.cache_clear()
    return data


@pytest.fixture(autouse=True)
def _forget() -> Any:
    """What was prepared from made-up data is not remembered."""
    yield
    runner._prepared.cache_clear()


def rows_of(data: Prepared, trial: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    rows = data.trials[trial].rows
    assert rows is not None
    return rows, data.test.rows[trial]


def same_rows(one: Trial, other: Trial) -> bool:
    return np.array_equal(np.asarray(one.rows), np.asarray(other.rows))


@pytest.mark.parametrize("approach", ["exp", "ga-before", "pc-after", "clpl"])
def test_approaches_share_rows_sets_and_seeds(approach: str) -> None:
    one = prepare(digits(approach="log"))
    runner._prepared.cache_clear()
    other = prepare(digits(approach=approach))
    assert one is not other
    for a, b, c, d in zip(one.trials, other.trials, one.test.rows, other.test.rows, strict=True):
        assert a.seed == b.seed
        assert same_rows(a, b)
        assert np.array_equal(a.sets.excluded, b.sets.excluded)
        assert np.array_equal(c, d)


@pytest.mark.parametrize("change", [{"protocol": "text"}, {"model": "mlp"}, {"grid": "paper"}])
def test_what_trains_does_not_change_what_is_trained_on(change: dict[str, Any]) -> None:
    one, other = prepare(digits()), prepare(digits(**change))
    assert [t.seed for t in one.trials] == [t.seed for t in other.trials]
    assert np.array_equal(one.trials[0].sets.excluded, other.trials[0].sets.excluded)


def test_training_and_test_rows_are_disjoint_and_whole() -> None:
    data = prepare(digits(trials=4))
    for trial in range(4):
        train, test = rows_of(data, trial)
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(1797))
        assert len(test) == 180  # a tenth, rounded up


def test_more_trials_begin_with_the_same_ones() -> None:
    few, many = (prepare(digits(trials=n)).trials for n in (2, 4))
    for a, b in zip(few, many, strict=False):
        assert a.seed == b.seed
        assert same_rows(a, b)
        assert np.array_equal(a.sets.excluded, b.sets.excluded)


def test_trials_differ() -> None:
    data = prepare(digits(trials=3))
    for a in range(3):
        for b in range(a):
            assert data.trials[a].seed != data.trials[b].seed
            assert not np.array_equal(rows_of(data, a)[1], rows_of(data, b)[1])
            one, other = data.trials[a].sets.excluded, data.trials[b].sets.excluded
            assert not np.array_equal(one, other)


def test_seeds_differ_by_trial_and_purpose() -> None:
    every = [stream(seed, t, why) for seed in range(5) for t in range(20) for why in range(3)]
    assert len(set(every)) == len(every)
    assert all(0 <= one < 2**32 for one in every)


def test_another_seed_makes_other_trials() -> None:
    one, other = (prepare(digits(seed=seed)).trials[0] for seed in (0, 1))
    assert not same_rows(one, other)
    assert one.seed != other.seed


@pytest.mark.parametrize("law", ["released", "paper", "fixed:1", "fixed:8"])
@pytest.mark.parametrize("features", ["raw", "standardised"])
def test_the_true_class_is_never_ruled_out(law: str, features: str) -> None:
    data = prepare(digits(law=law, features=features, trials=2))
    for trial, labels in zip(data.trials, data.train.target, strict=True):
        assert not trial.sets.excluded[np.arange(len(labels)), labels].any()
        if law.startswith("fixed"):
            assert set(trial.sets.sizes.tolist()) == {int(law[6:])}


@pytest.mark.parametrize("features", ["raw", "standardised"])
def test_labels_follow_their_rows(features: str) -> None:
    """Each row of x is found again among the original ones, by its trial, with its label."""
    original = load("digits")
    data = prepare(digits(features=features, trials=2))
    for t in range(2):
        for watch in (data.train, data.test):
            rows, labels = watch.rows[t], watch.target[t]
            x = data.x[rows]
            place = rows % 1797 if features == "standardised" else rows
            assert np.array_equal(labels, original.y_train[place])
            if features == "raw":
                assert np.array_equal(x, original.x_train[place])
            else:
                train = original.x_train[np.asarray(data.trials[t].rows) % 1797].astype(float)
                std = train.std(0)
                std[std == 0] = 1
                expected = (original.x_train[place] - train.mean(0)) / std
                np.testing.assert_allclose(x, expected, rtol=0, atol=1e-5)


def test_standardised_features_have_mean_0_and_std_1_on_the_training_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = made_up(monkeypatch)
    data = prepare(digits(features="standardised", trials=3))
    assert np.isfinite(data.x).all()
    for t in range(3):
        train, test = rows_of(data, t)
        x = data.x[train].astype(float)
        np.testing.assert_allclose(x.mean(0), 0, atol=1e-5)
        np.testing.assert_allclose(x.std(0), [1, 1, 1, 0], atol=1e-5)
        alone = original.x_train[train % 60].astype(float)
        scale = np.where(alone.std(0) > 0, alone.std(0), 1)
        expected = (original.x_train[test % 60] - alone.mean(0)) / scale
        np.testing.assert_allclose(data.x[test], expected, atol=1e-5)
        assert abs(data.x[test, :3].mean(0)).max() > 1e-3  # the test rows had no say
        assert np.array_equal(data.test.target[t], original.y_train[test % 60])
        assert np.array_equal(data.train.target[t], original.y_train[train % 60])


def test_scaling_moves_no_row_to_another_part(monkeypatch: pytest.MonkeyPatch) -> None:
    made_up(monkeypatch)
    raw, scaled = (prepare(digits(features=one)) for one in ("raw", "standardised"))
    for t in range(3):
        for one, other in zip(rows_of(raw, t), rows_of(scaled, t), strict=True):
            assert np.array_equal(one, other - 60 * t)
        same = raw.trials[t].sets.excluded == scaled.trials[t].sets.excluded
        assert same.all()


def test_official_test_rows_are_the_test_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    original = made_up(monkeypatch, official=True)
    assert original.test is not None
    data = prepare(digits(trials=2))
    assert data.test.rows is None
    assert np.array_equal(data.test.x, original.test[0])
    assert np.array_equal(data.test.target, original.test[1])
    assert [np.asarray(trial.rows).tolist() for trial in data.trials] == [list(range(60))] * 2
    one, other = (trial.sets.excluded for trial in data.trials)
    assert not np.array_equal(one, other)


def test_official_test_rows_are_scaled_by_the_training_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original = made_up(monkeypatch, official=True)
    assert original.test is not None
    data = prepare(digits(features="standardised", trials=2))
    x = original.x_train.astype(float)
    scale = np.where(x.std(0) > 0, x.std(0), 1)
    np.testing.assert_allclose(data.x, (x - x.mean(0)) / scale, atol=1e-5)
    np.testing.assert_allclose(data.test.x, (original.test[0] - x.mean(0)) / scale, atol=1e-5)


def test_what_was_loaded_is_not_changed() -> None:
    before = load("digits").x_train
    prepare(digits(features="standardised"))
    assert np.array_equal(runner._loaded("digits").x_train, before)


@pytest.mark.parametrize("name", list(TABLE_5))
def test_sizes_are_those_of_table_5(name: str) -> None:
    root = os.environ.get("RULEOUT_DATA", "no-such-folder")
    if not next(one for one in survey(root) if one.name == name).present:
        pytest.skip(f"{name} is not in {root}: set RULEOUT_DATA to a folder with the files")
    for features in ("raw", "standardised"):
        data = prepare(replace(digits(features=features), dataset=name, trials=5))
        for t in range(5):
            assert tuple(map(len, rows_of(data, t))) == TABLE_5[name]
            train, _ = rows_of(data, t)
            if features == "standardised":
                x = data.x[train].astype(float)
                assert np.isfinite(data.x).all()
                np.testing.assert_allclose(x.mean(0), 0, atol=1e-4)
