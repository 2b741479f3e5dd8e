r"""How far each row of an export can be trusted.

An answer is right with a probability that depends on who gave it, and gold questions measure it.
Three things are measured apart: how often "yes" is said where it is true (sensitivity), how often
"no" is (specificity), and how often a free answer ("which", or classes clicked away) is right.

With :math:`w` wrong of :math:`n` gold answers, an annotator's error rate is
:math:`e = (w + 2\bar e) / (n + 2)`: two answers of the team's average come on top, so that
little evidence moves it little. The team's is Laplace's :math:`\bar e = (W + 1) / (N + 2)`, the
mean of a Beta(1, 1) prior after W wrong of N; without any gold answer it is assumed.

Given the true class y, "yes" to a set S that holds y has probability :math:`1-e` of that
annotator's sensitivity, and so on. A free answer that rules out s of k classes is right with
:math:`1-e`, its set being uniform among the sets without y; else uniform among those with y. So

.. math:: \frac{P(A \mid y \in A)}{P(A \mid y \notin A)} = \frac{e}{1-e} \cdot \frac{k-s}{s}.

People err independently, classes are equally likely beforehand, and Bayes' rule gives
:math:`P(y \mid \text{all answers about the item})`. The weight of a row is what that leaves on its
candidates: the probability that the row is right. Agreement raises it, dissent lowers it; one free
answer alone has weight :math:`1-e`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError
from ruleout.web.answer_log import Bits, Columns, Rows, Whole, by_item, columns, ruled_out, standing
from ruleout.web.entities import LogRow

#: What was tested: "yes" being right to say, "no" being right to say, or a free answer.
Form: TypeAlias = Literal["yes", "no", "free"]
ASSUMED = 0.05  # error rate where no gold question was answered


@dataclass(frozen=True)
class Reliability:
    """Error rates by annotator and form; those of nobody in particular are the team's."""

    team: Mapping[Form, float]
    own: Mapping[tuple[str, Form], float] = field(default_factory=dict)

    def error(self, user: str, form: Form) -> float:
        """Return how often this annotator is wrong."""
        return self.own.get((user, form), self.team[form])


def form_of(row: LogRow, truth: int) -> Form:
    """Return what an answer about an item of known class tests."""
    if row.kind in ("yes", "no"):
        return "yes" if truth in row.proposed else "no"
    return "free"


def reliabilities(
    rows: Iterable[LogRow], gold: Mapping[str, int], k: int, *, assumed: float = ASSUMED
) -> Reliability:
    """Estimate error rates from the answers to gold questions that count.

    Parameters
    ----------
    gold
        The class of each item where it is known, by the item's name.
    assumed
        The error rate of the team where nothing was measured, above 0 and below 1.
    """
    if not 0 < assumed < 1:
        raise InputError(f"the assumed error rate is {assumed}", "give one between 0 and 1")
    asked: Counter[tuple[str, Form]] = Counter()
    wrong: Counter[tuple[str, Form]] = Counter()
    for row in standing(rows, gold=True):
        if row.item_name in gold:
            truth = gold[row.item_name]
            test = (row.user_name, form_of(row, truth))
            asked[test] += 1
            wrong[test] += ruled_out(row, k) >> truth & 1
    team: dict[Form, float] = {}
    for form in ("yes", "no", "free"):
        n = sum(count for (_, one), count in asked.items() if one == form)
        w = sum(count for (_, one), count in wrong.items() if one == form)
        team[form] = (w + 1) / (n + 2) if n else assumed
    own = {test: (wrong[test] + 2 * team[test[1]]) / (n + 2) for test, n in asked.items()}
    return Reliability(team, own)


