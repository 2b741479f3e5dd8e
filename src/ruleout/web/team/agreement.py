r"""How far annotators agree beyond chance, and whose answers carry no information.

Two people are asked about different sets, so they agree on an item where their answers can both be
true: where some class is left by all that one said and all that the other said. Let :math:`p_o` be
how often that is so for the same item, and :math:`p_e` for answers about two different items, which
is what chance gives. Cohen's (1960) form of

.. math:: \kappa = \frac{p_o - p_e}{1 - p_e}

is then 1 for people who never contradict each other, 0 on average for who answers without looking
at the item, and never above 1. Every kind of answer enters; tests only where nothing else is
shared. One person is compared with all others: there are more pairs of people than anybody reads.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln

from ruleout.labels.sets import Bits, chunks, complement, count, unpack, width
from ruleout.web.answer_log import AnswerLog, Switch, Whole, keys
from ruleout.web.error_rates import ErrorRates, Vector, error_rates, heard, log_likelihoods

_PAIRS = 300_000  # answers about different items that are compared for one person, about


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """κ of one annotator with the others, or of all."""

    items: int  # that were shared
    observed: float | None = None  # the share of them on which people agree
    kappa: float | None = None  # None where nobody could have contradicted anybody
    error: float | None = None  # its standard error


def agreement(log: AnswerLog) -> tuple[Agreement, dict[str, Agreement]]:
    """Compare everybody with everybody else, on the items that both answered about.

    Return the agreement of all, and of each one with the rest, by name.
    """
    user, item, left = _left_by_each(log, log.standing())
    if not len(user):
        user, item, left = _left_by_each(log, log.standing(gold=True))
    each, sums = {}, np.zeros(4)
    for one in np.unique(user).tolist():
        mine = user == one
        others = np.isin(item, item[mine]) & ~mine
        found = _clashes(item[mine], left[mine], item[others], left[others])
        each[log.users[one]] = _kappa(len(item[mine]), found)
        sums += found
    sums[3] *= 2  # every pair of people was counted from both sides
    return _kappa(len(np.unique(item)), sums), each


def _left_by_each(log: AnswerLog, places: Whole) -> tuple[Whole, Whole, Bits]:
    """Return what each person's answers leave of each item that several answered about."""
    own = keys(log.item[places], log.user[places])
    _, first, at = np.unique(own, return_index=True, return_inverse=True)
    out = np.zeros((len(first), width(log.k)), np.uint8)
    np.bitwise_or.at(out, at, log.ruled_out(places))
    user, item = log.user[places[first]], log.item[places[first]]
    several = np.bincount(item)[item] > 1
    return user[several], item[several], complement(out[several], log.k)


