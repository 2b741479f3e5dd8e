"""What a cell opens to: ours beside the paper's, trials, configuration, curves."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from ruleout.report import charts
from ruleout.report.celltable import CellTable, TableCell, TableRow
from ruleout.report.formats import known, p_value, points, text, values
from ruleout.report.forms.words import one_line, signed, value
from ruleout.report.parts import Curves

__all__ = ["Opened", "against_paper", "opened"]

_SIZE = 420.0, 250.0  # of the learning curve, in pixels
_POINTS = 36  # most points of a curve: a page may hold hundreds of them
_PAPER = 7  # the colour of the paper's bar
_VERDICTS = {
    "": "",
    "agrees": "agrees with the paper",
    "better": "better than the paper",
    "worse": "worse than the paper",
}


@dataclass(frozen=True)
class Opened:
    """The contents of the dialog; what is empty is left out."""

    verdict: str
    marked: str
    numbers: list[tuple[str, str, str]]
    picture: Markup | None
    trials: list[str]
    chosen: list[tuple[str, str]]
    facts: list[tuple[str, str]]
    curve: Markup | None


def opened(table: CellTable, row: TableRow, place: int, key: str, colour: int) -> Opened:
    """Collect what the cell of `row` in column `place` opens to."""
    cell, beside = row.cells[place], table.beside_paper
    title = f"{one_line(row.label)} on {one_line(table.columns[place])}: accuracy by epoch"
    said = against_paper(cell) if beside else ""
    return Opened(
        f"{said[:1].upper()}{said[1:]}." if said else "",
        _marked(table, row, place),
        _numbers(cell, beside),
        _trials(cell, colour, beside),
        [points(trial) for trial in values(cell.trials)],
        [(name, text(fact)) for name, fact in cell.chosen.items()],
        [(name, text(fact)) for name, fact in cell.facts.items()],
        _curve(cell, title, key),
    )


def against_paper(cell: TableCell) -> str:
    """Say how a cell compares with the paper, in words.

    >>> against_paper(TableCell(0.93, 0.03, paper_mean=0.9, paper_std=0.04, verdict="agrees"))
    'agrees with the paper: +3.00 points, 0.6 combined standard deviations'
    """
    if not known(cell.paper_mean):
        return "the paper has no number"
    if cell.difference is None:
        return f"the paper: {value(cell.paper_mean, cell.paper_std)}"
    said = f"{signed(cell.difference)} points"
    if known(cell.distance):
        said += f", {abs(cell.distance):.1f} combined standard deviations"
    verdict = _VERDICTS[cell.verdict]
    return f"{verdict}: {said}" if verdict else f"{said} from the paper"


def _marked(table: CellTable, row: TableRow, place: int) -> str:
    """Say what the mark means, with the p-values; nothing of the row that others compare with."""
    cell, ours = row.cells[place], one_line(table.ours[place]) if table.ours else ""
    found = [f"p\N{NO-BREAK SPACE}{_equal(cell.p_value)}"] if known(cell.p_value) else []
    if known(cell.p_holm):
        found.append(f"after Holm's correction p\N{NO-BREAK SPACE}{_equal(cell.p_holm)}")
    if not (cell.mark or (found and ours != one_line(row.label))):
        return ""
    test = ", ".join([one_line(table.test_label), *found])
    said = f"{_significance(cell, ours or 'our best approach')} ({test})."
    return said[:1].upper() + said[1:]


def _significance(cell: TableCell, ours: str) -> str:
    if not cell.mark:
        return f"no significant difference to {ours}"
    word = "better" if cell.mark == "•" else "worse"
    fades = known(cell.p_holm) and not cell.holm
    return f"{ours} is significantly {word}{', though not after the correction' * fades}"


def _equal(p: float | None) -> str:
    shown = p_value(p)
    return shown if shown.startswith("<") else f"=\N{NO-BREAK SPACE}{shown}"


def _numbers(cell: TableCell, beside: bool) -> list[tuple[str, str, str]]:
    """Return name, number and spread of what stands side by side."""

    def within(std: float | None) -> str:
        return f"± {points(std)}" if known(std) else ""

    found = [("Ours", points(cell.mean), within(cell.std))]
    if beside:
        found.append(("Paper", points(cell.paper_mean), within(cell.paper_std)))
        far = f"{abs(cell.distance):.1f} sd" if known(cell.distance) else ""
        found.append(("Difference", signed(cell.difference), far))
    return found


def _trials(cell: TableCell, colour: int, beside: bool) -> Markup | None:
    """Draw ours with its trials above the paper's."""
    bars = []
    if known(cell.mean):
        bars.append(charts.Bar("Ours", cell.mean, cell.std, list(cell.trials), colour))
    if beside and known(cell.paper_mean):
        bars.append(charts.Bar("Paper", cell.paper_mean, cell.paper_std, (), _PAPER))
    return charts.beside(bars) if len(bars) > 1 or (bars and len(cell.trials)) else None


def _curve(cell: TableCell, title: str, key: str) -> Markup | None:
    if not cell.curves:
        return None
    chart = Curves(title, cell.curves, y_label="Accuracy", unit="percent")
    on = {line.name for line in cell.curves}
    return charts.curves(
        chart, key=key, kind="small", size=_SIZE, colours={}, on=on, points=_POINTS
    )
