"""What a heat map shows: shares of each row, and of too many classes the most frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from ruleout.report.formats import compact, count, percent, values
from ruleout.report.parts import Matrix
from ruleout.report.svg import canvas, clip, tag, thin, width_of

_SMALL, _LARGE, _TOP = 10, 100, 40


@dataclass(frozen=True)
class Heat:
    """Counts ready to draw.

    Attributes
    ----------
    rows, columns
        The names.
    counts
        ``[rows, columns]``, NaN where not known.
    shares
        Counts over the sum of their row in the whole matrix; NaN in a row without counts.
    strength
        Shares over the largest of them, in [0, 1].
    most
        That largest share.
    said
        What was left out, in words.
    row_label, column_label, diagonal
        As in :class:`~ruleout.report.Matrix`.
    """

    rows: list[str]
    columns: list[str]
    counts: NDArray[np.float64]
    shares: NDArray[np.float64]
    strength: NDArray[np.float64]
    most: float
    said: str
    row_label: str
    column_label: str
    diagonal: str

    @property
    def small(self) -> bool:
        """Whether the cells carry numbers."""
        return max(len(self.rows), len(self.columns)) <= _SMALL

    def largest(self, most: int = 10) -> list[tuple[str, str, str, str]]:
        """Return row, column, count and share of the largest cells."""
        flat = np.nan_to_num(self.counts, nan=-1.0).ravel()
        order = [divmod(int(p), len(self.columns)) for p in np.argsort(-flat, kind="stable")[:most]]
        return [
            (self.rows[i], self.columns[j], count(self.counts[i, j]), percent(self.shares[i, j]))
            for i, j in order
            if self.counts[i, j] > 0
        ]

    def about_row(self, row: int) -> str:
        """Say in words what a row holds."""
        shares = np.nan_to_num(self.shares[row])
        top = [int(j) for j in np.argsort(-shares, kind="stable")[:3] if shares[j] > 0]
        parts = [f"{clip(self.columns[j], 200)} {percent(shares[j])}" for j in top]
        return f"{self.row_label} {clip(self.rows[row], 200)}: {', '.join(parts) or 'nothing'}"


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
        said = _say(shape, np.nan_to_num(counts), rows, columns)
    shares = shares[np.ix_(rows, columns)]
    most = float(np.nan_to_num(shares).max(initial=0.0)) or 1.0
    return Heat(
        rows=[str(chart.rows[i]) for i in rows.tolist()],
        columns=[str(chart.columns[j]) for j in columns.tolist()],
        counts=counts[np.ix_(rows, columns)],
        shares=shares,
        strength=shares / most,
        most=most,
        said=said,
        row_label=chart.row_label,
        column_label=chart.column_label,
        diagonal=chart.diagonal,
    )


def _top(chart: Matrix, counts: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Choose rows and columns by count, the same ones where both are the same classes."""

    def best(totals: NDArray[np.float64]) -> NDArray[np.intp]:
        return np.sort(np.argsort(-totals, kind="stable")[:_TOP])

    if list(chart.rows) == list(chart.columns):
        both = best(counts.sum(0) + counts.sum(1))
        return both, both
    return best(counts.sum(1)), best(counts.sum(0))


def _say(
    shape: tuple[int, int],
    counts: NDArray[np.float64],
    rows: NDArray[np.intp],
    columns: NDArray[np.intp],
) -> str:
    total, kept = counts.sum(), counts[np.ix_(rows, columns)].sum()
    share = percent(kept / total) if total > 0 else "none"
    return (
        f"Shown are the {len(rows)} of {count(shape[0])} rows and the {len(columns)} of "
        f"{count(shape[1])} columns with the largest counts; their cells hold {share} of all "
        "counts. Shares are of the whole row."
    )


_LEVELS = 9  # shades of a large map
_LEGEND = 44  # pixels


@dataclass(frozen=True)
class _Grid:
    left: float
    top: float
    wide: float  # of a cell
    high: float
    upright: bool  # names of columns run upwards


def store(heat: Heat, *, key: str) -> Markup:
    """Keep the cells of a large map once, for every picture of it to use.

    Runs of equal shade become strokes of one unit: a map of 100 by 100 classes stays small.
    """
    paths = [
        tag("path", d=d, class_="shade", stroke_opacity=f"{level / _LEVELS:.2f}")
        for level, d in _runs(heat)
    ]
    cells = tag("defs", tag("g", *paths, id=f"{key}-cells"))
    return tag("svg", cells, class_="store", width=0, height=0, aria_hidden="true")


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


def matrix(heat: Heat, *, key: str, kind: str, width: float, title: str) -> Markup:
    """Draw the map: numbers in the cells while it is small, shades alone when it is large.

    Parameters
    ----------
    heat
        The counts to draw.
    key
        A prefix for ids, unique on the page; a large map also needs :func:`store`.
    kind
        The class of the picture: ``"wide"`` or ``"narrow"``.
    width
        In pixels; the height follows.
    title
        What the picture is called.
    """
    grid = _grid(heat, width)
    floor = grid.top + grid.high * len(heat.rows)
    cells = _small(heat, grid) if heat.small else _large(heat, grid, key, kind)
    parts = [
        *_names(heat, grid, width),
        *cells,
        *_diagonal(heat, grid),
        *_legend(heat, grid, floor),
    ]
    rows, columns = f"{len(heat.rows)} {heat.row_label}", f"{len(heat.columns)} {heat.column_label}"
    about = f"Rows: {rows}. Columns: {columns}."
    size = width, floor + _LEGEND
    return canvas(f"{key}-{kind[0]}", f"{kind} map", size, title, about, parts)


