"""Histograms, calibration, heat maps, and dots with their errors: numbers in, SVG out.

Colours are classes; the page's style sheet owns them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report import svg
from ruleout.report.number_format import compact, count, labels, number, percent, values
from ruleout.report.parts import Histogram, Matrix, Reliability
from ruleout.report.svg import NARROW, STRETCH, Scale, clip, tag, ticks

_MOST = 48  # bars; more sizes than that are put together


class _Bar(NamedTuple):
    name: str
    size: float
    expected: float


def histogram(part: Histogram, *, key: str, height: float) -> Markup:
    """Draw bars for what occurred, and dots for what was expected."""
    bars = _bars(part)
    top = max([0.0, *(v for bar in bars for v in bar[1:] if v == v)]) * 1.08 or 1.0
    steps = ticks(0, top, 5)
    rows = list(zip(steps, labels(steps), strict=True))
    x, y = Scale(-0.5, max(len(bars), 1) - 0.5, 0, 100), Scale(0, top, height - 46, 30)
    total, left = sum(b.size for b in bars if b.size == b.size), svg.gutter(rows)
    names = [(i, bar.name) for i, bar in enumerate(bars)]
    parts = [
        tag("text", clip(part.y_label, NARROW), x=-left, y=14, class_="name"),
        svg.across(y, rows),
        svg.along(x, names, y.start, part.x_label, marks=False),
        *(_bar(bar, i, x, y, total, part) for i, bar in enumerate(bars)),
        *_expected(bars, x, y),
    ]
    about = f"{len(bars)} bars, {part.x_label} against {part.y_label}."
    return svg.chart(key, part.title, about, height, parts, left=left, right=4)


def _bars(part: Histogram) -> list[_Bar]:
    """Put sizes together when there are too many for one bar each."""
    counts = values(part.counts)
    expected = values(part.expected) if len(part.expected) else np.full(len(counts), np.nan)
    busy = np.flatnonzero((counts > 0) | (expected >= 0.05))
    begin, end = 0, len(counts)
    if len(counts) > _MOST and len(busy):
        begin, end = int(busy[0]), int(busy[-1]) + 1
    step = -(-(end - begin) // _MOST) or 1
    bars = []
    for start in range(begin, end, step):
        stop = min(start + step, end)
        low, high = part.first + start, part.first + stop - 1
        name = str(low) if low == high else f"{low}–{high}"
        bars.append(_Bar(name, _total(counts[start:stop]), _total(expected[start:stop])))
    return bars


def _total(numbers: NDArray[np.float64]) -> float:
    known = numbers[np.isfinite(numbers)]
    return float(known.sum()) if len(known) else float("nan")


def _bar(bar: _Bar, place: int, x: Scale, y: Scale, total: float, part: Histogram) -> Markup:
    share = bar.size / total if total > 0 else None
    words = f"{bar.name}: {count(bar.size)} {part.counts_label} ({percent(share)})"
    if bar.expected == bar.expected:
        words += f", {number(bar.expected)} {part.expected_label}"
    high = y.start - y(max(bar.size, 0.0)) if bar.size == bar.size else 0.0
    step = x(1) - x(0)
    wide = min(0.8 * step, 17.0)
    box = {"x": svg.percent(x(place) - wide / 2), "width": svg.percent(wide)}
    shapes = [tag("title", words), tag("rect", **box, y=y.start - high, height=high)]
    label = compact(bar.size)
    if step * NARROW / 100 > svg.width_of(label, 11) + 2 and bar.expected != bar.expected:
        spot = {"x": x.percent(place), "y": y.start - high - 6}
        shapes.append(tag("text", label, **spot, text_anchor="middle"))
    return tag("g", *shapes, class_="bar")


def _expected(bars: list[_Bar], x: Scale, y: Scale) -> list[Markup]:
    places = np.arange(len(bars), dtype=np.float64)
    heights = y.all(np.maximum(np.array([bar.expected for bar in bars], dtype=np.float64), 0))
    dots = [
        tag("circle", cx=x.percent(a), cy=b, r=3 if len(bars) <= 24 else 2)
        for a, b in zip(places.tolist(), heights.tolist(), strict=True)
        if b == b
    ]
    if not dots:
        return []
    line = tag("path", d=svg.path(STRETCH / 100 * x.all(places), heights))
    drawn = svg.stretched(line, top=0, height=y.start, units=(STRETCH, y.start))
    return [tag("g", drawn, *dots, class_="expected")]


_COUNTS = 54  # pixels for the bars beneath
_SHARES = [(share / 5, f"{20 * share} %") for share in range(6)]


class _Bin(NamedTuple):
    confidence: float
    accuracy: float
    size: float
    error: float


def reliability(part: Reliability, *, key: str, height: float) -> Markup:
    """Draw a point for every bin, the diagonal, and bars for the counts."""
    bins = _bins(part)
    floor = height - 46
    x, y = Scale(0, 1, 0, 100), Scale(0, 1, floor - _COUNTS - 48, 36)
    name = "Accuracy, estimated from what was ruled out" if part.estimated else "Accuracy"
    parts = [
        tag("text", name, x=-50, y=14, class_="name"),
        svg.across(y, _SHARES),
        tag("line", y1=y(0), x2="100%", y2=y(1), class_="diagonal"),
        svg.along(x, _SHARES, floor, "Confidence"),
        *_counts(bins, x, floor),
        *(_point(one, x, y) for one in bins),
    ]
    about = f"{len(bins)} bins; points on the diagonal are well calibrated."
    return svg.chart(key, part.title, about, height, parts, left=50, right=20)


def _bins(part: Reliability) -> list[_Bin]:
    """Return the bins that can be placed, from left to right."""
    errors = values(part.error) if len(part.error) else values([None] * len(part.count))
    columns = values(part.confidence), values(part.accuracy), values(part.count), errors
    bins = [_Bin(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    return sorted(one for one in bins if 0 <= one.confidence <= 1)


def _point(one: _Bin, x: Scale, y: Scale) -> Markup:
    """Draw a point with its error; a point beyond the axes becomes an arrow at the edge."""
    if one.accuracy != one.accuracy:
        return Markup("")
    spot, height = x.percent(one.confidence), y(_share(one.accuracy))
    words = f"confidence {percent(one.confidence)}, accuracy {percent(one.accuracy)}"
    shapes = []
    if one.error == one.error:
        words += f" ± {percent(one.error)}"
        low, high = y(_share(one.accuracy - one.error)), y(_share(one.accuracy + one.error))
        shapes.append(tag("line", x1=spot, x2=spot, y1=low, y2=high, class_="error"))
    if 0 <= one.accuracy <= 1:
        shapes.append(tag("circle", cx=spot, cy=height, r=4.5))
    else:
        turn = 1 if one.accuracy > 1 else -1
        arrow = tag("path", d=f"M-5.5 {height + 6 * turn:.1f}h11l-5.5 {-10 * turn}z")
        shapes.append(svg.at(spot, arrow))
    return tag("g", tag("title", f"{words}, {count(one.size)} rows"), *shapes, class_="point")


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _counts(bins: list[_Bin], x: Scale, floor: float) -> list[Markup]:
    """Draw the bars beneath, one per bin, as wide as the bins lie apart."""
    most = max([1.0, *(one.size for one in bins if one.size == one.size)])
    y = Scale(0, most, floor, floor - _COUNTS)
    spots = [x(one.confidence) for one in bins]
    apart = min([b - a for a, b in pairwise(spots)] or [6.0])
    wide = min(max(0.85 * apart, 0.5), 6.5)
    bars = [
        tag(
            "g",
            tag("title", f"{count(one.size)} rows"),
            tag(
                "rect",
                x=svg.percent(spot - wide / 2),
                y=y(one.size),
                width=svg.percent(wide),
                height=floor - y(one.size),
            ),
            class_="bar",
        )
        for one, spot in zip(bins, spots, strict=True)
        if one.size > 0
    ]
    top = ticks(0, most, 2)[-1]
    label = tag("text", "Rows", x=-50, y=floor - _COUNTS - 16, class_="name")
    return [label, svg.across(y, [(top, compact(top))]), *bars]


_SMALL, _LARGE, _TOP = 10, 100, 40  # classes: with numbers, all of them, the most frequent
_LEVELS = 9  # shades of a large map
_CAP = 110.0  # pixels of a row's name


@dataclass(frozen=True)
class Heat:
    """Counts ready to draw: what is not known, and the shares of an empty row, are NaN."""

    chart: Matrix
    rows: list[str]
    columns: list[str]
    counts: NDArray[np.float64]
    shares: NDArray[np.float64]  # of the whole row, columns left out included
    most: float  # the largest share
    said: str  # what was left out

    @property
    def strength(self) -> NDArray[np.float64]:
        """Shares over the largest of them, in [0, 1]."""
        return self.shares / self.most

    @property
    def small(self) -> bool:
        return max(len(self.rows), len(self.columns)) <= _SMALL

    def largest(self) -> list[list[str]]:
        """Return row, column, count and share of the ten largest cells."""
        flat = np.nan_to_num(self.counts, nan=-1.0).ravel()
        order = [divmod(int(p), len(self.columns)) for p in np.argsort(-flat, kind="stable")[:10]]
        return [
            [self.rows[i], self.columns[j], count(self.counts[i, j]), percent(self.shares[i, j])]
            for i, j in order
            if self.counts[i, j] > 0
        ]

    def about_row(self, row: int) -> str:
        shares = np.nan_to_num(self.shares[row])
        top = [int(j) for j in np.argsort(-shares, kind="stable")[:3] if shares[j] > 0]
        parts = [f"{clip(self.columns[j], 200)} {percent(shares[j])}" for j in top]
        name = f"{self.chart.row_label} {clip(self.rows[row], 200)}"
        return f"{name}: {', '.join(parts) or 'nothing'}"


def heat(chart: Matrix) -> Heat:
    """Compute shares and, beyond 100 classes, keep the 40 with the largest counts."""
    shape = len(chart.rows), len(chart.columns)
    counts = np.array([values(row) for row in chart.counts]).reshape(shape)
    counts = np.where(counts < 0, np.nan, counts)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.full(shape, np.nan), where=totals > 0)
    rows, columns, said = np.arange(shape[0]), np.arange(shape[1]), ""
    if max(shape) > _LARGE:
        rows, columns, said = _frequent(chart, np.nan_to_num(counts))
    shares = shares[np.ix_(rows, columns)]
    return Heat(
        chart,
        rows=[str(chart.rows[i]) for i in rows.tolist()],
        columns=[str(chart.columns[j]) for j in columns.tolist()],
        counts=counts[np.ix_(rows, columns)],
        shares=shares,
        most=float(np.nan_to_num(shares).max(initial=0.0)) or 1.0,
        said=said,
    )


def _frequent(
    chart: Matrix, counts: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.intp], str]:
    """Choose rows and columns by count, the same ones where both are the same classes."""
    along_rows, along_columns = counts.sum(1), counts.sum(0)
    if list(chart.rows) == list(chart.columns):
        along_rows = along_columns = along_columns + along_rows
    rows, columns = (
        np.sort(np.argsort(-totals, kind="stable")[:_TOP]) for totals in (along_rows, along_columns)
    )
    total, kept = counts.sum(), counts[np.ix_(rows, columns)].sum()
    share = percent(kept / total) if total > 0 else "none"
    said = (
        f"Shown are the {len(rows)} of {count(len(counts))} rows and the {len(columns)} of "
        f"{count(len(counts[0]))} columns with the largest counts; their cells hold {share} of all "
        "counts. Shares are of the whole row."
    )
    return rows, columns, said


class _Grid(NamedTuple):
    left: float
    top: float
    high: float  # of a cell
    upright: bool  # names of columns run upwards


def heatmap(heat: Heat, *, key: str) -> Markup:
    """Draw the map: numbers in the cells while it is small, shades alone when it is large."""
    chart, rows, columns = heat.chart, len(heat.rows), len(heat.columns)
    names = [svg.width_of(clip(name, _CAP, 11), 11) + 10 for name in heat.rows]
    left = min(max([svg.width_of(chart.row_label) + 18, *names]), _CAP + 10)
    above = max([0.0, *(svg.width_of(clip(name, 90, 11), 11) for name in heat.columns)])
    upright = above > (NARROW + 50 - left) / max(columns, 1) - 4
    high = min(34.0, max(6.0, 640 / max(rows, 1)))
    grid = _Grid(left, 24 + (above + 10 if upright else 20), high, upright)
    parts = [*_names(heat, grid), *(_numbered(heat, grid) if heat.small else _shaded(heat, grid))]
    height = high * rows
    if chart.diagonal:  # outline the cells where row and column are the same class
        boxes = "".join(f"M{i} {i}h1v1h-1z" for i in range(min(rows, columns)))
        outline = tag("path", d=boxes, class_="same")
        parts.append(svg.stretched(outline, top=grid.top, height=height, units=(columns, rows)))
    floor = grid.top + height
    parts += _shades(heat, floor + 18)
    about = f"Rows: {rows} {chart.row_label}. Columns: {columns} {chart.column_label}."
    return svg.chart(key, chart.title, about, floor + 44, parts, left=left, right=2.0, kind="map")


def _names(heat: Heat, grid: _Grid) -> list[Markup]:
    """Write the names of rows and columns, only some of them where they would touch."""
    down = f"{clip(heat.chart.row_label, grid.left - 18)} ↓"
    right = f"{clip(heat.chart.column_label, NARROW / 2)} →"
    heads = [
        tag("text", down, x=-grid.left, y=grid.top - 8, class_="name"),
        tag("text", right, x="50%", y=13, text_anchor="middle", class_="name"),
    ]
    names = []
    for i in svg.thin(len(heat.rows), int(grid.high * len(heat.rows) // 12)):
        y = grid.top + grid.high * (i + 0.5) + 4
        name = clip(heat.rows[i], grid.left - 8, 11)
        names.append(tag("text", name, x=-6, y=y, text_anchor="end"))
    y = grid.top - 6
    turn = f"translate(4 {y:.1f}) rotate(-90)"
    most = int((NARROW - grid.left) // 12) if grid.upright else len(heat.columns)
    for j in svg.thin(len(heat.columns), most):
        x, name = svg.percent(100 * (j + 0.5) / len(heat.columns)), heat.columns[j]
        if grid.upright:
            names.append(svg.at(x, tag("text", clip(name, 90, 11), transform=turn)))
        else:
            names.append(tag("text", name, x=x, y=y, text_anchor="middle"))
    return [*heads, tag("g", *names, class_="tick")]


def _numbered(heat: Heat, grid: _Grid) -> list[Markup]:
    cells, wide, labels = [], 100 / max(len(heat.columns), 1), heat.chart
    for i, row in enumerate(heat.rows):
        for j, column in enumerate(heat.columns):
            value, strength = float(heat.counts[i, j]), float(heat.strength[i, j])
            y = grid.top + grid.high * i
            words = (
                f"{labels.row_label} {row}, {labels.column_label} {column}: "
                f"{count(value)} ({percent(heat.shares[i, j])} of the row)"
            )
            place = {"x": svg.percent(wide * j), "y": y}
            size = {"width": svg.percent(wide), "height": grid.high}
            shade = f"{strength:.2f}" if strength == strength else "0"
            box = tag("rect", **place, **size, fill_opacity=shade)
            middle = {"x": svg.percent(wide * (j + 0.5)), "y": y + grid.high / 2 + 4}
            label = tag("text", compact(value), **middle, text_anchor="middle")
            strong = " firm strong" if strength > 0.78 else " firm" if strength > 0.6 else ""
            cells.append(tag("g", tag("title", words), box, label, class_=f"cell{strong}"))
    return cells


def _shaded(heat: Heat, grid: _Grid) -> list[Markup]:
    """Draw runs of equal shade as strokes of one unit: a map of 100 by 100 classes stays small."""
    strokes: dict[int, str] = dict.fromkeys(range(1, _LEVELS + 1), "")
    for i, row in enumerate(heat.strength.tolist()):
        start = 0
        for level, run in groupby(0 if v != v else math.ceil(v * _LEVELS) for v in row):
            size = len(list(run))
            if level:
                strokes[level] += f"M{start} {i}h{size}"
            start += size
    shades = [
        tag("path", d=d, class_="shade", stroke_opacity=f"{level / _LEVELS:.2f}")
        for level, d in strokes.items()
        if d
    ]
    height, units = grid.high * len(heat.rows), (len(heat.columns), len(heat.rows))
    cells = svg.stretched(*shades, top=grid.top, height=height, units=units, start=-0.5)
    frame = tag("rect", y=grid.top, width="100%", height=height, class_="frame")
    rows = []
    for i in range(len(heat.rows)):
        box = tag("rect", y=grid.top + grid.high * i, width="100%", height=grid.high)
        rows.append(tag("g", tag("title", heat.about_row(i)), box, class_="row"))
    return [cells, frame, *rows]


def _shades(heat: Heat, y: float) -> list[Markup]:
    boxes = [
        tag("rect", x=34 + 18 * i, y=y, width=17, height=11, fill_opacity=f"{i / 5:.2f}")
        for i in range(6)
    ]
    texts = [
        tag("text", "0 %", x=28, y=y + 10, text_anchor="end"),
        tag("text", f"{percent(heat.most, 0)} of the row", x=34 + 18 * 6 + 6, y=y + 10),
    ]
    return [tag("g", *boxes, class_="cell shades"), tag("g", *texts, class_="tick")]


# The numbers of these pictures are in the text beside them, so screen readers pass them over.

_WIDTH, _ROW, _LEFT = 360.0, 26.0, 46.0  # pixels of a dot chart
_WIDE, _HIGH = 170, 22  # pixels of a row in a table


class Bar(NamedTuple):
    """One row: a dot at `mean`, a bar of ± `error`, a tick for each trial."""

    name: str
    mean: float | None
    error: float | None
    trials: Sequence[float | None]
    colour: int


def dot_chart(bars: Sequence[Bar]) -> Markup:
    """Draw means with their errors and trials, one above the other on one axis."""
    columns = [values([bar.mean, *bar.trials]) for bar in bars]
    ends = [values([bar.mean]) + values([1, -1]) * values([bar.error]) for bar in bars]
    low, high = svg.reach(*columns, *ends, margin=0.04)
    scale, foot = Scale(low, high, _LEFT, _WIDTH - 14), _ROW * len(bars)
    places = ticks(low, high, 6)
    rules = "".join(f"M{scale(place):.1f} 0V{foot:g}" for place in places)
    named = zip(places, labels(places, "percent"), strict=True)
    texts = [tag("text", name, x=scale(place), y=foot + 16) for place, name in named]
    rows = [
        tag(
            "g",
            tag("text", bar.name, x=0, y=_ROW * (place + 0.5) + 4),
            *_dot(bar, scale, _ROW * (place + 0.5), 6),
            class_=f"c{bar.colour}",
        )
        for place, bar in enumerate(bars)
    ]
    axis = tag("g", *texts, class_="tick", text_anchor="middle")
    box = f"0 0 {_WIDTH:g} {foot + 20:g}"
    grid = tag("path", d=rules, class_="rule")
    return tag("svg", grid, *rows, axis, class_="dots-beside", viewBox=box, aria_hidden="true")


def dot_row(bar: Bar, domain: tuple[float, float]) -> Markup:
    """Draw one row of a table: a column of them shows an order at a glance."""
    scale = Scale(*domain, 8, _WIDE - 8)
    rules = "".join(f"M{scale(tick):.1f} 0v{_HIGH}" for tick in ticks(*domain, 4))
    shapes = [tag("path", d=rules, class_="rule"), *_dot(bar, scale, _HIGH / 2, 4)]
    return _small(shapes, f"dot-row c{bar.colour}")


def dot_axis(domain: tuple[float, float], unit: str) -> Markup:
    scale, places = Scale(*domain, 8, _WIDE - 8), ticks(*domain, 4)
    names = [name.removesuffix(" %") for name in labels(places, unit)]
    texts = [
        tag("text", name, x=scale(tick), y=16, text_anchor="middle")
        for tick, name in zip(places, names, strict=True)
    ]
    return _small(texts, "dot-row tick")


def _small(shapes: Sequence[Markup], kind: str) -> Markup:
    return tag("svg", *shapes, class_=kind, viewBox=f"0 0 {_WIDE} {_HIGH}", aria_hidden="true")


def _dot(bar: Bar, scale: Scale, y: float, reach: float) -> list[Markup]:
    mean, error = values([bar.mean, bar.error]).tolist()
    trials = [trial for trial in values(bar.trials).tolist() if trial == trial]
    shapes = []
    if trials:
        strokes = "".join(f"M{scale(trial):.1f} {y - reach:g}v{2 * reach:g}" for trial in trials)
        shapes.append(tag("path", d=strokes, class_="trial"))
    if mean == mean and error == error:
        span = f"M{scale(mean - error):.1f} {y:g}H{scale(mean + error):.1f}"
        shapes.append(tag("path", d=span, class_="error"))
    if mean == mean:
        shapes.append(tag("circle", cx=scale(mean), cy=y, r=4.5 if reach > 4 else 4))
    return shapes
