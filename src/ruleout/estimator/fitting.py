"""From checked data and settings to a trained model: one fit, or a search and a refit."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError
from ruleout.selection import Search, search
from ruleout.training import GridFit, Trial, fit_grid

__all__ = ["Course", "Data", "Fitted", "Held", "Progress", "go_on", "train", "used"]

#: Called with what is being trained, epochs done, and epochs in all.
Progress: TypeAlias = Callable[[str, int, int], None]


class Data(NamedTuple):
    """What a classifier is trained on."""

    x: Any  # [n, d]: an array or a CSR matrix
    sets: LabelSets
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    rate: NDArray[np.float64] | None = None  # where answers made the sets

    @property
    def trial(self) -> Trial:
        """The same for the engine."""
        return Trial(self.sets, weight=self.weight, rate=self.rate)


def used(data: Data) -> Data:
    """Leave out rows that weigh nothing, and those without an answer where answers teach."""
    keep = np.ones(len(data.sets), np.bool_) if data.weight is None else data.weight > 0
    if data.rate is not None:
        keep &= data.sets.sizes > 0
    if keep.all():
        return data
    if not keep.any():
        raise InputError("every row with an answer weighs zero", "give some row a weight")
    rows = np.flatnonzero(keep)
    weight = None if data.weight is None else data.weight[rows]
    rate = None if data.rate is None else data.rate[rows]
    return Data(data.x[rows], data.sets[rows], weight, data.classes, rate)


class Held(NamedTuple):
    """How rows that are held out choose a configuration."""

    criterion: Any
    share: float
    rule: Any
    patience: int | None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how it came about."""

    module: nn.Module
    fit: GridFit
    found: Search | None

    @property
    def configuration(self) -> dict[str, Any]:
        """What was trained: learning rate, weight decay, options of the loss."""
        return dict(self.fit.configurations[0])

    @property
    def history(self) -> dict[str, NDArray[Any]]:
        """The epochs, and the mean loss of each."""
        return {"epoch": self.fit.epochs, "loss": self.fit.history["loss"][0, 0]}


def train(
    data: Data,
    grid: list[dict[str, Any]],
    held: Held | None,
    *,
    seed: int,
    progress: Progress | None = None,
    **options: Any,
) -> Fitted:
    """Train on all rows; with `held`, first choose a configuration on some of them."""
    options |= {"grid": grid, "seed": seed, "progress": _stages(progress, len(grid), held)}
    if held is None:
        fit, found = fit_grid(data.x, [data.trial], **options), None
    else:
        criterion, share, rule, patience = held
        options |= {"criterion": criterion, "share": share, "rule": rule, "patience": patience}
        found = search(data.x, [data.trial], **options)
        assert found.final is not None
        fit = found.final
    return Fitted(_module(fit), fit, found)


class Course(NamedTuple):
    """Where training stands, so that it can go on."""

    seed: int
    calls: int  # of fit and partial_fit
    optimizer: str
    state: dict[str, Any] | None  # what the optimizer remembers; None starts it anew

    @property
    def order(self) -> int:
        """The seed of the next walk over rows: another one for every call."""
        if self.calls == 0:
            return self.seed
        return int(np.random.SeedSequence([self.seed, self.calls]).generate_state(1)[0])


def go_on(
    data: Data,
    configuration: dict[str, Any],
    module: nn.Module | None,
    course: Course,
    **options: Any,
) -> Fitted:
    """Walk once over the rows, from a module and the optimizer's state where there are any."""
    if module is not None:  # one that was loaded has no state to start from
        own = deepcopy(module)
        options |= {"model": lambda *_: own, "model_options": None}
    if course.state is not None and course.optimizer == options["optimizer"]:
        options["start"] = _resumed(course.state)
    options |= {"grid": [configuration], "epochs": 1, "seed": course.order}
    fit = fit_grid(data.x, [data.trial], **options)
    return Fitted(_module(fit), fit, None)


def _resumed(state: dict[str, Any]) -> GridFit:
    """Wrap the state of an earlier fit, the only part that training goes on from.

    The order of the rows has a seed of its own for every call, whatever was counted before.
    """
    none, state = np.zeros((1, 1), np.intp), {**state, "epochs": 0}
    return GridFit([], {}, none[0], {}, {}, none, none, {}, lambda _: nn.Identity(), state)


def _module(fit: GridFit) -> nn.Module:
    """Return the one model of a fit, in the precision it was trained in; raise if it is lost."""
    weights = {name: value[0, 0].clone() for name, value in fit.weights.items()}
    finite = all(bool(torch.isfinite(value).all()) for value in weights.values())
    if fit.diverged[0, 0] or not finite:
        rate = fit.configurations[0]["learning_rate"]
        raise InputError(
            f"training diverged in epoch {int(fit.diverged[0, 0]) or int(fit.epochs[-1])}",
            f"scale the features, or lower learning_rate (it was {rate:g})",
        )
    module = fit.fresh(0)
    module.load_state_dict(weights, assign=True)
    return module.eval()


def _stages(
    progress: Progress | None, models: int, held: Held | None
) -> Callable[[int, int], None] | None:
    """Name the stages of a search: training starts anew for the refit."""
    if progress is None:
        return None
    names = ["training"]
    if held is not None:
        names = [f"searching {models} configurations", "training the choice on all rows"]
    last = 0

    def call(done: int, total: int) -> None:
        nonlocal last
        if done <= last and len(names) > 1:
            names.pop(0)
        last = done
        progress(names[0], done, total)

    return call
