"""A table in the paper's shape: approaches in rows, data sets in columns, a cell for each run.

One object; :mod:`ruleout.report.forms` writes it as LaTeX, Markdown, CSV and plain text, and the
page shows it with cells that open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, TypeAlias

from ruleout.labels.errors import InputError, brief
from ruleout.report.basics import Line, Numbers, one_of
from ruleout.report.formats import known

__all__ = ["CellTable", "Mark", "TableCell", "TableRow", "Verdict"]

Mark: TypeAlias = Literal["", "•", "○"]
Verdict: TypeAlias = Literal["", "agrees", "better", "worse"]


@dataclass(frozen=True)
class TableCell:
    """What one approach reached on one data set.

    Parameters
    ----------
    mean
        The mean accuracy over trials, a share in [0, 1]; None: not run, or failed.
    std
        The sample standard deviation over trials.
    mark
        ``"•"``: ours is significantly better than this cell; ``"○"``: significantly worse.
    holm
        The same after Holm's correction, so either empty or equal to `mark`.
    p_value, p_holm
        Of the test behind the marks, before and after the correction.
    best
        Whether it is the best of its column.
    paper_mean, paper_std
        What the paper printed, as shares.
    verdict
        How `mean` compares with the paper.
    trials
        The accuracy of every trial.
    chosen
        The chosen configuration, such as ``{"learning rate": 1e-3}``.
    facts
        Further lines when the cell is opened: the criterion's estimate, seconds, device, key.
    curves
        Accuracies by epoch.
    note
        Why there is no number, or what else to know.

    Examples
    --------
    >>> cell = TableCell(0.93, 0.03, paper_mean=0.9, paper_std=0.04)
    >>> round(cell.difference, 3), round(cell.distance, 3)
    (0.03, 0.6)
    """

    mean: float | None
    std: float | None = None
    _: KW_ONLY
    mark: Mark = ""
    holm: Mark = ""
    p_value: float | None = None
    p_holm: float | None = None
    best: bool = False
    paper_mean: float | None = None
    paper_std: float | None = None
    verdict: Verdict = ""
    trials: Numbers = ()
    chosen: Mapping[str, object] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    curves: Sequence[Line] = ()
    note: str = ""

    def __post_init__(self) -> None:
        one_of("mark", self.mark, ("", "•", "○"))
        one_of("holm", self.holm, ("", self.mark))
        one_of("verdict", self.verdict, ("", "agrees", "better", "worse"))

    @property
    def difference(self) -> float | None:
        """Ours less the paper's, a share; None where either is not known."""
        if known(self.mean) and known(self.paper_mean):
            return float(self.mean) - float(self.paper_mean)
        return None

    @property
    def distance(self) -> float | None:
        """The difference in combined standard deviations, √(std² + paper_std²)."""
        gap = self.difference
        if gap is None or not (known(self.std) and known(self.paper_std)):
            return None
        combined = math.hypot(self.std, self.paper_std)
        return gap / combined if combined else math.copysign(math.inf, gap) if gap else 0.0


@dataclass(frozen=True)
class TableRow:
    """One approach: its family, its name, and a cell for each column of the table.

    >>> TableRow("upper-bound", "LOG", [TableCell(0.93)]).label
    'LOG'
    """

    group: str
    label: str
    cells: Sequence[TableCell]


@dataclass(frozen=True)
class CellTable:
    r"""Approaches by data sets, beside what the paper printed.

    Parameters
    ----------
    title
        The caption.
    columns
        The data sets.
    rows
        The approaches, those of a family one after the other.
    ours
        For each column the row that the marks compare with; empty where nothing is marked.
    test_label, verdict_label
        By which test the marks were made, and from where on a cell is better or worse than the
        paper, for the legend.
    note
        A sentence beneath.
    name
        A short name for ``\label`` and for files.
    compared
        Whether to show the paper's numbers.

    Examples
    --------
    >>> table = CellTable("Linear", ["MNIST"], [TableRow("upper-bound", "LOG", [TableCell(0.93)])])
    >>> table.beside_paper
    False
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    _: KW_ONLY
    ours: Sequence[str] = ()
    test_label: str = "paired t\N{NON-BREAKING HYPHEN}test over the trials, 5 % level"
    verdict_label: str = "by more than two combined standard deviations"
    note: str = ""
    name: str = "table"
    compared: bool = True

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise InputError(
                    f"row {brief(row.label)} has {len(row.cells)} cells for "
                    f"{len(self.columns)} columns",
                    "give one cell per column",
                )
        if len(self.ours) not in (0, len(self.columns)):
            raise InputError(
                f"ours names {len(self.ours)} rows for {len(self.columns)} columns",
                "name one row per column",
            )

    @property
    def cells(self) -> list[TableCell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells]

    @property
    def beside_paper(self) -> bool:
        """Whether there is a number of the paper to show."""
        return self.compared and any(known(cell.paper_mean) for cell in self.cells)
