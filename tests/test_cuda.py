"""On a GPU: the same numbers, no waiting for the device, and steps that a CUDA graph can hold."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.testing import cases, make

pytestmark = pytest.mark.cuda

NAMES = ro.approaches()


def gradient(name: str, logits: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    at = logits.clone().requires_grad_()
    value = ro.approach(name).batch_loss(at, excluded)
    return value.detach(), torch.autograd.grad(value.sum(), at)[0]


@pytest.mark.parametrize("name", NAMES)
def test_cuda_equals_cpu(name: str) -> None:
    for case in cases(ro.approach(name).form == "pairs-before"):
        here = gradient(name, case.logits, case.excluded)
        there = gradient(name, case.logits.cuda(), case.excluded.cuda())
        for a, b in zip(here, there, strict=True):
            assert torch.allclose(b.cpu(), a, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_tf32_leaves_the_losses_alone(name: str) -> None:
    case = make(10, rows=64, lead=(4,), single=ro.approach(name).form == "pairs-before")
    logits, excluded = case.logits.float().cuda(), case.excluded.cuda()
    exact = gradient(name, logits, excluded)
    torch.backends.cuda.matmul.allow_tf32 = True
    try:
        rough = gradient(name, logits, excluded)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
    assert torch.equal(exact[0], rough[0])


@pytest.mark.parametrize("name", NAMES)
def test_a_step_can_be_captured(name: str) -> None:
    """Nothing in a step waits for the device or copies from the host."""
    case = make(6, rows=32, lead=(3,), single=ro.approach(name).form == "pairs-before")
    logits, excluded = case.logits.float().cuda(), case.excluded.cuda()
    row = ro.approach(name)

    def step() -> tuple[Tensor, Tensor]:
        leaf = logits.detach().requires_grad_()
        value = row.batch_loss(leaf, excluded)
        return value.detach(), torch.autograd.grad(value.sum(), leaf)[0]

    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    with torch.cuda.stream(side):
        for _ in range(3):
            expected = [x.clone() for x in step()]
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    graph.replay()
    torch.cuda.synchronize()
    for a, b in zip(captured, expected, strict=True):
        assert torch.allclose(a, b)
