"""A dot with its error on a shared axis: a column of them shows an order at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from ruleout.report.scales import Scale, ticks
from ruleout.report.svg import tag

__all__ = ["strip", "strip_axis"]

_WIDTH, _HEIGHT = 170, 22


def _scale(domain: tuple[float, float]) -> Scale:
    return Scale(*domain, 8, _WIDTH - 8)


def _grid(scale: Scale) -> list[Markup]:
    places = [scale(tick) for tick in ticks(scale.low, scale.high, 4)]
    return [tag("line", x1=x, x2=x, y1=0, y2=_HEIGHT, class_="rule") for x in places]


def strip(
    mean: float, error: float, trials: Sequence[float], domain: tuple[float, float], colour: int
) -> Markup:
    """Draw one row: a dot at `mean`, a bar of ± `error`, a faint tick per trial.

    The numbers stand beside it in the table, so it is hidden from screen readers.

    >>> print(strip(float("nan"), 0.1, [], (0, 1), 0).count("circle"))
    0
    """
    scale = _scale(domain)
    middle = _HEIGHT / 2
    shapes = _grid(scale)
    shapes += [
        tag("line", x1=scale(v), x2=scale(v), y1=middle - 4, y2=middle + 4, class_="trial")
        for v in trials
        if v == v
    ]
    if mean == mean and error == error:
        ends = {"x1": scale(mean - error), "x2": scale(mean + error)}
        shapes.append(tag("line", **ends, y1=middle, y2=middle, class_="error"))
    if mean == mean:
        shapes.append(tag("circle", cx=scale(mean), cy=middle, r=4))
    return _svg(shapes, f"strip c{colour}")


def strip_axis(domain: tuple[float, float], labels: Sequence[str]) -> Markup:
    """Draw the shared axis: `labels` belong to :func:`~ruleout.report.scales.ticks`."""
    scale = _scale(domain)
    texts = [
        tag("text", label, x=scale(tick), y=16, text_anchor="middle")
        for tick, label in zip(ticks(*domain, 4), labels, strict=True)
    ]
    return _svg(texts, "strip tick")


def _svg(shapes: Sequence[Markup], kind: str) -> Markup:
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    return tag("svg", *shapes, class_=kind, viewBox=box, aria_hidden="true")
