"""Learning curves: what is fitted, and how far a forecast can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from ruleout.labels.errors import InputError
from ruleout.learning import planning
from ruleout.learning.planning import Point, forecast


@dataclass(frozen=True)
class Curve:
    """A curve from its start, the error without any question, or a power law from infinity."""

    floor: float
    scale: float
    power: float
    start: float = math.inf

    def accuracy(self, questions: float) -> float:
        left = 1 / (self.start - self.floor) + math.pow(questions, self.power) / self.scale
        return 1 - self.floor - 1 / left

    def questions(self, target: float) -> float:
        """Return how many questions the target takes; infinity where it is beyond the curve."""
        if 1 - target - self.floor <= 1e-9:
            return math.inf
        rise = 1 / (1 - target - self.floor) - 1 / (self.start - self.floor)
        log = math.log(self.scale * rise) / self.power if rise > 0 else 0
        return max(1, math.ceil(round(math.exp(log), 6))) if log <= 40 else math.inf


def _points(curve: Curve, budgets: list[int], error: float, seed: int | None = None) -> list[Point]:
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, error, len(budgets)) if seed is not None else np.zeros(len(budgets))
    return [
        Point(q, curve.accuracy(q) + float(e), error) for q, e in zip(budgets, noise, strict=True)
    ]


BUDGETS = [200, 400, 800, 1600, 3200]


def test_a_curve_without_noise_is_found_again() -> None:
    true = Curve(floor=0.06, scale=4.0, power=0.6)
    curves, weights = planning._weighed(_points(true, BUDGETS, 0.0), 20_000, 0)
    found = Curve(*curves[:, weights.argmax()].tolist())
    for questions in (300, 3200, 20_000):
        assert found.accuracy(questions) == pytest.approx(true.accuracy(questions), abs=0.01)


def test_power_laws_are_covered_too() -> None:
    """An interval of 80 percent holds the true number in at least 70 of 100 noisy curves."""
    random, inside = np.random.default_rng(3), 0
    for trial in range(100):
        true = Curve(float(random.uniform(0, 0.1)), 4.0, float(random.normal(0.5, 0.1)))
        target = true.accuracy(6400)
        found = forecast(_points(true, BUDGETS, 0.01, trial), target, seed=trial)
        inside += found.low <= 6400 <= found.high
    assert inside >= 70


def _expected(random: np.random.Generator) -> Curve:
    """Draw a curve as they are expected to be."""
    start = random.uniform(*planning.START)
    floor = start * random.beta(*planning.FLOOR)
    power = random.lognormal(math.log(planning.POWER), planning.POWER_SPREAD)
    half = math.log(planning.HALF) + math.tan(math.pi * (random.random() - 0.5))
    return Curve(floor, (start - floor) * math.exp(min(max(power * half, -90), 90)), power, start)


def test_ranges_hold_eight_of_ten_curves_that_are_as_expected() -> None:
    """Points err together, by as much as was drawn, and lie off the curve a little."""
    random, inside, runs = np.random.default_rng(0), 0, 300
    mixed = np.array([[0.08, 0.0, 0.0], [0.03, 0.05, 0.0], [0.02, 0.02, 0.03]])
    q = (50, 100, 200)
    for seed in range(runs):
        true, drawn = _expected(random), mixed @ random.normal(size=(3, 400))
        points = [
            Point(
                n, 1 - (1 - true.accuracy(n)) * random.normal(1, planning.MISFIT) + by, 0.1, moved
            )
            for n, by, moved in zip(q, mixed @ random.normal(size=3), drawn, strict=True)
        ]
        found = forecast(points, 0.8, draws=2000, seed=seed)
        inside += found.low <= true.questions(0.8) <= found.high
    assert 0.75 <= inside / runs <= 0.85


def test_a_forecast_is_what_plain_loops_find() -> None:
    """Curves drawn wherever they may lie, each weighed by independent points."""
    random, weighed = np.random.default_rng(0), []
    measured = [Point(100, 0.5, 0.06), Point(200, 0.7, 0.05)]
    for _ in range(30_000):
        curve = _expected(random)
        log = sum(
            (curve.accuracy(p.questions) - p.accuracy) ** 2
            / (p.error**2 + (planning.MISFIT * (1 - p.accuracy)) ** 2)
            for p in measured
        )
        if log < 20:
            weighed.append((curve.questions(0.8), math.exp(-log / 2)))
    weighed.sort()
    levels = np.cumsum([weight for _, weight in weighed]) / sum(weight for _, weight in weighed)
    expected = [weighed[int(np.searchsorted(levels, at))][0] for at in (0.1, 0.5)]
    found = forecast(measured, 0.8)
    assert [found.low, found.questions] == pytest.approx(expected, rel=0.1)
    reach = sum(w for n, w in weighed if math.isfinite(n)) / sum(w for _, w in weighed)
    assert found.reachable == pytest.approx(reach, abs=0.03)


@pytest.mark.parametrize(("target", "is_open"), [(0.7, False), (0.95, True)])
def test_eight_of_ten_curves_lie_in_the_range(target: float, is_open: bool) -> None:
    """Also where it is open above: nothing is left out there, so more is at the lower end."""
    measured = [Point(100, 0.5, 0.06), Point(200, 0.6, 0.05)]
    found = forecast(measured, target, draws=4000)
    assert math.isinf(found.high) == is_open
    curves, weights = planning._weighed(measured, 4000, 0)
    needed = [
        Curve(floor, scale, power, start).questions(target)
        for floor, scale, power, start in curves.T.tolist()
    ]
    inside = sum(
        weight for n, weight in zip(needed, weights, strict=True) if found.low <= n <= found.high
    )
    assert inside == pytest.approx(0.8, abs=0.02)


def test_a_target_beyond_the_curve_takes_forever() -> None:
    found = forecast(_points(Curve(0.2, 4.0, 0.5), [*BUDGETS, 100_000], 0.002), 0.95)
    assert math.isinf(found.questions)
    assert found.reachable < 0.1
    assert math.isinf(found.high)


def test_less_noise_narrows_the_interval() -> None:
    true = Curve(0.05, 4.0, 0.5)
    wide = forecast(_points(true, BUDGETS, 0.03), 0.88)
    narrow = forecast(_points(true, BUDGETS, 0.003), 0.88)
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
        forecast(points, 0.9)
