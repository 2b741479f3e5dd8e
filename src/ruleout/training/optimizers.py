r"""Optimizers, with a learning rate and a weight decay for every stacked model.

Parameters are ``[T, C, ...]``: trials, then configurations. Adam is that of the paper: weight decay
is added to the gradient (L2), :math:`\beta = (0.9, 0.999)`, :math:`\epsilon = 10^{-8}`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from math import cos, inf, pi
from numbers import Real
from types import ModuleType
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ruleout.labels.classes import find_name
from ruleout.labels.errors import brief

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
    shrink: Tensor  # [C]: 1 - η · weight decay; [A, C] where η follows a schedule


class Product(NamedTuple):
    """The gradient of a first layer, not multiplied yet."""

    slope: Tensor  # [A, C · out, B]
    x: Tensor  # [A, B, width]

    def value(self) -> Tensor:
        return torch.bmm(self.slope, self.x)


#: ``(weights, gradient, moments, rates)``: moves the weights, in place.
Step: TypeAlias = Callable[[Tensor, Tensor, list[Tensor], Rates], None]
#: The same; False where it cannot serve what it is given.
Fused: TypeAlias = Callable[[Tensor, Tensor, list[Tensor], Rates], bool]


def _plain_factors(steps: Tensor) -> tuple[Tensor, Tensor]:
    return torch.ones_like(steps), torch.full_like(steps, EPSILON)


def _adam_factors(steps: Tensor) -> tuple[Tensor, Tensor]:
    root = (1 - BETA2**steps).sqrt()
    return root / (1 - BETA1**steps), EPSILON * root


@dataclass(frozen=True)
class OptimizerKind:
    """A kind of optimizer: its step, and faster forms of the same step where there are any."""

    #: ``(weights, gradient, moments, by)``, all ``[A, C, ...]`` but `by`, whose ``size`` (the
    #: learning rate times its factor), ``epsilon``, ``decay`` (weight decay) and ``shrink``
    #: (1 - learning rate · weight decay) broadcast against them. Moves weights and moments in
    #: place; the gradient may be overwritten
    step: Step
    moments: int = 0  #: how many tensors of the shape of the weights it remembers, zero at first
    #: from the number of the step, float64 ``[..., A]`` from 1, to the factor of the learning rate
    #: and to epsilon; Adam's bias corrections, for example
    factors: Callable[[Tensor], tuple[Tensor, Tensor]] = _plain_factors
    fused_cpu: Fused | None = None  #: the step for large models on a CPU; None: there is none
    fused_gpu: Fused | None = None  #: the step by a Triton kernel; None: there is none
    #: the step of a first layer by a gradient that is never written down, by a CUDA kernel
    fused_product: Callable[[Tensor, Product, list[Tensor], Rates], bool] | None = None


#: The optimizers by name.
OPTIMIZERS: dict[str, OptimizerKind] = {}


def register_optimizer(
    name: str,
    *,
    moments: int = 0,
    factors: Callable[[Tensor], tuple[Tensor, Tensor]] = _plain_factors,
) -> Callable[[Step], Step]:
    """Enter an optimizer's step under a name; see :class:`OptimizerKind` for what it is given.

    Without fused forms it runs as it is written, on every device and for models of every size.

    >>> @register_optimizer("sign-sgd")
    ... def sign_sgd(weights, gradient, moments, by):
    ...     weights.mul_(by.shrink).addcmul_(gradient.sign_(), by.size, value=-1)
    >>> OPTIMIZERS.pop("sign-sgd").moments
    0
    """
    if name in OPTIMIZERS:
        raise ValueError(f"an optimizer named {name!r} is registered already; choose another name")

    def enter(step: Step) -> Step:
        OPTIMIZERS[name] = OptimizerKind(step, moments, factors)
        return step

    return enter


def check_optimizer(name: str) -> str:
    find_name("optimizer", name, OPTIMIZERS)
    return name


class Optimizer:
    """The moments of all parameters (a list for each), and the step."""

    def __init__(self, name: str, parameters: Sequence[Tensor]) -> None:
        self.kind = OPTIMIZERS[name]
        count = range(self.kind.moments)
        self.moments = [[torch.zeros_like(p) for _ in count] for p in parameters]

    def move(
        self, place: int, parameter: Tensor, at: At, grad: Tensor | Product, by: Rates
    ) -> None:
        """Move ``parameter[at]``, number `place` of all; `grad` is overwritten."""
        (trials, models), kind = at, self.kind
        own, weights, moments = by, parameter, self.moments[place]
        if at != (slice(0, len(weights)), slice(0, weights.shape[1])):  # not all of them
            shrink = by.shrink[models if by.shrink.ndim == 1 else at]
            own = Rates(by.size[at], by.epsilon[trials], by.decay[models], shrink)
            weights, moments = weights[at], [moment[at] for moment in moments]
        if isinstance(grad, Product):
            if kind.fused_product is not None and kind.fused_product(weights, grad, moments, own):
                return
            grad = grad.value().view_as(weights)
        fused = kind.fused_gpu if weights.is_cuda else kind.fused_cpu
        if fused is not None and fused(weights, grad, moments, own):
            return
        wide = (1,) * (parameter.ndim - 2)
        kind.step(weights, grad, moments, Rates(*(one.view(*one.shape, *wide) for one in own)))


def rates(
    name: str, steps: Tensor, learning_rate: Tensor, decay: Tensor, pace: Tensor | None = None
) -> Rates:
    """Return the rates of many steps at once, in float64: `size` is ``[..., A, C]``.

    `steps` ``[..., A]`` counts those of each active trial from 1, `learning_rate` and `decay` are
    ``[C]``, `pace` ``[..., A]`` is what the learning rate is multiplied with.
    """
    factor, epsilon = OPTIMIZERS[name].factors(steps)
    if pace is not None:
        learning_rate = pace.unsqueeze(-1) * learning_rate
    size = factor.unsqueeze(-1) * learning_rate
    return Rates(size, epsilon.unsqueeze(-1), decay, 1 - learning_rate * decay)


#: Schedules by name: from the share of the training that is done to a factor of the learning rate.
SCHEDULES: dict[str, Callable[[float], float]] = {
    "cosine": lambda done: (1 + cos(pi * done)) / 2,
    "linear": lambda done: 1 - done,
    "one-cycle": lambda done: (
        (1 - cos(pi * (done / 0.3 if done < 0.3 else 1 + (done - 0.3) / 0.7))) / 2
    ),  # up for three tenths, then down
}


class Pace(NamedTuple):
    """What the learning rate is multiplied with, step by step."""

    schedule: Callable[[float], float] | None
    warmup: float  # epochs
    epochs: int

    def factors(self, done: NDArray[np.float64], ended: NDArray[np.float64]) -> Tensor:
        """Return the factors of steps, from the epochs done before each and after it."""
        found = np.ones_like(done) if self.warmup == 0 else np.minimum(1, ended / self.warmup)
        if self.schedule is not None:
            found = found * np.vectorize(self.schedule, otypes=[float])(done / self.epochs)
        return torch.from_numpy(found)


def find_pace(
    schedule: str | Callable[[float], float] | None, warmup: float, epochs: int
) -> Pace | None:
    """Return the pace of a run; None: the learning rate stays."""
    if isinstance(schedule, str):
        schedule = find_name("schedule", schedule, SCHEDULES)
    if not isinstance(warmup, Real) or not 0 <= warmup <= epochs:
        raise ValueError(f"warmup must lie between 0 and the {epochs} epochs, not {brief(warmup)}")
    if schedule is None and not warmup:
        return None
    for done in (0.0, 0.5, 1.0):
        found = 1.0 if schedule is None else schedule(done)
        if not hasattr(found, "__float__") or not 0 <= float(found) < inf:
            raise ValueError(f"the schedule makes {brief(found)} of {done:g}; return zero or above")
    return Pace(schedule, float(warmup), epochs)


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


def _sgd_momentum(p: Tensor, g: Tensor, moments: list[Tensor], by: Rates) -> None:
    p.addcmul_(moments[0].mul_(0.9).add_(g.addcmul_(p, by.decay)), by.size, value=-1)


_LARGE = 1 << 16  # weights of a model from which torch's own kernel for one model pays
_LATE = torch.tensor(1e12)  # a step at which Adam's bias corrections are 1: the rates hold them


def _one_by_one(p: Tensor, g: Tensor, moments: list[Tensor], by: Rates, *, decoupled: bool) -> bool:
    """Move large models one after another, each in a single pass of torch's fused Adam."""
    if p[0, 0].numel() < _LARGE or not hasattr(torch, "_fused_adam_"):
        return False
    sizes, epsilons, decays = by.size.tolist(), by.epsilon.tolist(), by.decay.tolist()
    if decoupled:
        p.mul_(by.shrink[(...,) + (None,) * (p.ndim - 2)])
        decays = [0.0] * len(decays)
    for t, c in product(range(len(p)), range(p.shape[1])):
        torch._fused_adam_(  # what torch.optim.Adam(fused=True) calls
            [p[t, c]], [g[t, c]], [moments[0][t, c]], [moments[1][t, c]], [], [_LATE],
            lr=sizes[t][c], beta1=BETA1, beta2=BETA2, weight_decay=decays[c],
            eps=epsilons[t][0], amsgrad=False, maximize=False,
        )  # fmt: skip
    return True


