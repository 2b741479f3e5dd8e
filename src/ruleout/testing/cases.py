"""Small batches on which the contracts are checked, and how results are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from ruleout.labels import draw

__all__ = [
    "Case",
    "cases",
    "close",
    "expect",
    "extreme_cases",
    "gradient_of",
    "make",
    "run",
    "same",
    "shuffled",
]

CLOSE = 1e-10

T = TypeVar("T")


class Case(NamedTuple):
    """Logits and what was ruled out, with a few words to name the case by."""

    name: str
    logits: Tensor
    excluded: Tensor


def make(
    k: int,
    law: str | int = "released",
    *,
    rows: int = 7,
    lead: tuple[int, ...] = (),
    single: bool = False,
    seed: int = 0,
) -> Case:
    """Make a batch of random logits (float64) and sets; `single` keeps one class per row."""
    random = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(*lead, rows, k, dtype=torch.float64, generator=random)
    y = torch.randint(k, (rows,), generator=random).numpy()
    sets = draw(y, k, 1 if single else law, seed)
    return Case(f"k={k}, sizes {law}", logits, torch.from_numpy(sets.excluded))


def cases(single: bool) -> Iterator[Case]:
    """Yield batches with mixed sizes, with every fixed size, and with classes absent."""
    for k in (2, 3, 5, 12):
        yield make(k, single=single)
        if not single:
            yield from (make(k, s) for s in range(1, k))
    wide = make(9, rows=2, single=single)  # two rows cannot rule out nine classes one by one
    yield Case("classes absent from the batch", wide.logits, wide.excluded)


def extreme_cases(single: bool) -> Iterator[Case]:
    """Yield the same batches with logits of ±1e4, in both precisions."""
    for case in cases(single):
        for dtype in (torch.float32, torch.float64):
            logits = (1e4 * case.logits.sign()).to(dtype)
            yield Case(f"{case.name}, logits of ±1e4, {dtype}", logits, case.excluded)
            one = torch.zeros_like(logits)
            one[..., 0] = 1e4
            yield Case(f"{case.name}, one logit of 1e4, {dtype}", one, case.excluded)
            yield Case(f"{case.name}, one logit of -1e4, {dtype}", -one, case.excluded)


def run(checks: Sequence[Callable[[T], None]], subject: T, name: str) -> None:
    """Run every check; whatever one raises becomes an AssertionError that names it."""
    for check in checks:
        try:
            check(subject)
        except Exception as error:
            what = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            raise AssertionError(f"{name}, {check.__name__}: {what}{error}") from None


def expect(truth: bool, sentence: str) -> None:
    """Raise the sentence unless it is true."""
    if not truth:
        raise AssertionError(sentence)


def same(a: Tensor, b: Tensor, sentence: str) -> None:
    """Raise the sentence unless the two are equal up to rounding."""
    expect(a.shape == b.shape, f"{sentence}: shapes {tuple(a.shape)} and {tuple(b.shape)}")
    scale = 1 + b.abs().max().item() if b.numel() else 1.0
    gap = (a - b).abs().max().item() if b.numel() else 0.0
    expect(gap <= CLOSE * scale, f"{sentence}: they differ by {gap:.3g}")


def close(rough: Tensor, exact: Tensor, name: str) -> None:
    """Raise unless a result in float32 agrees with the one in float64."""
    gap = (rough.double() - exact).abs().max().item()
    scale = 1 + exact.abs().max().item()
    expect(gap <= 1e-4 * scale, f"float32 differs from float64 by {gap:.3g} at {name}")


def shuffled(k: int) -> Tensor:
    """Return a random order of k classes, always the same one."""
    return torch.randperm(k, generator=torch.Generator().manual_seed(k))


def gradient_of(value: Callable[[Tensor], Tensor], logits: Tensor) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of its sum."""
    at = logits.clone().requires_grad_()
    result = value(at)
    (slope,) = torch.autograd.grad(result.sum(), at)
    return result.detach(), slope
