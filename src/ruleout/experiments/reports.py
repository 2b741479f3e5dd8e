"""What records say, beside the paper: tables with tests of significance, verdicts, findings, pages.

Everything is read from ledgers and written as pages, tables, figures and data files.
"""

from __future__ import annotations

import csv
import io
import math
import re
import textwrap
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ruleout import report
from ruleout.comparison.significance import (
    Ranking,
    Significance,
    holm,
    rank_approaches,
    significance,
)
from ruleout.experiments import plans
from ruleout.experiments.ledger import Failure, Holdings, Record, write_parquet
from ruleout.experiments.specs import GRIDS, NAMES, Spec, protocol
from ruleout.labels.atomic import atomic_write, write_text
from ruleout.labels.errors import InputError, counted
from ruleout.labels.laws import LAWS
from ruleout.methods import PAPER, approach, approaches
from ruleout.report.charts import lanes
from ruleout.report.number_format import duration, p_value
from ruleout.version import __version__

#: What can be written.
FORMATS = ("html", "latex", "markdown", "csv", "parquet", "png", "pdf")

#: The columns of ``accuracy.csv``: the key of the paper's file, then ours.
COLUMNS = (
    "table", "dataset", "model", "sizes", "group", "approach",
    "mean", "std", "trials", "learning_rate", "weight_decay", "protocol", "chosen_by",
    "paper_mean", "paper_std", "difference", "verdict",
)  # fmt: skip


def write_report(
    held: Holdings, folder: str | Path, formats: Collection[str] = FORMATS
) -> list[Path]:
    """Write everything to a folder; return the files, the page first.

    - ``report.html``: the page;
    - ``NAME.tex``, ``NAME.md``, ``NAME.csv``: each table;
    - ``accuracy.csv``: cells beside the paper's, with the keys of the paper's own file; of
      further settings ``accuracy-SETTING.csv``; where the paper has no cell, there is none;
    - ``ledger/*.parquet``: every trial and every configuration;
    - ``figure-1.png``, ``.pdf`` and ``figure-2``: accuracy by epoch of the unbiased losses;
    - ``ranks.png``, ``.pdf``: average ranks over columns, of further settings ``ranks-SETTING``.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made: list[Path] = []
    if "html" in formats:
        made.append(report.write(page(held), place / "report.html"))
    tables = paper_tables(held)
    forms = {"latex": ("tex", report.latex), "markdown": ("md", report.markdown),
             "csv": ("csv", report.csv)}  # fmt: skip
    for table in tables:
        for end, form in (forms[name] for name in forms if name in formats):
            made.append(write_text(place / f"{table.cells.name}.{end}", form(table.cells)))
    if "csv" in formats:
        settings = list(dict.fromkeys(table.setting for table in tables))
        for setting in settings:
            records = [r for table in tables if table.setting == setting for r in table.records]
            end = f"-{setting}" if setting != settings[0] else ""
            if any(plans.printed_for(one.spec) for one in records):
                made.append(write_text(place / f"accuracy{end}.csv", accuracies(records)))
    if "parquet" in formats:
        made += write_parquet(held.records, place / "ledger")
    kinds = [kind for kind in ("png", "pdf") if kind in formats]
    if kinds:
        made += draw(tables, place, kinds)
        for setting, found in rankings(tables).items():
            if isinstance(found, Ranking):
                made += draw_ranks(found, place / f"ranks{setting and f'-{setting}'}", kinds)
    return made


def accuracies(records: Sequence[Record]) -> str:
    """Return cells as CSV, spelt as in the paper's own file; means in percent."""
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    place = {one: number for number, one in enumerate(plans.printed())}
    beside = [(found, r) for r in records if (found := plans.printed_for(r.spec)) is not None]
    writer.writerows(_row(*both) for both in sorted(beside, key=lambda both: place[both[0]]))
    return out.getvalue()


def _row(found: plans.Printed, record: Record) -> dict[str, Any]:
    def points(value: float) -> str:
        return f"{value:.2f}" if math.isfinite(value) else ""

    def chosen(name: str) -> str:
        values = dict.fromkeys(record.configurations[int(c)][name] for c in record.chosen)
        return "|".join(f"{value:g}" for value in values)

    spec = record.spec
    return {name: getattr(found, name) for name in COLUMNS[:6]} | {
        "mean": points(100 * record.mean),
        "std": points(100 * record.std),
        "trials": spec.trials,
        **{name: chosen(name) for name in ("learning_rate", "weight_decay")},
        "protocol": spec.protocol,
        "chosen_by": spec.chosen_by,
        "paper_mean": f"{found.mean:.2f}",
        "paper_std": f"{found.std:.2f}",
        "difference": points(100 * record.mean - found.mean),
        "verdict": verdict(record),
    }


