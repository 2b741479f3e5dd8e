"""What records say: tables in the paper's shape with tests of significance, verdicts, findings."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ruleout.comparison.significance import Mark, holm, significance
from ruleout.experiments.ledger import Failure, Holdings, Record
from ruleout.experiments.plans import (
    DATASETS,
    MODELS,
    Printed,
    label_of,
    printed,
    printed_for,
    table_of,
)
from ruleout.experiments.specs import Spec, protocol
from ruleout.methods import PAPER, approach
from ruleout.report import CellTable, Line, TableCell, TableRow, Verdict
from ruleout.report.formats import duration

#: The paper's own approaches: the better one is what the others are tested against.
OURS = ("exp", "log")

_USUAL = Spec(dataset="", approach="").setting
_UNNAMED = ("precision", "law", "protocol")  # told beneath the table

#: Data set, model and law.
Place: TypeAlias = tuple[str, str, str]


class PaperTable(NamedTuple):
    """A table, the records it was made from, what is unusual about its setting, what failed."""

    cells: CellTable
    records: list[Record]
    setting: str
    failed: Sequence[tuple[str, str]] = ()


def paper_tables(held: Holdings) -> list[PaperTable]:
    """Return a table for each group of tasks that share table and setting, the usual ones first.

    Rows and columns that the paper does not have follow its own.
    """
    groups: dict[tuple[str, str], list[Spec]] = {}
    for spec in held.specs:
        groups.setdefault((table_of(spec), repr(spec.setting)), []).append(spec)
    taken: set[tuple[str, str]] = set()
    made = []
    for (table, _), specs in groups.items():
        words = _unusual(specs[0])
        more = ([*words, str(end)] for end in (specs[0].precision, *range(2, 99)))
        setting = next(one for one in map("-".join, [words, *more]) if (table, one) not in taken)
        taken.add((table, setting))
        made.append(_made(table, setting, specs, held.only(specs)))
    return sorted(made, key=lambda one: bool(one.setting))


def _made(table: str, setting: str, specs: list[Spec], held: Holdings) -> PaperTable:
    cells = _cells(held)
    laid = {(_place(s), s.approach): cells[s.key] for s in specs}
    absent = TableCell(None, note="not asked for")
    heads = _heads(specs)
    tested = _by_place(held.records)
    ours = [best_of_ours(tested.get(place, {}).values()) for place in heads]
    rows = sorted({s.approach for s in specs}, key=_order)
    return PaperTable(
        CellTable(
            _title(table, specs[0]),
            list(heads.values()),
            [TableRow(*_named(row), [laid.get((p, row), absent) for p in heads]) for row in rows],
            ours=["" if one is None else _named(one.spec.approach)[1] for one in ours],
            note=protocol(specs[0].protocol).about(specs[0].law),
            name="-".join(filter(None, [table.replace("_", "-"), setting])),
            compared=specs[0].features == "raw" and table != "own",
        ),
        list(held.records),
        setting,
        [
            (f"{_named(one.spec.approach)[1]} on {heads[_place(one.spec)]}", _failed(one))
            for one in held.failures
        ],
    )


# ---------------------------------------------------------------------- rows and columns


def _place(spec: Spec) -> Place:
    return spec.dataset, spec.model, spec.law


def _by_place(records: Iterable[Record]) -> dict[Place, dict[str, Record]]:
    found: dict[Place, dict[str, Record]] = {}
    for record in records:
        found.setdefault(_place(record.spec), {})[record.spec.approach] = record
    return found


def _heads(specs: Sequence[Spec]) -> dict[Place, str]:
    """Return the columns in the order of the paper, our own last, with what tells them apart."""
    known = [list(names.values()) for names in (DATASETS, MODELS)]

    def order(place: Place) -> tuple[int, int, Place]:
        data, model = (n.index(c) if c in n else len(n) for n, c in zip(known, place, strict=False))
        return data, model, place

    laws, sets = {spec.law for spec in specs}, {spec.dataset for spec in specs}
    heads = {}
    for place in sorted({_place(spec) for spec in specs}, key=order):
        dataset, model, law = place
        models = {spec.model for spec in specs if spec.dataset == dataset}
        more = [model] * (len(models) > 1) + [law] * (len(laws) > 1)
        heads[place] = " ".join([label_of(dataset), *(f"({one})" for one in more)])
        if law.startswith("fixed:") and len(sets) == 1:
            heads[place] = f"s = {law[6:]}" + f" ({model})" * (len(models) > 1)
    return heads


def columns(records: Sequence[Record]) -> dict[str, dict[str, Record]]:
    """Return the records of each column of a table by approach, in the order of the paper."""
    found = _by_place(records)
    return {head: found[place] for place, head in _heads([r.spec for r in records]).items()}


def _order(name: str) -> tuple[int, str]:
    """Order rows as the paper does: EXP first, then LOG and the rest."""
    listed = ["exp", "log", *PAPER[2:]]
    return (listed.index(name) if name in listed else len(listed), name)


def _named(name: str) -> tuple[str, str]:
    """Return family and label of an approach, also of one that is not registered here."""
    try:
        row = approach(name)
    except ValueError:
        return "not registered here", name
    return row.family, row.label


def _unusual(spec: Spec) -> list[str]:
    """Return what is unusual about a setting, in words that file names can hold."""
    changed = {n: v for n, v in spec.setting.items() if v != _USUAL[n] and n not in _UNNAMED}
    words = [] if spec.protocol == "released" else [spec.protocol]
    plain = {"features": spec.features, "per_trial": "per-trial", "grid": "own-grid"}
    return words + [
        plain.get(name, f"{name.replace('_', '-')}-{value}") for name, value in changed.items()
    ]


_TITLES = {
    "uci": "UCI data sets, linear model",
    "linear": "Benchmark data sets, linear model",
    "deep": "Benchmark data sets, neural networks",
    "fixed_linear": "Kuzushiji, sets of one size, linear model",
    "fixed_mlp": "Kuzushiji, sets of one size, MLP",
}


def _title(table: str, spec: Spec) -> str:
    words = [word.replace("-", " ") for word in _unusual(spec)]
    return ", ".join([_TITLES.get(table, "Cells that the paper does not have"), *words])


# ---------------------------------------------------------------------- cells


def _cells(held: Holdings) -> dict[str, TableCell]:
    """Return the cell of every task, tested against ours within its column."""
    cells = {spec.key: TableCell(None, note="not run yet") for spec in held.specs}
    for failure in held.failures:
        cells[failure.spec.key] = TableCell(None, note=_failed(failure))
    for column in _by_place(held.records).values():
        cells |= _tested(list(column.values()))
    for spec in held.specs:
        found = printed_for(spec)
        if found is not None and spec.features == "raw":
            mean, std = found.mean / 100, found.std / 100
            cells[spec.key] = replace(cells[spec.key], paper_mean=mean, paper_std=std)
    return cells


def _failed(failure: Failure) -> str:
    return f"failed {failure.times} time{'s' if failure.times > 1 else ''}: {failure.error}"


def _tested(records: list[Record]) -> dict[str, TableCell]:
    """Return the cells of one column, with p-values, marks and the best of them."""
    alive = [record for record in records if math.isfinite(record.mean)]
    best = max((round(record.mean, 4) for record in alive), default=math.nan)
    cells = {r.spec.key: replace(_cell(r), best=round(r.mean, 4) == best) for r in records}
    ours = best_of_ours(records)
    if ours is None:
        return cells
    others = [record for record in alive if record is not ours]
    tests = significance(ours.accuracy, [other.accuracy for other in others])
    for other, test in zip(others, tests, strict=True):
        cells[other.spec.key] = replace(
            cells[other.spec.key],
            p_value=_known(test.p_value),
            p_holm=_known(test.p_holm),
            mark=test.mark,
            holm=test.mark_holm,
        )
    return cells


def best_of_ours(records: Iterable[Record]) -> Record | None:
    """Return the better of EXP and LOG, what a column is tested against; None without either."""
    rivals = [r for r in records if r.spec.approach in OURS and math.isfinite(r.mean)]
    return max(rivals, key=lambda record: record.mean, default=None)


def _cell(record: Record) -> TableCell:
    if not math.isfinite(record.mean):
        return TableCell(None, note="training diverged in some trial", facts=_facts(record))
    settings = [record.configurations[int(c)] for c in record.chosen]
    return TableCell(
        record.mean,
        _known(record.std),
        verdict=verdict(record) if record.spec.features == "raw" else "",
        trials=record.accuracy.tolist(),
        chosen={n.replace("_", " "): _same([one[n] for one in settings]) for n in settings[0]},
        facts=_facts(record),
        curves=[_line(record, name) for name in ("test", "train") if name in record.curves],
    )


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


# ---------------------------------------------------------------------- verdicts


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
    spread = 0.0 if math.isnan(record.std) else 100 * record.std
    if abs(gap) <= 2 * math.hypot(spread, found.std):
        return "agrees"
    return "better" if gap > 0 else "worse"


def count(records: Iterable[Record]) -> dict[str, int]:
    """Return how many cells were run, agree, are better and are worse."""
    found = [verdict(record) for record in records]
    counts = Counter(one for one in found if one)
    return {"run": len(found)} | {name: counts[name] for name in ("agrees", "better", "worse")}


# ---------------------------------------------------------------------- the paper's sentences

_BOUNDED = ("mae", "mse", "gce", "phuber")
_ORDERED = ("upper-bound", "bounded", "unbounded")

Columns: TypeAlias = dict[str, dict[str, Record]]


@dataclass(frozen=True)
class Finding:
    """A claim of the paper, whether it holds here, and the counts behind that."""

    claim: str
    holds: str
    counts: str


def findings(records: Sequence[Record]) -> list[Finding]:
    """Ask of a table what the paper says of its own.

    A claim whose cells are not all there is "not tested"; what they say so far is told.
    """
    if not records:
        return []
    table = {one for one in printed() if one.table == table_of(records[0].spec)}
    found = [_asked(claim, table, records) for claim in _CLAIMS]
    return [one for one in found if one is not None]


class _Claim(NamedTuple):
    text: str
    needs: Callable[[Printed], bool]  # which cells the claim speaks of
    ask: Callable[[Columns, str], tuple[str, str]]  # says whether it holds, and counts


def _asked(claim: _Claim, table: set[Printed], records: Sequence[Record]) -> Finding | None:
    wanted = {one for one in table if claim.needs(one)}
    if not wanted:
        return None
    rows = {one.row for one in wanted}
    there = wanted & {printed_for(record.spec) for record in records}
    whole = {
        head: {name: column[name] for name in rows}
        for head, column in columns(records).items()
        if rows <= column.keys()
    }
    noun = "sizes" if records[0].spec.law.startswith("fixed:") else "data sets"
    held, told = claim.ask(whole, noun) if whole else ("", "")
    if there == wanted:
        return Finding(claim.text, held, told)
    missing = f"{len(wanted) - len(there)} of the {len(wanted)} cells it speaks of are missing"
    return Finding(claim.text, "not tested", "; so far: ".join(filter(None, [missing, told])))


def _compare(ours: Record, theirs: Record) -> Mark:
    """Say which of two is significantly better: •, ○, or neither."""
    return significance(ours.accuracy, [theirs.accuracy])[0].mark


def _counted(marks: list[Mark], what: str, enough: Callable[[float], bool]) -> tuple[str, str]:
    won, lost, total = marks.count("•"), marks.count("○"), len(marks)
    held = "holds" if enough(won / total) else "holds in part" if won > total / 2 else "fails"
    return held, f"{what} in {won} of {total} cases, significantly worse in {lost}"


def _bounded_beat_cce(tables: Columns, _: str) -> tuple[str, str]:
    marks = [_compare(c[name], c["cce"]) for c in tables.values() for name in _BOUNDED]
    return _counted(marks, "bounded loss significantly better than CCE", lambda won: won == 1)


def _mae_beside_bounded(tables: Columns, noun: str) -> tuple[str, str]:
    best = [max((c[n] for n in _BOUNDED[1:]), key=lambda r: r.mean) for c in tables.values()]
    marks = [_compare(one, c["mae"]) for one, c in zip(best, tables.values(), strict=True)]
    worse, total = marks.count("•"), len(marks)
    text = f"significantly worse than the best other bounded loss on {worse} of {total} {noun}"
    held = "holds" if 0 < worse < total / 2 else "holds in part" if worse < total else "fails"
    return held, text


def _wrappers_outperformed(tables: Columns, _: str) -> tuple[str, str]:
    marks = [
        _compare(ours, record)
        for column in tables.values()
        if (ours := best_of_ours(column.values())) is not None
        for name, record in column.items()
        if name not in OURS
    ]
    what = "the better of EXP and LOG significantly better"
    return _counted(marks, what, lambda won: won > 0.5)


def _ours_best(tables: Columns, noun: str) -> tuple[str, str]:
    best, level, total = [], [], len(tables)
    for head, column in tables.items():
        ours = best_of_ours(column.values())
        top = max((r for r in column.values() if math.isfinite(r.mean)), key=lambda r: r.mean)
        if top is ours:
            best.append(head)
        elif ours is not None and _compare(top, ours) == "":
            level.append(head)
    told = f"best on {len(best)} of {total} {noun} ({', '.join(best) or 'none'})"
    told += f"; not significantly below it on {len(level)} more ({', '.join(level) or 'none'})"
    held = "holds" if len(best) > total / 2 else "holds in part" if best or level else "fails"
    return held, told


def _marks(tables: Columns, _: str) -> tuple[str, str]:
    same = total = 0
    for column in tables.values():
        ours = best_of_ours(column.values())
        for name, record in column.items():
            found = printed_for(record.spec)
            if ours is not None and found is not None and name not in OURS:
                total += 1
                same += (_compare(ours, record) == "•") == found.marked_worse
    held = "holds" if same >= 0.9 * total else "holds in part" if same > total / 2 else "fails"
    return held, f"the same mark in {same} of {total} cells"


_CLAIMS = (
    _Claim(
        "All bounded losses are significantly better than the unbounded CCE in the estimator.",
        lambda cell: cell.row in (*_BOUNDED, "cce"),
        _bounded_beat_cce,
    ),
    _Claim(
        "MAE is comparable with the other bounded losses in most cases, sometimes inferior.",
        lambda cell: cell.row in _BOUNDED,
        _mae_beside_bounded,
    ),
    _Claim(
        "The decomposed approaches are significantly outperformed by the upper bounds in most "
        "cases.",
        lambda cell: cell.row in OURS or cell.group.endswith("-shuffle"),
        _wrappers_outperformed,
    ),
    _Claim(
        "The upper bounds achieve the best performance among all approaches.",
        lambda _: True,
        _ours_best,
    ),
    _Claim(
        "Which cells are significantly worse than ours (marked • in the paper).",
        lambda cell: cell.marked_worse is not None,
        _marks,
    ),
)


@dataclass(frozen=True)
class Order:
    """How the families of losses rank in a column by their means, best first."""

    dataset: str
    ours: tuple[str, ...]
    paper: tuple[str, ...]
    means: tuple[float, ...]
    printed: tuple[float, ...]

    @property
    def same(self) -> bool:
        """Whether the order is the paper's."""
        return self.ours == self.paper


