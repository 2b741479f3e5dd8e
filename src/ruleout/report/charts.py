"""Curves, histograms, calibration, heat maps, dots with errors, ranks: numbers in, SVG out.

Colours are classes; the page's style sheet owns them.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.report import svg
from ruleout.report.number_format import compact, count, number, p_value, percent, values
from ruleout.report.parts import Curves, Histogram, Line, Matrix, Numbers, Ranks, Reliability
from ruleout.report.svg import NARROW, STRETCH, Scale, clip, ticks

_MOST = 48  # bars; more sizes than that are put together


class _Bar(NamedTuple):
    name: str
    size: float
    expected: float
    label: str  # above it; empty where there is no room


def histogram(part: Histogram) -> dict[str, Any]:
    """Lay out bars for what occurred, and dots for what was expected."""
    bars = _bars(part)
    top = max([0.0, *(v for bar in bars for v in bar[1:3] if v == v)]) * 1.08 or 1.0
    x, y = Scale(-0.5, max(len(bars), 1) - 0.5, 0, 100), Scale(0, top, 274, 30)
    places = np.arange(len(bars), dtype=np.float64)
    heights = y.all(np.maximum(np.array([bar.expected for bar in bars], dtype=np.float64), 0))
    dots = zip(map(x.percent, places.tolist()), heights.tolist(), strict=True)
    counts, expected = values(part.counts), values(part.expected)
    return {
        "bars": bars,
        "x": x,
        "y": y,
        "marks": svg.marks(0, top, 5),
        "expects": len(expected) > 0,
        "names": [(place, bar.name) for place, bar in enumerate(bars)],
        "wide": min(0.8 * (x(1) - x(0)), 17.0),
        "total": sum(bar.size for bar in bars if bar.size == bar.size),
        "line": svg.path(STRETCH / 100 * x.all(places), heights),
        "dots": [(place, high) for place, high in dots if high == high],
        "rows": [
            [str(part.first + place), count(value), *map(number, expected[place : place + 1])]
            for place, value in enumerate(counts)
            if len(counts) <= 50 or value > 0 or (expected[place : place + 1] >= 0.05).any()
        ],
    }


def _bars(part: Histogram) -> list[_Bar]:
    """Put sizes together when there are too many for one bar each."""
    counts = values(part.counts)
    expected = values(part.expected) if len(part.expected) else np.full(len(counts), np.nan)
    busy = np.flatnonzero((counts > 0) | (expected >= 0.05))
    begin, end = 0, len(counts)
    if len(counts) > _MOST and len(busy):
        begin, end = int(busy[0]), int(busy[-1]) + 1
    step = -(-(end - begin) // _MOST) or 1
    bars, room = [], NARROW / max(-(-(end - begin) // step), 1) - 2
    for start in range(begin, end, step):
        stop = min(start + step, end)
        low, high = part.first + start, part.first + stop - 1
        name = str(low) if low == high else f"{low}–{high}"
        size, mean = _total(counts[start:stop]), _total(expected[start:stop])
        fits = svg.width_of(compact(size), 11) < room and mean != mean
        bars.append(_Bar(name, size, mean, compact(size) if fits else ""))
    return bars


def _total(numbers: NDArray[np.float64]) -> float:
    known = numbers[np.isfinite(numbers)]
    return float(known.sum()) if len(known) else float("nan")


_SHARES = [(share / 5, f"{20 * share} %") for share in range(6)]


class _Bin(NamedTuple):
    confidence: float
    accuracy: float
    size: float
    error: float


def reliability(part: Reliability) -> dict[str, Any]:
    """Lay out a point for every bin, the diagonal, and bars for the counts."""
    errors = values(part.error) if len(part.error) else values([None] * len(part.count))
    columns = values(part.confidence), values(part.accuracy), values(part.count), errors
    every = [_Bin(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    bins = sorted(one for one in every if 0 <= one.confidence <= 1)  # those that have a place
    most = max([1.0, *(one.size for one in bins if one.size == one.size)])
    x = Scale(0, 1, 0, 100)
    apart = min([b - a for a, b in pairwise(x(one.confidence) for one in bins)] or [6.0])
    return {
        "bins": bins,
        "shares": _SHARES,
        "x": x,
        "y": Scale(0, 1, 322, 36),
        "beneath": Scale(0, most, 424, 370),
        "top": ticks(0, most, 2)[-1],
        "wide": min(max(0.85 * apart, 0.5), 6.5),
        "beyond": sum(one.accuracy < 0 or one.accuracy > 1 for one in every),
        "rows": [
            [percent(sure), percent(right), percent(error), count(size)]
            for sure, right, size, error in every
        ],
    }


_SMALL, _LARGE, _TOP = 10, 100, 40  # classes: with numbers, all of them, the most frequent
_LEVELS = 9  # shades of a large map
_CAP = 110.0  # pixels of a row's name


@dataclass(frozen=True)
class Heat:
    """Counts ready to draw: what is not known, and the shares of an empty row, are NaN."""

    rows: list[str]
    columns: list[str]
    counts: NDArray[np.float64]
    shares: NDArray[np.float64]  # of the whole row, columns left out included
    most: float  # the largest share
    kept: float  # the share of all counts in these rows and columns

    @property
    def strength(self) -> NDArray[np.float64]:
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

    def strokes(self) -> Iterator[tuple[float, str]]:
        """Draw runs of equal shade as strokes of one unit: 100 by 100 classes stay small."""
        found: dict[int, str] = dict.fromkeys(range(1, _LEVELS + 1), "")
        for i, row in enumerate(self.strength.tolist()):
            start = 0
            for level, run in groupby(0 if v != v else math.ceil(v * _LEVELS) for v in row):
                size = len(list(run))
                if level:
                    found[level] += f"M{start} {i}h{size}"
                start += size
        return ((level / _LEVELS, strokes) for level, strokes in found.items() if strokes)

    def about_row(self, row: int) -> str:
        shares = np.nan_to_num(self.shares[row])
        top = [int(j) for j in np.argsort(-shares, kind="stable")[:3] if shares[j] > 0]
        parts = [f"{clip(self.columns[j], 200)} {percent(shares[j])}" for j in top]
        return f"{clip(self.rows[row], 200)}: {', '.join(parts) or 'nothing'}"


def heat(chart: Matrix) -> Heat:
    """Compute shares and, beyond 100 classes, keep the 40 with the largest counts."""
    shape = len(chart.rows), len(chart.columns)
    counts = np.array([values(row) for row in chart.counts]).reshape(shape)
    counts = np.where(counts < 0, np.nan, counts)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.full(shape, np.nan), where=totals > 0)
    known, places = np.nan_to_num(counts), [np.arange(size) for size in shape]
    if max(shape) > _LARGE:
        totals = [known.sum(1), known.sum(0)]
        if list(chart.rows) == list(chart.columns):  # then the same classes are kept
            totals = [totals[0] + totals[1]] * 2
        places = [np.sort(np.argsort(-total, kind="stable")[:_TOP]) for total in totals]
    (rows, columns), total = places, known.sum()
    shares = shares[np.ix_(rows, columns)]
    return Heat(
        rows=[str(chart.rows[i]) for i in rows.tolist()],
        columns=[str(chart.columns[j]) for j in columns.tolist()],
        counts=counts[np.ix_(rows, columns)],
        shares=shares,
        most=float(np.nan_to_num(shares).max(initial=0.0)) or 1.0,
        kept=float(known[np.ix_(rows, columns)].sum() / total) if total > 0 else math.nan,
    )


def heatmap(chart: Matrix) -> dict[str, Any]:
    """Lay out the map: numbers in the cells while it is small, shades alone when it is large."""
    ready = heat(chart)
    names = [svg.width_of(clip(name, _CAP, 11), 11) + 10 for name in ready.rows]
    left = min(max([svg.width_of(chart.row_label) + 18, *names]), _CAP + 10)
    above = max([0.0, *(svg.width_of(clip(name, 90, 11), 11) for name in ready.columns)])
    upright = above > (NARROW + 50 - left) / max(len(ready.columns), 1) - 4
    top = 24 + (above + 10 if upright else 20)
    high = min(34.0, max(6.0, 640 / max(len(ready.rows), 1)))
    return {"heat": ready, "left": left, "top": top, "high": high, "upright": upright}


def ranks(part: Ranks, colours: Mapping[str, int]) -> dict[str, Any]:
    """Lay out a row for each approach, and beside the rows the bars, those that overlap apart."""
    found = values(part.ranks)
    low, high = svg.reach(found, margin=0.06)
    names = [svg.width_of(clip(name, _CAP)) + 12 for name in part.names]
    told = [[p_value(p)] for p in part.p_values] or [[]] * len(names)
    return {
        "ranks": found.tolist(),
        "x": Scale(low, high, 0, 100),
        "marks": svg.marks(low, high, 6),
        "left": max([20.0, *names]),
        "cap": _CAP,
        "colours": [colours.get(one, 0) for one in part.families] or [0] * len(names),
        "bars": lanes(part.groups),
        "rows": [
            [n, number(round(r, 2)), *p] for n, r, p in zip(part.names, found, told, strict=True)
        ],
    }


def lanes(groups: Sequence[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Give each bar (first and last row) the first lane in which it touches no other."""
    ends: list[int] = []  # the last row of each lane
    found = []
    for first, last in groups:
        lane = next((place for place, end in enumerate(ends) if end < first), len(ends))
        ends[lane : lane + 1] = [last]
        found.append((first, last, lane))
    return found


