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
    lines = "".join(f"M{left:.1f} {scale(value):.1f}H{right:.1f}" for value, _ in places)
    labels = [tag("text", label, x=left - 8, y=scale(value) + 4) for value, label in places]
    names = tag("g", *labels, class_="tick", text_anchor="end")
    return tag("path", d=lines, class_="grid") + names


def along(
    scale: Scale, places: Sequence[tuple[float, str]], y: float, name: str, *, marks: bool = True
) -> Markup:
    """Draw the horizontal axis with its labels and its name beneath."""
    start, end = min(scale.start, scale.end), max(scale.start, scale.end)
    axis = f"M{start:.1f} {y:.1f}H{end:.1f}"
    if marks:
        axis += "".join(f"M{scale(value):.1f} {y:.1f}v4" for value, _ in places)
    labels = [tag("text", label, x=scale(value), y=y + 18) for value, label in places]
    middle = tag(
        "text",
        clip(name, end - start, 12),
        x=(start + end) / 2,
        y=y + 37,
        text_anchor="middle",
        class_="name",
    )
    names = tag("g", *labels, class_="tick", text_anchor="middle")
    return tag("path", d=axis, class_="axis") + names + middle