def orders(records: Sequence[Record]) -> list[Order]:
    """Return how upper-bound, bounded and unbounded losses rank on each data set."""
    found = []
    for head, column in columns(records).items():
        ours = _family_means(column, lambda record: 100 * record.mean)
        theirs = _family_means(column, lambda r: one.mean if (one := printed_for(r.spec)) else None)
        if len(ours) == len(theirs) == len(_ORDERED):
            found.append(
                Order(
                    head,
                    tuple(sorted(ours, key=ours.__getitem__, reverse=True)),
                    tuple(sorted(theirs, key=theirs.__getitem__, reverse=True)),
                    tuple(ours[family] for family in _ORDERED),
                    tuple(theirs[family] for family in _ORDERED),
                )
            )
    return found


def _family_means(
    column: dict[str, Record], value: Callable[[Record], float | None]
) -> dict[str, float]:
    families: dict[str, list[float]] = {}
    for name, record in column.items():
        found = value(record)
        if found is not None and _named(name)[0] in _ORDERED and printed_for(record.spec):
            families.setdefault(_named(name)[0], []).append(found)
    means = {family: fmean(families[family]) for family in _ORDERED if family in families}
    return {family: mean for family, mean in means.items() if math.isfinite(mean)}


# ---------------------------------------------------------------------- trends


