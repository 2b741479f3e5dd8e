"""A matrix Q that is given: with zeros, learnt with, changed in place, or no matrix at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import references as ref
import torch
from torch import Tensor

import ruleout as ro
from ruleout.losses import functions

K = 5


def matrix(zeros: float, seed: int) -> Tensor:
    """Return Q of which about a share of `zeros` is 0, no column whole."""
    rng = np.random.default_rng(seed)
    q = rng.random((K, K)) * (rng.random((K, K)) >= zeros) + 0.2 * np.roll(np.eye(K), 1, 1)
    q *= 1 - np.eye(K)
    return torch.from_numpy(q / q.sum(1, keepdims=True))


def rows(gap: float, seed: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.from_numpy(gap * np.random.default_rng(seed).normal(size=(12, K))).to(dtype)


@pytest.mark.parametrize("limit", [1 << 23, 1], ids=["at once", "in parts"])
@pytest.mark.parametrize("zeros", [0.0, 0.6])
@pytest.mark.parametrize("gap", [1.0, 1e2, 1e4])
def test_forward_and_its_gradient_are_exact_whatever_the_matrix(
    gap: float, zeros: float, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(functions, "_COMPARISONS", limit)
    for seed in range(5):
        q, f = matrix(zeros, seed), rows(gap, seed).requires_grad_()
        found = ro.losses.get("forward", transition=q)(f)
        expected = [
            [float(ref.forward(row, c, q.tolist())) for c in range(K)] for row in f.tolist()
        ]
        want = torch.tensor(expected, dtype=torch.float64)
        assert ((found - want).abs() <= 1e-9 * want.clamp(min=1)).all()
        chance = torch.where(q > 0, q.log(), -torch.inf)
        reach = f.detach()[:, None] + chance.T  # [B, c, y]
        weights = reach.softmax(-1)
        for c in range(K):
            (slope,) = torch.autograd.grad(found[:, c].sum(), f, retain_graph=True)
            assert torch.allclose(slope, f.detach().softmax(-1) - weights[:, c], atol=1e-9)


@pytest.mark.parametrize("name", ["forward-before", "forward-after", "cpe-f"])
def test_a_class_far_below_the_second_teaches_if_it_alone_explains(name: str) -> None:
    q = [[0, 0.5, 0.5], [0, 0, 1], [1, 0, 0]]
    f = torch.tensor([[0.0, 0.0, -100.0]], requires_grad=True)
    loss = ro.approach(name, transition=q).batch_loss(f, torch.tensor([[1, 0, 0]]))
    assert loss.item() == pytest.approx(100 + np.log(2))
    assert torch.allclose(torch.autograd.grad(loss, f)[0], torch.tensor([[0.5, 0.5, -1.0]]))


@pytest.mark.parametrize("name", ["forward-before", "forward-after", "cpe-f"])
def test_a_row_that_no_class_explains_teaches_nothing(name: str) -> None:
    q = [[0, 0, 1], [0, 0, 1], [0, 1, 0]]  # class 0 is never ruled out
    f = torch.tensor([[1.0, 2.0, -3.0]], requires_grad=True)
    loss = ro.approach(name, transition=q).batch_loss(f, torch.tensor([[1, 0, 0]]))
    assert torch.autograd.grad(loss, f)[0].abs().max() < 1e-6


@pytest.mark.parametrize("name", ["forward-before", "forward-after", "nn-after", "cpe-f"])
def test_a_matrix_can_be_learnt_with_the_model(name: str) -> None:
    q, f = matrix(0.0, 1).requires_grad_(), rows(1, 1)
    sets = torch.eye(K)[torch.arange(12) % K]
    approach = ro.approach(name, transition=q)
    for _ in range(2):  # nothing of the first pass is kept
        (slope,) = torch.autograd.grad(approach.batch_loss(f, sets), q)
    assert slope.isfinite().all()
    where, step = (2, 3), 1e-6
    moved = q.detach().clone()
    moved[where] += step
    more, now = (ro.approach(name, transition=m).batch_loss(f, sets) for m in (moved, q.detach()))
    assert slope[where].item() == pytest.approx((more - now).item() / step, rel=1e-3)


@pytest.mark.parametrize(
    "name", ["free-after", "nn-before", "ga-by-excluded-after", "forward-after"]
)
def test_a_matrix_that_is_changed_in_place_is_heard(name: str) -> None:
    q, f, sets = matrix(0.0, 1), rows(1, 1), torch.eye(K)[torch.arange(12) % K]
    approach = ro.approach(name, transition=q)
    before = approach.batch_loss(f, sets)
    q.copy_(matrix(0.6, 2))
    after = approach.batch_loss(f, sets)
    assert after != before
    assert torch.allclose(after, ro.approach(name, transition=q.clone()).batch_loss(f, sets))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_matrix_without_inverse_is_refused_also_if_it_is_so_but_for_rounding(dtype: Any) -> None:
    mixed = [[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [0.2, 0.25, 0.55]]  # the last: mean of the others
    approach = ro.approach("nn-after", transition=torch.tensor(mixed, dtype=dtype))
    with pytest.raises(ValueError, match="has no inverse"):
        approach.batch_loss(torch.zeros(2, 3, dtype=dtype), torch.tensor([[1, 0, 0], [0, 1, 0]]))


def test_what_is_no_matrix_is_refused_in_words() -> None:
    f, sets = torch.zeros(1, 3), torch.tensor([[1, 0, 0]])
    for wrong, said in (
        ("x", "the transition matrix is 'x'; give 3 × 3 probabilities"),
        ([[0, np.nan, 1], [1, 0, 0], [1, 0, 0]], "probabilities that sum to 1"),
        (torch.full((3, 3), torch.nan), "probabilities that sum to 1"),
    ):
        for name in ("forward-before", "forward-after", "nn-after", "cpe-f", "cpe-t"):
            with pytest.raises(ValueError, match=said):
                ro.approach(name, transition=wrong).batch_loss(f, sets)
    for shares in ([2, 0.5, 0.5], [-1, 1, 1], [np.nan, 0.5, 0.5]):
        with pytest.raises(ValueError, match="class_prior must hold shares that sum to 1"):
            ro.approach("scarce-after", class_prior=shares).batch_loss(f, sets)


def test_cpe_t_begins_with_the_matrix_it_is_given() -> None:
    q, f = matrix(0.0, 4), rows(1, 4)
    sets = ro.draw(np.arange(12) % K, K, seed=4)
    given, forward = (ro.approach(name, transition=q) for name in ("cpe-t", "cpe-f"))
    assert torch.allclose(given.batch_loss(f, sets), forward.batch_loss(f, sets))
    excluded = torch.from_numpy(sets.excluded).double()
    first = given.source.start(excluded)
    kept: dict[str, Tensor] = {}
    given.source.revise(ro.losses.Seen(f, excluded, first, 1, kept))
    flags = [list(map(bool, row)) for row in sets.excluded]
    expected = ref.revise_transition(f.tolist(), flags, q.tolist())
    want = torch.tensor([[float(v) for v in row] for row in expected], dtype=torch.float64)
    assert (kept["transition"].view(K, K) - want).abs().max() < 1e-9


@pytest.mark.parametrize("target", [torch.ones(3), torch.ones(2, 4), torch.ones(1, 3)])
def test_a_target_of_another_shape_is_refused(target: Tensor) -> None:
    sets = torch.tensor([[1, 0, 0], [0, 1, 0]])
    with pytest.raises(ValueError, match=r"both end in \[B, k\]"):
        ro.approach("proden").batch_loss(torch.zeros(2, 3), sets, target=target)
