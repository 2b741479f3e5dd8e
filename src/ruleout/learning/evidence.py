"""What a project knows about its items, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import Answers, LabelSets
from ruleout.labels.classes import shown
from ruleout.web.exporting import Contradiction, every_answer, known, reliabilities
from ruleout.web.exporting.evidence import by_item, standing
from ruleout.web.exporting.weights import Reliability, heard, log_likelihoods
from ruleout.web.folder import Project
from ruleout.web.records import Item, LogRow

__all__ = ["Evidence", "part", "said"]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The items of a project and every answer about them."""

    items: tuple[Item, ...]
    log: tuple[LogRow, ...]
    classes: tuple[str, ...]

    @classmethod
    def read(cls, project: Project) -> Evidence:
        """Read a project as it stands now."""
        items = tuple(item for _, item in project.store.items())
        return cls(items, tuple(project.store.log()), project.store.settings.classes)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the items."""
        return tuple(item.name for item in self.items)

    @cached_property
    def gold(self) -> dict[str, int]:
        """The class of each item where it is known beforehand."""
        return {item.name: item.gold for item in self.items if item.gold is not None}

    @cached_property
    def tests(self) -> int:
        """How many answers to gold questions count."""
        return sum(row.item_name in self.gold for row in standing(self.log, gold=True))

    @property
    def reliability(self) -> Reliability:
        """How often each annotator errs, as gold questions measured it."""
        return reliabilities(self.log, self.gold, len(self.classes))

    def answers(self) -> tuple[Answers, tuple[Contradiction, ...]]:
        """Return every "yes" and "no" to a set drawn at random; items are places in `items`."""
        return every_answer(self.log, self.names, self.classes)

    def everything(self) -> tuple[LabelSets, tuple[Contradiction, ...]]:
        """Return what is ruled out for every item, by all answers together.

        Where the class is known beforehand, all others are. Where answers contradict each other,
        or there are none, nothing is.
        """
        found = known(self.log, self.names, self.classes, "intersection", unlabelled=True)
        place = {name: row for row, name in enumerate(self.names)}
        packed = np.zeros((len(self.names), found.sets.packed.shape[1]), np.uint8)
        packed[[place[name] for name in found.items]] = found.sets.packed
        truth = LabelSets.from_labels(list(self.gold.values()), len(self.classes))
        packed[[place[name] for name in self.gold]] = truth.packed
        sets = LabelSets.from_packed(packed, self.classes, unlabelled=True)
        return sets, tuple(one for one in found.contradictions if one.item not in self.gold)

    def likelihoods(self) -> NDArray[np.float64]:
        """Return the logarithm of how likely the answers about each item are, for every class.

        People err as often as gold questions measured. Where the class is known beforehand, no
        other is likely.
        """
        k, trust, found = len(self.classes), self.reliability, by_item(standing(self.log))
        scores = np.zeros((len(self.items), k))
        for place, item in enumerate(self.items):
            if item.gold is not None:
                scores[place] = np.where(np.arange(k) == item.gold, 0, -np.inf)
                continue
            for row in heard(found.get(item.name, [])):
                scores[place] += log_likelihoods(row, k, trust)
        return scores


Known = TypeVar("Known", LabelSets, Answers, LabelSets | Answers)


def part(known: Known, rows: Sequence[int]) -> Known:
    """Return what is known about some rows alone, numbered anew.

    >>> asked = LabelSets([[1, 0, 0], [0, 1, 0]])
    >>> part(Answers(asked, np.array([True, False]), np.array([4, 7])), [7]).items
    array([0])
    """
    if isinstance(known, LabelSets):
        return known[np.asarray(rows, np.intp)]
    place = np.full(max([-1, *known.items.tolist(), *rows]) + 1, -1, np.intp)
    place[list(rows)] = np.arange(len(rows))
    about = place[known.items]
    return Answers(known.asked[about >= 0], known.yes[about >= 0], about[about >= 0])


def said(contradictions: Sequence[Contradiction], then: str) -> list[str]:
    """Say which items have answers that contradict each other, and what becomes of them."""
    if not contradictions:
        return []
    names = shown([one.item for one in contradictions])
    return [
        f"The answers about {len(contradictions):,} item(s) rule out every class, {names}: {then}. "
        "`ruleout label export` lists those answers."
    ]
