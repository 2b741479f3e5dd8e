"""The pictures of the team page, in the manner of :mod:`ruleout.report`: SVG with classes alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from ruleout.report.formats import count, labels, number
from ruleout.report.page import figure
from ruleout.report.svg import (
    STRETCH,
    Scale,
    across,
    along,
    at,
    chart,
    clip,
    gutter,
    path,
    spread,
    stretched,
    tag,
    thin,
    ticks,
)
from ruleout.web.team.annotators import Growth

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
    last = len(grown.times) - 1
    shown = sorted({last - place for place in thin(len(grown.times), _ROWS)})
    rows = [
        [f"{grown.times[at]:%Y-%m-%d %H:%M}", count(grown.answers[at]), count(grown.items[at])]
        for at in shown
    ]
    return figure(
        _Caption("Answers over time", _told(grown)),
        "over-time",
        _curve(grown, 320.0),
        heads=["Time (UTC)", "Answers", "Items with an answer"],
        rows=rows,
        legend=[("line c0", "answers that stand"), ("line c1", "items with an answer")],
        full=True,
    )


def _curve(grown: Growth, height: float) -> Markup:
    top = max(grown.answers) * 1.04
    steps = ticks(0, top, 5)
    rows = list(zip(steps, labels(steps), strict=True))
    moments = [at.timestamp() for at in grown.times]
    begin, end = moments[0], max(moments[-1], moments[0] + 60)
    x, y = Scale(begin, end, 0, 100), Scale(0, top, height - 46, 18)
    columns = grown.answers, grown.items
    spots = spread([y(column[-1]) for column in columns], 16, y.end, y.start)
    until = grown.times[0] + timedelta(seconds=end - begin)
    below = time_ticks(grown.times[0], until, 8)
    parts = [
        across(y, rows),
        along(x, [(at.timestamp(), label) for at, label in below], y.start, "Time (UTC)"),
    ]
    for place, (column, spot) in enumerate(zip(columns, spots, strict=True)):
        name = tag("text", count(column[-1]), x=8, y=spot + 4, class_="end")
        shapes = [_line(moments, column, x, y), at(x.percent(moments[-1]), name)]
        parts.append(tag("g", *shapes, class_=f"line on c{place}"))
    told = _told(grown)
    return chart("over-time", "Answers over time", told, height, parts, left=gutter(rows), right=58)


def _line(moments: list[float], column: Sequence[int], x: Scale, y: Scale) -> Markup:
    if len(moments) == 1:
        return tag("circle", cx=x.percent(moments[0]), cy=y(column[0]), r=3.5, class_="lone")
    wide, up = STRETCH / 100 * x.all(np.array(moments)), y.all(np.array(column, np.float64))
    stroke = tag("path", d=path(wide, up), class_="stroke")
    return stretched(stroke, top=0, height=y.start + 2, units=(STRETCH, y.start + 2))


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


def bars(rows: Sequence[ClassCount], note: str) -> Markup:
    """Draw a bar for each class with a stroke where it was expected to end."""
    title = "How often each class was proposed"
    top = max([1.0, *(max(row.observed, row.expected) for row in rows)])
    drawn = [_bar(row, Scale(0, top, 0, 100), _ROW * place) for place, row in enumerate(rows)]
    about = f"{len(rows)} classes; the table below has the numbers."
    height = _ROW * len(rows) + 4
    return figure(
        _Caption(title, note),
        "class-counts",
        chart("classes", title, about, height, drawn, left=_NAMES, right=62),
        heads=["Class", "Proposed", "Expected", "Difference"],
        rows=[[r.name, count(r.observed), number(r.expected), r.difference] for r in rows],
        legend=[("bar", "proposed"), ("expected", "expected")],
    )


_ROW, _NAMES = 22.0, 120.0  # pixels


def _bar(row: ClassCount, x: Scale, y: float) -> Markup:
    words = f"{row.name}: {count(row.observed)} proposed, {number(row.expected)} expected"
    mark = x.percent(row.expected)
    return tag(
        "g",
        tag("title", words),
        tag("text", clip(row.name, _NAMES - 12), x=-8, y=y + 15, text_anchor="end"),
        tag("rect", y=y + 4, width=x.percent(row.observed), height=_ROW - 8),
        tag("line", x1=mark, x2=mark, y1=y + 2, y2=y + _ROW - 2, class_="mark"),
        tag("text", row.difference, x="100%", dx=58, y=y + 15, text_anchor="end", class_="off"),
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
