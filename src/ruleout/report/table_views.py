"""Score tables and cell tables as rows of cells with what they open to, for the templates."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from ruleout.report.charts import Bar, dots
from ruleout.report.curves import curve_view
from ruleout.report.number_format import (
    MISSING,
    duration,
    known,
    number,
    numbers,
    p_value,
    points,
    text,
    values,
)
from ruleout.report.parts import CellTable, Curves, Score, ScoreTable, TableCell, TableRow
from ruleout.report.svg import fill
from ruleout.report.table_writers import Cell, Table, legend, one_line, signed, value

_MARKS = {"": "", "•": "ours is significantly better", "○": "ours is significantly worse"}
_FIELDS = (
    *("name", "label", "family", "form", "score", "spread", "mark", "p_value"),
    *("estimate", "estimate_error", "seconds", "reference"),
)
_PAPER = 7  # the colour of the paper's bar
_VERDICTS = {"agrees": "agrees with", "better": "better than", "worse": "worse than"}


class _Shown(NamedTuple):
    """What a cell shows, and what it is sorted by; an empty `value` comes last."""

    shown: str
    value: str = ""
    kind: str = ""


class _Column(NamedTuple):
    """A head: ``sort`` is ``"number"`` or ``"text"``."""

    label: str
    sort: str
    under: str = ""
    kind: str = ""


_Filled: TypeAlias = tuple[_Column, list[_Shown]]
_Show: TypeAlias = Callable[[object], str]


def score_view(table: ScoreTable, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table: only columns that some row fills, the best score marked."""
    rows = _ordered(table)
    show: _Show = points if table.unit == "percent" else number
    columns = _columns(table, rows, show)
    bars = [Bar("", row.score, row.spread, row.trials, colours.get(row.family, 0)) for row in rows]
    scores = [row.score for row in rows if known(row.score) and not row.reference]
    pick = max if table.higher_is_better else min
    best = show(pick(scores)) if scores else None  # as shown: what looks equal is equally bold
    laid = [
        {
            "score": row,
            "best": not row.reference and show(row.score) == best,
            "bar": bars[place],
            "cells": [cells[place] for _, cells in columns],
            "mark": _MARKS[row.mark],
            "trials": [show(value) for value in values(row.trials)],
        }
        for place, row in enumerate(rows)
    ]
    heads, drawn = [column for column, _ in columns], dots(bars, 8, 162, 4, table.unit)
    return {"columns": heads, "rows": laid, "legend": _score_legend(table), **drawn}


def score_latex(part: ScoreTable) -> str:
    """Write what the page shows of a table as LaTeX."""
    view = score_view(part, {})
    rows = []
    for row in view["rows"]:
        cells = [cell.shown for cell in row["cells"]]
        cells[0] = Cell(cells[0], row["best"], row["score"].mark)  # the score comes first
        rows.append([row["score"].name, *cells])
    heads = ["Approach", *(column.label for column in view["columns"])]
    return Table(heads, rows, part.title, " ".join(view["legend"])).latex()


def score_csv(part: ScoreTable) -> str:
    """Write a table as CSV: every digit, one column for each chosen setting."""
    settings = _settings(part.rows)
    rows = [
        [*(getattr(row, name) for name in _FIELDS), *map(row.chosen.get, settings)]
        for row in _ordered(part)
    ]
    return Table([*_FIELDS, *settings], rows).csv()


def _ordered(table: ScoreTable) -> list[Score]:
    if table.order == "given":
        return list(table.rows)
    sign = -1 if table.higher_is_better else 1
    return sorted(table.rows, key=lambda row: sign * row.score if known(row.score) else math.inf)


def _settings(rows: Sequence[Score]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.chosen))


