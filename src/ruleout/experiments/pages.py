"""The report: one page with every table, what it says about the paper, and how it was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ruleout.experiments.findings import findings
from ruleout.experiments.holdings import Holdings
from ruleout.experiments.records import Record
from ruleout.experiments.tabling import PaperTable, paper_tables
from ruleout.experiments.verdicts import count
from ruleout.report import Listing, Note, Part, Report, Section
from ruleout.report.formats import duration
from ruleout.version import __version__

__all__ = ["page", "tally"]


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
    failed = [
        (f"{row.label} on {column}", cell.note)
        for row in table.cells.rows
        for column, cell in zip(table.cells.columns, row.cells, strict=True)
        if cell.note.startswith("failed")
    ]
    if failed:
        parts.append(Listing("Failed", failed))
    told = count(table.records)
    if table.cells.compared and told["run"]:
        parts.insert(0, Note(f"Beside the paper: {tally(told)}."))
        said = [(one.claim, f"{one.holds}: {one.counts}") for one in findings(table.records)]
        parts.append(Listing("What the paper says of this table, asked of ours", said))
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
