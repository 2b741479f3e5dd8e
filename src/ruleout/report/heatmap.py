"""A heat map of counts, shaded by each row's shares; of too many classes the most frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report import svg
from ruleout.report.formats import compact, count, percent, values
from ruleout.report.parts import Matrix
from ruleout.report.svg import NARROW, clip, tag, thin, width_of

_SMALL, _LARGE, _TOP = 10, 100, 40  # classes: with numbers, all of them, the most frequent
_LEVELS = 9  # shades of a large map
_LEGEND = 44  # pixels
_CAP = 110.0  # pixels of a row's name


@dataclass(frozen=True)
class Heat:
    """Counts ready to draw.

    Attributes
    ----------
    chart
        What it was made from.
    rows, columns
        The names that are shown.
    counts
        ``[rows, columns]``, NaN where not known.
    shares
        Counts over the sum of their row in the whole matrix; NaN in a row without counts.
    most
        The largest share.
    said
        What was left out, in words.
    """

    chart: Matrix
    rows: list[str]
    columns: list[str]
    counts: NDArray[np.float64]
    shares: NDArray[np.float64]
    most: float
    said: str

    @property
    def strength(self) -> NDArray[np.float64]:
        """Shares over the largest of them, in [0, 1]."""
        return self.shares / self.most

    @property
    def small(self) -> bool:
        """Whether the cells carry numbers."""
        return max(len(self.rows), len(self.columns)) <= _SMALL

    def largest(self, most: int = 10) -> list[list[str]]:
        """Return row, column, count and share of the largest cells."""
        flat = np.nan_to_num(self.counts, nan=-1.0).ravel()
        order = [divmod(int(p), len(self.columns)) for p in np.argsort(-flat, kind="stable")[:most]]
        return [
            [self.rows[i], self.columns[j], count(self.counts[i, j]), percent(self.shares[i, j])]
            for i, j in order
            if self.counts[i, j] > 0
        ]

    def about_row(self, row: int) -> str:
        """Say in words what a row holds."""
        shares = np.nan_to_num(self.shares[row])
        top = [int(j) for j in np.argsort(-shares, kind="stable")[:3] if shares[j] > 0]
        parts = [f"{clip(self.columns[j], 200)} {percent(shares[j])}" for j in top]
        return (
            f"{self.chart.row_label} {clip(self.rows[row], 200)}: {', '.join(parts) or 'nothing'}"
        )


def heat(chart: Matrix) -> Heat:
    """Compute shares and, beyond 100 classes, keep the 40 with the largest counts.

    >>> ready = heat(Matrix("", ["a", "b"], ["a", "b"], [[1, 3], [0, 0]]))
    >>> ready.shares.tolist(), ready.most
    ([[0.25, 0.75], [nan, nan]], 0.75)
    """
    shape = len(chart.rows), len(chart.columns)
    counts = np.array([values(row) for row in chart.counts]).reshape(shape)
    counts = np.where(counts < 0, np.nan, counts)
    totals = np.nansum(counts, axis=1, keepdims=True)
    shares = np.divide(counts, totals, out=np.full(shape, np.nan), where=totals > 0)
    rows, columns, said = np.arange(shape[0]), np.arange(shape[1]), ""
    if max(shape) > _LARGE:
        rows, columns = _top(chart, np.nan_to_num(counts))
        said = _say(np.nan_to_num(counts), rows, columns)
    shares = shares[np.ix_(rows, columns)]
    return Heat(
        chart,
        rows=[str(chart.rows[i]) for i in rows.tolist()],
        columns=[str(chart.columns[j]) for j in columns.tolist()],
        counts=counts[np.ix_(rows, columns)],
        shares=shares,
        most=float(np.nan_to_num(shares).max(initial=0.0)) or 1.0,
        said=said,
    )


def _top(chart: Matrix, counts: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose rows and columns by count, the same ones where both are the same classes."""

    def best(totals: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.sort(np.argsort(-totals, kind="stable")[:_TOP])

    if list(chart.rows) == list(chart.columns):
        both = best(counts.sum(0) + counts.sum(1))
        return both, both
    return best(counts.sum(1)), best(counts.sum(0))


def _say(counts: NDArray[np.float64], rows: NDArray[np.intp], columns: NDArray[np.intp]) -> str:
    total, kept = counts.sum(), counts[np.ix_(rows, columns)].sum()
    share = percent(kept / total) if total > 0 else "none"
    return (
        f"Shown are the {len(rows)} of {count(len(counts))} rows and the {len(columns)} of "
        f"{count(len(counts[0]))} columns with the largest counts; their cells hold {share} of all "
        "counts. Shares are of the whole row."
    )


# ---------------------------------------------------------------------- the picture


@dataclass(frozen=True)
class _Grid:
    left: float
    top: float
    high: float  # of a cell
    upright: bool  # names of columns run upwards


def heatmap(heat: Heat, *, key: str) -> Markup:
    """Draw the map: numbers in the cells while it is small, shades alone when it is large."""
    grid = _grid(heat)
    floor = grid.top + grid.high * len(heat.rows)
    cells = _small(heat, grid) if heat.small else _large(heat, grid)
    parts = [*_names(heat, grid), *cells, *_diagonal(heat, grid), *_legend(heat, floor)]
    rows = f"{len(heat.rows)} {heat.chart.row_label}"
    about = f"Rows: {rows}. Columns: {len(heat.columns)} {heat.chart.column_label}."
    size = {"left": grid.left, "right": 2.0, "kind": "map"}
    return svg.chart(key, heat.chart.title, about, floor + _LEGEND, parts, **size)  # type: ignore[arg-type]


def _grid(heat: Heat) -> _Grid:
    names = [width_of(clip(name, _CAP, 11), 11) + 10 for name in heat.rows]
    left = min(max([width_of(heat.chart.row_label) + 18, *names]), _CAP + 10)
    wide = (NARROW + 50 - left) / max(len(heat.columns), 1)
    above = max([0.0, *(width_of(clip(name, 90, 11), 11) for name in heat.columns)])
    upright = above > wide - 4
    high = min(34.0, max(6.0, 640 / max(len(heat.rows), 1)))
    return _Grid(left, 24 + (above + 10 if upright else 20), high, upright)


def _names(heat: Heat, grid: _Grid) -> list[Markup]:
    """Write the names of rows and columns, only some of them where they would touch."""
    shown = clip(heat.chart.row_label, grid.left - 18)
    heads = [
        tag("text", f"{shown} ↓", x=-grid.left, y=grid.top - 8, class_="name"),
        tag(
            "text",
            f"{clip(heat.chart.column_label, NARROW / 2)} →",
            x="50%",
            y=13,
            text_anchor="middle",
            class_="name",
        ),
    ]
    rows = [
        tag(
            "text",
            clip(heat.rows[i], grid.left - 8, 11),
            x=-6,
            y=grid.top + grid.high * (i + 0.5) + 4,
            text_anchor="end",
        )
        for i in thin(len(heat.rows), int(grid.high * len(heat.rows) // 12))
    ]
    most = int((NARROW - grid.left) // 12) if grid.upright else len(heat.columns)
    columns = [_above(heat, j, grid) for j in thin(len(heat.columns), most)]
    return [*heads, tag("g", *rows, *columns, class_="tick")]


def _above(heat: Heat, place: int, grid: _Grid) -> Markup:
    x, y = svg.percent(100 * (place + 0.5) / len(heat.columns)), grid.top - 6
    if not grid.upright:
        return tag("text", heat.columns[place], x=x, y=y, text_anchor="middle")
    turn = f"translate(4 {y:.1f}) rotate(-90)"
    return svg.at(x, tag("text", clip(heat.columns[place], 90, 11), transform=turn))


def _small(heat: Heat, grid: _Grid) -> list[Markup]:
    cells, wide, labels = [], 100 / max(len(heat.columns), 1), heat.chart
    for i, row in enumerate(heat.rows):
        for j, column in enumerate(heat.columns):
            value, strength = float(heat.counts[i, j]), float(heat.strength[i, j])
            y = grid.top + grid.high * i
            words = (
                f"{labels.row_label} {row}, {labels.column_label} {column}: "
                f"{count(value)} ({percent(heat.shares[i, j])} of the row)"
            )
            box = tag(
                "rect",
                x=svg.percent(wide * j),
                y=y,
                width=svg.percent(wide),
                height=grid.high,
                fill_opacity=f"{strength:.2f}" if strength == strength else "0",
            )
            middle = {"x": svg.percent(wide * (j + 0.5)), "y": y + grid.high / 2 + 4}
            label = tag("text", compact(value), **middle, text_anchor="middle")
            strong = " firm strong" if strength > 0.78 else " firm" if strength > 0.6 else ""
            cells.append(tag("g", tag("title", words), box, label, class_=f"cell{strong}"))
    return cells


def _large(heat: Heat, grid: _Grid) -> list[Markup]:
    """Draw runs of equal shade as strokes of one unit: a map of 100 by 100 classes stays small."""
    shades = [
        tag("path", d=d, class_="shade", stroke_opacity=f"{level / _LEVELS:.2f}")
        for level, d in _runs(heat)
    ]
    height, units = grid.high * len(heat.rows), (len(heat.columns), len(heat.rows))
    cells = svg.stretched(*shades, top=grid.top, height=height, units=units, start=-0.5)
    frame = tag("rect", y=grid.top, width="100%", height=height, class_="frame")
    rows = [
        tag(
            "g",
            tag("title", heat.about_row(i)),
            tag("rect", y=grid.top + grid.high * i, width="100%", height=grid.high),
            class_="row",
        )
        for i in range(len(heat.rows))
    ]
    return [cells, frame, *rows]


def _runs(heat: Heat) -> list[tuple[int, str]]:
    strokes: dict[int, list[str]] = {level: [] for level in range(1, _LEVELS + 1)}
    for i, row in enumerate(heat.strength.tolist()):
        levels = [0 if v != v else -int(-v * _LEVELS // 1) for v in row] + [-1]
        start = 0
        for j in range(1, len(levels)):
            if levels[j] != levels[start]:
                if levels[start] > 0:
                    strokes[levels[start]].append(f"M{start} {i}h{j - start}")
                start = j
    return [(level, "".join(runs)) for level, runs in strokes.items() if runs]


def _diagonal(heat: Heat, grid: _Grid) -> list[Markup]:
    """Outline the cells where row and column are the same class."""
    if not heat.chart.diagonal:
        return []
    rows, columns = len(heat.rows), len(heat.columns)
    boxes = "".join(f"M{i} {i}h1v1h-1z" for i in range(min(rows, columns)))
    outline, height = tag("path", d=boxes, class_="same"), grid.high * rows
    return [svg.stretched(outline, top=grid.top, height=height, units=(columns, rows))]


def _legend(heat: Heat, floor: float) -> list[Markup]:
    """Draw the shades with what they stand for."""
    y = floor + 18
    boxes = [
        tag("rect", x=34 + 18 * i, y=y, width=17, height=11, fill_opacity=f"{i / 5:.2f}")
        for i in range(6)
    ]
    texts = [
        tag("text", "0 %", x=28, y=y + 10, text_anchor="end"),
        tag("text", f"{percent(heat.most, 0)} of the row", x=34 + 18 * 6 + 6, y=y + 10),
    ]
    return [tag("g", *boxes, class_="cell shades"), tag("g", *texts, class_="tick")]
