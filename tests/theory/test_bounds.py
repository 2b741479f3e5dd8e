"""Purity, bounds of the losses, and Theorem 4."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import references as ref
import torch

import ruleout as ro
from ruleout.theory import bound, error_bound, linear_complexity, lipschitz, purity

BASES = [
    ("mae", {}),
    ("mse", {}),
    ("gce", {}),
    ("gce", {"q": 0.2}),
    ("gce", {"q": 1.0}),
    ("phuber", {}),
    ("phuber", {"tau": 1.5}),
    ("phuber", {"tau": 2.5}),
    ("cce", {}),
]


def test_purity_is_table_1() -> None:
    assert purity(10, 3) == pytest.approx(1 / 7)
    assert purity(10, 3, decomposed=True) == pytest.approx(1 / 9)
    for k in (2, 5, 10):
        for s in range(1, k):
            assert purity(k, s) == pytest.approx(float(ref.purity(k, s, False)))
            assert purity(k, s, decomposed=True) == pytest.approx(float(ref.purity(k, s, True)))
    with pytest.raises(ro.LabelError):
        purity(10, 10)


def test_bounds_are_appendix_d() -> None:
    assert bound("mae") == 2
    assert bound("mse") == 2
    assert bound("gce") == pytest.approx(1 / 0.7)
    assert bound("phuber") == pytest.approx(math.log(10) + 1)
    assert bound("cce") == math.inf


@pytest.mark.parametrize(("name", "options"), BASES)
def test_bounds_hold_and_are_the_least(name: str, options: dict[str, float]) -> None:
    loss = ro.losses.get(name, **options)
    random = torch.Generator().manual_seed(0)
    f = 6 * torch.randn(20_000, 4, dtype=torch.float64, generator=random)
    assert loss.matrix(f).max() <= loss.bound
    if name == "cce":
        return
    far = torch.tensor([[60.0, 0.0, 0.0]], dtype=torch.float64)
    assert loss.matrix(far).max() == pytest.approx(loss.bound, rel=1e-4)


@pytest.mark.parametrize(("name", "options"), BASES)
def test_lipschitz_constants_hold_and_are_the_least(name: str, options: dict[str, float]) -> None:
    """No slope is steeper, and two classes on a fine grid come within a thousandth."""
    loss = ro.losses.get(name, **options)

    def steepest(f: torch.Tensor) -> float:
        at = f.clone().requires_grad_()
        (slope,) = torch.autograd.grad(loss.matrix(at)[..., 0].sum(), at)
        return float(slope.norm(dim=-1).max())

    random = torch.Generator().manual_seed(1)
    for k in (2, 3, 7):
        f = 3 * torch.randn(50_000, k, dtype=torch.float64, generator=random)
        assert steepest(f) <= loss.lipschitz * (1 + 1e-12)
    grid = torch.linspace(-30, 30, 60_001, dtype=torch.float64)
    pair = torch.stack([grid, torch.zeros_like(grid), torch.full_like(grid, -60.0)], -1)
    assert steepest(pair) == pytest.approx(loss.lipschitz, rel=1e-3)


def test_losses_without_bounds_say_so() -> None:
    with pytest.raises(ValueError, match="no bounds are recorded for loss 'log'"):
        bound("log")


@pytest.mark.parametrize("k", [2, 3, 10])
def test_theorem_4_equals_the_reference(k: int) -> None:
    counts = [100 * j for j in range(1, k)]
    one = partial(linear_complexity, weight_norm=1.5, feature_norm=2.0)
    found = error_bound(lipschitz("mae"), k, "released", counts, 0.05, 2.0, one)
    law = ro.size_law("released", k).tolist()
    expected = ref.error_bound(
        lipschitz("mae"), k, law, counts, 0.05, 2.0, lambda n: k * 3 / math.sqrt(n)
    )
    assert float(found) == pytest.approx(float(expected), rel=1e-12)
    assert found.left_out == ()
    each = error_bound(lipschitz("mae"), k, "released", counts, 0.05, 2.0, lambda n: [one(n)] * k)
    assert each.value == pytest.approx(found.value)


def test_theorem_4_leaves_empty_sizes_out_and_says_so() -> None:
    one = partial(linear_complexity, weight_norm=1, feature_norm=1)
    found = error_bound(1.0, 4, "paper", [50, 0, 20], 0.1, 2.0, one)
    assert found.left_out == (2,)
    assert found.complexity[1] == found.deviation[1] == 0
    assert "sizes left out, no examples: [2]" in str(found)
    fixed = error_bound(1.0, 4, 1, [50, 0, 0], 0.1, 2.0, one)
    assert fixed.left_out == ()


def test_theorem_4_shrinks_with_more_data_and_larger_sets() -> None:
    one = partial(linear_complexity, weight_norm=1, feature_norm=1)
    k, values = 10, []
    for s in range(1, k):
        counts = np.zeros(k - 1, int)
        counts[s - 1] = 1000
        values.append(error_bound(1.0, k, s, counts, 0.05, 2.0, one).value)
        more = error_bound(1.0, k, s, counts * 4, 0.05, 2.0, one).value
        assert more == pytest.approx(values[-1] / 2)
    assert values == sorted(values, reverse=True)


def test_theorem_4_refuses_what_makes_no_sense() -> None:
    one = partial(linear_complexity, weight_norm=1, feature_norm=1)
    assert error_bound(1.0, 3, "paper", [0, 0], 0.1, 2.0, one).value == math.inf
    with pytest.raises(ro.LabelError, match="neither can be negative"):
        error_bound(-1.0, 3, "paper", [1, 1], 0.1, 2.0, one)
    with pytest.raises(ro.LabelError, match="give one number, or 3"):
        error_bound(1.0, 3, "paper", [1, 1], 0.1, 2.0, lambda n: [1.0 / n] * 7)
    with pytest.raises(TypeError):
        purity(10, 8.7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 < q <= 1"):
        bound("gce", q=2.0)
    with pytest.raises(ro.LabelError, match="size 3 is impossible"):
        ro.theory.every_set(3, 3)
    with pytest.raises(ro.LabelError, match="give k probabilities"):
        ro.theory.set_distribution([1, 1, 1], "paper")
