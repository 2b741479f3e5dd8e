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

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

from ruleout.web.records import LogRow

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
