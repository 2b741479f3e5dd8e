"""Learning curves with bands and names at their ends."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report.formats import labels, number, percent, values
from ruleout.report.parts import Curves, Line
from ruleout.report.svg import (
    Scale,
    across,
    along,
    canvas,
    clip,
    gutter,
    path,
    reach,
    spread,
    tag,
    ticks,
    width_of,
)

_GAP = 15  # pixels from one label to the next
_FAR = 45  # pixels beyond which a stroke leads nowhere; the script has the same number


@dataclass(frozen=True)
class _Plot:
    x: Scale
    y: Scale
    unit: str
    key: str
    points: int  # most points of a line
    still: bool  # no legend beside it
    room: float  # for the labels on the right


def curves(
    chart: Curves,
    *,
    key: str,
    kind: str,
    size: tuple[float, float],
    colours: Mapping[str, int],
    on: Collection[str],
    points: int | None = None,
) -> Markup:
    """Draw every line; those named in `on` in colour, with their names where they end.

    Parameters
    ----------
    chart
        The numbers.
    key
        A prefix for ids, unique on the page; ``key`` and the place of a line tie it to the legend.
    kind
        The class of the picture: ``"wide"`` or ``"narrow"``.
    size
        Width and height in pixels.
    colours
        The colour of each family.
    on
        The names to highlight.
    points
        The most points of a line, in a picture that stands without a legend and answers no script.
    """
    low, high = reach(values(chart.y_range)) if chart.y_range else _reach(chart)
    rows = ticks(low, high, 6 if size[1] > 280 else 5)
    named = list(zip(rows, labels(rows, chart.unit), strict=True))
    left = gutter([label for _, label in named])
    cap = size[0] * (0.2 if kind == "wide" else 0.24)
    room = min(cap, max([0.0, *(width_of(clip(line.name, cap)) for line in chart.lines)]))
    first, last = reach(*(values(line.x) for line in chart.lines))
    plot = _Plot(
        Scale(first, last, left, size[0] - room - 20),
        Scale(low, high, size[1] - 46, 30),
        chart.unit,
        f"{key}-{kind[0]}",
        points or (160 if kind == "wide" else 80),
        points is not None,
        room,
    )
    steps = ticks(first, last, 8 if kind == "wide" else 4)
    below = list(zip(steps, labels(steps), strict=True))
    frame = [
        across(plot.y, named, plot.x.start, plot.x.end),
        along(plot.x, below, plot.y.start, chart.x_label),
        tag("text", clip(chart.y_label, size[0] - 10), x=0, y=14, class_="name"),
        _window(plot),
    ]
    parts = [*frame, *_lines(chart, plot, key, colours, on)]
    ends = f"{_GAP} {plot.y.end:g} {plot.y.start:g}"  # the script moves names by the same rule
    data = None if plot.still else ends
    return canvas(plot.key, kind, size, chart.title, _about(chart, plot), parts, data_ends=data)


def _about(chart: Curves, plot: _Plot) -> str:
    if not plot.still:
        return f"{len(chart.lines)} lines over {chart.x_label}; their last values are listed below."
    ends = [f"{line.name} ends at {last_of(line, plot.unit)}" for line in chart.lines]
    return f"Over {chart.x_label}: {', '.join(ends)}."


def _reach(chart: Curves) -> tuple[float, float]:
    """Find where the vertical axis ends: bands count unless they are far wider than the means."""
    means = [values(line.mean) for line in chart.lines]
    bands = [values(side) for line in chart.lines for side in (line.low, line.high)]
    low, high = reach(*means, *bands)
    inner = reach(*means)
    if high - low > 3 * (inner[1] - inner[0]):
        low, high = inner[0] - (inner[1] - inner[0]), inner[1] + (inner[1] - inner[0])
    floor, top = (0.0, 1.0) if chart.unit == "percent" else (-np.inf, np.inf)
    margin = 0.03 * (high - low)  # but none that shows shares below 0 or above 1
    return (
        max(low - margin, floor) if low >= floor else low - margin,
        min(high + margin, top) if high <= top else high + margin,
    )


def _window(plot: _Plot) -> Markup:
    """Keep lines inside the axes when the caller chose where those end."""
    width, height = plot.x.end - plot.x.start, plot.y.start - plot.y.end
    frame = tag("rect", x=plot.x.start - 4, y=plot.y.end - 4, width=width + 8, height=height + 8)
    return tag("clipPath", frame, id=f"{plot.key}-c")


def _lines(
    chart: Curves, plot: _Plot, key: str, colours: Mapping[str, int], on: Collection[str]
) -> list[Markup]:
    """Draw the lines, those in colour last and so on top."""
    ends = [_end(line, plot) for line in chart.lines]
    lit = [
        place
        for place, line in enumerate(chart.lines)
        if line.name in on and ends[place] is not None
    ]
    lit = lit[: int((plot.y.start - plot.y.end) // _GAP)]
    spots = spread([ends[place] or 0.0 for place in lit], _GAP, plot.y.end, plot.y.start)
    placed = dict(zip(lit, spots, strict=True))
    drawn = []
    for place, line in enumerate(chart.lines):
        colour, dash = style_of(chart, place, colours)
        group = tag(
            "g",
            tag("title", f"{line.name}: {last_of(line, plot.unit)}"),
            *_shapes(line, plot, place, dash),
            *_name(line, plot, ends[place], placed.get(place)),
            class_=f"line c{colour}" + (" on" if line.name in on else ""),
            data_line=None if plot.still else f"{key}-{place}",
        )
        drawn.append((line.name in on, group))
    return [group for _, group in sorted(drawn, key=lambda pair: pair[0])]


def _shapes(line: Line, plot: _Plot, place: int, dash: str | None) -> list[Markup]:
    choose = closest if plot.still else extremes
    keep = choose(values(line.mean), plot.points)
    x, y = plot.x.all(values(line.x)[keep]), plot.y.all(values(line.mean)[keep])
    inside = f"url(#{plot.key}-c)"
    shapes = []
    if len(line.low):
        low, high = (plot.y.all(values(side)[keep]) for side in (line.low, line.high))
        rough = np.round if plot.still else np.asarray  # a faint area needs no tenth of a pixel
        outline = _band(rough(x), rough(low), rough(high))
        shapes = [tag("path", d=outline, class_="band", clip_path=inside)]
    name = None if plot.still else f"{plot.key}-{place}"
    stroke = tag("path", d=path(x, y), id=name)
    shapes.append(tag("g", stroke, class_="stroke", clip_path=inside, stroke_dasharray=dash))
    shapes += [tag("circle", cx=x[i], cy=y[i], r=3, class_="lone") for i in _alone(x, y)]
    return [*shapes, tag("use", href=f"#{name}", class_="hit")] if name else shapes


def _alone(x: NDArray[np.float64], y: NDArray[np.float64]) -> list[int]:
    """Return the points without neighbours, which no line shows."""
    known = np.r_[False, np.isfinite(x) & np.isfinite(y), False]
    return [int(i) for i in np.flatnonzero(known[1:-1] & ~known[:-2] & ~known[2:])]


def _band(x: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> str:
    """Outline the area between two curves, piece by piece where both are known."""
    known = np.isfinite(x) & np.isfinite(low) & np.isfinite(high)
    cuts = np.flatnonzero(np.diff(known.astype(np.int8))) + 1
    pieces = [
        piece for piece in np.split(np.arange(len(x)), cuts) if len(piece) and known[piece[0]]
    ]
    outlines = [path(np.r_[x[i], x[i][::-1]], np.r_[high[i], low[i][::-1]]) + "z" for i in pieces]
    return "".join(outlines)


def _end(line: Line, plot: _Plot) -> float | None:
    """Return the height at which a line ends, None where it has no point."""
    last = end_of(line, np.nan)
    return None if last != last else min(max(plot.y(last), plot.y.end), plot.y.start)


def _name(line: Line, plot: _Plot, end: float | None, spot: float | None) -> list[Markup]:
    """Write the name beside the end of its line, with a short stroke that leads there."""
    if end is None:
        return []
    x, y = plot.x.end, end if spot is None else spot
    lead = f"M{x + 3:.1f} {end:.1f}L{x + 15:.1f} {y:.1f}" if abs(y - end) <= _FAR else ""
    leader = tag("path", d=lead, class_="leader")
    name = clip(line.name, plot.room)
    placed = "end" if spot is None else "end placed"
    return [leader, tag("text", name, x=x + 18, y=y + 4, class_=placed, data_end=end)]


COLOURS = 8  # the style sheet has as many: c0 … c7
_DASHES = (None, "7 3", "2 3", "10 3 2 3", "4 2", "12 3 2 3 2 3")


def end_of(line: Line, otherwise: float) -> float:
    """Return the last value that is known.

    >>> end_of(Line("log", x=[1, 2, 3], mean=[0.5, 0.9, None]), 0.0)
    0.9
    """
    mean = values(line.mean)
    known = mean[np.isfinite(mean)]
    return float(known[-1]) if len(known) else otherwise


def last_of(line: Line, unit: str) -> str:
    """Say where a line ends.

    >>> last_of(Line("log", x=[1, 2], mean=[0.5, 0.934]), "percent")
    '93.4 %'
    """
    last = end_of(line, float("nan"))
    return percent(last) if unit == "percent" else number(last)


def style_of(chart: Curves, place: int, colours: Mapping[str, int]) -> tuple[int, str | None]:
    """Return colour and dashes: families share a colour, their members differ in dashes."""
    family = chart.lines[place].family
    earlier = sum(line.family == family for line in chart.lines[:place])
    if family:
        return colours.get(family, 0) % COLOURS, _DASHES[earlier % len(_DASHES)]
    return earlier % COLOURS, _DASHES[earlier // COLOURS % len(_DASHES)]


def swatch(colour: int, dash: str | None) -> Markup:
    """Draw a sample of a line for the legend.

    >>> print(swatch(2, "7 3"))
    <svg class="swatch c2" viewBox="0 0 24 8" aria-hidden="true"><path d="M1 4H23"
    stroke-dasharray="7 3"/></svg>
    """
    stroke = tag("path", d="M1 4H23", stroke_dasharray=dash)
    return tag("svg", stroke, class_=f"swatch c{colour}", viewBox="0 0 24 8", aria_hidden="true")


def extremes(mean: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Choose points worth drawing: from each stretch the lowest and the highest, and both ends."""
    if len(mean) <= most:
        return np.arange(len(mean))
    keep = [0, len(mean) - 1]
    for stretch in np.array_split(np.arange(len(mean)), most // 2 - 1):
        inside = stretch[np.isfinite(mean[stretch])]
        keep += (
            [inside[mean[inside].argmin()], inside[mean[inside].argmax()]]
            if len(inside)
            else [stretch[0]]
        )
    return np.unique(keep)


def closest(mean: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Choose the points that follow a curve best: always the one farthest from what is drawn.

    >>> closest(np.array([0.0, 0, 0, 5, 5, 5]), 4).tolist()
    [0, 2, 3, 5]
    """
    places = np.arange(len(mean))
    if len(mean) <= most or not np.isfinite(mean).all():
        return extremes(mean, most)
    keep = [0, len(mean) - 1]
    while len(keep) < most:
        drawn = np.interp(places, keep, mean[keep])
        keep = sorted({*keep, int(np.abs(mean - drawn).argmax())})
        if np.array_equal(drawn, mean):
            break
    return np.array(keep)