def _columns(table: ScoreTable, rows: Sequence[Score], show: _Show) -> list[_Filled]:
    sign = "\N{NO-BREAK SPACE}(%)" if table.unit == "percent" else ""
    under = f"mean ± {table.spread_label}" if any(known(row.spread) for row in rows) else ""
    head = _Column(f"{table.score_label}{sign}", "number", under, "score")
    cells = [_Shown(value(row.score, row.spread, show), _key(row.score), "score") for row in rows]
    columns: list[_Filled] = [(head, cells)]
    if any(row.family for row in rows):
        cells = [_Shown(row.family or MISSING, row.family, "family") for row in rows]
        columns.append((_Column("Family", "text"), cells))
    if any(row.form for row in rows):
        cells = [_Shown(row.form or MISSING, row.form) for row in rows]
        columns.append((_Column("Batches", "text"), cells))
    if any(known(row.p_value) for row in rows):
        cells = [_Shown(p_value(row.p_value), _key(row.p_value)) for row in rows]
        columns.append((_Column("p\N{NON-BREAKING HYPHEN}value", "number"), cells))
    if any(known(row.estimate) for row in rows):
        shown = [value(row.estimate, row.estimate_error, show) for row in rows]
        cells = [_Shown(each, _key(row.estimate)) for each, row in zip(shown, rows, strict=True)]
        under = "± standard error" if any(known(row.estimate_error) for row in rows) else ""
        columns.append((_Column(f"{table.estimate_label}{sign}", "number", under), cells))
    columns += [_setting(name, rows) for name in _settings(rows)]
    if any(known(row.seconds) for row in rows):
        cells = [_Shown(duration(row.seconds), _key(row.seconds)) for row in rows]
        columns.append((_Column("Time", "number"), cells))
    return columns


def _setting(name: str, rows: Sequence[Score]) -> _Filled:
    """Make one column of the chosen configurations."""
    found = [row.chosen.get(name) for row in rows]
    present = [value for value in found if value is not None]
    shown = iter(numbers(present))
    numeric = all(known(value) for value in present)
    cells = [
        _Shown(MISSING)
        if value is None
        else _Shown(next(shown), _key(value) if numeric else text(value))
        for value in found
    ]
    return _Column(name[:1].upper() + name[1:], "number" if numeric else "text"), cells


def _key(value: object) -> str:
    return repr(float(value)) if known(value) else ""


def _score_legend(table: ScoreTable) -> list[str]:
    rows, ours = table.rows, f" ({table.ours})" if table.ours else ""
    lines = ["Bold: the best."] if sum(known(row.score) for row in rows) > 1 else []
    if any(row.reference for row in rows):
        lines.append("Italic: for comparison only.")
    if any(row.mark for row in rows):
        lines.append(
            f"• our best approach{ours} is significantly better than this row, ○ significantly "
            f"worse ({table.test_label}). No mark: no significant difference."
        )
    if any(len(row.trials) for row in rows):
        lines.append("Faint ticks: single trials. Open a row to read them.")
    return lines


