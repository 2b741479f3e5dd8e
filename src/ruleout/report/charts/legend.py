"""How each line looks, and what its legend says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from markupsafe import Markup

from ruleout.report.formats import number, percent, values
from ruleout.report.parts import Curves, Line
from ruleout.report.svg import tag

__all__ = ["COLOURS", "end_of", "last_of", "style_of", "swatch"]

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
