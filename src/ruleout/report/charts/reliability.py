"""Confidence against accuracy, with the number of rows behind every point."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from markupsafe import Markup

from ruleout.report.charts.axes import across, along
from ruleout.report.formats import compact, count, percent, values
from ruleout.report.parts import Reliability
from ruleout.report.scales import Scale, ticks
from ruleout.report.svg import canvas, tag

__all__ = ["outside", "reliability"]

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
