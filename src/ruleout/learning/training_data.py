"""What a project knows about its items, read once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import Table
from ruleout.labels import Answers, LabelSets
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.learning.item_features import read_features
from ruleout.web.answer_log import Contradiction, by_item, every_answer, known, standing
from ruleout.web.entities import Item, LogRow
from ruleout.web.project import Project
from ruleout.web.reliability import Reliability, heard, log_likelihoods, reliabilities, weights


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


#: Which answers teach, and how. ``no``: the sets of "no" and rule-out answers, as in the paper.
#: ``answers``: every "yes" and "no" to a random set, with the rate that makes the risk unbiased.
#: ``intersection``: what all answers of any kind leave possible, as one set.
How: TypeAlias = Literal["intersection", "answers", "no"]

#: What is done unless asked otherwise.
USUAL: How = "intersection"


@dataclass(frozen=True, kw_only=True, eq=False)
class Lesson:
    """What a classifier is trained on.

    Attributes
    ----------
    table
        The features, one row for each item that teaches; ``row_names`` are the items' names.
    target
        What was ruled out for each row, or the answers about the rows.
    weight
        How likely each row is right; None where no gold question was answered.
    notes
        Sentences that a user should see once.
    """

    table: Table
    target: LabelSets | Answers
    weight: NDArray[np.float64] | None
    notes: tuple[str, ...]


def read_lesson(
    project: Project, how: How = USUAL, source: str | Path | None = None, **reading: Any
) -> Lesson:
    """Read what a project teaches; items whose answers contradict each other do not, and are named.

    Parameters
    ----------
    how
        Which answers teach: see :data:`How`.
    source, reading
        Of the features: see :func:`~ruleout.learning.read_features`.
    """
    if how not in get_args(How):
        say = nearest(how, get_args(How), f"say one of {', '.join(get_args(How))}")
        raise InputError(f"unknown way to learn {brief(how)}", say)
    evidence = Evidence.read(project)
    names, target, wrong = _teaching(evidence, how)
    if not names:
        remedy = "label some items first" if how == USUAL else f"try --how {USUAL}"
        raise InputError(
            f"no item has an answer that teaches by {how!r}", remedy, file=project.folder
        )
    items = {item.name: item for item in evidence.items}
    table = read_features(project, [items[name] for name in names], source, **reading)
    notes = said(wrong, "they are left out")
    if any(row.kind == "excluded" for row in standing(evidence.log)):
        notes.append(
            "Classes that people clicked away were not drawn at random: the accuracy estimated "
            "from them may be wrong."
        )
    weight = None
    if evidence.tests:
        weight = _weight(evidence, target, names)
        notes.append(
            f"Rows weigh {weight.min():.2f} to {weight.max():.2f}, how likely their answers are "
            f"right by {evidence.tests:,} answers to gold questions."
        )
    rows = _places(table.row_names or (), names)
    return Lesson(
        table=replace(
            table, reading={**table.reading, "project": project.store.identity, "how": how}
        ),
        target=part(target, rows),
        weight=None if weight is None else weight[rows],
        notes=(*notes, *table.notes),
    )


def _teaching(
    evidence: Evidence, how: How
) -> tuple[tuple[str, ...], LabelSets | Answers, tuple[Contradiction, ...]]:
    """Return the items that teach, what about them does, and the contradictions."""
    if how != "answers":
        found = known(evidence.log, evidence.names, evidence.classes, how)
        return found.items, found.sets, found.contradictions
    answers, wrong = evidence.answers()
    used = np.unique(answers.items).tolist()
    return tuple(evidence.names[row] for row in used), part(answers, used), wrong


def _weight(
    evidence: Evidence, target: LabelSets | Answers, names: Sequence[str]
) -> NDArray[np.float64]:
    sets = target if isinstance(target, LabelSets) else target.per_item()[1]
    return weights(evidence.log, sets, names, evidence.reliability)


def _places(some: Sequence[str], names: Sequence[str]) -> list[int]:
    place = {name: row for row, name in enumerate(names)}
    return [place[name] for name in some]


@dataclass(frozen=True, kw_only=True, eq=False)
class Review:
    """The items of a project that have features.

    Attributes
    ----------
    table
        The features; ``row_names`` are the items' names.
    sets
        What is ruled out for each, by all answers together and by the class where it is known.
    likelihood
        Where gold questions measured how often people err: the logarithm of how likely all answers
        about an item are, for every class; else None.
    answers
        Every "yes" and "no" to a set drawn at random; items are rows of the table.
    gold
        The position of the class where it is known beforehand, else -1.
    contradictions
        Items whose answers, of any kind, leave no class together: `sets` rules nothing out there.
    dropped
        Items whose "yes" and "no" leave no class together: `answers` is without them.
    """

    table: Table
    sets: LabelSets
    likelihood: NDArray[np.float64] | None
    answers: Answers
    gold: NDArray[np.intp]
    contradictions: tuple[Contradiction, ...]
    dropped: tuple[Contradiction, ...]


def read_review(project: Project, source: str | Path | None = None, **reading: Any) -> Review:
    """Read all items with what is known about them.

    `source` and `reading` are those of :func:`~ruleout.learning.read_features`.
    """
    evidence = Evidence.read(project)
    table = read_features(project, evidence.items, source, **reading)
    place = {name: row for row, name in enumerate(evidence.names)}
    rows = [place[name] for name in table.row_names or ()]
    sets, contradictions = evidence.everything()
    answers, dropped = evidence.answers()
    likelihood = evidence.likelihoods()[rows] if evidence.tests else None
    gold = [-1 if item.gold is None else item.gold for item in evidence.items]
    return Review(
        table=replace(table, reading={**table.reading, "project": project.store.identity}),
        sets=part(sets, rows),
        likelihood=likelihood,
        answers=part(answers, rows),
        gold=np.array(gold, np.intp)[rows],
        contradictions=contradictions,
        dropped=dropped,
    )
