"""Verdicts: how far our numbers are from the paper's."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable

from ruleout.experiments.printed import printed_for
from ruleout.experiments.records import Record
from ruleout.report import Verdict

__all__ = ["count", "difference", "verdict", "within"]


def within(ours: float, theirs: float) -> float:
    """Return how far apart two means may be to agree: two combined standard deviations.

    >>> within(0.03, 0.04)
    0.1
    """
    return 2 * math.hypot(*(0.0 if math.isnan(one) else one for one in (ours, theirs)))


def difference(record: Record) -> float | None:
    """Return our mean less the paper's, in percent; None where it prints nothing."""
    found = printed_for(record.spec)
    return None if found is None else 100 * record.mean - found.mean


def verdict(record: Record) -> Verdict:
    r"""Return whether a cell agrees with the paper, or is better or worse; empty where neither.

    Two means agree when they differ by at most :math:`2\sqrt{s_1^2 + s_2^2}`.
    """
    found, gap = printed_for(record.spec), difference(record)
    if found is None or gap is None or math.isnan(gap):
        return ""
    if abs(gap) <= within(100 * record.std, found.std):
        return "agrees"
    return "better" if gap > 0 else "worse"


def count(records: Iterable[Record]) -> dict[str, int]:
    """Return how many cells were run, agree, are better and are worse."""
    found = [verdict(record) for record in records]
    counts = Counter(one for one in found if one)
    return {"run": len(found)} | {name: counts[name] for name in ("agrees", "better", "worse")}
