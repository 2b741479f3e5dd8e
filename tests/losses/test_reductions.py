"""What the losses turn into at the edges, and how they stand to each other."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ruleout as ro

CLOSE = 1e-10
BASES = ["cce", "mae", "mse", "gce", "phuber"]


def batch(k: int, law: str | int = "released", n: int = 40) -> tuple[Tensor, Tensor]:
    random = torch.Generator().manual_seed(k)
    logits = 3 * torch.randn(n, k, dtype=torch.float64, generator=random)
    sets = ro.draw([i % k for i in range(n)], k, law, seed=k)
    return logits, torch.from_numpy(sets.excluded)


def same(a: Tensor, b: Tensor) -> None:
    assert torch.allclose(a, b, atol=CLOSE, rtol=CLOSE)


def slope(values: Tensor, logits: Tensor) -> Tensor:
    return torch.autograd.grad(values.sum(), logits, retain_graph=True)[0]


@pytest.mark.parametrize("base", BASES)
def test_one_class_ruled_out_gives_eq_3(base: str) -> None:
    logits, excluded = batch(6, 1)
    matrix = ro.losses.get(base).matrix(logits)
    eq3 = matrix.sum(-1) - 5 * matrix[excluded]
    same(ro.losses.get(base)(logits, excluded), eq3)


def test_one_class_ruled_out_gives_free() -> None:
    logits, excluded = batch(6, 1)
    same(ro.losses.get("cce")(logits, excluded), ro.losses.get("free")(logits)[excluded])
    for row in ("free-before", "free-after"):
        same(
            ro.approach(row).batch_loss(logits, excluded),
            ro.approach("cce").batch_loss(logits, excluded),
        )


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("k", [2, 5])
def test_all_but_one_ruled_out_gives_the_ordinary_loss(base: str, k: int) -> None:
    logits, excluded = batch(k, k - 1)
    same(ro.losses.get(base)(logits, excluded), ro.losses.get(base).matrix(logits)[~excluded])


def test_all_but_one_ruled_out_makes_log_cross_entropy() -> None:
    logits, excluded = batch(5, 4)
    same(ro.losses.get("log")(logits, excluded), -logits.log_softmax(-1)[~excluded])


def mae_prime(logits: Tensor, excluded: Tensor) -> Tensor:
    return (logits.softmax(-1) * excluded).sum(-1)


def test_exp_and_log_bound_mae_prime() -> None:
    for k in (2, 4, 10):
        logits, excluded = batch(k, n=400)
        weight = (k - 1) / excluded.sum(-1).double()
        floor = mae_prime(logits, excluded) * weight
        assert (ro.losses.get("log")(logits, excluded) >= floor - CLOSE).all()
        assert (ro.losses.get("exp")(logits, excluded) >= floor - CLOSE).all()


def test_mae_estimator_has_the_form_of_eq_12() -> None:
    k = 7
    logits, excluded = batch(k)
    s = excluded.sum(-1).double()
    found = ro.losses.get("mae")(logits, excluded)
    constant = (2 * k - 2) * (k - s) / s - (2 * k - 2) / s - (k - 1 - s) / s * (2 * k - 2)
    same(found, (2 * k - 2) / s * mae_prime(logits, excluded) + constant)
    matrix = ro.losses.get("mae").matrix(logits)
    first = (k - 1) / s * (matrix * ~excluded).sum(-1)
    gap = found - first
    same(gap, -(k - 1 - s) / s * (2 * k - 2))


def test_mae_is_symmetric() -> None:
    for k in (2, 5, 11):
        logits, _ = batch(k)
        total = ro.losses.get("mae").matrix(logits).sum(-1)
        same(total, torch.full_like(total, 2 * k - 2))


def test_gradients_of_exp_and_log_are_weighted_gradients_of_mae_prime() -> None:
    k = 6
    logits, excluded = batch(k)
    logits.requires_grad_()
    z = 1 - mae_prime(logits, excluded)
    plain = (
        slope(mae_prime(logits, excluded), logits) * ((k - 1) / excluded.sum(-1).double())[:, None]
    )
    same(slope(ro.losses.get("exp")(logits, excluded), logits), plain * (-z).exp()[:, None])
    same(slope(ro.losses.get("log")(logits, excluded), logits), plain / z[:, None])


def test_text_weighting_is_twice_the_released_one() -> None:
    logits, excluded = batch(5)
    for name in ("log", "exp"):
        released = ro.losses.get(name)(logits, excluded)
        same(ro.losses.get(f"{name}-text")(logits, excluded), 2 * released)


def test_the_weight_is_k_minus_one_over_s_and_the_batch_takes_the_mean() -> None:
    """PyPCL has (k-1)/(k-s); libcll sums the batch."""
    logits = torch.zeros(4, 10)
    excluded = torch.zeros(4, 10)
    excluded[:, :3] = 1
    expected = 9 / 3 * -torch.log(torch.tensor(0.7))
    assert torch.allclose(ro.approach("log").batch_loss(logits, excluded), expected)
    twice = ro.approach("log").batch_loss(logits.repeat(2, 1), excluded.repeat(2, 1))
    assert torch.allclose(twice, expected)


def test_one_large_logit_is_no_accident() -> None:
    """Libcll's MCL-LOG gives inf and NaN at a logit of 120."""
    logits = torch.tensor([[120.0, 0.0, 0.0]], requires_grad=True)
    value = ro.losses.get("log")(logits, torch.tensor([[1, 0, 0]]))
    value.sum().backward()  # type: ignore[no-untyped-call]
    assert float(value.detach()) == pytest.approx(2 * (120 - 0.6931472), rel=1e-6)
    assert logits.grad is not None
    assert torch.allclose(logits.grad, torch.tensor([[2.0, -1.0, -1.0]]))


def test_gce_at_q_one_is_half_of_mae() -> None:
    logits, _ = batch(5)
    same(2 * ro.losses.get("gce", q=1.0).matrix(logits), ro.losses.get("mae").matrix(logits))


def test_uniform_transition_is_the_default_of_forward() -> None:
    logits, _ = batch(5)
    q = (1 - torch.eye(5, dtype=torch.float64)) / 4
    same(ro.losses.get("forward", transition=q)(logits), ro.losses.get("forward")(logits))