def weights(
    rows: Iterable[LogRow],
    sets: LabelSets,
    items: Sequence[str],
    reliability: Reliability,
) -> NDArray[np.float64]:
    """Return for each row of `sets` how likely its candidates hold the true class.

    All answers about the item that count are heard, also those that the row leaves out. A "yes"
    that was followed by "which" is not heard again.

    Parameters
    ----------
    sets, items
        From :func:`known`.
    reliability
        From :func:`reliabilities`.
    """
    k = len(sets.classes)
    answers = by_item(standing(rows))
    found = np.empty(len(items))
    for place, (item, packed) in enumerate(zip(items, sets.packed, strict=True)):
        score = np.zeros(k)
        for row in heard(answers.get(item, [])):
            score += log_likelihoods(row, k, reliability)
        chance = np.exp(score - score.max())
        mask = np.unpackbits(packed, count=k, bitorder="little").astype(np.bool_)
        found[place] = chance[~mask].sum() / chance.sum()
    return found


def heard(rows: list[LogRow]) -> list[LogRow]:
    """Leave out each "yes" that was followed by "which", which says more."""
    which = {(row.user, row.round) for row in rows if row.kind == "which"}
    return [row for row in rows if row.kind != "yes" or (row.user, row.round) not in which]


def log_likelihoods(row: LogRow, k: int, reliability: Reliability) -> NDArray[np.float64]:
    """Return log P(answer | y) for every class y, up to a constant."""
    out = ruled_out(row, k)
    size = out.bit_count()
    if row.kind in ("yes", "no"):
        # where the answer is right it is the form of its own name, else of the other
        right = 1 - reliability.error(row.user_name, "yes" if row.kind == "yes" else "no")
        wrong = reliability.error(row.user_name, "no" if row.kind == "yes" else "yes")
    else:
        error = reliability.error(row.user_name, "free")
        right, wrong = 1 - error, error * (k - size) / max(size, 1)
    score = np.full(k, math.log(right))
    if 0 < size < k:
        packed = np.frombuffer(out.to_bytes((k + 7) // 8, "little"), np.uint8)
        mask = np.unpackbits(packed, count=k, bitorder="little").astype(np.bool_)
        score[mask] = math.log(wrong)
    return score


@dataclass(frozen=True)
class Rate:
    """How many of the answers that were asked for were right."""

    right: int
    asked: int

    @property
    def share(self) -> float | None:
        """The share that was right; None if nothing was asked."""
        return self.right / self.asked if self.asked else None

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
        z = float(ndtri((1 + level) / 2))
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

    name: str
    sensitivity: Rate
    specificity: Rate
    free: Rate


def gold_scores(rows: Rows, gold: Mapping[str, int], k: int) -> list[GoldScore]:
    """Score the standing answers to gold questions, by name.

    Parameters
    ----------
    gold
        The class of each item where it is known, by the item's name.
    """
    log = columns(rows)
    classes = np.array([gold.get(name, -1) for name in log.items], np.intp)
    tests = log.standing(gold=True)
    tests = tests[classes[log.item[tests]] >= 0]
    truth = classes[log.item[tests]]
    held = _has(log.masks(k)[log.proposed[tests]], truth)
    right = ~_has(log.ruled_out(tests, k), truth)
    form = np.where(log.is_kind("yes", "no")[tests], np.where(held, 0, 1), 2)
    asked = _table(log, tests, form)
    good = _table(log, tests[right], form[right])
    found = [
        GoldScore(name, *(Rate(*pair) for pair in zip(good[place], asked[place], strict=True)))
        for place, name in enumerate(log.users)
        if any(asked[place])
    ]
    return sorted(found, key=lambda score: score.name)


def _has(masks: Bits, classes: Whole) -> NDArray[np.bool_]:
    """Tell of each row of bits whether the class is in it."""
    byte = masks[np.arange(len(classes)), classes >> 3]
    return np.asarray(byte >> (classes & 7).astype(np.uint8) & 1, np.bool_)


def _table(log: Columns, places: Whole, form: Whole) -> list[list[int]]:
    """Count by annotator and form."""
    cells = np.bincount(3 * log.user[places] + form, minlength=3 * len(log.users))
    return cells.reshape(-1, 3).tolist()