def page(
    held: Holdings, title: str = "Learning with multiple complementary labels"
) -> report.Report:
    """Return the report of all that ledgers hold."""
    tables = paper_tables(held)
    beside = {  # each once, in its usual setting, which comes first
        plans.printed_for(record.spec): record
        for table in tables[::-1]
        if table.cells.compared
        for record in table.records
    }
    beside.pop(None, None)
    told = count(beside.values())
    summary = ["No cell of the paper's tables has been run."]
    if told["run"]:
        many = told["agrees"] + told["better"] + told["worse"]
        summary = [
            f"{counted(many, 'cell stands', 'cells stand')} beside the paper's: {_tally(told)}. "
            "Two means agree when they differ by at most two combined standard deviations. By "
            f"Welch's test at 5 %, {differing(beside.values())} differ."
        ]
    left = len(held.specs) - len(held.records) - len(held.failures)
    if left:  # nothing is left out in silence
        summary.append(f"{counted(left, 'cell has', 'cells have')} not been run yet.")
    if held.failures:
        summary.append(f"{counted(len(held.failures), 'cell')} failed, listed with the error.")
    facts, sections = _page_facts(held.records), [_section(table) for table in tables]
    if compared := rankings(tables):
        sections.append(_compared(compared))
    if panels := _panels(tables):
        sections.append(_figures(panels))
    return report.Report(title, summary=summary, facts=facts, sections=sections)


def _tally(told: dict[str, int]) -> str:
    verbs = {"agrees": ("agrees", "agree"), "better": ("is better", "are better"),
             "worse": ("is worse", "are worse")}  # fmt: skip
    return ", ".join(
        f"{told[n]} {one if told[n] == 1 else more}" for n, (one, more) in verbs.items()
    )


def _page_facts(records: Sequence[Record]) -> dict[str, object]:
    if not records:
        return {"ruleout": __version__}
    devices = Counter(f"{r.about.get('device_name')} ({r.spec.precision})" for r in records)
    versions = Counter(f"torch {r.about.get('versions', {}).get('torch', '?')}" for r in records)
    seconds = sum(r.seconds for r in records)
    return {
        "Cells": len(records),
        "Models trained": f"{sum(int(r.about.get('models', 0)) for r in records):,}",
        "Time, summed over tasks": duration(seconds),
        "Devices": ", ".join(devices),
        "Versions": ", ".join([f"ruleout {__version__}", *versions]),
    }


def _section(table: PaperTable) -> report.Section:
    parts: list[report.Part] = [table.cells]
    if table.failed:
        parts.append(report.Listing("Failed", table.failed))
    told = count(table.records)
    if table.cells.compared and told["run"]:
        parts.insert(0, report.Note(f"Beside the paper: {_tally(told)}."))
        said = [(one.claim, f"{one.holds}: {one.counts}") for one in findings(table.records)]
        parts.append(report.Listing("What the paper says of this table, asked of ours", said))
    sizes, found = trends(table.records)
    if found:
        rises = [
            (one.label, f"{one.means[0]:.1f} → {one.means[-1]:.1f} %, p: {p_value(one.p_holm)}")
            for one in found
        ]
        title = f"Accuracy from s = {sizes[0]} to {sizes[-1]}: does it rise? (Page's test, Holm)"
        parts.append(report.Listing(title, rises))
    text = ""
    if table.records:
        specs = [record.spec for record in table.records]
        spec, grid = specs[0], max(len(record.configurations) for record in table.records)
        trials, precision = (
            " or ".join(dict.fromkeys(str(getattr(one, name)) for one in specs))
            for name in ("trials", "precision")
        )
        text = (
            f"{trials} trials, {spec.epochs} epochs, {grid} configurations, protocol "
            f"“{spec.protocol}”, {spec.features} features, {precision}. Accuracies are means "
            f"of the last {spec.average} epochs; configurations were chosen by {spec.criterion} on "
            f"{100 * spec.share:g} % of the training rows, without true labels."
        )
    return report.Section(table.cells.title, parts, text=text)


#: The paper's own approaches: the better one is what the others are tested against.
OURS = ("exp", "log")

#: Data set, model and law.
Place: TypeAlias = tuple[str, str, str]


