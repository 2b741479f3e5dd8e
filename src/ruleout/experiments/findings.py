"""Findings: what the paper says of its tables, asked of ours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ruleout.comparison.significance import mark, paired_t_test
from ruleout.experiments.printed import DATASETS, label_of, printed_for
from ruleout.experiments.records import Record
from ruleout.experiments.tabling import OURS, best_of_ours
from ruleout.methods import approach

__all__ = ["Finding", "Order", "columns", "findings", "orders"]

_BOUNDED = ("mae", "mse", "gce", "phuber")
_ORDERED = ("upper-bound", "bounded", "unbounded")


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, whether it holds here, and the counts behind that."""

    claim: str
    holds: str
    counts: str


@dataclass(frozen=True)
class Order:
    """How the families of losses rank on a data set by their means, best first."""

    dataset: str
    ours: tuple[str, ...]
    paper: tuple[str, ...]
    means: tuple[float, ...]
    printed: tuple[float, ...]

    @property
    def same(self) -> bool:
        """Whether the order is the paper's."""
        return self.ours == self.paper


def columns(records: Sequence[Record]) -> dict[str, dict[str, Record]]:
    """Return the records of each data set by approach, data sets in the order of the paper."""
    known = {name: place for place, name in enumerate(DATASETS.values())}
    found: dict[str, dict[str, Record]] = {}
    for record in sorted(records, key=lambda r: known.get(r.spec.dataset, len(known))):
        found.setdefault(label_of(record.spec.dataset), {})[record.spec.approach] = record
    return found


def findings(records: Sequence[Record]) -> list[Finding]:
    """Ask of a table what the paper says of its own; claims that cannot be asked are left out."""
    asked: list[Callable[[dict[str, dict[str, Record]]], Finding | None]] = [
        _bounded_beat_cce,
        _mae_beside_bounded,
        _wrappers_outperformed,
        _ours_best,
        _marks,
    ]
    tables = columns(records)
    return [found for ask in asked if (found := ask(tables)) is not None]


def orders(records: Sequence[Record]) -> list[Order]:
    """Return how upper-bound, bounded and unbounded losses rank on each data set."""
    found = []
    for dataset, column in columns(records).items():
        ours, theirs = _family_means(column, _mean), _family_means(column, _printed)
        if len(ours) < len(_ORDERED) or len(theirs) < len(_ORDERED):
            continue
        found.append(
            Order(
                dataset,
                tuple(sorted(ours, key=lambda family: -ours[family])),
                tuple(sorted(theirs, key=lambda family: -theirs[family])),
                tuple(ours[family] for family in _ORDERED),
                tuple(theirs[family] for family in _ORDERED),
            )
        )
    return found


def _mean(record: Record) -> float:
    return 100 * record.mean


def _printed(record: Record) -> float:
    found = printed_for(record.spec)
    return math.nan if found is None else found.mean


def _family_means(column: dict[str, Record], value: Callable[[Record], float]) -> dict[str, float]:
    families: dict[str, list[float]] = {}
    for name, record in column.items():
        families.setdefault(approach(name).family, []).append(value(record))
    means = {family: fmean(families[family]) for family in _ORDERED if family in families}
    return {family: mean for family, mean in means.items() if math.isfinite(mean)}


# ---------------------------------------------------------------------- claims


def _compare(ours: Record, theirs: Record) -> str:
    """Say which of two is significantly better: •, ○, or neither."""
    return mark(ours.mean, theirs.mean, paired_t_test(ours.accuracy, theirs.accuracy))


def _bounded_beat_cce(tables: dict[str, dict[str, Record]]) -> Finding | None:
    marks = [
        _compare(column[name], column["cce"])
        for column in tables.values()
        if "cce" in column
        for name in _BOUNDED
        if name in column
    ]
    return _counted(
        "All bounded losses are significantly better than the unbounded CCE in the estimator.",
        marks, "bounded loss significantly better than CCE", lambda share: share == 1,
    )  # fmt: skip


def _mae_beside_bounded(tables: dict[str, dict[str, Record]]) -> Finding | None:
    marks = []
    for column in tables.values():
        others = [column[name] for name in _BOUNDED[1:] if name in column]
        if "mae" in column and others:
            best = max(others, key=lambda record: record.mean)
            marks.append(_compare(best, column["mae"]))
    if not marks:
        return None
    worse, total = marks.count("•"), len(marks)
    text = f"significantly worse than the best other bounded loss on {worse} of {total} data sets"
    held = "holds" if 0 < worse < total / 2 else "holds in part" if worse < total else "fails"
    claim = "MAE is comparable with the other bounded losses in most cases, sometimes inferior."
    return Finding(claim, held, text)


def _wrappers_outperformed(tables: dict[str, dict[str, Record]]) -> Finding | None:
    marks = []
    for column in tables.values():
        ours = best_of_ours(column.values())
        if ours is not None:
            marks += [_compare(ours, r) for n, r in column.items() if approach(n).form != "whole"]
    return _counted(
        "The decomposed approaches are significantly outperformed by the upper bounds in most "
        "cases.",
        marks, "the better of EXP and LOG significantly better", lambda share: share > 0.5,
    )  # fmt: skip


def _counted(
    claim: str, marks: list[str], what: str, enough: Callable[[float], bool]
) -> Finding | None:
    if not marks:
        return None
    won, lost, total = marks.count("•"), marks.count("○"), len(marks)
    held = "holds" if enough(won / total) else "holds in part" if won > total / 2 else "fails"
    return Finding(claim, held, f"{what} in {won} of {total} cases, significantly worse in {lost}")


def _ours_best(tables: dict[str, dict[str, Record]]) -> Finding | None:
    best, level, total = [], [], 0
    for dataset, column in tables.items():
        ours = best_of_ours(column.values())
        if ours is None:
            continue
        total += 1
        top = max(column.values(), key=lambda record: record.mean)
        if top is ours:
            best.append(dataset)
        elif _compare(top, ours) == "":
            level.append(dataset)
    if not total:
        return None
    told = f"best on {len(best)} of {total} data sets ({', '.join(best) or 'none'})"
    told += f"; not significantly below it on {len(level)} more ({', '.join(level) or 'none'})"
    held = "holds" if len(best) > total / 2 else "holds in part" if best or level else "fails"
    claim = "The upper bounds achieve the best performance among all approaches."
    return Finding(claim, held, told)


def _marks(tables: dict[str, dict[str, Record]]) -> Finding | None:
    """Count the cells whose mark is the one that the paper prints."""
    same = total = 0
    for column in tables.values():
        ours = best_of_ours(column.values())
        for record in column.values():
            found = printed_for(record.spec)
            if ours is None or found is None or record.spec.approach in OURS:
                continue
            total += 1
            same += (_compare(ours, record) == "•") == found.marked_worse
    if not total:
        return None
    claim = "Which cells are significantly worse than ours (marked • in the paper)."
    held = "holds" if same / total >= 0.9 else "holds in part" if same > total / 2 else "fails"
    return Finding(claim, held, f"the same mark in {same} of {total} cells")
