"""Learning curves: what is fitted, and how far a forecast can be trusted."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ruleout.labels.errors import InputError
from ruleout.learning.planning import Curve, Point, fit_curve, forecast


def _points(curve: Curve, budgets: list[int], error: float, seed: int | None = None) -> list[Point]:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, error, len(budgets)) if seed is not None else np.zeros(len(budgets))
    return [
        Point(q, curve.accuracy(q) + float(e), error) for q, e in zip(budgets, noise, strict=True)
    ]


BUDGETS = [200, 400, 800, 1600, 3200]


def test_a_curve_without_noise_is_found_again() -> None:
    true = Curve(floor=0.06, scale=4.0, power=0.6)
    found = fit_curve(_points(true, BUDGETS, 0.0))
    for questions in (300, 3200, 20_000):
        assert found.accuracy(questions) == pytest.approx(true.accuracy(questions), abs=0.01)


def test_forecasts_cover_the_truth_as_often_as_they_say() -> None:
    """An interval of 80 percent holds the true number in at least 70 of 100 noisy curves."""
    random, inside = np.random.default_rng(3), 0
    for trial in range(100):
        true = Curve(float(random.uniform(0, 0.1)), 4.0, float(random.normal(0.5, 0.1)))
        target = true.accuracy(6400)
        found = forecast(_points(true, BUDGETS, 0.01, trial), target, draws=60, seed=trial)
        inside += found.low <= 6400 <= found.high
    assert inside >= 70


def test_a_target_beyond_the_curve_takes_forever() -> None:
    found = forecast(_points(Curve(0.2, 4.0, 0.5), [*BUDGETS, 100_000], 0.002), 0.95, draws=50)
    assert math.isinf(found.questions)
    assert found.reachable < 0.1
    assert math.isinf(found.high)


def test_less_noise_narrows_the_interval() -> None:
    true = Curve(0.05, 4.0, 0.5)
    wide = forecast(_points(true, BUDGETS, 0.03), 0.88, draws=100)
    narrow = forecast(_points(true, BUDGETS, 0.003), 0.88, draws=100)
    assert narrow.high / narrow.low < wide.high / wide.low


def test_a_forecast_is_the_same_for_the_same_seed() -> None:
    points = _points(Curve(0.05, 4.0, 0.5), BUDGETS, 0.01)
    assert forecast(points, 0.9, seed=4) == forecast(points, 0.9, seed=4)


@pytest.mark.parametrize("target", [0.0, 1.0, math.nan, -1.0, 1.2])
def test_a_target_is_a_share(target: float) -> None:
    with pytest.raises(InputError, match="target accuracy"):
        forecast(_points(Curve(0.05, 4.0, 0.5), BUDGETS, 0.01), target)


@pytest.mark.parametrize(
    "points",
    [[], [Point(5, 0.5, 0.1)], [Point(5, 0.5, 0.1)] * 3, [Point(0, 0.5, 0.1), Point(9, 0.6, 0.1)],
     [Point(5, math.nan, 0.1), Point(9, 0.6, 0.1)]],
)  # fmt: skip
def test_what_is_no_curve_is_refused(points: list[Point]) -> None:
    with pytest.raises(InputError):
        fit_curve(points)
