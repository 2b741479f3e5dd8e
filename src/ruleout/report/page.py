"""The page: a report in, one file of HTML out that asks for nothing from elsewhere."""

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ruleout.labels.atomic import write_text
from ruleout.report.charts import heat, heatmap, histogram, reliability
from ruleout.report.curves import COLOURS, curve_view, end_of
from ruleout.report.number_format import count, number, percent, text, values
from ruleout.report.parts import (
    CellTable,
    Curves,
    Histogram,
    Listing,
    Matrix,
    Note,
    Part,
    Reliability,
    Report,
    ScoreTable,
)
from ruleout.report.svg import fill
from ruleout.report.table_views import cell_view, score_csv, score_latex, score_view
from ruleout.report.table_writers import csv, latex


def render(report: Report) -> str:
    """Return the page as text; the same report always gives the same text.

    A policy inside the page forbids every request and every script but its own.

    >>> page = render(Report("Digits", ["LOG wins."]))
    >>> "LOG wins." in page, "http://" in page, "https://" in page
    (True, False, False)
    """
    style, script = (_assets(report, kind) for kind in ("css", "js"))
    digests = (b64encode(sha256(one.encode()).digest()).decode() for one in (style, script))
    allowed = "style-src 'sha256-{}'; script-src 'sha256-{}'".format(*digests)
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    facts = [(name, text(value)) for name, value in report.facts.items()]
    told: dict[str, Any] = {"style": style, "script": script, "policy": policy, "facts": facts}
    colours, sections = _colours(report), []  # id, title, text and the markup of the parts
    for i, section in enumerate(report.sections, 1):
        parts = [view(part, f"p{i}-{j}", colours) for j, part in enumerate(section.parts, 1)]
        sections.append((f"s{i}", section.title, section.text, parts))
    return str(fill("report.html", report=report, sections=sections, **told))


def write(report: Report, path: str | Path) -> Path:
    """Write the page; the file appears whole or not at all. Returns where it is.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Report("Digits"), f"{folder}/report.html").name
    'report.html'
    """
    return write_text(path, render(report))


def _colours(report: Report) -> dict[str, int]:
    """Give every family its colour, the same one all over the page."""
    names: dict[str, int] = {}
    for part in _parts(report):
        found = [row.family for row in part.rows] if isinstance(part, ScoreTable) else []
        found += [row.group for row in part.rows] if isinstance(part, CellTable) else []
        found += [line.family for line in part.lines] if isinstance(part, Curves) else []
        for family in filter(None, found):
            names.setdefault(family, len(names) % COLOURS)
    return names


def _parts(report: Report) -> Iterator[Part]:
    return (part for section in report.sections for part in section.parts)


def _assets(report: Report, kind: str) -> Markup:
    """Return the style sheet or the script, with what cells need only where there are any."""
    names = [{"css": "style.css", "js": "script.js"}[kind]]
    names += [f"cells.{kind}"] * any(isinstance(part, CellTable) for part in _parts(report))
    folder = files("ruleout.report").joinpath("templates")
    return Markup("".join(folder.joinpath(name).read_text("utf-8") for name in names))


def view(part: Part, key: str, colours: Mapping[str, int]) -> Markup:
    """Return the markup of a part; `key` makes its ids unique on the page."""
    match part:
        case Note():
            return fill("note.html", part=part)
        case Listing():
            pairs = part.rows.items() if isinstance(part.rows, Mapping) else part.rows
            rows = [(name, text(value)) for name, value in pairs]
            return fill("listing.html", part=part, rows=rows)
        case ScoreTable():
            told = {"LaTeX": score_latex(part), "CSV": score_csv(part)}
            view = score_view(part, colours)
            return fill("scores.html", part=part, key=key, table=view, copies=told)
        case CellTable():
            told = {"LaTeX": latex(part), "CSV": csv(part)}
            view = cell_view(part, key, colours)
            return fill("cells.html", part=part, key=key, table=view, copies=told)
        case Curves():
            return _curves(part, key, colours)
        case Histogram():
            return _histogram(part, key)
        case Reliability():
            return _reliability(part, key)
        case Matrix():
            return _matrix(part, key)
    raise TypeError(f"a {type(part).__name__} is not a part of a report")


