"""Long curves in few points."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["closest", "extremes"]


def extremes(mean: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Choose points worth drawing: from each stretch the lowest and the highest, and both ends."""
    if len(mean) <= most:
        return np.arange(len(mean))
    keep = [0, len(mean) - 1]
    for stretch in np.array_split(np.arange(len(mean)), most // 2 - 1):
        inside = stretch[np.isfinite(mean[stretch])]
        keep += (
            [inside[mean[inside].argmin()], inside[mean[inside].argmax()]]
            if len(inside)
            else [stretch[0]]
        )
    return np.unique(keep)


def closest(mean: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Choose the points that follow a curve best: always the one farthest from what is drawn.

    >>> closest(np.array([0.0, 0, 0, 5, 5, 5]), 4).tolist()
    [0, 2, 3, 5]
    """
    places = np.arange(len(mean))
    if len(mean) <= most or not np.isfinite(mean).all():
        return extremes(mean, most)
    keep = [0, len(mean) - 1]
    while len(keep) < most:
        drawn = np.interp(places, keep, mean[keep])
        keep = sorted({*keep, int(np.abs(mean - drawn).argmax())})
        if np.array_equal(drawn, mean):
            break
    return np.array(keep)
