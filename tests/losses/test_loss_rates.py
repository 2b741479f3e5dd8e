"""Rates: every approach that takes one learns from every answer, without bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.theory import answer_outcomes

BASES = ["mae", "mse", "gce", "phuber", "cce"]
ABLE = ["log", "exp", *BASES, "log-text", "exp-text", "likelihood"]


def batch(k: int, n: int = 40, questions: int = 2) -> tuple[Tensor, Any, Any]:
    """Logits, what answers rule out, and their rates."""
    logits = 2 * torch.randn(n, k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    y = np.arange(n) % k
    asked = ro.propose(n * questions, k, seed=k)
    _, sets, rates = ro.answer(asked, y, np.repeat(np.arange(n), questions)).per_item()
    return logits, sets.excluded, rates


@pytest.mark.parametrize("questions", [1, 2])
@pytest.mark.parametrize("law", ["released", "paper", 1])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_over_all_questions_and_labels_the_mean_is_the_ordinary_risk(
    k: int, law: Any, questions: int
) -> None:
    posterior = np.random.default_rng(k).dirichlet(np.ones(k))
    found = answer_outcomes(posterior, law, questions)
    logits = 3 * torch.randn(1, k, dtype=torch.float64, generator=torch.Generator().manual_seed(k))
    every = logits.expand(len(found.rates), k)
    chance = torch.from_numpy(found.probabilities)
    mask, rates = torch.from_numpy(found.excluded).double(), torch.from_numpy(found.rates)
    for base in BASES:
        loss = ro.losses.get(base)
        truth = float(loss.matrix(logits)[0] @ torch.from_numpy(posterior))
        assert float(chance @ loss.per_example(every, mask, rates)) == pytest.approx(
            truth, abs=1e-10
        )
    hit = ro.criterion("accuracy").values(every, mask, rates)
    assert float(chance @ hit) == pytest.approx(posterior[int(logits.argmax())], abs=1e-10)


@pytest.mark.parametrize("name", ABLE)
def test_plain_loops(name: str) -> None:
    logits, excluded, rates = batch(5)
    values = []
    for f, out, q in zip(logits.tolist(), excluded, rates, strict=True):
        p = np.exp(f) / np.exp(f).sum()
        left = float(p[~out].sum())
        if name == "likelihood":  # all that is possible explains the answers alike
            values.append(-math.log(left))
        elif name.startswith(("log", "exp")):
            loss = -math.log(left) if name.startswith("log") else math.exp(-left)
            values.append((2 if "text" in name else 1) * loss / (1 - q))
        else:
            matrix = ro.losses.get(name).matrix(torch.tensor([f], dtype=torch.float64))[0]
            terms = zip(matrix.tolist(), out, strict=True)
            values.append(sum(loss * ((0 if no else 1) - q) / (1 - q) for loss, no in terms))
    weight = np.linspace(0.5, 2, len(values))
    found = ro.approach(name).batch_loss(logits, excluded, rate=rates, weight=weight)
    assert float(found) == pytest.approx(np.average(values, weights=weight), abs=1e-10)


@pytest.mark.parametrize("name", ABLE)
def test_the_rate_of_a_random_set_changes_nothing(name: str) -> None:
    logits, excluded, _ = batch(6, questions=1)
    rates = 1 - excluded.sum(1) / 5
    row = ro.approach(name)
    assert torch.allclose(
        row.batch_loss(logits, excluded, rate=rates), row.batch_loss(logits, excluded), atol=1e-12
    )


def test_stacked_models_each_have_the_loss_they_have_alone() -> None:
    logits, excluded, rates = batch(4)
    stack = torch.stack([logits, 2 * logits]).unsqueeze(0)
    given = torch.from_numpy(rates).view(1, 1, -1)
    mask = torch.from_numpy(excluded).double().view(1, 1, *excluded.shape)
    for name in ABLE:
        row = ro.approach(name)
        found = row.batch_loss(stack, mask, rate=given)
        assert found.shape == (1, 2)
        alone = row.batch_loss(2 * logits, excluded, rate=rates)
        assert torch.allclose(found[0, 1], alone, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in ro.approaches() if name not in ABLE])
def test_others_refuse_and_name_those_that_can(name: str) -> None:
    logits, excluded, rates = batch(4, questions=1)
    one = np.eye(4, dtype=bool)[np.argmax(excluded, 1)]
    with pytest.raises(ValueError, match=f"'{name}' cannot learn from every answer; use log, exp,"):
        ro.approach(name).batch_loss(logits, one, rate=rates)


def test_a_loss_of_ones_own_takes_rates_if_it_says_so() -> None:
    @ro.losses.register("half-log", family="upper-bound", paper="this test")
    def half(logits: Tensor, excluded: Tensor, *, rate: Tensor | None = None) -> Tensor:
        return ro.losses.get("log").per_example(logits, excluded, rate) / 2

    logits, excluded, rates = batch(4)
    try:
        found = ro.approach("half-log").batch_loss(logits, excluded, rate=rates)
        whole = ro.approach("log").batch_loss(logits, excluded, rate=rates)
        assert torch.allclose(2 * found, whole)
        with pytest.raises(ValueError, match="it has no options"):
            ro.approach("half-log", rate=0.5)
    finally:
        ro.losses.forget("half-log")


@pytest.mark.parametrize("bad", [1.0, -0.1, np.nan])
def test_a_rate_is_a_probability_below_one(bad: float) -> None:
    logits, excluded, rates = batch(4)
    rates[3] = bad
    with pytest.raises(ValueError, match="a rate is a probability below 1"):
        ro.approach("log").batch_loss(logits, excluded, rate=rates)
    with pytest.raises(ValueError, match=r"rate is .* but must fit"):
        ro.approach("log").batch_loss(logits, excluded, rate=rates[:-1])


def test_accuracy_by_loops() -> None:
    logits, excluded, rates = batch(5)
    rows = zip(logits, excluded, rates, strict=True)
    values = [1 - (1 / (1 - q) if out[int(f.argmax())] else 0) for f, out, q in rows]
    found = ro.criterion("accuracy")(logits, excluded, rates)
    assert float(found.estimate) == pytest.approx(np.mean(values), abs=1e-12)
    assert float(found.standard_error) == pytest.approx(np.std(values, ddof=1) / math.sqrt(40))
