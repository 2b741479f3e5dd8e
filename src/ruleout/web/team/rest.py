r"""How far each annotator agrees with the rest of the team.

With pairs of people there are as many numbers as nobody reads; here there is one for each person.

Where people decided the same thing (:mod:`ruleout.web.team.agreement` says what that is), every
decision of somebody is paired with every decision of another about it, and Cohen's :math:`\kappa`
is taken over those pairs. Where they were asked about different sets,
:mod:`ruleout.web.team.inference` is used with the mean of all others as the second annotator.
The team's own number is that of all pairs: Fleiss' :math:`\kappa`, or what is inferred for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import wrong_class_rate
from ruleout.web.team.agreement import Agreement
from ruleout.web.team.columns import Bits, Columns, Rows, Whole, columns, keys
from ruleout.web.team.inference import inferred

__all__ = ["Team", "decided_by_all", "inferred_by_all"]

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Team:
    """The agreement of all, and of each one with the rest, by name."""

    whole: Agreement
    each: dict[str, Agreement]


# ------------------------------------------------------------------ inferred


def inferred_by_all(rows: Rows, k: int) -> Team:
    """Infer agreement from "yes" and "no" to sets drawn at random, each draw once, no tests."""
    log = columns(rows)
    places = log.standing()
    places = places[log.is_kind("yes", "no")[places] & ~log.imported[places]]
    draws = keys(log.item[places], log.round[places])
    places = places[np.unique(draws, return_index=True)[1]]
    hand = {user: _means(log, places[log.user[places] == user], k) for user in _users(log, places)}
    total, squares = np.zeros((len(log.items), k)), np.zeros(len(log.items))
    heads = np.zeros(len(log.items), np.intp)
    for means in hand.values():
        items, own = means()
        total[items] += own
        squares[items] += (own**2).sum(1)
        heads[items] += 1
    each = {}
    for user, means in hand.items():
        items, own = means()
        met = heads[items] > 1
        items, own = items[met], own[met]
        others = (total[items] - own) / (heads[items, None] - 1)
        each[log.users[user]] = _found(log.users[user], own, others, (own * others).sum(1))
    met = heads > 1
    total, heads = total[met], heads[met]
    same = ((total**2).sum(1) - squares[met]) / (heads * (heads - 1))
    mean = total / heads[:, None]
    whole = _found(tuple(sorted(each)), mean, mean, same)
    return Team(whole=whole, each={name: one for name, one in each.items() if one.things})


def _found(people: str | tuple[str, ...], left: Vector, right: Vector, same: Vector) -> Agreement:
    names = (people,) if isinstance(people, str) else people
    if len(left) < 2:
        return Agreement(people=names, things=len(left), observed=None, kappa=None)
    return inferred(names, left, right, same)


def _users(log: Columns, places: Whole) -> list[int]:
    return np.unique(log.user[places]).tolist()  # type: ignore[no-any-return]


def _means(log: Columns, places: Whole, k: int) -> Callable[[], tuple[Whole, Vector]]:
    """Return a function that gives one annotator's items and their mean u_c about each.

    A function, since all of them at once would not fit into memory where classes are many.
    """

    def means() -> tuple[Whole, Vector]:
        rates = wrong_class_rate(np.arange(1, k), k)
        sizes = np.bitwise_count(log.masks(k)[log.proposed[places]]).sum(1, dtype=np.intp)
        q = rates[sizes - 1][:, None]
        out = np.unpackbits(log.ruled_out(places, k), axis=1, count=k, bitorder="little")
        items, at, counts = np.unique(log.item[places], return_inverse=True, return_counts=True)
        u = (1.0 - out - q) / (1 - q)
        if len(items) == len(places):  # the usual case: one answer about each
            return items, u[np.argsort(at)]
        total = np.zeros((len(items), k))
        np.add.at(total, at, u)
        return items, total / counts[:, None]

    return means


# ------------------------------------------------------------------ decided


def decided_by_all(rows: Rows, k: int) -> Team:
    """Compare decisions about the same thing; of several by one person about it, the last."""
    log = columns(rows)
    clicked = np.flatnonzero(log.counts & log.is_kind("excluded"))
    told = np.flatnonzero(log.counts & log.is_kind("yes", "no"))
    asked = np.unique(
        keys(log.item[told], _sorted_sets(log)[log.proposed[told]]), return_inverse=True
    )[1]
    yes = log.is_kind("yes")[told, None].astype(np.uint8)
    one = _Tally.of(log, told, asked, yes, 1)
    many = _Tally.of(log, clicked, log.item[clicked], log.masks(k)[log.excluded[clicked]], k)
    both = one.pairs + many.pairs
    each = {
        name: _cohen(name, both[user], int(one.things[user] + many.things[user]))
        for user, name in enumerate(log.users)
        if both[user].any()
    }
    whole = _fleiss(tuple(sorted(each)), [one.shared, many.shared])
    return Team(whole=whole, each=each)


def _sorted_sets(log: Columns) -> Whole:
    """Return for each set the first that has the same classes."""
    first: dict[tuple[int, ...], int] = {}
    places = [first.setdefault(tuple(sorted(codes)), at) for at, codes in enumerate(log.sets)]
    return np.array(places, np.intp)


@dataclass(frozen=True)
class _Tally:
    """Pairs of decisions [user, own, other], decisions that were shared, and votes about those."""

    pairs: Vector
    things: Whole
    shared: tuple[Whole, Whole]  # [thing, bit]: who said yes, and all

    @classmethod
    def of(cls, log: Columns, places: Whole, thing: Whole, said: Bits, wide: int) -> _Tally:
        """Count; `said` are `wide` decisions about each thing, as bits."""
        last = _last_of_each(keys(log.user[places], thing))
        user, thing, said = log.user[places[last]], thing[last], said[last]
        heads = np.bincount(thing)
        yes = np.zeros((len(heads), wide), np.intp)
        pairs = np.zeros((len(log.users), 2, 2))
        things = np.zeros(len(log.users), np.intp)
        own = {one: user == one for one in np.unique(user).tolist()}
        for mine in own.values():
            yes[thing[mine]] += _unpacked(said[mine], wide)
        for one, mine in own.items():
            mine &= heads[thing] > 1
            things[one] = wide * mine.sum()
            decided, met = _unpacked(said[mine], wide), thing[mine]
            others = yes[met] - decided
            against = heads[met, None] - 1 - others
            for answer in (0, 1):
                pairs[one, answer] = (
                    against[decided == answer].sum(),
                    others[decided == answer].sum(),
                )
        several = heads > 1
        both = np.broadcast_to(heads[:, None], yes.shape)
        return cls(pairs, things, (yes[several], both[several]))


def _unpacked(said: Bits, wide: int) -> Whole:
    return np.unpackbits(said, axis=1, count=wide, bitorder="little").astype(np.intp)


def _last_of_each(key: Whole) -> Whole:
    return len(key) - 1 - np.unique(key[::-1], return_index=True)[1]


def _cohen(name: str, pairs: Vector, things: int) -> Agreement:
    n, same = pairs.sum(), np.trace(pairs)
    chance = pairs.sum(1) @ pairs.sum(0)
    kappa = None if chance == n * n else float((same * n - chance) / (n * n - chance))
    return Agreement(people=(name,), things=things, observed=float(same / n), kappa=kappa)


def _fleiss(people: tuple[str, ...], shared: list[tuple[Whole, Whole]]) -> Agreement:
    yes = np.concatenate([votes.ravel() for votes, _ in shared])
    all_of = np.concatenate([heads.ravel() for _, heads in shared])
    if not len(yes):
        return Agreement(people=people, things=0, observed=None, kappa=None)
    no = all_of - yes
    observed = float(((yes * (yes - 1) + no * (no - 1)) / (all_of * (all_of - 1))).mean())
    share = yes.sum() / all_of.sum()
    chance = share**2 + (1 - share) ** 2
    kappa = None if share in (0, 1) else float((observed - chance) / (1 - chance))
    return Agreement(people=people, things=len(yes), observed=observed, kappa=kappa)
