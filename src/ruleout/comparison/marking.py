"""Testing every row against the best of the reference approaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ruleout.comparison.method import Method
from ruleout.comparison.rows import Row
from ruleout.comparison.statistics import holm, mark, paired_t_test

__all__ = ["with_marks"]


def with_marks(
    rows: Sequence[Row], method: Method, reference: Sequence[str]
) -> tuple[tuple[Row, ...], Method]:
    """Return the rows with p-values and marks, and the method with the reference named.

    The reference is the best of those asked for; where none of them has a score, the best of all.
    """
    alive = [row for row in rows if not row.failed]
    asked = [row for row in alive if row.approach in reference] or alive
    if not asked or len(rows) < 2:
        return tuple(rows), method
    sign = 1 if method.higher_is_better else -1
    ours = max(asked, key=lambda row: sign * row.score)
    raw = np.array([_p_value(ours, row, method) for row in rows])
    fair = holm(raw)
    used = fair if method.holm else raw
    marked = [
        replace(
            row,
            p_value=float(raw[place]),
            p_holm=float(fair[place]),
            mark=mark(sign * ours.score, sign * row.score, float(used[place]), method.level),
        )
        for place, row in enumerate(rows)
    ]
    return tuple(marked), replace(method, reference=ours.approach)


def _p_value(ours: Row, row: Row, method: Method) -> float:
    if row is ours or row.failed:
        return np.nan
    if method.over == "trials":
        return paired_t_test(ours.trials, row.trials)
    return paired_t_test(ours.values, row.values)
