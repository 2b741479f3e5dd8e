"""Every part as markup: numbers are laid out here, templates only place them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ruleout.report import charts
from ruleout.report.cells import cell_view
from ruleout.report.formats import count, number, percent, text, values
from ruleout.report.parts import (
    CellTable,
    Curves,
    Histogram,
    Listing,
    Matrix,
    Note,
    Part,
    Reliability,
    ScoreTable,
)
from ruleout.report.scores import score_view
from ruleout.report.svg import clean

__all__ = ["fill", "view"]

_NOTHING = "There is nothing to show."
WIDE, HALF, NARROW = 1000.0, 470.0, 358.0  # widths the pictures are drawn for, in pixels


class Entry(NamedTuple):
    """One name of a legend."""

    key: str
    name: str
    swatch: Markup
    last: str
    on: bool


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("ruleout", "report/templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else clean(value),
        trim_blocks=True,
        lstrip_blocks=True,
    )


def fill(template: str, **names: Any) -> Markup:
    """Fill a template; everything that is not markup already is escaped.

    >>> print(fill("note.html", part=Note("a < b")).strip())
    <p class="note">a &lt; b</p>
    """
    return Markup(_templates().get_template(template).render(names))


def view(part: Part, key: str, colours: Mapping[str, int]) -> Markup:
    """Return the markup of a part; `key` makes its ids unique on the page."""
    match part:
        case Note():
            return fill("note.html", part=part)
        case Listing():
            return _listing(part)
        case ScoreTable():
            return fill("scores.html", part=part, key=key, table=score_view(part, colours))
        case CellTable():
            return fill("cells.html", part=part, key=key, table=cell_view(part, key, colours))
        case Curves():
            return _curves(part, key, colours)
        case Histogram():
            return _histogram(part, key)
        case Reliability():
            return _reliability(part, key)
        case Matrix():
            return _matrix(part, key)
    raise TypeError(f"a {type(part).__name__} is no part of a report")


def _listing(part: Listing) -> Markup:
    pairs = part.rows.items() if isinstance(part.rows, Mapping) else part.rows
    return fill("listing.html", part=part, rows=[(name, text(value)) for name, value in pairs])


def _curves(part: Curves, key: str, colours: Mapping[str, int]) -> Markup:
    if not part.lines:
        return _figure(part, key, (), heads=(), rows=(), full=True)
    on = _highlighted(part)
    pictures = [
        charts.curves(part, key=key, kind=kind, size=size, colours=colours, on=on)
        for kind, size in (("wide", (WIDE, 420.0)), ("narrow", (NARROW, 330.0)))
    ]
    groups: dict[str, list[Entry]] = {}
    for place, line in enumerate(part.lines):
        swatch = charts.swatch(*charts.style_of(part, place, colours))
        last = charts.last_of(line, part.unit)
        entry = Entry(f"{key}-{place}", line.name, swatch, last, line.name in on)
        groups.setdefault(line.family, []).append(entry)
    return fill("curves.html", part=part, key=key, pictures=pictures, groups=groups)


def _highlighted(part: Curves) -> Collection[str]:
    if part.visible is not None:
        return set(part.visible)
    if len(part.lines) <= 7:
        return {line.name for line in part.lines}
    order = sorted(part.lines, key=lambda line: charts.end_of(line, -np.inf), reverse=True)
    return {line.name for line in order[:5]}


def _histogram(part: Histogram, key: str) -> Markup:
    pictures = [
        charts.histogram(part, key=key, kind=kind, size=size)
        for kind, size in (("wide", (HALF, 320.0)), ("narrow", (NARROW, 280.0)))
    ]
    expected = values(part.expected) if len(part.expected) else None
    legend = [("bar", part.counts_label)]
    heads = [part.x_label, part.counts_label]
    if expected is not None:
        legend.append(("expected", part.expected_label))
        heads.append(part.expected_label)
    rows = [
        [str(part.first + place), count(value)]
        + ([number(expected[place])] if expected is not None else [])
        for place, value in enumerate(values(part.counts))
        if len(part.counts) <= 50 or value > 0 or (expected is not None and expected[place] >= 0.05)
    ]
    return _figure(part, key, pictures, legend=legend, heads=heads, rows=rows)


def _reliability(part: Reliability, key: str) -> Markup:
    pictures = [
        charts.reliability(part, key=key, kind=kind, size=size)
        for kind, size in (("wide", (HALF, 470.0)), ("narrow", (NARROW, 410.0)))
    ]
    errors = values(part.error) if len(part.error) else values([None] * len(part.count))
    columns = values(part.confidence), values(part.accuracy), errors, values(part.count)
    rows = [
        [percent(sure), percent(right), percent(error), count(size)]
        for sure, right, error, size in zip(*columns, strict=True)
    ]
    heads = ["Confidence", "Accuracy", "Standard error", "Rows"]
    return _figure(part, key, pictures, notes=_calibration(part), heads=heads, rows=rows)


def _calibration(part: Reliability) -> list[str]:
    notes = ["Dashed: as often right as sure. Above it the model is too modest, below too sure."]
    if len(part.error):
        notes.append("Bars: ± one standard error.")
    if part.estimated:
        notes.append(
            "There are no true labels: each accuracy is the unbiased estimate from what was "
            "ruled out, and may lie outside 0–100 %."
        )
    if beyond := charts.outside(part):
        bins = (
            "1 bin lies outside: it is" if beyond == 1 else f"{beyond} bins lie outside: they are"
        )
        notes.append(f"{bins} drawn at the edge, as an arrow.")
    return notes


def _matrix(part: Matrix, key: str) -> Markup:
    ready = charts.heat(part)
    wide = HALF if ready.small else WIDE * 0.8
    pictures = [
        charts.matrix(ready, key=key, kind=kind, width=width, title=part.title)
        for kind, width in (("wide", wide), ("narrow", NARROW))
    ]
    if not ready.small:
        pictures.insert(0, charts.store(ready, key=key))
    notes = [ready.said] if ready.said else []
    if part.diagonal:
        notes.append(f"Outlined: {part.diagonal}")
    heads = [part.row_label, part.column_label, "count", "share of the row"]
    rows = [list(row) for row in ready.largest()]
    return _figure(
        part,
        key,
        pictures,
        notes=notes,
        heads=heads,
        rows=rows,
        more="Largest cells",
        full=not ready.small,
    )


def _figure(
    part: Curves | Histogram | Reliability | Matrix,
    key: str,
    pictures: Sequence[Markup],
    *,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    legend: Sequence[tuple[str, str]] = (),
    more: str = "Numbers",
    full: bool = False,
) -> Markup:
    if not rows:
        pictures, legend, notes = (), (), [_NOTHING]
    return fill(
        "figure.html",
        part=part,
        key=key,
        pictures=pictures,
        heads=heads,
        rows=rows,
        notes=notes,
        legend=legend,
        more=more,
        full=full,
    )
