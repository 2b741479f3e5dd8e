"""What belongs together: equal rows and rows of one group, and errors that are those of groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

import ruleout as ro
from ruleout.estimator import RuleOutClassifier
from ruleout.selection import search
from ruleout.training import Trial, Watch, fit_grid
from ruleout.training.validation import together
from ruleout.training.watches import by_group


def connected(x: Any, groups: Any = None) -> list[int]:
    """Number what is connected, by plain loops: the smallest row of each."""
    names, n = list(range(len(x))), len(x)
    for _ in range(n):
        for a in range(n):
            for b in range(n):
                same = (x[a] == x[b]).all() or (groups is not None and groups[a] == groups[b])
                if same and names[b] < names[a]:
                    names[a] = names[b]
    return names


def array_equal(one: Any, other: Any) -> bool:
    return (one is None) == (other is None) and np.array_equal(one, other)


def partition(numbers: Any) -> set[tuple[int, ...]]:
    return {tuple(np.flatnonzero(np.asarray(numbers) == one).tolist()) for one in {*numbers}}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("grouped", [False, True])
def test_a_group_is_whatever_is_connected(seed: int, grouped: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (40, 3)).astype(np.float32)
    groups = rng.integers(0, 30, 40) if grouped else None
    found = together(x, groups)
    assert partition(found) == partition(connected(x, groups))
    for other in (x.astype(np.float64), csr_matrix(x), x.reshape(40, 3, 1), x.astype(np.int8)):
        assert array_equal(together(other, groups), found)
    rows = rng.permutation(40)[:30]
    own = None if groups is None else groups[rows]
    assert array_equal(together(x, own, rows), together(x[rows], own))


def test_rows_that_differ_in_the_last_digit_stand_alone() -> None:
    x = np.random.default_rng(0).random((50, 4))
    twin = np.concatenate([x, np.nextafter(x, 2)])
    assert together(twin) is None
    assert together(csr_matrix(twin)) is None
    assert partition(together(twin, np.arange(100) % 50)) == {(row, row + 50) for row in range(50)}


def test_zero_is_zero_whatever_its_sign() -> None:
    x = np.random.default_rng(0).integers(0, 2, (64, 6)).astype(np.float32)
    assert array_equal(together(np.where(np.arange(64)[:, None] % 2, -x, x) * 0 + x), together(x))
    signed = np.where((x == 0) & (np.arange(64)[:, None] % 2 == 1), np.float32(-0.0), x)
    assert array_equal(together(signed), together(x))


def test_a_few_values_are_no_repeats() -> None:
    x = np.repeat(np.eye(9, dtype=np.float32), 20, axis=0)
    assert together(x) is None
    assert partition(together(x, np.arange(180) // 90)) == {tuple(range(90)), tuple(range(90, 180))}


def cluster_error(values: Any, says: Any, groups: Any) -> tuple[float, float]:
    """Return the mean and its standard error over groups, by plain loops."""
    kept = [i for i in range(len(values)) if says[i]]
    mean = sum(values[i] for i in kept) / len(kept)
    sums: dict[Any, float] = {}
    for i in kept:
        sums[groups[i]] = sums.get(groups[i], 0.0) + values[i] - mean
    many = len(sums)
    spread = sum(one**2 for one in sums.values()) * many / (many - 1)
    return mean, float(np.sqrt(spread)) / len(kept)


def test_one_value_per_group_has_the_mean_and_the_error_of_groups() -> None:
    rng = np.random.default_rng(1)
    values, says = rng.normal(size=60), rng.random(60) < 0.8
    for groups in (rng.integers(0, 12, 60), rng.permutation(60)):
        every = (torch.from_numpy(one) for one in (values, says.astype(float), groups))
        found, counts = by_group(*every)
        each = found[counts > 0].numpy()
        mean, error = cluster_error(values, says, groups)
        assert each.mean() == pytest.approx(mean)
        assert each.std(ddof=1) / np.sqrt(len(each)) == pytest.approx(error)


def made(n: int, times: int, seed: int) -> tuple[Any, Any, ro.LabelSets]:
    """Return n items of ten classes that no feature tells, each as so many rows, with sets."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, 200)).astype(np.float32), rng.integers(0, 10, n)
    rows = np.repeat(np.arange(n), times)
    return x[rows], y[rows], ro.draw(y[rows], classes=10, law=5, seed=seed)


def test_a_watch_takes_errors_over_groups() -> None:
    x, _, sets = made(40, 3, 0)
    rng, judge = np.random.default_rng(0), ro.criterion("accuracy")
    groups = [rng.integers(0, 30, 120), np.arange(120) // 3]
    watch = Watch(sets, {"accuracy": judge.values}, groups=groups)
    told: dict[str, Any] = {"grid": {"learning_rate": [0.1, 1e-3]}, "epochs": 2}
    fit = fit_grid(x, [sets, sets], watch={"all": watch}, **told)
    for trial in range(2):
        for model in range(2):
            logits = fit.logits(x)[trial, model]
            mean, error = judge(logits, sets.excluded, groups=groups[trial])
            values, says = judge.rows(logits, sets.excluded)
            own = cluster_error(values.numpy(), says.numpy(), groups[trial])
            assert (float(mean), float(error)) == pytest.approx(own, rel=1e-5)
            assert fit.history["all/accuracy"][trial, model, -1] == pytest.approx(own[0], rel=1e-5)
            assert fit.errors["all/accuracy"][trial, model, -1] == pytest.approx(own[1], rel=1e-5)


def test_equal_rows_do_not_both_train_and_choose() -> None:
    """Nothing can be learnt here, so whatever is said above chance was seen before."""
    x, _, sets = made(120, 6, 0)
    told: dict[str, Any] = {"grid": {"learning_rate": [0.1]}, "epochs": 30, "share": 0.3}
    alone = search(x, [Trial(sets)], **told)  # a trial says itself what belongs together
    found = search(x, sets, **told)
    assert alone.estimate[0] > 0.5
    assert abs(found.estimate[0] - 0.1) < 3 * found.estimate[1]
    clf = RuleOutClassifier(
        grid=told["grid"], epochs=30, validation_fraction=0.3, random_state=0
    ).fit(x, sets)
    _, _, _, low, high = clf.criterion_
    assert low is not None
    assert high is not None
    assert low <= 0.1 <= high < 0.4


def test_an_estimate_is_as_unsure_as_its_groups() -> None:
    """Of forty draws the estimates scatter as the errors over groups say, not those of rows."""
    judge, found = ro.criterion("accuracy"), []
    for seed in range(40):
        x, _, sets = made(100, 8, seed)
        logits = torch.from_numpy(x[:, :10])
        by_groups = judge(logits, sets.excluded, groups=np.arange(800) // 8)
        found.append(
            [float(by_groups[0]), float(by_groups[1]), float(judge(logits, sets.excluded)[1])]
        )
    scatter = np.std([one[0] for one in found], ddof=1)
    _, grouped, rows = np.mean(found, 0)
    assert 0.75 < grouped / scatter < 1.3
    assert rows < grouped
