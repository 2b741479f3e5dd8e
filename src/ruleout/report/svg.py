"""SVG: escaped pieces, scales from numbers to places, axes.

A chart has no width of its own: across it places are percentages, while text and heights are
pixels. So one picture fills a desk and a phone, and its letters stay as they are.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import category, east_asian_width

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

NARROW = 300.0  # pixels of a plot on a phone: what texts must fit into
STRETCH = 1000  # units across a stretched plot
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(value: object) -> str:
    """Replace what no page can carry: control characters and halves of surrogate pairs."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Write one element; ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``."""
    pairs = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(_short(value)))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    inside = "".join(c if isinstance(c, Markup) else escape(clean(c)) for c in children)
    end = f">{inside}</{name}>" if children else "/>"
    return Markup(f"<{name}{''.join(pairs)}{end}")


def chart(
    key: str,
    title: str,
    about: str,
    height: float,
    parts: Iterable[Markup],
    *,
    left: float = 0.0,
    right: float = 0.0,
    kind: str = "",
    **more: object,
) -> Markup:
    """Write a whole picture that says in words what it shows.

    `left` and `right` are pixels beside the plot for labels; the style sheet has a class for every
    ten of them.
    """
    classes = ["chart", f"left{math.ceil(left / 10)}", f"right{math.ceil(right / 10)}", kind]
    return tag(
        "svg",
        tag("title", title, id=f"{key}-t"),
        tag("desc", about, id=f"{key}-d"),
        *parts,
        class_=" ".join(filter(None, classes)),
        height=height,
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        **more,
    )


def stretched(
    *parts: Markup, top: float, height: float, units: tuple[float, float], start: float = 0.0
) -> Markup:
    """Stretch what is drawn in `units` over the width of the plot and over `height` pixels.

    What lies outside is cut off. Strokes keep their width where the style sheet says so.
    """
    box = f"0 {_short(start)} {_short(units[0])} {_short(units[1])}"
    return tag(
        "svg", *parts, y=top, width="100%", height=height, viewBox=box, preserveAspectRatio="none"
    )


def at(place: str, *parts: Markup) -> Markup:
    """Put what is drawn in pixels at a percentage of the width."""
    return tag("svg", *parts, x=place, overflow="visible")


def path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Draw straight lines through points, each from the one before; a missing one interrupts."""
    text: list[str] = []
    before: tuple[float, float] | None = None
    for a, b in zip(x.round(1).tolist(), y.round(1).tolist(), strict=True):
        if a != a or b != b:
            before = None
            continue
        by = (a, b) if before is None else (a - before[0], b - before[1])
        text.append(f"{'l' if before else 'M'}{_short(by[0])} {_short(by[1])}")
        before = a, b
    return "".join(text)


def _short(value: object) -> str:
    """Write a number in a tenth of a pixel."""
    if isinstance(value, float):
        shown = f"{value:.1f}"
        return shown[:-2].replace("-0", "0") if shown.endswith(".0") else shown
    return str(value)


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

    def centre(members: list[int]) -> float:
        half = gap * (len(members) - 1) / 2
        mean = sum(wanted[m] for m in members) / len(members)
        return max(low + half, min(high - half, mean))

    groups: list[list[int]] = []  # labels that touch, from top to bottom
    for place in sorted(range(len(wanted)), key=lambda place: wanted[place]):
        new = [place]
        while groups:
            room = gap * (len(new) + len(groups[-1])) / 2
            if centre(new) - centre(groups[-1]) >= room:
                break
            new = groups.pop() + new
        groups.append(new)
    placed = {m: centre(g) + gap * (i - (len(g) - 1) / 2) for g in groups for i, m in enumerate(g)}
    return [placed[place] for place in range(len(wanted))]


Places = Sequence[tuple[float, str]]


def gutter(places: Places, least: float = 28) -> float:
    """Return how many pixels the labels of a vertical axis take."""
    widest = max([least, *(width_of(label) + 10 for _, label in places)])
    return 10.0 * math.ceil(widest / 10)  # as the style sheet has it


def across(scale: Scale, places: Places) -> Markup:
    """Draw horizontal grid lines with their labels on the left."""
    lines = [tag("line", x2="100%", y1=scale(v), y2=scale(v)) for v, _ in places]
    labels = [tag("text", label, x=-8, y=scale(value) + 4) for value, label in places]
    return tag("g", *lines, class_="grid") + tag("g", *labels, class_="tick", text_anchor="end")


def along(
    scale: Scale, places: Places, y: float, name: str, *, marks: bool = True, narrow: float = NARROW
) -> Markup:
    """Draw the horizontal axis with its labels and its name beneath.

    Where labels would touch on a phone, where the plot is `narrow` pixels wide, those in between
    are hidden there.
    """
    widest = max([8.0, *(width_of(label) for _, label in places)]) + 12
    kept = set(thin(len(places), int(narrow // widest)))
    axis = [tag("line", x2="100%", y1=y, y2=y)]
    if marks:
        spots = [scale.percent(value) for value, _ in places]
        axis += [tag("line", x1=spot, x2=spot, y1=y, y2=y + 4) for spot in spots]
    labels = [
        tag("text", label, x=scale.percent(v), y=y + 18, class_=None if place in kept else "spare")
        for place, (v, label) in enumerate(places)
    ]
    shown = clip(name, NARROW)
    middle = tag("text", shown, x="50%", y=y + 37, text_anchor="middle", class_="name")
    names = tag("g", *labels, class_="tick", text_anchor="middle")
    return tag("g", *axis, class_="axis") + names + middle
