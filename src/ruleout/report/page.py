"""The page: a report in, one file of HTML out that asks for nothing from elsewhere."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from ruleout.labels.atomic import atomic_write
from ruleout.report.charts import COLOURS
from ruleout.report.formats import text
from ruleout.report.parts import CellTable, Curves, Part, Report, ScoreTable
from ruleout.report.views import fill, view

__all__ = ["render", "write"]


def render(report: Report) -> str:
    """Return the page as text; the same report always gives the same text.

    A policy inside the page forbids every request and every script but its own.

    >>> page = render(Report("Digits", ["LOG wins."]))
    >>> "LOG wins." in page, "http://" in page, "https://" in page
    (True, False, False)
    """
    style, script = (_assets(report, kind) for kind in ("css", "js"))
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = fill(
        "report.html",
        report=report,
        facts=[(name, text(value)) for name, value in report.facts.items()],
        sections=list(_sections(report)),
        style=style,
        script=script,
        policy=policy,
    )
    return str(page)


def write(report: Report, path: str | Path) -> Path:
    """Write the page; the file appears whole or not at all. Returns where it is.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write(Report("Digits"), f"{folder}/report.html").name
    'report.html'
    """
    page = render(report).encode()
    with atomic_write(path) as out:
        out.write(page)
    return Path(path)


def _sections(report: Report) -> Iterator[tuple[str, str, str, list[Markup]]]:
    """Yield id, title, text and the markup of the parts."""
    colours = _colours(report)
    for i, section in enumerate(report.sections, 1):
        parts = [view(part, f"p{i}-{j}", colours) for j, part in enumerate(section.parts, 1)]
        yield f"s{i}", section.title, section.text, parts


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


def _digest(source: str) -> str:
    return f"sha256-{b64encode(sha256(source.encode()).digest()).decode()}"
