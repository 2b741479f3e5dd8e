"""What a report is made of: plain numbers and strings, nothing that draws.

Wherever numbers are asked for, a list, a tuple or an array will do; None, NaN and infinities mean
"not known" and are shown as a dash.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import InputError, brief
from ruleout.report.number_format import known

Numbers: TypeAlias = Sequence[float | None] | Sequence[float] | Sequence[int] | NDArray[Any]
Unit: TypeAlias = Literal["percent", "number"]


@dataclass(frozen=True)
class Line:
    """One curve: ``mean`` at ``x``, with a band from ``low`` to ``high`` if both are given.

    Lines of one `family` share a colour, here and in score tables.

    >>> Line("log", x=[1, 2, 3], mean=[0.5, 0.8, 0.9], family="upper-bound").name
    'log'
    """

    name: str
    x: Numbers
    mean: Numbers
    low: Numbers = ()
    high: Numbers = ()
    family: str = ""

    def __post_init__(self) -> None:
        band = ("low", "high") if len(self.low) or len(self.high) else ()
        same_length(f"line {brief(self.name)}", self, "x", "mean", *band)


def one_of(name: str, value: object, known: Sequence[object]) -> None:
    if value not in known:
        raise InputError(f"{name} is {brief(value)}", f"use one of {', '.join(map(repr, known))}")


def same_length(where: str, part: object, *names: str) -> None:
    sizes = {name: len(getattr(part, name)) for name in names}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise InputError(f"{where}: {found} entries", "give one of each per entry")


#: ``"•"``: ours is significantly better; ``"○"``: significantly worse; else empty.
Mark: TypeAlias = Literal["", "•", "○"]
Verdict: TypeAlias = Literal["", "agrees", "better", "worse"]


@dataclass(frozen=True)
class TableCell:
    """What one approach reached on one data set.

    >>> cell = TableCell(0.93, 0.03, paper_mean=0.9, paper_std=0.04)
    >>> round(cell.difference, 3), round(cell.distance, 3)
    (0.03, 0.6)
    """

    mean: float | None  #: the mean accuracy over trials, a share; None: not run, or failed
    std: float | None = None  #: the sample standard deviation over trials
    _: KW_ONLY
    mark: Mark = ""  #: ``"•"``: ours is significantly better than this cell; ``"○"``: worse
    holm: Mark = ""  #: the same after Holm's correction, so either empty or equal to `mark`
    p_value: float | None = None  #: of the test behind `mark`
    p_holm: float | None = None  #: the same after the correction
    best: bool = False  #: whether it is the best of its column
    paper_mean: float | None = None  #: what the paper printed, a share
    paper_std: float | None = None  #: the standard deviation that it printed
    verdict: Verdict = ""  #: how `mean` compares with the paper
    trials: Numbers = ()  #: the accuracy of every trial
    #: the chosen configuration, such as ``{"learning rate": 1e-3}``
    chosen: Mapping[str, object] = field(default_factory=dict)
    #: further lines when the cell is opened: the criterion's estimate, seconds, device, key
    facts: Mapping[str, object] = field(default_factory=dict)
    curves: Sequence[Line] = ()  #: accuracies by epoch
    note: str = ""  #: why there is no number, or what else to know

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

    >>> table = CellTable("Linear", ["MNIST"], [TableRow("upper-bound", "LOG", [TableCell(0.93)])])
    >>> table.beside_paper
    False
    """

    title: str  #: the caption
    columns: Sequence[str]  #: the data sets
    rows: Sequence[TableRow]  #: the approaches, those of a family one after the other
    _: KW_ONLY
    ours: Sequence[str] = ()  #: for each column the row that marks compare with; empty: no marks
    #: by which test the marks were made, for the legend
    test_label: str = "paired t\N{NON-BREAKING HYPHEN}test over the trials, 5 % level"
    #: from where on a cell is better or worse than the paper, for the legend
    verdict_label: str = "by more than two combined standard deviations"
    note: str = ""  #: a sentence beneath
    name: str = "table"  #: a short name for ``\label`` and for files
    compared: bool = True  #: whether to show the paper's numbers

    def __post_init__(self) -> None:
        wide = len(self.columns)
        for row in self.rows:
            if len(row.cells) != wide:
                problem = f"row {brief(row.label)} has {len(row.cells)} cells for {wide} columns"
                raise InputError(problem, "give one cell per column")
        if len(self.ours) not in (0, wide):
            problem = f"ours names {len(self.ours)} rows for {wide} columns"
            raise InputError(problem, "name one row per column")

    @property
    def cells(self) -> list[TableCell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells]

    @property
    def beside_paper(self) -> bool:
        """Whether there is a number of the paper to show."""
        return self.compared and any(known(cell.paper_mean) for cell in self.cells)


