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

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import LabelSets
from ruleout.labels.dawid_skene import learn_errors
from ruleout.labels.errors import InputError
from ruleout.labels.origins import Credit, Evidence, join_answers, join_credit, stay_credit
from ruleout.labels.sets import chunks, count, has, unpack
from ruleout.web.answer_log import AnswerLog, Switch, Whole, keys
from ruleout.web.entities import Kind

Vector: TypeAlias = NDArray[np.float64]

#: What was tested: "yes" being right to say, "no" being right to say, or a free answer.
FORMS = ("yes", "no", "free")
_YES, _NO, _FREE = range(3)
ASSUMED = 0.05  # error rate where no gold question was answered


class ErrorRates(NamedTuple):
    """Error rates by form, the team's [3] and everybody's own [user, 3]; which were measured.

    By so many answers to questions whose answer is known (second), of which so many were wrong
    (first), or by what tells as much.
    """

    team: Vector
    own: Vector
    measured: Switch
    counts: tuple[int, int] = (0, 0)


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
    counts = int(w.sum()), int(n.sum())
    return ErrorRates(team, (wrong + 2 * team) / (asked + 2), asked > 0, counts)


def told_rates(log: AnswerLog) -> ErrorRates:
    """Return what gold questions tell; without any, what agreement does, if it tells enough.

    That is as much as 30 gold questions, of which at most a third was answered wrongly: see
    :func:`~ruleout.labels.dawid_skene.learn_errors`. What leads decided does not hide mistakes.
    """
    found, log = error_rates(log), log.undecided()
    if found.counts[1]:
        return found
    places = heard(log)
    sets = LabelSets.from_packed(log.ruled_out(places), log.classes, unlabelled=True)
    drawn = log.is_kind("yes", "no")[places]
    learnt = learn_errors(sets, log.item[places], log.user[places], drawn)
    if learnt is None or learnt.counts[1] < 30 or 3 * learnt.counts[0] > learnt.counts[1]:
        return found
    mean = learnt.own[log.user[places]].mean()
    team, own = np.full(len(FORMS), mean), np.full(found.own.shape, mean)
    own[: len(learnt.own)] = learnt.own[:, None]
    return found._replace(team=team, own=own, counts=learnt.counts)


def heard(log: AnswerLog, *kinds: Kind) -> Whole:
    """Return the standing answers less each "yes" that was followed by "which", which says more."""
    places = log.standing(*kinds)
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


def evidence(
    log: AnswerLog, items: Whole, *kinds: Kind, rates: ErrorRates | None = None
) -> Evidence:
    """Say what all answers (of some kinds) about these items make of every class.

    Which class an item is of, all of them tell. How often predictions are right, only what was
    drawn before the answer was known, each draw once, and what was clicked away.
    """
    rates = rates or told_rates(log)
    (wrong, asked), is_gold = rates.counts, rates.measured.any()
    mean = (wrong + 1) / (asked + 2) if is_gold else rates.team.mean()
    at = np.full(len(log.items), -1)
    at[items] = np.arange(len(items))
    places = log.standing(*kinds)
    places = places[at[log.item[places]] >= 0]
    sets = LabelSets.from_packed(log.ruled_out(places), log.classes, unlabelled=True)
    likely = log_likelihoods(log, rates, places)
    likely *= np.isin(places, heard(log, *kinds))[:, None]
    about = at[log.item[places]], len(items)
    joined, likely = join_answers(sets, likely, *about)
    # Where a lead decided on a class, no other is possible.
    decided = log.decided[items, None]
    sure, alone = decided >= 0, decided == np.arange(log.k)
    out = np.where(sure, ~alone, joined.excluded)
    likely = np.where(sure, np.where(alone, 0, -np.inf), likely)

    def earns() -> Credit:
        each = partial(stay_credit, sets, *_chances(log, rates, places, "yes" in (kinds or "yes")))
        credit = zip((alone, 0, 0), join_credit(each, *about), strict=True)
        return Credit(*(np.where(sure, known, one) for known, one in credit))

    def at_error(rate: float) -> Evidence:
        other = rates._replace(own=np.clip(rates.own * (rate / mean), 1e-4, 0.99))
        return evidence(log, items, *kinds, rates=other)

    level = likely.max(1)
    told = likely - level[:, None], earns, rates.counts, at_error, level
    return Evidence(LabelSets(out, log.classes, unlabelled=True), *told)


def _chances(log: AnswerLog, rates: ErrorRates, places: Whole, both: bool) -> tuple[Vector, Vector]:
    """Return how often an answer leaves the true class possible, and how often a wrong one.

    Both are 0 for answers that do not tell how often predictions are right. Where not `both` "yes"
    and "no" are heard, a "no" is a set that is wrong as often as it was wrong to say.
    """
    k, error = log.k, rates.own[log.user[places]]
    s, out = count(log.masks[log.proposed[places]]), count(log.ruled_out(places))
    yes, no, free = 1 - error.T  # how often each form is right
    drawn = log.is_kind("yes", "no")[places] & ~log.imported[places]
    drawn &= np.isin(places, log.draws(places))
    alone = ~log.is_kind("yes", "no")[places] & (s == 0)  # clicked away, or named outright
    if not both:
        said, chance = (k - s) * no, s * (1 - yes)
        alone, drawn, free = (
            alone | drawn,
            np.zeros_like(drawn),
            np.where(drawn, said / np.maximum(said + chance, 1e-9), free),
        )
    inside = s * (yes * (s - 1) + (1 - yes) * (k - s))
    outside = (k - s) * (no * (k - s - 1) + (1 - no) * s)
    a = np.where(drawn, (s * yes + (k - s) * no) / k, free)
    b = np.where(drawn, (inside + outside) / (k * (k - 1)), 1 - (out - 1 + free) / (k - 1))
    says = (drawn | alone) & (log.asked_of[places] == k)
    return a * says, b * says


def weights(log: AnswerLog, sets: LabelSets, names: Sequence[str], rates: ErrorRates) -> Vector:
    """Return for each row of `sets` how likely its candidates hold the true class.

    All answers about the item that count are heard, also those that the row leaves out; `names`
    are the items of the rows.
    """
    place = {name: at for at, name in enumerate(log.items)}
    items = np.array([place[name] for name in names], np.intp)
    found = np.empty(len(items))
    for part in chunks(len(items), log.k):
        chance = np.exp(evidence(log, items[part], rates=rates).likelihood)
        left = ~unpack(sets.packed[part], log.k)
        found[part] = (chance * left).sum(1) / chance.sum(1)
    return found
