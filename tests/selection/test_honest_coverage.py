"""How often the interval of what was chosen holds the truth, and that the classifier keeps it."""

from __future__ import annotations

from typing import Any

import fit_coverage
import pytest

from ruleout.estimator import RuleOutClassifier
from ruleout.selection import search


@pytest.mark.slow
@pytest.mark.parametrize("error", [0.0, 0.1])
def test_intervals_hold_the_truth_after_a_choice(error: float) -> None:
    """A share of ``benchmarks/fit_coverage.py``, with seeds by which nothing was set."""
    told = fit_coverage.summary(
        list(fit_coverage.runs(list(range(1000, 1015)), 120, error, "linear", None))
    )
    assert told["held"] >= 0.8  # fewer of 15 in one case of 180, at 95 %
    assert abs(told["bias"]) < 0.12


def test_the_classifier_keeps_the_number_of_the_search() -> None:
    x, trial = fit_coverage.trial(1, 100, 0.0)
    clf = RuleOutClassifier(grid="small", epochs=30, random_state=4).fit(x, trial.sets)
    told: dict[str, Any] = {"grid": "small", "epochs": 30, "seed": 4, "refit": False}
    (number,) = search(x, trial.sets, folds=5, honest=True, **told).numbers
    assert number is not None
    assert clf.criterion_[1] == number.estimate
    assert clf.criterion_[3:] == number[1:]
