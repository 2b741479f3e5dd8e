"""Findings that need true labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.errors import DataError
from ruleout.datasets.inspection.counting import count_by_truth, some_rows
from ruleout.datasets.inspection.findings import Finding
from ruleout.datasets.inspection.listing import MANY, WRONG, percent, shown_p
from ruleout.datasets.inspection.uniformity import given_truth
from ruleout.labels.classes import encode
from ruleout.labels.sets import LabelSets

__all__ = ["look_at_truth"]


def look_at_truth(sets: LabelSets, labels: Any) -> list[Finding]:
    """Count the rows that rule out the truth; test the choice among the wrong classes."""
    truth = encode(labels, sets.classes, "labels")
    if len(truth) != len(sets):
        raise DataError(f"{len(truth)} labels for {len(sets)} sets", "give one label per row")
    wrong = sets.packed[np.arange(len(sets)), truth // 8] >> (truth % 8).astype(np.uint8) & 1 == 1
    return [_errors(wrong), *_choice(sets, truth, wrong)]


def _errors(wrong: NDArray[np.bool_]) -> Finding:
    count, n = int(wrong.sum()), len(wrong)
    numbers = {"rows": count, "rate": count / max(n, 1)}
    if not count:
        return Finding("fine", "true class", "No row rules out its true class.", numbers)
    message = (
        f"{count:,} of {n:,} rows ({percent(count / n)}) rule out their true class, the first of "
        f"them is row {int(np.argmax(wrong))}."
    )
    return Finding("warning", "true class", message, numbers)


def _choice(sets: LabelSets, truth: NDArray[np.intp], wrong: NDArray[np.bool_]) -> list[Finding]:
    """Test whether all wrong classes are ruled out equally often, among the rows that can be."""
    k = len(sets.classes)
    if k > MANY:
        return []
    good = np.flatnonzero(~wrong & (sets.sizes > 0))
    good = good[some_rows(sets[good])]
    part, code = sets[good], truth[good]
    rows, sums, squares = (_sums(code, part.sizes**power, k) for power in (0, 1, 2))
    test = given_truth(count_by_truth(part, code), rows, sums, squares)
    if test is None:
        return []
    numbers = {"p": test.p, "statistic": test.statistic, "freedom": test.freedom}
    if test.p >= WRONG:
        message = f"Given the truth, all wrong classes are ruled out alike ({shown_p(test.p)})."
        return [Finding("fine", "wrong classes", message, numbers)]
    message = (
        f"Given the truth, some wrong classes are ruled out more often than others "
        f"({shown_p(test.p)}): approaches assume that they are not."
    )
    return [Finding("warning", "wrong classes", message, numbers)]


def _sums(code: NDArray[np.intp], values: NDArray[np.intp], k: int) -> NDArray[np.float64]:
    """Add up the values of the rows of each true class."""
    return np.asarray(np.bincount(code, values, k), np.float64)
