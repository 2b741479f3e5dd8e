"""How often each size occurred, against what a law leads one to expect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report.formats import compact, count, labels, number, percent, values
from ruleout.report.parts import Histogram, Reliability
from ruleout.report.svg import (
    Scale,
    across,
    along,
    canvas,
    clip,
    gutter,
    path,
    reach,
    tag,
    thin,
    ticks,
    width_of,
)

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


_COUNTS = 54  # pixels for the bars beneath
_SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


class _Bin(NamedTuple):
    confidence: float
    accuracy: float
    size: float
    error: float


def outside(chart: Reliability) -> int:
    """Count the bins whose estimate is no share.

    >>> outside(Reliability("", [0.5, 0.9], [-0.1, 0.9], [3, 40]))
    1
    """
    return int(((accuracy := values(chart.accuracy)) < 0).sum() + (accuracy > 1).sum())


def reliability(chart: Reliability, *, key: str, kind: str, size: tuple[float, float]) -> Markup:
    """Draw a point for every bin, the diagonal, and bars for the counts.

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
    bins = _bins(chart)
    floor = size[1] - 46
    x = Scale(0, 1, 50, size[0] - 20)
    y = Scale(0, 1, floor - _COUNTS - 48, 36)
    shares = [(share, percent(share, 0)) for share in _SHARES]
    name = "Accuracy, estimated from what was ruled out" if chart.estimated else "Accuracy"
    frame = [
        tag("text", name, x=0, y=14, class_="name"),
        across(y, shares, x.start, x.end),
        tag("line", x1=x(0), y1=y(0), x2=x(1), y2=y(1), class_="diagonal"),
        along(x, shares, floor, "Confidence"),
    ]
    points = [_point(one, x, y) for one in bins]
    about = f"{len(bins)} bins; points on the diagonal are well calibrated."
    parts = [*frame, *_counts(bins, x, floor), *points]
    return canvas(f"{key}-{kind[0]}", kind, size, chart.title, about, parts)


