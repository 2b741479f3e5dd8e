"""Settings of torch that hold for one run alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

__all__ = ["matmul", "tf32", "threads"]

_SMALL = 200e6  # operations of a step below which one thread does not wait for another


@contextmanager
def matmul(rounded: bool) -> Iterator[None]:
    """Allow TF32 for this run alone."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "tf32" if rounded else "ieee"
    try:
        yield
    finally:
        settings.fp32_precision = before


def tf32() -> bool:
    """Say whether matrix products on a GPU may round what they multiply to TF32."""
    return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"


@contextmanager
def threads(device: torch.device, module: nn.Module, models: int, size: int) -> Iterator[None]:
    """Let one thread take small steps.

    A second thread saves little there, and where another program needs the second core, both
    threads wait for each other: such runs were seen to take twenty times as long.
    """
    weights = sum(p.numel() for p in module.parameters())
    before = torch.get_num_threads()
    small = device.type == "cpu" and 6 * weights * size * models < _SMALL
    try:
        if small and before > 1:
            torch.set_num_threads(1)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)
