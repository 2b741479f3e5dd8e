r"""How far annotators agree beyond chance.

Agreement is measured on decisions that two people took about the same thing:

- "yes" or "no" to the same proposed set about the same item, in whatever round;
- whether a class was clicked away or kept, for an item that several people were asked to rule
  classes out of: one decision for every class.

Answers to *different* proposals about one item are no such decisions: two people who are always
right still leave different sets possible, so that :math:`\kappa` on "is class c still possible"
would measure how sets were drawn. What they say about agreement has to be inferred:
:func:`ruleout.web.team.inferred_pairs`. Gold questions count here like all others.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import wrong_class_rate
from ruleout.web.answer_log import IMPORTED, Bits, Columns, Rows, Whole, columns, keys, standing
from ruleout.web.entities import LogRow

__all__ = ["Agreement", "Ratings", "cohen", "fleiss", "pairs", "ratings", "team_agreement"]


Ratings: TypeAlias = Mapping[Hashable, Mapping[str, Hashable]]  # thing → annotator → decision


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Cohen's κ of two annotators, or Fleiss' of all.

    `things` is how many decisions were shared, `observed` the share of them that agree (over
    pairs of people), and `kappa` None where chance alone would agree always: all decisions are
    the same, or none is shared. `error` is the standard error of κ where it is inferred.
    """

    people: tuple[str, ...]
    things: int
    observed: float | None
    kappa: float | None
    error: float | None = None


def ratings(rows: Iterable[LogRow], k: int) -> dict[Hashable, dict[str, Hashable]]:
    """Return the decisions that stand; of several by one person about one thing, the last."""
    found: dict[Hashable, dict[str, Hashable]] = {}
    for row in rows:
        if not row.counts:
            continue
        if row.kind in ("yes", "no"):
            thing = (row.item_name, tuple(sorted(row.proposed)))
            found.setdefault(thing, {})[row.user_name] = row.kind == "yes"
        elif row.kind == "excluded":
            for code in range(k):
                found.setdefault((row.item_name, code), {})[row.user_name] = code in row.excluded
    return {thing: said for thing, said in found.items() if len(said) > 1}


def cohen(decisions: Sequence[tuple[Hashable, Hashable]]) -> tuple[float | None, float | None]:
    r"""Return the observed agreement and Cohen's :math:`\kappa = (p_o - p_e) / (1 - p_e)`.

    Here :math:`p_e = \sum_c p_{1c} p_{2c}` from each one's own shares. Cohen (1960), Educational
    and Psychological Measurement 20.

    Examples
    --------
    >>> cohen([(1, 1)] * 20 + [(1, 0)] * 5 + [(0, 1)] * 10 + [(0, 0)] * 15)
    (0.7, 0.4)
    """
    n = len(decisions)
    if not n:
        return None, None
    same = sum(one == other for one, other in decisions)
    first = Counter(one for one, _ in decisions)
    second = Counter(other for _, other in decisions)
    chance = sum(first[c] * second[c] for c in first)  # whole numbers: exact where all agree
    return same / n, None if chance == n * n else (same * n - chance) / (n * n - chance)


def fleiss(table: Iterable[Sequence[Hashable]]) -> tuple[float | None, float | None]:
    r"""Return the observed agreement and Fleiss' :math:`\kappa` over things with several decisions.

    With :math:`n_{ic}` of :math:`n_i \ge 2` people deciding c about thing i, the agreement is the
    mean of :math:`P_i = \sum_c n_{ic}(n_{ic}-1) / (n_i(n_i-1))` and chance
    :math:`\sum_c p_c^2`, :math:`p_c = \sum_i n_{ic} / \sum_i n_i`. Fleiss (1971), Psychological
    Bulletin 76, asks for the same :math:`n_i` everywhere; then this is his.

    Examples
    --------
    >>> fleiss([[1, 1], [0, 0]])
    (1.0, 1.0)
    """
    agreeing, things = 0.0, 0
    shares: Counter[Hashable] = Counter()
    for decisions in table:
        if len(decisions) < 2:
            continue
        counts, n = Counter(decisions), len(decisions)
        shares.update(counts)
        agreeing += sum(c * (c - 1) for c in counts.values()) / (n * (n - 1))
        things += 1
    if not things:
        return None, None
    observed, total = agreeing / things, shares.total()
    if len(shares) == 1:
        return observed, None
    chance = sum((count / total) ** 2 for count in shares.values())
    return observed, (observed - chance) / (1 - chance)


