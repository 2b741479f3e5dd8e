"""Findings that need the features."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.inspection.equality import equal_rows
from ruleout.datasets.inspection.findings import Finding, Level
from ruleout.datasets.inspection.listing import percent
from ruleout.labels import bits
from ruleout.labels.sets import LabelSets

__all__ = ["look_at_columns"]

_EXCESS = 4.0  # standard deviations above what ruled-out classes allow
_ROWS, _COLUMNS = 20_000, 1000  # at most so many are looked at, to see whether x predicts the sets


def look_at_columns(
    sets: LabelSets, x: NDArray[Any] | None, features: Sequence[str]
) -> list[Finding]:
    """Return what the features say; without them, only whether sets look like true labels."""
    if x is None or not x.size:
        return list(_single(sets))
    flat = np.asarray(x, np.float32).reshape(len(x), -1)
    return [*_meaning(sets, flat), *_constant(flat, features), *_equal(sets, flat)]


def _single(sets: LabelSets) -> Iterator[Finding]:
    """Warn where one class per row may be the true one."""
    if len(sets) and len(sets.classes) > 2 and (sets.sizes == 1).all():
        message = (
            "Every row lists one class. If that is what the row is, not what it is not, give it "
            "as true labels: --label, or LabelSets.from_labels."
        )
        yield Finding("warning", "meaning", message)


def _meaning(sets: LabelSets, x: NDArray[np.float32]) -> Iterator[Finding]:
    r"""Ask whether the features point to what is listed.

    Sets chosen at random among the wrong classes hold any class that a rule picks from x with
    probability at most :math:`s/(k-1)`. A rule that does better on unseen rows shows that the sets
    list what examples are, or may be. The rule here: the nearest mean.
    """
    found = _agreement(sets, x)
    if found is None:
        yield from _single(sets)
        return
    rate, most, z = found
    message = (
        f"The features point to a class that is listed in {percent(rate)} of unseen rows; "
        f"sets of ruled-out classes chosen at random allow up to {percent(most)}."
    )
    if z >= _EXCESS:
        message += _suspicion(sets, surely=rate > (1 + most) / 2)
    level: Level = "warning" if z >= _EXCESS else "fine"
    yield Finding(level, "meaning", message, {"rate": rate, "most": most, "z": z})


def _suspicion(sets: LabelSets, surely: bool) -> str:
    if not surely:
        return (
            " Either the sets list what examples may be, or whoever rules out prefers some "
            "classes by what they see."
        )
    if (sets.sizes == 1).all():
        return (
            " They seem to list what examples are: give true labels as such, with --label or "
            "LabelSets.from_labels."
        )
    return " They seem to list what examples may be: use LabelSets.from_candidates."


def _agreement(sets: LabelSets, x: NDArray[np.float32]) -> tuple[float, float, float] | None:
    """Return how often the nearest mean is listed, the most allowed, and the excess in errors."""
    rng, k = np.random.default_rng(0), len(sets.classes)
    rows = rng.permutation(np.flatnonzero(sets.sizes))[:_ROWS]
    if len(rows) < 40 or k < 3:
        return None
    columns = np.sort(rng.permutation(x.shape[1])[:_COLUMNS])
    some, mask = x[rows][:, columns], sets[rows].excluded
    half = len(rows) // 2
    spread = some[:half].std(0)
    some = (some - some[:half].mean(0)) / np.where(spread > 0, spread, 1)
    times = mask[:half].sum(0)
    means = mask[:half].T.astype(np.float32) @ some[:half] / np.maximum(times, 1)[:, None]
    far = (means**2).sum(1) - 2 * some[half:] @ means.T
    picked = np.where(times > 0, far, np.inf).argmin(1)
    hit = mask[half:][np.arange(len(picked)), picked]
    bound = mask[half:].sum(1) / (k - 1)
    variance = float((bound * (1 - bound)).sum())
    if variance == 0:
        return None
    return (
        float(hit.mean()),
        float(bound.mean()),
        float((hit.sum() - bound.sum()) / np.sqrt(variance)),
    )


def _constant(x: NDArray[np.float32], features: Sequence[str]) -> Iterator[Finding]:
    """Name columns that never change, and columns that count the rows."""
    if len(x) < 2:
        return
    same = np.flatnonzero(x.min(0) == x.max(0))
    if len(same):
        message = f"{_named(same, features, x.shape[1])} the same value in every row."
        yield Finding("note", "constant columns", message, {"columns": same.tolist()})
    steps = np.flatnonzero(x[1] - x[0] == 1)
    counting = steps[(np.diff(x[:, steps], axis=0) == 1).all(0)] if len(x) > 9 else steps[:0]
    if len(counting):
        message = f"{_named(counting, features, x.shape[1])} the number of the row: ignore it."
        yield Finding("warning", "row numbers", message, {"columns": counting.tolist()})


def _named(places: NDArray[np.intp], features: Sequence[str], d: int) -> str:
    if len(places) > 5 or not features:
        return f"{len(places):,} of {d:,} columns hold"
    names = ", ".join(repr(features[place]) for place in places)
    return f"{'Column' if len(places) == 1 else 'Columns'} {names} hold" + (
        "s" if len(places) == 1 else ""
    )


def _equal(sets: LabelSets, x: NDArray[np.float32]) -> Iterator[Finding]:
    """Count equal rows, and find those whose sets leave no class together."""
    order, starts = equal_rows(x)
    if not len(starts):
        yield Finding("fine", "equal rows", "No two rows have the same features.", {"rows": 0})
        return
    extra = len(order) - len(starts)
    message = f"{extra:,} rows have the same features as an earlier row."
    yield Finding("note", "equal rows", message, {"rows": extra})
    joined = np.bitwise_or.reduceat(sets.packed[order], starts, axis=0)
    bad = np.flatnonzero(bits.count(joined) == len(sets.classes))
    if len(bad):
        first = bad[np.argmin(order[starts[bad]])]
        group = np.sort(np.split(order, starts[1:])[first])
        message = (
            f"{len(bad):,} group(s) of rows with the same features rule out every class together, "
            f"such as rows {', '.join(map(str, group[:3].tolist()))}"
            f"{', …' if len(group) > 3 else ''}: some of them are wrong."
        )
        yield Finding(
            "warning", "contradictions", message, {"groups": len(bad), "first": group[:9].tolist()}
        )
