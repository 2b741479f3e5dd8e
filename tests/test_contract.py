"""Every registered loss and approach keeps the shipped contract, which catches defects."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.losses import Loss, Memory, Seen
from ruleout.methods import Approach
from ruleout.testing import APPROACH_CHECKS, LOSS_CHECKS


@pytest.mark.parametrize("check", APPROACH_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ro.approaches())
def test_approach(name: str, check: Callable[[Approach], None]) -> None:
    check(ro.approach(name))


@pytest.mark.parametrize("check", LOSS_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", ro.losses.names())
def test_loss(name: str, check: Callable[[Loss], None]) -> None:
    check(ro.losses.get(name))


@pytest.fixture
def registered() -> Iterator[Callable[[Callable[..., Tensor]], str]]:
    """Register a loss for one test."""

    def enter(function: Callable[..., Tensor]) -> str:
        ro.losses.register("mine", family="upper-bound", paper="a test")(function)
        return "mine"

    yield enter
    ro.losses.forget("mine")


def naive_log(logits: Tensor, excluded: Tensor) -> Tensor:
    return -(logits.softmax(-1) * (1 - excluded)).sum(-1).log()


def summed(logits: Tensor, excluded: Tensor) -> Tensor:
    return naive_log(logits, excluded).sum(-1, keepdim=True).expand(logits.shape[:-1])


def first_class_matters(logits: Tensor, excluded: Tensor) -> Tensor:
    return logits.softmax(-1)[..., 0] + excluded[..., 0]


def detached(logits: Tensor, excluded: Tensor) -> Tensor:
    return ro.losses.get("mae").per_example(logits.sigmoid().detach() * logits, excluded)


def in_float64(logits: Tensor, excluded: Tensor) -> Tensor:
    return ro.losses.get("mae").per_example(logits.double(), excluded.double())


def softmax_over_dimension_one(logits: Tensor, excluded: Tensor) -> Tensor:
    return (logits.softmax(1) * excluded).square().sum(-1)


def coarse_in_float32(logits: Tensor, excluded: Tensor) -> Tensor:
    return ro.losses.get("log").per_example(logits, excluded) * (
        2 if logits.dtype == torch.float32 else 1
    )


def late_classes_matter(logits: Tensor, excluded: Tensor) -> Tensor:
    return (logits.softmax(-1) * excluded)[..., :6].square().sum(-1)


def constant(logits: Tensor, excluded: Tensor) -> Tensor:
    return 0 * logits.sum(-1) + excluded.sum(-1)


def without_gradient(logits: Tensor, excluded: Tensor) -> Tensor:
    return (logits.detach().softmax(-1) * excluded).sum(-1)


def changes_its_input(logits: Tensor, excluded: Tensor) -> Tensor:
    return (logits.softmax(-1) * excluded.mul_(0.5)).square().sum(-1)


def wrong_rank(logits: Tensor, excluded: Tensor) -> Tensor:
    return ro.losses.get("mae").per_example(logits, excluded).unsqueeze(-1)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (naive_log, "finite: value is not finite at k=2"),
        (summed, "rows_apart: rows influence each other"),
        (first_class_matters, "class_order: the order of the classes matters"),
        (detached, "gradient: wrong gradient at k=2"),
        (in_float64, "shape: expected torch.float32, got torch.float64"),
        (wrong_rank, "shape: expected"),
        (softmax_over_dimension_one, "stacked_equals_serial: stacked and serial values differ"),
        (coarse_in_float32, "precision: float32 differs from float64"),
        (late_classes_matter, "class_order: the order of the classes matters"),
        (constant, "precision: the gradient is zero everywhere"),
        (without_gradient, "stacked_equals_serial: RuntimeError"),
    ],
)
def test_the_contract_catches(
    function: Callable[..., Tensor],
    said: str,
    registered: Callable[[Callable[..., Tensor]], str],
) -> None:
    with pytest.raises(AssertionError) as caught:
        ro.testing.check_loss(registered(function))
    assert f"mine, {said}" in str(caught.value)


def test_a_stopped_gradient_can_be_declared(
    registered: Callable[[Callable[..., Tensor]], str],
) -> None:
    name = registered(detached)
    ro.testing.check_loss(name, stopped_gradient=True)
    ro.testing.check_approach(name, stopped_gradient=True)
    with pytest.raises(AssertionError, match="mine, gradient: wrong gradient"):
        ro.testing.check_approach(name)


def test_the_contract_notices_changed_input(
    registered: Callable[[Callable[..., Tensor]], str],
) -> None:
    with pytest.raises(AssertionError, match="mine, inputs"):
        ro.testing.check_approach(registered(changes_its_input))


def averaged(seen: Seen) -> Tensor:
    """Every model learns from the mean of all."""
    every = seen.logits.reshape(-1, *seen.logits.shape[-2:])
    return every.softmax(-1).mean(0).expand_as(seen.logits)


def naive_share(seen: Seen) -> Tensor:
    left = seen.logits.exp() * (1 - seen.excluded)
    return left / left.sum(-1, keepdim=True)


def keeps_a_flag(seen: Seen) -> Tensor:
    seen.kept["sure"] = seen.logits.amax(-1, keepdim=True) > 0
    return seen.target


def keeps_one_for_all(seen: Seen) -> Tensor:
    seen.kept["last"] = seen.logits.flatten(0, -2)
    return seen.target


@pytest.mark.parametrize(
    ("revise", "said"),
    [
        (averaged, "stacked and serial targets differ"),
        (naive_share, "a target is not finite, logits of ±10000"),
        (keeps_a_flag, "kept['sure'] must be [..., n or 1, *], of the dtype of the logits"),
        (keeps_one_for_all, "kept['last'] must be"),
    ],
)
def test_the_contract_catches_a_wrong_revision(revise: Callable[[Seen], Tensor], said: str) -> None:
    proden = ro.losses.get("proden")
    assert proden.memory is not None
    wrong = replace(proden, name="mine", memory=Memory(proden.memory.start, revise))
    with pytest.raises(AssertionError) as caught:
        ro.testing.check_approach(replace(ro.approach("proden"), name="mine", source=wrong))
    assert f"mine, memory: {said}" in str(caught.value)


def test_a_good_loss_of_a_user_passes_and_is_an_approach(
    registered: Callable[[Callable[..., Tensor]], str],
) -> None:
    def brier(logits: Tensor, excluded: Tensor) -> Tensor:
        return (logits.softmax(-1) * excluded).square().sum(-1)

    name = registered(brier)
    ro.testing.check_loss(name)

    def reference(F: list[list[float]], E: list[list[bool]]) -> float:
        p = torch.tensor(F, dtype=torch.float64).softmax(-1)
        return float((p * torch.tensor(E)).square().sum(-1).mean())

    ro.testing.check_approach(name, reference)
    assert name in ro.approaches(family="upper-bound")
    with pytest.raises(AssertionError, match="mine differs from its reference"):
        ro.testing.check_approach(name, lambda _F, _E: 0.0)


def test_names_are_taken_once() -> None:
    with pytest.raises(ValueError, match="a loss named 'log' is registered already"):
        ro.losses.register("log", family="x", paper="y")(naive_log)