def _grid(heat: Heat, width: float) -> _Grid:
    cap = min(width * 0.24, 120.0)
    names = [clip(name, cap, 11) for name in heat.rows]
    left = max([width_of(heat.row_label) + 18, *(width_of(name, 11) + 10 for name in names)])
    left = min(left, cap + 10)
    wide = (width - left - 2) / max(len(heat.columns), 1)
    above = max([0.0, *(width_of(clip(name, 90, 11), 11) for name in heat.columns)])
    upright = above > wide - 4
    top = 24 + (above + 10 if upright else 20)
    return _Grid(left, top, wide, min(wide, 36.0), upright)


def _names(heat: Heat, grid: _Grid, width: float) -> list[Markup]:
    """Write the names of rows and columns, every so many where they would touch."""
    middle = grid.left + grid.wide * len(heat.columns) / 2
    heads = [
        tag(
            "text", f"{clip(heat.row_label, grid.left - 18)} ↓", x=0, y=grid.top - 8, class_="name"
        ),
        tag(
            "text",
            f"{clip(heat.column_label, width / 2)} →",
            x=middle,
            y=13,
            text_anchor="middle",
            class_="name",
        ),
    ]
    rows = [
        tag(
            "text",
            clip(heat.rows[i], grid.left - 8, 11),
            x=grid.left - 6,
            y=grid.top + grid.high * (i + 0.5) + 4,
            text_anchor="end",
        )
        for i in thin(len(heat.rows), int(grid.high * len(heat.rows) // 12))
    ]
    most = int(grid.wide * len(heat.columns) // 12) if grid.upright else len(heat.columns)
    columns = [_above(heat.columns[j], j, grid) for j in thin(len(heat.columns), most)]
    return [*heads, tag("g", *rows, *columns, class_="tick")]


def _above(name: str, place: int, grid: _Grid) -> Markup:
    x, y = grid.left + grid.wide * (place + 0.5), grid.top - 6
    if not grid.upright:
        return tag("text", name, x=x, y=y, text_anchor="middle")
    turn = f"translate({x + 4:.1f} {y:.1f}) rotate(-90)"
    return tag("text", clip(name, 90, 11), transform=turn)


def _small(heat: Heat, grid: _Grid) -> list[Markup]:
    cells = []
    for i, row in enumerate(heat.rows):
        for j, column in enumerate(heat.columns):
            value, share = float(heat.counts[i, j]), float(heat.shares[i, j])
            strength = float(heat.strength[i, j])
            x, y = grid.left + grid.wide * j, grid.top + grid.high * i
            words = (
                f"{heat.row_label} {row}, {heat.column_label} {column}: "
                f"{count(value)} ({percent(share)} of the row)"
            )
            box = tag(
                "rect",
                x=x + 1,
                y=y + 1,
                width=grid.wide - 2,
                height=grid.high - 2,
                fill_opacity=f"{strength:.2f}" if strength == strength else "0",
            )
            label = tag(
                "text",
                compact(value),
                x=x + grid.wide / 2,
                y=y + grid.high / 2 + 4,
                text_anchor="middle",
            )
            strong = " firm strong" if strength > 0.78 else " firm" if strength > 0.6 else ""
            cells.append(tag("g", tag("title", words), box, label, class_=f"cell{strong}"))
    return cells


def _large(heat: Heat, grid: _Grid, key: str, kind: str) -> list[Markup]:
    move = f"translate({grid.left:.2f} {grid.top + grid.high / 2:.2f})"
    cells = tag(
        "use", href=f"#{key}-cells", transform=f"{move} scale({grid.wide:.4f} {grid.high:.4f})"
    )
    height, width = grid.high * len(heat.rows), grid.wide * len(heat.columns)
    frame = tag("rect", x=grid.left, y=grid.top, width=width, height=height, class_="frame")
    if kind != "wide":
        return [cells, frame]
    rows = [
        tag(
            "g",
            tag("title", heat.about_row(i)),
            tag("rect", x=0, y=grid.top + grid.high * i, width=grid.left + width, height=grid.high),
            class_="row",
        )
        for i in range(len(heat.rows))
    ]
    return [cells, frame, *rows]


def _diagonal(heat: Heat, grid: _Grid) -> list[Markup]:
    """Outline the cells where row and column are the same class."""
    if not heat.diagonal:
        return []
    inset = 1 if heat.small else 0
    boxes = [
        f"M{grid.left + grid.wide * i + inset:.1f} {grid.top + grid.high * i + inset:.1f}"
        f"h{grid.wide - 2 * inset:.1f}v{grid.high - 2 * inset:.1f}h{2 * inset - grid.wide:.1f}z"
        for i in range(min(len(heat.rows), len(heat.columns)))
    ]
    return [tag("path", d="".join(boxes), class_="same")]


def _legend(heat: Heat, grid: _Grid, floor: float) -> list[Markup]:
    """Draw the shades with what they stand for."""
    y = floor + 18
    boxes = [
        tag(
            "rect", x=grid.left + 34 + 18 * i, y=y, width=17, height=11, fill_opacity=f"{i / 5:.2f}"
        )
        for i in range(6)
    ]
    texts = [
        tag("text", "0 %", x=grid.left + 28, y=y + 10, text_anchor="end"),
        tag("text", f"{percent(heat.most, 0)} of the row", x=grid.left + 34 + 18 * 6 + 6, y=y + 10),
    ]
    return [tag("g", *boxes, class_="cell shades"), tag("g", *texts, class_="tick")]
