"""Perceptrons with one hidden layer on a GPU, by kernels that pass over the hidden layer once."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from ruleout.training.nets import Dense, Move, dense_layers
from ruleout.training.optimizers import Product

__all__ = ["dense"]


def dense(
    modules: Sequence[nn.Module],
    models: int,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    compute: torch.dtype,
) -> Dense:
    """Return the fastest stack that serves these modules; the arguments are those of `Dense`."""
    kind = _Perceptrons if _served(modules[0], dtype, device, compute) else Dense
    return kind(modules, models, width, dtype, device, compute)


def _served(
    module: nn.Module, dtype: torch.dtype, device: torch.device, compute: torch.dtype
) -> bool:
    if device.type != "cuda" or not dtype == compute == torch.float32:
        return False
    if find_spec("triton") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    from ruleout.training.kernels import CLASSES
    from ruleout.training.moves import ready

    layers = dense_layers(module) or []
    return len(layers) == 2 and layers[1].out_features <= CLASSES and ready(device)


class _Perceptrons(Dense):
    """One hidden layer and few classes, in float32 or TF32."""

    def _forward(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        from ruleout.training.kernels import up

        hidden = self._first(x)
        weight, bias = (p[: len(hidden)] for p in self.parameters[1:])
        return up(hidden, weight, bias).transpose(2, 3), [hidden]

    def _backward(self, x: Tensor, reads: list[Tensor], slope: Tensor, move: Move) -> None:
        from ruleout.training.moves import down

        (hidden,), active = reads, len(slope)
        every = (slice(0, active), slice(0, self.models))
        weight, bias = down(hidden, self.parameters[1][:active], slope.contiguous())
        move(1, every, weight)
        move(2, every, bias)
        move(0, every, Product(hidden.flatten(1, 2), x))
