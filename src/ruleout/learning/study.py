"""What the study with a simulated annotator measured: accuracy against the number of questions.

The study itself is ``docs/study.py``; here is what it found, for whoever plans a project.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ruleout.learning.curves import Point

__all__ = ["FILE", "Measured", "points", "read_study"]

FILE = Path(__file__).with_name("study.csv")


@dataclass(frozen=True)
class Measured:
    """One trial: a data set, a model, a way to learn, so many questions, the test accuracy."""

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
        return [
            Measured(
                row["data"], row["model"], row["way"], int(row["questions"]), int(row["trial"]),
                float(row["accuracy"]),
            )
            for row in csv.DictReader(lines)
        ]  # fmt: skip


def points(trials: Iterable[Measured]) -> list[Point]:
    """Return the mean accuracy for each number of questions, with its standard error.

    >>> points([Measured("d", "linear", "no", 9, t, a) for t, a in enumerate([0.5, 0.7])])
    [Point(questions=9, accuracy=0.6, error=0.1)]
    """
    found: dict[int, list[float]] = {}
    for one in trials:
        found.setdefault(one.questions, []).append(one.accuracy)
    return [
        Point(questions, round(float(np.mean(values)), 12), _error(values))
        for questions, values in sorted(found.items())
    ]


def _error(values: list[float]) -> float:
    if len(values) < 2:
        return 0.0
    return round(float(np.std(values, ddof=1) / np.sqrt(len(values))), 12)
