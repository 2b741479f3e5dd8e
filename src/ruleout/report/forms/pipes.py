"""Markdown: a table of pipes, as GitHub and MyST read it."""

from __future__ import annotations

import re

from ruleout.report.celltable import CellTable, TableCell
from ruleout.report.formats import known
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

__all__ = ["escape", "markdown"]


def escape(name: object) -> str:
    r"""Write any text so that Markdown shows it as it is.

    >>> print(escape("a|b *c* <d> https://e"))
    a\|b \*c\* \<d\> https\://e
    """
    line = re.sub(r"([\\`*_{}\[\]<>#|~!&$])", r"\\\1", one_line(name))
    return line.replace("://", r"\://").replace("www.", r"www\.")  # else GitHub makes links


def markdown(table: CellTable) -> str:
    """Write a table as Markdown; the paper's number and the difference stand beneath ours.

    >>> from ruleout.report import TableRow
    >>> row = TableRow("upper-bound", "LOG", [TableCell(0.9258, 0.0009, best=True)])
    >>> print(markdown(CellTable("Linear", ["MNIST"], [row])))
    **Linear**
    <BLANKLINE>
    | family | approach | MNIST |
    | :--- | :--- | ---: |
    | upper-bound | LOG | **92.58 ± 0.09** |
    <BLANKLINE>
    Accuracy in percent: mean ± standard deviation of the trials. Bold: the best of its column.
    <BLANKLINE>
    """
    rows = [_line(["family", "approach", *map(escape, table.columns)])]
    rows.append(_line([":---", ":---", *["---:"] * len(table.columns)]))
    for group, members in families(table):
        for place, row in enumerate(members):
            cells = [_cell(table, cell) for cell in row.cells]
            rows.append(_line(["" if place else escape(group), escape(row.label), *cells]))
    title = escape(table.title)
    blocks = [f"**{title}**"] if title else []
    blocks += ["\n".join(rows), " ".join(map(escape, legend(table)))]
    blocks += map(escape, remarks(table))
    return "\n\n".join(blocks) + "\n"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(table: CellTable, cell: TableCell) -> str:
    shown = value(cell.mean, cell.std)
    shown = f"**{shown}**" if cell.best else shown
    if cell.mark:
        shown += f" {cell.mark}{HOLM if cell.holm else ''}"
    if not table.beside_paper or not known(cell.paper_mean):
        return shown
    paper = value(cell.paper_mean, cell.paper_std)
    apart = "" if cell.difference is None else f" ({signed(cell.difference)}{arrow(cell)})"
    return f"{shown}<br>{paper}{apart}"
