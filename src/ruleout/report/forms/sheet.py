"""CSV: one row per cell, every digit."""

from __future__ import annotations

import csv as rows_of_commas
from collections.abc import Iterator
from io import StringIO

from ruleout.report.celltable import CellTable, TableCell
from ruleout.report.formats import known
from ruleout.report.forms.words import one_line

__all__ = ["csv"]

_HEADS = (
    *("group", "approach", "dataset", "mean", "std", "mark", "mark_holm", "p_value", "p_holm"),
    *("paper_mean", "paper_std", "difference", "verdict", "trials", "best", "note"),
)


def csv(table: CellTable) -> str:
    """Write a table as CSV: accuracies are shares, trials are separated by ``|``.

    Chosen settings follow, one column each. A text that a spreadsheet would take for a formula
    begins with an apostrophe.

    >>> from ruleout.report import TableRow
    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.5, trials=[0.25, 0.75])])
    >>> print(csv(CellTable("", ["MNIST"], [row])).splitlines()[1])
    upper-bound,LOG,MNIST,0.5,,,,,,,,,,0.25|0.75,no,
    """
    settings = list(dict.fromkeys(name for cell in table.cells for name in cell.chosen))
    out = StringIO()
    writer = rows_of_commas.writer(out, lineterminator="\n")
    writer.writerow([*_HEADS, *(_text(_column(name)) for name in settings)])
    for where, cell in _cells(table):
        chosen = [_any(cell.chosen.get(name)) for name in settings]
        writer.writerow([*map(_text, where), *_fields(cell), *chosen])
    return out.getvalue()


def _cells(table: CellTable) -> Iterator[tuple[tuple[str, str, str], TableCell]]:
    for row in table.rows:
        for column, cell in zip(table.columns, row.cells, strict=True):
            yield (row.group, row.label, column), cell


def _fields(cell: TableCell) -> list[str]:
    gap = cell.difference
    return [
        *map(_number, (cell.mean, cell.std)),
        *(cell.mark, cell.holm),
        *map(_number, (cell.p_value, cell.p_holm, cell.paper_mean, cell.paper_std)),
        *("" if gap is None else _number(round(gap, 12)), cell.verdict),  # 0.02, not 0.0200…03
        "|".join(map(_number, cell.trials)),
        *("yes" if cell.best else "no", _text(cell.note)),
    ]


def _column(name: object) -> str:
    """Name the column of a setting: ``learning rate`` becomes ``learning_rate``."""
    column = one_line(name).replace(" ", "_")
    return f"chosen_{column}" if column in _HEADS else column


def _number(value: object) -> str:
    return repr(float(value)) if known(value) else ""


def _any(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    return _number(value) or ("" if value is None else _text(value))


def _text(value: object) -> str:
    """Bring a text to one line that no spreadsheet computes.

    >>> _text("=1+1"), _text("LOG")
    ("'=1+1", 'LOG')
    """
    line = one_line(value)
    return f"'{line}" if line[:1] in tuple("=+-@") else line
