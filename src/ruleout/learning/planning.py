r"""How many questions a target accuracy takes: measured on a project, or known from the study.

The error of most classifiers falls as a power of the data they saw,

.. math:: e(Q) = a + b\,Q^{-c},

with a floor a that no amount of data lowers. Three numbers are fitted to what was measured, each
point weighed by its standard error. How sure the fit is comes from drawing the points anew, as they
might have come out, and fitting again; where no such curve fits the points, they count as less
sure. A power law that is fitted to little data says little about far ahead: the interval then is
wide, or open at its upper end, and says so.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.scaling import Scaling
from ruleout.labels import Answers, Evidence, evidence
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Credit

if TYPE_CHECKING:
    from ruleout.datasets import Table
    from ruleout.learning.training_data import Review

# ---------------------------------------------------------------------- curves

#: The power is near a half wherever it was measured (see the study in the docs): two points alone
#: could not tell it from the floor.
POWER, POWER_SPREAD = 0.5, 0.25
POWERS = np.linspace(0.05, 1.5, 59)  # all that are tried
_SMALLEST = 1e-3  # a standard error; no measurement is surer than that
_FLAT = 1e-12  # the scale of a curve that does not fall


@dataclass(frozen=True)
class Point:
    """What was measured: the number of questions, the accuracy, its standard error."""

    questions: float
    accuracy: float
    error: float
    #: accuracies that might have been measured as well; places of several points belong together
    drawn: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Curve:
    """A fitted curve.

    >>> curve = Curve(floor=0.05, scale=2.0, power=0.5)
    >>> curve.accuracy(400), curve.questions(0.85), curve.questions(0.96)
    (0.85, 400, inf)
    """

    floor: float
    scale: float
    power: float

    def accuracy(self, questions: float) -> float:
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
    """How many questions a target takes by the fitted curve; infinity: not by this curve.

    Of the curves that fit as well, a tenth needs fewer than `low` and a tenth more than `high`;
    `reachable` is the share of them that reach the target at all.
    """

    target: float
    questions: float
    low: float
    high: float
    reachable: float
    curve: Curve


def fit_curve(points: Sequence[Point]) -> Curve:
    """Fit the three numbers to at least two points."""
    if len({point.questions for point in points}) < 2:
        raise InputError("a curve needs two numbers of questions", "measure at more of them")
    for point in points:
        values = (point.questions, point.accuracy, point.error)
        if not all(map(math.isfinite, values)) or point.questions <= 0 or point.error < 0:
            raise InputError(
                f"{point} is not a measurement", "give finite numbers, questions above 0"
            )
    errors = 1 - np.array([point.accuracy for point in points], np.float64)
    return _fit(points, errors[None], np.array([POWER]))[0]


def forecast(
    points: Sequence[Point], target: float, *, draws: int = 1000, seed: int = 0
) -> Forecast:
    """Say how many questions the target accuracy takes; the points are drawn anew `draws` times."""
    if not 0 < target < 1:
        raise InputError(f"the target accuracy is {target}", "give a number between 0 and 1")
    curve, rng = fit_curve(points), np.random.default_rng(seed)
    # less sure where no power law goes through the points within their errors
    left = [curve.accuracy(point.questions) - point.accuracy for point in points]
    misfit = float(np.square(left / _spread(points)).sum()) / max(1, len(points) - 3)
    wide, spread = max(1.0, math.sqrt(misfit)), _spread(points)
    measured = np.array([point.accuracy for point in points], np.float64)
    off = rng.normal(0, spread, (draws, len(points)))
    drawn = [point.drawn for point in points if point.drawn is not None]
    if drawn:
        off = (measured - np.stack(drawn, 1))[rng.integers(len(drawn[0]), size=draws)]
    again = 1 - measured + wide * off
    expected = rng.normal(POWER, POWER_SPREAD, draws).clip(POWERS[0], POWERS[-1])
    needed = [one.questions(target) for one in _fit(points, again, expected)]
    low, high = np.quantile(needed, [0.1, 0.9], method="inverted_cdf")
    reachable = float(np.isfinite(needed).mean())
    return Forecast(target, curve.questions(target), float(low), float(high), reachable, curve)


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
    share = weight / weight.sum()
    mean_u, mean_e = u @ share, errors @ share
    product = errors @ (share * u).T  # [D, G]
    scale = (product - mean_e[:, None] * mean_u) / ((u - mean_u[:, None]) ** 2 @ share)
    floor = mean_e[:, None] - scale * mean_u
    scale, floor = np.where(floor < 0, product / (u**2 @ share), scale), floor.clip(min=0)
    floor = np.where(scale <= 0, mean_e[:, None].clip(min=0), floor)
    scale = scale.clip(min=_FLAT)  # neither is below zero
    left = errors[:, None] - floor[..., None] - scale[..., None] * u
    misfit = (weight * left**2).sum(-1) + ((POWERS - expected[:, None]) / POWER_SPREAD) ** 2
    best = misfit.argmin(1)
    return [
        Curve(float(floor[row, at]), float(scale[row, at] * unit ** POWERS[at]), float(POWERS[at]))
        for row, at in enumerate(best)
    ]


# ---------------------------------------------------------------------- from a project

#: Items with answers below which a project says too little about itself.
LEAST = 100
SHARES = (0.25, 0.5, 1.0)
FOLDS = 5
STEPS = 1500  # of a fit, as in the study
GRID = {"learning_rate": [1e-3, 1e-2, 1e-1], "weight_decay": [1e-5, 1e-3]}


DRAWS = 40  # of items, for each error rate that may be true
RATES = 15  # of those
#: How much accuracy varies with the rows that taught: this by the questions is its spread. Chosen
#: on simulations, as the ranges are to hold there.
TAUGHT = 8


def measure_curve(
    review: Review,
    *,
    model: str = "linear",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Train on growing shares of a project's answers, and test on items left out.

    Accuracy is estimated from answers to random sets and from how often answers to gold questions
    were wrong, so no true label is needed; without gold questions answers count as never wrong.
    Each share of the items is cut into five parts, each tested by a model trained on the other
    four, with the settings that were best on those.

    A point might have come out otherwise: with other items, another error rate that the gold
    questions allow, other rows to train on. Shares hold the same items, so they err together.
    """
    (wrong, tests), rng = review.tests, np.random.default_rng(seed)
    known = review.said if tests else review.answers
    asked, place = np.unique(known.items, return_inverse=True)
    fresh = review.gold[asked] < 0  # items of known class never train
    if fresh.sum() < LEAST:
        raise InputError(
            f"{fresh.sum()} items have answers to random sets, too few to measure on",
            f"plan again after {LEAST}, or leave the project out for what the study found",
        )
    table, order = review.table, rng.permutation(np.flatnonzero(fresh))
    if table.features and (scaling := Scaling.of(table.x)).problem(table.features):
        table = replace(table, x=scaling(table.x))  # as fit does
    rates = rng.beta(wrong + 0.5, tests - wrong + 0.5, RATES) if tests else np.zeros(1)
    rate = (wrong + 0.5) / (tests + 1) if tests else 0.0
    cases = [_evidence(known, place, one) for one in (rate, *rates)]
    how = {"model": model, "approach": "likelihood" if tests else "log"}
    times = rng.poisson(1.0, (DRAWS, len(order)))
    questions = np.bincount(place)
    found = []
    for number, share in enumerate(SHARES):
        some = order[: round(share * len(order)) // FOLDS * FOLDS]
        predicted = _crossed(table, cases[0][some], asked[some], how, seed)
        earned = [case[some].credit.of(predicted) for case in cases]
        count = float(questions[some].sum() * (1 - 1 / FOLDS))
        drawn = np.concatenate([_mean(one, times[:, : len(some)]) for one in earned[1:]])
        drawn += rng.normal(0, TAUGHT / count, len(drawn))
        found.append(Point(count, float(_mean(earned[0])), float(drawn.std()), drawn))
        if progress is not None:
            progress(number + 1, len(SHARES))
    return found


def _evidence(known: Answers, place: NDArray[np.intp], rate: float) -> Evidence:
    """Say what the answers about each item make of every class, if a share of them is wrong.

    What rules out much is more often wrong: of k classes s are ruled out by a wrong answer in s
    cases, by a right one in k - s.
    """
    sets = known.ruled_out
    s, k = sets.sizes, sets.shape[1]
    return evidence(sets, rate * s / (rate * s + (1 - rate) * (k - s)), items=place)


def _mean(earned: Credit, times: NDArray[Any] | int = 1) -> NDArray[np.float64]:
    """Return the mean of what predictions earned, each item counting so many `times`."""
    weight = times * earned.weight
    return np.asarray((weight * earned.value).sum(-1) / weight.sum(-1))


def _crossed(
    table: Table, known: Evidence, rows: NDArray[np.intp], how: dict[str, Any], seed: int
) -> NDArray[np.intp]:
    """Return what models predict for the items that they were not trained on."""
    from ruleout.selection import folds
    from ruleout.training import Trial, fit_grid
    from ruleout.training.grid_fit import predict
    from ruleout.training.validation import together

    n, groups = len(rows), together(table.x, rows=rows)
    groups = np.arange(n) if groups is None else groups  # equal items learn or test together
    parts = folds(n, FOLDS, groups, np.random.default_rng(seed))
    whole = Trial(known.sets, rows, evidence=known)
    epochs = -(-STEPS // -(-(n - n // FOLDS) // 256))
    fit = fit_grid(
        table.x, [whole.part(np.setdiff1d(np.arange(n), part)) for part in parts], grid=GRID,
        epochs=epochs, every=epochs, seed=seed, moments=False, shape=table.shape, **how,
    )  # fmt: skip
    found = np.zeros((fit.shape[1], n), np.intp)
    for trial, part in enumerate(parts):
        for place in range(len(found)):
            logits = predict(fit.module(trial, place), table.x[rows[part]])
            found[place, part] = logits.argmax(-1).numpy()
    earned = [known.credit.of(one) for one in found]
    for part in parts:  # the settings that were best on the other parts
        rest = np.setdiff1d(np.arange(n), part)
        scores = [_mean(Credit(*(values[rest] for values in one))) for one in earned]
        found[0, part] = found[int(np.argmax(scores)), part]
    return np.asarray(found[0])


# ---------------------------------------------------------------------- from the study

#: What ``docs/study.py`` measured with a simulated annotator.
FILE = Path(__file__).with_name("study.csv")


@dataclass(frozen=True)
class Measured:
    """One trial: a data set, a model, a way to learn, how many questions, the test accuracy."""

    data: str
    model: str
    way: str
    questions: int
    trial: int
    accuracy: float


def read_study(file: Path = FILE) -> list[Measured]:
    """Return every trial; none where the study has not been run."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    read: dict[str, Callable[[str], Any]] = {"questions": int, "trial": int, "accuracy": float}
    return [Measured(**{n: read.get(n, str)(text) for n, text in row.items()}) for row in rows]


def points(trials: Iterable[Measured]) -> list[Point]:
    """Return the mean accuracy for each number of questions, with its standard error.

    >>> points([Measured("d", "linear", "no", 9, t, a) for t, a in enumerate([0.5, 0.7])])
    [Point(questions=9, accuracy=0.6, error=0.1)]
    """
    found: dict[int, list[float]] = {}
    for one in trials:
        found.setdefault(one.questions, []).append(one.accuracy)
    points = []
    for questions, values in sorted(found.items()):
        error = np.std(values, ddof=min(len(values) - 1, 1)) / np.sqrt(len(values))
        points.append(Point(questions, round(float(np.mean(values)), 12), round(float(error), 12)))
    return points


@dataclass(frozen=True)
class Planned:
    """What the study says about a target: on which data, with which model, in which way.

    `questions` with its range: over the trials where all of them reached the target, else by the
    curve that was fitted.
    """

    data: str
    model: str
    way: str
    questions: float
    low: float
    high: float


def study_plans(target: float, trials: Sequence[Measured] | None = None) -> list[Planned]:
    """Return what every curve of the study says."""
    every = read_study() if trials is None else list(trials)
    curves = dict.fromkeys((one.data, one.model, one.way) for one in every)
    return [Planned(*curve, *_needed(_of(every, *curve), target)) for curve in curves]


def _needed(trials: Sequence[Measured], target: float) -> tuple[float, float, float]:
    """Return how many questions the target took, and the range."""
    reached = []
    numbers = {one.trial for one in trials}
    for number in numbers:
        questions, accuracy = _rising(points(one for one in trials if one.trial == number))
        if accuracy[0] <= target <= accuracy[-1]:  # not from the start
            reached.append(float(np.exp(np.interp(target, accuracy, np.log(questions)))))
    if len(reached) == len(numbers):
        return float(np.median(reached)), min(reached), max(reached)
    by_curve = forecast(points(trials), target)
    return by_curve.questions, by_curve.low, by_curve.high


@dataclass(frozen=True)
class Ratio:
    """How many questions teach as much as one true label: the middle and the extremes seen."""

    way: str
    middle: float
    low: float
    high: float


def label_ratio(way: str, trials: Sequence[Measured] | None = None) -> Ratio:
    """Compare a way with true labels, at every accuracy that both reached in the study.

    Between two measurements accuracy is taken as a line over the logarithm of the questions.
    """
    every = read_study() if trials is None else list(trials)
    ratios: list[float] = []
    for data, model in dict.fromkeys((one.data, one.model) for one in every):
        asked, labelled = _of(every, data, model, way), _of(every, data, model, "labels")
        if asked and labelled:
            (q, reached), (n, by_labels) = _rising(points(asked)), _rising(points(labelled))
            ratios += [
                float(np.exp(np.interp(a, reached, np.log(q)) - np.interp(a, by_labels, np.log(n))))
                for a in reached
                if by_labels[0] <= a <= by_labels[-1]
            ]
    if not ratios:
        raise InputError(f"the study has nothing about {way!r}", "run docs/study.py first")
    return Ratio(way, float(np.median(ratios)), min(ratios), max(ratios))


def _rising(measured: list[Point]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return questions and accuracies; a dip by chance is filled, as more cannot teach less."""
    accuracy = np.maximum.accumulate([point.accuracy for point in measured])
    return np.array([point.questions for point in measured]), accuracy


def _of(every: Sequence[Measured], data: str, model: str, way: str) -> list[Measured]:
    return [one for one in every if (one.data, one.model, one.way) == (data, model, way)]