class PaperTable(NamedTuple):
    """A table, the records it was made from, what is unusual about its setting, what failed."""

    cells: report.CellTable
    records: list[Record]
    setting: str
    failed: Sequence[tuple[str, str]] = ()


def paper_tables(held: Holdings) -> list[PaperTable]:
    """Return a table for each group of tasks that share table and setting, the usual ones first.

    Rows and columns that the paper does not have follow its own. A cell of the paper that was run
    with another grid, fewer trials or another precision stands in its table, and says so, as long
    as no fuller record of it is there.
    """
    done = {record.spec.key for record in held.records}
    tried = done | {failure.spec.key for failure in held.failures}
    known, shown = set[tuple[Place, str, str]](), dict[Spec, str]()
    for spec in sorted(held.specs, key=lambda one: (one.key in done, one.fullness), reverse=True):
        both = _group(spec), repr((spec.setting, spec.search_trials))
        first, other = ((_place(spec), spec.approach, one) not in known for one in both)
        if first or (other and spec.key in tried):
            shown[spec] = both[0] if first else both[1]
        known |= {(_place(spec), spec.approach, one) for one in both}
    groups: dict[tuple[str, str], list[Spec]] = {}
    listed = [spec for spec in held.specs if spec in shown]
    for spec in sorted(listed, key=lambda one: shown[one] != _group(one)):
        groups.setdefault((plans.table_of(spec), shown[spec]), []).append(spec)
    taken: set[tuple[str, str]] = set()
    made = []
    ours = [*NAMES["tables"], "own"]
    for (table, _), specs in sorted(
        groups.items(), key=lambda one: (ours.index(one[0][0]), one[1][0].law.startswith("fixed:"))
    ):
        usual = max(specs, key=lambda one: one.fullness)
        words = _unusual(usual)
        ends = ["fixed"] * usual.law.startswith("fixed:")
        ends += [usual.precision] * (usual.precision != "float32")
        ends += [f"searched-in-{usual.search_trials}"] * (usual.search_trials > 0)
        ends += [f"{usual.grid}-grid"] * (usual.grid in GRIDS) + [usual.precision]
        more = [words, *([*words, str(end)] for end in [*ends, *range(2, 99)])]
        names = next(one for one in more if (table, "-".join(one)) not in taken)
        setting = "-".join(names)
        taken.add((table, setting))
        title = [NAMES["tables"].get(table, "Cells that the paper does not have")]
        title += [word.replace("-", " ") for word in names if word != "fixed"]
        made.append(_made(table, ", ".join(title), setting, specs, held.only(specs)))
    return sorted(made, key=lambda one: bool(one.setting))


def _group(spec: Spec) -> str:
    """Return what cells of one table share, in a table of the paper only how they compare."""
    return repr(spec.setting if plans.table_of(spec) == "own" else spec.comparable)


