"""What a heat map shows: shares of each row, and of too many classes the most frequent."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.report.formats import count, percent, values
from ruleout.report.parts import Matrix
from ruleout.report.svg import clip

__all__ = ["Heat", "heat"]

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
