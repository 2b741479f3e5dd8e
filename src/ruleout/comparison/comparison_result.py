"""What a comparison found: a row for each approach, how they were judged, and its tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison.judging import Kind, Pictures
from ruleout.comparison.significance import Mark
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import nearest
from ruleout.labels.laws import Law
from ruleout.report.formats import MISSING, duration, known, number, numbers, p_value, points
from ruleout.report.table import Table

if TYPE_CHECKING:
    import pandas

    from ruleout.report import Report

Over: TypeAlias = Literal["trials", "rows"]
Facts: TypeAlias = Mapping[str, object]

_TITLE = "Approaches side by side"
_LABELS = {"accuracy": "Estimated accuracy", "consistency": "Consistency", "risk": "Risk"}
_PLAIN = ("approach", "label", "family", "form", "score", "spread")
_TESTED = ("mark", "p_value", "p_holm", "estimate", "error")
_RUN = ("seconds", "diverged", "models", "baseline")


# ---------------------------------------------------------------------- one approach


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
        found: dict[str, Any] = {
            name: plain(getattr(self, name)) for name in (*_PLAIN, *_TESTED, *_RUN)
        }
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


# ---------------------------------------------------------------------- how they were judged


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
        """What the number after ± is."""
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
        marks = f"• {self.reference} is better than this row, ○ worse: {self.test}."
        return [*self.about_scores(), *([marks] if self.reference else [])]

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


# ---------------------------------------------------------------------- all together


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
        lost = [f"{r.approach} ({r.note})" for r in self.rows if r.diverged and not r.failed]
        parts = [f"Diverged in part: {', '.join(lost)}."] if lost else []
        if any(len({*map(str, row.configurations)}) > 1 for row in self.rows):
            parts.append("+: trials chose differently; the choice of most is shown.")
        return [*self.method.sentences(), *parts]

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
        return self.table().text().rstrip("\n")

    def _repr_html_(self) -> str:
        return self.table().html()

    def with_baseline(self, other: Comparison, *, label: str, family: str) -> Comparison:
        """Add the rows of another comparison as lines that only serve to compare.

        Such as ordinary training on true labels. They keep their scores, carry no mark, and are
        never the best.
        """
        told: dict[str, Any] = {"label": label, "family": family, "form": "", "baseline": True}
        told |= {"approach": label, "mark": "", "p_value": np.nan, "p_holm": np.nan}
        return replace(self, rows=self.rows + tuple(replace(row, **told) for row in other.rows))

    # ------------------------------------------------------------------ tables and files

    def table(self) -> Table:
        """Return what every printed table shows, best row first."""
        rows, method = self.ranked, self.method
        columns = [
            ("", [row.mark for row in rows]),
            ("approach", [row.approach for row in rows]),
            ("family", [row.family for row in rows]),
            (
                _head(method.score_label.lower(), method.percent),
                [
                    "diverged" if row.failed else shown(row.score, row.spread, method.percent)
                    for row in rows
                ],
            ),
        ]
        if method.reference:
            used = [row.p_holm if method.holm else row.p_value for row in rows]
            columns.append(("p", list(map(p_value, used))))
        share = method.criterion_percent
        held = [shown(row.estimate, row.error, share) for row in rows]
        columns.append((_head(f"held-out {method.criterion}", share), held))
        columns += [(name.replace("_", " "), _chosen(name, rows)) for name in self._settings()]
        columns.append(("time", [duration(row.seconds) for row in rows]))
        own = sum(not row.baseline for row in self.rows)
        grid = self.facts["grid"].split(" (")[0]
        ways, trials = _count(own, "approach", "es"), _count(method.trials, "trial")
        return Table(
            [head for head, _ in columns],
            list(zip(*(cells for _, cells in columns), strict=True)),
            title=f"Comparison of {ways}: {self.facts['model']}, {grid}, {trials}",
            notes=["\n".join(self.notes)],
            names=3,
        )

    def _settings(self) -> list[str]:
        return list(dict.fromkeys(name for row in self.rows for name in row.configuration))

    def _records(self) -> list[dict[str, Any]]:
        """Return one flat dictionary per approach, best first; missing numbers are None."""
        found = []
        for row in self.ranked:
            one = {name: plain(getattr(row, name)) for name in (*_PLAIN, *_TESTED)}
            one |= {name: row.configuration.get(name) for name in self._settings()}
            one |= {name: getattr(row, name) for name in _RUN}
            for place in range(max(len(each.trials) for each in self.rows)):
                some = place < len(row.trials)
                one[f"trial_{place + 1}"] = plain(row.trials[place]) if some else None
            found.append(one)
        return found

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, one row per approach, best first."""
        import pandas as pd

        return pd.DataFrame(self._records())

    def to_csv(self, path: str | Path) -> None:
        """Write one line per approach, best first; the file appears whole or not at all."""
        records = self._records()
        rows = [[str(v) if isinstance(v, bool) else v for v in one.values()] for one in records]
        _save(path, Table(list(records[0]), rows).csv())

    def to_markdown(self) -> str:
        """Return the table as Markdown, with what must be known to read it."""
        table = self.table()
        return replace(table, title="", heads=["mark", *table.heads[1:]]).markdown()

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the pictures as plain numbers, lists and text."""
        return {
            "method": asdict(self.method),
            "facts": dict(self.facts),
            "classes": list(self.classes),
            "sizes": self.sizes.tolist(),
            "rows": [row.to_dict() for row in self.rows],
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as strict JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=1)

    def report(
        self, *, title: str = _TITLE, law: Law | None = None, facts: Facts | None = None
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

    def write(self, folder: str | Path, **told: Any) -> Path:
        """Write ``report.html``, ``table.csv``, ``table.md`` and ``results.json``.

        The folder is made if there is none; each file appears whole or not at all. `told` is what
        :meth:`report` takes. Returns the path of the page.
        """
        from ruleout.report import write

        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.to_csv(place / "table.csv")
        _save(place / "table.md", self.to_markdown())
        _save(place / "results.json", self.to_json() + "\n")
        return write(self.report(**told), place / "report.html")


def shown(value: float, error: float, percent: bool) -> str:
    """Show a score with its spread, where it has one.

    >>> shown(0.93, 0.011, percent=True), shown(0.25, float("nan"), percent=False)
    ('93.00 ± 1.10', '0.25')
    """
    show = points if percent else number
    if not known(value):
        return MISSING
    return f"{show(value)} ± {show(error)}" if known(error) else show(value)


def _head(label: str, percent: bool) -> str:
    return f"{label}, %" if percent else label


def _count(number: int, what: str, more: str = "s") -> str:
    return f"{number} {what}" + ("" if number == 1 else more)


def _chosen(name: str, rows: list[Row]) -> list[str]:
    """Show one setting of each row; where its trials chose differently, with a +."""
    found = iter(numbers([row.configuration[name] for row in rows if name in row.configuration]))
    return [
        next(found) + "+" * (len({one[name] for one in row.configurations}) > 1)
        if name in row.configuration
        else MISSING
        for row in rows
    ]


def _save(path: str | Path, content: str) -> None:
    with atomic_write(path) as out:
        out.write(content.encode())
