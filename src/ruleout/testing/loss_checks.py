"""The contract that every loss keeps, also those that users register."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from ruleout.losses import Loss, get
from ruleout.testing.cases import (
    Case,
    cases,
    close,
    expect,
    extreme_cases,
    gradient_of,
    make,
    run,
    same,
    shuffled,
)


def _values(loss: Loss, case: Case) -> Tensor:
    return loss(case.logits, case.excluded)


def shape(loss: Loss) -> None:
    """One number per example, of a single-label loss per class; any leading shape; dtype kept."""
    for lead in ((), (2, 3)):
        for dtype in (torch.float32, torch.float64):
            case = make(4, lead=lead)
            value = loss(case.logits.to(dtype), case.excluded)
            wanted = (*lead, 7, 4) if loss.kind == "single" else (*lead, 7)
            expect(tuple(value.shape) == wanted, f"expected {wanted}, got {tuple(value.shape)}")
            expect(value.dtype == dtype, f"expected {dtype}, got {value.dtype}")


def rows_apart(loss: Loss) -> None:
    """A row's loss depends on that row alone."""
    case = make(5)
    whole = _values(loss, case)
    for i in range(len(whole)):
        alone = loss(case.logits[i : i + 1], case.excluded[i : i + 1])
        same(alone[0], whole[i], "rows influence each other")


def class_order(loss: Loss) -> None:
    """Renaming the classes renames the entries and changes nothing else."""
    for k in (3, 5, 12):
        case, order = make(k), shuffled(k)
        turned = loss(case.logits[:, order], case.excluded[:, order])
        value = _values(loss, case)
        same(turned, value[:, order] if loss.kind == "single" else value, "the order matters")


def stacked_equals_serial(loss: Loss) -> None:
    """A stack of models gives each model's own values."""
    case = make(5, lead=(3, 2))
    stacked = _values(loss, case)
    for i in range(3):
        for j in range(2):
            alone = loss(case.logits[i, j], case.excluded)
            same(stacked[i, j], alone, "stacked and serial values differ")


def precision(loss: Loss) -> None:
    """Single precision agrees with double, and the logits matter."""
    steepest = 0.0
    for case in cases(single=False):
        close(loss(case.logits.float(), case.excluded), _values(loss, case), case.name)
        _, slope = gradient_of(lambda f, e=case.excluded: loss(f, e).square(), case.logits)  # type: ignore[misc]
        steepest = max(steepest, float(slope.abs().max()))
    expect(steepest > 0, "the gradient is zero everywhere")


def finite(loss: Loss) -> None:
    """Value and gradient stay finite at logits of ±1e4."""
    for case in extreme_cases(single=False):
        value, slope = gradient_of(partial(loss, excluded=case.excluded), case.logits)
        expect(bool(value.isfinite().all()), f"value is not finite at {case.name}")
        expect(bool(slope.isfinite().all()), f"gradient is not finite at {case.name}")


def gradient(loss: Loss) -> None:
    """The gradient is that of the value (finite differences)."""
    for case in cases(single=False):
        at = case.logits.clone().requires_grad_()
        good = torch.autograd.gradcheck(
            partial(loss, excluded=case.excluded), (at,), raise_exception=False
        )
        expect(good, f"wrong gradient at {case.name}")


def one(loss: Loss) -> None:
    """A single-label loss gives the same for one class, whether by matrix or by short cut."""
    if loss.kind != "single":
        return
    for case in cases(single=True):
        mask = case.excluded.to(case.logits)
        picked = (loss.matrix(case.logits) * mask).sum(-1)
        same(loss.per_example(case.logits, mask), picked, f"short cut differs at {case.name}")


LOSS_CHECKS: tuple[Callable[[Loss], None], ...] = (
    shape,
    rows_apart,
    class_order,
    stacked_equals_serial,
    finite,
    precision,
    gradient,
    one,
)


def check_loss(loss: str | Loss) -> None:
    """Raise AssertionError unless the loss keeps every contract.

    >>> check_loss("mae")
    """
    loss = get(loss) if isinstance(loss, str) else loss
    run(LOSS_CHECKS, loss, loss.name)