class Trend(NamedTuple):
    """Whether accuracy rises with the size of the sets, for one approach."""

    label: str
    means: tuple[float, ...]  #: by size, in percent
    p_value: float  #: of Page's test
    p_holm: float  #: the same after Holm's correction for the number of approaches


def trends(records: Sequence[Record]) -> tuple[list[int], list[Trend]]:
    """Test whether accuracy rises with the size of the sets, approach by approach.

    Page's test (1963) of ordered means: trials are blocks, which share rows and first weights over
    all sizes. Approaches that lack a size, or of which a trial diverged, are left out.

    Returns
    -------
    sizes, trends
        The sizes of the sets that `records` hold, and one test for each approach.
    """
    from scipy.stats import page_trend_test  # late: it takes a second

    by_size: dict[int, dict[str, Record]] = {}
    one_model = len({(r.spec.dataset, r.spec.model) for r in records}) == 1
    for record in records:
        if one_model and record.spec.law.startswith("fixed:"):
            by_size.setdefault(int(record.spec.law[6:]), {})[record.spec.approach] = record
    sizes = sorted(by_size)
    names = sorted({name for column in by_size.values() for name in column}, key=_order)
    told: list[tuple[str, Any, float]] = []
    for name in names if len(sizes) > 2 else ():
        found = [by_size[size].get(name) for size in sizes]
        lines = [one.accuracy for one in found if one is not None]
        if len(lines) == len(sizes) and len({len(line) for line in lines}) == 1:
            table = np.stack(lines, axis=1)
            if len(table) > 1 and np.isfinite(table).all():
                p = float(page_trend_test(table).pvalue)
                family, label = _named(name)
                told.append((f"{label} ({family})", 100 * table.mean(0), p))
    fair = holm([p for *_, p in told]).tolist()
    return sizes, [
        Trend(label, tuple(means.tolist()), p, after)
        for (label, means, p), after in zip(told, fair, strict=True)
    ]
