r"""Adam, AdamW and SGD, with a learning rate and a weight decay for every stacked model.

Parameters are ``[T, C, ...]``: trials, then configurations. Adam is that of the paper: weight decay
is added to the gradient (L2), :math:`\beta = (0.9, 0.999)`, :math:`\epsilon = 10^{-8}`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple, TypeAlias

import torch
from torch import Tensor

from ruleout.labels.errors import nearest

At: TypeAlias = tuple[slice, slice]  # some trials, some configurations

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Rates(NamedTuple):
    r"""What a step multiplies with: one value per stacked model.

    With the bias corrections :math:`b_1 = 1-\beta_1^t` and :math:`b_2 = 1-\beta_2^t`, Adam's step
    is :math:`\eta m / b_1 / (\sqrt{v / b_2} + \epsilon)`, which is
    :math:`(\eta \sqrt{b_2} / b_1) \, m / (\sqrt v + \epsilon \sqrt{b_2})`.
    """

    size: Tensor  # [A, C]: η √b₂ / b₁, or η where there is no correction
    epsilon: Tensor  # [A, 1]: ε √b₂
    decay: Tensor  # [C]: weight decay
    shrink: Tensor  # [C]: 1 - η · weight decay


class Product(NamedTuple):
    """The gradient of a first layer, not multiplied yet."""

    slope: Tensor  # [A, C · out, B]
    x: Tensor  # [A, B, width]

    def value(self) -> Tensor:
        """Multiply."""
        return torch.bmm(self.slope, self.x)


@dataclass
class Optimizer:
    """Moments of all parameters, and the update.

    Attributes
    ----------
    name
        ``adam``, ``adamw`` or ``sgd``.
    moments
        For each parameter a list of tensors of its shape: two for Adam, none for SGD.
    """

    name: str
    moments: list[list[Tensor]] = field(default_factory=list)

    def start(self, parameters: Sequence[Tensor]) -> None:
        """Set all moments to zero."""
        count = OPTIMIZERS[self.name].moments
        self.moments = [[torch.zeros_like(p) for _ in range(count)] for p in parameters]

    def move(
        self, place: int, parameter: Tensor, at: At, grad: Tensor | Product, by: Rates
    ) -> None:
        """Move ``parameter[at]``, number `place` of all; `grad` is overwritten."""
        trials, models = at
        own = Rates(by.size[at], by.epsilon[trials], by.decay[models], by.shrink[models])
        weights, moments = parameter[at], [moment[at] for moment in self.moments[place]]
        if isinstance(grad, Product):
            from ruleout.training.gpu_kernels import (
                move,  # needs Triton, as those who give products
            )

            if move(self.name, weights, grad, moments, own):
                return
            grad = grad.value().view_as(weights)
        fused = _kernel() if parameter.is_cuda else None
        if fused is not None:
            fused(self.name, weights, grad, moments, own)
            return
        if moments and weights[0, 0].numel() >= _LARGE and hasattr(torch, "_fused_adam_"):
            _one_by_one(self.name, weights, grad, moments, own)
            return
        wide = (...,) + (None,) * (parameter.ndim - 2)
        OPTIMIZERS[self.name].step(weights, grad, moments, Rates(*(rate[wide] for rate in own)))


@cache
def _kernel() -> Callable[..., None] | None:
    """Return the fused update, where Triton is there."""
    try:
        from ruleout.training.gpu_kernels import update
    except ImportError:
        return None
    return update


_LARGE = 1 << 16  # weights of a model from which torch's own kernel for one model pays
_LATE = torch.tensor(1e12)  # a step at which Adam's bias corrections are 1: the rates hold them


def _one_by_one(name: str, p: Tensor, g: Tensor, moments: list[Tensor], by: Rates) -> None:
    """Move large models one after another, each in a single pass of torch's fused Adam."""
    sizes, epsilons, decays = by.size.tolist(), by.epsilon.tolist(), by.decay.tolist()
    if name == "adamw":
        _shrink(p, by)
        decays = [0.0] * len(decays)
    for t, c in product(range(len(p)), range(p.shape[1])):
        torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls
            [p[t, c]], [g[t, c]], [moments[0][t, c]], [moments[1][t, c]], [], [_LATE],
            lr=sizes[t][c], beta1=BETA1, beta2=BETA2, weight_decay=decays[c],
            eps=epsilons[t][0], amsgrad=False, maximize=False,
        )  # fmt: skip


def _shrink(p: Tensor, by: Rates) -> None:
    p.mul_(by.shrink[(...,) + (None,) * (p.ndim - 2)])


def _adam(p: Tensor, g: Tensor, moments: list[Tensor], by: Rates) -> None:
    _move(p, g.addcmul_(p, by.decay), moments, by)


def _adamw(p: Tensor, g: Tensor, moments: list[Tensor], by: Rates) -> None:
    p.mul_(by.shrink)
    _move(p, g, moments, by)


def _move(p: Tensor, g: Tensor, moments: list[Tensor], by: Rates) -> None:
    m, v = moments
    m.lerp_(g, 1 - BETA1)
    v.mul_(BETA2).addcmul_(g, g, value=1 - BETA2)
    torch.sqrt(v, out=g).add_(by.epsilon)
    torch.div(m, g, out=g)
    p.addcmul_(g, by.size, value=-1)


def _sgd(p: Tensor, g: Tensor, _moments: list[Tensor], by: Rates) -> None:
    p.addcmul_(g.addcmul_(p, by.decay), by.size, value=-1)


class _Kind(NamedTuple):
    moments: int
    step: Callable[[Tensor, Tensor, list[Tensor], Rates], None]


OPTIMIZERS = {"adam": _Kind(2, _adam), "adamw": _Kind(2, _adamw), "sgd": _Kind(0, _sgd)}


def check_optimizer(name: str) -> str:
    """Return the name, or say what the names are."""
    if name not in OPTIMIZERS:
        say = f"the optimizers are {', '.join(OPTIMIZERS)}"
        raise ValueError(f"unknown optimizer {name!r}; {nearest(name, OPTIMIZERS, say)}")
    return name


def rates(name: str, steps: Tensor, learning_rate: Tensor, decay: Tensor) -> Rates:
    """Return the rates of many steps at once.

    Parameters
    ----------
    name
        Of the optimizer.
    steps
        float64 ``[..., A]``: the number of the step, from 1, of each active trial.
    learning_rate, decay
        float64 ``[C]``.

    Returns
    -------
    Rates
        `size` is ``[..., A, C]`` and `epsilon` is ``[..., A, 1]``, all in float64.
    """
    corrected = OPTIMIZERS[name].moments == 2
    root = (1 - BETA2**steps).sqrt() if corrected else torch.ones_like(steps)
    first = 1 - BETA1**steps if corrected else torch.ones_like(steps)
    size = (root / first).unsqueeze(-1) * learning_rate
    return Rates(size, EPSILON * root.unsqueeze(-1), decay, 1 - learning_rate * decay)
