"""Grids of configurations: from a dictionary of values to what each stacked model is given."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import product
from math import isfinite
from numbers import Real
from typing import Any, TypeAlias

from torch import Tensor

from ruleout.labels.classes import find_name
from ruleout.labels.errors import brief, nearest
from ruleout.methods import Approach
from ruleout.training.validation import check_counts

Configuration: TypeAlias = dict[str, Any]
Grid: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]

#: The paper's grid: learning rate and weight decay each from 1e-6 to 1e-1, 36 configurations.
PAPER_GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": tuple(10.0**power for power in range(-6, 0)),
    "weight_decay": tuple(10.0**power for power in range(-6, 0)),
}

#: Eight configurations that suit most approaches on features of about unit scale.
SMALL_GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (1e-1, 1e-2, 1e-3, 1e-4),
    "weight_decay": (1e-3, 1e-5),
}

_NAMED = {"paper": PAPER_GRID, "small": SMALL_GRID}
_DEFAULTS = {"learning_rate": 1e-3, "weight_decay": 1e-5}
_SHORT = {"lr": "learning_rate", "eta": "learning_rate", "wd": "weight_decay", "l2": "weight_decay"}
_MODEL = "model."  # what options of the model begin with
_APART = ("approach", "batch_size", "schedule")  # in which stacked models cannot differ
_FAR = 100.0  # no learning rate above this one trains anything


def configurations(grid: Grid | None) -> list[Configuration]:
    """Return every configuration of a grid.

    A grid is ``"paper"``, ``"small"``, a dictionary of values or lists of values (all combinations
    are taken, the last name running fastest), a list of configurations, or None for the defaults:
    learning rate 1e-3, weight decay 1e-5. A grid can also set ``batch_size``, ``approach``,
    ``schedule``, options of the model, such as ``model.hidden``, and of the loss, such as ``q``.

    >>> configurations({"learning_rate": [0.1, 0.01], "weight_decay": 0})
    [{'learning_rate': 0.1, 'weight_decay': 0.0}, {'learning_rate': 0.01, 'weight_decay': 0.0}]
    >>> len(configurations("paper"))
    36
    """
    grid = {} if grid is None else named_grid(grid)
    if isinstance(grid, Mapping):
        lists = [_listed(name, values) for name, values in grid.items()]
        found = [dict(zip(grid, values, strict=True)) for values in product(*lists)]
    else:
        found = [dict(one) for one in grid]
    if not found:
        raise ValueError("the grid holds no configuration; give at least one value for each name")
    if len({frozenset(one) for one in found}) > 1:
        raise ValueError("every configuration of a grid must set the same names")
    return [_checked(_DEFAULTS | one) for one in found]


def named_grid(grid: Grid) -> Any:
    """Return the values of a grid that is named; any other as it is."""
    return find_name("grid", grid, _NAMED) if isinstance(grid, str) else grid


def _listed(name: str, values: Any) -> list[Any]:
    one = isinstance(values, (str, Real)) or not hasattr(values, "__iter__")
    if one or getattr(values, "ndim", 1) != 1:  # a matrix is one value
        return [values]
    listed = list(values)
    if not listed:
        raise ValueError(f"the grid has no value for {name!r}; give at least one")
    return listed


def _checked(one: Configuration) -> Configuration:
    for name in _DEFAULTS:
        value = one[name]
        number = isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
        if not number or value < 0:
            raise ValueError(f"{name} must be a number, zero or above, not {brief(value)}")
        one[name] = float(value)
    check_counts(**{name: value for name, value in one.items() if name == "batch_size"})
    if one["learning_rate"] > _FAR:
        say = f"a learning rate of {one['learning_rate']:g} will hardly train; most lie below 1"
        warnings.warn(say, UserWarning, stacklevel=2)
    return {name: plain(value) for name, value in one.items()}


def set_apart(name: str) -> bool:
    """Whether models that differ in this setting cannot be stacked."""
    return name in _APART or name.startswith(_MODEL)


def split_grid(
    grid: Sequence[Configuration], batch_size: int, model_options: Mapping[str, Any] | None
) -> list[tuple[list[int], dict[str, Any]]]:
    """Sort by what cannot be stacked: places in the grid, and what `fit_grid` is told of each."""
    found: dict[str, tuple[list[int], dict[str, Any]]] = {}
    for place, one in enumerate(grid):
        apart = {name: value for name, value in one.items() if set_apart(name)}
        told: dict[str, Any] = {"batch_size": batch_size, "grid": []}
        told |= {name: value for name, value in apart.items() if name in _APART}
        model = {n.removeprefix(_MODEL): v for n, v in apart.items() if n.startswith(_MODEL)}
        told["model_options"] = {**(model_options or {}), **model}
        places, told = found.setdefault(repr(apart), ([], told))
        places.append(place)
        told["grid"].append({name: value for name, value in one.items() if name not in apart})
    return list(found.values())


def check_names(row: Approach, one: Configuration) -> None:
    """Raise where a configuration sets what neither training nor the loss knows."""
    known = [*_DEFAULTS, *row.option_names, *_APART, f"{_MODEL}OPTION"]
    for name in one:
        if name not in known:
            say = f"a grid of {row.name!r} can set {', '.join(known)}"
            say = nearest(_SHORT.get(name, name), known, say)
            raise ValueError(f"the grid sets {name!r}, which is unknown; {say}")


def plain(value: Any) -> Any:
    """Return a number or nested lists of an array or tensor; anything else as it is."""
    return value.tolist() if hasattr(value, "tolist") else value


def loss_options(row: Approach, grid: Sequence[Configuration], like: Tensor) -> dict[str, Any]:
    """Return the options of the loss; those that differ become tensors ``[C, 1, 1]``.

    A matrix becomes a tensor at once: inside a CUDA graph it could not be copied any more.
    """
    options = {name: plain(value) for name, value in row.options.items()}
    for name in grid[0]:
        values = [one[name] for one in grid]
        if name in _DEFAULTS:
            continue
        if all(value == values[0] for value in values):
            options[name] = values[0]
        elif all(isinstance(value, Real) for value in values):
            options[name] = like.new_tensor(values).view(-1, 1, 1)
        else:
            say = nearest(name, _DEFAULTS, "train one grid for each value")
            raise ValueError(f"the grid gives {name!r} values that are not numbers; {say}")
    return {n: like.new_tensor(v) if isinstance(v, list) else v for n, v in options.items()}
