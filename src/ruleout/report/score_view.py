"""A score table as rows of cells, ready for the template."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ruleout.report.charts import dot_axis, dot_row
from ruleout.report.formats import (
    MISSING,
    duration,
    known,
    labels,
    number,
    numbers,
    p_value,
    points,
    text,
    values,
)
from ruleout.report.parts import Score, ScoreTable
from ruleout.report.svg import reach, ticks

MARKS = {"": "", "•": "ours is significantly better", "○": "ours is significantly worse"}


@dataclass(frozen=True)
class Cell:
    """What is shown, and what it is sorted by; an empty `value` comes last."""

    shown: str | Markup
    value: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Column:
    """A head: ``sort`` is ``"number"``, ``"text"``, or empty where nothing can be sorted."""

    label: str | Markup
    sort: str
    under: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Row:
    """One approach: its head, its cells, and what it opens to."""

    score: Score
    best: bool
    colour: int
    cells: list[Cell]
    mark: str
    trials: list[str]


@dataclass(frozen=True)
class View:
    """The whole table."""

    columns: list[Column]
    rows: list[Row]
    legend: list[str]


def score_view(table: ScoreTable, colours: Mapping[str, int]) -> View:
    """Lay out a table: only columns that some row fills, the best score marked.

    >>> view = score_view(ScoreTable("", [Score("log", 0.934), Score("exp", 0.95)]), {})
    >>> [row.score.name for row in view.rows], [row.best for row in view.rows]
    (['exp', 'log'], [True, False])
    """
    rows = _ordered(table)
    show = points if table.unit == "percent" else number
    columns: list[tuple[Column, list[Cell]]] = [
        _scores(table, rows, show),
        _strips(table, rows, colours),
        *_texts(rows),
        *_extras(table, rows, show),
    ]
    best = _best(table, rows, show)
    return View(
        [column for column, _ in columns],
        [
            Row(
                score=row,
                best=not row.reference and show(row.score) == best,
                colour=colours.get(row.family, 0),
                cells=[cells[place] for _, cells in columns],
                mark=MARKS[row.mark],
                trials=[show(value) for value in values(row.trials)],
            )
            for place, row in enumerate(rows)
        ],
        _legend(table, rows),
    )


def _ordered(table: ScoreTable) -> list[Score]:
    if table.order == "given":
        return list(table.rows)
    sign = -1 if table.higher_is_better else 1
    return sorted(table.rows, key=lambda row: sign * row.score if known(row.score) else math.inf)


def _best(table: ScoreTable, rows: Sequence[Score], show: Callable[[object], str]) -> str:
    """Return the best score as it is shown, so that what looks equal is equally bold."""
    scores = [row.score for row in rows if known(row.score) and not row.reference]
    pick = max if table.higher_is_better else min
    return show(pick(scores)) if scores else "none"


def _texts(rows: Sequence[Score]) -> list[tuple[Column, list[Cell]]]:
    family = [Cell(row.family or MISSING, row.family, "family") for row in rows]
    form = [Cell(row.form or MISSING, row.form) for row in rows]
    columns = [(Column("Family", "text"), family), (Column("Batches", "text"), form)]
    return [(head, cells) for head, cells in columns if any(cell.value for cell in cells)]


def _scores(
    table: ScoreTable, rows: Sequence[Score], show: Callable[[object], str]
) -> tuple[Column, list[Cell]]:
    spread = any(known(row.spread) for row in rows)
    under = f"mean ± {table.spread_label}" if spread else ""
    sign = "\N{NO-BREAK SPACE}(%)" if table.unit == "percent" else ""
    cells = [Cell(_within(row.score, row.spread, show), _key(row.score), "score") for row in rows]
    return Column(f"{table.score_label}{sign}", "number", under, "score"), cells


def _strips(
    table: ScoreTable, rows: Sequence[Score], colours: Mapping[str, int]
) -> tuple[Column, list[Cell]]:
    score, error = values([row.score for row in rows]), values([row.spread for row in rows])
    trials = [values(row.trials) for row in rows]
    domain = reach(score, score - error, score + error, *trials, margin=0.04)
    names = [name.removesuffix(" %") for name in labels(ticks(*domain, 4), table.unit)]
    cells = [
        Cell(dot_row(mean, wide, each.tolist(), domain, colours.get(row.family, 0)), kind="dots")
        for row, mean, wide, each in zip(rows, score.tolist(), error.tolist(), trials, strict=True)
    ]
    return Column(dot_axis(domain, names), ""), cells


def _extras(
    table: ScoreTable, rows: Sequence[Score], show: Callable[[object], str]
) -> list[tuple[Column, list[Cell]]]:
    columns = []
    if any(known(row.p_value) for row in rows):
        cells = [Cell(p_value(row.p_value), _key(row.p_value)) for row in rows]
        columns.append((Column("p\N{NON-BREAKING HYPHEN}value", "number"), cells))
    if any(known(row.estimate) for row in rows):
        sign = "\N{NO-BREAK SPACE}(%)" if table.unit == "percent" else ""
        cells = [
            Cell(_within(row.estimate, row.estimate_error, show), _key(row.estimate))
            for row in rows
        ]
        under = "± standard error" if any(known(row.estimate_error) for row in rows) else ""
        columns.append((Column(f"{table.estimate_label}{sign}", "number", under), cells))
    columns += [_setting(name, rows) for name in dict.fromkeys(n for r in rows for n in r.chosen)]
    if any(known(row.seconds) for row in rows):
        cells = [Cell(duration(row.seconds), _key(row.seconds)) for row in rows]
        columns.append((Column("Time", "number"), cells))
    return columns


def _setting(name: str, rows: Sequence[Score]) -> tuple[Column, list[Cell]]:
    """Make one column of the chosen configurations."""
    found = [row.chosen.get(name) for row in rows]
    present = [value for value in found if value is not None]
    shown = iter(numbers(present))
    numeric = all(known(value) for value in present)
    cells = [
        Cell(MISSING)
        if value is None
        else Cell(next(shown), _key(value) if numeric else text(value))
        for value in found
    ]
    label = name[:1].upper() + name[1:]
    return Column(label, "number" if numeric else "text"), cells


def _within(value: object, error: object, show: Callable[[object], str]) -> str:
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
