"""Plans: which models train together, from what fits the memory and the cache."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ruleout.training.memory import cache_size, room
from ruleout.training.stack import Run

__all__ = ["Block", "Plan", "halves", "plan"]


class Block(NamedTuple):
    """Models that train together: some trials, and configurations from `start` to `stop`."""

    trials: tuple[int, ...]
    start: int
    stop: int

    @property
    def models(self) -> slice:
        """Which configurations."""
        return slice(self.start, self.stop)


class Plan(NamedTuple):
    """All blocks of a run, and how many trials and configurations they hold at most."""

    size: tuple[int, int]
    blocks: list[Block]


def plan(run: Run, stack: int | None, together: bool) -> Plan:
    """Cut a run into blocks.

    On a CPU a block should stay in the last-level cache: weights, gradients and moments of a
    larger one would come from memory in every step. On a GPU a block fills the memory.
    """
    trials, models = len(run.trials), len(run.grid)
    if not together:
        size = (1, 1)
    elif stack is not None:
        size = (trials if stack >= models else 1, min(stack, models))
    else:
        size = _size(trials, models, _fitting(run))
    order = sorted(range(trials), key=lambda t: -_items(run, t))
    rows = [tuple(order[i : i + size[0]]) for i in range(0, trials, size[0])]
    cuts = [(i, min(i + size[1], models)) for i in range(0, models, size[1])]
    return Plan(size, [Block(row, *cut) for row in rows for cut in cuts])


def _items(run: Run, trial: int) -> int:
    sets = run.trials[trial].sets
    return int(sets.sizes.sum()) if run.approach.form == "pairs-before" else len(sets)


def _size(trials: int, models: int, most: int) -> tuple[int, int]:
    """Spread `models` evenly over blocks of at most `most`; whole grids may share a block."""
    if most >= models:
        return min(trials, most // models), models
    blocks = -(-models // max(1, most))
    return 1, -(-models // blocks)


def _fitting(run: Run) -> int:
    """Return how many models fit the cache, or the memory of a GPU."""
    module = run.modules[0]
    weights = sum(p.numel() for p in module.parameters())
    widths = sum(p.shape[0] for p in module.parameters() if p.ndim > 1)
    bytes_each = run.dtype.itemsize * (5 * weights + 6 * run.size * widths)
    if run.device.type == "cuda":
        return max(1, int(0.7 * room(run.device)) // bytes_each)
    return max(1, min(cache_size(), room(run.device)) // bytes_each)


def halves(block: Block) -> list[Block]:
    """Cut a block in two; an empty list when it holds one model."""
    if block.stop - block.start > 1:
        middle = (block.start + block.stop) // 2
        return [block._replace(stop=middle), block._replace(start=middle)]
    if len(block.trials) > 1:
        middle = len(block.trials) // 2
        return [
            block._replace(trials=block.trials[:middle]),
            block._replace(trials=block.trials[middle:]),
        ]
    return []


def out_of_memory(error: BaseException) -> bool:
    """Say whether an error means that memory was short."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return isinstance(error, RuntimeError) and "DefaultCPUAllocator" in str(error)
