"""A comparison as a table: at a prompt, in a notebook, in Markdown, in CSV."""

from __future__ import annotations

import csv as files
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ruleout.comparison.rows import Row, plain
from ruleout.report.formats import duration, number, numbers, p_value, points

if TYPE_CHECKING:
    from ruleout.comparison.result import Comparison

__all__ = ["Column", "columns", "csv", "html", "markdown", "notes", "records", "text"]


_NAMES = (
    "approach", "label", "family", "form", "score", "spread", "mark", "p_value", "p_holm",
    "estimate", "error",
)  # fmt: skip


class Column(NamedTuple):
    """A head and the cells beneath it, as text."""

    head: str
    cells: list[str]
    align: Literal["left", "right"] = "right"


def columns(table: Comparison) -> list[Column]:
    """Return what every printed table shows, best row first."""
    rows, method = table.ranked, table.method
    found = [
        Column("", [row.mark for row in rows], "left"),
        Column("approach", [row.approach for row in rows], "left"),
        Column("family", [row.family for row in rows], "left"),
        Column(_head(method.score_label.lower(), method.percent), [_score(table, r) for r in rows]),
    ]
    if method.reference:
        used = [row.p_holm if method.holm else row.p_value for row in rows]
        found.append(Column("p", [p_value(plain(value)) for value in used]))
    head = _head(f"held-out {method.criterion}", method.criterion_percent)
    found.append(
        Column(head, [_within(r.estimate, r.error, method.criterion_percent) for r in rows])
    )
    found += _configurations(rows)
    return [*found, Column("time", [duration(row.seconds) for row in rows])]


def _head(label: str, percent: bool) -> str:
    return f"{label}, %" if percent else label


def _score(table: Comparison, row: Row) -> str:
    return "diverged" if row.failed else _within(row.score, row.spread, table.method.percent)


def _within(value: float, error: float, percent: bool) -> str:
    show = points if percent else number
    known = plain(value), plain(error)
    if known[0] is None:
        return "–"
    return show(value) if known[1] is None else f"{show(value)} ± {show(error)}"


def _configurations(rows: list[Row]) -> list[Column]:
    """Show each setting; an approach whose trials chose differently gets a +."""
    names = dict.fromkeys(name for row in rows for name in row.configuration)
    found = []
    for name in names:
        present = [row.configuration[name] for row in rows if name in row.configuration]
        shown = iter(numbers(present))
        cells = [
            next(shown) + _more(row, name) if name in row.configuration else "–" for row in rows
        ]
        found.append(Column(name.replace("_", " "), cells))
    return found


def _more(row: Row, name: str) -> str:
    return "" if len({one[name] for one in row.configurations}) < 2 else "+"


def _title(table: Comparison) -> str:
    facts = table.facts
    own = sum(not row.baseline for row in table.rows)
    count = f"{own} approach" + ("" if own == 1 else "es")
    trials = f"{table.method.trials} trial" + ("" if table.method.trials == 1 else "s")
    grid = facts["grid"].split(" (")[0]
    return f"Comparison of {count}: {facts['model']}, {grid}, {trials}"


def notes(table: Comparison) -> list[str]:
    """Return what must be said beneath the table."""
    lost = [f"{row.approach} ({row.note})" for row in table.rows if row.diverged and not row.failed]
    parts = [f"Diverged in part: {', '.join(lost)}."] if lost else []
    if any(len({*map(str, row.configurations)}) > 1 for row in table.rows):
        parts.append("+: trials chose differently; the choice of most is shown.")
    return [*table.method.sentences(), *parts]


def text(table: Comparison) -> str:
    """Lay the table out for a prompt."""
    laid = []
    for column in columns(table):
        wide = max(map(len, [column.head, *column.cells]))
        put = str.ljust if column.align == "left" else str.rjust
        laid.append([put(cell, wide) for cell in (column.head, *column.cells)])
    lines = ["  ".join(cells).rstrip() for cells in zip(*laid, strict=True)]
    return "\n".join([_title(table), "", *lines, "", *notes(table)])


def markdown(table: Comparison) -> str:
    """Lay the table out with pipes."""
    shown = columns(table)
    lines = [
        [column.head or "mark" for column in shown],
        ["---:" if column.align == "right" else "---" for column in shown],
        *zip(*(column.cells for column in shown), strict=True),
    ]
    body = ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]
    return "\n".join(
        [*body, "", *(f"{line}  " for line in notes(table)[:-1]), *notes(table)[-1:], ""]
    )


def _cell(content: str) -> str:
    return content.replace("|", "\\|").replace("\n", " ")


def html(table: Comparison) -> str:
    """Lay the table out for a notebook."""
    shown = columns(table)
    side = [f'style="text-align: {column.align}"' for column in shown]
    heads = "".join(f"<th {s}>{escape(c.head)}</th>" for c, s in zip(shown, side, strict=True))
    body = ""
    for cells in zip(*(column.cells for column in shown), strict=True):
        inside = "".join(f"<td {s}>{escape(c)}</td>" for c, s in zip(cells, side, strict=True))
        body += f"<tr>{inside}</tr>"
    beneath = "<br>".join(map(escape, notes(table)))
    return (
        f"<div><b>{escape(_title(table))}</b><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table><small>{beneath}</small></div>"
    )


def records(table: Comparison) -> list[dict[str, Any]]:
    """Return one flat dictionary per approach, best first; missing numbers are None."""
    settings = dict.fromkeys(name for row in table.rows for name in row.configuration)
    found = []
    for row in table.ranked:
        one = {name: plain(getattr(row, name)) for name in _NAMES}
        one |= {name: row.configuration.get(name) for name in settings}
        one |= {name: getattr(row, name) for name in ("seconds", "diverged", "models", "baseline")}
        for place in range(max(len(each.trials) for each in table.rows)):
            known = place < len(row.trials)
            one[f"trial_{place + 1}"] = plain(row.trials[place]) if known else None
        found.append(one)
    return found


def csv(table: Comparison) -> str:
    """Return the records as CSV."""
    rows, out = records(table), StringIO()
    writer = files.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