@cache
def _gpu_kernels() -> ModuleType | None:
    try:
        from ruleout.training import gpu_kernels
    except ImportError:  # no Triton
        return None
    return gpu_kernels


def _by_kernel(
    p: Tensor, grad: Tensor | Product, moments: list[Tensor], by: Rates, *, kind: str
) -> bool:
    kernels, decoupled = _gpu_kernels(), kind == "adamw"
    if by.shrink.ndim > 1 and not decoupled:  # kernels shrink all trials alike, or not at all
        by = by._replace(shrink=by.decay)
    if kernels is None or by.shrink.ndim > 1:
        return False
    if isinstance(grad, Product):
        return bool(kernels.move(p, grad, moments, by, decoupled))
    kernels.update(kind, p, grad, moments, by)
    return True


def _adam_kind(step: Step, kind: str) -> OptimizerKind:
    on_cpu, on_gpu = partial(_one_by_one, decoupled=kind == "adamw"), partial(_by_kernel, kind=kind)
    return OptimizerKind(step, 2, _adam_factors, on_cpu, on_gpu, fused_product=on_gpu)


OPTIMIZERS |= {
    "adam": _adam_kind(_adam, "adam"),
    "adamw": _adam_kind(_adamw, "adamw"),
    "sgd": OptimizerKind(_sgd, fused_gpu=partial(_by_kernel, kind="sgd")),
    "sgd-momentum": OptimizerKind(_sgd_momentum, moments=1),
}
