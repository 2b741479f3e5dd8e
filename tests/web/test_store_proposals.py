"""Proposals follow the law exactly, and are the same for whoever asks."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from tiers import COUNT
from web.made import Make

from ruleout.labels import propose, size_law
from ruleout.web import Settings
from ruleout.web.proposals import Proposer, capped_law, chance

LAWS = [("released", None), ("paper", None), ("released", 2), ("paper", 3), ("fixed:2", 4)]


def _p_value(law: str, cap: int | None, seed: int, n: int) -> float:
    """Compare how often each set was proposed with the law, by chi-square."""
    k = 5
    proposer = Proposer(Settings(classes=tuple("abcde"), law=law, cap=cap, seed=seed))
    seen = Counter(proposer.proposal(item, item % 2).classes for item in range(1, n + 1))
    p = capped_law(law, k, cap)
    sets = [s for size in range(1, k) if p[size - 1] for s in combinations(range(k), size)]
    ways = Counter(map(len, sets))
    assert set(seen) <= set(sets)
    wanted = [n * p[len(s) - 1] / ways[len(s)] for s in sets]
    return float(stats.chisquare([seen[s] for s in sets], wanted).pvalue)


@pytest.mark.parametrize(("law", "cap"), LAWS)
def test_every_set_comes_as_often_as_the_law_says(law: str, cap: int | None) -> None:
    values = [_p_value(law, cap, seed, 200) for seed in range(20)]
    assert stats.kstest(values, "uniform").pvalue > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("law", "cap"), LAWS)
def test_the_law_holds_in_many_draws(law: str, cap: int | None) -> None:
    assert _p_value(law, cap, seed=11, n=max(5000, int(40_000 * COUNT))) > 1e-3


@pytest.mark.parametrize(("law", "cap"), LAWS)
@pytest.mark.parametrize("k", [5, 6, 40, 300])
def test_a_proposal_is_what_propose_draws_with_its_seed(law: str, cap: int | None, k: int) -> None:
    proposer = Proposer(Settings(classes=tuple(f"c{n}" for n in range(k)), law=law, cap=cap))
    p = capped_law(law, k, cap)
    for item in range(100):
        drawn = proposer.proposal(item, 0)
        again = propose(1, k, p, drawn.seed).excluded[0]
        assert drawn.classes == tuple(np.flatnonzero(again))


def test_gold_sets_are_even_given_the_polarity() -> None:
    k, n, gold = 4, 6000, 2
    proposer = Proposer(Settings(classes=tuple("abcd"), law="released", seed=3))
    seen = Counter(proposer.proposal(item, 0, gold=gold).classes for item in range(1, n + 1))
    p = size_law("released", k)
    sets = [s for size in range(1, k) for s in combinations(range(k), size)]
    kinds = Counter((len(s), gold in s) for s in sets)
    wanted = [n * p[len(s) - 1] / 2 / kinds[len(s), gold in s] for s in sets]
    assert stats.chisquare([seen[s] for s in sets], wanted).pvalue > 1e-3


def test_a_capped_law_is_the_law_given_its_size() -> None:
    for law in ("released", "paper"):
        p = size_law(law, 9)
        assert np.allclose(capped_law(law, 9, 3)[:3], p[:3] / p[:3].sum())
        assert np.allclose(capped_law(law, 9, 8), p)


def test_a_capped_law_of_many_classes_does_not_vanish() -> None:
    p = capped_law("released", 3000, 8)
    assert p.sum() == pytest.approx(1)
    assert p[7] > 0.99
    assert not p[8:].any()


def test_anybody_can_draw_a_proposal_again_from_the_log(make: Make) -> None:
    store = make(30, seed=9, cap=4)
    for question in store.next(store.add_user("Ann"), 30):
        drawn = propose(1, 6, capped_law("released", 6, 4), question.seed).excluded[0]
        assert tuple(np.flatnonzero(drawn)) == question.proposed
        assert question.law == "released, at most 4"


def test_items_rounds_and_projects_have_seeds_of_their_own() -> None:
    of = [Proposer(Settings(classes=tuple("abcdef"), seed=seed)) for seed in range(3)]
    seeds = {p.proposal(item, r).seed for p in of for item in range(200) for r in range(3)}
    assert len(seeds) == 3 * 200 * 3


def test_chance_is_uniform() -> None:
    assert stats.kstest([chance(1, n) for n in range(2000)], "uniform").pvalue > 1e-3
