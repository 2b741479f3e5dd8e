"""What a comparison is: rows of a table, how they came about, and roads out."""

from __future__ import annotations

import csv as files
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from html import escape
from io import StringIO
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison.judging import Kind, Pictures
from ruleout.comparison.significance import Mark
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import nearest
from ruleout.labels.laws import Law
from ruleout.report.formats import duration, number, numbers, p_value, points

if TYPE_CHECKING:
    import pandas

    from ruleout.report import Report


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison:
    """Approaches side by side, each with the configuration that was chosen without true labels.

    Attributes
    ----------
    rows
        One per approach, in the order asked for.
    method
        How they were judged and compared.
    facts
        What was run: rows, classes, model, grid, epochs, device, precision, seed, versions.
    classes
        The class names.
    sizes
        ``[k]``: how many examples rule out 0, 1, …, k-1 classes, all trials together.
    pictures
        What is known about the predictions of the best approach.
    """

    rows: tuple[Row, ...]
    method: Method
    facts: Mapping[str, Any]
    classes: tuple[ClassName, ...]
    sizes: NDArray[np.intp]
    pictures: Pictures | None = field(default=None)

    @property
    def best(self) -> Row:
        """The row with the best score. The best of several scores is partly luck."""
        return self._top(lambda row: row.score, self.method.higher_is_better)

    @property
    def chosen(self) -> Row:
        """The row with the best criterion: picked before any score was seen.

        Its score is therefore as honest as its standard error says.
        """
        return self._top(lambda row: row.estimate, self.method.criterion_up)

    def _top(self, key: Callable[[Row], float], up: bool) -> Row:
        alive = [row for row in self.rows if not row.failed and not row.baseline]
        if not alive:
            raise ValueError("every approach diverged; try smaller learning rates")
        return max(alive, key=lambda row: key(row) if up else -key(row))

    @property
    def ranked(self) -> list[Row]:
        """The rows, best first; then those that diverged, then lines for comparison."""
        sign = -1 if self.method.higher_is_better else 1
        return sorted(
            self.rows, key=lambda r: (r.baseline, r.failed, 0 if r.failed else sign * r.score)
        )

    @property
    def notes(self) -> list[str]:
        """What must be known to read the table right."""
        return notes(self)

    def __getitem__(self, approach: str) -> Row:
        """``comparison["log"]`` is the row of that approach."""
        for row in self.rows:
            if row.approach == approach:
                return row
        names = [row.approach for row in self.rows]
        say = nearest(approach, names, f"there are {', '.join(names)}")
        raise KeyError(f"no row {approach!r}; {say}")

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return text(self)

    def _repr_html_(self) -> str:
        return html(self)

    def with_baseline(self, other: Comparison, *, label: str, family: str) -> Comparison:
        """Add the rows of another comparison as lines that only serve to compare.

        Such as ordinary training on true labels. They keep their scores, carry no mark, and are
        never the best.
        """
        added = tuple(
            replace(row, approach=label, label=label, family=family, form="", baseline=True,
                    mark="", p_value=np.nan, p_holm=np.nan)
            for row in other.rows
        )  # fmt: skip
        return replace(self, rows=self.rows + added)

    # ------------------------------------------------------------------ roads out

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, one row per approach, best first."""
        import pandas as pd

        return pd.DataFrame(records(self))

    def to_csv(self, path: str | Path) -> None:
        """Write one line per approach, best first; the file appears whole or not at all."""
        _save(path, csv(self))

    def to_markdown(self) -> str:
        """Return the table as Markdown, with what must be known to read it."""
        return markdown(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the pictures as plain numbers, lists and text."""
        method = {name: getattr(self.method, name) for name in self.method.__dataclass_fields__}
        return {
            "method": method,
            "facts": dict(self.facts),
            "classes": list(self.classes),
            "sizes": self.sizes.tolist(),
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def report(
        self,
        *,
        title: str = "Approaches side by side",
        law: Law | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> Report:
        """Return a page: table, learning curves, set sizes, reliability, what was contradicted.

        Parameters
        ----------
        title
            The headline.
        law
            The size law to draw over the sizes, if it is known.
        facts
            More to say about the run, such as the name of the data.
        """
        from ruleout.comparison.comparison_page import page

        return page(self, title, law, facts or {})

    def write(
        self,
        folder: str | Path,
        *,
        title: str = "Approaches side by side",
        law: Law | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> Path:
        """Write ``report.html``, ``table.csv``, ``table.md`` and ``results.json``.

        The folder is made if there is none; each file appears whole or not at all. Returns the
        path of the page.
        """
        from ruleout.report import write

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.to_csv(place / "table.csv")
        _save(place / "table.md", self.to_markdown())
        _save(place / "results.json", self.to_json() + "\n")
        return write(self.report(title=title, law=law, facts=facts), place / "report.html")


def _save(path: str | Path, content: str) -> None:
    with atomic_write(path) as out:
        out.write(content.encode())


@dataclass(frozen=True, eq=False)
class Curve:
    """How the score grew: ``epochs [E]`` and ``values [T, E]``, of the final training."""

    epochs: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    approach, label, family, form
        As in :class:`ruleout.methods.Approach`.
    score
        The mean over trials; NaN for an approach that diverged.
    spread
        Its standard deviation over trials, or its standard error over rows: the comparison says.
    trials
        The score of every trial.
    configuration
        What was chosen, by most trials if each chose for itself.
    configurations
        What each trial chose.
    estimate, error
        The criterion on the rows that chose, and its standard error. They chose it, so it is a
        little too good.
    p_value, p_holm
        Of the paired t-test against the reference, and the same after Holm's correction; NaN
        where nothing was tested.
    mark
        ``"•"``: the reference is significantly better than this row, ``"○"``: worse.
    seconds
        How long it took, choosing and training.
    diverged, models
        How many of how many models of the grid diverged.
    baseline
        A line for comparison only, which is never the best and carries no mark.
    curve
        How the score grew with the epochs.
    values
        The score of every judging row, mean over trials.
    """

    approach: str
    label: str
    family: str
    form: str
    score: float = np.nan
    spread: float = np.nan
    trials: tuple[float, ...] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    configurations: tuple[Mapping[str, Any], ...] = ()
    estimate: float = np.nan
    error: float = np.nan
    p_value: float = np.nan
    p_holm: float = np.nan
    mark: Mark = ""
    seconds: float = 0.0
    diverged: int = 0
    models: int = 0
    baseline: bool = False
    curve: Curve | None = field(default=None, repr=False)
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def failed(self) -> bool:
        """Whether every configuration diverged, or the chosen one when trained on everything."""
        return not isfinite(self.score)

    @property
    def note(self) -> str:
        """What is special about the row, in a word or two."""
        if self.failed:
            return "diverged"
        return f"{self.diverged} of {self.models} models diverged" if self.diverged else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and text, ready for JSON; NaN becomes None."""
        names = (
            "approach label family form score spread estimate error p_value p_holm mark seconds "
            "diverged models baseline"
        )
        found: dict[str, Any] = {name: plain(getattr(self, name)) for name in names.split()}
        found["trials"] = [plain(value) for value in self.trials]
        found["configuration"] = dict(self.configuration)
        found["configurations"] = [dict(one) for one in self.configurations]
        if self.curve is not None:
            kept = [[plain(v) for v in one] for one in self.curve.values.tolist()]
            found["curve"] = {"epochs": self.curve.epochs.tolist(), "values": kept}
        return found


def plain(value: Any) -> Any:
    """Return a number that JSON has; None for NaN and infinities."""
    return None if isinstance(value, float) and not isfinite(value) else value


Over: TypeAlias = Literal["trials", "rows"]

_LABELS = {"accuracy": "Estimated accuracy", "consistency": "Consistency", "risk": "Risk"}


@dataclass(frozen=True, kw_only=True)
class Method:
    """How approaches were chosen, judged and compared.

    Attributes
    ----------
    kind
        What judged: ``"labels"`` (true labels of test rows), ``"sets"`` (label sets of test rows),
        ``"kept"`` (rows kept back), ``"folds"`` (every row, by the trial that did not see it).
    rows, trials
        How many rows judged, how many trials there were.
    measure, higher_is_better
        What the score is, and which end is good.
    criterion, criterion_up
        What chose the configurations, and which end of it is good.
    over, level, holm
        The paired t-test: over trials or rows, at which level, whether marks are corrected.
    average
        How many of the last kept epochs the score of true labels is averaged over.
    reference
        The approach that the others are tested against; empty for none.
    """

    kind: Kind
    rows: int
    trials: int
    measure: str = "accuracy"
    higher_is_better: bool = True
    criterion: str = "accuracy"
    criterion_up: bool = True
    over: Over = "trials"
    level: float = 0.05
    holm: bool = False
    average: int = 1
    reference: str = ""

    @property
    def score_label(self) -> str:
        """What the score is called."""
        if self.kind == "labels":
            return "Test accuracy"
        return _LABELS.get(self.measure, self.measure.capitalize())

    @property
    def spread_label(self) -> str:
        """What stands behind ±."""
        return "standard deviation" if self.kind == "labels" else "standard error"

    @property
    def percent(self) -> bool:
        """Whether scores are shares."""
        return self.kind == "labels" or self.measure != "risk"

    @property
    def criterion_percent(self) -> bool:
        """Whether the criterion is a share."""
        return self.criterion != "risk"

    @property
    def test(self) -> str:
        """The test behind the marks."""
        holm = ", corrected after Holm" if self.holm else ""
        return f"paired t-test over the {self.over}, two-sided, {100 * self.level:g} % level{holm}"

    def sentences(self) -> list[str]:
        """Return what a reader must know to read the table right."""
        return [*self.about_scores(), *([self._marks()] if self.reference else [])]

    def about_scores(self) -> list[str]:
        """Return what the scores are, and what they are not."""
        chose = f"Held-out {self.criterion}: on the rows that chose, whose choice flatters it."
        return [self._score(), chose, *([] if self.kind == "labels" else [self._honesty()])]

    def _score(self) -> str:
        trials = "1 trial" if self.trials == 1 else f"{self.trials} trials"
        what, rows = self.score_label, f"{self.rows:,}"
        if self.kind == "labels":
            last = f", averaged over the last {self.average} epochs" if self.average > 1 else ""
            spread = f"mean ± {self.spread_label} of {trials}" if self.trials > 1 else trials
            return f"{what}: true labels of {rows} test rows{last}; {spread}."
        source = {
            "sets": f"{rows} test rows",
            "kept": f"{rows} rows kept back, which neither trained nor chose",
            "folds": f"{rows} rows, each judged by the trial that neither trained nor chose on it",
        }[self.kind]
        mean = "" if self.kind == "folds" else f", mean of {trials}"
        return (
            f"{what}: from what was ruled out for {source}{mean}; ± standard error over the rows."
        )

    def _honesty(self) -> str:
        say = ""
        if self.measure == "accuracy":
            say = "Unbiased if every wrong class was equally likely to be ruled out. "
        say += "Errors cover the rows that judge, not other training rows. "
        if self.kind == "folds":
            say += "Trials share training rows, so errors are a little too small. "
        return say + "The best of several scores is partly luck."

    def _marks(self) -> str:
        return f"• {self.reference} is better than this row, ○ worse: {self.test}."


_NAMES = (
    "approach", "label", "family", "form", "score", "spread", "mark", "p_value", "p_holm",
    "estimate", "error",
)  # fmt: skip


class Column(NamedTuple):
    """A head and the cells beneath it, as text."""

    head: str
    cells: list[str]
    align: Literal["left", "right"] = "right"


def columns(table: Comparison) -> list[Column]:
    """Return what every printed table shows, best row first."""
    rows, method = table.ranked, table.method
    found = [
        Column("", [row.mark for row in rows], "left"),
        Column("approach", [row.approach for row in rows], "left"),
        Column("family", [row.family for row in rows], "left"),
        Column(_head(method.score_label.lower(), method.percent), [_score(table, r) for r in rows]),
    ]
    if method.reference:
        used = [row.p_holm if method.holm else row.p_value for row in rows]
        found.append(Column("p", [p_value(plain(value)) for value in used]))
    head = _head(f"held-out {method.criterion}", method.criterion_percent)
    found.append(
        Column(head, [_within(r.estimate, r.error, method.criterion_percent) for r in rows])
    )
    found += _configurations(rows)
    return [*found, Column("time", [duration(row.seconds) for row in rows])]


def _head(label: str, percent: bool) -> str:
    return f"{label}, %" if percent else label


def _score(table: Comparison, row: Row) -> str:
    return "diverged" if row.failed else _within(row.score, row.spread, table.method.percent)


def _within(value: float, error: float, percent: bool) -> str:
    show = points if percent else number
    known = plain(value), plain(error)
    if known[0] is None:
        return "–"
    return show(value) if known[1] is None else f"{show(value)} ± {show(error)}"


def _configurations(rows: list[Row]) -> list[Column]:
    """Show each setting; an approach whose trials chose differently gets a +."""
    names = dict.fromkeys(name for row in rows for name in row.configuration)
    found = []
    for name in names:
        present = [row.configuration[name] for row in rows if name in row.configuration]
        shown = iter(numbers(present))
        cells = [
            next(shown) + _more(row, name) if name in row.configuration else "–" for row in rows
        ]
        found.append(Column(name.replace("_", " "), cells))
    return found


def _more(row: Row, name: str) -> str:
    return "" if len({one[name] for one in row.configurations}) < 2 else "+"


def _title(table: Comparison) -> str:
    facts = table.facts
    own = sum(not row.baseline for row in table.rows)
    count = f"{own} approach" + ("" if own == 1 else "es")
    trials = f"{table.method.trials} trial" + ("" if table.method.trials == 1 else "s")
    grid = facts["grid"].split(" (")[0]
    return f"Comparison of {count}: {facts['model']}, {grid}, {trials}"


def notes(table: Comparison) -> list[str]:
    """Return what must be said beneath the table."""
    lost = [f"{row.approach} ({row.note})" for row in table.rows if row.diverged and not row.failed]
    parts = [f"Diverged in part: {', '.join(lost)}."] if lost else []
    if any(len({*map(str, row.configurations)}) > 1 for row in table.rows):
        parts.append("+: trials chose differently; the choice of most is shown.")
    return [*table.method.sentences(), *parts]


def text(table: Comparison) -> str:
    """Lay the table out for a prompt."""
    laid = []
    for column in columns(table):
        wide = max(map(len, [column.head, *column.cells]))
        put = str.ljust if column.align == "left" else str.rjust
        laid.append([put(cell, wide) for cell in (column.head, *column.cells)])
    lines = ["  ".join(cells).rstrip() for cells in zip(*laid, strict=True)]
    return "\n".join([_title(table), "", *lines, "", *notes(table)])


def markdown(table: Comparison) -> str:
    """Lay the table out with pipes."""
    shown = columns(table)
    lines = [
        [column.head or "mark" for column in shown],
        ["---:" if column.align == "right" else "---" for column in shown],
        *zip(*(column.cells for column in shown), strict=True),
    ]
    body = ["| " + " | ".join(map(_cell, line)) + " |" for line in lines]
    return "\n".join(
        [*body, "", *(f"{line}  " for line in notes(table)[:-1]), *notes(table)[-1:], ""]
    )


def _cell(content: str) -> str:
    return content.replace("|", "\\|").replace("\n", " ")


def html(table: Comparison) -> str:
    """Lay the table out for a notebook."""
    shown = columns(table)
    side = [f'style="text-align: {column.align}"' for column in shown]
    heads = "".join(f"<th {s}>{escape(c.head)}</th>" for c, s in zip(shown, side, strict=True))
    body = ""
    for cells in zip(*(column.cells for column in shown), strict=True):
        inside = "".join(f"<td {s}>{escape(c)}</td>" for c, s in zip(cells, side, strict=True))
        body += f"<tr>{inside}</tr>"
    beneath = "<br>".join(map(escape, notes(table)))
    return (
        f"<div><b>{escape(_title(table))}</b><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{body}</tbody></table><small>{beneath}</small></div>"
    )


def records(table: Comparison) -> list[dict[str, Any]]:
    """Return one flat dictionary per approach, best first; missing numbers are None."""
    settings = dict.fromkeys(name for row in table.rows for name in row.configuration)
    found = []
    for row in table.ranked:
        one = {name: plain(getattr(row, name)) for name in _NAMES}
        one |= {name: row.configuration.get(name) for name in settings}
        one |= {name: getattr(row, name) for name in ("seconds", "diverged", "models", "baseline")}
        for place in range(max(len(each.trials) for each in table.rows)):
            known = place < len(row.trials)
            one[f"trial_{place + 1}"] = plain(row.trials[place]) if known else None
        found.append(one)
    return found


def csv(table: Comparison) -> str:
    """Return the records as CSV."""
    rows, out = records(table), StringIO()
    writer = files.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
