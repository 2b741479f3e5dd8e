"""Losses and their slopes: autograd from the loss to the logits, fused on a GPU.

A loss is some thirty small operations. On a GPU each costs a kernel that takes microseconds, more
than the matrix products of a linear grid, so for long runs the operations are traced once and
compiled to a few kernels. The mathematics stays where it is: in the losses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ruleout.methods import Approach

__all__ = ["Slopes"]

_LONG = 5_000  # steps from which compiling pays
_COMPILED: dict[Any, Callable[..., tuple[Tensor, Tensor]]] = {}


class Slopes:
    """From logits to the losses ``[A, C]`` and the slopes of their sum.

    Parameters
    ----------
    approach
        Which loss.
    steps
        How many steps the run will take.
    """

    def __init__(self, approach: Approach, steps: int) -> None:
        self.approach = approach
        options = getattr(approach.source, "options", {})
        self.fixed = not any(isinstance(value, Tensor) for value in options.values())
        self.long = steps >= _LONG
        self._key = (approach.name, repr(sorted(options.items())))

    def __call__(
        self, logits: Tensor, excluded: Tensor, prior: Tensor, weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return losses and slopes."""
        given = (logits, excluded, prior) if weight is None else (logits, excluded, prior, weight)
        if not (logits.is_cuda and self.long and self.fixed):
            return self._eager(*given)
        key = (self._key, *(_form(tensor) for tensor in given))
        if key not in _COMPILED:
            _COMPILED[key] = self._compiled(*given)
        return _COMPILED[key](*given)

    def _eager(
        self, logits: Tensor, excluded: Tensor, prior: Tensor, weight: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            loss = self.approach.batch_loss(leaf, excluded, prior=prior, weight=weight)
            (slope,) = torch.autograd.grad(loss.sum(), leaf)
        return loss.detach(), slope

    def _compiled(self, *given: Tensor) -> Callable[..., tuple[Tensor, Tensor]]:
        """Trace the operations of loss and slope, and compile them; else stay with them."""
        from torch.fx.experimental.proxy_tensor import make_fx

        def three(logits: Tensor, excluded: Tensor, prior: Tensor) -> tuple[Tensor, Tensor]:
            return self._eager(logits, excluded, prior)

        def four(
            logits: Tensor, excluded: Tensor, prior: Tensor, weight: Tensor
        ) -> tuple[Tensor, Tensor]:
            return self._eager(logits, excluded, prior, weight)

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = make_fx(three if len(given) == 3 else four)(*given)
                graph = make_fx(torch.func.functionalize(graph))(*given)  # nothing in place
                fused = torch.compile(graph, dynamic=False, fullgraph=True)
                with torch.no_grad():
                    fused(*given)
        except Exception:  # no compiler on this machine, or an operation it does not know
            return self._eager
        return _quietly(fused)


def _quietly(fused: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    def call(*given: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            return fused(*given)

    return call


def _form(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device
