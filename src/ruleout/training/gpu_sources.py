"""Kernels in CUDA, compiled by torch when they are first used."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TypeAlias

import torch
from torch import Tensor

#: Called with the numbers of blocks and of threads, the arguments, and the bytes a block shares.
Kernel: TypeAlias = Callable[..., None]


@cache
def compiled(
    file: str,
    name: str,
    values: tuple[tuple[str, str], ...],
    device: torch.device,
    only: str | None = None,
    shared: int = 0,
) -> Kernel | None:
    """Return a kernel of a CUDA source; None where torch finds no compiler (or `CUDA_HOME`).

    `values` are for names that the source leaves open; `only` is the one architecture that it is
    for; a block shares `shared` bytes.
    """
    source = files("ruleout.training").joinpath(file).read_text()
    head = "".join(f"#define {key} {value}\n" for key, value in values)
    try:
        with torch.cuda.device(device):
            kernel = torch.cuda._compile_kernel(head + source, name, compute_capability=only)
            kernel.set_shared_memory_config(shared)
    except (AttributeError, OSError, RuntimeError):
        return None
    return kernel  # type: ignore[no-any-return]


def channels_last(x: Tensor) -> Tensor:
    """Return images whose channels lie last, where kernels can read 16 bytes at once."""
    x = x.contiguous(memory_format=torch.channels_last)
    return x.clone() if x.data_ptr() % 16 else x
