"""Small pieces of SVG: every name, attribute and text in them is escaped here."""

from __future__ import annotations

import re
from collections.abc import Iterable
from unicodedata import category, east_asian_width

import numpy as np
from markupsafe import Markup, escape
from numpy.typing import NDArray

__all__ = ["canvas", "clean", "clip", "path", "tag", "width_of"]

_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def clean(value: object) -> str:
    r"""Replace what no page can carry: control characters and halves of surrogate pairs.

    >>> clean("a\x00b")
    'a\ufffdb'
    """
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", str(value))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """Write one element; ``class_`` and ``stroke_width`` become ``class`` and ``stroke-width``.

    >>> print(tag("text", "a < b", x=1.25, text_anchor="end"))
    <text x="1.2" text-anchor="end">a &lt; b</text>
    >>> print(tag("path", d="M0 0", class_=None))
    <path d="M0 0"/>
    """
    pairs = [
        f' {key.rstrip("_").replace("_", "-")}="{escape(clean(_short(value)))}"'
        for key, value in attributes.items()
        if value is not None
    ]
    inside = "".join(c if isinstance(c, Markup) else escape(clean(c)) for c in children)
    end = f">{inside}</{name}>" if children else "/>"
    return Markup(f"<{name}{''.join(pairs)}{end}")


def canvas(
    key: str,
    kind: str,
    size: tuple[float, float],
    title: str,
    about: str,
    parts: Iterable[Markup],
    **more: object,
) -> Markup:
    """Write a whole picture that says in words what it shows.

    >>> print(canvas("c1", "wide", (20, 10), "Sizes", "3 bars", []))
    <svg class="wide" viewBox="0 0 20 10" role="img" aria-labelledby="c1-t c1-d"><title
    id="c1-t">Sizes</title><desc id="c1-d">3 bars</desc></svg>
    """
    return tag(
        "svg",
        tag("title", title, id=f"{key}-t"),
        tag("desc", about, id=f"{key}-d"),
        *parts,
        class_=kind,
        viewBox=f"0 0 {_short(size[0])} {_short(size[1])}",
        role="img",
        aria_labelledby=f"{key}-t {key}-d",
        **more,
    )


def path(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:
    """Draw straight lines through points, each from the one before; a missing one interrupts.

    >>> nan = float("nan")
    >>> path(np.array([0.0, 1, 2, 3]), np.array([5.0, 4.25, nan, 4]))
    'M0 5l1-.8M3 4'
    """
    text, before = [], None
    for a, b in zip(x.tolist(), y.tolist(), strict=True):
        here = (_tenths(a), _tenths(b)) if a == a and b == b else None
        if here and before:
            text.append(f"l{_pair(here[0] - before[0], here[1] - before[1])}")
        elif here:
            text.append(f"M{_pair(*here)}")
        before = here
    return "".join(text)


def width_of(text: str, size: float = 12) -> float:
    """Estimate how wide a text is in pixels, rather too wide than too narrow.

    >>> width_of("log") < width_of("汉字汉字")
    True
    """
    return size * sum(_advance(sign) for sign in text)


def clip(text: object, most: float, size: float = 12) -> str:
    """Shorten a text to `most` pixels, and bring it to one line.

    >>> clip("a name that goes on", 60)
    'a name…'
    """
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


def _tenths(value: float) -> int:
    return round(10 * float(f"{value:.1f}"))


def _pair(a: int, b: int) -> str:
    """Write two numbers, given in tenths, in as few signs as a path allows.

    >>> _pair(5, -12), _pair(100, 0)
    ('.5-1.2', '10 0')
    """
    first, second = _decimal(a), _decimal(b)
    return f"{first}{second}" if b < 0 else f"{first} {second}"


def _decimal(tenths: int) -> str:
    whole, part = divmod(abs(tenths), 10)
    shown = f"{whole or ''}.{part}" if part else str(whole)
    return f"-{shown}" if tenths < 0 else shown


def _short(value: object) -> str:
    """Write a number in a tenth of a pixel."""
    if isinstance(value, float):
        shown = f"{value:.1f}"
        return shown[:-2].replace("-0", "0") if shown.endswith(".0") else shown
    return str(value)
