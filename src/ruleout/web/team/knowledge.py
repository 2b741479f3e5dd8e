"""How much is known of each item, and where answers contradict each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.web.records import Kind
from ruleout.web.team.columns import KINDS, Columns, Rows, Whole, columns

__all__ = ["Clash", "Knowledge", "Said", "clashes", "knowledge"]


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known of each item, in the order the items were given.

    Attributes
    ----------
    answers
        How many answers stand.
    candidates
        How many classes all answers together leave; 0 is a contradiction.
    bits
        The entropy left, log2 of `candidates`: every candidate is as likely as the others. NaN
        for a contradiction, and log2 k where nothing is known.
    """

    answers: NDArray[np.intp]
    candidates: NDArray[np.intp]
    bits: NDArray[np.float64]

    @property
    def mean_bits(self) -> float | None:
        """The mean over items without contradictions; None if there are none."""
        good = self.bits[self.candidates > 0]
        return float(good.mean()) if len(good) else None


class Said(NamedTuple):
    """One answer: who said what about which classes."""

    who: str
    kind: Kind
    about: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Clash:
    """An item whose answers leave nothing.

    `said` are the answers, in the order of the log. `pairs` are people who contradict each other
    outright, one "no" and "yes" to the same set, say. It may be empty: three answers can leave
    nothing while any two leave something.
    """

    item: str
    people: tuple[str, ...]
    answers: int
    pairs: tuple[tuple[str, str], ...]
    said: tuple[Said, ...]


def knowledge(rows: Rows, items: Sequence[str], k: int) -> Knowledge:
    """Say for each item how much its answers leave open, tests left out.

    Examples
    --------
    >>> knowledge([], ["a"], 8).bits
    array([3.])
    """
    log = columns(rows)
    counts, left = _left(log, k)
    place = {name: at for at, name in enumerate(log.items)}
    at = np.array([place.get(name, len(log.items)) for name in items], np.intp)
    candidates = np.r_[left, k][at]
    return Knowledge(
        answers=np.r_[counts, 0][at],
        candidates=candidates,
        bits=np.where(candidates > 0, np.log2(np.maximum(candidates, 1)), np.nan),
    )


def _left(log: Columns, k: int) -> tuple[Whole, Whole]:
    """Return for each item of the log how many answers stand and how many classes they leave."""
    places = log.standing()
    order = places[np.argsort(log.item[places], kind="stable")]
    counts = np.bincount(log.item[places], minlength=len(log.items))
    left = np.full(len(log.items), k, np.intp)
    if len(order):
        starts = (np.cumsum(counts) - counts)[counts > 0]
        union = np.bitwise_or.reduceat(log.ruled_out(order, k), starts, axis=0)
        left[counts > 0] -= np.bitwise_count(union).sum(1, dtype=np.intp)
    return counts, left


def clashes(rows: Rows, k: int, most: int | None = None) -> list[Clash]:
    """List the items whose answers leave nothing, in the order of the log; at most so many."""
    log = columns(rows)
    places = log.standing()
    places = places[_left(log, k)[1][log.item[places]] == 0]
    found: dict[int, list[int]] = {}
    for place, item in zip(places.tolist(), log.item[places].tolist(), strict=True):
        if item in found or most is None or len(found) < most:
            found.setdefault(item, []).append(place)
    return [_clash(log, log.items[item], np.array(own), k) for item, own in found.items()]


def _clash(log: Columns, item: str, places: Whole, k: int) -> Clash:
    out = log.ruled_out(places, k)
    who = [log.users[user] for user in log.user[places]]
    opposed = {
        (min(who[i], who[j]), max(who[i], who[j]))
        for i, j in combinations(range(len(who)), 2)
        if np.bitwise_count(out[i] | out[j]).sum() == k
    }
    return Clash(
        item=item,
        people=tuple(sorted(set(who))),
        answers=len(places),
        pairs=tuple(sorted(opposed)),
        said=tuple(_said(log, place) for place in places.tolist()),
    )


def _said(log: Columns, place: int) -> Said:
    kind = KINDS[log.kind[place]]
    about = log.sets[(log.excluded if kind == "excluded" else log.proposed)[place]]
    if kind == "which":
        about = (int(log.which[place]),)
    return Said(log.users[log.user[place]], kind, about)
