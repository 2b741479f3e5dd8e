"""What one answer says, as bits: bit c is set where class c is ruled out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ruleout.labels import LabelSets
from ruleout.labels.bits import width
from ruleout.labels.errors import InputError
from ruleout.web.records import IMPORTED, LogRow

__all__ = ["IMPORTED", "bits", "by_item", "draws", "every", "label_sets", "ruled_out", "standing"]


def bits(codes: Iterable[int]) -> int:
    """Return a number with these bits set.

    >>> bin(bits([0, 3]))
    '0b1001'
    """
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


def every(k: int) -> int:
    """Return the bits of k classes.

    >>> bin(every(3))
    '0b111'
    """
    return (1 << k) - 1


def ruled_out(row: LogRow, k: int) -> int:
    """Return the classes that an answer rules out, as bits.

    "No" rules out the proposed set, "yes" all others, "which" all but one, and a rule-out answer
    what was clicked away; "skip" and "undo" say nothing.
    """
    _check(row, k)
    if row.kind == "no":
        return bits(row.proposed)
    if row.kind == "yes":
        return every(k) & ~bits(row.proposed)
    if row.kind == "which" and row.which is not None:
        return every(k) & ~bits([row.which])
    return bits(row.excluded) if row.kind == "excluded" else 0


def _check(row: LogRow, k: int) -> None:
    which = () if row.which is None else (row.which,)
    for code in (*row.proposed, *row.excluded, *which):
        if not 0 <= code < k:
            raise InputError(
                f"answer {row.number} is about class {code}, but there are {k} classes",
                "use the class list of the project",
            )


def standing(rows: Iterable[LogRow], *, gold: bool = False) -> Iterator[LogRow]:
    """Yield the answers that count and say something; `gold` asks for those that are tests."""
    return (
        row
        for row in rows
        if row.counts and row.gold == gold and row.kind in ("yes", "no", "which", "excluded")
    )


def by_item(rows: Iterable[LogRow]) -> dict[str, list[LogRow]]:
    """Return the rows of each item, in the order of the log."""
    found: dict[str, list[LogRow]] = {}
    for row in rows:
        found.setdefault(row.item_name, []).append(row)
    return found


def draws(rows: Iterable[LogRow]) -> Iterator[LogRow]:
    """Yield one row for each set that was drawn at random and asked about.

    A draw belongs to an item and a round. When two people answer the same draw, or one answers
    it, takes that back and answers again, it was still drawn once.
    """
    seen = set()
    for row in rows:
        draw = (row.item_name, row.round, row.proposed)
        asked = row.kind in ("yes", "no", "skip") and row.proposed
        if asked and not row.gold and row.law != IMPORTED and draw not in seen:
            seen.add(draw)
            yield row


def label_sets(masks: Iterable[int], classes: tuple[str, ...]) -> LabelSets:
    """Build label sets from bits.

    >>> label_sets([0b011, 0b100], ("cat", "dog", "bird")).to_lists()
    [['cat', 'dog'], ['bird']]
    """
    wide = width(len(classes))
    content = b"".join(mask.to_bytes(wide, "little") for mask in masks)
    packed = np.frombuffer(content, np.uint8).reshape(-1, wide)
    return LabelSets.from_packed(packed, classes, unlabelled=True)
