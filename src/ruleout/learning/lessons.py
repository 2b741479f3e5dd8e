"""From a labelling project to what a classifier is trained on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import Table
from ruleout.labels import Answers, LabelSets
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.learning.evidence import Evidence, part, said
from ruleout.learning.features import read_features
from ruleout.web.exporting import Contradiction, known, weights
from ruleout.web.exporting.evidence import standing
from ruleout.web.folder import Project

__all__ = ["USUAL", "How", "Lesson", "read_lesson"]

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
