"""Means with their errors and trials, one above the other on one axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from ruleout.report.formats import labels, values
from ruleout.report.scales import Scale, reach, ticks
from ruleout.report.svg import tag

__all__ = ["Bar", "beside"]

_WIDTH, _ROW, _LEFT = 360.0, 26.0, 46.0  # pixels


class Bar(NamedTuple):
    """One row: a dot at `mean`, a bar of ± `error`, a tick for each trial."""

    name: str
    mean: float | None
    error: float | None
    trials: Sequence[float | None]
    colour: int


def beside(bars: Sequence[Bar]) -> Markup:
    """Draw the rows. The numbers stand in the text, so it is hidden from screen readers.

    >>> print(beside([Bar("ours", 0.9, 0.01, [0.89, 0.91], 0)]).count("<circle"))
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