@dataclass(frozen=True)
class Note:
    """A paragraph. ``kind="warning"`` sets it apart.

    >>> Note("Two rows had no sets and were left out.", kind="warning").kind
    'warning'
    """

    text: str
    kind: Literal["note", "warning"] = "note"

    def __post_init__(self) -> None:
        one_of("kind", self.kind, ("note", "warning"))


@dataclass(frozen=True)
class Listing:
    """Names with their values, as a mapping or as pairs.

    >>> Listing("Versions", {"ruleout": "0.1.0", "torch": "2.9.0"}).title
    'Versions'
    """

    title: str
    rows: Mapping[str, object] | Sequence[tuple[str, object]]
    note: str = ""


@dataclass(frozen=True)
class Score:
    """One row of a :class:`ScoreTable`. What is left out of every row gets no column."""

    name: str  #: the approach, as code knows it
    score: float | None  #: the mean over trials; an accuracy lies in [0, 1]
    spread: float | None = None  #: the standard deviation or error of `score`; the table says which
    _: KW_ONLY
    label: str = ""  #: the name in the paper
    family: str = ""  #: the group of rows
    form: str = ""  #: how batches are made
    mark: Mark = ""  #: ``"•"``: ours is significantly better than this row; ``"○"``: worse
    p_value: float | None = None  #: of the test behind `mark`
    #: the chosen configuration, such as ``{"learning rate": 1e-3}``
    chosen: Mapping[str, object] = field(default_factory=dict)
    estimate: float | None = None  #: what the criterion that chose it said
    estimate_error: float | None = None  #: the standard error of that
    seconds: float | None = None  #: how long it took
    trials: Numbers = ()  #: the score of every trial; the row opens to show them
    reference: bool = False  #: a row for comparison only, which never counts as the best

    def __post_init__(self) -> None:
        one_of("mark", self.mark, ("", "•", "○"))


@dataclass(frozen=True)
class ScoreTable:
    """Approaches side by side.

    >>> table = ScoreTable("Accuracy", [Score("log", 0.934, 0.002), Score("ga-before", 0.871)])
    >>> len(table.rows)
    2
    """

    title: str  #: the caption
    rows: Sequence[Score]  #: one per approach
    _: KW_ONLY
    score_label: str = "Test accuracy"  #: what the scores are
    spread_label: str = "standard deviation"  #: what follows ±
    estimate_label: str = "Estimate without labels"  #: what the estimates are
    unit: Unit = "percent"  #: ``"percent"`` shows 0.934 as 93.40
    higher_is_better: bool = True  #: which end is printed in bold
    order: Literal["score", "given"] = "score"  #: the best first, or as handed in
    ours: str = ""  #: the approach that the marks compare with, for the legend
    #: by which test the marks were made, for the legend
    test_label: str = "paired t\N{NON-BREAKING HYPHEN}test over the trials, 5 % level"
    note: str = ""  #: a sentence beneath

    def __post_init__(self) -> None:
        one_of("unit", self.unit, ("percent", "number"))
        one_of("order", self.order, ("score", "given"))


@dataclass(frozen=True)
class Curves:
    """Learning curves."""

    title: str  #: the caption
    lines: Sequence[Line]  #: the curves
    _: KW_ONLY
    x_label: str = "Epoch"  #: what the horizontal axis shows
    y_label: str = ""  #: what the vertical axis shows
    band_label: str = ""  #: what the bands show
    unit: Unit = "number"  #: ``"percent"`` shows 0.9 as 90 %
    #: the names highlighted at first; the others stay thin and grey until chosen. None: all of
    #: them up to seven, else the five that end highest
    visible: Collection[str] | None = None
    y_range: tuple[float, float] | None = None  #: ends of the vertical axis; None: of the numbers
    half: bool = False  #: takes half the width of the page: two stand side by side
    note: str = ""  #: a sentence beneath

    def __post_init__(self) -> None:
        one_of("unit", self.unit, ("percent", "number"))
        unknown = sorted(set(self.visible or ()) - {line.name for line in self.lines})
        if unknown:
            raise InputError(f"no line is named {brief(unknown[0])}", "name lines of this chart")
        if self.y_range is not None and not -1e100 < self.y_range[0] < self.y_range[1] < 1e100:
            raise InputError(f"y_range {self.y_range} is not a range", "put the lower end first")


