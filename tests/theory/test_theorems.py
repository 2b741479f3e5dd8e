"""The paper's theorems and our two estimators, by enumerating every set for k up to 6."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import ruleout as ro
from ruleout.labels import kept_law
from ruleout.theory import answer_outcomes, every_set, proposals, set_distribution

CLOSE = 1e-10
CLASSES = [2, 3, 4, 5, 6]
BASES: dict[str, Callable[[Tensor], Tensor]] = {
    **{name: ro.losses.get(name).matrix for name in ("cce", "mae", "mse", "gce", "phuber")},
    "zero-one": ro.losses.zero_one,
}


def posterior(k: int) -> NDArray[np.float64]:
    return np.random.default_rng(k).dirichlet(np.ones(k))


def logits(k: int) -> Tensor:
    return 2 * torch.randn(k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))


def laws(k: int) -> list[str | int | list[float]]:
    any_law = np.random.default_rng(k + 50).dirichlet(np.ones(k - 1)).tolist()
    return ["paper", "released", any_law, *range(1, k)]


@pytest.mark.parametrize("k", CLASSES)
def test_theorem_1_probabilities_sum_to_one(k: int) -> None:
    for law in laws(k):
        assert set_distribution(posterior(k), law)[1].sum() == pytest.approx(1, abs=CLOSE)


@pytest.mark.parametrize("k", CLASSES)
def test_lemma_1_a_proposed_set_holds_the_truth_with_probability_s_over_k(k: int) -> None:
    for s in range(1, k):
        sets, p = proposals(k, s)
        assert p.sum() == pytest.approx(1, abs=CLOSE)
        for y in range(k):
            assert p @ sets[:, y] == pytest.approx(s / k, abs=CLOSE)


def kept(k: int, law: str | int | list[float]) -> NDArray[np.float64]:
    """p(set | the answer was no), from the joint distribution of proposals and truth."""
    sets, p = proposals(k, law)
    joint = p * (~sets @ posterior(k))
    return np.asarray(joint / joint.sum())


@pytest.mark.parametrize("k", CLASSES)
def test_theorem_2_holds_for_each_size(k: int) -> None:
    for s in range(1, k):
        assert np.allclose(kept(k, s), set_distribution(posterior(k), s)[1], atol=CLOSE, rtol=0)


@pytest.mark.parametrize("k", CLASSES)
def test_theorem_2_tilts_the_law_across_sizes(k: int) -> None:
    for law in laws(k):
        tilted = set_distribution(posterior(k), kept_law(law, k).tolist())[1]
        assert np.allclose(kept(k, law), tilted, atol=CLOSE, rtol=0)
    if k > 2:
        untilted = set_distribution(posterior(k), "released")[1]
        assert not np.allclose(kept(k, "released"), untilted, atol=1e-3)


@pytest.mark.parametrize("k", CLASSES)
def test_lemma_2_gives_back_the_posterior(k: int) -> None:
    truth = posterior(k)
    for law in laws(k):
        sets, p = set_distribution(truth, law)
        found = 1 - ((k - 1) / sets.sum(1) * p) @ sets
        assert np.allclose(found, truth, atol=CLOSE, rtol=0)


def expected(values: Tensor, probabilities: NDArray[np.float64]) -> float:
    return float(values.double() @ torch.from_numpy(probabilities))


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("k", CLASSES)
def test_theorem_3_the_estimator_is_unbiased(k: int, base: str) -> None:
    truth, f = posterior(k), logits(k)
    ordinary = expected(BASES[base](f), truth)
    for law in laws(k):
        sets, p = set_distribution(truth, law)
        matrix = BASES[base](f.expand(len(sets), k))
        assert expected(ro.losses.unbiased(matrix, sets), p) == pytest.approx(ordinary, abs=CLOSE)


@pytest.mark.parametrize("k", CLASSES)
def test_unbiased_accuracy_is_one_minus_the_weighted_hits(k: int) -> None:
    f = logits(k)
    for law in laws(k):
        sets, p = set_distribution(posterior(k), law)
        hit = sets[:, int(f.argmax())]
        assert 1 - p @ ((k - 1) / sets.sum(1) * hit) == pytest.approx(
            posterior(k)[int(f.argmax())], abs=CLOSE
        )
        matrix = ro.losses.zero_one(f.expand(len(sets), k))
        cost = ro.losses.unbiased(matrix, sets)
        assert np.allclose(cost.numpy(), (k - 1) / sets.sum(1) * hit, atol=CLOSE, rtol=0)


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("k", CLASSES)
def test_every_answer_counts_and_the_risk_stays_unbiased(k: int, base: str, questions: int) -> None:
    truth, f = posterior(k), logits(k)
    ordinary = expected(BASES[base](f), truth)
    for law in laws(k):
        excluded, rates, p = answer_outcomes(truth, law, questions)
        assert p.sum() == pytest.approx(1, abs=CLOSE)
        matrix = BASES[base](f.expand(len(excluded), k))
        found = ro.losses.answered(matrix, excluded, rates)
        assert expected(found, p) == pytest.approx(ordinary, abs=CLOSE)


def test_three_answers_about_one_item() -> None:
    truth, f = posterior(3), logits(3)
    excluded, rates, p = answer_outcomes(truth, "released", 3)
    matrix = BASES["cce"](f.expand(len(excluded), 3))
    found = expected(ro.losses.answered(matrix, excluded, rates), p)
    assert found == pytest.approx(expected(BASES["cce"](f), truth), abs=CLOSE)


@pytest.mark.parametrize("k", CLASSES)
def test_single_label_losses_are_unbiased_at_one_label(k: int) -> None:
    """Ishida 2017, 2019: with one uniform complementary label the risk is the ordinary one."""
    truth, f = posterior(k), logits(k)
    bar = (1 - truth) / (k - 1)  # p(ruled-out class | x)

    def mean(name: str) -> float:
        return expected(ro.losses.get(name)(f[None])[0], bar)

    assert mean("free") == pytest.approx(expected(BASES["cce"](f), truth), abs=CLOSE)
    binary = torch.sigmoid
    pairwise = torch.stack(
        [sum((binary(f[j] - f[y]) for j in range(k) if j != y), f[0] * 0) for y in range(k)]
    )
    shift = (k - 1) / 2  # the release counts the ruled-out class itself, at ½
    assert mean("pc") - shift == pytest.approx(expected(pairwise, truth), abs=CLOSE)
    versus = torch.stack(
        [
            binary(-f[y]) + sum((binary(f[j]) for j in range(k) if j != y), f[0] * 0) / (k - 1)
            for y in range(k)
        ]
    )
    assert (k - 1) * mean("ova") - (k - 2) == pytest.approx(expected(versus, truth), abs=CLOSE)


@pytest.mark.parametrize("k", CLASSES)
def test_forward_is_the_log_likelihood_of_the_ruled_out_class(k: int) -> None:
    p = logits(k).softmax(-1)
    sets, chance = set_distribution(p.numpy(), 1)
    found = ro.losses.get("forward")(logits(k)[None])[0]
    assert np.allclose((-found).exp().numpy(), chance[sets.sum(1) == 1], atol=CLOSE, rtol=0)


def test_every_set_counts() -> None:
    for k in CLASSES:
        assert len(every_set(k)) == 2**k - 2
        for s in range(1, k):
            assert len(every_set(k, s)) == comb(k, s)
            assert (every_set(k, s).sum(1) == s).all()
        assert len({tuple(row) for row in every_set(k)}) == 2**k - 2
