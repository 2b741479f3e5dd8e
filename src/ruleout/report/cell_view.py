"""A cell table as rows of cells, with the details that each opens to, ready for the templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ruleout.report.charts import Bar, dot_chart
from ruleout.report.curves import curves
from ruleout.report.formats import known, p_value, points, text, values
from ruleout.report.parts import CellTable, Curves, TableCell, TableRow
from ruleout.report.table import legend, one_line, signed, value

_TRIANGLES = {"": "", "agrees": "", "better": "▲", "worse": "▼"}
_STEPS = (1.0, 2.0, 4.0)  # combined standard deviations at which the shade changes
_PAPER = 7  # the colour of the paper's bar
_VERDICTS = {
    "": "",
    "agrees": "agrees with the paper",
    "better": "better than the paper",
    "worse": "worse than the paper",
}


def cell_view(table: CellTable, key: str, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table; `key` makes ids unique on the page.

    >>> cell = TableCell(0.9, 0.01, paper_mean=0.8, paper_std=0.01, verdict="better")
    >>> view = cell_view(CellTable("", ["MNIST"], [TableRow("", "LOG", [cell])]), "p1", {})
    >>> view["rows"][0]["cells"][0]["kind"], view["total"]
    ('cell up3', '1 cell: 1 better than the paper.')
    """
    rows, before = [], None
    for place, row in enumerate(table.rows):
        colour = colours.get(row.group, 0)
        cells = [
            _cell(table, row, column, f"{key}-{place}-{column}", colour)
            for column in range(len(table.columns))
        ]
        opens = row.group != before  # here a family begins
        rows.append({"row": row, "colour": colour, "opens": opens, "cells": cells})
        before = row.group
    told = legend(table)
    places = range(len(table.columns))
    return {
        "rows": rows,
        "foot": [_count([row.cells[place] for row in table.rows]) for place in places],
        "total": _total(table.cells),
        "beside": table.beside_paper,
        "holm": any(cell.holm for cell in table.cells),
        "legend": [told[name] for name in ("numbers", "best", "marks") if name in told],
    }


def _shade(cell: TableCell) -> str:
    """Name the shade of a cell: how far it lies above or below the paper.

    Three steps either way, at one, two and four combined standard deviations. Without those, the
    verdict decides.

    >>> _shade(TableCell(0.93, 0.01, paper_mean=0.9, paper_std=0.01))
    'up2'
    >>> _shade(TableCell(0.9, paper_mean=0.93, verdict="worse")), _shade(TableCell(0.9))
    ('down2', '')
    """
    far = cell.distance
    if far is None:
        return {"better": "up2", "worse": "down2"}.get(cell.verdict, "")
    step = sum(abs(far) > edge for edge in _STEPS)
    return f"{'up' if far > 0 else 'down'}{step}" if step else ""


def _cell(table: CellTable, row: TableRow, place: int, key: str, colour: int) -> dict[str, Any]:
    """Collect what a cell shows, what it is sorted by, and what it opens to."""
    cell = row.cells[place]
    names = [one_line(row.label), one_line(table.columns[place])]
    kinds = ["cell", "best" * cell.best, _shade(cell) if table.beside_paper else ""]
    said = [f"{', '.join(names)}: {value(cell.mean, cell.std)}", cell.note]
    said += [_against_paper(cell)] if table.beside_paper else []
    shares = {"ours": cell.mean, "paper": cell.paper_mean, "gap": cell.difference}
    return {
        "cell": cell,
        "key": key,
        "kind": " ".join(filter(None, kinds)),
        "shown": _shown(cell),
        "sort": {name: f"{share:.6g}" if known(share) else "" for name, share in shares.items()},
        "said": "; ".join(filter(None, said)),
        "details": _details(table, row, place, key, colour),
    }


