"""A cell table as rows of cells, ready for the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ruleout.report.celltable import CellTable, TableCell, TableRow
from ruleout.report.formats import known, points
from ruleout.report.forms.words import legend, one_line, signed, value
from ruleout.report.opened import Opened, against_paper, opened

__all__ = ["CellView", "RowView", "TableView", "cell_view", "shade"]

TRIANGLES = {"": "", "agrees": "", "better": "▲", "worse": "▼"}
STEPS = (1.0, 2.0, 4.0)  # combined standard deviations at which the shade changes


@dataclass(frozen=True)
class CellView:
    """What a cell shows, what it is sorted by, and what it opens to."""

    cell: TableCell
    key: str
    kind: str
    shown: Mapping[str, str]
    keys: Mapping[str, str]
    said: str
    opened: Opened


@dataclass(frozen=True)
class RowView:
    """One approach: ``opens`` where its family begins."""

    row: TableRow
    colour: int
    opens: bool
    cells: list[CellView]


@dataclass(frozen=True)
class TableView:
    """The whole table; `foot` counts verdicts by column, `total` all of them."""

    rows: list[RowView]
    foot: list[Mapping[str, int]]
    total: str
    beside: bool
    holm: bool
    legend: list[str]


def cell_view(table: CellTable, key: str, colours: Mapping[str, int]) -> TableView:
    """Lay out a table; `key` makes ids unique on the page.

    >>> cell = TableCell(0.9, 0.01, paper_mean=0.8, paper_std=0.01, verdict="better")
    >>> view = cell_view(CellTable("", ["MNIST"], [TableRow("", "LOG", [cell])]), "p1", {})
    >>> view.rows[0].cells[0].kind, view.total
    ('cell up3', '1 cell: 1 better than the paper.')
    """
    rows, before = [], None
    for place, row in enumerate(table.rows):
        colour = colours.get(row.group, 0)
        cells = [
            _cell(table, row, column, f"{key}-{place}-{column}", colour)
            for column in range(len(table.columns))
        ]
        rows.append(RowView(row, colour, row.group != before, cells))
        before = row.group
    return TableView(
        rows,
        [_count([row.cells[place] for row in table.rows]) for place in range(len(table.columns))],
        _total(table.cells),
        table.beside_paper,
        any(cell.holm for cell in table.cells),
        _legend(table),
    )


def shade(cell: TableCell) -> str:
    """Name the shade of a cell: how far it lies above or below the paper.

    Three steps either way, at one, two and four combined standard deviations. Without those, the
    verdict decides.

    >>> shade(TableCell(0.93, 0.01, paper_mean=0.9, paper_std=0.01))
    'up2'
    >>> shade(TableCell(0.9, paper_mean=0.93, verdict="worse")), shade(TableCell(0.9))
    ('down2', '')
    """
    far = cell.distance
    if far is None:
        return {"better": "up2", "worse": "down2"}.get(cell.verdict, "")
    step = sum(abs(far) > edge for edge in STEPS)
    return f"{'up' if far > 0 else 'down'}{step}" if step else ""


def _cell(table: CellTable, row: TableRow, place: int, key: str, colour: int) -> CellView:
    cell = row.cells[place]
    names = [one_line(row.label), one_line(table.columns[place])]
    kinds = ["cell", "best" * cell.best, shade(cell) if table.beside_paper else ""]
    said = [f"{', '.join(names)}: {value(cell.mean, cell.std)}", cell.note]
    said += [against_paper(cell)] if table.beside_paper else []
    shares = {"ours": cell.mean, "paper": cell.paper_mean, "gap": cell.difference}
    return CellView(
        cell,
        key,
        " ".join(filter(None, kinds)),
        _shown(cell),
        {name: f"{share:.6g}" if known(share) else "" for name, share in shares.items()},
        "; ".join(filter(None, said)),
        opened(table, row, place, key, colour),
    )


def _shown(cell: TableCell) -> dict[str, str]:
    """Return the texts of a cell by the class that places them."""
    far = cell.distance
    ours, paper = known(cell.mean), known(cell.paper_mean)
    return {
        "m": points(cell.mean),
        "s": f"± {points(cell.std)}" if ours and known(cell.std) else "",
        "n": "" if ours else cell.note,
        "k": cell.mark,
        "p": points(cell.paper_mean) if paper else "",
        "e": f"± {points(cell.paper_std)}" if paper and known(cell.paper_std) else "",
        "g": "" if cell.difference is None else signed(cell.difference),
        "z": f"{abs(far):.1f} sd" if known(far) else "",
        "v": TRIANGLES[cell.verdict],
    }


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


def _legend(table: CellTable) -> list[str]:
    """Take what the other forms say, less what stands in the page's own legend."""
    drop = ("Beneath", "↑", "ʰ")
    return [line for line in legend(table) if not line.startswith(drop)]
