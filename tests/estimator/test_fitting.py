"""What `fit` learns, chooses and leaves behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from estimator.small import SETS, X, Y, classifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from torch import nn

import ruleout as ro
from ruleout.estimator import RuleOutClassifier
from ruleout.estimator.inputs import TrainingData
from ruleout.training import EpochEnd, Trial, fit_grid
from ruleout.training.class_weights import class_shares

GRID = {"learning_rate": [1e-5, 0.1, 0.01]}


def test_a_fit_is_a_grid_of_one() -> None:
    clf = classifier().fit(X, SETS)
    engine = fit_grid(X, SETS, grid={"learning_rate": 0.1}, epochs=5, seed=0)
    wanted = engine.module().double()(torch.from_numpy(X).double()).detach()
    assert_allclose(clf.decision_function(X), wanted, atol=1e-12)
    assert clf.configuration_ == {"learning_rate": 0.1, "weight_decay": 1e-5}
    assert clf.n_iter_ == 5
    assert_array_equal(clf.history_["loss"], engine.history["loss"][0, 0])


@pytest.mark.parametrize("state", [7, np.random.RandomState(3)])
def test_a_random_state_makes_fits_repeatable(state: Any) -> None:
    import copy

    first = classifier(random_state=copy.deepcopy(state)).fit(X, SETS)
    again = classifier(random_state=copy.deepcopy(state)).fit(X, SETS)
    assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    other = classifier(random_state=8).fit(X, SETS)
    assert (first.predict_proba(X) != other.predict_proba(X)).any()


def test_the_default_takes_at_least_2000_steps_and_100_epochs() -> None:
    assert RuleOutClassifier()._epochs(30) == 2000
    assert RuleOutClassifier()._epochs(2560) == 200
    assert RuleOutClassifier()._epochs(60_000) == 100
    assert RuleOutClassifier(epochs=7)._epochs(30) == 7
    assert RuleOutClassifier(grid="small")._epochs(30) == 500
    assert RuleOutClassifier(grid="small")._epochs(60_000) == 100
    assert RuleOutClassifier(grid="paper")._epochs(30) == 2000
    assert RuleOutClassifier(grid={"batch_size": [8, 128]})._epochs(1280) == 200


@pytest.mark.parametrize(
    ("told", "n", "folds", "share"),
    [
        ({"grid": "small"}, 5000, 5, 0.1),
        ({"grid": "small"}, 8000, None, 0.125),
        ({"grid": "small"}, 60_000, None, 0.1),
        ({"grid": "small", "validation_fraction": 0.3}, 100, None, 0.3),
        ({"grid": "paper"}, 100, 5, 0.1),
        ({"early_stopping": True}, 6000, None, 0.1),
    ],
)
def test_few_rows_take_turns_to_choose_and_of_many_a_share_is_held_out(
    told: dict[str, Any], n: int, folds: int | None, share: float
) -> None:
    choosing = RuleOutClassifier(**told)._choosing(n)
    assert choosing is not None
    assert (choosing["folds"], choosing["share"]) == (folds, share)


def test_progress_is_told_stage_by_stage() -> None:
    told: list[tuple[str, int, int]] = []
    clf = classifier(grid={"learning_rate": [0.1, 0.01]}, epochs=2)
    clf.fit(X, SETS, progress=lambda *now: told.append(now))
    assert told == [
        ("searching 2 configurations", 1, 2),
        ("searching 2 configurations", 2, 2),
        ("judging the choice", 1, 2),
        ("judging the choice", 2, 2),
        ("training the choice on all rows", 1, 2),
        ("training the choice on all rows", 2, 2),
    ]


@pytest.mark.parametrize("k", [2, 1000])
def test_few_and_many_classes(k: int) -> None:
    y = np.arange(40) % k
    x = np.eye(40, dtype=np.float32)
    clf = classifier(epochs=100, classes=k).fit(x, ro.LabelSets.from_labels(y, k))
    assert clf.score(x, y) == 1
    assert clf.predict_proba(x).shape == (40, k)
    assert clf.decision_function(x).shape == ((40,) if k == 2 else (40, k))


def test_one_row_is_enough() -> None:
    clf = classifier(epochs=50).fit(X[:1], SETS[:1])
    assert clf.predict(X[:1])[0] not in SETS[0]


@pytest.mark.parametrize("approach", ["log", "proden", "ga-before", "likelihood"])
@pytest.mark.parametrize("read", [ro.LabelSets, ro.evidence])
def test_rows_that_rule_nothing_out_say_nothing(approach: str, read: Any) -> None:
    mask = SETS.excluded
    mask[100:] = False
    sets = ro.LabelSets(mask, unlabelled=True)
    some = classifier(approach=approach).fit(X, sets if read is ro.LabelSets else read(sets))
    without = classifier(approach=approach).fit(X[:100], read(SETS[:100]))
    assert_allclose(some.predict_proba(X), without.predict_proba(X), atol=1e-5)


def test_rows_that_say_nothing_have_no_part_in_what_true_labels_correct() -> None:
    mask = SETS.excluded
    mask[100:] = False
    truth = np.where(np.arange(len(X)) < 40, Y, -1)
    said = ro.evidence(ro.LabelSets(mask, unlabelled=True), truth=truth)
    assert said.corrected
    data = TrainingData(X, Trial(said.sets, evidence=said), np.unique(Y)).weighted(None, None)
    assert data.trial.evidence is not None
    assert len(data.trial.evidence) == 100
    alone = ro.evidence(SETS[:100], truth=truth[:100])
    assert_allclose(data.trial.evidence.credit.value, alone.credit.value, atol=1e-12)


def test_an_approach_may_be_an_object() -> None:
    made = classifier(approach=ro.approach("gce", q=0.3)).fit(X, SETS)
    named = classifier(approach="gce", approach_options={"q": 0.3}).fit(X, SETS)
    assert_allclose(made.predict_proba(X), named.predict_proba(X), atol=1e-6)
    assert clone(made).fit(X, SETS).record_["approach"] == "gce"


# ---------------------------------------------------------------------- choosing


def test_one_row_that_chooses_is_warned_of() -> None:
    told = {"grid": {"learning_rate": [0.1, 0.01]}, "epochs": 1, "validation_fraction": 0.1}
    wide = classifier(**told).fit(X[:2], SETS[:2]).criterion_  # whose interval says it
    assert (wide.high or 0) - (wide.low or 0) > 0.5
    clf = classifier(criterion="consistency", **told)
    with pytest.warns(UserWarning, match="a single row was held out") as seen:
        clf.fit(X[:2], SETS[:2])
    assert seen[0].filename == __file__


@pytest.mark.parametrize("grid", [GRID, [{"learning_rate": v} for v in GRID["learning_rate"]]])
def test_a_grid_is_chosen_from_and_the_choice_trained_on_all_rows(grid: Any) -> None:
    clf = classifier(grid=grid, weight_decay=1e-3).fit(X, SETS)
    assert clf.configuration_ == {"learning_rate": 0.1, "weight_decay": 1e-3}
    plain = classifier(learning_rate=0.1, weight_decay=1e-3).fit(X, SETS)
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    assert_array_equal(clf.search_["learning_rate"], GRID["learning_rate"])
    best = int(np.argmax(clf.search_["estimate"]))
    assert clf.search_["learning_rate"][best] == 0.1
    assert clf.criterion_.name == "accuracy"
    assert clf.criterion_.standard_error == clf.search_["standard_error"][best] > 0
    assert is_inside(clf)
    assert len(clf.search_history_["estimate"]) == 5
    assert not hasattr(plain, "criterion_")


def test_the_paper_grid_has_36_configurations() -> None:
    clf = classifier(grid="paper", epochs=2).fit(X, SETS)
    assert len(clf.search_["estimate"]) == 36


def test_options_of_the_loss_are_chosen_too() -> None:
    clf = classifier(approach="gce", grid={"q": [0.3, 0.9]}, approach_options={"q": 0.5})
    assert clf.fit(X, SETS).configuration_["q"] in (0.3, 0.9)
    alone = classifier(approach="gce", approach_options={"q": 0.5}).fit(X, SETS)
    assert alone.configuration_["q"] == 0.5


def test_batch_size_and_model_are_chosen_too(tmp_path: Path) -> None:
    grid = {"batch_size": [30, 300], "model.hidden": [3, (20, 20)], "learning_rate": 0.03}
    clf = classifier(model="mlp", grid=grid, epochs=8).fit(X, SETS)
    assert clf.configuration_["batch_size"] == 30
    told = {"hidden": clf.configuration_["model.hidden"], "learning_rate": 0.03, "epochs": 8}
    plain = classifier(model="mlp", batch_size=30, **told).fit(X, SETS)
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    assert clf.search_["model.hidden"].tolist() == ["3", "(20, 20)"] * 2
    clf.save(tmp_path / "model")
    again = ro.load(tmp_path / "model")
    assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    assert_array_equal(again.partial_fit(X, SETS).n_iter_, clf.n_iter_ + 1)


def test_a_callback_stops_the_search_and_the_refit_takes_as_many_epochs() -> None:
    seen: list[tuple[int, bool]] = []

    def enough(end: EpochEnd) -> None:
        seen.append((end.epoch, "held out/accuracy" in end.history))
        if end.epoch == 2:
            end.stop()

    clf = classifier(grid=GRID).fit(X, SETS, callback=enough)
    assert seen == [(1, True), (2, True), (1, False), (2, False)]
    plain = classifier(grid=GRID, epochs=2).fit(X, SETS)
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))
    assert (clf.n_iter_, clf.criterion_) == (2, plain.criterion_)
    alone = classifier().fit(X, SETS, callback=enough)
    assert (alone.n_iter_, alone.history_["epoch"].tolist()) == (2, [1, 2])


def test_the_one_standard_error_rule_takes_more_decay() -> None:
    grid = {"weight_decay": [1e-6, 1e-5, 1e-4]}
    one = classifier(grid=grid, rule="one-standard-error").fit(X, SETS)
    assert one.configuration_["weight_decay"] == 1e-4


def test_true_labels_of_held_out_rows_are_never_read() -> None:
    """Choosing by accuracy from labels is choosing from the sets that they make."""
    from_labels = classifier(grid=GRID).fit(X, Y)
    from_sets = classifier(grid=GRID).fit(X, ro.LabelSets.from_labels(Y, 10))
    assert_array_equal(from_labels.search_["estimate"], from_sets.search_["estimate"])


def test_early_stopping_chooses_the_number_of_epochs() -> None:
    clf = classifier(early_stopping=True, patience=3, epochs=60).fit(X, SETS)
    assert 1 <= clf.n_iter_ < 60
    assert clf.search_["epochs"][0] == clf.n_iter_
    plain = classifier(epochs=clf.n_iter_).fit(X, SETS)
    assert_array_equal(clf.predict_proba(X), plain.predict_proba(X))


def is_inside(clf: Any) -> bool:
    return bool(clf.criterion_.low < clf.criterion_.estimate < clf.criterion_.high)


def test_only_an_accuracy_that_nothing_makes_too_good_has_an_interval() -> None:
    by_risk = classifier(grid=GRID, criterion="risk").fit(X, SETS).criterion_
    told = {"grid": GRID, "validation_fraction": 0.2}
    stopped = classifier(early_stopping=True, **told).fit(X, SETS).criterion_
    assert by_risk.low is by_risk.high is stopped.low is stopped.high is None
    for more in (told, {"grid": GRID, "early_stopping": True}):
        assert is_inside(classifier(**more).fit(X, SETS))


def test_no_accuracy_is_kept_where_an_error_rate_may_leave_nothing_to_judge_by() -> None:
    told = {"approach": "likelihood", "grid": GRID}
    assert is_inside(classifier(**told).fit(X, ro.evidence(SETS, (3, 30))))
    single = ro.draw(Y, classes=10, law=1, seed=0)  # one class each: a tenth wrong says nothing
    none = classifier(**told).fit(X, ro.evidence(single, (1, 30))).criterion_
    assert np.isnan(none.estimate)
    assert none.low is none.high is None


def test_a_second_fit_forgets_the_search_of_the_first() -> None:
    clf = classifier(grid=GRID).fit(X, SETS)
    clf.set_params(grid=None).fit(X, SETS)
    assert not any(hasattr(clf, name) for name in ("criterion_", "search_", "search_history_"))


# ---------------------------------------------------------------------- weights


def test_a_row_of_weight_zero_is_left_out() -> None:
    weight = np.ones(300)
    weight[::3] = 0
    kept = np.flatnonzero(weight)
    weighted = classifier().fit(X, SETS, sample_weight=weight)
    assert_allclose(
        weighted.predict_proba(X), classifier().fit(X[kept], SETS[kept]).predict_proba(X), atol=1e-5
    )


def test_class_weights_of_labels_are_sample_weights() -> None:
    weights = {0: 3.0, 1: 0.5}
    by_class = classifier(class_weight=weights).fit(X, Y)
    by_row = classifier().fit(X, Y, sample_weight=[weights.get(label, 1.0) for label in Y])
    assert_array_equal(by_class.predict_proba(X), by_row.predict_proba(X))


def test_balanced_weights_of_labels_are_those_of_scikit_learn() -> None:
    from sklearn.utils.class_weight import compute_sample_weight

    rows = np.flatnonzero((Y < 3) | (np.arange(300) % 3 == 0))
    balanced = classifier(class_weight="balanced").fit(X[rows], Y[rows])
    weight = compute_sample_weight("balanced", Y[rows])
    by_row = classifier().fit(X[rows], Y[rows], sample_weight=weight)
    assert_allclose(balanced.predict_proba(X), by_row.predict_proba(X), atol=1e-6)


def test_a_set_weighs_the_mean_of_its_candidates() -> None:
    sets = ro.LabelSets([[1, 0, 0], [0, 1, 1]], ["a", "b", "c"])
    x = np.array([[0.0], [1.0]])
    by_class = classifier(class_weight={"a": 2, "b": np.float32(4), "c": 8}).fit(x, sets)
    by_row = classifier().fit(x, sets, sample_weight=[6, 2])
    assert_array_equal(by_class.predict_proba(x), by_row.predict_proba(x))


def test_shares_of_classes_are_estimated_without_bias() -> None:
    y = np.array([0] * 6 + [1] * 3 + [2, 3])
    wanted = np.bincount(y) / len(y)
    found = [class_shares(ro.draw(np.tile(y, 200), classes=4, seed=s)) for s in range(30)]
    error = np.std(found, axis=0) / np.sqrt(30)
    assert (np.abs(np.mean(found, axis=0) - wanted) < 4 * error).all()


# ---------------------------------------------------------------------- models


def test_a_model_of_ones_own_is_trained() -> None:
    def own(shape: tuple[int, ...], classes: int, *, width: int = 8) -> nn.Module:
        return nn.Sequential(nn.Linear(shape[0], width), nn.Tanh(), nn.Linear(width, classes))

    clf = classifier(model=own, model_options={"width": 16}, epochs=30).fit(X, SETS)
    assert clf.module_.state_dict()["0.weight"].shape == (16, 64)
    assert clf.score(X, Y) > 0.7


def test_convolutions_read_images() -> None:
    images = np.random.default_rng(0).random((12, 3 * 8 * 8), np.float32)
    y = np.arange(12) % 3
    for given, shape in ((images, (3, 8, 8)), (images.reshape(12, 3, 8, 8), None)):
        clf = classifier(model="resnet32", shape=shape, epochs=1).fit(given, y)
        assert clf.predict_proba(given).shape == (12, 3)


def test_clpl_warns_once_where_it_is_not_convex() -> None:
    with pytest.warns(UserWarning, match="convex in a linear model only") as seen:
        classifier(approach="clpl", model="mlp", hidden=(4,), epochs=1).fit(X, SETS)
    assert len(seen) == 1
    classifier(approach="clpl", model="linear", epochs=1).fit(X, SETS)  # warns of nothing


@pytest.mark.parametrize("approach", ro.approaches())
def test_every_approach_can_be_fitted(approach: str) -> None:
    clf = classifier(approach=approach, learning_rate=0.03, epochs=3).fit(X, SETS)
    assert np.isfinite(clf.predict_proba(X)).all()
    assert clf.record_["approach"] == approach


def test_float64_is_kept() -> None:
    clf = classifier(precision="float64").fit(X, SETS)
    assert next(clf.module_.parameters()).dtype is torch.float64


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    classifier(verbose=1, grid={"learning_rate": [0.1, 0.01]}).fit(X, SETS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "searching 2 configurations: epoch 1 of 5"
    assert lines[-1] == "training the choice on all rows: epoch 5 of 5"


def test_weights_count_for_the_engine() -> None:
    weight = np.linspace(0.5, 2, 300)
    clf = classifier().fit(X, SETS, sample_weight=weight)
    engine = fit_grid(X, [Trial(SETS, weight=weight)], grid={"learning_rate": 0.1}, epochs=5)
    wanted = engine.module().double()(torch.from_numpy(X).double()).detach()
    assert_allclose(clf.decision_function(X), wanted, atol=1e-12)


def test_a_group_is_held_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    groups, seen = np.arange(300) // 7, []
    import ruleout.selection as selection

    def noting(*given: Any, **told: Any) -> Any:
        seen.append(split(*given, **told))
        return seen[-1]

    split = selection.split
    monkeypatch.setattr(selection, "split", noting)
    weight = np.ones(300)
    weight[::3] = 0  # such rows are left out, and their groups with them
    clf = classifier(grid=GRID, epochs=1, validation_fraction=0.1)
    clf.fit(X, SETS, weight, groups=groups)
    ((kept, aside),) = seen
    left = groups[weight > 0]
    assert len(kept) + len(aside) == 200
    assert not {*left[kept]} & {*left[aside]}


def test_groups_are_one_per_row() -> None:
    with pytest.raises(ValueError, match=r"groups has shape \(2,\); give 300, one for each row"):
        classifier(grid=GRID).fit(X, SETS, groups=[1, 2])
