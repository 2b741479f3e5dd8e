"""Writing what ledgers hold: pages, tables, figures and data files."""

from __future__ import annotations

import csv
import io
import math
from collections import Counter
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from ruleout import report
from ruleout.experiments.ledger import Holdings, Record, write_parquet
from ruleout.experiments.plans import Printed, label_of, printed, printed_for
from ruleout.experiments.results import (
    PaperTable,
    count,
    difference,
    findings,
    paper_tables,
    trends,
    verdict,
)
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError
from ruleout.report import Listing, Note, Part, Report, Section
from ruleout.report.formats import duration, p_value
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
      further settings ``accuracy-SETTING.csv``;
    - ``ledger/*.parquet``: every trial and every configuration;
    - ``figure-1.png``, ``.pdf`` and ``figure-2``: accuracy by epoch of the unbiased losses.
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
            made.append(_put(place / f"{table.cells.name}.{end}", form(table.cells)))
    if "csv" in formats:
        settings = list(dict.fromkeys(table.setting for table in tables))
        for setting in settings:
            records = [r for table in tables if table.setting == setting for r in table.records]
            end = f"-{setting}" if setting != settings[0] else ""
            made.append(_put(place / f"accuracy{end}.csv", accuracies(records)))
    if "parquet" in formats:
        made += write_parquet(held.records, place / "ledger")
    kinds = [kind for kind in ("png", "pdf") if kind in formats]
    if kinds:
        made += draw(held.records, place, kinds)
    return made


def _put(file: Path, content: str) -> Path:
    with atomic_write(file) as out:
        out.write(content.encode())
    return file


def accuracies(records: Sequence[Record]) -> str:
    """Return cells as CSV, spelt as in the paper's own file; means in percent.

    >>> accuracies([]).startswith("table,dataset,model,sizes,group,approach,mean,std,trials")
    True
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    place = {one: number for number, one in enumerate(printed())}
    beside = [(found, r) for r in records if (found := printed_for(r.spec)) is not None]
    writer.writerows(_row(*both) for both in sorted(beside, key=lambda both: place[both[0]]))
    return out.getvalue()


def _row(found: Printed, record: Record) -> dict[str, Any]:
    spec = record.spec
    row = {name: getattr(found, name) for name in COLUMNS[:6]}
    gap = difference(record)
    settings = [record.configurations[int(c)] for c in record.chosen]
    return row | {
        "mean": _points(100 * record.mean),
        "std": _points(100 * record.std),
        "trials": spec.trials,
        **{n: _same([one[n] for one in settings]) for n in ("learning_rate", "weight_decay")},
        "protocol": spec.protocol,
        "chosen_by": spec.criterion + (" per trial" if spec.per_trial else ""),
        "paper_mean": f"{found.mean:.2f}",
        "paper_std": f"{found.std:.2f}",
        "difference": _points(math.nan if gap is None else gap),
        "verdict": verdict(record),
    }


def _points(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else ""


def _same(values: list[float]) -> str:
    return "|".join(f"{value:g}" for value in dict.fromkeys(values))


def page(held: Holdings, title: str = "Learning with multiple complementary labels") -> Report:
    """Return the report of all that ledgers hold."""
    tables = paper_tables(held)
    compared = [r for table in tables if table.cells.compared for r in table.records]
    return Report(
        title,
        summary=[*_summary(compared), *_missing(held)],
        facts=_facts(held.records),
        sections=[_section(table) for table in tables],
    )


def _summary(records: Sequence[Record]) -> list[str]:
    told = count(records)
    if not told["run"]:
        return ["No cell of the paper's tables has been run."]
    beside = told["agrees"] + told["better"] + told["worse"]
    return [
        f"{beside} cells stand beside the paper's: {tally(told)}. Two means agree when they differ "
        "by at most two combined standard deviations."
    ]


def tally(told: dict[str, int]) -> str:
    """Say counts in words.

    >>> tally({"run": 4, "agrees": 2, "better": 1, "worse": 1})
    '2 agree, 1 is better, 1 is worse'
    """
    verbs = {"agrees": ("agrees", "agree"), "better": ("is better", "are better"),
             "worse": ("is worse", "are worse")}  # fmt: skip
    return ", ".join(
        f"{told[n]} {one if told[n] == 1 else more}" for n, (one, more) in verbs.items()
    )


def _missing(held: Holdings) -> list[str]:
    """Say what is not there; nothing is left out in silence."""
    left = len(held.specs) - len(held.records) - len(held.failures)
    told = [f"{left} cells have not been run yet."] if left else []
    if held.failures:
        told.append(f"{len(held.failures)} cells failed; they are listed with their errors.")
    return told


def _facts(records: Sequence[Record]) -> dict[str, object]:
    if not records:
        return {"ruleout": __version__}
    devices = Counter(f"{r.about.get('device_name')} ({r.spec.precision})" for r in records)
    versions = Counter(f"torch {r.about['versions']['torch']}" for r in records)
    seconds = sum(r.seconds for r in records)
    return {
        "Cells": len(records),
        "Models trained": f"{sum(int(r.about.get('models', 0)) for r in records):,}",
        "Time, summed over tasks": duration(seconds),
        "Devices": ", ".join(devices),
        "Versions": ", ".join([f"ruleout {__version__}", *versions]),
    }


def _section(table: PaperTable) -> Section:
    parts: list[Part] = [table.cells]
    if table.failed:
        parts.append(Listing("Failed", table.failed))
    told = count(table.records)
    if table.cells.compared and told["run"]:
        parts.insert(0, Note(f"Beside the paper: {tally(told)}."))
        said = [(one.claim, f"{one.holds}: {one.counts}") for one in findings(table.records)]
        parts.append(Listing("What the paper says of this table, asked of ours", said))
    sizes, found = trends(table.records)
    if found:
        rises = [
            (one.label, f"{one.means[0]:.1f} → {one.means[-1]:.1f} %, p: {p_value(one.p_holm)}")
            for one in found
        ]
        title = f"Accuracy from s = {sizes[0]} to {sizes[-1]}: does it rise? (Page's test, Holm)"
        parts.append(Listing(title, rises))
    return Section(table.cells.title, parts, text=_setting(table))


def _setting(table: PaperTable) -> str:
    if not table.records:
        return ""
    spec = table.records[0].spec
    grid = len(table.records[0].configurations)
    return (
        f"{spec.trials} trials, {spec.epochs} epochs, {grid} configurations, protocol "
        f"“{spec.protocol}”, {spec.features} features, {spec.precision}. Accuracies are means of "
        f"the last {spec.average} epochs; configurations were chosen by {spec.criterion} on "
        f"{100 * spec.share:g} % of the training rows, without true labels."
    )


#: The losses of the figures, in the order of the paper, with colours for everybody's eyes.
LOSSES = {
    "mae": ("MAE", "#0072b2"),
    "mse": ("MSE", "#009e73"),
    "gce": ("GCE", "#56b4e9"),
    "phuber": ("PHuber-CE", "#cc79a7"),
    "cce": ("CCE", "#d55e00"),
}

_FIGURES = {"figure-1": ("test", "Test accuracy (%)"),
            "figure-2": ("train", "Training accuracy with true labels (%)")}  # fmt: skip


def draw(records: Sequence[Record], folder: str | Path, kinds: Sequence[str]) -> list[Path]:
    """Draw figures 1 and 2 with a panel for each data set, model and setting; return the files."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "figures need matplotlib", "pip install 'ruleout[plot]', or leave out png and pdf"
        ) from None
    panels = _panels(records)
    if not panels:
        return []
    made = []
    for name, (curve, label) in _FIGURES.items():
        wide = min(4, len(panels))
        high = -(-len(panels) // wide)
        figure = Figure(figsize=(3.1 * wide, 2.6 * high + 0.5), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False).flat
        for place, (title, found) in zip(axes, panels.items(), strict=False):
            _panel(place, title, found, curve)
        for place in list(axes)[len(panels) :]:
            place.set_visible(False)
        handles, names = next(iter(figure.axes)).get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
        figure.supylabel(label, fontsize=9)
        made += _save(figure, Path(folder) / name, kinds)
    return made


def _panels(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        spec = record.spec
        drawn = spec.approach in LOSSES and not spec.law.startswith("fixed:")
        if drawn and {"test", "train"} <= record.curves.keys():
            own = "" if spec.features == "raw" else ", standardised"
            panel = found.setdefault(f"{label_of(spec.dataset)}, {spec.model}{own}", [])
            if spec.approach not in {one.spec.approach for one in panel}:  # of the first setting
                panel.append(record)
    return found


def _panel(axes: Any, title: str, records: Sequence[Record], curve: str) -> None:
    order = list(LOSSES)
    for record in sorted(records, key=lambda r: order.index(r.spec.approach)):
        name, colour = LOSSES[record.spec.approach]
        points = 100 * record.curves[curve].astype(float)
        mean, std = points.mean(0), points.std(0, ddof=min(1, len(points) - 1))
        axes.plot(record.epochs, mean, color=colour, label=name, linewidth=1.2)
        axes.fill_between(
            record.epochs, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0
        )
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("Epoch", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)


def _save(figure: Any, file: Path, kinds: Sequence[str]) -> list[Path]:
    made = []
    for kind in kinds:
        made.append(file.with_name(f"{file.name}.{kind}"))
        told = {"Software": None} if kind == "png" else {"CreationDate": None, "Producer": None}
        with atomic_write(made[-1]) as out:
            figure.savefig(out, format=kind, dpi=160, metadata=told)
    return made
