"""Plain text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from unicodedata import category, east_asian_width

from ruleout.report.celltable import CellTable, TableCell, TableRow
from ruleout.report.formats import known, points
from ruleout.report.forms.words import (
    HOLM,
    arrow,
    families,
    legend,
    one_line,
    remarks,
    signed,
    value,
)

__all__ = ["text"]

_MOST = 28  # columns of a name
_WIDTH = 100  # columns of a paragraph


def text(table: CellTable) -> str:
    """Lay a table out in columns; the paper's number and the difference stand beneath ours.

    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.9258, 0.0009, best=True)])
    >>> print(text(CellTable("Linear", ["MNIST"], [row])))
    Linear
    <BLANKLINE>
                            MNIST
    upper-bound  LOG  92.58 ± 0.09 *
    <BLANKLINE>
    Accuracy in percent: mean ± standard deviation of the trials. *: the best of its column.
    <BLANKLINE>
    """
    lines = list(_lines(table))
    widths = [max(map(_columns, column)) for column in zip(*lines, strict=True)]
    rows = [_join(line, widths) for line in lines]
    said = " ".join(legend(table)).replace("Bold:", "*:")
    paragraphs = ["\n".join(wrap(each, _WIDTH)) for each in (said, *remarks(table))]
    title = one_line(table.title)
    blocks = [*([title] if title else []), "\n".join(rows), *paragraphs]
    return "\n\n".join(blocks) + "\n"


def _lines(table: CellTable) -> Iterator[list[str]]:
    yield ["", "", *(f"{_name(column)}    " for column in table.columns)]
    for group, rows in families(table):
        for place, row in enumerate(rows):
            yield from _row(table, row, "" if place else _name(group))


def _row(table: CellTable, row: TableRow, group: str) -> Iterator[list[str]]:
    yield [group, _name(row.label), *map(_ours, row.cells)]
    if table.beside_paper:
        yield ["", "", *map(_paper, row.cells)]


def _ours(cell: TableCell) -> str:
    signs = ("*" if cell.best else "") + cell.mark + (HOLM if cell.holm else "")
    return f"{value(cell.mean, cell.std)} {signs:<3}"


def _paper(cell: TableCell) -> str:
    if not known(cell.paper_mean):
        return ""
    apart = "" if cell.difference is None else f" {signed(cell.difference)}"
    return f"paper {points(cell.paper_mean)}{apart} {arrow(cell):<3}"


def _join(line: list[str], widths: list[int]) -> str:
    """Put names to the left of their columns, numbers to the right."""
    cells = []
    for place, (cell, width) in enumerate(zip(line, widths, strict=True)):
        room = " " * (width - _columns(cell))
        cells.append(cell + room if place < 2 else room + cell)
    return "  ".join(cells).rstrip()


def _name(name: str) -> str:
    line = one_line(name)
    while _columns(line) > _MOST:
        line = f"{line.rstrip('…')[:-1]}…"
    return line


def _columns(line: str) -> int:
    """Count the columns a text takes: wide letters two, those that join others none."""
    return sum(
        0 if category(sign) in ("Mn", "Me", "Cf") else 1 + (east_asian_width(sign) in "WF")
        for sign in line
    )
