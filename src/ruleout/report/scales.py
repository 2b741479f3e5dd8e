"""From numbers to pixels."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Scale", "reach", "spread", "thin", "ticks"]


@dataclass(frozen=True)
class Scale:
    """A straight map: `low` lies at pixel `start`, `high` at pixel `end`.

    >>> Scale(0, 10, 100, 200)(2.5)
    125.0
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of one value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the pixels of many, none of them absurdly far away."""
        shares = (values - self.low) / (self.high - self.low)
        return np.clip(self.start + shares * (self.end - self.start), -1e5, 1e5)


def reach(*columns: NDArray[np.float64], margin: float = 0.0) -> tuple[float, float]:
    """Return the lowest and the highest number, apart even where there is but one, or none.

    >>> reach(np.array([2.0, np.nan, 4.0]), margin=0.5)
    (1.0, 5.0)
    >>> reach(np.array([]))
    (0.0, 1.0)
    >>> reach(np.array([4.0]))
    (3.0, 5.0)
    """
    every = np.concatenate(columns) if columns else np.array([])
    every = every[np.isfinite(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, 1e-99):
        apart = size / 4 if size > 1e-99 else 1.0
        return low - apart, high + apart
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from `low` to `high`, at most `most`.

    >>> ticks(0.13, 0.94)
    [0.2, 0.4, 0.6, 0.8]
    >>> ticks(0, 100, 3)
    [0.0, 50.0, 100.0]
    """
    raw = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def thin(size: int, most: int) -> range:
    """Choose at most `most` of `size` places, evenly.

    >>> list(thin(10, 4))
    [0, 3, 6, 9]
    """
    return range(0, size, max(1, math.ceil(size / max(most, 1))))


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart until they lie `gap` or more from each other, close to where they belong.

    >>> spread([50.0, 52.0, 90.0], 10, 0, 100)
    [46.0, 56.0, 90.0]
    """

    def centre(members: list[int]) -> float:
        half = gap * (len(members) - 1) / 2
        mean = sum(wanted[m] for m in members) / len(members)
        return max(low + half, min(high - half, mean))

    groups: list[list[int]] = []  # labels that touch, from top to bottom
    for place in sorted(range(len(wanted)), key=lambda place: wanted[place]):
        new = [place]
        while groups:
            room = gap * (len(new) + len(groups[-1])) / 2
            if centre(new) - centre(groups[-1]) >= room:
                break
            new = groups.pop() + new
        groups.append(new)
    placed = {m: centre(g) + gap * (i - (len(g) - 1) / 2) for g in groups for i, m in enumerate(g)}
    return [placed[place] for place in range(len(wanted))]
