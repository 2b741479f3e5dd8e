"""Size laws: their values, and that drawn sets follow them."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare
from tiers import COUNT

import ruleout as ro
from ruleout.labels import kept_law, size_law, wrong_class_rate
from ruleout.theory import every_set

LEVEL = 1e-3  # the seeds are fixed: a p-value below this would be a defect


@pytest.mark.parametrize("k", [2, 3, 5, 10, 20])
def test_named_laws_are_the_formulas(k: int) -> None:
    s = range(1, k)
    paper = [comb(k - 1, j) / (2 ** (k - 1) - 1) for j in s]
    released = [comb(k, j) / (2**k - 2) for j in s]
    assert size_law("paper", k).tolist() == paper
    assert size_law("released", k).tolist() == released


def test_mean_sizes_at_ten_classes() -> None:
    s = np.arange(1, 10)
    assert size_law("paper", 10) @ s == pytest.approx(4.5088, abs=1e-4)
    assert size_law("released", 10) @ s == pytest.approx(5)


@pytest.mark.parametrize("law", ["paper", "released", 1, "fixed:1"])
@pytest.mark.parametrize("k", [2, 10, 1000, 3000])
def test_laws_sum_to_one(law: str | int, k: int) -> None:
    p = size_law(law, k)
    assert p.shape == (k - 1,)
    assert (p >= 0).all()
    assert p.sum() == pytest.approx(1, abs=1e-12)


def test_vectors_and_numbers() -> None:
    assert size_law([0.25, 0.75], 3).tolist() == [0.25, 0.75]
    assert size_law(int(np.int64(2)), 3).tolist() == [0, 1]
    assert size_law("fixed:2", ["a", "b", "c"]).tolist() == [0, 1]


@pytest.mark.parametrize("k", [3, 6, 10])
def test_keeping_no_turns_released_into_paper(k: int) -> None:
    assert np.allclose(kept_law("released", k), size_law("paper", k), atol=1e-14)


def test_wrong_class_rate_by_counting() -> None:
    for k in (2, 3, 5):
        for s in range(1, k):
            stays = [bool(row[0] == row[1]) for row in every_set(k, s)]  # true class 0, wrong 1
            assert wrong_class_rate(s, k) == pytest.approx(np.mean(stays))


def counted(sets: NDArray[np.bool_], every: NDArray[np.bool_]) -> NDArray[np.intp]:
    powers = 1 << np.arange(sets.shape[1])
    place = {int(code): i for i, code in enumerate(every @ powers)}
    return np.bincount([place[int(code)] for code in sets @ powers], minlength=len(every))


def check_draw(k: int, law: str | int, n: int, seed: int) -> None:
    """Chi-square of the sizes, and of the sets within each size."""
    y = np.random.default_rng(seed).integers(0, k, n)
    sets = ro.draw(y, k, law, seed)
    mask = sets.excluded
    assert not mask[np.arange(n), y].any(), "the true class was ruled out"
    p = size_law(law, k)
    counts = np.bincount(sets.sizes, minlength=k)[1:]
    assert counts[p == 0].sum() == 0
    if (p > 0).sum() > 1:
        assert chisquare(counts[p > 0], n * p[p > 0]).pvalue > LEVEL
    relative = np.array([np.roll(row, -t) for row, t in zip(mask, y, strict=True)])
    for s in range(1, k - 1):  # at s = k-1 only one set is possible
        rows = relative[sets.sizes == s]
        every = every_set(k, s)
        every = every[~every[:, 0]]
        if len(rows) >= 5 * len(every) and len(every) > 1:
            assert chisquare(counted(rows, every)).pvalue > LEVEL


@pytest.mark.parametrize("law", ["paper", "released", 2, 3])
@pytest.mark.parametrize("k", [4, 6])
def test_drawn_sets_are_uniform_and_follow_the_law(k: int, law: str | int) -> None:
    check_draw(k, law, n=20_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("k", [3, 5, 8, 10])
def test_drawn_sets_at_larger_counts(k: int) -> None:
    check_draw(k, "released", n=int(300_000 * COUNT), seed=2)


def test_proposals_are_uniform_and_ignore_the_truth() -> None:
    k, n = 5, 30_000
    sets = ro.propose(n, k, "released", seed=3)
    assert chisquare(counted(sets.excluded, every_set(k))).pvalue > LEVEL


def test_proposing_and_keeping_no_gives_the_paper_law() -> None:
    k, n = 6, 60_000
    y = np.random.default_rng(4).integers(0, k, n)
    answers = ro.answer(ro.propose(n, k, "released", seed=4), y)
    counts = np.bincount(answers.no.sizes, minlength=k)[1:]
    assert chisquare(counts, counts.sum() * size_law("paper", k)).pvalue > LEVEL
    assert chisquare(counts, counts.sum() * size_law("released", k)).pvalue < LEVEL


def test_a_seed_repeats_and_a_generator_goes_on() -> None:
    y = np.zeros(100, int)
    assert ro.draw(y, 10, seed=7) == ro.draw(y, 10, seed=7)
    assert ro.draw(y, 10, seed=7) != ro.draw(y, 10, seed=8)
    rng = np.random.default_rng(7)
    assert ro.draw(y, 10, seed=rng) == ro.draw(y, 10, seed=7)
    assert ro.draw(y, 10, seed=rng) != ro.draw(y, 10, seed=7)


def test_named_labels_are_drawn_for() -> None:
    sets = ro.draw(["dog", "cat"], classes=["cat", "dog", "bird"], law=2)
    assert sets.to_candidates() == [["dog"], ["cat"]]


def test_two_classes_leave_one() -> None:
    assert ro.draw([0, 1], 2).excluded.tolist() == [[False, True], [True, False]]


def test_no_rows() -> None:
    assert ro.draw([], 4).shape == (0, 4)
    assert ro.propose(0, 4).shape == (0, 4)
