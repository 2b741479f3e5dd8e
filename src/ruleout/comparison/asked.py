"""What was asked for, checked before any training starts."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import nn

from ruleout.labels.errors import brief
from ruleout.methods import PAPER, Approach
from ruleout.methods import approach as find_approach
from ruleout.models import build
from ruleout.selection import Criterion, criterion
from ruleout.training import configurations
from ruleout.training.grids import Configuration, Grid
from ruleout.training.nets import dense_layers

__all__ = [
    "SMALL_GRID",
    "as_criterion",
    "check_numbers",
    "find_all",
    "find_grid",
    "find_reference",
    "warn_of_clpl",
]

#: Eight configurations that suit most approaches on features of about unit scale.
SMALL_GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (1e-1, 1e-2, 1e-3, 1e-4),
    "weight_decay": (1e-3, 1e-5),
}

_SPEED = {"learning_rate", "weight_decay"}


def find_all(names: Sequence[str | Approach] | None) -> list[Approach]:
    """Return the approaches asked for; unknown names suggest the nearest.

    >>> [one.label for one in find_all(["log", "ga-after"])]
    ['LOG', 'GA']
    """
    if isinstance(names, str):
        names = [names]
    wanted = PAPER if names is None else names
    found = [one if isinstance(one, Approach) else find_approach(one) for one in wanted]
    if not found:
        raise ValueError("no approach is named; give at least one, or None for the paper's")
    for place, one in enumerate(found):
        if any(one.name == other.name for other in found[:place]):
            raise ValueError(f"approach {one.name!r} is named twice; name each once")
    return found


def find_grid(grid: Grid | None, approaches: Sequence[Approach]) -> list[Configuration]:
    """Return the configurations; raises where an approach lacks an option that they set."""
    if isinstance(grid, str) and grid == "small":
        grid = SMALL_GRID
    elif isinstance(grid, str) and grid != "paper":
        raise ValueError(f"unknown grid {brief(grid)}; say 'small', 'paper' or give lists")
    found = configurations(grid)
    options = {name: value for name, value in found[0].items() if name not in _SPEED}
    for one in approaches if options else ():
        find_approach(one.name, **options)
    return found


def find_reference(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the reference approaches; unknown names suggest the nearest.

    >>> find_reference("log")
    ('log',)
    """
    listed = (names,) if isinstance(names, str) else tuple(names)
    return tuple(find_approach(name).name for name in listed)


def as_criterion(name: str | Criterion) -> Criterion:
    """Return the criterion of that name."""
    return name if isinstance(name, Criterion) else criterion(name)


def check_numbers(*, average: int, epochs: int, level: float, over: Any) -> None:
    """Raise where a number makes no sense."""
    if epochs < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, not {brief(epochs)}")
    if not 1 <= average <= epochs:
        raise ValueError(
            f"average must lie between 1 and the {epochs} epochs, not {brief(average)}"
        )
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {brief(level)}")
    if over not in (None, "trials", "rows"):
        raise ValueError(f"over must be 'trials' or 'rows', not {brief(over)}")


def warn_of_clpl(
    approaches: Sequence[Approach],
    model: str | Callable[..., nn.Module],
    shape: tuple[int, ...],
    options: Mapping[str, Any],
) -> None:
    """Say so where CLPL is trained with a model that is not linear."""
    if not any(one.name.startswith("clpl") for one in approaches) or model == "linear":
        return
    layers = dense_layers(build(model, shape, 2, seed=0, **options))
    if layers is None or len(layers) > 1:
        warnings.warn(
            "CLPL is convex for linear models only; with this model its convexity is gone",
            UserWarning,
            stacklevel=3,
        )
