"""Linear models and multilayer perceptrons, on flattened input."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from torch import nn

__all__ = ["linear", "mlp"]


def linear(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Linear model, d–k."""
    return mlp(shape, classes, hidden=())


def mlp(shape: tuple[int, ...], classes: int, *, hidden: Sequence[int] = (500,)) -> nn.Module:
    """Multilayer perceptron, by default d–500–k as in the paper: ReLU, no batch norm."""
    widths = [prod(shape), *hidden]
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    for narrow, wide in pairwise(widths):
        layers += [nn.Linear(narrow, wide), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))
