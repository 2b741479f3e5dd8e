"""Batch norm as modules compiled for a GPU have it, on a CPU, where its sums are torch's."""

from __future__ import annotations

from copy import deepcopy
from shutil import which

import pytest
import torch
from torch import Tensor, nn

from ruleout.training.gpu_batch_norm import BatchNorm, batch_statistics, normalise


def normalised(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    counted = torch.zeros((), dtype=torch.int64)
    known = batch_statistics(x.detach(), torch.zeros(3), torch.ones(3), counted, 0.1, 1e-5)
    return normalise(x, weight, bias, known)


def test_formula_and_gradient_are_torchs() -> None:
    torch.manual_seed(0)
    shapes = (4, 3, 5, 6), (3,), (3,)
    given = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(normalised, given)  # numbers against small steps
    x, weight, bias = given
    plain = nn.functional.batch_norm(x, None, None, weight, bias, training=True)
    slope = torch.randn(shapes[0], dtype=torch.float64)
    assert torch.allclose(normalised(*given), plain, rtol=0, atol=1e-12)
    for one, other in zip(
        torch.autograd.grad(normalised(*given), given, slope),
        torch.autograd.grad(plain, given, slope),
        strict=True,
    ):
        assert torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.skipif(which("g++") is None, reason="needs g++")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own, as it compiles
def test_a_compiled_module_learns_as_with_torchs() -> None:
    torch.manual_seed(0)
    theirs = nn.Sequential(
        nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 3, 1, bias=False), nn.BatchNorm2d(3)
    )
    nn.init.uniform_(theirs.get_parameter("0.weight"), 0.5, 2.0)
    nn.init.normal_(theirs.get_parameter("0.bias"))
    mine = deepcopy(theirs)
    for part in mine.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.__class__ = BatchNorm
    x = (torch.randn(16, 5, 8, 8) + 7).bfloat16().to(memory_format=torch.channels_last)
    slope, found = torch.randn(16, 3, 8, 8).bfloat16(), []
    for module in (mine, theirs):
        with torch.autocast("cpu", torch.bfloat16):
            out = torch.compile(module, dynamic=False)(x)
        grads = torch.autograd.grad(out, [*module.parameters()], slope)
        found.append([out.detach(), *grads, *module.buffers()])
        assert out.dtype is torch.bfloat16
    for one, other in zip(*found, strict=True):
        wide = other.double()
        assert float((one.double() - wide).norm()) <= 5e-2 * float(wide.norm())  # of bf16
    assert mine.get_buffer("0.num_batches_tracked") == 1
    for module in (mine, theirs):  # measured, it is torch's own
        module.eval()
    assert torch.allclose(mine(x.float()), theirs(x.float()), rtol=0.05, atol=0.05)
