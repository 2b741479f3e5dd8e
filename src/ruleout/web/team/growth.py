"""How the work grew over time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from ruleout.web.team.columns import Rows, Whole, columns, keys, moment

__all__ = ["Growth", "growth"]


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Counts up to and including each moment, for a plot.

    Attributes
    ----------
    times
        Rising moments, the first and last answer among them.
    answers
        How many questions had standing answers by then; skips answer none, and "which" belongs to
        its "yes".
    items
        How many different items they were about.
    """

    times: tuple[datetime, ...]
    answers: tuple[int, ...]
    items: tuple[int, ...]


def growth(rows: Rows, points: int = 500) -> Growth:
    """Count standing answers over time, thinned to about `points` moments, evenly by answers.

    Answers that were taken back since do not show: the curve is of what stands today.
    """
    log = columns(rows)
    standing = np.flatnonzero(log.counts & ~log.is_kind("skip"))
    standing = standing[np.lexsort((log.number[standing], log.received[standing]))]
    if not len(standing):
        return Growth(times=(), answers=(), items=())
    item, at = log.item[standing], log.received[standing]
    questions = _so_far(keys(log.user[standing], item, log.round[standing]))
    items = _so_far(item)
    step = max(1, -(-len(standing) // points))
    chosen = np.unique(np.r_[at[::step], at[-1]])
    last = np.searchsorted(at, chosen, side="right") - 1  # of the answers of one moment
    return Growth(
        times=tuple(moment(one) for one in chosen.tolist()),
        answers=tuple(questions[last].tolist()),
        items=tuple(items[last].tolist()),
    )


def _so_far(key: Whole) -> Whole:
    """Count the different numbers up to and including each."""
    is_new = np.zeros(len(key), np.intp)
    is_new[np.unique(key, return_index=True)[1]] = 1
    return np.cumsum(is_new)
