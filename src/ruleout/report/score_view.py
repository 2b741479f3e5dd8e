"""A score table as rows of cells, ready for the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from markupsafe import Markup

from ruleout.report.charts import Bar, dot_axis, dot_row
from ruleout.report.formats import (
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
from ruleout.report.parts import Score, ScoreTable
from ruleout.report.svg import reach
from ruleout.report.table import Cell, Table

_MARKS = {"": "", "•": "ours is significantly better", "○": "ours is significantly worse"}


class _Cell(NamedTuple):
    """What is shown, and what it is sorted by; an empty `value` comes last."""

    shown: str | Markup
    value: str = ""
    kind: str = ""


class _Column(NamedTuple):
    """A head: ``sort`` is ``"number"``, ``"text"``, or empty where nothing can be sorted."""

    label: str | Markup
    sort: str
    under: str = ""
    kind: str = ""


_Filled: TypeAlias = tuple[_Column, list[_Cell]]
_Show: TypeAlias = Callable[[object], str]


def score_view(table: ScoreTable, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a table: only columns that some row fills, the best score marked.

    >>> view = score_view(ScoreTable("", [Score("log", 0.934), Score("exp", 0.95)]), {})
    >>> [(row["score"].name, row["best"]) for row in view["rows"]]
    [('exp', True), ('log', False)]
    """
    rows = _ordered(table)
    show: _Show = points if table.unit == "percent" else number
    columns: list[_Filled] = [
        _scores(table, rows, show),
        _dots(table, rows, colours),
        *_texts(rows),
        *_extras(table, rows, show),
    ]
    best = _best(table, rows, show)
    laid = [
        {
            "score": row,
            "best": not row.reference and show(row.score) == best,
            "colour": colours.get(row.family, 0),
            "cells": [cells[place] for _, cells in columns],
            "mark": _MARKS[row.mark],
            "trials": [show(value) for value in values(row.trials)],
        }
        for place, row in enumerate(rows)
    ]
    heads = [column for column, _ in columns]
    return {"columns": heads, "rows": laid, "legend": _legend(table, rows)}


def score_latex(part: ScoreTable) -> str:
    """Write what the page shows of a table as LaTeX."""
    view = score_view(part, {})
    texts = [place for place, column in enumerate(view["columns"]) if column.sort]
    rows = [
        [
            row["score"].name,
            *(
                Cell(cell.shown, row["best"], row["score"].mark)
                if cell.kind == "score"
                else cell.shown
                for cell in (row["cells"][place] for place in texts)
            ),
        ]
        for row in view["rows"]
    ]
    heads = ["Approach", *(view["columns"][place].label for place in texts)]
    return Table(heads, rows, part.title, " ".join(view["legend"])).latex()


_FIELDS = (
    *("name", "label", "family", "form", "score", "spread", "mark", "p_value"),
    *("estimate", "estimate_error", "seconds", "reference"),
)


def score_csv(part: ScoreTable) -> str:
    """Write a table as CSV: every digit, one column for each chosen setting.

    >>> print(score_csv(ScoreTable("", [Score("log", 0.5)])).splitlines()[1])
    log,,,,0.5,,,,,,,no
    """
    settings = list(dict.fromkeys(name for row in part.rows for name in row.chosen))
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


def _best(table: ScoreTable, rows: Sequence[Score], show: _Show) -> str:
    """Return the best score as it is shown, so that what looks equal is equally bold."""
    scores = [row.score for row in rows if known(row.score) and not row.reference]
    pick = max if table.higher_is_better else min
    return show(pick(scores)) if scores else "none"


def _texts(rows: Sequence[Score]) -> list[_Filled]:
    family = [_Cell(row.family or MISSING, row.family, "family") for row in rows]
    form = [_Cell(row.form or MISSING, row.form) for row in rows]
    columns = [(_Column("Family", "text"), family), (_Column("Batches", "text"), form)]
    return [(head, cells) for head, cells in columns if any(cell.value for cell in cells)]


def _scores(table: ScoreTable, rows: Sequence[Score], show: _Show) -> _Filled:
    spread = any(known(row.spread) for row in rows)
    under = f"mean ± {table.spread_label}" if spread else ""
    cells = [_Cell(_within(row.score, row.spread, show), _key(row.score), "score") for row in rows]
    return _Column(_head(table, table.score_label), "number", under, "score"), cells


def _head(table: ScoreTable, label: str) -> str:
    return f"{label}\N{NO-BREAK SPACE}(%)" if table.unit == "percent" else label


def _dots(table: ScoreTable, rows: Sequence[Score], colours: Mapping[str, int]) -> _Filled:
    score, error = values([row.score for row in rows]), values([row.spread for row in rows])
    trials = [values(row.trials) for row in rows]
    domain = reach(score, score - error, score + error, *trials, margin=0.04)
    bars = [
        Bar("", row.score, row.spread, list(row.trials), colours.get(row.family, 0)) for row in rows
    ]
    cells = [_Cell(dot_row(bar, domain), kind="dots") for bar in bars]
    return _Column(dot_axis(domain, table.unit), ""), cells


def _extras(table: ScoreTable, rows: Sequence[Score], show: _Show) -> list[_Filled]:
    columns: list[_Filled] = []
    if any(known(row.p_value) for row in rows):
        cells = [_Cell(p_value(row.p_value), _key(row.p_value)) for row in rows]
        columns.append((_Column("p\N{NON-BREAKING HYPHEN}value", "number"), cells))
    if any(known(row.estimate) for row in rows):
        cells = [
            _Cell(_within(row.estimate, row.estimate_error, show), _key(row.estimate))
            for row in rows
        ]
        under = "± standard error" if any(known(row.estimate_error) for row in rows) else ""
        columns.append((_Column(_head(table, table.estimate_label), "number", under), cells))
    columns += [_setting(name, rows) for name in dict.fromkeys(n for r in rows for n in r.chosen)]
    if any(known(row.seconds) for row in rows):
        cells = [_Cell(duration(row.seconds), _key(row.seconds)) for row in rows]
        columns.append((_Column("Time", "number"), cells))
    return columns


def _setting(name: str, rows: Sequence[Score]) -> _Filled:
    """Make one column of the chosen configurations."""
    found = [row.chosen.get(name) for row in rows]
    present = [value for value in found if value is not None]
    shown = iter(numbers(present))
    numeric = all(known(value) for value in present)
    cells = [
        _Cell(MISSING)
        if value is None
        else _Cell(next(shown), _key(value) if numeric else text(value))
        for value in found
    ]
    return _Column(name[:1].upper() + name[1:], "number" if numeric else "text"), cells


def _within(value: object, error: object, show: _Show) -> str:
    shown = show(value)
    return shown if shown == MISSING or not known(error) else f"{shown} ± {show(error)}"


def _key(value: object) -> str:
    return repr(float(value)) if known(value) else ""


def _legend(table: ScoreTable, rows: Sequence[Score]) -> list[str]:
    ours = f"our best approach ({table.ours})" if table.ours else "our best approach"
    lines = ["Bold: the best."] if sum(known(row.score) for row in rows) > 1 else []
    if any(row.reference for row in rows):
        lines.append("Italic: for comparison only.")
    if any(row.mark for row in rows):
        lines.append(
            f"• {ours} is significantly better than this row, ○ significantly worse "
            f"({table.test_label}). No mark: no significant difference."
        )
    if any(len(row.trials) for row in rows):
        lines.append("Faint ticks: single trials. Open a row to read them.")
    return lines
