"""Paired tests against SciPy, plain loops, and chance itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from ruleout.comparison.significance import (
    crossed_t_test,
    holm,
    mark,
    mean_and_error,
    paired_t_test,
)
from ruleout.labels.errors import InputError


@pytest.mark.parametrize("n", [2, 3, 5, 40, 1000])
def test_paired_t_test_is_scipys(n: int) -> None:
    random = np.random.default_rng(n)
    for gap in (0.0, 0.01, 0.5):
        ours = random.normal(0.9, 0.1, n)
        theirs = ours - gap + random.normal(0, 0.05, n)
        expected = stats.ttest_rel(ours, theirs).pvalue
        assert paired_t_test(ours, theirs) == pytest.approx(expected, rel=1e-9, abs=1e-300)


def loop(ours: list[float], theirs: list[float]) -> float:
    """The t statistic in plain loops, its tail by Simpson's rule over the density."""
    gaps = [a - b for a, b in zip(ours, theirs, strict=True)]
    n, mean = len(gaps), sum(gaps) / len(gaps)
    variance = sum((gap - mean) ** 2 for gap in gaps) / (n - 1)
    t, df = abs(mean) / math.sqrt(variance / n), n - 1
    scale = math.gamma((df + 1) / 2) / (math.sqrt(df * math.pi) * math.gamma(df / 2))
    steps = 20_000
    inner = 0.0
    for i in range(steps + 1):
        weight = 1 if i in (0, steps) else 4 if i % 2 else 2
        inner += weight * scale * (1 + (t * i / steps) ** 2 / df) ** (-(df + 1) / 2)
    return 1 - 2 * inner * t / steps / 3


def test_paired_t_test_is_the_plain_loop() -> None:
    ours, theirs = [0.91, 0.93, 0.92, 0.95, 0.90], [0.88, 0.94, 0.90, 0.91, 0.89]
    assert paired_t_test(ours, theirs) == pytest.approx(loop(ours, theirs), abs=1e-9)


def test_it_is_two_sided() -> None:
    ours, theirs = [0.9, 0.8, 0.85], [0.7, 0.75, 0.6]
    assert paired_t_test(ours, theirs) == paired_t_test(theirs, ours)


@pytest.mark.parametrize(
    ("ours", "theirs", "p"),
    [
        ([0.7, 0.7, 0.7], [0.7, 0.7, 0.7], 1.0),
        ([0.1 + 0.2, 0.3], [0.3, 0.3], 1.0),  # rounding is no difference
        ([0.9, 0.8, 0.7], [0.8, 0.7, 0.6], 0.0),  # the same gap each time, rounded differently
        ([1.0, 1.0], [0.0, 0.0], 0.0),
    ],
)
def test_without_variance_there_is_nothing_to_chance(
    ours: list[float], theirs: list[float], p: float
) -> None:
    """No warning either: the suite turns warnings into errors."""
    assert paired_t_test(ours, theirs) == p


@pytest.mark.parametrize("bad", [[], [0.5], [0.5, np.nan], [np.inf, 0.5]])
def test_without_two_finite_pairs_there_is_no_test(bad: list[float]) -> None:
    assert np.isnan(paired_t_test(bad, [0.1] * len(bad)))


def test_unpaired_scores_are_refused() -> None:
    with pytest.raises(InputError, match=r"shapes \(3,\) and \(2,\); give pairs"):
        paired_t_test([1, 2, 3], [1, 2])


def test_a_true_null_is_marked_one_time_in_twenty() -> None:
    """20,000 tables of 3 trials without any difference: 5 % of marks, give or take 3 errors."""
    random, count = np.random.default_rng(0), 20_000
    scores = random.normal(0.9, 0.02, (count, 1, 3)) + random.normal(0, 0.01, (count, 2, 3))
    marked = sum(bool(mark(0.9, 0.8, paired_t_test(a, b))) for a, b in scores)
    assert abs(marked / count - 0.05) < 3 * math.sqrt(0.05 * 0.95 / count)


def crossed_loop(d: list[list[float]], shared: bool) -> float:
    """The p-value over trials and rows, in plain loops up to the tail."""
    z, gap, own, count = [], 0.0, 0.0, len(d)
    for one in d:
        said = [v for v in one if not math.isnan(v)]
        squares = sum(v * v for v in said)
        if squares > 0:
            z.append(sum(said) / math.sqrt(squares))
            gap += sum(said) / len(said)
            own += squares / len(said) ** 2
    mean = sum(z) / len(z)
    own *= max(sum((v - mean) ** 2 for v in z) / (len(z) - 1), 0.25)
    more = 0.0
    if shared:
        m = len(d[0])
        grand = sum(sum(one) for one in d) / count / m
        of_trial = [sum(one) / m for one in d]
        of_row = [sum(one[i] for one in d) / count for i in range(m)]
        left = 0.0
        for t in range(count):
            for i in range(m):
                left += (d[t][i] - of_trial[t] - of_row[i] + grand) ** 2 / (count - 1) / (m - 1)
        rows = count * sum((v - grand) ** 2 for v in of_row) / (m - 1)
        more = count / m * max(rows - left, 0)
    freedom = (len(z) - 1) * ((own + more) / own) ** 2
    return float(2 * stats.t.sf(abs(gap) / math.sqrt(own + more), freedom))