def _shown(cell: TableCell) -> dict[str, str]:
    """Return the texts of a cell by the class that places them."""
    ours, paper = known(cell.mean), known(cell.paper_mean)
    return {
        "m": points(cell.mean),
        "s": _spread(cell.std) if ours else "",
        "n": "" if ours else cell.note,
        "k": cell.mark,
        "p": points(cell.paper_mean) if paper else "",
        "e": _spread(cell.paper_std) if paper else "",
        "g": "" if cell.difference is None else signed(cell.difference),
        "z": _far(cell),
        "v": _TRIANGLES[cell.verdict],
    }


def _spread(std: float | None) -> str:
    return f"± {points(std)}" if known(std) else ""


def _far(cell: TableCell) -> str:
    return f"{abs(cell.distance):.1f} sd" if known(cell.distance) else ""


def _count(cells: Sequence[TableCell]) -> dict[str, int]:
    """Count verdicts, and under ``"none"`` the cells without one."""
    names = ("agrees", "better", "worse", "")
    return {name or "none": sum(cell.verdict == name for cell in cells) for name in names}


def _total(cells: Sequence[TableCell]) -> str:
    """Say in one line how many cells agree with the paper."""
    found = _count(cells)
    words = {
        "agrees": "agree with the paper" if found["agrees"] != 1 else "agrees with the paper",
        "better": "better" if found["agrees"] else "better than the paper",
        "worse": "worse" if found["agrees"] or found["better"] else "worse than the paper",
        "none": "without a verdict",
    }
    parts = [f"{found[name]} {words[name]}" for name in words if found[name]]
    return f"{len(cells)} cell{'s' * (len(cells) != 1)}: {', '.join(parts)}."


# ---------------------------------------------------------------------- details


def _details(table: CellTable, row: TableRow, place: int, key: str, colour: int) -> dict[str, Any]:
    """Collect what the dialog of a cell holds; what is empty is left out there."""
    cell, beside = row.cells[place], table.beside_paper
    title = f"{one_line(row.label)} on {one_line(table.columns[place])}: accuracy by epoch"
    said = _against_paper(cell) if beside else ""
    return {
        "verdict": f"{said[:1].upper()}{said[1:]}." if said else "",
        "marked": _marked(table, row, place),
        "numbers": _numbers(cell, beside),
        "picture": _trials(cell, colour, beside),
        "trials": [points(trial) for trial in values(cell.trials)],
        "chosen": [(name, text(fact)) for name, fact in cell.chosen.items()],
        "facts": [(name, text(fact)) for name, fact in cell.facts.items()],
        "curve": _curve(cell, title, key),
    }


def _against_paper(cell: TableCell) -> str:
    """Say how a cell compares with the paper, in words.

    >>> _against_paper(TableCell(0.93, 0.03, paper_mean=0.9, paper_std=0.04, verdict="agrees"))
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
    """Return name, number and spread of what is shown side by side."""
    found = [("Ours", points(cell.mean), _spread(cell.std))]
    if beside:
        found.append(("Paper", points(cell.paper_mean), _spread(cell.paper_std)))
        found.append(("Difference", signed(cell.difference), _far(cell)))
    return found


def _trials(cell: TableCell, colour: int, beside: bool) -> Markup | None:
    """Draw ours with its trials above the paper's."""
    bars = []
    if known(cell.mean):
        bars.append(Bar("Ours", cell.mean, cell.std, list(cell.trials), colour))
    if beside and known(cell.paper_mean):
        bars.append(Bar("Paper", cell.paper_mean, cell.paper_std, (), _PAPER))
    return dot_chart(bars) if len(bars) > 1 or (bars and len(cell.trials)) else None


def _curve(cell: TableCell, title: str, key: str) -> Markup | None:
    if not cell.curves:
        return None
    chart = Curves(title, cell.curves, y_label="Accuracy", unit="percent")
    on = {line.name for line in cell.curves}
    return curves(chart, key=f"{key}-c", height=250, colours={}, on=on, still=True)
