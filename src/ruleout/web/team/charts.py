"""The pictures of the team page, in the manner of :mod:`ruleout.report`: SVG with classes alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from ruleout.report import Histogram
from ruleout.report.formats import count, labels, number
from ruleout.report.page import HALF, NARROW, WIDE, fill, view
from ruleout.report.svg import (
    Scale,
    across,
    along,
    canvas,
    clip,
    gutter,
    path,
    spread,
    tag,
    thin,
    ticks,
)
from ruleout.web.team.annotators import Growth

__all__ = ["ClassCount", "bars", "interval", "sizes", "timeline"]


_ROWS = 12  # of the table beneath the curve


class _Caption(NamedTuple):
    title: str
    note: str = ""


class ClassCount(NamedTuple):
    """How often one class was proposed, and how often it should have been."""

    name: str
    observed: int
    expected: float

    @property
    def difference(self) -> str:
        """How far the two are apart."""
        if not self.expected:
            return "–"
        off = 100 * (self.observed / self.expected - 1)
        return f"{'+' if off >= 0.05 else '−' if off <= -0.05 else ''}{abs(off):.1f} %"


# ------------------------------------------------------------------ over time


def timeline(grown: Growth) -> Markup:
    """Draw how answers, and items with an answer, grew; with a table of a few moments."""
    pictures = [
        _curve(grown, kind, size)
        for kind, size in (("wide", (WIDE, 320.0)), ("narrow", (NARROW, 280.0)))
    ]
    last = len(grown.times) - 1
    shown = sorted({last - place for place in thin(len(grown.times), _ROWS)})
    rows = [
        [f"{grown.times[at]:%Y-%m-%d %H:%M}", count(grown.answers[at]), count(grown.items[at])]
        for at in shown
    ]
    return fill(
        "figure.html", part=_Caption("Answers over time", _told(grown)), key="over-time",
        pictures=pictures, heads=["Time (UTC)", "Answers", "Items with an answer"], rows=rows,
        notes=[],
        legend=[("line c0", "answers that stand"), ("line c1", "items with an answer")],
        more="Numbers", full=True,
    )  # fmt: skip


def _curve(grown: Growth, kind: str, size: tuple[float, float]) -> Markup:
    top = max(grown.answers) * 1.04
    steps = ticks(0, top, 5)
    rows = list(zip(steps, labels(steps), strict=True))
    moments = [at.timestamp() for at in grown.times]
    begin, end = moments[0], max(moments[-1], moments[0] + 60)
    x = Scale(begin, end, gutter([label for _, label in rows]), size[0] - 58)
    y = Scale(0, top, size[1] - 46, 18)
    lines = [_line(moments, column, x, y) for column in (grown.answers, grown.items)]
    last = [grown.answers[-1], grown.items[-1]]
    spots = spread([y(value) for value in last], 16, y.end, y.start)
    ends = [
        tag("text", count(value), x=x(moments[-1]) + 8, y=spot + 4, class_="end")
        for value, spot in zip(last, spots, strict=True)
    ]
    until = grown.times[0] + timedelta(seconds=end - begin)
    below = time_ticks(grown.times[0], until, 8 if kind == "wide" else 4)
    parts = [
        across(y, rows, x.start, x.end),
        along(x, [(at.timestamp(), label) for at, label in below], y.start, "Time (UTC)"),
        *(tag("g", line, text, class_=f"line on c{place}")
          for place, (line, text) in enumerate(zip(lines, ends, strict=True))),
    ]  # fmt: skip
    return canvas(f"over-time-{kind[0]}", kind, size, "Answers over time", _told(grown), parts)


def _line(moments: list[float], column: Sequence[int], x: Scale, y: Scale) -> Markup:
    along_x, up = x.all(np.array(moments)), y.all(np.array(column, np.float64))
    if len(moments) == 1:
        return tag("circle", cx=float(along_x[0]), cy=float(up[0]), r=3.5, class_="lone")
    return tag("path", d=path(along_x, up), class_="stroke")


def _told(grown: Growth) -> str:
    first, last = grown.times[0], grown.times[-1]
    end = f"{last:%H:%M}" if first.date() == last.date() else _day(last)
    return (
        f"From {_day(first)} to {end}: {count(grown.answers[-1])} answers about "
        f"{count(grown.items[-1])} items."
    )


def _day(at: datetime) -> str:
    return f"{at.day} {at:%B %Y, %H:%M}"


# ------------------------------------------------------------------ how often


def sizes(key: str, chart: Histogram) -> Markup:
    """Draw a histogram with its table."""
    return view(chart, key, {})


def bars(rows: Sequence[ClassCount], note: str) -> Markup:
    """Draw a bar for each class with a stroke where it was expected to end."""
    pictures = [_bars(rows, kind, width) for kind, width in (("wide", HALF), ("narrow", NARROW))]
    table = [[row.name, count(row.observed), number(row.expected), row.difference] for row in rows]
    return fill(
        "figure.html", part=_Caption("How often each class was proposed", note),
        key="class-counts", pictures=pictures,
        heads=["Class", "Proposed", "Expected", "Difference"], rows=table, notes=[],
        legend=[("bar", "proposed"), ("expected", "expected")], more="Numbers", full=False,
    )  # fmt: skip


_ROW = 22.0  # pixels


def _bars(rows: Sequence[ClassCount], kind: str, width: float) -> Markup:
    left, height = width * 0.32, _ROW * len(rows)
    top = max([1.0, *(max(row.observed, row.expected) for row in rows)])
    x = Scale(0, top, left, width - 62)
    drawn = [_bar(row, x, _ROW * place, left) for place, row in enumerate(rows)]
    about = f"{len(rows)} classes; the table below has the numbers."
    title = "How often each class was proposed"
    return canvas(f"classes-{kind[0]}", kind, (width, height + 4), title, about, drawn)


def _bar(row: ClassCount, x: Scale, y: float, left: float) -> Markup:
    words = f"{row.name}: {count(row.observed)} proposed, {number(row.expected)} expected"
    mark = f"M{x(row.expected):.1f} {y + 2:g}v{_ROW - 4:g}"
    return tag(
        "g",
        tag("title", words),
        tag("text", clip(row.name, left - 12), x=left - 8, y=y + 15, text_anchor="end"),
        tag("rect", x=left, y=y + 4, width=x(row.observed) - left, height=_ROW - 8),
        tag("path", d=mark, class_="mark"),
        tag("text", row.difference, x=x.end + 58, y=y + 15, text_anchor="end", class_="off"),
        class_="bar",
    )


# ------------------------------------------------------------------ rates


def interval(share: float, low: float, high: float) -> Markup:
    """Draw a share with its interval; the numbers stand beside it, so readers need not see it.

    >>> interval(0.5, 0.2, 0.8).count("<circle")
    1
    """
    x = Scale(0, 1, 6, 114)
    rules = "".join(f"M{x(place):.1f} 2v16" for place in (0, 0.5, 1))
    return tag(
        "svg",
        tag("path", d=rules, class_="grid"),
        tag("path", d=f"M{x(low):.1f} 10H{x(high):.1f}", class_="span"),
        tag("circle", cx=x(share), cy=10, r=4),
        class_="interval",
        viewBox="0 0 120 20",
        aria_hidden="true",
    )


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_STEPS = (
    1, 5, 15, 30, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE, _HOUR, 3 * _HOUR, 6 * _HOUR,
    12 * _HOUR, _DAY, 2 * _DAY, 7 * _DAY, 14 * _DAY, 28 * _DAY, 91 * _DAY, 182 * _DAY,
    365 * _DAY,
)  # fmt: skip


def time_ticks(begin: datetime, end: datetime, most: int) -> list[tuple[datetime, str]]:
    """Return at most `most` round moments from `begin` to `end`, with their labels, in UTC.

    >>> start = datetime(2026, 1, 1, 22, 50, tzinfo=UTC)
    >>> [label for _, label in time_ticks(start, start.replace(day=2, hour=6), 4)]
    ['2 Jan', '03:00', '06:00']
    """
    first, last = begin.timestamp(), end.timestamp()
    usual = [step for step in _STEPS if last // step - -(-first // step) < most]
    step = usual[0] if usual else int((last - first) // most) + 1
    places = range(int(-(-first // step)), int(last // step) + 1)
    found = [datetime.fromtimestamp(place * step, UTC) for place in places]
    found = found or [begin.astimezone(UTC)]
    return [(at, _label(at, step)) for at in found]


def _label(at: datetime, step: int) -> str:
    if step >= 91 * _DAY:
        return f"{at:%b %Y}"
    if at.hour == at.minute == at.second == 0:
        return f"{at.day} {at:%b}"
    return f"{at:%H:%M}" if step >= _MINUTE and not at.second else f"{at:%H:%M:%S}"
