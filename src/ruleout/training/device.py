"""The device: which one, how precise, how much memory it has, and torch's settings for one run."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import nn

from ruleout.labels.classes import find_name
from ruleout.labels.errors import brief

#: name: (dtype of the weights, dtype of the matrix products, whether TF32 is allowed)
PRECISIONS = {
    "float32": (torch.float32, torch.float32, False),
    "float64": (torch.float64, torch.float64, False),
    "tf32": (torch.float32, torch.float32, True),
    "bf16": (torch.float32, torch.bfloat16, False),
}


class Numbers(NamedTuple):
    device: torch.device
    dtype: torch.dtype  # of the weights
    compute: torch.dtype  # of the matrix products


def find_device(device: str | torch.device | None, precision: str) -> torch.device:
    """Return the device, if this machine has it and it can be so precise."""
    find_name("precision", precision, PRECISIONS)
    try:
        found = torch.device("cpu" if device is None else device)
    except RuntimeError:
        found = torch.device("meta")
    if found.type not in ("cpu", "cuda"):
        raise ValueError(f"unknown device {brief(device)}; say 'cpu' or 'cuda'")
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("this machine has no CUDA device that torch can use; say device='cpu'")
    if precision == "tf32" and found.type != "cuda":
        raise ValueError("tf32 needs a CUDA device; use precision='float32' on a CPU")
    return found


def room(device: torch.device) -> int:
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free) + held
    try:
        with open("/proc/meminfo") as lines:
            told = next(line for line in lines if line.startswith("MemAvailable"))
        return min(int(told.split()[1]) << 10, _limit())
    except (OSError, StopIteration):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    except (ValueError, OSError, AttributeError):
        return 4 << 30


def _limit() -> int:
    """Return what the control group of this process still grants."""
    try:
        with (
            open("/sys/fs/cgroup/memory.max") as most,
            open("/sys/fs/cgroup/memory.current") as now,
        ):
            return int(most.read()) - int(now.read())
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 62


@cache
def cache_size() -> int:
    """Return the bytes of the last-level cache, 16 MiB where the system does not say."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size") as text:
            return int(text.read().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return 16 << 20


_SMALL = 200e6  # operations of a step below which one thread does not wait for another


@contextmanager
def matmul(rounded: bool) -> Iterator[None]:
    """Say whether matrix products and convolutions may round to TF32; torch lets the latter."""
    kinds: list[Any] = [torch.backends.cuda.matmul, torch.backends.cudnn.conv]  # type: ignore[attr-defined]
    before = [kind.fp32_precision for kind in kinds]
    for kind in kinds:
        kind.fp32_precision = "tf32" if rounded else "ieee"
    try:
        yield
    finally:
        for kind, was in zip(kinds, before, strict=True):
            kind.fp32_precision = was


def tf32() -> bool:
    return str(torch.backends.cuda.matmul.fp32_precision) == "tf32"


@contextmanager
def threads(device: torch.device, module: nn.Module, models: int, size: int) -> Iterator[None]:
    """Let one thread take small steps: two save little there.

    Where another program needs the second core, they were seen to take twenty times as long.
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