class Bar(NamedTuple):
    """One row: a dot at `mean`, a bar of ± `error`, a tick for each trial."""

    name: str
    mean: float | None
    error: float | None
    trials: Numbers
    colour: int

    @property
    def reach(self) -> NDArray[np.float64]:
        """All that a scale must hold."""
        mean, error = values([self.mean, self.error])
        return np.array([mean, mean - error, mean + error, *values(self.trials)])


def dots(bars: Sequence[Bar], start: float, end: float, most: int, unit: str) -> dict[str, Any]:
    """Return what pictures of several bars share: a scale that holds them, and its ticks."""
    low, high = svg.reach(*(bar.reach for bar in bars), margin=0.04)
    return {"scale": Scale(low, high, start, end), "places": svg.marks(low, high, most, unit)}


COLOURS = 8  # the style sheet has as many: c0 … c7
_DASHES = (None, "7 3", "2 3", "10 3 2 3", "4 2", "12 3 2 3 2 3")
_HEAD, _FOOT = 30.0, 46.0  # pixels above and below the plot
_GAP = 15  # pixels from one name to the next
_FAR = 45  # pixels beyond which a stroke leads nowhere; the script has the same number
_ROOM = 104.0  # pixels for a name
_ERROR, _FAINT = 0.4, 1.5  # pixels that a drawn line and the edge of a band may be off
_COLUMNS = 300  # stretches of a very long curve, of which only the extremes are drawn


