"""SVG: templates that escape what they are given, scales from numbers to places, axes.

A chart has no width of its own: across it places are percentages, while text and heights are
pixels. So one picture fills a desk and a phone, and its letters stay as they are.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from unicodedata import category, east_asian_width

import numpy as np
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report import number_format
from ruleout.report.number_format import known, labels

NARROW = 300.0  # pixels of a plot on a phone: what texts must fit into
STRETCH = 1000  # units across a stretched plot
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(value: object) -> str:
    """Replace what no page can carry: control characters and halves of surrogate pairs."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))


def short(value: object) -> str:
    """Write a number in a tenth of a pixel."""
    if isinstance(value, float):
        shown = f"{value:.1f}"
        return shown[:-2].replace("-0", "0") if shown.endswith(".0") else shown
    return str(value)


def path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Draw straight lines through points, each from the one before; a missing one interrupts."""
    text: list[str] = []
    before: tuple[float, float] | None = None
    for a, b in zip(x.round(1).tolist(), y.round(1).tolist(), strict=True):
        if a != a or b != b:
            before = None
            continue
        by = (a, b) if before is None else (a - before[0], b - before[1])
        text.append(f"{'l' if before else 'M'}{short(by[0])} {short(by[1])}")
        before = a, b
    return "".join(text)


def width_of(text: str, size: float = 12) -> float:
    """Estimate how wide a text is in pixels, rather too wide than too narrow."""
    return size * sum(_advance(sign) for sign in text)


def clip(text: object, most: float, size: float = 12) -> str:
    """Shorten a text to `most` pixels, and bring it to one line."""
    line = " ".join(clean(text).split())
    if width_of(line, size) <= most:
        return line
    room = most - size * 0.8
    for place, sign in enumerate(line):
        room -= size * _advance(sign)
        if room < 0:
            return f"{line[:place].rstrip()}…"
    return line


def _advance(sign: str) -> float:
    if category(sign) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(sign) in "WF":
        return 1.05
    return 0.36 if sign in "ijltfrI.,:;|!'()[] " else 0.86 if sign in "mwMW@%—" else 0.62


@dataclass(frozen=True)
class Scale:
    """A straight map: `low` lies at `start`, `high` at `end`, pixels or percent."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def percent(self, value: float) -> str:
        """Return the place of a value as SVG writes a share of the width."""
        return percent(self(value))

    def inside(self, value: float) -> float:
        """Return the place of a value, or the end that it lies beyond."""
        return self(min(max(value, self.low), self.high))

    def all(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the places of many, none of them absurdly far away."""
        shares = (values - self.low) / (self.high - self.low)
        return np.clip(self.start + shares * (self.end - self.start), -1e5, 1e5)


def percent(value: float) -> str:
    return f"{value + 0:.2f}".rstrip("0").rstrip(".").replace("-0", "0", value > -0.005) + "%"


def reach(*columns: NDArray[np.float64], margin: float = 0.0) -> tuple[float, float]:
    """Return the lowest and the highest number, apart even where there is but one, or none."""
    every = np.concatenate(columns) if columns else np.array([])
    every = every[np.isfinite(every)]
    if not len(every):
        return 0.0, 1.0
    low, high = float(every.min()), float(every.max())
    size = max(abs(low), abs(high))
    if high - low <= max(1e-9 * size, 1e-99):
        apart = size / 4 if size > 1e-99 else 1.0
        return low - apart, high + apart
    return low - margin * (high - low), high + margin * (high - low)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers from `low` to `high`, at most `most`."""
    raw = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 2.5, 5, 10, 20):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    return [float(f"{place * step:.12g}") for place in range(first, last + 1)]


def thin(size: int, most: int) -> range:
    """Choose at most `most` of `size` places, evenly."""
    return range(0, size, max(1, math.ceil(size / max(most, 1))))


def spread(wanted: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move labels apart until they lie at least `gap` from each other, near where they belong."""
    from scipy.optimize import isotonic_regression  # late: few pages move labels

    order, steps = np.argsort(wanted, kind="stable"), gap * np.arange(len(wanted))
    level = isotonic_regression(np.take(wanted, order) - steps).x if len(wanted) else steps
    placed = np.empty(len(wanted))
    placed[order] = np.clip(level, low, high - gap * (len(wanted) - 1)) + steps
    return list(placed.tolist())


Places = Sequence[tuple[float, str]]


def gutter(places: Places, least: float = 28) -> float:
    """Return how many pixels the labels of a vertical axis take."""
    widest = max([least, *(width_of(label) + 10 for _, label in places)])
    return 10.0 * math.ceil(widest / 10)  # as the style sheet has it


def marks(low: float, high: float, most: int, unit: str = "number") -> Places:
    """Return the ticks of an axis with their labels."""
    found = ticks(low, high, most)
    return list(zip(found, labels(found, unit), strict=True))


def spared(places: Places, narrow: float) -> set[int]:
    """Tell which labels to hide where the plot is `narrow` pixels wide, since they would touch."""
    widest = max([8.0, *(width_of(label) for _, label in places)]) + 12
    return {*range(len(places))} - {*thin(len(places), int(narrow // widest))}


@cache
def _templates(folder: str) -> Environment:
    """Return the templates of a folder of the package, with those that all pictures share."""
    folders = dict.fromkeys([folder, "report/templates"])
    made = Environment(
        loader=ChoiceLoader([PackageLoader("ruleout", one) for one in folders]),
        autoescape=lambda name: not str(name).endswith(".tex"),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else clean(short(value)),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals |= {"NARROW": NARROW, "STRETCH": STRETCH, "spared": spared, "thin": thin}
    spelt = ("compact", "count", "number", "percent", "points", "signed", "text")
    made.filters |= {name: getattr(number_format, name) for name in spelt}
    made.filters |= {"clip": clip, "place": percent, "gutter": gutter}
    made.tests["known"] = known
    return made


def fill(template: str, folder: str = "report/templates", **names: Any) -> Markup:
    """Fill a template: numbers are pixels, and all that is not markup already is escaped."""
    return Markup(_templates(folder).get_template(template).render(names))
