"""How often each size occurred, against what a law leads one to expect."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report.charts.axes import across, along, gutter
from ruleout.report.formats import compact, count, labels, number, percent, values
from ruleout.report.parts import Histogram
from ruleout.report.scales import Scale, thin, ticks
from ruleout.report.svg import canvas, clip, path, tag, width_of

__all__ = ["histogram"]

_MOST = 48  # bars; more sizes than that are put together


Numbers: TypeAlias = NDArray[np.float64]


class _Bar(NamedTuple):
    name: str
    size: float
    expected: float


def histogram(chart: Histogram, *, key: str, kind: str, size: tuple[float, float]) -> Markup:
    """Draw bars for what occurred, and dots for what was expected.

    Parameters
    ----------
    chart
        The numbers.
    key
        A prefix for ids, unique on the page.
    kind
        The class of the picture: ``"wide"`` or ``"narrow"``.
    size
        Width and height in pixels.
    """
    bars = _bars(chart)
    top = max([0.0, *(v for bar in bars for v in bar[1:] if v == v)]) * 1.08 or 1.0
    steps = ticks(0, top, 5)
    rows = list(zip(steps, labels(steps), strict=True))
    x = Scale(-0.5, max(len(bars), 1) - 0.5, gutter([label for _, label in rows]), size[0] - 4)
    y = Scale(0, top, size[1] - 46, 30)
    wide = max([10.0, *(width_of(bar.name) for bar in bars)]) + 8
    places = thin(len(bars), int((x.end - x.start) // wide))
    frame = [
        tag("text", clip(chart.y_label, size[0]), x=0, y=14, class_="name"),
        across(y, rows, x.start, x.end),
        along(x, [(i, bars[i].name) for i in places], y.start, chart.x_label, marks=False),
    ]
    drawn = [
        _draw(bar, i, x, y, sum(b.size for b in bars if b.size == b.size), chart)
        for i, bar in enumerate(bars)
    ]
    about = f"{len(bars)} bars, {chart.x_label} against {chart.y_label}."
    parts = [*frame, *drawn, *_overlay(bars, x, y)]
    return canvas(f"{key}-{kind[0]}", kind, size, chart.title, about, parts)


def _bars(chart: Histogram) -> list[_Bar]:
    """Put sizes together when there are too many for one bar each."""
    counts = values(chart.counts)
    expected = values(chart.expected) if len(chart.expected) else np.full(len(counts), np.nan)
    begin, end = _busy(counts, expected)
    step = -(-(end - begin) // _MOST) or 1
    bars = []
    for start in range(begin, end, step):
        part = slice(start, min(start + step, end))
        low, high = chart.first + part.start, chart.first + part.stop - 1
        name = str(low) if low == high else f"{low}–{high}"
        bars.append(_Bar(name, _total(counts[part]), _total(expected[part])))
    return bars


def _busy(counts: Numbers, expected: Numbers) -> tuple[int, int]:
    """Return the first and the last size worth a bar, when there are too many."""
    busy = np.flatnonzero((counts > 0) | (expected >= 0.05))
    if len(counts) <= _MOST or not len(busy):
        return 0, len(counts)
    return int(busy[0]), int(busy[-1]) + 1


def _total(numbers: Numbers) -> float:
    """Add what is known; NaN where nothing is."""
    known = numbers[np.isfinite(numbers)]
    return float(known.sum()) if len(known) else float("nan")


def _draw(bar: _Bar, place: int, x: Scale, y: Scale, total: float, chart: Histogram) -> Markup:
    share = bar.size / total if total > 0 else None
    words = f"{bar.name}: {count(bar.size)} {chart.counts_label} ({percent(share)})"
    if bar.expected == bar.expected:
        words += f", {number(bar.expected)} {chart.expected_label}"
    height = y.start - y(max(bar.size, 0.0)) if bar.size == bar.size else 0.0
    step = x(1) - x(0)
    width = min(step - min(6.0, step * 0.22), 72.0)
    rect = tag("rect", x=x(place) - width / 2, y=y.start - height, width=width, height=height)
    shapes = [tag("title", words), rect]
    label = compact(bar.size)
    if step > width_of(label, 11) + 2 and bar.expected != bar.expected:
        place_y = y.start - height - 6
        shapes.append(tag("text", label, x=x(place), y=place_y, text_anchor="middle"))
    return tag("g", *shapes, class_="bar")


def _overlay(bars: list[_Bar], x: Scale, y: Scale) -> list[Markup]:
    """Draw what was expected, as dots on a thin line."""
    places = x.all(np.arange(len(bars), dtype=np.float64))
    heights = y.all(np.maximum(np.array([bar.expected for bar in bars], dtype=np.float64), 0))
    dots = [
        tag("circle", cx=a, cy=b, r=3 if len(bars) <= 24 else 2)
        for a, b in zip(places.tolist(), heights.tolist(), strict=True)
        if b == b
    ]
    return (
        [tag("g", tag("path", d=path(places, heights)), *dots, class_="expected")] if dots else []
    )