def cell_view(table: CellTable, key: str, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table; `key` makes ids unique on the page."""
    rows = []
    for place, row in enumerate(table.rows):
        colour = colours.get(row.group, 0)
        cells = [
            _cell(table, row, column, f"{key}-{place}-{column}", colour)
            for column in range(len(table.columns))
        ]
        opens = not place or row.group != table.rows[place - 1].group  # here a family begins
        rows.append({"row": row, "colour": colour, "opens": opens, "cells": cells})
    told = legend(table)
    return {
        "rows": rows,
        "foot": [_count(column) for column in zip(*(row.cells for row in table.rows), strict=True)],
        "total": _total(table.cells),
        "beside": table.beside_paper,
        "holm": any(cell.holm for cell in table.cells),
        "legend": [told[name] for name in ("numbers", "best", "marks") if name in told],
    }


def _cell(table: CellTable, row: TableRow, place: int, key: str, colour: int) -> dict[str, Any]:
    """Collect what a cell shows, what it is sorted by, and what it opens to."""
    cell, beside = row.cells[place], table.beside_paper
    names = f"{one_line(row.label)}, {one_line(table.columns[place])}"
    kinds = ["cell", "best" * cell.best, _shade(cell) if beside else ""]
    against = _against_paper(cell) if beside else ""
    said = [f"{names}: {value(cell.mean, cell.std)}", cell.note, against]
    shares = {"ours": cell.mean, "paper": cell.paper_mean, "gap": cell.difference}
    return {
        "cell": cell,
        "key": key,
        "kind": " ".join(filter(None, kinds)),
        "shown": _shown(cell),
        "sort": {name: f"{share:.6g}" if known(share) else "" for name, share in shares.items()},
        "said": "; ".join(filter(None, said)),
        "details": {  # what is empty is left out there
            "verdict": _sentence(against),
            "marked": _sentence(_marked(table, row, place)),
            **_details(cell, beside, colour),
            "curve": _curve(table, row, place, key),
        },
    }


def _shade(cell: TableCell) -> str:
    """Name the shade of a cell: how far it lies above or below the paper.

    Three steps either way, at one, two and four combined standard deviations. Without those, the
    verdict decides.
    """
    far = cell.distance
    if far is None:
        return {"better": "up2", "worse": "down2"}.get(cell.verdict, "")
    step = sum(abs(far) > edge for edge in (1, 2, 4))
    return f"{'up' if far > 0 else 'down'}{step}" if step else ""


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
        "v": {"better": "▲", "worse": "▼"}.get(cell.verdict, ""),
    }


def _spread(std: float | None) -> str:
    return f"± {points(std)}" if known(std) else ""


def _far(cell: TableCell) -> str:
    return f"{abs(cell.distance):.1f} sd" if known(cell.distance) else ""


def _sentence(said: str) -> str:
    return f"{said[:1].upper()}{said[1:]}." if said else ""


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


def _against_paper(cell: TableCell) -> str:
    """Say how a cell compares with the paper, in words."""
    if not known(cell.paper_mean):
        return "the paper has no number"
    if cell.difference is None:
        return f"the paper: {value(cell.paper_mean, cell.paper_std)}"
    said = f"{signed(cell.difference)} points"
    if known(cell.distance):
        said += f", {abs(cell.distance):.1f} combined standard deviations"
    verdict = _VERDICTS.get(cell.verdict)
    return f"{verdict} the paper: {said}" if verdict else f"{said} from the paper"


def _marked(table: CellTable, row: TableRow, place: int) -> str:
    """Say what the mark means, with the p-values; nothing of the row that others compare with."""
    cell, ours = row.cells[place], one_line(table.ours[place]) if table.ours else ""
    found = [one_line(table.test_label)]
    for before, p in (("", cell.p_value), ("after Holm's correction ", cell.p_holm)):
        if known(p):
            equal = "" if p_value(p).startswith("<") else "=\N{NO-BREAK SPACE}"
            found.append(f"{before}p\N{NO-BREAK SPACE}{equal}{p_value(p)}")
    if not (cell.mark or (len(found) > 1 and ours != one_line(row.label))):
        return ""
    ours = ours or "our best approach"
    said = f"no significant difference to {ours}"
    if cell.mark:
        said = f"{ours} is significantly {'better' if cell.mark == '•' else 'worse'}"
        said += ", though not after the correction" * (known(cell.p_holm) and not cell.holm)
    return f"{said} ({', '.join(found)})"


def _details(cell: TableCell, beside: bool, colour: int) -> dict[str, Any]:
    """Return the numbers side by side, ours with its trials drawn above the paper's, and facts."""
    numbers, bars = [("Ours", points(cell.mean), _spread(cell.std))], []
    if known(cell.mean):
        bars.append(Bar("Ours", cell.mean, cell.std, cell.trials, colour))
    if beside:
        numbers.append(("Paper", points(cell.paper_mean), _spread(cell.paper_std)))
        numbers.append(("Difference", signed(cell.difference), _far(cell)))
        if known(cell.paper_mean):
            bars.append(Bar("Paper", cell.paper_mean, cell.paper_std, (), _PAPER))
    return {
        "numbers": numbers,
        "bars": bars if len(bars) > 1 or (bars and len(cell.trials)) else [],
        **dots(bars, 46, 346, 6, "percent"),
        "trials": [points(trial) for trial in values(cell.trials)],
        "chosen": [(name, text(fact)) for name, fact in cell.chosen.items()],
        "facts": [(name, text(fact)) for name, fact in cell.facts.items()],
    }


def _curve(table: CellTable, row: TableRow, place: int, key: str) -> Markup | None:
    lines = row.cells[place].curves
    if not lines:
        return None
    title = f"{one_line(row.label)} on {one_line(table.columns[place])}: accuracy by epoch"
    chart = Curves(title, lines, y_label="Accuracy", unit="percent")
    view = curve_view(chart, 250, {}, {line.name for line in lines})
    return fill("curves.svg", part=chart, key=f"{key}-c", still=True, **view)
