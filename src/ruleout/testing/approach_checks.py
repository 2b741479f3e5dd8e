"""The contract that every approach keeps, also those that users register."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from ruleout.methods import Approach, approach
from ruleout.testing.cases import (
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


def _is_single(row: Approach) -> bool:
    return row.form == "pairs-before"


def shape(row: Approach) -> None:
    """One scalar per stacked model, in the dtype of the logits."""
    for lead in ((), (2,), (2, 3), (0,)):
        for dtype in (torch.float32, torch.float64):
            case = make(4, lead=lead, single=_is_single(row))
            value = row.batch_loss(case.logits.to(dtype), case.excluded)
            expect(tuple(value.shape) == lead, f"expected shape {lead}, got {tuple(value.shape)}")
            expect(value.dtype == dtype, f"expected {dtype}, got {value.dtype}")


def stacked_equals_serial(row: Approach) -> None:
    """A stack of models gives each model's own scalar and gradient, sets shared or not."""
    case = make(5, lead=(3, 2), single=_is_single(row))
    value, slope = gradient_of(lambda f: row.batch_loss(f, case.excluded), case.logits)
    own = case.excluded.expand(3, 2, -1, -1)
    same(row.batch_loss(case.logits, own), value, "sets repeated per model change the value")
    for i in range(3):
        for j in range(2):
            alone = gradient_of(lambda f: row.batch_loss(f, case.excluded), case.logits[i, j])
            same(value[i, j], alone[0], "stacked and serial values differ")
            same(slope[i, j], alone[1], "stacked and serial gradients differ")


def gradient(row: Approach) -> None:
    """The gradient is that of the value (finite differences)."""
    for case in cases(_is_single(row)):
        at = case.logits.clone().requires_grad_()
        good = torch.autograd.gradcheck(
            partial(row.batch_loss, excluded=case.excluded), (at,), raise_exception=False
        )
        expect(good, f"wrong gradient at {case.name}")


def finite(row: Approach) -> None:
    """Value and gradient stay finite at logits of ±1e4."""
    for case in extreme_cases(_is_single(row)):
        value, slope = gradient_of(partial(row.batch_loss, excluded=case.excluded), case.logits)
        expect(bool(value.isfinite().all()), f"value is not finite at {case.name}")
        expect(bool(slope.isfinite().all()), f"gradient is not finite at {case.name}")


def precision(row: Approach) -> None:
    """Single precision agrees with double, and the logits matter."""
    steepest = 0.0
    for case in cases(_is_single(row)):
        wanted, slope = gradient_of(partial(row.batch_loss, excluded=case.excluded), case.logits)
        close(row.batch_loss(case.logits.float(), case.excluded), wanted, case.name)
        steepest = max(steepest, float(slope.abs().max()))
    expect(steepest > 0, "the gradient is zero everywhere")


def class_order(row: Approach) -> None:
    """Renaming the classes changes nothing."""
    for k in (3, 5, 12):
        case, order = make(k, single=_is_single(row)), shuffled(k)
        prior = (1 + torch.arange(k, dtype=torch.float64)).softmax(-1)
        value = row.batch_loss(case.logits, case.excluded, prior=prior)
        turned = row.batch_loss(case.logits[:, order], case.excluded[:, order], prior=prior[order])
        same(turned, value, "the order of the classes matters")


def row_order(row: Approach) -> None:
    """Shuffling the batch changes nothing."""
    case = make(5, single=_is_single(row))
    back = row.batch_loss(case.logits.flip(0), case.excluded.flip(0))
    same(back, row.batch_loss(case.logits, case.excluded), "the order of the rows matters")


def weights(row: Approach) -> None:
    """A weight of 2 is the row twice, a weight of 0 is no row."""
    case = make(4, single=_is_single(row))
    times = torch.tensor([1, 2, 0, 1, 3, 1, 1])
    repeated = row.batch_loss(
        case.logits.repeat_interleave(times, 0), case.excluded.repeat_interleave(times, 0)
    )
    weighted = row.batch_loss(case.logits, case.excluded, weight=times)
    same(weighted, repeated, "integer weights differ from repeated rows")
    nothing = row.batch_loss(case.logits, case.excluded, weight=torch.zeros(7))
    expect(bool(nothing.isfinite()), "a batch without weight is not finite")


def empty_rows(row: Approach) -> None:
    """A row that rules nothing out does not count."""
    case = make(4, single=_is_single(row))
    some = case.excluded.clone()
    some[2] = False
    keep = torch.tensor([0, 1, 3, 4, 5, 6])
    value, slope = gradient_of(lambda f: row.batch_loss(f, some), case.logits)
    same(value, row.batch_loss(case.logits[keep], some[keep]), "an empty row counts")
    expect(bool((slope[2] == 0).all()), "an empty row has a gradient")


def inputs(row: Approach) -> None:
    """Masks of any dtype are accepted, nothing is changed, wrong shapes are refused."""
    case = make(4, single=_is_single(row))
    before, mask = case.logits.clone(), case.excluded.double()
    value = row.batch_loss(case.logits, mask)
    for other in (case.excluded, case.excluded.int(), case.excluded.numpy()):
        same(row.batch_loss(case.logits, other), value, "the dtype of excluded matters")
    expect(torch.equal(before, case.logits), "the logits were changed")
    expect(torch.equal(mask, case.excluded.double()), "excluded was changed")
    expect(torch.equal(row.batch_loss(case.logits, mask), value), "a second call differs")
    try:
        row.batch_loss(case.logits, case.excluded[:, :-1])
    except ValueError:
        return
    raise AssertionError("excluded of the wrong width was accepted")


APPROACH_CHECKS: tuple[Callable[[Approach], None], ...] = (
    shape,
    stacked_equals_serial,
    gradient,
    finite,
    precision,
    class_order,
    row_order,
    weights,
    empty_rows,
    inputs,
)


def check_approach(
    row: str | Approach, reference: Callable[[list[Any], list[Any]], float] | None = None
) -> None:
    """Raise AssertionError unless the approach keeps every contract.

    Parameters
    ----------
    row
        An approach or its name.
    reference
        An independent way to compute ``batch_loss``, from nested lists of logits and bools.

    Examples
    --------
    >>> check_approach("log")
    """
    row = approach(row) if isinstance(row, str) else row
    run(APPROACH_CHECKS, row, row.name)
    if reference is None:
        return
    for case in cases(_is_single(row)):
        expected = case.logits.new_tensor(
            float(reference(case.logits.tolist(), case.excluded.tolist()))
        )
        found = row.batch_loss(case.logits, case.excluded)
        same(found, expected, f"{row.name} differs from its reference at {case.name}")