def _clashes(items: Whole, own: Bits, about: Whole, others: Bits) -> Vector:
    """Count shared items, clashes about them, clashes by chance, and their squared deviations.

    By chance: each answer of another is held against what somebody said about other items. Those
    are taken in turn, all of them where they are few, in an order that a seed has shuffled.
    """
    n = len(items)
    order = np.random.default_rng(0).permutation(n)
    at = np.argsort(order)[np.searchsorted(items, about)]
    own, share = own[order], 1 / np.bincount(at)[at]
    shifts = range(min(n, max(2, _PAIRS // len(about))))
    apart = [share * ~(own[(at + shift) % n] & others).any(1) for shift in shifts]
    seen = np.bincount(at, apart[0])
    chance = float(np.mean([one.sum() for one in apart[1:]])) if n > 1 else 0.0
    return np.array([n, seen.sum(), chance, np.square(seen - seen.mean()).sum() + 1])


def _kappa(items: int, found: Vector) -> Agreement:
    n, clashed, expected, squares = found.tolist()
    if not n:
        return Agreement(items=0)
    observed = 1 - clashed / n
    if not expected:
        return Agreement(items=items, observed=observed)
    kappa, error = 1 - clashed / expected, math.sqrt(squares) / expected
    return Agreement(items=items, observed=observed, kappa=kappa, error=error)


_DECENT = 0.8  # how often somebody is right who pays some attention
_LEVEL = 0.05  # how likely it may be that any decent annotator is taken for one who guesses
_CELLS = 1 << 21  # answers times classes that are looked at; of more, a share of the items
_ENOUGH = 3  # people; of two who disagree, nobody can say which of them guesses


def guessing(log: AnswerLog) -> set[str]:
    r"""Return who answers as if without looking.

    Two explanations of somebody's answers are compared. One: they are right four times in five,
    given what the class is by gold, or how likely it is by what all others said. The other: they
    say "yes" at a rate of their own, whatever is asked (a Beta(½, ½) prior), and choose classes at
    random. Where the second is :math:`m / 0.05` times as likely, m being the number of people, they
    are listed: by Markov's inequality a decent one is with at most 0.05/m. Then the answers of
    whoever is worst are set aside, and the rest are judged again.
    """
    active = np.unique(log.user[log.counts]).tolist()
    out: list[int] = []
    while len(out) < len(active):
        odds = _log_odds(log, np.isin(log.user, out), len(active) - len(out) >= _ENOUGH)
        odds[out] = -np.inf
        worst = int(odds.argmax())
        if odds[worst] < math.log(len(active) / _LEVEL):
            break
        out.append(worst)
    return {log.users[user] for user in out}


def _log_odds(log: AnswerLog, unheard: Switch, by_others: bool) -> Vector:
    """Return how much likelier guessing is for each user; `unheard` answers judge nobody."""
    said, told = np.r_[log.standing(), log.standing(gold=True)], heard(log)
    said, told = said[~unheard[said]], told[~unheard[told]]
    people = np.bincount(np.unique(_pairs(log)[told]) // len(log.users), minlength=len(log.items))
    judged = (log.gold_class >= 0) | (by_others & (people > 1))
    judged &= np.random.default_rng(0).random(len(judged)) * len(said) * log.k < _CELLS
    said = said[judged[log.item[said]]]
    said, rates = said[np.argsort(log.item[said])], error_rates(log)
    odds = np.zeros(len(log.users))
    for part in chunks(len(said), log.k):
        some = said[part]
        decent = _log_decent(log, some, _beliefs(log, rates, some, told))
        odds -= np.bincount(log.user[some], decent, len(odds))
    yes, no = (
        np.bincount(log.user[said[kind[said]]], minlength=len(odds))
        for kind in (log.is_kind("yes"), log.is_kind("no"))
    )
    found: Vector = odds + betaln(yes + 0.5, no + 0.5) - betaln(0.5, 0.5)
    return found


def _pairs(log: AnswerLog) -> Whole:
    return log.item * len(log.users) + log.user


def _beliefs(log: AnswerLog, rates: ErrorRates, places: Whole, told: Whole) -> Vector:
    """Return how likely each class is where somebody answered, by gold or by what others told."""
    near = told[np.isin(log.item[told], log.item[places])]
    likely = log_likelihoods(log, rates, near)
    found = np.zeros((len(places), log.k))
    for key, sign in ((log.item, 1), (_pairs(log), -1)):  # what all told, less one's own
        own, at = np.unique(key[places], return_inverse=True)
        mine = np.isin(key[near], own)
        of = np.searchsorted(own, key[near[mine]])
        total = [np.bincount(of, column, len(own)) for column in likely[mine].T]
        found += sign * np.stack(total, 1)[at]
    truth = log.gold_class[log.item[places], None]
    found = np.where((truth >= 0) & (truth != np.arange(log.k)), -np.inf, found)
    chance: Vector = np.exp(found - found.max(1, keepdims=True))
    chance /= chance.sum(1, keepdims=True)
    return chance


def _log_decent(log: AnswerLog, places: Whole, belief: Vector) -> Vector:
    """Return log P(answer) of a decent annotator; of free answers, over that of who guesses."""
    sets = np.where(log.is_kind("excluded"), log.excluded, log.proposed)[places]
    size, inside = count(log.masks[sets]), (belief * unpack(log.masks[sets], log.k)).sum(1)
    size, inside = np.where(size, size, log.k), np.where(size, inside, 1.0)  # any class
    yes = 1 - _DECENT + (2 * _DECENT - 1) * inside
    chosen = belief[np.arange(len(places)), np.maximum(log.which[places], 0)]
    which = _DECENT * size * chosen / np.maximum(inside, 1e-12) + 1 - _DECENT
    kept = _DECENT * (1 - inside) * log.k / np.maximum(log.k - size, 1)
    excluded = kept + (1 - _DECENT) * inside * log.k / size
    tests = [log.is_kind(kind)[places] for kind in ("yes", "no", "which", "excluded")]
    found: Vector = np.log(np.select(tests, [yes, 1 - yes, which, excluded], 1.0))
    return found