def end_of(line: Line, otherwise: float) -> float:
    mean = values(line.mean)
    known = mean[np.isfinite(mean)]
    return float(known[-1]) if len(known) else otherwise


def last_of(line: Line, unit: str) -> str:
    last = end_of(line, float("nan"))
    return percent(last) if unit == "percent" else number(last)


def style_of(chart: Curves, place: int, colours: Mapping[str, int]) -> tuple[int, str | None]:
    """Return colour and dashes: families share a colour, their members differ in dashes."""
    family = chart.lines[place].family
    earlier = sum(line.family == family for line in chart.lines[:place])
    if family:
        return colours.get(family, 0) % COLOURS, _DASHES[earlier % len(_DASHES)]
    return earlier % COLOURS, _DASHES[earlier // COLOURS % len(_DASHES)]


def thinned(x: NDArray[np.float64], y: NDArray[np.float64], error: float) -> NDArray[np.intp]:
    """Choose points so that lines through them are never more than `error` off in `y`.

    Of a very long curve first the extremes of each stretch: more no screen can show.
    """
    places = _extremes(y)
    known = np.isfinite(x[places]) & np.isfinite(y[places])
    cuts = np.flatnonzero(np.diff(known.astype(np.int8))) + 1
    keep: list[int] = []
    for run, drawn in zip(np.split(places, cuts), np.split(known, cuts), strict=True):
        if len(run) > 2 and drawn[0] and (np.diff(x[run]) > 0).all():
            keep += _followed(x[run], y[run], run, error)
        else:
            keep += run.tolist() if drawn.any() else run[:1].tolist()
    return np.array(keep, np.intp)


def _extremes(y: NDArray[np.float64]) -> NDArray[np.intp]:
    every = np.arange(len(y))
    if len(y) <= 2 * _COLUMNS:
        return every
    keep = [0, len(y) - 1]
    for stretch in np.array_split(every, _COLUMNS):
        known = stretch[np.isfinite(y[stretch])]
        keep += [known[y[known].argmin()], known[y[known].argmax()]] if len(known) else [stretch[0]]
        keep += [stretch[~np.isfinite(y[stretch])][0]] if len(known) < len(stretch) else []
    return np.unique(keep)


def _followed(
    x: NDArray[np.float64], y: NDArray[np.float64], run: NDArray[np.intp], error: float
) -> list[int]:
    """Split a run at the point farthest from a straight line until none is too far."""
    keep, waiting = {0, len(run) - 1}, [(0, len(run) - 1)]
    while waiting:
        first, last = waiting.pop()
        if last - first < 2:
            continue
        inside, slope = slice(first + 1, last), (y[last] - y[first]) / (x[last] - x[first])
        off = np.abs(y[inside] - (slope * (x[inside] - x[first]) + y[first]))
        if off.max() > error:
            middle = first + 1 + int(off.argmax())
            keep.add(middle)
            waiting += [(first, middle), (middle, last)]
    return [int(run[place]) for place in sorted(keep)]


def curve_view(
    part: Curves, height: float, colours: Mapping[str, int], on: Collection[str]
) -> dict[str, Any]:
    """Lay every line out; those named in `on` are in colour, with their names where they end."""
    low, high = svg.reach(values(part.y_range)) if part.y_range else _reach(part)
    room = min(_ROOM, max([0.0, *(svg.width_of(clip(line.name, _ROOM)) for line in part.lines)]))
    first, last = svg.reach(*(values(line.x) for line in part.lines))
    x, y = Scale(first, last, 0, 100), Scale(low, high, height - _FOOT, _HEAD)
    return {
        "height": height,
        "x": x,
        "y": y,
        "room": room,
        "gap": _GAP,
        "far": _FAR,  # the script has both, too
        "marks": svg.marks(low, high, 6 if height > 280 else 5, part.unit),
        "below": svg.marks(first, last, 8),
        "lines": _lines(part, x, y, colours, on),
    }


def _reach(part: Curves) -> tuple[float, float]:
    """Find where the vertical axis ends: bands count unless they are far wider than the means."""
    means = [values(line.mean) for line in part.lines]
    bands = [values(side) for line in part.lines for side in (line.low, line.high)]
    low, high = svg.reach(*means, *bands)
    inner = svg.reach(*means)
    if high - low > 3 * (inner[1] - inner[0]):
        low, high = inner[0] - (inner[1] - inner[0]), inner[1] + (inner[1] - inner[0])
    floor, top = (0.0, 1.0) if part.unit == "percent" else (-np.inf, np.inf)
    margin = 0.03 * (high - low)  # but none that shows shares below 0 or above 1
    return (
        max(low - margin, floor) if low >= floor else low - margin,
        min(high + margin, top) if high <= top else high + margin,
    )


def _lines(
    part: Curves, x: Scale, y: Scale, colours: Mapping[str, int], on: Collection[str]
) -> list[dict[str, Any]]:
    lasts = [end_of(line, np.nan) for line in part.lines]
    ends = [None if last != last else y.inside(last) for last in lasts]
    lit = [i for i, line in enumerate(part.lines) if line.name in on and ends[i] is not None]
    lit = lit[: int((y.start - y.end) // _GAP)]
    spots = svg.spread([ends[place] or 0.0 for place in lit], _GAP, y.end, y.start)
    placed = dict(zip(lit, spots, strict=True))
    return [
        {"place": place, "name": line.name, "family": line.family, "on": line.name in on}
        | {"last": last_of(line, part.unit), "end": ends[place], "spot": placed.get(place)}
        | dict(zip(("colour", "dash"), style_of(part, place, colours), strict=True))
        | _shapes(line, x, y)
        for place, line in enumerate(part.lines)
    ]


def _shapes(line: Line, x: Scale, y: Scale) -> dict[str, Any]:
    wide, mean = STRETCH / 100 * x.all(values(line.x)), y.all(values(line.mean))
    low, high = (y.all(values(side)) for side in (line.low, line.high))
    keep = thinned(wide, mean, _ERROR)
    known = np.r_[False, np.isfinite(wide) & np.isfinite(mean), False]
    alone = np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])  # which no line shows
    return {
        "stroke": svg.path(wide[keep], mean[keep]),
        "band": _band(wide, low, high) if len(line.low) else None,
        "alone": [(f"{wide[i] * 100 / STRETCH:.2f}%", mean[i]) for i in alone],
    }


def _band(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Outline the area between two curves, piece by piece where both are known."""
    known = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    cuts = np.flatnonzero(np.diff(known.astype(np.int8))) + 1
    outlines = []
    for piece in np.split(np.arange(len(x)), cuts):
        if len(piece) and known[piece[0]]:
            upper = piece[thinned(x[piece], high[piece], _FAINT)]
            lower = piece[thinned(x[piece], low[piece], _FAINT)][::-1]
            edge = svg.path(np.r_[x[upper], x[lower]], np.r_[high[upper], low[lower]].round())
            outlines.append(f"{edge}z")
    return "".join(outlines)
