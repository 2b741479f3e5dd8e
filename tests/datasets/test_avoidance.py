"""Sets that avoid what looks plausible: the bounds are exact, the level holds, it is noticed."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tiers import COUNT

import ruleout as ro
from ruleout.datasets import Findings, inspect
from ruleout.datasets.data_checks import Inspection, avoidance, by_rank, by_size

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
        "tested here, and that none is wrong, which only true labels can show: each 1 % of wrong "
        "sets takes up to 4.0 points off."
    )
    four = ro.draw(np.arange(300) % 5, 5, law=4, seed=0)
    both = ro.LabelSets(np.concatenate([single.excluded, four.excluded]))  # 4 and 1, rows alike
    assert "takes up to 2.5 points off" in inspect(both).assumption().message
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


# ---------------------------------------------------------------------- predictions by size


def test_predictions_by_size_are_those_of_every_sum_written_out() -> None:
    """Three sets rule the prediction out: all ways in which they can be of sizes 1 to 3."""
    rows, out = np.array([0, 10, 20, 5]), np.array([0, 2, 1, 0])
    chance = rows * np.arange(4) / (rows * np.arange(4)).sum()
    ways = {sizes: np.prod(chance[[*sizes]]) for sizes in product(range(1, 4), repeat=3)}
    least = sum(p for sizes, p in ways.items() if sum(sizes) <= 4)
    found = by_size(np.array([rows, out], float))
    assert found is not None
    assert found[0] == pytest.approx(2 * least)
    assert found[1] == pytest.approx(4 / (3 * chance @ np.arange(4)) - 1)
    assert by_size(np.array([rows, 0 * out], float)) is None
    assert by_size(np.array([[0, 0, 9, 0], [0, 0, 2, 0]], float)) is None  # all of one size


@pytest.mark.parametrize("wrong", [0.05, 0.5])
def test_many_sums_are_as_few(wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([0, 300, 500, 400, 200], float)
    counts = np.array([rows, np.round(rows * np.arange(5) / 4 * wrong)])
    counts[1, 1] += 12
    exact = by_size(counts)
    monkeypatch.setattr("ruleout.datasets.data_checks._SUMS", 1)
    assert by_size(counts) == pytest.approx(exact, rel=0.3)


@pytest.mark.parametrize("wrong", [0.05, 0.3, 0.9])
def test_predictions_by_size_hold_their_level(wrong: float) -> None:
    """Whatever share of the predictions is wrong; at most, since many are ruled out."""
    random, rejected = np.random.default_rng(0), 0
    sizes = random.integers(1, 10, size=600)
    for _ in range(1000):
        out = sizes[random.random(600) < wrong * sizes / 9]
        counts = [np.bincount(one, minlength=10) for one in (sizes, out)]
        found = by_size(np.array(counts, float))
        rejected += found is not None and found[0] < 0.05
    assert rejected <= 50 + 25


def sized(x: Any, y: Any, rng: Any, wrong: float, hard: bool) -> Any:
    """Sets of 1 to 9 classes; a share is wrong, or what is far from its middle has small ones."""
    middle = np.stack([x[y == c].mean(0) for c in range(10)])
    far = np.linalg.norm(x - middle[y], axis=1)
    noise = {"noise": wrong}
    if not hard:
        return ro.draw(y, 10, np.full(9, 1 / 9), rng, **noise)
    small, large = ro.draw(y, 10, 2, rng), ro.draw(y, 10, 7, rng)
    picked = (far > np.median(far))[:, None]
    return ro.LabelSets(np.where(picked, small.excluded, large.excluded), 10)


@pytest.mark.parametrize(("wrong", "hard"), [(0.2, False), (0.0, True)])
def test_check_notices_wrong_sets_and_small_ones_of_hard_rows(wrong: float, hard: bool) -> None:
    rng = np.random.default_rng(1)
    x, y, _ = points(4000, 10, rng)
    found = inspect(sized(x, y, rng, wrong, hard), x)
    assert found["predictions by size"].level == "warning"
    assert "some sets are wrong, or rows that are hard have small" in (
        found["predictions by size"].message
    )
    assert found.assumption().numbers["why"] == ["predictions by size"]
    assert found.assumption(mistakes=True).level == "fine"
    good = inspect(sized(x, y, rng, 0.0, False), x)
    assert good["predictions by size"].level == "fine"


# ---------------------------------------------------------------------- true labels of some rows


def test_true_labels_of_some_rows_reject_or_say_how_many_may_be_wrong() -> None:
    y = np.arange(300) % 5
    sets = ro.draw(y, 5, seed=0)
    truth = np.where(np.arange(300) < 10, y, -1)
    found = Inspection(sets.classes).add(sets, truth=truth).findings().assumption()
    assert (
        "none is wrong, as in 10 rows of known class (up to 28 % may be): each 1 %" in found.message
    )
    mask = sets.excluded
    mask[3] = np.arange(5) == y[3]
    wrong = Inspection(sets.classes).add(ro.LabelSets(mask), truth=truth).findings()
    assert wrong["true class"].message == "1 of 10 rows (10.0 %) rule out their true class: row 3."
    assert wrong.assumption().level == "warning"


def test_equal_rows_that_contradict_each_other_stand_beside_an_accuracy() -> None:
    y, rng = np.arange(600) % 4, np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(300, 3)), 2, 0)
    found = inspect(ro.draw(np.repeat(y[:300], 2), 4, 3, rng, noise=0.2), x)
    assert "though equal rows contradict each other" in found.assumption().message
    assert "contradict" not in found.assumption(mistakes=True).message