def _bins(chart: Reliability) -> list[_Bin]:
    """Return the bins that can be placed, from left to right."""
    errors = values(chart.error) if len(chart.error) else values([None] * len(chart.count))
    columns = values(chart.confidence), values(chart.accuracy), values(chart.count), errors
    bins = [_Bin(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return sorted(one for one in bins if 0 <= one.confidence <= 1)


def _point(one: _Bin, x: Scale, y: Scale) -> Markup:
    """Draw a point with its error; a point beyond the axes becomes an arrow at the edge."""
    if one.accuracy != one.accuracy:
        return Markup("")
    across, height = x(one.confidence), y(_share(one.accuracy))
    words = f"confidence {percent(one.confidence)}, accuracy {percent(one.accuracy)}"
    shapes = []
    if one.error == one.error:
        words += f" ± {percent(one.error)}"
        low, high = y(_share(one.accuracy - one.error)), y(_share(one.accuracy + one.error))
        shapes.append(tag("line", x1=across, x2=across, y1=low, y2=high, class_="error"))
    if 0 <= one.accuracy <= 1:
        shapes.append(tag("circle", cx=across, cy=height, r=4.5))
    else:
        turn = 1 if one.accuracy > 1 else -1
        shapes.append(
            tag("path", d=f"M{across - 5.5:.1f} {height + 6 * turn:.1f}h11l-5.5 {-10 * turn}z")
        )
    return tag("g", tag("title", f"{words}, {count(one.size)} rows"), *shapes, class_="point")


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _counts(bins: list[_Bin], x: Scale, floor: float) -> list[Markup]:
    """Draw the bars beneath, one per bin, as wide as the bins lie apart."""
    most = max([1.0, *(one.size for one in bins if one.size == one.size)])
    y = Scale(0, most, floor, floor - _COUNTS)
    spots = [x(one.confidence) for one in bins]
    apart = min([b - a for a, b in pairwise(spots)] or [24.0])
    width = min(max(apart - 3, 2.0), 26.0)
    bars = [
        tag(
            "g",
            tag("title", f"{count(one.size)} rows at confidence {percent(one.confidence)}"),
            tag("rect", x=spot - width / 2, y=y(one.size), width=width, height=floor - y(one.size)),
            class_="bar",
        )
        for one, spot in zip(bins, spots, strict=True)
        if one.size > 0
    ]
    top = ticks(0, most, 2)[-1]
    label = tag("text", "Rows", x=0, y=floor - _COUNTS - 16, class_="name")
    return [label, across(y, [(top, compact(top))], x.start, x.end), *bars]


_WIDTH, _ROW, _LEFT = 360.0, 26.0, 46.0  # pixels


class Bar(NamedTuple):
    """One row: a dot at `mean`, a bar of ± `error`, a tick for each trial."""

    name: str
    mean: float | None
    error: float | None
    trials: Sequence[float | None]
    colour: int


def dot_chart(bars: Sequence[Bar]) -> Markup:
    """Draw the rows. The numbers stand in the text, so it is hidden from screen readers.

    >>> print(dot_chart([Bar("ours", 0.9, 0.01, [0.89, 0.91], 0)]).count("<circle"))
    1
    """
    columns = [values([bar.mean, *bar.trials]) for bar in bars]
    ends = [values([bar.mean]) + values([1, -1]) * values([bar.error]) for bar in bars]
    low, high = reach(*columns, *ends, margin=0.04)
    scale, foot = Scale(low, high, _LEFT, _WIDTH - 14), _ROW * len(bars)
    places = ticks(low, high, 6)
    rules = "".join(f"M{scale(place):.1f} 0V{foot:g}" for place in places)
    named = zip(places, labels(places, "percent"), strict=True)
    texts = [tag("text", name, x=scale(place), y=foot + 16) for place, name in named]
    rows = [_row(bar, scale, _ROW * (place + 0.5)) for place, bar in enumerate(bars)]
    axis = tag("g", *texts, class_="tick", text_anchor="middle")
    box = f"0 0 {_WIDTH:g} {foot + 20:g}"
    grid = tag("path", d=rules, class_="rule")
    return tag("svg", grid, *rows, axis, class_="beside", viewBox=box, aria_hidden="true")


def _row(bar: Bar, scale: Scale, y: float) -> Markup:
    mean, error = values([bar.mean, bar.error]).tolist()
    trials = [trial for trial in values(bar.trials).tolist() if trial == trial]
    shapes = [tag("text", bar.name, x=0, y=y + 4)]
    if trials:
        strokes = "".join(f"M{scale(trial):.1f} {y - 6:g}v12" for trial in trials)
        shapes.append(tag("path", d=strokes, class_="trial"))
    if mean == mean and error == error:
        span = f"M{scale(mean - error):.1f} {y:g}H{scale(mean + error):.1f}"
        shapes.append(tag("path", d=span, class_="error"))
    if mean == mean:
        shapes.append(tag("circle", cx=scale(mean), cy=y, r=4.5))
    return tag("g", *shapes, class_=f"c{bar.colour}")


_WIDTH, _HEIGHT = 170, 22


def _scale(domain: tuple[float, float]) -> Scale:
    return Scale(*domain, 8, _WIDTH - 8)


def _grid(scale: Scale) -> list[Markup]:
    places = [scale(tick) for tick in ticks(scale.low, scale.high, 4)]
    return [tag("line", x1=x, x2=x, y1=0, y2=_HEIGHT, class_="rule") for x in places]


def dot_row(
    mean: float, error: float, trials: Sequence[float], domain: tuple[float, float], colour: int
) -> Markup:
    """Draw one row: a dot at `mean`, a bar of ± `error`, a faint tick per trial.

    The numbers stand beside it in the table, so it is hidden from screen readers.

    >>> print(dot_row(float("nan"), 0.1, [], (0, 1), 0).count("circle"))
    0
    """
    scale = _scale(domain)
    middle = _HEIGHT / 2
    shapes = _grid(scale)
    shapes += [
        tag("line", x1=scale(v), x2=scale(v), y1=middle - 4, y2=middle + 4, class_="trial")
        for v in trials
        if v == v
    ]
    if mean == mean and error == error:
        ends = {"x1": scale(mean - error), "x2": scale(mean + error)}
        shapes.append(tag("line", **ends, y1=middle, y2=middle, class_="error"))
    if mean == mean:
        shapes.append(tag("circle", cx=scale(mean), cy=middle, r=4))
    return _svg(shapes, f"strip c{colour}")


def dot_axis(domain: tuple[float, float], labels: Sequence[str]) -> Markup:
    """Draw the shared axis: `labels` belong to :func:`~ruleout.report.svg.ticks`."""
    scale = _scale(domain)
    texts = [
        tag("text", label, x=scale(tick), y=16, text_anchor="middle")
        for tick, label in zip(ticks(*domain, 4), labels, strict=True)
    ]
    return _svg(texts, "strip tick")


def _svg(shapes: Sequence[Markup], kind: str) -> Markup:
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", *shapes, class_=kind, viewBox=box, aria_hidden="true")
