"""How long a fit will take, from a few timed steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from ruleout.labels import LabelSets
from ruleout.models import build
from ruleout.training.batches import Trial
from ruleout.training.engine import fit_grid
from ruleout.training.grids import Grid, configurations
from ruleout.training.nets import dense_layers
from ruleout.training.validation import as_trials, check_features

_STEPS = 20  # that are timed, where they are quick
_QUICK = 1.0  # seconds below which a fit of a few steps is mostly its own start
_SHORT = 3e10  # multiplications that take less than a minute; not worth a probe
_RATE = 1e9  # multiplications in a second, roughly, for those


def estimate_seconds(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    model: str | Callable[..., nn.Module] = "linear",
    grid: Grid | None = None,
    epochs: int = 250,
    batch_size: int = 256,
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
    model_options: Mapping[str, Any] | None = None,
    roughly: bool = False,
    **options: Any,
) -> float:
    """Estimate how many seconds :func:`ruleout.fit_grid` takes with the same arguments.

    A few steps are timed, of linear models and perceptrons with the whole grid at once; of other
    models, which gain little from stacking, one is timed and stands for all. `roughly` does
    without where the count of multiplications shows that the fit is short.

    Examples
    --------
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> estimate_seconds(x, sets, epochs=100, roughly=True) < 10
    True
    """
    x = check_features(x)
    trials = as_trials(sets, x.shape[0], seed)
    configs = configurations(grid)
    rows = max(len(trial.sets) for trial in trials)
    shape = tuple(x.shape[1:]) if shape is None else tuple(shape)
    classes = len(trials[0].sets.classes)
    net = build(model, shape, classes, seed=seed, **(model_options or {}))
    models, dense = len(configs) * len(trials), dense_layers(net) is not None
    if dense:
        weights = sum(part.numel() for part in net.parameters())
        step = 3.0 * weights * models * batch_size  # forward, and backward twice
        work = step / batch_size * rows * epochs
        if roughly and work < _SHORT:
            return work / _RATE
        some = min(rows, batch_size * min(_STEPS, max(1, int(_RATE / step))))
    else:
        some = min(rows, 32)
        trials, configs = trials[:1], configs[:1]

    def seconds(count: int, times: int) -> float:
        began = time.perf_counter()
        fit_grid(
            x, [trial.part(np.arange(min(count, len(trial.sets)))) for trial in trials],
            model=model, grid=configs, epochs=times, batch_size=min(batch_size, count), shape=shape,
            model_options=model_options, **options,
        )  # fmt: skip
        return time.perf_counter() - began

    seconds(min(some, 32), 1)  # the first run also loads what others find loaded
    epoch = seconds(some, 1)
    if epoch < _QUICK:
        epoch = max(seconds(some, 3) - epoch, 0.0) / 2 or epoch
    return epoch * epochs * rows / some * (1 if dense else models)
