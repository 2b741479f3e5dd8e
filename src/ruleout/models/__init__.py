"""Models: from the shape of an example and the number of classes to logits."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from inspect import signature
from itertools import pairwise
from math import prod
from numbers import Integral
from typing import Any

import torch
from torch import Tensor, nn

from ruleout.labels.classes import find_name
from ruleout.labels.errors import InputError, brief

__all__ = ["MODELS", "build", "densenet22", "linear", "mlp", "resnet32", "resnet34"]


def linear(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Linear model, d–k."""
    return mlp(shape, classes, hidden=())


def mlp(
    shape: tuple[int, ...],
    classes: int,
    *,
    hidden: int | Sequence[int] = (500,),
    norm: bool = False,
) -> nn.Module:
    """Multilayer perceptron, by default d–500–k as in the paper: ReLU, no batch norm.

    `norm` puts a batch norm after every ReLU. With batches of 16 rows it is a strong
    regulariser, for some hundred rows and features of one size.
    """
    own: list[Any] = list(hidden) if isinstance(hidden, Iterable) else [hidden]
    if not all(isinstance(width, Integral) and int(width) > 0 for width in own):
        raise InputError(f"hidden is {brief(hidden)}", "give whole numbers of at least 1")
    widths = [prod(shape), *own]
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) > 1 else []
    for narrow, wide in pairwise(widths):
        layers += [nn.Linear(narrow, wide), nn.ReLU(), *([nn.BatchNorm1d(wide)] if norm else [])]
    return nn.Sequential(*layers, nn.Linear(widths[-1], classes))


def _conv(inside: int, outside: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(inside, outside, size, stride, padding=size // 2, bias=False)


def _channels(shape: tuple[int, ...]) -> int:
    if len(shape) != 3:
        raise ValueError(
            f"a convolutional model reads images (channels, height, width), not {shape}; "
            "say shape=(channels, height, width), or use 'linear' or 'mlp' for flat features"
        )
    return shape[0]


def _started(model: nn.Module) -> nn.Module:
    """Start convolutions as He et al. 2015 do, by fan-out."""
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")
    return model


class _Basic(nn.Module):
    """Two 3×3 convolutions beside a shortcut, which is projected where the shape changes."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _conv(inside, outside, stride=stride),
            nn.BatchNorm2d(outside),
            nn.ReLU(),
            _conv(outside, outside),
            nn.BatchNorm2d(outside),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inside != outside:
            projection = _conv(inside, outside, 1, stride)
            self.shortcut = nn.Sequential(projection, nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def _resnet(
    shape: tuple[int, ...], classes: int, channels: Sequence[int], blocks: Sequence[int]
) -> nn.Module:
    width = channels[0]
    layers: list[nn.Module] = [_conv(_channels(shape), width), nn.BatchNorm2d(width), nn.ReLU()]
    for stage, (outside, count) in enumerate(zip(channels, blocks, strict=True)):
        for place in range(count):
            layers.append(_Basic(width, outside, 2 if stage and not place else 1))
            width = outside
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]
    return _started(nn.Sequential(*layers, *head))


def resnet32(shape: tuple[int, ...], classes: int) -> nn.Module:
    """CIFAR ResNet of depth 32, what the released code runs as "ResNet": 466,906 parameters."""
    return _resnet(shape, classes, (16, 32, 64), (5, 5, 5))


def resnet34(shape: tuple[int, ...], classes: int) -> nn.Module:
    """ResNet-34 of the text (basic blocks 3-4-6-3), with a 3×3 stem for small images."""
    return _resnet(shape, classes, (64, 128, 256, 512), (3, 4, 6, 3))


class _Dense(nn.Module):
    """A bottleneck layer that adds its output to its input as further channels."""

    def __init__(self, inside: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.BatchNorm2d(inside),
            nn.ReLU(),
            _conv(inside, 4 * growth, 1),
            nn.BatchNorm2d(4 * growth),
            nn.ReLU(),
            _conv(4 * growth, growth),
        )

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], 1)


def densenet22(shape: tuple[int, ...], classes: int) -> nn.Module:
    """DenseNet of depth 22: three blocks of three bottleneck layers, growth 12, compression 2.

    71,686 parameters for CIFAR-10.
    """
    growth, width = 12, 24
    layers: list[nn.Module] = [_conv(_channels(shape), width)]
    for block in range(3):
        if block:
            half = width // 2
            layers += [nn.BatchNorm2d(width), nn.ReLU(), _conv(width, half, 1), nn.AvgPool2d(2)]
            width = half
        for _ in range(3):
            layers.append(_Dense(width, growth))
            width += growth
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes)]
    return _started(nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), *head))


#: Models by name; each is a function of the shape of an example and the number of classes.
MODELS: dict[str, Callable[..., nn.Module]] = {
    one.__name__: one for one in (linear, mlp, resnet32, densenet22, resnet34)
}


def build(
    model: str | nn.Module | Callable[..., nn.Module],
    shape: int | tuple[int, ...],
    classes: int,
    *,
    seed: int,
    **options: Any,
) -> nn.Module:
    """Build a model whose first weights depend on the seed alone.

    `model` is a name of :data:`MODELS`, a function ``(shape, classes, **options) → nn.Module``, or
    a module: each model is then a copy of it, whatever the seed. `shape` is that of one example,
    ``(64,)`` or ``(3, 32, 32)``; a number means a flat one. `options` go to the model, for example
    ``hidden=(300, 100)``. The global random state is left as it was.

    >>> build("mlp", 64, 10, seed=0, hidden=(20,))
    Sequential(
      (0): Linear(in_features=64, out_features=20, bias=True)
      (1): ReLU()
      (2): Linear(in_features=20, out_features=10, bias=True)
    )
    """
    if isinstance(model, str):
        name, model = model, find_name("model", model, MODELS)
        _check_options(name, options)
    if isinstance(model, nn.Module):
        if options:
            raise ValueError("a module takes no model options; give a function that makes it")
        return deepcopy(model)
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    with seeded(seed):
        try:
            made = model(dimensions, classes, **options)
        except TypeError as error:
            say = "give a function that is called as model(shape, classes)"
            raise InputError(f"model({dimensions}, {classes}) failed: {error}", say) from error
    if not isinstance(made, nn.Module):
        problem = f"the model function returned a {type(made).__name__}"
        raise InputError(problem, "return an nn.Module")
    return deepcopy(made)  # it may hold what other models hold, too


@contextmanager
def seeded(seed: int, devices: Iterable[torch.device] = ()) -> Iterator[None]:
    """Have torch draw from a seed; then the random state of these devices is as it was."""
    with torch.random.fork_rng(devices=devices):
        # Where there is no GPU, torch.manual_seed keeps a traceback for each kind of device.
        gpu = torch.cuda.is_available()
        (torch.manual_seed if gpu else torch.default_generator.manual_seed)(seed)
        yield


def _check_options(model: str, options: Iterable[str]) -> None:
    known = list(signature(MODELS[model]).parameters)[2:]
    for name in options:
        if name not in known:
            say = f"its options are {', '.join(known)}" if known else "it has none"
            say = "hidden layers belong to model='mlp'" if name == "hidden" else say
            raise InputError(f"model {model!r} has no option {brief(name)}", say)