@dataclass(frozen=True)
class Histogram:
    """How often each size occurred: ``counts[i]`` is the number of sets of size ``first + i``.

    `expected` are the counts the law leads one to expect, drawn over the bars.

    >>> Histogram("Sizes", counts=[4, 9, 3], expected=[5.1, 7.6, 3.3]).first
    1
    """

    title: str
    counts: Numbers
    _: KW_ONLY
    expected: Numbers = ()
    first: int = 1
    x_label: str = "Classes ruled out"
    y_label: str = "Examples"
    counts_label: str = "observed"
    expected_label: str = "expected under the law"
    note: str = ""

    def __post_init__(self) -> None:
        if len(self.expected):
            same_length("histogram", self, "counts", "expected")


@dataclass(frozen=True)
class Reliability:
    """How often the model is right when it is this sure, bin by bin."""

    title: str  #: the caption
    confidence: Numbers  #: of each bin the mean, in [0, 1]
    accuracy: Numbers  #: of each bin the share of right answers
    count: Numbers  #: of each bin the rows
    _: KW_ONLY
    error: Numbers = ()  #: the standard error of each accuracy
    #: True when there were no true labels: each accuracy is then estimated from what was
    #: ruled out, which may lie outside [0, 1]. The page says so
    estimated: bool = False
    note: str = ""  #: a sentence beneath

    def __post_init__(self) -> None:
        error = ("error",) if len(self.error) else ()
        same_length("reliability", self, "confidence", "accuracy", "count", *error)


@dataclass(frozen=True)
class Matrix:
    """Counts of pairs, as a heat map shaded by each row's shares."""

    title: str  #: the caption
    rows: Sequence[object]  #: their names
    columns: Sequence[object]  #: their names
    counts: Sequence[Numbers] | NDArray[Any]  #: ``[rows, columns]``
    _: KW_ONLY
    row_label: str = "ruled out"  #: what rows are
    column_label: str = "predicted"  #: what columns are
    diagonal: str = ""  #: what a row and a column of one class mean; those cells are then outlined
    note: str = ""  #: a sentence beneath

    def __post_init__(self) -> None:
        shape = len(self.rows), len(self.columns)
        if len(self.counts) != shape[0] or any(len(row) != shape[1] for row in self.counts):
            found = np.shape(self.counts) if isinstance(self.counts, np.ndarray) else "lists"
            problem = f"counts ({found}) do not fit {shape[0]} row and {shape[1]} column names"
            say = "give one row of counts per row name and one count per column name"
            raise InputError(problem, say)


@dataclass(frozen=True)
class Ranks:
    """Average ranks over several data sets, with bars that join what no test tells apart.

    A critical-difference diagram (Demsar, 2006) turned on its side, so that it fits a phone.

    >>> Ranks("Over six data sets", ["log", "cce"], [1.2, 1.8], groups=[(0, 1)]).names
    ['log', 'cce']
    """

    title: str  #: the caption
    names: Sequence[str]  #: the approaches, the best first
    ranks: Numbers  #: of each the average rank; 1 is the best
    _: KW_ONLY
    families: Sequence[str] = ()  #: of each the group, which has a colour
    groups: Sequence[tuple[int, int]] = ()  #: first and last place of each bar, from 0
    p_values: Numbers = ()  #: of each against the first
    note: str = ""  #: a sentence beneath

    def __post_init__(self) -> None:
        more = [name for name in ("families", "p_values") if len(getattr(self, name))]
        same_length("ranks", self, "names", "ranks", *more)


Part: TypeAlias = (
    Note | Listing | ScoreTable | CellTable | Curves | Histogram | Reliability | Matrix | Ranks
)


@dataclass(frozen=True)
class Section:
    """A heading, a sentence of introduction, and what follows.

    >>> Section("Data", [Note("1797 rows.")]).text
    ''
    """

    title: str
    parts: Sequence[Part] = ()
    text: str = ""


@dataclass(frozen=True)
class Report:
    """The whole page."""

    title: str  #: the headline
    summary: Sequence[str] = ()  #: what was found, one sentence each
    #: what was run (data, model, grid, trials, device, versions, ...), shown in this order
    facts: Mapping[str, object] = field(default_factory=dict)
    sections: Sequence[Section] = ()  #: the rest

    def __post_init__(self) -> None:
        if isinstance(self.summary, str):
            raise InputError("summary is one string", "give a list of sentences")
