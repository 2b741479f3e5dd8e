"""Sets that avoid what looks plausible: the bounds are exact, the level holds, it is noticed."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import COUNT

import ruleout as ro
from ruleout.datasets import Findings, inspect
from ruleout.datasets.data_checks import avoidance, by_rank

Points = tuple[NDArray[np.float32], NDArray[np.intp], NDArray[Any]]


def points(n: int, k: int, rng: np.random.Generator, apart: float = 0.7) -> Points:
    """Points around a centre for each class; with how near each centre is."""
    centres = apart * rng.normal(size=(k, 20))
    y = rng.integers(k, size=n)
    x = centres[y] + rng.normal(size=(n, 20))
    return x.astype(np.float32), y, -((x[:, None] - centres) ** 2).sum(2)


def avoiding(
    y: NDArray[np.intp], near: NDArray[Any], law: int | None, factor: float, rng: Any
) -> NDArray[np.bool_]:
    """Rule out at random, the two wrong classes that are nearest only `factor` times as often."""
    (n, k), every = near.shape, np.arange(len(y))
    wrong = near.copy()
    wrong[every, y] = -np.inf
    weight = np.ones((n, k))
    np.put_along_axis(weight, np.argsort(-wrong, 1)[:, :2], factor, 1)
    clock = rng.exponential(size=(n, k)) / weight
    clock[every, y] = np.inf
    sizes = rng.integers(1, k, size=n) if law is None else np.full(n, law)
    return np.asarray(clock.argsort(1).argsort(1) < sizes[:, None])


@pytest.mark.parametrize("k", [4, 6])
def test_for_every_truth_the_moments_are_what_the_tests_assume(k: int) -> None:
    """Enumerate every set: ranks at most as for the first, pairs zero."""
    for s in range(1, k):
        allowed = s * k / 2
        for truth in range(k):
            sets = [a for a in combinations(range(k), s) if truth not in a]
            sums = np.array([sum(a) for a in sets], float)
            assert sums.mean() <= allowed + 1e-12
            if truth == 0:
                assert sums.mean() == pytest.approx(allowed)
                assert sums.var() == pytest.approx(s * (k - 1 - s) * k / 12)
            total = 0.0  # the residual of all sets, by plain loops
            t, c = (s - 1) / (k - 2), s * (s - 1) / ((k - 1) * (k - 2))
            for one in sets:
                for a, b in combinations(range(k), 2):
                    d = (a in one and b in one) - t * ((a in one) + (b in one)) + c
                    total += d / ((1 + a) * (1 + b))
            assert total == pytest.approx(0, abs=1e-9)


def test_the_statistics_are_those_of_plain_loops() -> None:
    rng = np.random.default_rng(0)
    listed = np.array([rng.permutation(6) < s for s in rng.integers(1, 6, size=50)])
    found, k = avoidance(listed), 6
    excess = spread = pairs = square = 0.0
    for row in listed:
        s = int(row.sum())
        t, c = (s - 1) / (k - 2), s * (s - 1) / ((k - 1) * (k - 2))
        excess += sum(place for place in range(k) if row[place]) - s * k / 2
        spread += s * (k - 1 - s) * k / 12
        d = 0.0
        for a, b in combinations(range(k), 2):
            both = float(row[a] and row[b]) - t * (float(row[a]) + float(row[b])) + c
            d += both / ((1 + a) * (1 + b))
        pairs, square = pairs + d, square + d**2
    assert found is not None
    assert found.ranks == pytest.approx(excess / np.sqrt(spread))
    assert found.pairs == pytest.approx(pairs / np.sqrt(square))


def test_no_row_is_ranked_by_a_model_that_knows_its_set() -> None:
    """Another set in the last part moves no other row."""
    rng = np.random.default_rng(0)
    x, y, near = points(80, 4, rng)
    mask = avoiding(y, near, 1, 1.0, rng)
    last = np.random.default_rng(0).permutation(80)[-1]
    other = mask.copy()
    other[last] = np.roll(mask[last], 1)
    before, after = by_rank(x, mask, mask), by_rank(x, other, other)
    assert before is not None
    assert after is not None
    assert (before[:-1] == after[:-1]).all()


def share_of_rejections(
    level: float, turns: int, n: int, law: int | None, factor: float, useful: bool = True
) -> float:
    found = []
    for turn in range(turns):
        rng = np.random.default_rng(turn)
        x, y, near = points(n, 10, rng)
        mask = avoiding(y, near, law, factor, rng)
        listed = by_rank(x if useful else rng.normal(size=x.shape).astype(np.float32), mask, mask)
        assert listed is not None
        seen = avoidance(listed)
        assert seen is not None
        found.append(seen.p < level)
    return float(np.mean(found))


@pytest.mark.parametrize("useful", [True, False])
def test_the_level_holds_for_good_and_bad_models(useful: bool) -> None:
    assert share_of_rejections(0.05, 60, 200, None, 1.0, useful) <= 0.05 + 0.09


@pytest.mark.slow
@pytest.mark.parametrize("law", [1, 3, None])
@pytest.mark.parametrize("useful", [True, False])
def test_the_level_holds_in_many_turns(law: int | None, useful: bool) -> None:
    turns = int(400 * COUNT)
    bound = 0.05 + 3 * np.sqrt(0.05 * 0.95 / turns)
    assert share_of_rejections(0.05, turns, 200, law, 1.0, useful) <= bound


def test_mild_avoidance_is_noticed() -> None:
    """Half as often, a thousand rows: nine of ten; sets alone show it much less often."""
    assert share_of_rejections(1e-3, 10, 1000, None, 0.5) >= 0.9


def test_check_says_that_plausible_classes_are_avoided() -> None:
    rng = np.random.default_rng(0)
    x, y, near = points(1500, 10, rng)
    found = inspect(ro.LabelSets(avoiding(y, near, 2, 0.3, rng)), x)
    assert found["plausible classes"].level == "warning"
    assert "people avoid ruling it out" in found["plausible classes"].message
    assert found.assumption().level == "warning"
    assert "plausible classes" in found.assumption().message
    good = inspect(ro.LabelSets(avoiding(y, near, 2, 1.0, rng)), x)
    assert good["plausible classes"].level == "fine"
    assert good.assumption().level == "fine"


def test_an_assumption_that_nothing_tests_is_called_untested() -> None:
    single = ro.draw(np.arange(300) % 5, 5, law=1, seed=0)
    found = inspect(single).assumption()
    assert found.level == "note"
    assert found.message == (
        "An accuracy estimated from sets assumes that they are drawn at random, which cannot be "
        "tested here, and that none is wrong, which only true labels can show."
    )
    assert Findings(()).assumption().level == "note"


def test_true_labels_reject_sets_that_are_wrong() -> None:
    y = np.arange(300) % 5
    mask = ro.draw(y, 5, seed=0).excluded
    mask[0], mask[0, y[0]] = False, True
    found = inspect(ro.LabelSets(mask), labels=y).assumption()
    assert found.level == "warning"
    assert found.numbers["why"] == ["true class"]
    expecting = inspect(ro.LabelSets(mask), labels=y).assumption(mistakes=True)
    assert expecting.level == "fine"
    assert "and that as many are wrong as the error rates say." in expecting.message


def test_copies_of_rows_tell_nothing_more() -> None:
    rng = np.random.default_rng(0)
    x, y, near = points(300, 6, rng)
    mask = avoiding(y, near, 2, 1.0, rng)
    once, often = (
        inspect(ro.LabelSets(mask), x),
        inspect(ro.LabelSets(np.tile(mask, (9, 1))), np.tile(x, (9, 1))),
    )
    assert once["plausible classes"] == often["plausible classes"]


def test_wrong_sets_are_not_taken_for_avoidance() -> None:
    """A tenth of the rows rule out the truth in place of another class."""
    found = []
    for turn in range(40):
        rng = np.random.default_rng(turn)
        x, y, _ = points(300, 10, rng)
        sets = ro.draw(y, 10, 3, rng, noise=0.1)
        listed = by_rank(x, sets.excluded, sets.excluded)
        assert listed is not None
        seen = avoidance(listed)
        assert seen is not None
        found.append(seen.p < 0.05)
    assert np.mean(found) <= 0.05 + 0.1
