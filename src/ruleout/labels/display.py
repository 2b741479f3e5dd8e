"""How label sets look at a prompt and in a notebook."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ruleout.labels.classes import shown

if TYPE_CHECKING:
    from ruleout.labels.sets import LabelSets

__all__ = ["as_html", "as_text"]

_BARS = "▁▂▃▄▅▆▇█"
_MOST = 40  # bars in a histogram; more sizes share bars


def _histogram(sets: LabelSets) -> tuple[list[str], list[int]]:
    """Count rows per size; many sizes are joined into at most 40 bars."""
    k = len(sets.classes)
    counts = np.bincount(sets.sizes, minlength=k)[:k]
    first = 0 if counts[0] else 1
    step = -(-(k - first) // _MOST)
    edges = range(first, k, step)
    labels = [str(a) if step == 1 else f"{a}–{min(a + step, k) - 1}" for a in edges]
    return labels, [int(counts[a : a + step].sum()) for a in edges]


def _summary(sets: LabelSets) -> str:
    n, k = sets.shape
    return f"{n:,} row{'' if n == 1 else 's'}, {k} classes" + (
        f", {sets.sizes.mean():.2f} ruled out on average" if n else ""
    )


def as_text(sets: LabelSets) -> str:
    """Two lines: the counts, and a bar per size."""
    if not len(sets):
        return f"LabelSets({_summary(sets)})"
    labels, counts = _histogram(sets)
    top = max(counts)
    bars = "".join(_BARS[-(-7 * c // top)] if c else " " for c in counts)
    return f"LabelSets({_summary(sets)})\n  sizes {labels[0]} {bars} {labels[-1]}"


def as_html(sets: LabelSets) -> str:
    """The same for a notebook, with the histogram as inline SVG."""
    labels, counts = _histogram(sets)
    top, height, step = max([*counts, 1]), 48, 14
    last = len(labels) - 1
    bars = "".join(
        f'<rect x="{i * step + 2}" y="{height - height * c / top:.1f}" width="{step - 4}" '
        f'height="{height * c / top:.1f}" fill="#4477aa"><title>size {label}: {c:,} rows</title>'
        f'</rect><text x="{i * step + step / 2}" y="{height + 11}" font-size="8" '
        f'text-anchor="middle" fill="currentColor">{label if last < 20 or i in (0, last) else ""}'
        "</text>"
        for i, (label, c) in enumerate(zip(labels, counts, strict=True))
    )
    return (
        f"<div><b>LabelSets</b> {_summary(sets)}<br><small>classes: {escape(shown(sets.classes))}"
        f'</small><br><svg width="{len(labels) * step}" height="{height + 14}" '
        f'style="overflow: visible" role="img" '
        f'aria-label="rows per number of classes ruled out">{bars}</svg></div>'
    )
