"""How often people are wrong, against loops written out and against simulations."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

import ruleout as ro
from ruleout.labels import LabelSets, evidence
from ruleout.labels.dawid_skene import learn_errors

K = 10


def simulated(
    error: float, answers: int, *, seed: int = 0, law: str | int = 6, n: int = 500, people: int = 15
) -> tuple[LabelSets, np.ndarray, np.ndarray, np.ndarray]:
    """Return sets, about what and by whom, and how often each person was wrong."""
    chance = np.random.default_rng(seed)
    y, items = chance.integers(0, K, n), np.repeat(np.arange(n), answers)
    who, rates = chance.integers(0, people, len(items)), chance.gamma(2, error / 2, people)
    sets = ro.draw(y[items], K, law, seed=seed, noise=rates.clip(max=0.6)[who])
    wrong = sets.excluded[np.arange(len(items)), y[items]]
    return sets, items, who, np.bincount(who, wrong, people) / np.bincount(who, minlength=people)


def written_out(
    rows: list[set[int]], items: list[int], who: list[int], k: int, proposed: bool
) -> list[float]:
    """The same EM in plain loops."""
    n, people = max(items) + 1, max(who) + 1
    e, share = [0.05] * people, [1 / k] * k
    for _ in range(200):
        p = []
        for i in range(n):
            one = []
            for c in range(k):
                chance = share[c]
                for out, about, a in zip(rows, items, who, strict=True):
                    s = len(out)
                    if about == i and s:
                        right, wrong = 1 / comb(k - 1, s), 1 / comb(k - 1, s - 1)
                        if proposed:  # the set was there before
                            right = wrong = 1
                        chance *= e[a] * wrong if c in out else (1 - e[a]) * right
                one.append(chance)
            p.append([chance / sum(one) for chance in one])
        share = [(sum(p[i][c] for i in range(n)) + 1) / (n + k) for c in range(k)]
        missed = [sum(p[i][c] for c in out) for out, i in zip(rows, items, strict=True)]
        said = [bool(out) for out in rows]
        mean = (sum(missed) + 1) / (sum(said) + 2)
        last, e = e, []
        for a in range(people):
            own = [w for w, one, by in zip(missed, said, who, strict=True) if one and by == a]
            e.append((sum(own) + 10 * mean) / (len(own) + 10))
        if max(abs(a - b) for a, b in zip(last, e, strict=True)) < 1e-4:
            break
    return e


@pytest.mark.parametrize("proposed", [False, True])
def test_it_is_em_written_out(proposed: bool) -> None:
    rows = [{0, 1}, {0, 2}, {1, 2}, {0, 1}, {3}, {0, 1, 2}, {3, 2}, set(), {1, 2, 3}, {0, 3}]
    items, who = [0, 0, 0, 1, 1, 2, 2, 2, 3, 3], [0, 1, 2, 0, 1, 0, 2, 1, 2, 1]
    table = [[int(c in out) for c in range(4)] for out in rows]
    sets = LabelSets(table, 4, unlabelled=True)
    found = learn_errors(sets, np.array(items), np.array(who), proposed)
    assert found is not None
    np.testing.assert_allclose(found.own, written_out(rows, items, who, 4, proposed), atol=1e-9)


@pytest.mark.parametrize("error", [0.05, 0.1, 0.2])
@pytest.mark.parametrize("answers", [2, 3, 5])
def test_rates_are_near_the_truth(error: float, answers: int) -> None:
    """The mean of all within what its counts say, people's own nearer than that mean is."""
    far, own, mean = [], [], []
    for seed in range(4):
        sets, items, who, truth = simulated(error, answers, seed=seed)
        found = learn_errors(sets, items, who)
        assert found is not None
        wrong, asked = found.counts
        rate = truth[who].mean()
        far.append((wrong / asked - rate) / np.sqrt(rate * (1 - rate) / asked))
        own.append(np.abs(found.own - truth).mean())
        mean.append(np.abs(truth.mean() - truth).mean())
    assert np.abs(far).max() < 3
    assert np.mean(own) < {2: 1.0, 3: 0.75, 5: 0.45}[answers] * np.mean(mean)


def test_sets_of_different_sizes_say_differently_much() -> None:
    sets, items, who, truth = simulated(0.1, 4, law="released")
    found = learn_errors(sets, items, who)
    assert found is not None
    assert np.corrcoef(found.own, truth)[0, 1] > 0.7


def test_one_answer_about_each_item_tells_nothing() -> None:
    sets, items, who, _ = simulated(0.1, 1)
    assert learn_errors(sets, items, who) is None
    plain, heard = evidence(sets, items=items), evidence(sets, items=items, people=who)
    assert (heard.errors, heard.gold) == (None, None)
    np.testing.assert_array_equal(plain.likelihood, heard.likelihood)


def test_answers_that_leave_most_classes_tell_too_little() -> None:
    sets, items, who, _ = simulated(0.1, 3, law=1)
    assert learn_errors(sets, items, who) is None


def test_evidence_of_people_is_that_of_their_rates() -> None:
    sets, items, who, _ = simulated(0.1, 3)
    learnt = learn_errors(sets, items, who)
    assert learnt is not None
    heard = evidence(sets, items=items, people=who)
    assert heard.gold == learnt.counts
    known = evidence(sets, learnt.own[who], items=items)
    np.testing.assert_array_equal(heard.likelihood, known.likelihood)
    half = evidence(sets, (30, 300), items=items, people=who)  # people differ, gold says how much
    assert half.gold == (30, 300)
    own = learnt.own[who] * (0.1 / learnt.own[who].mean())
    np.testing.assert_allclose(half.likelihood, evidence(sets, own, items=items).likelihood)


def test_contradictions_say_nothing_where_nobody_is_ever_wrong() -> None:
    sets = LabelSets([[1, 1, 0], [0, 0, 1], [1, 0, 0]], 3)
    assert evidence(sets, items=[0, 0, 1]).likelihood.tolist() == [[0, 0, 0], [-np.inf, 0, 0]]


@pytest.mark.slow
def test_a_million_answers() -> None:
    sets, items, who, truth = simulated(0.1, 4, n=250_000, people=400, law="released")
    found = learn_errors(sets, items, who)
    assert found is not None
    assert np.abs(found.own - truth).mean() < 0.01
