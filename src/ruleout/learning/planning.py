r"""How many questions a target accuracy takes: measured on a project, or known from the study.

Error falls from a start, where nothing is known, to a floor that no amount of data lowers:

.. math:: \frac{1}{e(Q) - a} = \frac{1}{s - a} + \frac{Q^c}{b}, \qquad
          e(Q) \approx a + b\,Q^{-c} \text{ for large } Q.

Few answers do not tell four numbers, so the forecast is Bayes': many curves are drawn, as they are
wherever they were measured, and each weighs by how likely it makes the points, which err together.
The weighed curves say how many questions a target takes. Far ahead they part: the range then is
wide, or open at its upper end.
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

from ruleout.datasets.tables import Scaling
from ruleout.labels import Answers, Evidence, evidence
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Credit

if TYPE_CHECKING:
    from ruleout.datasets import Table
    from ruleout.learning.training_data import Review

# ---------------------------------------------------------------------- curves

#: What curves are like: the start, 1 - 1/k; the floor as a share of it, by a beta distribution; the
#: power's middle and the spread of its logarithm, as in the study and in simulated projects; after
#: how many questions half of the way is made, give or take a factor of e or, at times, far more.
START = 0.5, 1.0
FLOOR = 0.3, 3.0
POWER, POWER_SPREAD = 1.4, 0.45
HALF = 100
MISFIT = 0.07  # how far errors lie off the best of such curves, by their size, as in the study


@dataclass(frozen=True)
class Point:
    """What was measured: the number of questions, the accuracy, its standard error."""

    questions: float
    accuracy: float
    error: float
    #: accuracies that might have been measured as well; places of several points belong together
    drawn: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)


def _asked(error: Any, floor: Any, scale: Any, power: Any, start: Any) -> Any:
    """Return how many questions it takes until the error of curves is as small."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rise = 1 / (error - floor) - 1 / (start - floor)
        log = np.log(scale * np.maximum(rise, 0)) / power
        found = np.ceil(np.round(np.exp(log), 6)).clip(min=1)
    return np.where((error - floor <= 1e-9) | (log > 40), np.inf, found)


@dataclass(frozen=True)
class Forecast:
    """How many questions a target takes; infinity: it is not reached.

    Of the weighed curves half needs fewer than `questions`, and eight of ten lie in the range: a
    tenth needs fewer than `low` and a tenth more than `high`; where `high` is infinite, two tenths
    need fewer. `reachable` is the share that reaches the target.
    """

    target: float
    questions: float
    low: float
    high: float
    reachable: float


def forecast(
    points: Sequence[Point], target: float, *, draws: int = 20_000, seed: int = 0
) -> Forecast:
    """Say how many questions the target accuracy takes, by so many curves that are drawn."""
    if not 0 < target < 1:
        raise InputError(f"the target accuracy is {target}", "give a number between 0 and 1")
    curves, weights = _weighed(points, draws, seed)
    needed = _asked(1 - target, *curves)
    order = needed.argsort()
    places = np.searchsorted(weights[order].cumsum(), [0.5, 0.1, 0.2, 0.9])
    middle, tenth, fifth, high = needed[order[places.clip(max=draws - 1)]].tolist()
    reachable = float(weights[np.isfinite(needed)].sum())
    return Forecast(target, middle, fifth if math.isinf(high) else tenth, high, reachable)


def _weighed(
    points: Sequence[Point], draws: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Draw curves, ``[4, draws]``: floor, scale, power, start; and weigh them.

    Only curves that pass near the last point are drawn, which their weights make up for.
    """
    if len({point.questions for point in points}) < 2:
        raise InputError("a curve needs two numbers of questions", "measure at more of them")
    for point in points:
        values = (point.questions, point.accuracy, point.error)
        if not all(map(math.isfinite, values)) or point.questions <= 0 or point.error < 0:
            raise InputError(
                f"{point} is not a measurement", "give finite numbers, questions above 0"
            )
    q, errors = np.array([(p.questions, 1 - p.accuracy) for p in points], float).T
    drawn = [point.drawn for point in points if point.drawn is not None]
    moved = np.cov(drawn) if drawn else np.diag([point.error**2 for point in points])
    moved = moved + np.diag(np.square(MISFIT * errors.clip(0.02, 1)))
    rng, last = np.random.default_rng(seed), int(q.argmax())
    start, share = rng.uniform(*START, draws), rng.beta(*FLOOR, draws)
    floor, fall = start * share, start * (1 - share)
    power = rng.lognormal(math.log(POWER), POWER_SPREAD, draws)
    near, reach = errors[last] - floor, 4 * math.sqrt(moved[last, last])
    low = np.clip((near - reach) / fall, 1e-4, 0.99)
    high = np.clip((near + reach) / fall, 2e-4, 0.999)
    left = rng.uniform(low, high)  # of the way, at the last point
    rise = 1 / left - 1
    half = math.log(q[last]) - np.log(rise) / power
    off = floor + fall / (1 + np.exp(power * (np.log(q)[:, None] - half))) - errors[:, None]
    fits = -0.5 * (off * np.linalg.solve(moved, off)).sum(0)
    stood_for = np.log((high - low) / (power * rise * left**2))  # change of variables to half
    log = fits + stood_for - np.log1p((half - math.log(HALF)) ** 2)
    weights = np.exp(log - log.max())
    curves = np.stack([floor, fall * np.exp(power * half), power, start])
    return curves, weights / weights.sum()


# ---------------------------------------------------------------------- from a project

#: Items with answers below which a project says too little about itself.
LEAST = 100
SHARES = (0.25, 0.5, 1.0)
FOLDS = 5
STEPS = 1500  # of a fit, as in the study
GRID = {"learning_rate": [1e-3, 1e-2, 1e-1], "weight_decay": [1e-5, 1e-3]}
DRAWS = 100  # of items, for each error rate that may be true
RATES = 15  # of those
_GUESSED = 0.5  # answers that are wrong so often say nothing
#: How much accuracy varies with the rows that taught: this many times the standard error of a share
#: of as many items, and how much of its variance points have in common, as in simulated projects.
TAUGHT, SHARED = 1.6, 0.25


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
    rates = rates[rates < _GUESSED]
    if rate >= _GUESSED or not len(rates):
        raise InputError(
            f"{wrong} of {tests} answers to gold questions were wrong, so that nothing follows",
            "see on the team page who may be guessing, or leave the project out",
        )
    cases = [_evidence(known, place, one) for one in (rate, *rates)]
    how = {"model": model, "approach": "likelihood" if tests else "log"}
    times = rng.poisson(1.0, (DRAWS, len(order)))
    common = rng.normal(0, math.sqrt(SHARED), len(rates) * DRAWS)
    questions = np.bincount(place)
    found = []
    for number, share in enumerate(SHARES):
        some = order[: round(share * len(order)) // FOLDS * FOLDS]
        predicted = _crossed(table, cases[0][some], asked[some], how, seed)
        earned = [case[some].credit.of(predicted) for case in cases]
        count = float(questions[some].sum() * (1 - 1 / FOLDS))
        drawn = np.concatenate([_mean(one, times[:, : len(some)]) for one in earned[1:]])
        accuracy = float(_mean(earned[0]))
        share = min(max(accuracy, 0.02), 0.98)
        luck = common + rng.normal(0, math.sqrt(1 - SHARED), len(drawn))
        drawn += TAUGHT * math.sqrt(share * (1 - share) / count) * luck
        found.append(Point(count, accuracy, float(drawn.std()), drawn))
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
