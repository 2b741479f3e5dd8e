"""How many questions a target accuracy takes: measured on a project, or known from the study."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import Table
from ruleout.labels.errors import InputError
from ruleout.learning.curves import Point, forecast
from ruleout.learning.reviews import Review
from ruleout.learning.study import Measured, points, read_study
from ruleout.selection import criterion
from ruleout.training import Trial, Watch, fit_grid

__all__ = ["LEAST", "Planned", "Ratio", "label_ratio", "measure_curve", "study_plans"]

#: Items with answers below which a project says too little about itself.
LEAST = 100
SHARES = (0.25, 0.5, 1.0)
FOLDS = 5
STEPS = 1500  # of a fit, as in the study
GRID = {"learning_rate": [1e-3, 1e-2, 1e-1], "weight_decay": [1e-5, 1e-3]}


# ---------------------------------------------------------------------- from a project


def measure_curve(
    review: Review,
    *,
    model: str = "linear",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> list[Point]:
    """Train on growing shares of a project's answers, and test on items left out.

    Accuracy is the unbiased estimate from answers to random sets, so no true label is needed. Each
    share of the items is cut into five parts, each tested by a model trained on the other four.
    Of six settings the best on average counts, so the accuracy is a little too good.

    Returns
    -------
    list of Point
        Questions that trained, mean accuracy, and its standard error.
    """
    asked, sets, rates = review.answers.per_item()
    if len(asked) < LEAST:
        raise InputError(
            f"{len(asked)} items have answers to random sets, too few to measure on",
            f"plan again after {LEAST}, or leave the project out for what the study found",
        )
    order = np.random.default_rng(seed).permutation(len(asked))
    questions = np.bincount(review.answers.items)[asked]
    found = []
    for place, share in enumerate(SHARES):
        some = order[: round(share * len(order)) // FOLDS * FOLDS]
        known = Trial(sets[some], asked[some], rate=rates[some])
        accuracy, error = _crossed(review.table, known, model, seed)
        found.append(Point(float(questions[some].sum() * (1 - 1 / FOLDS)), accuracy, error))
        if progress is not None:
            progress(place + 1, len(SHARES))
    return found


def _crossed(table: Table, known: Trial, model: str, seed: int) -> tuple[float, float]:
    """Return the accuracy on the parts left out, and its standard error."""
    parts = np.array_split(np.arange(len(known.sets)), FOLDS)
    tests = [known.part(part) for part in parts]
    learned = [known.part(np.concatenate(parts[:f] + parts[f + 1 :])) for f in range(FOLDS)]
    judge = criterion("accuracy")
    watch = Watch(
        [test.sets for test in tests], {judge.name: judge.values},
        rows=[test.rows for test in tests], rate=[test.rate for test in tests],
    )  # fmt: skip
    epochs = -(-STEPS // -(-len(learned[0].sets) // 256))
    fit = fit_grid(
        table.x, [replace(one, rate=None) for one in learned], model=model, grid=GRID,
        epochs=epochs, seed=seed, watch={"left out": watch}, every=epochs, moments=False,
        shape=table.shape,
    )  # fmt: skip
    estimate, error = (
        kept[f"left out/{judge.name}"][:, :, -1] for kept in (fit.history, fit.errors)
    )
    best = int(np.nanmean(estimate, 0).argmax())
    return float(estimate[:, best].mean()), float(np.sqrt(np.square(error[:, best]).sum()) / FOLDS)


# ---------------------------------------------------------------------- from the study


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
    numbers = sorted({one.trial for one in trials})
    lines = [points([one for one in trials if one.trial == number]) for number in numbers]
    found = [_crossed_at(line, target) for line in lines]
    reached = [questions for questions in found if questions is not None]
    if len(reached) == len(lines):
        return float(np.median(reached)), min(reached), max(reached)
    by_curve = forecast(points(trials), target)
    return by_curve.questions, by_curve.low, by_curve.high


def _crossed_at(line: list[Point], target: float) -> float | None:
    """Return where a line reaches the target; None where it does not, or did from the start."""
    questions, accuracy = _rising(line)
    if not accuracy[0] <= target <= accuracy[-1]:
        return None
    return float(np.exp(np.interp(target, accuracy, np.log(questions))))


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
            ratios += _ratios(points(asked), points(labelled))
    if not ratios:
        raise InputError(f"the study has nothing about {way!r}", "run docs/study.py first")
    return Ratio(way, float(np.median(ratios)), min(ratios), max(ratios))


def _ratios(asked: list[Point], labelled: list[Point]) -> list[float]:
    q, reached = _rising(asked)
    n, by_labels = _rising(labelled)
    inside = [a for a in reached if by_labels[0] <= a <= by_labels[-1]]
    return [
        float(np.exp(np.interp(a, reached, np.log(q)) - np.interp(a, by_labels, np.log(n))))
        for a in inside
    ]


def _rising(measured: list[Point]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return questions and accuracies; a dip by chance is filled, as more cannot teach less."""
    accuracy = np.maximum.accumulate([point.accuracy for point in measured])
    return np.array([point.questions for point in measured]), accuracy


def _of(every: Sequence[Measured], data: str, model: str, way: str) -> list[Measured]:
    return [one for one in every if (one.data, one.model, one.way) == (data, model, way)]
