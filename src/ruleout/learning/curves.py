r"""Learning curves: how accuracy grows with questions, and how many a target will take.

The error of most classifiers falls as a power of the data they saw,

.. math:: e(Q) = a + b\,Q^{-c},

with a floor a that no amount of data lowers. Three numbers are fitted to what was measured, each
point weighed by its standard error. How sure the fit is comes from drawing the points anew within
those errors and fitting again; where no such curve fits the points, they count as less sure. A
power law that is fitted to little data says little about far ahead: the interval then is wide, or
open at its upper end, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import InputError

__all__ = ["Curve", "Forecast", "Point", "fit_curve", "forecast"]

#: The power is near a half wherever it was measured (see the study in the docs): two points alone
#: could not tell it from the floor.
POWER, POWER_SPREAD = 0.5, 0.25
POWERS = np.linspace(0.05, 1.5, 59)  # all that are tried
_SMALLEST = 1e-3  # a standard error; no measurement is surer than that
_FLAT = 1e-12  # the scale of a curve that does not fall


@dataclass(frozen=True)
class Point:
    """What was measured: so many questions, the accuracy, its standard error."""

    questions: float
    accuracy: float
    error: float


@dataclass(frozen=True)
class Curve:
    """A fitted curve.

    Examples
    --------
    >>> curve = Curve(floor=0.05, scale=2.0, power=0.5)
    >>> curve.accuracy(400), curve.questions(0.85), curve.questions(0.96)
    (0.85, 400, inf)
    """

    floor: float
    scale: float
    power: float

    def accuracy(self, questions: float) -> float:
        """Return the accuracy after so many questions."""
        return round(1 - self.floor - self.scale * math.pow(questions, -self.power), 12)

    def questions(self, target: float) -> float:
        """Return how many questions the target takes; infinity where it is beyond the curve."""
        above = 1 - target - self.floor
        if above <= 1e-9:
            return math.inf
        log = math.log(self.scale / above) / self.power
        return math.ceil(round(math.exp(log), 6)) if log < 40 else math.inf


@dataclass(frozen=True)
class Forecast:
    """How many questions a target takes.

    Attributes
    ----------
    target
        The accuracy that is aimed at.
    questions
        By the fitted curve; infinity: not by this curve.
    low, high
        Of the curves that fit as well, a tenth needs fewer questions and a tenth more.
    reachable
        The share of those curves that reach the target at all.
    curve
        The fitted curve.
    """

    target: float
    questions: float
    low: float
    high: float
    reachable: float
    curve: Curve


def fit_curve(points: Sequence[Point]) -> Curve:
    """Fit the three numbers to at least two points."""
    _check(points)
    errors = 1 - np.array([point.accuracy for point in points], np.float64)
    return _fit(points, errors[None], np.array([POWER]))[0]


def forecast(
    points: Sequence[Point], target: float, *, draws: int = 1000, seed: int = 0
) -> Forecast:
    """Say how many questions the target accuracy takes, with its uncertainty.

    Parameters
    ----------
    points
        What was measured, at least two numbers of questions.
    target
        An accuracy above 0 and below 1.
    draws
        How many times the points are drawn anew.
    """
    if not 0 < target < 1:
        raise InputError(f"the target accuracy is {target}", "give a number between 0 and 1")
    curve, rng = fit_curve(points), np.random.default_rng(seed)
    wide = _widened(points, curve)
    measured = 1 - np.array([point.accuracy for point in wide], np.float64)
    again = rng.normal(measured, _spread(wide), (draws, len(wide)))
    expected = rng.normal(POWER, POWER_SPREAD, draws).clip(POWERS[0], POWERS[-1])
    needed = [one.questions(target) for one in _fit(wide, again, expected)]
    low, high = np.quantile(needed, [0.1, 0.9], method="inverted_cdf")
    reachable = float(np.isfinite(needed).mean())
    return Forecast(target, curve.questions(target), float(low), float(high), reachable, curve)


def _widened(points: Sequence[Point], curve: Curve) -> list[Point]:
    """Return the points, less sure where no power law goes through them within their errors."""
    left = [curve.accuracy(point.questions) - point.accuracy for point in points]
    misfit = float(np.square(left / _spread(points)).sum()) / max(1, len(points) - 3)
    factor = max(1.0, math.sqrt(misfit))
    sure = zip(points, _spread(points), strict=True)
    return [Point(point.questions, point.accuracy, float(error) * factor) for point, error in sure]


def _spread(points: Sequence[Point]) -> NDArray[np.float64]:
    return np.maximum([point.error for point in points], _SMALLEST)


def _fit(
    points: Sequence[Point], errors: NDArray[np.float64], expected: NDArray[np.float64]
) -> list[Curve]:
    """Fit one curve to each row of errors ``[D, points]``; the power is expected at ``[D]``.

    For a given power the other two are a line through the points, so all powers are tried.
    """
    q, weight = np.array([point.questions for point in points]), _spread(points) ** -2.0
    unit = float(np.exp(np.log(q).mean()))  # near 1 in the middle of the points
    u = (q / unit) ** -POWERS[:, None]  # [G, points]
    floor, scale = _lines(u, errors, weight)  # [D, G]
    left = errors[:, None] - floor[..., None] - scale[..., None] * u
    misfit = (weight * left**2).sum(-1) + ((POWERS - expected[:, None]) / POWER_SPREAD) ** 2
    best = misfit.argmin(1)
    return [
        Curve(float(floor[row, at]), float(scale[row, at] * unit ** POWERS[at]), float(POWERS[at]))
        for row, at in enumerate(best)
    ]


def _lines(
    u: NDArray[np.float64], errors: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return floor and scale ``[D, G]`` of the best line, neither below zero."""
    share = weight / weight.sum()
    mean_u, mean_e = u @ share, errors @ share
    product = errors @ (share * u).T  # [D, G]
    scale = (product - mean_e[:, None] * mean_u) / ((u - mean_u[:, None]) ** 2 @ share)
    floor = mean_e[:, None] - scale * mean_u
    through_zero = product / (u**2 @ share)
    scale, floor = np.where(floor < 0, through_zero, scale), floor.clip(min=0)
    flat = scale <= 0
    return np.where(flat, mean_e[:, None].clip(min=0), floor), scale.clip(min=_FLAT)


def _check(points: Sequence[Point]) -> None:
    if len({point.questions for point in points}) < 2:
        raise InputError("a curve needs two numbers of questions", "measure at more of them")
    for point in points:
        values = (point.questions, point.accuracy, point.error)
        if not all(map(math.isfinite, values)) or point.questions <= 0 or point.error < 0:
            raise InputError(f"{point} is no measurement", "give finite numbers, questions above 0")
