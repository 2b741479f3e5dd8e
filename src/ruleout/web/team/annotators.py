"""Who answered how much, how fast and how well, and how the work grew over time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import NormalDist

import numpy as np

from ruleout.web.answer_log import KINDS, AnswerLog, Whole, keys, moment
from ruleout.web.error_rates import gold_counts
from ruleout.web.project_progress import pace

_LAST = 100  # rows that a pace is taken from


# ---------------------------------------------------------------------- how much


@dataclass(frozen=True, kw_only=True)
class Annotator:
    """What one person did: counts of what stands, of what was late, and of what was taken back.

    `answers` is how many questions they answered: skips answer none, and "which" belongs to its
    "yes". `items` is how many items these are about. `median_seconds` is how long a standing
    answer took, skips included; None if no client said.
    """

    name: str
    answers: int = 0
    yes: int = 0
    no: int = 0
    which: int = 0
    excluded: int = 0
    skips: int = 0
    late: int = 0
    undone: int = 0
    items: int = 0
    median_seconds: float | None = None


def annotators(log: AnswerLog) -> list[Annotator]:
    """Count for everybody who answered, those with most answers first."""
    found = [_counted(log, user) for user in np.unique(log.user).tolist()]
    return sorted(found, key=lambda one: (-one.answers, one.name))


def _counted(log: AnswerLog, user: int) -> Annotator:
    mine = log.user == user
    standing = mine & log.counts
    said = standing & ~log.is_kind("skip")
    took = log.took_ms[standing & (log.took_ms >= 0)]
    kinds = dict(zip(KINDS, np.bincount(log.kind[standing], minlength=len(KINDS)), strict=True))
    return Annotator(
        name=log.users[user],
        answers=len(np.unique(keys(log.item[said], log.round[said]))),
        yes=int(kinds["yes"]),
        no=int(kinds["no"]),
        which=int(kinds["which"]),
        excluded=int(kinds["excluded"]),
        skips=int(kinds["skip"]),
        late=int((mine & log.late).sum()),
        undone=int((mine & ~(log.counts | log.late | log.is_kind("undo"))).sum()),
        items=len(np.unique(log.item[standing])),
        median_seconds=float(np.median(took)) / 1000 if len(took) else None,
    )


def paces(log: AnswerLog, pause: timedelta) -> dict[str, float]:
    """Return how many questions each annotator answers per hour of work, where that is known.

    The last hundred rows of theirs are looked at, imported ones and pauses left out, as on the
    annotator's own page.
    """
    found, given = {}, log.is_kind("yes", "no", "excluded") & ~log.imported
    for user in np.unique(log.user).tolist():
        last = np.flatnonzero(log.user == user)[-_LAST:]
        moments = log.received[last[given[last]]].tolist()
        per_hour = pace([moment(received) for received in moments], pause)
        if per_hour is not None:
            found[log.users[user]] = per_hour
    return found


# ---------------------------------------------------------------------- how well


@dataclass(frozen=True)
class Rate:
    """How many of the answers that were asked for were right."""

    right: int
    asked: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        r"""Return Wilson's interval, which stays inside [0, 1] and holds for few answers too.

        .. math::
           \frac{p + z^2/2n \pm z \sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}

        Wilson (1927), Journal of the American Statistical Association 22. Nothing asked: [0, 1].

        >>> low, high = Rate(9, 10).interval()
        >>> round(low, 4), round(high, 4)
        (0.5958, 0.9821)
        """
        n = self.asked
        if not n:
            return 0.0, 1.0
        z = NormalDist().inv_cdf((1 + level) / 2)
        p = self.right / n
        middle = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        low, high = max(middle - half, 0.0), min(middle + half, 1.0)
        return 0.0 if self.right == 0 else low, 1.0 if self.right == n else high


@dataclass(frozen=True)
class GoldScore:
    """One annotator's answers to gold questions.

    `sensitivity`: "yes" where the proposed set holds the class. `specificity`: "no" where it does
    not. `free`: "which" and rule-out answers that do not rule the class out.
    """

    sensitivity: Rate
    specificity: Rate
    free: Rate


def gold_scores(log: AnswerLog) -> dict[str, GoldScore]:
    """Score the standing answers to gold questions, by name."""
    right, asked = gold_counts(log)
    return {
        name: GoldScore(*map(Rate, good.tolist(), all_of.tolist()))
        for name, good, all_of in zip(log.users, right, asked, strict=True)
        if all_of.any()
    }


# ---------------------------------------------------------------------- over time


@dataclass(frozen=True, kw_only=True)
class Growth:
    """Rising moments, and by each how many questions had standing answers, about how many items.

    Skips answer none, and "which" belongs to its "yes". The first and the last answer are among
    the moments.
    """

    times: tuple[datetime, ...] = ()
    answers: tuple[int, ...] = ()
    items: tuple[int, ...] = ()


def growth(log: AnswerLog, points: int = 500) -> Growth:
    """Count standing answers over time, thinned to about `points` moments, evenly by answers.

    Answers that were taken back since do not show: the curve is of what stands today.
    """
    standing = np.flatnonzero(log.counts & ~log.is_kind("skip"))
    standing = standing[np.lexsort((log.number[standing], log.received[standing]))]
    if not len(standing):
        return Growth()
    item, at = log.item[standing], log.received[standing]
    questions = _so_far(keys(log.user[standing], item, log.round[standing]))
    step = max(1, -(-len(standing) // points))
    chosen = np.unique(np.r_[at[::step], at[-1]])
    last = np.searchsorted(at, chosen, side="right") - 1  # of the answers of one moment
    return Growth(
        times=tuple(moment(one) for one in chosen.tolist()),
        answers=tuple(questions[last].tolist()),
        items=tuple(_so_far(item)[last].tolist()),
    )


def _so_far(key: Whole) -> Whole:
    """Count the different numbers up to and including each."""
    is_new = np.zeros(len(key), np.intp)
    is_new[np.unique(key, return_index=True)[1]] = 1
    return np.cumsum(is_new)
