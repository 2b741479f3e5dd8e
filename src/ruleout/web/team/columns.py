"""The answer log as columns of numbers, so that a hundred thousand answers are counted at once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.bits import width
from ruleout.labels.errors import InputError
from ruleout.web.exporting.evidence import IMPORTED, bits
from ruleout.web.records import Kind, LogRow

__all__ = ["KINDS", "Bits", "Columns", "Rows", "Whole", "columns", "keys", "moment", "numbered"]

Whole: TypeAlias = NDArray[np.intp]
Switch: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]  # bit c of a row, little end first, is class c

KINDS: tuple[Kind, ...] = get_args(Kind)
_SAYING: tuple[Kind, ...] = ("yes", "no", "which", "excluded")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """One entry per row of the log, in its order.

    `user` and `item` are positions in `users` and `items`, `kind` in ``KINDS``, `proposed` and
    `excluded` in `sets`, the distinct sets of the log. Where nothing was said, `which` and
    `took_ms` are -1. `received` is in microseconds since 1970.
    """

    users: tuple[str, ...]
    items: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]
    number: Whole
    user: Whole
    item: Whole
    round: Whole
    kind: Whole
    proposed: Whole
    excluded: Whole
    which: Whole
    took_ms: Whole
    received: Whole
    gold: Switch
    late: Switch
    counts: Switch
    imported: Switch
    _masks: dict[int, Bits] = field(default_factory=dict, repr=False)

    def is_kind(self, *kinds: Kind) -> Switch:
        """Tell which rows are of one of these kinds."""
        return np.isin(self.kind, [KINDS.index(kind) for kind in kinds])

    def standing(self, *, gold: bool = False) -> Whole:
        """Return the places of answers that count and say something, tests or the others."""
        return np.flatnonzero(self.counts & (self.gold == gold) & self.is_kind(*_SAYING))

    def masks(self, k: int) -> Bits:
        """Return `sets` as bits, one row each; made once."""
        if k not in self._masks:
            self._masks[k] = self._packed(k)
        return self._masks[k]

    def _packed(self, k: int) -> Bits:
        for codes in self.sets:
            for code in codes:
                if not 0 <= code < k:
                    problem = f"an answer is about class {code}, but there are {k} classes"
                    raise InputError(problem, "use the class list of the project")
        return packed((bits(codes) for codes in self.sets), k)

    def ruled_out(self, places: Whole, k: int) -> Bits:
        """Return what the answers at these places rule out."""
        masks, all_of = self.masks(k), packed([bits(range(k))], k)
        one_of = packed((1 << code for code in range(k)), k)
        kind, proposed = self.kind[places, None], masks[self.proposed[places]]
        choices = {
            "no": proposed,
            "yes": all_of & ~proposed,
            "which": all_of & ~one_of[self.which[places]],
            "excluded": masks[self.excluded[places]],
        }
        tests = [kind == KINDS.index(name) for name in _SAYING]
        return np.select(tests, [choices[name] for name in _SAYING], np.uint8(0))


Rows: TypeAlias = Iterable[LogRow] | Columns


def packed(masks: Iterable[int], k: int) -> Bits:
    """Return whole numbers as rows of bits, those of a class list of k.

    >>> packed([0b101, 0b10], 3)
    array([[5],
           [2]], dtype=uint8)
    """
    wide = width(k)
    content = b"".join(mask.to_bytes(wide, "little") for mask in masks)
    return np.frombuffer(content, np.uint8).reshape(-1, wide)


def numbered(values: Iterable[Hashable], known: Mapping[Any, int] | None = None) -> Any:
    """Number values in the order of appearance, after those that are `known`.

    >>> numbered(["b", "a", "b"])
    (array([0, 1, 0]), ['b', 'a'])
    """
    places: dict[Hashable, int] = dict(known or {})
    found = [places.setdefault(value, len(places)) for value in values]
    return np.array(found, np.intp), list(places)


def keys(*parts: Whole) -> Whole:
    """Return one number for each place, the same where all parts are.

    >>> keys(np.array([0, 1, 0]), np.array([5, 5, 5]))
    array([ 5, 11,  5])
    """
    found = np.zeros(len(parts[0]), np.intp)
    for part in parts:
        found = found * (int(part.max(initial=0)) + 1) + part
    return found


def moment(received: int) -> datetime:
    """Return the moment of an entry of `received`."""
    return _EPOCH + timedelta(microseconds=int(received))


def columns(rows: Rows) -> Columns:
    """Return the log as columns; those are returned as they are."""
    if isinstance(rows, Columns):
        return rows
    log = list(rows)
    user, users = numbered(row.user_name for row in log)
    item, items = numbered(row.item_name for row in log)
    both = [row.proposed for row in log] + [row.excluded for row in log]
    used, sets = numbered(both)
    return Columns(
        users=tuple(users), items=tuple(items), sets=tuple(sets), user=user, item=item,
        number=_whole([row.number for row in log]), round=_whole([row.round for row in log]),
        kind=_whole([KINDS.index(row.kind) for row in log]),
        proposed=used[: len(log)], excluded=used[len(log) :],
        which=_whole([-1 if row.which is None else row.which for row in log]),
        took_ms=_whole([-1 if row.took_ms is None else row.took_ms for row in log]),
        received=_whole([(row.received - _EPOCH) // timedelta(microseconds=1) for row in log]),
        gold=_switch([row.gold for row in log]), late=_switch([row.late for row in log]),
        counts=_switch([row.counts for row in log]),
        imported=_switch([row.law == IMPORTED for row in log]),
    )  # fmt: skip


def _whole(values: Sequence[int]) -> Whole:
    return np.array(values, np.intp)


def _switch(values: Sequence[bool]) -> Switch:
    return np.array(values, np.bool_)
