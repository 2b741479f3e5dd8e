"""From records to tables in the paper's shape, with tests of significance."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from ruleout.comparison.significance import holm, mark, paired_t_test
from ruleout.experiments.ledger import Holdings, Record
from ruleout.experiments.plans import DATASETS, MODELS, label_of, printed_for
from ruleout.experiments.specs import Spec, protocol
from ruleout.methods import PAPER, approach
from ruleout.report import CellTable, Line, TableCell, TableRow, Verdict
from ruleout.report.formats import duration

#: The paper's own approaches: the better one is what the others are tested against.
OURS = ("exp", "log")

_USUAL = Spec(dataset="", approach="").setting
_UNNAMED = ("precision", "law", "protocol")  # told beneath the table


class PaperTable(NamedTuple):
    """A table, the records it was made from, and what is unusual about its setting."""

    cells: CellTable
    records: list[Record]
    setting: str


def paper_tables(held: Holdings) -> list[PaperTable]:
    """Return a table for each group of tasks that share table and setting, the usual ones first."""
    groups: dict[tuple[str, str], list[Spec]] = {}
    for spec in held.specs:
        groups.setdefault((_table_of(spec), repr(spec.setting)), []).append(spec)
    taken: set[tuple[str, str]] = set()
    made = []
    for (table, _), specs in groups.items():
        words = _unusual(specs[0])
        more = ([*words, str(end)] for end in (specs[0].precision, *range(2, 99)))
        setting = next(one for one in map("-".join, [words, *more]) if (table, one) not in taken)
        taken.add((table, setting))
        made.append(_made(table, setting, specs, held.only(specs)))
    return sorted(made, key=lambda one: bool(one.setting))


def _table_of(spec: Spec) -> str:
    found = printed_for(spec)
    return "own" if found is None else found.table


def _unusual(spec: Spec) -> list[str]:
    """Return what is unusual about a setting, in words that file names can hold."""
    changed = {n: v for n, v in spec.setting.items() if v != _USUAL[n] and n not in _UNNAMED}
    words = [] if spec.protocol == "released" else [spec.protocol]
    plain = {"features": spec.features, "per_trial": "per-trial", "grid": "own-grid"}
    return words + [
        plain.get(name, f"{name.replace('_', '-')}-{value}") for name, value in changed.items()
    ]


def _made(table: str, setting: str, specs: list[Spec], held: Holdings) -> PaperTable:
    columns = sorted(dict.fromkeys((s.dataset, s.model, s.law) for s in specs), key=_place)
    rows = sorted(dict.fromkeys(s.approach for s in specs), key=_order)
    cells = _cells(held)
    laid = {(s.dataset, s.model, s.law, s.approach): cells[s.key] for s in specs}
    absent = TableCell(None, note="not asked for")
    grid = {row: [laid.get((*column, row), absent) for column in columns] for row in rows}
    return PaperTable(
        CellTable(
            _title(table, specs[0]),
            [_label(*column, specs) for column in columns],
            [TableRow(approach(row).family, approach(row).label, grid[row]) for row in rows],
            ours=[_ours(held.records, column) for column in columns],
            note=protocol(specs[0].protocol).about,
            name="-".join(filter(None, [table.replace("_", "-"), setting])),
            compared=specs[0].features == "raw",
        ),
        list(held.records),
        setting,
    )


# ---------------------------------------------------------------------- names


def _order(name: str) -> tuple[int, str]:
    """Order rows as the paper does: EXP first, then LOG and the rest."""
    listed = ["exp", "log", *PAPER[2:]]
    return (listed.index(name) if name in listed else len(listed), name)


def _place(column: tuple[str, str, str]) -> tuple[int, int, tuple[str, str, str]]:
    """Order columns as the paper does; data sets and models of our own come last."""
    known = [list(names.values()) for names in (DATASETS, MODELS)]
    data, model = (n.index(c) if c in n else len(n) for n, c in zip(known, column, strict=False))
    return data, model, column


def _label(dataset: str, model: str, law: str, specs: list[Spec]) -> str:
    """Return the head of a column, with what tells it from the others."""
    sizes = {spec.law for spec in specs}
    if law.startswith("fixed:") and len({spec.dataset for spec in specs}) == 1:
        return f"s = {law[6:]}"
    models = {spec.model for spec in specs if spec.dataset == dataset}
    more = [model] if len(models) > 1 else []
    more += [law] if len(sizes) > 1 else []
    return " ".join([label_of(dataset), *(f"({one})" for one in more)])


_TITLES = {
    "uci": "UCI data sets, linear model",
    "linear": "Benchmark data sets, linear model",
    "deep": "Benchmark data sets, neural networks",
    "fixed_linear": "Kuzushiji, sets of one size, linear model",
    "fixed_mlp": "Kuzushiji, sets of one size, MLP",
}


def _title(table: str, spec: Spec) -> str:
    """Return the caption; what is unusual about the setting is part of it."""
    words = [word.replace("-", " ") for word in _unusual(spec)]
    return ", ".join([_TITLES.get(table, "Cells that the paper does not have"), *words])


# ---------------------------------------------------------------------- cells


def _cells(held: Holdings) -> dict[str, TableCell]:
    """Return the cell of every task, tested against ours within its column."""
    cells = {spec.key: TableCell(None, note="not run yet") for spec in held.specs}
    for failure in held.failures:
        times = f"failed {failure.times} time{'s' if failure.times > 1 else ''}"
        cells[failure.spec.key] = TableCell(None, note=f"{times}: {failure.error}")
    columns: dict[tuple[str, str, str], list[Record]] = {}
    for record in held.records:
        spec = record.spec
        columns.setdefault((spec.dataset, spec.model, spec.law), []).append(record)
    for records in columns.values():
        cells |= _tested(records)
    return {key: _beside_paper(cell, key, held) for key, cell in cells.items()}


def _tested(records: list[Record]) -> dict[str, TableCell]:
    """Return the cells of one column, with p-values, marks and the best of them."""
    alive = [record for record in records if math.isfinite(record.mean)]
    best = max((round(record.mean, 4) for record in alive), default=math.nan)
    cells = {r.spec.key: replace(_cell(r), best=round(r.mean, 4) == best) for r in records}
    ours = best_of_ours(records)
    if ours is None:
        return cells
    others = [record for record in alive if record is not ours]
    raw = [paired_t_test(ours.accuracy, other.accuracy) for other in others]
    for other, p, fair in zip(others, raw, holm(raw).tolist(), strict=True):
        cells[other.spec.key] = replace(
            cells[other.spec.key],
            p_value=_known(p),
            p_holm=_known(fair),
            mark=mark(ours.mean, other.mean, p),
            holm=mark(ours.mean, other.mean, fair),
        )
    return cells


def best_of_ours(records: Iterable[Record]) -> Record | None:
    """Return the better of EXP and LOG, what a column is tested against; None without either."""
    rivals = [r for r in records if r.spec.approach in OURS and math.isfinite(r.mean)]
    return max(rivals, key=lambda record: record.mean, default=None)


def _ours(records: Iterable[Record], column: tuple[str, str, str]) -> str:
    """Return the label of the row that a column is tested against; empty where there is none."""
    place = [r for r in records if (r.spec.dataset, r.spec.model, r.spec.law) == column]
    found = best_of_ours(place)
    return "" if found is None else approach(found.spec.approach).label


def _cell(record: Record) -> TableCell:
    if not math.isfinite(record.mean):
        return TableCell(None, note="training diverged in some trial", facts=_facts(record))
    return TableCell(
        record.mean,
        _known(record.std),
        verdict=verdict(record) if record.spec.features == "raw" else "",
        trials=record.accuracy.tolist(),
        chosen=_chosen(record),
        facts=_facts(record),
        curves=[_line(record, name) for name in ("test", "train") if name in record.curves],
    )


def _beside_paper(cell: TableCell, key: str, held: Holdings) -> TableCell:
    spec = next(spec for spec in held.specs if spec.key == key)
    found = printed_for(spec)
    if found is None or spec.features != "raw":
        return cell
    return replace(cell, paper_mean=found.mean / 100, paper_std=found.std / 100)


def _chosen(record: Record) -> dict[str, object]:
    settings = [record.configurations[int(c)] for c in record.chosen]
    return {name.replace("_", " "): _same([one[name] for one in settings]) for name in settings[0]}


def _same(values: list[Any]) -> object:
    return values[0] if len(set(values)) == 1 else " / ".join(f"{value:g}" for value in values)


def _facts(record: Record) -> Mapping[str, object]:
    about, (best, setting) = record.about, record.oracle
    where = ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in setting.items())
    return {
        "Criterion of the choice, held out": f"{100 * record.estimate:.2f} %",
        "Best on test rows before refit (true labels)": f"{100 * best:.2f} % ({where})",
        "Form that ran": record.spec.runs,
        "Models trained": f"{about.get('models', 0)}, of which {about.get('diverged', 0)} diverged",
        "Time": duration(record.seconds),
        "Device": f"{about.get('device_name', '')} ({record.spec.precision})",
        "Key": record.spec.key[:16],
    }


def _line(record: Record, name: str) -> Line:
    points = record.curves[name].astype(float)
    mean, std = points.mean(0), points.std(0, ddof=1) if len(points) > 1 else points.std(0)
    label = {"test": "test", "train": "training"}[name]
    return Line(label, record.epochs.tolist(), mean, mean - std, mean + std)


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


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
