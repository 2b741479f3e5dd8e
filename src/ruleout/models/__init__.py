"""Models: from the shape of an example and the number of classes to logits."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import nn

from ruleout.labels.errors import nearest
from ruleout.models.networks import densenet22, linear, mlp, resnet32, resnet34

__all__ = ["MODELS", "build", "densenet22", "linear", "mlp", "resnet32", "resnet34"]

#: Models by name; each is a function of the shape of an example and the number of classes.
MODELS: dict[str, Callable[..., nn.Module]] = {
    "linear": linear,
    "mlp": mlp,
    "resnet32": resnet32,
    "densenet22": densenet22,
    "resnet34": resnet34,
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

    Parameters
    ----------
    model
        A name of :data:`MODELS`, a function ``(shape, classes, **options) → nn.Module``, or a
        module: each model is then a copy of it, whatever the seed.
    shape
        The shape of one example, ``(64,)`` or ``(3, 32, 32)``; a number means a flat one.
    classes
        The number of classes.
    seed
        Seed of the first weights. The global random state is left as it was.
    options
        Handed to the model, for example ``hidden=(300, 100)``.

    Examples
    --------
    >>> build("mlp", 64, 10, seed=0, hidden=(20,))
    Sequential(
      (0): Linear(in_features=64, out_features=20, bias=True)
      (1): ReLU()
      (2): Linear(in_features=20, out_features=10, bias=True)
    )
    """
    if isinstance(model, str):
        if model not in MODELS:
            say = f"the models are {', '.join(MODELS)}"
            raise ValueError(f"unknown model {model!r}; {nearest(model, MODELS, say)}")
        model = MODELS[model]
    if isinstance(model, nn.Module):
        if options:
            raise ValueError("a module takes no model options; give a function that makes it")
        return deepcopy(model)
    dimensions = (shape,) if isinstance(shape, int) else tuple(shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return model(dimensions, classes, **options)
