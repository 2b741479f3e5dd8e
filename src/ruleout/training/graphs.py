"""CUDA graphs: a step is captured once for each shape of batch and then only replayed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from ruleout.training.batches import Shape

if TYPE_CHECKING:
    from ruleout.training.stack import Stack

__all__ = ["Graphs"]

_WARM = 3  # steps before a capture, as PyTorch asks for


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from freeing graphs of earlier runs just now: a capture does not allow it."""
    working = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if working:
            gc.enable()


class Graphs:
    """The captured steps of a stack; the number of the step is counted on the device."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.place = torch.zeros(1, dtype=torch.int64, device=stack.run.device)
        self.captured: dict[Shape, torch.cuda.CUDAGraph] = {}

    def epoch(self) -> None:
        """Replay all steps of an epoch."""
        self.place.zero_()
        for shape in self.stack.shapes:
            if shape not in self.captured:
                self.captured[shape] = self._capture(shape)
            self.captured[shape].replay()

    def _step(self, shape: Shape) -> None:
        self.stack.step(self.place, shape)
        self.place += 1

    def _capture(self, shape: Shape) -> torch.cuda.CUDAGraph:
        """Capture a step. The steps before it, which PyTorch asks for, leave no trace."""
        held = [self.place, self.stack.total, *self.stack.net.parameters]
        held += [moment for moments in self.stack.optimizer.moments for moment in moments]
        copies = [tensor.clone() for tensor in held]
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._step(shape)
                self.place.copy_(copies[0])
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        # The thread that lays out the next epoch may take pinned memory meanwhile.
        with _uncollected(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            self._step(shape)
        for tensor, copy in zip(held, copies, strict=True):
            tensor.copy_(copy)
        return graph
