"""Comparisons for the tests: one trained on digits in a second, one made up."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ruleout as ro
from ruleout.comparison import Comparison, Method, Row
from ruleout.comparison.comparison_result import Curve

GRID = {"learning_rate": [1e-1, 1e-2], "weight_decay": [1e-3, 1e-5]}


@cache
def digits() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Training rows and labels, test rows and labels, in a fixed random order."""
    x, y = ro.datasets.load("digits").train
    order = np.random.default_rng(0).permutation(len(y))
    x, y = x[order], y[order]
    return x[:1000], y[:1000], x[1000:], y[1000:]


def row(approach: str, score: float, **told: Any) -> Row:
    found = ro.approach(approach)
    about: dict[str, Any] = {
        "approach": approach,
        "label": found.label,
        "family": found.family,
        "form": found.form,
        "score": score,
        "spread": 0.01,
        "trials": (score - 0.01, score, score + 0.01),
        "configuration": {"learning_rate": 0.01, "weight_decay": 1e-5},
        "configurations": ({"learning_rate": 0.01, "weight_decay": 1e-5},) * 3,
        "estimate": score + 0.02,
        "error": 0.02,
        "seconds": 1.5,
        "models": 12,
        "curve": Curve(np.array([1, 2]), np.array([[0.1, score]] * 3)),
    }
    return Row(**(about | told))


def lost(approach: str) -> Row:
    """A row whose configurations all diverged."""
    empty = {"spread": np.nan, "trials": (), "configuration": {}, "configurations": ()}
    more = {"estimate": np.nan, "error": np.nan, "diverged": 12, "curve": None}
    return row(approach, np.nan, **empty, **more)


def table(*rows: Row, **told: Any) -> Comparison:
    method: dict[str, Any] = {"kind": "labels", "rows": 360, "trials": 3, "reference": "log"}
    return Comparison(
        rows=rows,
        method=Method(**(method | told)),
        facts={"model": "linear", "grid": "4 configurations (q 0.7)", "rows": 1000},
        classes=("cat", "dog", "fish"),
        sizes=np.array([0, 60, 40]),
    )
