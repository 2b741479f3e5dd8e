"""What several parts of a report share: numbers, units, a line, and checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from numpy.typing import NDArray

from ruleout.labels.errors import InputError, brief

__all__ = ["Line", "Numbers", "Unit", "one_of", "same_length"]

Numbers: TypeAlias = Sequence[float | None] | Sequence[float] | Sequence[int] | NDArray[Any]
Unit: TypeAlias = Literal["percent", "number"]


@dataclass(frozen=True)
class Line:
    """One curve: ``mean`` at ``x``, with a band from ``low`` to ``high`` if both are given.

    Lines of one `family` share a colour, here and in score tables.

    >>> Line("log", x=[1, 2, 3], mean=[0.5, 0.8, 0.9], family="upper-bound").name
    'log'
    """

    name: str
    x: Numbers
    mean: Numbers
    low: Numbers = ()
    high: Numbers = ()
    family: str = ""

    def __post_init__(self) -> None:
        sizes = {"x": len(self.x), "mean": len(self.mean)}
        if len(self.low) or len(self.high):
            sizes |= {"low": len(self.low), "high": len(self.high)}
        same_length(f"line {brief(self.name)}", sizes)


def one_of(name: str, value: object, known: Sequence[object]) -> None:
    """Refuse a value that is not among those known."""
    if value not in known:
        say = ", ".join(map(repr, known))
        raise InputError(f"{name} is {brief(value)}", f"use one of {say}")


def same_length(where: str, sizes: Mapping[str, int]) -> None:
    """Refuse columns of unequal lengths."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"{where}: {found} entries", "give one of each per entry")