def pairs(found: Ratings) -> list[Agreement]:
    """Return Cohen's κ of every two annotators who share decisions, by name."""
    shared: dict[tuple[str, str], list[tuple[Hashable, Hashable]]] = {}
    for said in found.values():
        for one, other in combinations(sorted(said), 2):
            shared.setdefault((one, other), []).append((said[one], said[other]))
    result = []
    for people, decisions in sorted(shared.items()):
        observed, kappa = cohen(decisions)
        things = len(decisions)
        result.append(Agreement(people=people, things=things, observed=observed, kappa=kappa))
    return result


def team_agreement(found: Ratings) -> Agreement:
    """Return Fleiss' κ of all who share decisions."""
    observed, kappa = fleiss([tuple(said.values()) for said in found.values()])
    people = tuple(sorted({name for said in found.values() for name in said}))
    return Agreement(people=people, things=len(found), observed=observed, kappa=kappa)


Vector = NDArray[np.float64]


def inferred_pairs(rows: Iterable[LogRow], k: int) -> list[Agreement]:
    """Return the inferred κ of every two annotators with two or more items in common, by name.

    Only "yes" and "no" to sets drawn at random enter. Where both answered the same draw, it is
    taken from the second by name, since the two must be independent.
    """
    said, rates = _by_person(rows), wrong_class_rate(np.arange(1, k), k)
    found = []
    for one, other in combinations(sorted(said), 2):
        left, right = [], []
        for item in sorted(said[one].keys() & said[other].keys()):
            drawn = {row.round for row in said[one][item]}
            rest = [row for row in said[other][item] if row.round not in drawn]
            if rest:
                left.append(_mean(said[one][item], rates))
                right.append(_mean(rest, rates))
        if len(left) > 1:
            a, b = np.stack(left), np.stack(right)
            found.append(inferred((one, other), a, b, (a * b).sum(1)))
    return found


def _by_person(rows: Iterable[LogRow]) -> dict[str, dict[str, list[LogRow]]]:
    said: dict[str, dict[str, list[LogRow]]] = {}
    for row in standing(rows):
        if row.kind in ("yes", "no") and row.law != IMPORTED:
            said.setdefault(row.user_name, {}).setdefault(row.item_name, []).append(row)
    return said


def _mean(rows: list[LogRow], rates: Vector) -> Vector:
    """Return u_c, the mean over one annotator's answers about one item."""
    total = np.zeros(len(rates) + 1)
    for row in rows:
        q = rates[len(row.proposed) - 1]
        possible = np.full(len(total), row.kind == "no")
        possible[list(row.proposed)] = row.kind == "yes"
        total += (possible - q) / (1 - q)
    return total / len(rows)


def inferred(people: tuple[str, ...], left: Vector, right: Vector, each: Vector) -> Agreement:
    """Return κ from u_c of two sides [item, class] and, for each item, how far they meet."""
    n, same = len(left), float(each.mean())
    chance = (float(left.sum(0) @ right.sum(0)) - float((left * right).sum())) / (n * (n - 1))
    if chance >= 1:
        return Agreement(people=people, things=n, observed=same, kappa=None)
    kappa, error = (same - chance) / (1 - chance), float(each.std(ddof=1)) / math.sqrt(n)
    return Agreement(
        people=people, things=n, observed=same, kappa=kappa, error=error / (1 - chance)
    )


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