def _made(table: str, title: str, setting: str, specs: list[Spec], held: Holdings) -> PaperTable:
    cells = _cells(held)
    laid = {(_place(s), s.approach): cells[s.key] for s in specs}
    absent = report.TableCell(None, note="not run")
    heads = _heads(specs)
    tested = _by_place(held.records)
    ours = [best_of_ours(tested.get(place, {}).values()) for place in heads]
    rows = sorted({s.approach for s in specs}, key=_order)
    return PaperTable(
        report.CellTable(
            title,
            list(heads.values()),
            [
                report.TableRow(*_named(row), [laid.get((p, row), absent) for p in heads])
                for row in rows
            ],
            ours=["" if one is None else _named(one.spec.approach)[1] for one in ours],
            note=protocol(specs[0].protocol).about(specs[0].law)
            + _fewer(held.records)
            + _mixed(held.records)
            + _outdated(held.records),
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


def _fewer(records: Sequence[Record]) -> str:
    """Say in which cells less was computed than in others."""
    specs = [record.spec for record in records]
    most = max((one.trials for one in specs), default=0)
    usual = Counter(one.precision for one in specs).most_common(1)
    cases = {
        "{0.search_trials} of {0.trials} trials searched the grid for all": [
            one for one in specs if one.search_trials
        ],
        "the paper's source prints the configuration": [o for o in specs if o.grid == "printed"],
        "successive halving searched the grid": [one for one in specs if one.grid == "halving"],
        "there are fewer trials, and no test": [one for one in specs if one.trials < most],
        "another precision was used": [one for one in specs if one.precision != usual[0][0]],
    }
    told = "; ".join(
        f"in {len(some)} of {len(specs)} cells {text.format(*some)}"
        for text, some in cases.items()
        if some
    )
    return f" I{told[1:]}: see “chosen_by” in accuracy.csv." if told else ""


def _mixed(records: Sequence[Record]) -> str:
    """Say of which data sets cells were trained on data that differ, as where a file changed."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in records:
        if (asked := _asked(one)) is not None:
            found.setdefault((one.spec.dataset, asked), set()).add(str(one.about.get("data")))
    names = sorted({plans.label_of(name) for (name, _), own in found.items() if len(own) > 1})
    if not names:
        return ""
    told = "were not all trained on the same data, and those that differ are not tested"
    return f" Cells of {', '.join(names)} {told}."


def _outdated(records: Iterable[Record]) -> str:
    """Say of which approaches cells were computed by code that is not what is registered now."""
    known, names = approaches(), dict[str, None]()
    for one in records:
        code = one.about.get("code")
        if code and one.spec.runs in known and code != approach(one.spec.runs).source.code:
            names[one.spec.approach] = None
    if not names:
        return ""
    told = "by code that was changed since: another ledger, or another name, computes them anew"
    return f" Cells of {', '.join(names)} were computed {told}."


def _asked(one: Record) -> str | None:
    """Return which data a cell asks for; None of auto, which trains on trials one by one."""
    told = asdict(one.spec) | {"approach": "", "precision": ""}
    return None if one.spec.approach == "auto" else repr(told)


def _apart(one: Record, other: Record) -> bool:
    """Say whether two cells that ask for the same data were trained on data that differ."""
    same = one.about.get("data") == other.about.get("data")
    return not same and (asked := _asked(one)) is not None and asked == _asked(other)


def _place(spec: Spec) -> Place:
    return spec.dataset, spec.model, spec.law


def _by_place(records: Iterable[Record]) -> dict[Place, dict[str, Record]]:
    found: dict[Place, dict[str, Record]] = {}
    for record in records:
        found.setdefault(_place(record.spec), {})[record.spec.approach] = record
    return found


def _position(place: Place) -> tuple[int, int, Place]:
    """Order data sets and models as the paper does, our own last."""
    known = [list(names.values()) for names in (plans.DATASETS, plans.MODELS)]
    data, model = (n.index(c) if c in n else len(n) for n, c in zip(known, place, strict=False))
    return data, model, place


def _heads(specs: Sequence[Spec]) -> dict[Place, str]:
    """Return the columns in the order of the paper, our own last, with what tells them apart."""
    laws, sets = {spec.law for spec in specs}, {spec.dataset for spec in specs}
    heads = {}
    for place in sorted({_place(spec) for spec in specs}, key=_position):
        dataset, model, law = place
        models = {spec.model for spec in specs if spec.dataset == dataset}
        fixed = law.startswith("fixed:")
        more = [model] * (len(models) > 1) + [law] * (fixed or len(laws) > 1)
        heads[place] = " ".join([plans.label_of(dataset), *(f"({one})" for one in more)])
        if fixed and len(sets) == 1:
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
        return "chosen from several" if name == "auto" else "not registered here", name
    return row.family, row.label


def _unusual(spec: Spec) -> list[str]:
    """Return what is unusual about a setting, in words that file names can hold."""
    usual = Spec(dataset="", approach="").setting
    beneath = ["precision", "law", "protocol"] + ["grid"] * (spec.grid in GRIDS)
    usual |= {name: spec.setting[name] for name in beneath}
    changed = {name: value for name, value in spec.setting.items() if value != usual[name]}
    words = [] if spec.protocol == "released" else [spec.protocol]
    if spec.law != protocol(spec.protocol).law and not spec.law.startswith("fixed:"):
        words.append("law-" * (spec.law in LAWS) + re.sub("[:~]", "-", spec.law))
    plain = {
        "features": spec.features,
        "per_trial": "per-trial",
        "grid": f"{spec.grid if spec.grid == 'small' else 'own'}-grid",
    }
    return words + [
        plain.get(name, f"{name.replace('_', '-')}-{value}") for name, value in changed.items()
    ]


def _cells(held: Holdings) -> dict[str, report.TableCell]:
    """Return the cell of every task, tested against ours within its column."""
    cells = {spec.key: report.TableCell(None, note="not run yet") for spec in held.specs}
    for failure in held.failures:
        cells[failure.spec.key] = report.TableCell(None, note=_failed(failure))
    for column in _by_place(held.records).values():
        cells |= _tested(list(column.values()))
    for spec in held.specs:
        found = plans.printed_for(spec)
        if found is not None and spec.features == "raw":
            mean, std = found.mean / 100, found.std / 100
            cells[spec.key] = replace(cells[spec.key], paper_mean=mean, paper_std=std)
    return cells


def _failed(failure: Failure) -> str:
    return f"failed {failure.times} time{'s' if failure.times > 1 else ''}: {failure.error}"


def _tested(records: list[Record]) -> dict[str, report.TableCell]:
    """Return the cells of one column, with p-values, marks and the best of them."""
    alive = [record for record in records if math.isfinite(record.mean)]
    best = max((round(record.mean, 4) for record in alive), default=math.nan)
    cells = {r.spec.key: replace(_cell(r), best=round(r.mean, 4) == best) for r in records}
    ours = best_of_ours(records)
    if ours is None:
        return cells
    others = [record for record in alive if record is not ours]
    tests = _tests(ours, others)
    for other, test in zip(others, tests, strict=True):
        cells[other.spec.key] = replace(
            cells[other.spec.key],
            p_value=_known(test.p_value),
            p_holm=_known(test.p_holm),
            mark=test.mark,
            holm=test.mark_holm,
        )
    return cells


def _tests(ours: Record, others: Sequence[Record]) -> list[Significance]:
    """Test in pairs of trials; what has more trials, fewer, or other data is not tested."""
    count = len(ours.accuracy)
    same = [len(other.accuracy) == count and not _apart(ours, other) for other in others]
    pairs = zip(others, same, strict=True)
    return significance(ours.accuracy, [one.accuracy if fair else None for one, fair in pairs])


def best_of_ours(records: Iterable[Record]) -> Record | None:
    """Return the better of EXP and LOG, what a column is tested against; None without either."""
    rivals = [r for r in records if r.spec.approach in OURS and math.isfinite(r.mean)]
    return max(rivals, key=lambda record: record.mean, default=None)


def _cell(record: Record) -> report.TableCell:
    if not math.isfinite(record.mean):
        return report.TableCell(None, note="training diverged in some trial", facts=_facts(record))
    settings = [record.configurations[int(c)] for c in record.chosen]
    chosen: dict[str, object] = {}
    for name in settings[0]:
        values = [one[name] for one in settings]
        told = " / ".join(f"{value:g}" for value in values) if len(set(values)) > 1 else values[0]
        chosen[name.replace("_", " ")] = told
    labels = {"test": "test", "train": "training"}
    return report.TableCell(
        record.mean,
        _known(record.std),
        verdict=verdict(record) if record.spec.features == "raw" else "",
        trials=record.accuracy.tolist(),
        chosen=chosen,
        facts=_facts(record),
        curves=[_line(label, record, n) for n, label in labels.items() if n in record.curves],
    )


def _facts(record: Record) -> Mapping[str, object]:
    about, (best, setting) = record.about, record.oracle
    tried: dict[str, object] = {"Why": about["why"][0]} if "why" in about else {}
    if record.spec.searching:
        where = ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in setting.items())
        tried = {
            "Criterion of the choice, held out": f"{100 * record.estimate:.2f} %",
            "Trials that searched the grid": f"{record.spec.searching} of {record.spec.trials}",
            "Best on test rows before refit (true labels)": f"{100 * best:.2f} % ({where})",
        }
    return {
        "Chosen by": record.spec.chosen_by,
        **tried,
        "Form that ran": record.spec.runs,
        "Models trained": f"{about.get('models', 0)}, of which {about.get('diverged', 0)} diverged",
        "Time": duration(record.seconds),
        "Device": f"{about.get('device_name', '')} ({record.spec.precision})",
        "Key": record.spec.key[:16],
    }


def _line(label: str, record: Record, name: str, unit: float = 1) -> report.Line:
    points = unit * record.curves[name].astype(float)
    mean, std = points.mean(0), points.std(0, ddof=min(1, len(points) - 1))
    return report.Line(label, record.epochs.tolist(), mean, mean - std, mean + std)


def difference(record: Record) -> float | None:
    """Return our mean less the paper's, in percent; None where it prints nothing."""
    found = plans.printed_for(record.spec)
    return None if found is None else 100 * record.mean - found.mean


def verdict(record: Record) -> report.Verdict:
    r"""Return whether a cell agrees with the paper, or is better or worse; empty where neither.

    Two means agree when they differ by at most :math:`2\sqrt{s_1^2 + s_2^2}`.
    """
    found, gap = plans.printed_for(record.spec), difference(record)
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


def differing(records: Iterable[Record]) -> int:
    """Count the means that differ from the printed ones, of five trials, by Welch's test at 5 %."""
    from scipy.stats import ttest_ind_from_stats  # late: it takes a while

    found = 0
    for one in records:
        paper = plans.printed_for(one.spec)
        if paper is not None and len(one.accuracy) > 1:
            ours = (100 * one.mean, 100 * one.std, len(one.accuracy))
            theirs = (paper.mean, paper.std, 5)
            found += bool(ttest_ind_from_stats(*ours, *theirs, equal_var=False).pvalue < 0.05)
    return found


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


_BOUNDED = ("mae", "mse", "gce", "phuber")

Columns: TypeAlias = dict[str, dict[str, Record]]
_Ask: TypeAlias = Callable[[Columns, str], tuple[str, str]]  # whether it holds, and counts


class Finding(NamedTuple):
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
    most = max(record.spec.trials for record in records)
    fewer = len(records) - len(records := [r for r in records if r.spec.trials == most])
    noun = "sizes" if records[0].spec.law.startswith("fixed:") else "data sets"
    laid, there = columns(records), {plans.printed_for(record.spec) for record in records}
    found = []
    for claim, (needs, ask) in _CLAIMS.items():
        table = (one for one in plans.printed() if one.table == plans.table_of(records[0].spec))
        wanted = {one for one in table if needs(one)}
        rows = {one.row for one in wanted}
        whole = {
            head: {name: one for name, one in column.items() if name in rows}
            for head, column in laid.items()
            if rows <= column.keys()
        }
        held, told = ask(whole, noun) if wanted and whole else ("", "")
        if lacking := len(wanted - there):
            missing = f"{lacking} of the {len(wanted)} cells it speaks of are missing"
            missing += " or have fewer trials" * bool(fewer)
            held, told = "not tested", "; so far: ".join(filter(None, [missing, told]))
        if wanted:
            found.append(Finding(NAMES["claims"][claim], held, told))
    return found


def _compare(ours: Record, theirs: Record) -> report.parts.Mark:
    """Say which of two is significantly better: •, ○, or neither."""
    return _tests(ours, [theirs])[0].mark


def _counted(
    marks: list[report.parts.Mark], what: str, enough: Callable[[float], bool]
) -> tuple[str, str]:
    won, lost, total = marks.count("•"), marks.count("○"), len(marks)
    if not total:
        return "not tested", "no two cells can be compared: training diverged"
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
    return _counted(marks, "the better of EXP and LOG significantly better", lambda won: won > 0.5)


def _ours_best(tables: Columns, noun: str) -> tuple[str, str]:
    best, level, total = [], [], len(tables)
    for head, column in tables.items():
        ours = best_of_ours(column.values())
        alive = [record for record in column.values() if math.isfinite(record.mean)]
        top = max(alive, key=lambda record: record.mean, default=None)
        if ours is None or top is None:
            continue
        if ours.mean == top.mean:
            best.append(head)
        elif _compare(top, ours) == "":
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
            found = plans.printed_for(record.spec)
            if ours is not None and found is not None and name not in OURS:
                total += 1
                same += (_compare(ours, record) == "•") == found.marked_worse
    held = "holds" if same >= 0.9 * total else "holds in part" if same > total / 2 else "fails"
    return held, f"the same mark in {same} of {total} cells"


#: Claims of the paper, which ``paper.toml`` words: of which cells each speaks, and who asks.
_CLAIMS: dict[str, tuple[Callable[[plans.Printed], bool], _Ask]] = {
    "bounded": (lambda cell: cell.row in (*_BOUNDED, "cce"), _bounded_beat_cce),
    "mae": (lambda cell: cell.row in _BOUNDED, _mae_beside_bounded),
    "wrappers": (
        lambda cell: cell.row in OURS or cell.group.endswith("-shuffle"),
        _wrappers_outperformed,
    ),
    "best": (lambda _: True, _ours_best),
    "marks": (lambda cell: cell.marked_worse is not None, _marks),
}


class Trend(NamedTuple):
    """Whether accuracy rises with the size of the sets, for one approach."""

    label: str
    means: tuple[float, ...]  #: by size, in percent
    p_value: float  #: of Page's test
    p_holm: float  #: the same after Holm's correction for the number of approaches


def trends(records: Sequence[Record]) -> tuple[list[int], list[Trend]]:
    """Test whether accuracy rises with the size of the sets, approach by approach.

    Page's test (1963) of ordered means: trials are blocks, which share rows and first weights over
    all sizes. Approaches that lack a size, or of which a trial diverged, are left out. The sizes
    that `records` hold come first.
    """
    from scipy.stats import page_trend_test  # late: it takes a second

    by_size: dict[int, dict[str, Record]] = {}
    one_model = len({(r.spec.dataset, r.spec.model) for r in records}) == 1
    for record in records:
        if one_model and record.spec.law.removeprefix("fixed:").isdigit():
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


def rankings(tables: Sequence[PaperTable]) -> dict[str, Ranking | str]:
    """Rank approaches over the columns of all tables, setting by setting; or say why not.

    Settings of one approach or one column are left out.
    """
    settings: dict[str, list[Record]] = {}
    for table in tables:
        settings.setdefault(table.setting, []).extend(table.records)
    found: dict[str, Ranking | str] = {}
    for setting, records in settings.items():
        scores = {
            place: {name: record.mean for name, record in column.items()}
            for place, column in _by_place(records).items()
        }
        if len(scores) > 1 and len({r.spec.approach for r in records}) > 1:
            try:
                found[setting] = rank_approaches(scores)
            except InputError as error:
                found[setting] = f"{error}."
    return found


def _compared(found: Mapping[str, Ranking | str]) -> report.Section:
    parts: list[report.Part] = []
    for setting, one in found.items():
        title = ", ".join(["Average ranks", *([setting.replace("-", " ")] if setting else [])])
        if isinstance(one, str):
            parts.append(report.Note(f"{title}: {one}"))
            continue
        chart = report.Ranks(
            title,
            list(map(title_of, one.names)),
            one.ranks,
            families=[_named(name)[0] for name in one.names],
            groups=one.groups,
            p_values=[None, *one.p_holm[0, 1:]],
        )
        parts += [chart, report.Listing("What was tested", ranking_facts(one))]
    return report.Section("Comparison across data sets", parts, text=ABOUT_RANKS)


#: How approaches are compared over data sets.
ABOUT_RANKS = (
    "The average rank of each approach over the columns in which all of them were run. Friedman's "
    "test asks whether all are alike. Pairs are told apart by Wilcoxon's signed-rank test with "
    "Holm's correction at 5 %, not by Nemenyi's critical difference: there the other approaches "
    "would decide, too, whether two of them differ (Benavoli et al., 2016). Columns of one "
    "data set are not independent, as the tests take them to be: their p-values are too small."
)


def ranking_facts(found: Ranking) -> dict[str, str]:
    """Say what was compared and what the tests gave."""
    k, n = len(found.names), len(found.blocks)
    sets = Counter(plans.label_of(place[0]) for place in sorted(found.blocks, key=_position))
    pairs, apart = math.comb(k, 2), int((np.triu(found.p_holm < 0.05)).sum())
    p = p_value(found.p_value)
    told = {
        "Approaches": str(k),
        "Columns": f"{n}: " + ", ".join(f"{name} {count}" for name, count in sets.items()),
        "Friedman": f"χ² = {found.chi_square:.2f}, F({k - 1}, {(k - 1) * (n - 1)}) = "
        f"{found.f:.2f}, p {p if p.startswith('<') else f'= {p}'}",
        "Pairs told apart": f"{apart} of {pairs}",
    }
    if n < found.enough:
        told["Pairs told apart"] += f": with {k} approaches it takes {found.enough} columns"
    if found.left_out:
        told["Left out, not run in all"] = ", ".join(map(title_of, found.left_out))
    return told


def title_of(name: str) -> str:
    """Return the label of an approach, with its form where two share a label."""
    form = re.search("-(before|after)$", name)
    return _named(name)[1] + (f" ({form[1]})" if form else "")


#: The losses of the figures: what they are called, and their colours.
LOSSES: dict[str, list[str]] = NAMES["losses"]

_FIGURES = {"figure-1": ("test", "Test accuracy"),
            "figure-2": ("train", "Training accuracy with true labels")}  # fmt: skip


def _figures(panels: Mapping[str, Sequence[Record]]) -> report.Section:
    """Return both figures for the page: each panel of the first beside that of the second."""
    parts = [
        report.Curves(
            f"{title}: {label.lower()}",
            [_line(LOSSES[record.spec.approach][0], record, curve) for record in found],
            band_label="± one standard deviation of the trials",
            unit="percent",
            half=True,
        )
        for title, found in panels.items()
        for curve, label in _FIGURES.values()
    ]
    text = "The losses of the unbiased estimator, with the configurations that were chosen."
    return report.Section("Figures 1 and 2: accuracy by epoch", parts, text=text)


def draw(tables: Sequence[PaperTable], folder: str | Path, kinds: Sequence[str]) -> list[Path]:
    """Draw figures 1 and 2 with a panel for each data set, model and setting; return the files."""
    panels = _panels(tables)
    if not panels:
        return []
    made = []
    for name, (curve, label) in _FIGURES.items():
        wide = min(4, len(panels))
        high = -(-len(panels) // wide)
        figure = _figure(3.1 * wide, 2.6 * high + 0.5)
        axes = list(figure.subplots(high, wide, squeeze=False).flat)
        for place, (title, found) in zip(axes, panels.items(), strict=False):
            _panel(place, title, found, curve)
        for place in axes[len(panels) :]:
            place.set_visible(False)
        lines = {line.get_label(): line for place in axes for line in place.get_lines()}
        handles = [lines[name] for name, _ in LOSSES.values() if name in lines]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False)
        figure.supylabel(f"{label} (%)", fontsize=9)
        made += _save(figure, Path(folder) / name, kinds)
    return made


def _figure(wide: float, high: float) -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        say = "pip install 'ruleout[plot]', or leave out png and pdf"
        raise InputError("figures need matplotlib", say) from None
    return Figure(figsize=(wide, high), layout="constrained")


def _save(figure: Any, path: Path, kinds: Sequence[str]) -> list[Path]:
    """Write a figure in some kinds, the same bytes each time."""
    made = [path.parent / f"{path.name}.{kind}" for kind in kinds]
    for file, kind in zip(made, kinds, strict=True):
        told = {"Software": None} if kind == "png" else {"CreationDate": None, "Producer": None}
        with atomic_write(file) as out, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Glyph .* missing from font")  # names may be Japanese
            figure.savefig(out, format=kind, dpi=160, metadata=told)
    return made


def draw_ranks(found: Ranking, path: Path, kinds: Sequence[str]) -> list[Path]:
    """Draw average ranks, the best on top, beside bars that join what is not told apart."""
    rows, bars = range(len(found.names)), lanes(found.groups)
    figure = _figure(5.6, 0.23 * len(rows) + 0.8)
    wide = [24, max([1, *(lane + 1 for *_, lane in bars)])]
    axes, beside = figure.subplots(1, 2, width_ratios=wide, sharey=True)
    axes.hlines(rows, 0, found.ranks, color="0.85", linewidth=0.8, zorder=1)
    axes.scatter(found.ranks, rows, s=22, color="#0072b2", zorder=2)
    for row, rank in zip(rows, found.ranks, strict=True):
        axes.annotate(f"{rank:.1f}", (rank, row), (5, -2.5), textcoords="offset points", fontsize=7)
    axes.set_yticks(rows, list(map(title_of, found.names)), fontsize=8, parse_math=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlim(1, len(rows))
    said = "; bars join what is not told apart" * bool(bars)
    axes.set_xlabel(f"Average rank over {len(found.blocks)} columns{said}", fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    for first, last, lane in bars:
        beside.plot([lane, lane], [first - 0.2, last + 0.2], color="black", linewidth=2.2)
    beside.set_axis_off()
    return _save(figure, path, kinds)


def _panels(tables: Sequence[PaperTable]) -> dict[str, list[Record]]:
    """Return the records of each panel: of one data set, one model and one setting."""
    found: dict[str, list[Record]] = {}
    both = [(table.setting, record) for table in tables for record in table.records]
    for setting, record in sorted(both, key=lambda r: (r[0] > "", _position(_place(r[1].spec)))):
        spec = record.spec
        drawn = spec.approach in LOSSES and not spec.law.startswith("fixed:")
        if drawn and {"test", "train"} <= record.curves.keys():
            words = [plans.label_of(spec.dataset), spec.model, setting.replace("-", " ")]
            found.setdefault(", ".join(filter(None, words)), []).append(record)
    for panel in found.values():
        panel.sort(key=lambda record: list(LOSSES).index(record.spec.approach))
    return found


def _panel(axes: Any, title: str, records: Sequence[Record], curve: str) -> None:
    for record in records:
        name, colour = LOSSES[record.spec.approach]
        line = _line(name, record, curve, 100)
        axes.plot(line.x, line.mean, color=colour, label=name, linewidth=1.2)
        axes.fill_between(line.x, line.low, line.high, color=colour, alpha=0.2, linewidth=0)
    axes.set_title(textwrap.fill(title, 42), fontsize=9, parse_math=False)  # in its column
    axes.set_xlabel("Epoch", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)
