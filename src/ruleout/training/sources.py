"""CUDA sources of this folder, compiled when they are first needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import TypeAlias

import torch

__all__ = ["Kernel", "compiled"]

#: Called with the numbers of blocks and of threads, the arguments, and the bytes a block shares.
Kernel: TypeAlias = Callable[..., None]


@cache
def compiled(
    name: str,
    values: tuple[tuple[str, str], ...],
    device: torch.device,
    only: str | None = None,
    shared: int = 0,
) -> Kernel | None:
    """Return kernel `name` of ``{name}s.cu``; None where torch finds no compiler (or `CUDA_HOME`).

    Parameters
    ----------
    name
        Of the kernel.
    values
        Names that the source leaves open.
    device
        For which.
    only
        The one architecture that the source is for; None: any.
    shared
        Bytes that a block shares.
    """
    source = files("ruleout.training").joinpath(f"{name}s.cu").read_text()
    head = "".join(f"#define {key} {value}\n" for key, value in values)
    try:
        with torch.cuda.device(device):
            kernel = torch.cuda._compile_kernel(head + source, name, compute_capability=only)
            kernel.set_shared_memory_config(shared)
    except (AttributeError, OSError, RuntimeError):
        return None
    return kernel  # type: ignore[no-any-return]
