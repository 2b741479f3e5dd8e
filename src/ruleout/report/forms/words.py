"""What every form of a table says in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ruleout.report.celltable import CellTable, TableCell, TableRow
from ruleout.report.formats import MISSING, known, points
from ruleout.report.svg import clean

__all__ = [
    "ARROWS",
    "HOLM",
    "arrow",
    "families",
    "legend",
    "one_line",
    "remarks",
    "signed",
    "value",
]

HOLM = "ʰ"  # stands behind a mark that holds after the correction
ARROWS = {"": "", "agrees": "", "better": "↑", "worse": "↓"}
_TURNS = dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F])
_MOST = 3  # cells named in a remark


def one_line(name: object) -> str:
    r"""Bring any text to one line, without control characters and changes of direction.

    >>> one_line("two\nlines \u202e\x1b[31m")
    'two lines \ufffd[31m'
    """
    return " ".join(clean(name).translate(_TURNS).split())


def value(mean: object, std: object) -> str:
    """Show a mean with its standard deviation in percent.

    >>> value(0.9342, 0.0011), value(0.9342, None), value(None, 0.1)
    ('93.42 ± 0.11', '93.42', '–')
    """
    shown = points(mean)
    return shown if shown == MISSING or not known(std) else f"{shown} ± {points(std)}"


def signed(difference: float | None) -> str:
    """Show a difference of shares in percentage points, with its sign.

    >>> signed(0.0123), signed(-0.0123), signed(0.00001), signed(None)
    ('+1.23', '−1.23', '0.00', '–')
    """
    shown = points(difference)
    return f"+{shown}" if shown.strip("0.") and shown[0] not in f"−{MISSING}" else shown


def arrow(cell: TableCell) -> str:
    """Say with an arrow that a cell is better or worse than the paper."""
    return ARROWS[cell.verdict]


def families(table: CellTable) -> Iterator[tuple[str, list[TableRow]]]:
    """Yield each family with its rows, in the order given."""
    for group, rows in groupby(table.rows, key=lambda row: row.group):
        yield one_line(group), list(rows)


def legend(table: CellTable) -> list[str]:
    """Explain what the table shows, one sentence each.

    >>> cell = TableCell(0.9, 0.1, trials=[0.8, 1.0])
    >>> legend(CellTable("", ["MNIST"], [TableRow("", "LOG", [cell])]))
    ['Accuracy in percent: mean ± standard deviation of 2 trials.']
    """
    cells = table.cells
    lines = [f"Accuracy in percent: mean ± standard deviation of {_trials(table)}."]
    if any(cell.best for cell in cells):
        lines.append("Bold: the best of its column.")
    if any(cell.mark for cell in cells):
        lines.append(
            f"•/○: {_ours(table)} is significantly better/worse than this cell "
            f"({one_line(table.test_label)})."
        )
    if any(cell.holm for cell in cells):
        lines.append(f"{HOLM}: so too after Holm's correction.")
    if table.beside_paper:
        lines.append("Beneath each: the paper's number and ours less the paper's.")
        if any(map(arrow, cells)):
            lines.append(f"↑/↓: better/worse than the paper {one_line(table.verdict_label)}.")
    return lines


def _trials(table: CellTable) -> str:
    found = {len(cell.trials) for cell in table.cells if len(cell.trials)}
    if len(found) != 1:
        return "the trials"
    (size,) = found
    return f"{size} trials" if size > 1 else "one trial"


def _ours(table: CellTable) -> str:
    """Name the row that marks compare with; where columns differ, the rarer ones by column.

    >>> _ours(CellTable("", ["a", "b", "c"], [], ours=["LOG", "EXP", "LOG"]))
    'ours (LOG, EXP on b)'
    """
    names = [one_line(name) for name in table.ours]
    if not any(names):
        return "our best approach"
    if len(set(names)) == 1:
        return names[0]
    often = max(filter(None, names), key=names.count)
    pairs = zip(names, map(one_line, table.columns), strict=True)
    rest = [f"{name} on {column}" for name, column in pairs if name not in ("", often)]
    return f"ours ({', '.join([often, *rest])})"


def remarks(table: CellTable) -> list[str]:
    """Collect the notes of cells, each once with the cells it belongs to, then the table's own.

    >>> row = TableRow("bounded", "GCE", [TableCell(None, note="not run")] * 5)
    >>> remarks(CellTable("", list("abcde"), [row]))
    ['GCE (bounded) on a, GCE (bounded) on b, GCE (bounded) on c, and 2 more: not run.']
    """
    found: dict[str, list[str]] = {}
    for row in table.rows:
        family = f" ({one_line(row.group)})" if row.group else ""
        for column, cell in zip(table.columns, row.cells, strict=True):
            if cell.note:
                place = f"{one_line(row.label)}{family} on {one_line(column)}"
                found.setdefault(one_line(cell.note), []).append(place)
    lines = []
    for note, places in found.items():
        more = [f"and {len(places) - _MOST} more"] if len(places) > _MOST else []
        lines.append(f"{', '.join(places[:_MOST] + more)}: {note.rstrip('.')}.")
    return [*lines, one_line(table.note)] if table.note else lines
