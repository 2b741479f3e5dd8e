"""Data and parameters that make a fit of a moment."""

from __future__ import annotations

from typing import Any

import numpy as np

import ruleout as ro
from ruleout.estimator import RuleOutClassifier

_DIGITS = ro.datasets.load("digits")
X, Y = _DIGITS.x_train[:300], _DIGITS.y_train[:300]
SETS = ro.draw(Y, classes=10, seed=0)
NAMES = np.array(["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"])


def classifier(**parameters: Any) -> RuleOutClassifier:
    return RuleOutClassifier(**{"learning_rate": 0.1, "epochs": 5, "random_state": 0, **parameters})
