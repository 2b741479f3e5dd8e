"""Models: shapes, exact parameter counts, and weights that depend on the seed alone."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from ruleout.models import MODELS, build


def parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("name", "shape", "count"),
    [
        ("linear", (784,), 7_850),
        ("mlp", (784,), 397_510),
        ("mlp", (1, 28, 28), 397_510),
        ("resnet32", (3, 32, 32), 466_906),
        ("densenet22", (3, 32, 32), 71_686),
        ("resnet34", (3, 32, 32), 21_282_122),
    ],
)
def test_parameter_counts(name: str, shape: tuple[int, ...], count: int) -> None:
    """Those of the two released CIFAR models are exact targets."""
    assert parameters(build(name, shape, 10, seed=0)) == count


@pytest.mark.parametrize("name", MODELS)
def test_logits_and_gradients(name: str) -> None:
    model = build(name, (3, 32, 32), 7, seed=0)
    logits = model(torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0)))
    assert logits.shape == (2, 7)
    logits.square().sum().backward()
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert parameter.grad.isfinite().all()
        assert parameter.grad.abs().sum() > 0


@pytest.mark.parametrize("name", MODELS)
def test_the_seed_decides_and_nothing_else(name: str) -> None:
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first, again, other = (build(name, (3, 32, 32), 10, seed=s) for s in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    pairs = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    changed = zip(first.parameters(), other.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in changed)


def test_depths() -> None:
    """32 and 22 count convolutions on the main path and the last linear layer."""

    def layers(name: str) -> int:
        model = build(name, (3, 32, 32), 10, seed=0)
        main = [m for n, m in model.named_modules() if "shortcut" not in n]
        return sum(isinstance(m, (nn.Conv2d, nn.Linear)) for m in main)

    assert layers("resnet32") == 32
    assert layers("densenet22") == 22
    assert layers("resnet34") == 34


def test_hidden_layers_and_own_models() -> None:
    model = build("mlp", 8, 3, seed=0, hidden=(5, 4))
    assert parameters(model) == 8 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3

    def mine(shape: tuple[int, ...], classes: int, *, bias: bool) -> nn.Module:
        return nn.Linear(shape[0], classes, bias=bias)

    assert parameters(build(mine, 8, 3, seed=0, bias=False)) == 24


def test_mistakes_are_named() -> None:
    with pytest.raises(ValueError, match="unknown model 'resnet'; did you mean 'resnet34'"):
        build("resnet", 8, 3, seed=0)
    with pytest.raises(ValueError, match=r"reads images \(channels, height, width\), not \(8,\)"):
        build("resnet32", 8, 3, seed=0)
