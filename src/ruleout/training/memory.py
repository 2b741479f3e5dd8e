"""How much a device holds, and how many models it should train at once."""

from __future__ import annotations

import os
from functools import cache

import torch

__all__ = ["cache_size", "room"]


def room(device: torch.device) -> int:
    """Return the free memory of a device in bytes."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        held = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return int(free) + held
    return _free_memory()


def _free_memory() -> int:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable"):
                    return min(int(line.split()[1]) << 10, _limit())
    except OSError:
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