def figure(
    part: Any,
    key: str,
    picture: Markup,
    *,
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    notes: Sequence[str] = (),
    legend: Sequence[tuple[str, str]] = (),
    more: str = "Numbers",
    full: bool = False,
) -> Markup:
    """Put a picture beneath its title, with its numbers in a table that opens.

    `part` has a title and a note; `legend` pairs the classes of keys with their names; `full`
    takes the whole width of the page.
    """
    told: dict[str, Any] = {"heads": heads, "rows": rows, "more": more, "full": full}
    if not rows:
        picture, legend, notes = Markup(""), (), ["There is nothing to show."]
    return fill(
        "figure.html", part=part, key=key, picture=picture, legend=legend, notes=notes, **told
    )


def _curves(part: Curves, key: str, colours: Mapping[str, int]) -> Markup:
    if not part.lines:
        return figure(part, key, Markup(""), heads=(), rows=(), full=True)
    height = 300 if part.half else 420
    view = curve_view(part, key=key, height=height, colours=colours, on=_highlighted(part))
    groups: dict[str, list[dict[str, object]]] = {}
    for line in view["lines"]:
        groups.setdefault(line["family"], []).append(line)
    return fill("curves.html", **view, groups=groups)


def _highlighted(part: Curves) -> Collection[str]:
    if part.visible is not None:
        return set(part.visible)
    if len(part.lines) <= 7:
        return {line.name for line in part.lines}
    order = sorted(part.lines, key=lambda line: end_of(line, -np.inf), reverse=True)
    return {line.name for line in order[:5]}


def _histogram(part: Histogram, key: str) -> Markup:
    legend, heads = [("bar", part.counts_label)], [part.x_label, part.counts_label]
    counts, expected = values(part.counts), values(part.expected)
    if len(expected):
        legend.append(("expected", part.expected_label))
        heads.append(part.expected_label)
    rows = [
        [str(part.first + place), count(value), *map(number, expected[place : place + 1])]
        for place, value in enumerate(counts)
        if len(counts) <= 50 or value > 0 or (expected[place : place + 1] >= 0.05).any()
    ]
    picture = histogram(part, key)
    return figure(part, key, picture, legend=legend, heads=heads, rows=rows)


def _reliability(part: Reliability, key: str) -> Markup:
    errors = values(part.error) if len(part.error) else values([None] * len(part.count))
    columns = values(part.confidence), values(part.accuracy), errors, values(part.count)
    rows = [
        [percent(sure), percent(right), percent(error), count(size)]
        for sure, right, error, size in zip(*columns, strict=True)
    ]
    heads = ["Confidence", "Accuracy", "Standard error", "Rows"]
    picture = reliability(part, key)
    return figure(part, key, picture, notes=_calibration(part), heads=heads, rows=rows)


def _calibration(part: Reliability) -> list[str]:
    notes = ["Dashed: as often right as sure. Above it the model is too modest, below too sure."]
    if len(part.error):
        notes.append("Bars: ± one standard error.")
    if part.estimated:
        notes.append(
            "There are no true labels: each accuracy is estimated from what was ruled out, if sets "
            "are drawn at random and none is wrong, and may lie outside 0–100 %."
        )
    accuracy = values(part.accuracy)
    if beyond := int(((accuracy < 0) | (accuracy > 1)).sum()):
        many = f"{beyond} bins lie outside: they are"
        bins = "1 bin lies outside: it is" if beyond == 1 else many
        notes.append(f"{bins} drawn at the edge, as an arrow.")
    return notes


def _matrix(part: Matrix, key: str) -> Markup:
    ready = heat(part)
    notes = [ready.said] if ready.said else []
    if part.diagonal:
        notes.append(f"Outlined: {part.diagonal}")
    return figure(
        part,
        key,
        heatmap(ready, key=key),
        notes=notes,
        heads=[part.row_label, part.column_label, "count", "share of the row"],
        rows=ready.largest(),
        more="Largest cells",
        full=not ready.small,
    )
