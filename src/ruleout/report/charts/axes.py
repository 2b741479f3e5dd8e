"""What charts share: grid lines and the two axes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ruleout.report.scales import Scale
from ruleout.report.svg import clip, tag, width_of

__all__ = ["across", "along", "gutter"]


def gutter(labels: Sequence[str], least: float = 28) -> float:
    """Return how much room the labels of a vertical axis take.

    >>> gutter(["0", "50"])
    28
    """
    return max([least, *(width_of(label, 12) + 10 for label in labels)])


def across(scale: Scale, places: Sequence[tuple[float, str]], left: float, right: float) -> Markup:
    """Draw horizontal grid lines with their labels on the left."""
    lines = [
        tag("line", x1=left, x2=right, y1=scale(value), y2=scale(value)) for value, _ in places
    ]
    labels = [
        tag("text", label, x=left - 8, y=scale(value) + 4, text_anchor="end")
        for value, label in places
    ]
    return tag("g", *lines, class_="grid") + tag("g", *labels, class_="tick")


def along(
    scale: Scale, places: Sequence[tuple[float, str]], y: float, name: str, *, marks: bool = True
) -> Markup:
    """Draw the horizontal axis with its labels and its name beneath."""
    start, end = min(scale.start, scale.end), max(scale.start, scale.end)
    axis = [tag("line", x1=start, x2=end, y1=y, y2=y)]
    if marks:
        axis += [tag("line", x1=scale(v), x2=scale(v), y1=y, y2=y + 4) for v, _ in places]
    labels = [tag("text", label, x=scale(v), y=y + 18, text_anchor="middle") for v, label in places]
    middle = tag(
        "text",
        clip(name, end - start, 12),
        x=(start + end) / 2,
        y=y + 37,
        text_anchor="middle",
        class_="name",
    )
    return tag("g", *axis, class_="axis") + tag("g", *labels, class_="tick") + middle
