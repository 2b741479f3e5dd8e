"""Learning curves with bands and names at their ends, and what their legend says."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.report import svg
from ruleout.report.number_format import number, percent, values
from ruleout.report.parts import Curves, Line
from ruleout.report.svg import STRETCH, Scale, clip

COLOURS = 8  # the style sheet has as many: c0 … c7
_DASHES = (None, "7 3", "2 3", "10 3 2 3", "4 2", "12 3 2 3 2 3")
_TOP, _FOOT = 30.0, 46.0  # pixels above and below the plot
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
        inside, ends = slice(first, last + 1), [first, last]
        off = np.abs(y[inside] - np.interp(x[inside], x[ends], y[ends]))
        if off.max() > error:
            middle = first + int(off.argmax())
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
    x, y = Scale(first, last, 0, 100), Scale(low, high, height - _FOOT, _TOP)
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
