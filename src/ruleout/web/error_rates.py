r"""How often annotators err, as gold questions measure it, and how far each row can be trusted.

An answer is right with a probability that depends on who gave it. Three forms are measured apart:
how often "yes" is said where it is true (sensitivity), how often "no" is (specificity), and how
often a free answer ("which", or classes clicked away) is right.

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

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import LabelSets
from ruleout.labels.bits import chunks, count, unpack
from ruleout.labels.errors import InputError
from ruleout.web.answer_log import AnswerLog, Switch, Whole, has, keys

Vector: TypeAlias = NDArray[np.float64]

#: What was tested: "yes" being right to say, "no" being right to say, or a free answer.
FORMS = ("yes", "no", "free")
_YES, _NO, _FREE = range(3)
ASSUMED = 0.05  # error rate where no gold question was answered


class ErrorRates(NamedTuple):
    """Error rates by form, the team's [3] and everybody's own [user, 3]; which were measured."""

    team: Vector
    own: Vector
    measured: Switch


def gold_counts(log: AnswerLog) -> tuple[Whole, Whole]:
    """Count the standing answers to gold questions by user and form: those right, and all."""
    tests = log.standing(gold=True)
    tests = tests[log.gold_class[log.item[tests]] >= 0]
    truth = log.gold_class[log.item[tests]]
    held = has(log.masks[log.proposed[tests]], truth)
    right = ~has(log.ruled_out(tests), truth)
    form = np.where(log.is_kind("yes", "no")[tests], np.where(held, _YES, _NO), _FREE)
    cell = len(FORMS) * log.user[tests] + form
    size = len(FORMS) * len(log.users)
    good, asked = (np.bincount(one, minlength=size) for one in (cell[right], cell))
    return good.reshape(-1, len(FORMS)), asked.reshape(-1, len(FORMS))


def error_rates(log: AnswerLog, *, assumed: float = ASSUMED) -> ErrorRates:
    """Estimate error rates from the answers to gold questions that count.

    `assumed` is the team's rate where nothing was measured, above 0 and below 1.
    """
    if not 0 < assumed < 1:
        raise InputError(f"the assumed error rate is {assumed}", "give one between 0 and 1")
    right, asked = gold_counts(log)
    wrong = asked - right
    n, w = asked.sum(0), wrong.sum(0)
    team = np.where(n > 0, (w + 1) / (n + 2), assumed)
    return ErrorRates(team, (wrong + 2 * team) / (asked + 2), asked > 0)


def plausible_rates(log: AnswerLog) -> Iterator[tuple[float, ErrorRates]]:
    """Yield the error rates that may be true, each after the logarithm of how plausible it is.

    Few gold questions tell little: the odds of all errors may be larger or smaller by one factor.
    """
    rates, (right, asked) = error_rates(log), gold_counts(log)
    odds = rates.own / (1 - rates.own)
    for factor in np.exp(np.linspace(-2, 4, 13)):
        own = factor * odds / (1 + factor * odds)
        told = (asked - right) * np.log(own) + right * np.log1p(-own)
        yield float(told.sum()), rates._replace(own=own)


def heard(log: AnswerLog) -> Whole:
    """Return the standing answers less each "yes" that was followed by "which", which says more."""
    places = log.standing()
    said = keys(log.user[places], log.item[places], log.round[places])
    which, yes = log.is_kind("which")[places], log.is_kind("yes")[places]
    return places[~(yes & np.isin(said, said[which]))]


def log_likelihoods(log: AnswerLog, rates: ErrorRates, places: Whole) -> Vector:
    """Return log P(answer | y) of each of these answers for every class y, up to a constant."""
    out = log.ruled_out(places)
    yes, no = log.is_kind("yes")[places], log.is_kind("no")[places]
    error, size = rates.own[log.user[places]], count(out)
    free = error[:, _FREE]
    # where "yes" or "no" is right it is the form of its own name, else of the other
    right = 1 - np.where(yes, error[:, _YES], np.where(no, error[:, _NO], free))
    other = free * (log.k - size) / np.maximum(size, 1)
    wrong = np.where(yes, error[:, _NO], np.where(no, error[:, _YES], other))
    inside = (size > 0) & (size < log.k)
    gap = np.log(wrong, out=np.log(right), where=inside) - np.log(right)
    found: Vector = np.log(right)[:, None] + gap[:, None] * unpack(out, log.k)
    return found


def scores(log: AnswerLog, rates: ErrorRates, items: Whole) -> Vector:
    """Return log P(all answers about an item | y), of these items for every class y.

    Where a lead decided on a class, no other is possible.
    """
    at = np.full(len(log.items), -1)
    at[items] = np.arange(len(items))
    places = heard(log)
    places = places[at[log.item[places]] >= 0]
    found = np.zeros((len(items), log.k))
    for part in chunks(len(places), log.k):
        some = places[part]
        found += grouped_sums(at[log.item[some]], log_likelihoods(log, rates, some), len(items))
    truth = log.decided[items, None]
    return np.where((truth < 0) | (truth == np.arange(log.k)), found, -np.inf)


def grouped_sums(at: Whole, values: Vector, n: int) -> Vector:
    """Add up the rows of each of n groups; `at` says which group a row is of."""
    found = np.zeros((n, values.shape[1]))
    order = np.argsort(at, kind="stable")
    groups, starts = np.unique(at[order], return_index=True)
    if len(groups):
        found[groups] = np.add.reduceat(values[order], starts, axis=0)
    return found


def weights(log: AnswerLog, sets: LabelSets, names: Sequence[str], rates: ErrorRates) -> Vector:
    """Return for each row of `sets` how likely its candidates hold the true class.

    All answers about the item that count are heard, also those that the row leaves out; `names`
    are the items of the rows.
    """
    place = {name: at for at, name in enumerate(log.items)}
    items = np.array([place[name] for name in names], np.intp)
    found = np.empty(len(items))
    for part in chunks(len(items), log.k):
        score = scores(log, rates, items[part])
        chance = np.exp(score - score.max(1, keepdims=True))
        left = ~unpack(sets.packed[part], log.k)
        found[part] = (chance * left).sum(1) / chance.sum(1)
    return found
