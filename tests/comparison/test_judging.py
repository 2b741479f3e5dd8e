# ruff: noqa: E501  # the sentences stand as users read them
"""No row does more than one of: training, choosing, judging."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from comparison.made import digits
from torch import nn

import ruleout as ro
from ruleout.comparison.judging import Judging, plan
from ruleout.labels.errors import InputError
from ruleout.training import Trial, fit_grid


def planned(x: Any, sets: Any, **told: Any) -> Judging:
    asked = {"trials": None, "test": None, "judge": 0.2, "seed": 0} | told
    return plan(x, sets, score=ro.criterion("accuracy"), **asked)


@pytest.fixture(scope="module")
def sets() -> ro.LabelSets:
    return ro.draw(digits()[1], classes=10, seed=0)


def test_rows_kept_back_train_no_trial(sets: ro.LabelSets) -> None:
    found = planned(digits()[0], sets, trials=4)
    assert found.rows.shape == (4, 200)
    assert found.count == 200
    for rows, trial in zip(found.rows, found.trials, strict=True):
        assert trial.rows is not None
        assert sorted([*rows, *trial.rows]) == list(range(1000))
        assert trial.sets == sets[trial.rows]
    assert (found.rows == found.rows[0]).all()


def test_folds_judge_every_row_once(sets: ro.LabelSets) -> None:
    found = planned(digits()[0], sets, trials=3, judge="folds")
    assert found.count == 999  # equal parts
    assert len(np.unique(found.rows)) == 999
    for rows, trial, target in zip(found.rows, found.trials, found.targets, strict=True):
        assert trial.rows is not None
        assert not set(rows) & set(trial.rows)
        assert target == sets[rows]


def test_few_rows_judge_in_folds_unless_trials_are_few(sets: ro.LabelSets) -> None:
    """A fifth of few rows says too little, and two folds train on half of them."""
    x = digits()[0]
    kinds = [planned(x, sets, trials=count, judge=None).kind for count in (3, 4, 5)]
    assert kinds == ["kept", "folds", "folds"]
    many = np.concatenate([x, x, x, x, x, x + 1])
    told = sets[np.tile(np.arange(1000), 6)]
    assert planned(many, told, judge=None).kind == "kept"
    few = np.arange(1000) % 9  # groups
    assert planned(x, sets, judge=None, groups=few).kind == "kept"
    assert planned(x, sets, judge=None, groups=np.arange(1000) % 10).kind == "folds"


def test_trials_differ_in_their_seed(sets: ro.LabelSets) -> None:
    assert [trial.seed for trial in planned(digits()[0], sets, seed=5).trials] == [5, 6, 7, 8, 9]


def test_test_rows_leave_all_others_to_train(sets: ro.LabelSets) -> None:
    x, _, x_test, y_test = digits()
    found = planned(x, [sets, sets], test=(x_test, y_test))
    assert [trial.rows for trial in found.trials] == [None, None]
    assert (found.kind, found.count) == ("labels", len(y_test))


def test_test_labels_are_class_names() -> None:
    names = ["cat", "dog"]
    sets = ro.LabelSets([[1, 0], [0, 1]], names)
    found = planned(np.eye(2), sets, test=(np.eye(2), ["dog", "cat"]))
    assert found.targets[0].tolist() == [1, 0]
    with pytest.raises(InputError, match=r"unknown class 'dgo'; did you mean 'dog'\?"):
        planned(np.eye(2), sets, test=(np.eye(2), ["dgo", "cat"]))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        ({"judge": 0.0}, "judge must be a share between 0 and 1, or 'folds', not 0.0"),
        ({"judge": "fold"}, "judge must be a share between 0 and 1, or 'folds', not 'fold'"),
        ({"judge": "folds", "trials": 1}, "folds need at least two trials, each with rows, not 1"),
        (
            {"test": (np.zeros((3, 60)), [1, 2, 3])},
            "x_test has 60 features, x has 64; give the same features in the same order",
        ),
        ({"trials": 0}, "trials must be a whole number of at least 1, not 0"),
        ({"judge": 0.999}, "of 1,000 rows too few are left to train and choose; give more rows"),
        (
            {"test": (np.zeros((3, 64)), [1, 2])},
            "x_test has 3 rows but there are 2 test labels; give one for each row, at least one",
        ),
    ],
)
def test_what_cannot_be_planned_is_said(
    sets: ro.LabelSets, told: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ValueError) as error:
        planned(digits()[0], sets, **told)
    assert str(error.value) == sentence


def test_bad_sets_are_refused(sets: ro.LabelSets) -> None:
    x = digits()[0]
    with pytest.raises(InputError, match="x has 999 rows but the label sets have 1000"):
        planned(x[:999], sets)
    with pytest.raises(InputError, match="give LabelSets, or a list of them"):
        planned(x, sets.excluded)
    with pytest.raises(InputError, match=r"make them with ro\.LabelSets"):
        planned(x, [sets.excluded])
    with pytest.raises(ValueError, match="2 tables of sets make as many trials, not 3"):
        planned(x, [sets, sets], trials=3)
    with pytest.raises(InputError, match="give 1000, one for each row"):
        planned(x, [Trial(sets, weight=np.ones(3))])
    with pytest.raises(InputError, match="leave none to judge all of them on; give test rows"):
        planned(x, [Trial(sets[:500], np.arange(500))])


class Fixed(nn.Module):
    """Logits that are the features."""

    def __init__(self) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


def test_standard_errors_cover_the_true_accuracy() -> None:
    """400 samples of rows and sets: ± 1.96 errors around the estimate hold the truth in 95 %."""
    random, trials, rows, held = np.random.default_rng(0), 2, 300, 0
    y = random.integers(10, size=40_000)
    logits = random.normal(size=(len(y), 10)) + 2.5 * np.eye(10)[y]
    truth = float((logits.argmax(1) == y).mean())
    fit = fit_grid(
        logits[:20], ro.draw(y[:20], classes=10, seed=0), model=lambda *_: Fixed(), epochs=1,
        grid={"learning_rate": 0.0, "weight_decay": 0.0},
    )  # fmt: skip
    for sample in range(400):
        pick = random.integers(len(y), size=rows)
        sets = ro.draw(y[pick], classes=10, seed=sample)
        judging = Judging(
            "sets", [Trial(sets)] * trials, logits[pick], np.tile(np.arange(rows), (trials, 1)),
            [sets] * trials, "accuracy", ro.criterion("accuracy").values,
        )  # fmt: skip
        twice = type("Twice", (), {"module": lambda _, __: fit.module(0)})()
        _, values, _ = judging.per_row(twice)
        error = values.std(ddof=1) / np.sqrt(rows)
        held += abs(values.mean() - truth) < 1.96 * error
    assert abs(held / 400 - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 400)


def test_rows_that_rule_nothing_out_do_not_judge() -> None:
    mask = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0]])
    sets = ro.LabelSets(mask, unlabelled=True)
    judging = Judging(
        "sets", [Trial(sets)], np.eye(3), np.arange(3)[None], [sets], "accuracy",
        ro.criterion("accuracy").values,
    )  # fmt: skip
    fit = fit_grid(np.eye(3), sets, epochs=1)
    means, values, cells = judging.per_row(fit)
    assert len(values) == 2
    assert np.isnan(cells).tolist() == [[False, True, False]]
    assert means[0] == pytest.approx(values.mean())


GROUPS = np.repeat(np.arange(50), np.arange(50))[:1000] % 23


@pytest.mark.parametrize("judge", [0.2, "folds"])
def test_no_group_trains_and_judges(sets: ro.LabelSets, judge: Any) -> None:
    found = planned(digits()[0], sets, trials=3, judge=judge, groups=GROUPS)
    for rows, trial, target in zip(found.rows, found.trials, found.targets, strict=True):
        assert trial.rows is not None
        assert not {*GROUPS[rows]} & {*GROUPS[trial.rows]}
        assert {*rows, *trial.rows} == set(range(1000))
        assert trial.groups is not None  # renumbered: the same rows are together
        assert len({*zip(trial.groups, GROUPS[trial.rows], strict=True)}) == len({*trial.groups})
        says = target.sizes > 0
        assert target[says] == sets[rows[says]]
    assert found.count == (1000 if judge == "folds" else len(found.rows[0]))


def test_a_comparison_takes_groups(sets: ro.LabelSets) -> None:
    told: dict[str, Any] = {"approaches": ["log", "mae"], "grid": None, "epochs": 1}
    table = ro.compare(digits()[0], Trial(sets), groups=GROUPS, judge="folds", trials=3, **told)
    assert table.method.rows == 1000
    assert len(table.best.values) == 23  # a test is one of groups
    assert table.best.values.mean() == pytest.approx(table.best.score)
    with pytest.raises(ValueError, match="folds need at least two trials, each with groups"):
        ro.compare(digits()[0], sets, groups=GROUPS > 9, judge="folds", trials=3, **told)


@pytest.mark.parametrize("judge", [0.2, "folds"])
def test_equal_rows_judge_together(sets: ro.LabelSets, judge: Any) -> None:
    """And what groups connect with them."""
    x = digits()[0][np.arange(1000) % 250]
    found = planned(x, sets, trials=3, judge=judge)
    for rows, trial in zip(found.rows, found.trials, strict=True):
        assert trial.rows is not None
        assert not {*(rows % 250)} & {*(trial.rows % 250)}
    mixed = planned(x, sets, trials=3, judge=judge, groups=np.arange(1000) // 2)
    for rows, trial in zip(mixed.rows, mixed.trials, strict=True):
        assert trial.rows is not None
        assert not {*(rows % 250 // 2)} & {*(trial.rows % 250 // 2)}


def test_test_rows_are_tested_as_groups(sets: ro.LabelSets) -> None:
    x = digits()[0]
    told: dict[str, Any] = {"approaches": ["log", "mae"], "grid": None, "epochs": 1}
    test = (x[np.arange(200) % 40], sets[:200])
    table = ro.compare(x, sets, trials=2, test=test, **told)
    assert len(table.best.values) == 40
    plain = ro.compare(x, sets, trials=2, test=(x[:200], sets[:200]), **told)
    assert len(plain.best.values) == 200


@pytest.mark.parametrize(
    ("groups", "told", "sentence"),
    [
        (
            np.arange(1000) % 2,
            {},
            "2 group(s) are too few to train, choose and judge; give at least three, or test rows",
        ),
        (
            np.zeros(1000),
            {},
            "1 group(s) are too few to train, choose and judge; give at least three, or test rows",
        ),
        (
            np.arange(1000) % 3,
            {"judge": 0.7},
            "the groups that judge leave only one to train and choose; give more groups, or let fewer rows judge",
        ),
        (
            np.arange(1000) % 2,
            {"judge": "folds", "trials": 2},
            "the groups that judge leave only one to train and choose; give more groups, or let fewer rows judge",
        ),
    ],
    ids=["two", "one", "many judge", "two folds"],
)
def test_groups_are_needed_to_train_to_choose_and_to_judge(
    sets: ro.LabelSets, groups: Any, told: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError) as error:
        planned(digits()[0], sets, groups=groups, **told)
    assert str(error.value) == sentence


def test_three_groups_are_enough(sets: ro.LabelSets) -> None:
    told: dict[str, Any] = {"approaches": ["log"], "grid": None, "epochs": 1, "trials": 1}
    table = ro.compare(digits()[0], sets, groups=np.arange(1000) % 3, **told)
    assert table.method.rows in (333, 334)
