"""Origins of sets, against sums over every set that can occur."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from ruleout.labels import LabelSets
from ruleout.labels.origins import Flips, Transition, Uniform

K = 4
R = np.array([[0.05, 0.3, 0.6, 0.2], [0.5, 0.0, 0.4, 0.7], [0.2, 0.3, 0.1, 0.6], [0.4, 0.1, 0.2, 0.05]])
Q = np.array([[0.1, 0.5, 0.2, 0.2], [0.3, 0.0, 0.6, 0.1], [0.25, 0.25, 0.0, 0.5], [0.7, 0.1, 0.2, 0.0]])


def subsets(sizes: range) -> list[tuple[int, ...]]:
    return [one for s in sizes for one in combinations(range(K), s)]


def table(some: list[tuple[int, ...]]) -> LabelSets:
    rows = [[int(c in one) for c in range(K)] for one in some]
    return LabelSets(rows, K, unlabelled=True)


def chance(kind: str, given: tuple[int, ...], y: int) -> float:
    """The probability of a set when y is true, written out."""
    if kind == "transition":
        return float(Q[y, given[0]])
    if kind == "flips":
        return float(np.prod([R[y, c] if c in given else 1 - R[y, c] for c in range(K)]))
    s = len(given)
    return 0.9 / comb(K - 1, s) if y not in given else 0.1 / comb(K - 1, s - 1)


CASES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "uniform, s=1": (Uniform(1, 0.1), subsets(range(1, 2))),
    "uniform, s=2": (Uniform(2, 0.1), subsets(range(2, 3))),
    "uniform, s=3": (Uniform(3, 0.1), subsets(range(3, 4))),
    "flips": (Flips(R), subsets(range(K))),
    "transition": (Transition(Q), subsets(range(1, 2))),
}


@pytest.mark.parametrize("name", list(CASES))
def test_likelihoods_are_those_written_out(name: str) -> None:
    origin, some = CASES[name]
    found = np.exp(origin.log_likelihood(table(some)))
    expected = np.array([[chance(name.split(",")[0], one, y) for y in range(K)] for one in some])
    found, expected = (v / v.sum(1, keepdims=True) for v in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", list(CASES))
def test_credit_is_one_for_right_and_zero_for_wrong_predictions(name: str) -> None:
    """Exactly, summed over every set; and so are its variances (the mean of the wrong classes')."""
    origin, some = CASES[name]
    if name == "flips":  # all sets, the full one too, which no row can have
        some = [*some, tuple(range(K))]
    sets = table(some[:-1]) if name == "flips" else table(some)
    for predicted in range(K):
        credit = origin.credit(sets, np.full(len(sets), predicted))
        value, variances = list(credit.value), []
        if name == "flips":
            value.append(0.0)  # nothing is possible: the product with no candidate
        for y in range(K):
            p = np.array([chance(name.split(",")[0], one, y) for one in some])
            assert p.sum() == pytest.approx(1)
            mean = float(p @ np.array(value))
            assert mean == pytest.approx(float(y == predicted), abs=1e-9)
            variances.append(float(p @ np.square(np.array(value) - mean)))
        own = variances.pop(predicted)
        assert credit.right[0] == pytest.approx(own, abs=1e-9)
        assert credit.wrong[0] == pytest.approx(np.mean(variances), abs=1e-9)


@pytest.mark.parametrize("name", list(CASES))
def test_what_is_drawn_follows_the_likelihood(name: str) -> None:
    origin, some = CASES[name]
    kind, n = name.split(",")[0], 40_000
    for y in range(K):
        drawn = origin.draw(np.full(n, y), K, seed=y).excluded @ (2 ** np.arange(K))
        counts = np.array([np.sum(drawn == sum(2**c for c in one)) for one in some])
        p = np.array([chance(kind, one, y) for one in some])
        p[[not one for one in some]] = 0  # rows that rule out nothing are drawn again
        p /= p.sum()
        assert counts.sum() == n
        np.testing.assert_allclose(counts / n, p, atol=4.5 * np.sqrt(0.25 / n))
