"""The page: a report in, one file of HTML out that asks for nothing from elsewhere."""

from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ruleout.labels.atomic import write_text
from ruleout.report import parts
from ruleout.report.charts import heat, heatmap, histogram, reliability
from ruleout.report.curves import COLOURS, curve_view, end_of
from ruleout.report.number_format import text
from ruleout.report.svg import fill
from ruleout.report.table_views import cell_view, score_csv, score_latex, score_view
from ruleout.report.table_writers import csv, latex


def render(report: parts.Report) -> str:
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
        laid = [view(part, f"p{i}-{j}", colours) for j, part in enumerate(section.parts, 1)]
        sections.append((f"s{i}", section.title, section.text, laid))
    return str(fill("report.html", report=report, sections=sections, **told))


def write(report: parts.Report, path: str | Path) -> Path:
    """Write the page; the file appears whole or not at all. Returns where it is.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Report("Digits"), f"{folder}/report.html").name
    'report.html'
    """
    return write_text(path, render(report))


def _colours(report: parts.Report) -> dict[str, int]:
    """Give every family its colour, the same one all over the page."""
    names: dict[str, int] = {}
    for part in _parts(report):
        found = [row.family for row in part.rows] if isinstance(part, parts.ScoreTable) else []
        found += [row.group for row in part.rows] if isinstance(part, parts.CellTable) else []
        found += [line.family for line in part.lines] if isinstance(part, parts.Curves) else []
        for family in filter(None, found):
            names.setdefault(family, len(names) % COLOURS)
    return names


def _parts(report: parts.Report) -> Iterator[parts.Part]:
    return (part for section in report.sections for part in section.parts)


def _assets(report: parts.Report, kind: str) -> Markup:
    """Return the style sheet or the script, with what cells need only where there are any."""
    names = [{"css": "style.css", "js": "script.js"}[kind]]
    names += [f"cells.{kind}"] * any(isinstance(part, parts.CellTable) for part in _parts(report))
    folder = files("ruleout.report").joinpath("templates")
    return Markup("".join(folder.joinpath(name).read_text("utf-8") for name in names))


def view(part: parts.Part, key: str, colours: Mapping[str, int]) -> Markup:
    """Return the markup of a part; `key` makes its ids unique on the page."""
    match part:
        case parts.Note():
            return fill("note.html", part=part)
        case parts.Listing():
            pairs = part.rows.items() if isinstance(part.rows, Mapping) else part.rows
            rows = [(name, text(value)) for name, value in pairs]
            return fill("listing.html", part=part, rows=rows)
        case parts.ScoreTable():
            told = {"LaTeX": score_latex(part), "CSV": score_csv(part)}
            view = score_view(part, colours)
            return fill("scores.html", part=part, key=key, table=view, copies=told)
        case parts.CellTable():
            told = {"LaTeX": latex(part), "CSV": csv(part)}
            view = cell_view(part, key, colours)
            return fill("cells.html", part=part, key=key, table=view, copies=told)
        case parts.Curves():
            return _curves(part, key, colours)
        case parts.Histogram():
            return fill("histogram.html", part=part, key=key, **histogram(part))
        case parts.Reliability():
            return fill("reliability.html", part=part, key=key, **reliability(part))
        case parts.Matrix():
            return fill("heatmap.html", part=part, key=key, **heatmap(heat(part)))
    raise TypeError(f"a {type(part).__name__} is not a part of a report")


def _curves(part: parts.Curves, key: str, colours: Mapping[str, int]) -> Markup:
    if not part.lines:
        return fill("figure.html", part=part, key=key, rows=(), full=True)
    view = curve_view(part, 300 if part.half else 420, colours, _highlighted(part))
    groups: dict[str, list[dict[str, object]]] = {}
    for line in view["lines"]:
        groups.setdefault(line["family"], []).append(line)
    return fill("curves.html", part=part, key=key, still=False, groups=groups, **view)


def _highlighted(part: parts.Curves) -> Collection[str]:
    if part.visible is not None:
        return set(part.visible)
    if len(part.lines) <= 7:
        return {line.name for line in part.lines}
    order = sorted(part.lines, key=lambda line: end_of(line, -np.inf), reverse=True)
    return {line.name for line in order[:5]}
