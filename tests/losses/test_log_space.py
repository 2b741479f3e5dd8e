"""The hand-written gradients: right to second order, under vmap and torch.func, at ties."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

import ruleout as ro
from ruleout.losses.log_space import log_complement, log_odds

MASK = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 1, 0]], dtype=torch.float64)
POINTS = {
    "random": 2
    * torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)),
    "all equal": torch.zeros(3, 4, dtype=torch.float64),
    "two equal": torch.tensor([[3.0, 3, 0, 1], [1, 1, 1, 0], [0, 2, 2, -1]], dtype=torch.float64),
    "one far ahead": torch.tensor([[40.0, 0, 1, 2]] * 3, dtype=torch.float64),
}


def odds(f: Tensor) -> Tensor:
    return log_odds(f, MASK)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("function", [odds, log_complement])
def test_first_and_second_derivatives(function: Callable[[Tensor], Tensor], point: str) -> None:
    at = POINTS[point].clone().requires_grad_()
    assert gradcheck(function, (at,))
    assert gradgradcheck(function, (at,))


@pytest.mark.parametrize("function", [odds, log_complement])
def test_vmap_and_func(function: Callable[[Tensor], Tensor]) -> None:
    stack = torch.randn(5, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.allclose(torch.vmap(function)(stack), function(stack))

    def total(f: Tensor) -> Tensor:
        return function(f).square().sum()

    at = stack.clone().requires_grad_()
    (expected,) = torch.autograd.grad(torch.stack([total(f) for f in at]).sum(), at)
    assert torch.allclose(torch.vmap(torch.func.grad(total))(stack), expected)


def test_sets_may_carry_the_leading_dimensions() -> None:
    masks = torch.stack([MASK, 1 - MASK])
    f = POINTS["random"].clone().requires_grad_()
    found = log_odds(f, masks)
    assert found.shape == (2, 3)
    assert torch.allclose(found[0], -found[1])
    (slope,) = torch.autograd.grad(found.sum(), f)
    assert torch.allclose(slope, torch.zeros_like(slope), atol=1e-12)


def test_values_where_naive_formulas_break() -> None:
    f = torch.tensor([[1e4, 0.0, -1e4]], dtype=torch.float32)
    assert log_complement(f).tolist() == [[-1e4, 0.0, 0.0]]
    assert log_odds(f, torch.tensor([[1.0, 0, 0]])).tolist() == [-1e4]
    assert log_odds(f, torch.tensor([[0.0, 1, 1]])).tolist() == [1e4]


def test_batched_gradients() -> None:
    at = POINTS["random"].clone().requires_grad_()
    for value in (odds(at), log_complement(at)):
        basis = torch.eye(value.numel(), dtype=torch.float64).reshape(-1, *value.shape)
        (batched,) = torch.autograd.grad(value, at, basis, is_grads_batched=True, retain_graph=True)
        for one, row in zip(basis, batched, strict=True):
            (alone,) = torch.autograd.grad(value, at, one, retain_graph=True)
            assert torch.allclose(row, alone)


@pytest.mark.parametrize("name", ro.approaches())
def test_float16_is_read_as_float32(name: str) -> None:
    """Its largest number is 65,504: weights times losses at ±1e4 pass it."""
    at = (1e4 * torch.randn(20, 6, generator=torch.Generator().manual_seed(0))).half()
    mask = torch.eye(6)[torch.arange(20) % 6]
    at = at.requires_grad_()
    loss = ro.approach(name).batch_loss(at, mask)
    assert torch.equal(loss, ro.approach(name).batch_loss(at.detach().float(), mask))
    assert torch.autograd.grad(loss, at)[0].isfinite().all()


def test_half_precision_stays_finite() -> None:
    f = 1e4 * torch.randn(2000, 6, generator=torch.Generator().manual_seed(0))
    mask = torch.zeros(2000, 6)
    mask[:, :3] = 1
    for dtype in (torch.bfloat16, torch.float32):
        at = f.to(dtype).requires_grad_()
        for value in (log_odds(at, mask.to(dtype)), log_complement(at)):
            assert value.isfinite().all()
            assert torch.autograd.grad(value.sum(), at)[0].isfinite().all()
