r"""Agreement of two annotators who were asked about different sets.

Think of each annotator as having one class in mind for an item and answering accordingly. An
answer leaves the set Z possible, and with :math:`q` of :func:`ruleout.labels.wrong_class_rate`

.. math:: u_c = \frac{1(c \in Z) - q}{1 - q}

has the mean 1 for the class in mind and 0 for every other, over the random draw: it is what makes
the risk from every answer unbiased. Two rounds are drawn independently, so that

.. math:: a = \operatorname{mean}_i \sum_c u^A_{ic} u^B_{ic}, \qquad
          p_e = \operatorname{mean}_{i \ne j} \sum_c u^A_{ic} u^B_{jc}

are unbiased estimates of how often A and B have the same class in mind, and how often they would by
chance; :math:`\kappa = (a - p_e) / (1 - p_e)` is Cohen's, of decisions that nobody ever saw. It may
leave [-1, 1] when few items are shared; its standard error says how far to trust it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import wrong_class_rate
from ruleout.web.exporting.evidence import IMPORTED, standing
from ruleout.web.records import LogRow
from ruleout.web.team.agreement import Agreement

__all__ = ["inferred", "inferred_pairs"]

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
