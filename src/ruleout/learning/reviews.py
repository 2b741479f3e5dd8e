"""All items of a project with everything known about them, for a model to be tried on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import Table
from ruleout.labels import Answers, LabelSets
from ruleout.learning.evidence import Evidence, part
from ruleout.learning.features import read_features
from ruleout.web.exporting import Contradiction
from ruleout.web.folder import Project

__all__ = ["Review", "read_review"]


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
