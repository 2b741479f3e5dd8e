"""What the answers about each item leave possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from ruleout.labels import Answers, LabelSets
from ruleout.labels.errors import InputError, brief
from ruleout.web.exporting.evidence import (
    IMPORTED,
    bits,
    by_item,
    draws,
    every,
    label_sets,
    ruled_out,
    standing,
)
from ruleout.web.items.names import suggest
from ruleout.web.records import LogRow

__all__ = ["Contradiction", "How", "Known", "every_answer", "known"]

#: ``no``: only "no" and rule-out answers, as in the paper. ``intersection``: every answer.
How: TypeAlias = Literal["no", "intersection"]


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """An item whose answers rule out every class together, and those answers."""

    item: str
    answers: tuple[LogRow, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """Label sets, and what became of the items that have none; every item is in one of the four.

    Attributes
    ----------
    sets
        What is ruled out, one row per item of `items`.
    items
        The names of the rows, in the order of the project.
    contradictions
        Items for which nothing would be left.
    unlabelled
        Items of which nothing is known; rows of `sets` too, if that was asked for.
    tests
        Items that were only ever asked about to test annotators.
    """

    sets: LabelSets
    items: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]
    unlabelled: tuple[str, ...]
    tests: tuple[str, ...]


def known(
    rows: Iterable[LogRow],
    items: Sequence[str],
    classes: Sequence[str],
    how: How = "no",
    *,
    unlabelled: bool = False,
) -> Known:
    """Combine the answers about each item into what they rule out together.

    Parameters
    ----------
    rows
        The answer log; rows that do not count are passed over.
    items
        The names of all items, in the order the result is to have.
    classes
        The class names.
    how
        ``no``: a "no" rules the proposed set out, a rule-out answer what was clicked away, and
        other answers say nothing. ``intersection``: a "yes" also rules out everything outside
        the proposed set, and "which" all classes but one.
    unlabelled
        Give items of which nothing is known an empty row, instead of only listing them.
    """
    k, log = len(classes), list(rows)
    answers, tested = _by_known_item(log, items), {row.item_name for row in log if row.gold}
    found: dict[str, int] = {}
    wrong, unknown, tests = [], [], []
    for item in items:
        used = [row for row in answers.get(item, ()) if how != "no" or row.kind in _NO]
        mask = _union(used, k)
        if mask == every(k):
            wrong.append(Contradiction(item=item, answers=tuple(used)))
        elif mask:
            found[item] = mask
        elif item in tested and item not in answers:
            tests.append(item)
        else:
            unknown.append(item)
            if unlabelled:
                found[item] = 0
    return Known(
        sets=label_sets(found.values(), tuple(classes)),
        items=tuple(found),
        contradictions=tuple(wrong),
        unlabelled=tuple(unknown),
        tests=tuple(tests),
    )


_NO = ("no", "excluded")


def _union(rows: Iterable[LogRow], k: int) -> int:
    mask = 0
    for row in rows:
        mask |= ruled_out(row, k)
    return mask


def _by_known_item(log: list[LogRow], items: Sequence[str]) -> dict[str, list[LogRow]]:
    answers, names = by_item(standing(log)), set(items)
    for item in answers:
        if item not in names:
            remedy = suggest(item, items, "give all items of the project")
            raise InputError(f"the log is about an item {brief(item)} that is not there", remedy)
    return answers


def every_answer(
    rows: Iterable[LogRow], items: Sequence[str], classes: Sequence[str]
) -> tuple[Answers, tuple[Contradiction, ...]]:
    """Return every "yes" and "no" with its question, for the unbiased risk.

    ``answers.per_item()`` then gives what :func:`ruleout.losses.answered` takes, with
    ``answers.items`` as positions in `items`. That risk is unbiased because the question is drawn
    before the answer is known. So it takes neither "which" and rule-out answers, nor imported
    proposals, nor tests; and a draw that was answered twice enters once.

    Returns
    -------
    answers, contradictions
        Items whose answers contradict each other are in the second alone.
    """
    k, place = len(classes), {item: number for number, item in enumerate(items)}
    log = [row for row in standing(rows) if row.kind in ("yes", "no") and row.law != IMPORTED]
    used: list[LogRow] = []
    wrong = []
    for item, asked in _by_known_item(log, items).items():
        if _union(asked, k) == every(k):
            wrong.append(Contradiction(item=item, answers=tuple(asked)))
        else:
            used.extend(draws(asked))
    used.sort(key=lambda row: place[row.item_name])
    answers = Answers(
        label_sets((bits(row.proposed) for row in used), tuple(classes)),
        np.array([row.kind == "yes" for row in used], np.bool_),
        np.array([place[row.item_name] for row in used], np.intp),
    )
    return answers, tuple(sorted(wrong, key=lambda one: place[one.item]))
