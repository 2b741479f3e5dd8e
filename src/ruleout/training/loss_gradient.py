"""Losses and their slopes: autograd from the loss to the logits, fused on a GPU.

A loss is some thirty small operations. On a GPU each costs a kernel that takes microseconds, more
than the matrix products of a linear grid, so for long runs the operations are traced once and
compiled to a few kernels. The mathematics stays where it is: in the losses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ruleout.methods import Approach

_LONG = 5_000  # steps from which compiling pays
Slope: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
_COMPILED: dict[Any, Slope] = {}


class LossGradient:
    """From logits to the losses ``[A, C]`` and the slopes of their sum, for a run of some steps."""

    def __init__(self, approach: Approach, steps: int) -> None:
        self.approach = approach
        options = approach.options
        self.fixed = not any(isinstance(value, Tensor) for value in options.values())
        self.long = steps >= _LONG
        self._key = (approach.name, approach.source.function, repr(sorted(options.items())))

    def __call__(
        self,
        logits: Tensor,
        excluded: Tensor,
        prior: Tensor,
        weight: Tensor | None,
        rate: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        extra = {"prior": prior, "weight": weight, "rate": rate}
        names = tuple(name for name, tensor in extra.items() if tensor is not None)
        given = (logits, excluded, *(tensor for tensor in extra.values() if tensor is not None))
        if not (logits.is_cuda and self.long and self.fixed):
            return self._eager(names, *given)
        key = (self._key, names, *(_form(tensor) for tensor in given))
        if key not in _COMPILED:
            _COMPILED[key] = self._compile(partial(self._eager, names), *given)
        return _COMPILED[key](*given)

    def _eager(
        self, names: tuple[str, ...], logits: Tensor, excluded: Tensor, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            given = dict(zip(names, extra, strict=True))
            loss = self.approach.trusted_loss(leaf, excluded, **given)
            (slope,) = torch.autograd.grad(loss, leaf, torch.ones_like(loss))
        return loss.detach(), slope

    def _compile(self, eager: Slope, *given: Tensor) -> Slope:
        from torch.fx.experimental.proxy_tensor import make_fx

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = make_fx(eager)(*given)
                graph = make_fx(torch.func.functionalize(graph))(*given)  # nothing in place
                fused = torch.compile(graph, dynamic=False, fullgraph=True)

                def quiet(*given: Tensor) -> tuple[Tensor, Tensor]:
                    with torch.no_grad():
                        found: tuple[Tensor, Tensor] = fused(*given)
                    return found

                quiet(*given)
        except Exception:  # no compiler on this machine, or an operation it does not know
            return eager
        return quiet


def _form(tensor: Tensor) -> tuple[Any, ...]:
    return tuple(tensor.shape), tensor.stride(), tensor.dtype, tensor.device
