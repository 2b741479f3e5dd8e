"""What sets say of every class where some are wrong, against sums written out."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.labels import LabelError, LabelSets, evidence
from ruleout.training import Trial, fit_grid

K = 4
NAME = "0.weight"


def chance(given: frozenset[int], y: int, error: float) -> float:
    """P(set | y) of sets of that size, written out."""
    s = len(given)
    return error / comb(K - 1, s - 1) if y in given else (1 - error) / comb(K - 1, s)


def every_pair() -> list[tuple[frozenset[int], frozenset[int]]]:
    sets = [frozenset(one) for s in (1, 2) for one in combinations(range(K), s)]
    return [(a, b) for a in sets for b in sets]


def table(sets: list[frozenset[int]]) -> LabelSets:
    return LabelSets([[int(c in one) for c in range(K)] for one in sets], K)


def test_answers_about_a_row_multiply() -> None:
    pairs = every_pair()
    flat = [one for pair in pairs for one in pair]
    error = np.tile([0.1, 0.3], len(pairs))  # of two people
    found = evidence(table(flat), error, items=np.repeat(np.arange(len(pairs)), 2))
    expected = [[chance(a, y, 0.1) * chance(b, y, 0.3) for y in range(K)] for a, b in pairs]
    ratio = np.exp(found.likelihood) / np.array(expected)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-9)
    assert (found.likelihood.max(1) == 0).all()


def test_credit_of_several_answers_is_one_where_right_and_zero_where_wrong() -> None:
    """Summed over both answers, given their sizes; and so are its variances."""
    sets = [frozenset(one) for one in combinations(range(K), 2)]
    pairs = [(a, b) for a in sets for b in sets]
    flat = [one for pair in pairs for one in pair]
    error = np.tile([0.1, 0.3], len(pairs))
    credit = evidence(table(flat), error, items=np.repeat(np.arange(len(pairs)), 2)).credit
    for y in range(K):
        p = np.array([chance(a, y, 0.1) * chance(b, y, 0.3) for a, b in pairs])
        for c in range(K):
            mean = float(p @ credit.value[:, c])
            assert mean == pytest.approx(float(c == y), abs=1e-9)
            variance = credit.right if c == y else credit.wrong
            assert variance[0, c] == pytest.approx(float(p @ (credit.value[:, c] - mean) ** 2))


def test_what_most_people_leave_stays_possible() -> None:
    sets = LabelSets([[1, 1, 0, 0], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 0]], K)
    found = evidence(sets, 0.1, items=[0, 0, 0, 2])
    assert found.sets.excluded.astype(int).tolist() == [[1, 1, 0, 0], [0] * 4, [1, 0, 0, 0]]
    assert found.credit.weight[1].tolist() == [0] * 4  # nobody said anything about row 1


@pytest.mark.parametrize("error", [0.0, 0.1, 0.4])
def test_the_loss_is_the_likelihood_written_out(error: float) -> None:
    sets = [frozenset(one) for s in (1, 2, 3) for one in combinations(range(K), s)]
    logits = torch.from_numpy(np.random.default_rng(0).normal(size=(len(sets), K)))
    p = logits.softmax(-1).numpy()
    excluded = torch.from_numpy(table(sets).excluded).to(logits)
    found = ro.losses.get("likelihood", error=error)(logits, excluded).numpy()
    told = [
        -np.log(
            sum(p[i, y] * chance(a, y, error) for y in range(K))
            / chance(a, min({*range(K)} - a), error)
        )
        for i, a in enumerate(sets)
    ]
    np.testing.assert_allclose(found, told, rtol=1e-9)
    costs = torch.from_numpy(evidence(table(sets), error).costs)
    graded = ro.losses.get("likelihood").graded
    assert graded is not None
    likeliest = np.array([max(chance(a, y, error) for y in range(K)) for a in sets])
    own = np.array([chance(a, min({*range(K)} - a), error) for a in sets])
    np.testing.assert_allclose(graded(logits, costs), told + np.log(likeliest / own), rtol=1e-6)


def test_without_mistakes_it_is_log_without_its_weight() -> None:
    logits, excluded = torch.randn(5, 4, dtype=torch.float64), torch.eye(5, 4, dtype=torch.float64)
    log, plain = (ro.losses.get(name)(logits, excluded) for name in ("log", "likelihood"))
    torch.testing.assert_close(log, plain * 3 / excluded.sum(-1).clamp(min=1))


def test_a_grid_of_error_rates_is_stacked_like_single_ones() -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    sets = ro.draw(y, 3, 1, noise=0.1)
    both = fit_grid(x, sets, approach="likelihood", grid={"error": [0.05, 0.3]}, epochs=3)
    for place, error in enumerate((0.05, 0.3)):
        one = fit_grid(x, sets, approach=ro.approach("likelihood", error=error), epochs=3)
        torch.testing.assert_close(both.weights[NAME][0, place], one.weights[NAME][0, 0])


def test_training_on_evidence_is_training_on_the_sets_it_was_made_of() -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    sets = ro.draw(y, 3, 1, noise=0.1)
    plain = fit_grid(x, sets, approach=ro.approach("likelihood", error=0.1), epochs=3)
    known = evidence(sets, 0.1)
    seen = fit_grid(x, [Trial(sets, evidence=known)], approach="likelihood", epochs=3)
    torch.testing.assert_close(plain.weights[NAME], seen.weights[NAME])
    assert plain.record["key"] != seen.record["key"]


def test_evidence_that_does_not_fit_the_memory_is_read_batch_by_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 3
    sets = ro.draw(y, 3, 1, noise=0.1)
    trial = Trial(sets, evidence=evidence(sets, 0.1))
    told: Any = {"approach": "likelihood", "epochs": 3, "batch_size": 16, "precision": "float64"}
    held = fit_grid(x, [trial], **told)
    monkeypatch.setattr("ruleout.training.batches.room", lambda _: 1)
    read = fit_grid(x, [trial], **told)
    assert not read.record["resident"]
    torch.testing.assert_close(held.weights[NAME], read.weights[NAME])


def test_wrong_answers_cost_little_where_they_are_expected() -> None:
    """Digits, three answers each, a fifth wrong; the rate is that of 30 gold questions."""
    x, y = ro.datasets.load("digits").train
    train, test = np.arange(0, 1000), np.arange(1000, len(y))
    items = np.repeat(train, 3)
    sets = ro.draw(y[items], 10, seed=0, noise=0.2)
    known = evidence(sets, (6, 30), items=items)
    told = {}
    for approach, target in (("log", known.sets), ("likelihood", known)):
        clf = ro.RuleOutClassifier(approach=approach, learning_rate=0.1, epochs=40, random_state=0)
        told[approach] = clf.fit(x[train], target).score(x[test], y[test])
    assert told["likelihood"] > told["log"] + 0.02
    fresh = evidence(ro.draw(y[test], 10, seed=9, noise=0.2), 0.2)
    assert clf.score(x[test], fresh) == pytest.approx(told["likelihood"], abs=0.08)


@pytest.mark.parametrize("error", [(2.5, 30), (3, 2), (0, 0), -0.1, 1.0, [0.1, 0.2, 0.3]])
def test_error_rates_that_are_none(error: object) -> None:
    with pytest.raises(LabelError):
        evidence(LabelSets([[1, 0, 0], [0, 1, 0]], 3), error)


def test_people_need_items() -> None:
    """Who said something tells nothing unless others spoke of the same row."""
    with pytest.raises(LabelError, match="people without items; say which row"):
        evidence(LabelSets([[1, 0, 0]], 3), people=[0])


def test_rows_that_are_none() -> None:
    with pytest.raises(LabelError, match="counted from 0"):
        evidence(LabelSets([[1, 0, 0]], 3), 0.1, items=[-1])


@pytest.mark.parametrize("transition", [[[0.5, 0.5]], [[0, -1, 1]] * 3, np.eye(3)])
def test_drawing_by_chances_that_are_none(transition: object) -> None:
    with pytest.raises(LabelError):
        ro.draw([0, 1, 2], 3, law=2, transition=transition)


def test_chances_of_a_row_of_its_own() -> None:
    sets = ro.draw([0, 0, 0, 0], 3, law=1, transition=[[0, 1, 0], [0, 0, 1]] * 2)
    assert sets.to_lists() == [[1], [2], [1], [2]]


def test_noise_by_class() -> None:
    y = np.repeat([0, 1, 2], 4000)
    sets = ro.draw(y, 3, law=1, noise=[0.0, 0.1, 0.3])
    wrong = sets.excluded[np.arange(len(y)), y].reshape(3, -1).mean(1)
    np.testing.assert_allclose(wrong, [0, 0.1, 0.3], atol=0.03)