@pytest.mark.parametrize("shared", [True, False])
def test_crossed_t_test_is_the_plain_loop(shared: bool) -> None:
    random = np.random.default_rng(4)
    for trials, rows, wide in ((3, 4, 1.0), (5, 30, 0.0), (4, 9, 3.0)):
        d = random.normal(0.2, 1, (trials, rows)) + wide * random.normal(size=rows)
        d[1] = 0  # a trial that does not differ
        if not shared:
            d[0, 0], d[2, 1:] = np.nan, np.nan
        expected = crossed_loop(d.tolist(), shared)
        found = crossed_t_test(d, np.zeros_like(d), shared=shared)
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("row", "left"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.3)])
@pytest.mark.parametrize(("count", "trial"), [(3, 0.0), (5, 0.0), (5, 0.2), (10, 0.1)])
def test_a_true_null_over_trials_and_rows_is_marked_one_time_in_twenty(
    count: int, trial: float, row: float, left: float
) -> None:
    """Whatever varies: trials, rows, or each of both by itself."""
    random, tables = np.random.default_rng(5), 1500
    d = trial * random.normal(size=(tables, count, 1)) + row * random.normal(size=(tables, 1, 40))
    d += left * random.normal(size=(tables, count, 40))
    marked = np.mean([crossed_t_test(one, np.zeros_like(one)) < 0.05 for one in d])
    assert (0.01 if count == 3 else 0.03) < marked < 0.075  # three trials say little


@pytest.mark.parametrize(
    ("d", "p"),
    [
        (np.zeros((3, 4)), 1.0),
        (np.ones((2, 4)), np.nan),  # two trials are too few
        (np.ones((3, 1)), np.nan),
        (np.full((3, 4), np.nan), np.nan),
    ],
)
def test_without_variance_or_rows_there_is_nothing_to_test(d: Any, p: float) -> None:
    np.testing.assert_equal(crossed_t_test(d, np.zeros_like(d)), p)


def test_trials_that_are_equal_by_chance_are_no_proof() -> None:
    """Each of three trials is right on one more row of twenty: equal gains, but p is not 0."""
    d = np.zeros((3, 20))
    d[[0, 1, 2], [3, 8, 11]] = 1
    assert paired_t_test(d.mean(1), np.zeros(3)) == 0
    assert crossed_t_test(d, np.zeros_like(d)) > 1e-4


@pytest.mark.parametrize("count", [5, 10])
def test_a_null_over_unequal_folds_is_marked_one_time_in_twenty(count: int) -> None:
    """In some folds both chose alike and few rows differ: the t-test over trials marks too little.

    A fold that differs does so in its mean, too, as models do that were trained again.
    """
    random, tables, rows = np.random.default_rng(7), 2000, 60
    share = random.choice([0.02, 0.05, 0.5], size=(tables, count, 1))
    lean = np.clip(0.5 + 0.15 * random.normal(size=(tables, count, 1)), 0, 1)
    sign = np.where(random.random((tables, count, rows)) < lean, 1, -1)
    d = sign * (random.random((tables, count, rows)) < share)
    nil = np.zeros((count, rows))
    found = [crossed_t_test(one, nil, shared=False) < 0.05 for one in d]
    assert 0.03 < np.mean(found) < 0.08
    plain = [paired_t_test(one.mean(1), np.zeros(count)) < 0.05 for one in d]
    assert np.mean(plain) < (0.03 if count == 5 else 0.045)


def test_holm_marks_one_table_in_twenty() -> None:
    """17 comparisons without any difference: raw marks err in most tables, Holm's in 5 %."""
    random, count = np.random.default_rng(1), 2_000
    p = random.uniform(size=(count, 17))
    raw = (p < 0.05).any(1).mean()
    corrected = np.mean([(holm(row) < 0.05).any() for row in p])
    assert raw > 0.5
    assert abs(corrected - 0.05) < 3 * math.sqrt(0.05 * 0.95 / count)


def test_holm_is_the_plain_loop() -> None:
    random = np.random.default_rng(2)
    for m in (1, 2, 7, 18):
        p = random.uniform(size=m) ** 3
        largest, expected = 0.0, np.empty(m)
        for rank, place in enumerate(sorted(range(m), key=lambda i: p[i])):
            largest = max(largest, min(1.0, (m - rank) * p[place]))
            expected[place] = largest
        np.testing.assert_allclose(holm(p), expected, rtol=1e-12)


def test_holm_skips_what_was_not_tested() -> None:
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    assert holm([]).shape == (0,)


def test_marks_point_the_right_way() -> None:
    assert mark(0.9, 0.8, 0.049) == "•"
    assert mark(0.8, 0.9, 0.049) == "○"
    assert mark(0.9, 0.8, 0.05) == mark(0.9, 0.8, np.nan) == mark(0.9, 0.9, 0.0) == ""


def test_standard_error_is_scipys() -> None:
    values = np.random.default_rng(3).normal(size=30)
    mean, error = mean_and_error(values)
    assert mean == pytest.approx(values.mean())
    assert error == pytest.approx(stats.sem(values))
    assert np.isnan(mean_and_error([0.5])[1])
