"""What a comparison found: a row for each approach, how they were judged, tables and a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from math import isclose, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison.judging import Kind, Pictures
from ruleout.labels.atomic import write_text
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import counted, nearest
from ruleout.labels.laws import Law, size_law
from ruleout.report import parts, write
from ruleout.report.number_format import MISSING, duration, number, numbers, p_value, points, value
from ruleout.report.table_writers import Table

if TYPE_CHECKING:
    import pandas

Over: TypeAlias = Literal["trials", "rows", "both"]

_LABELS = {"accuracy": "Estimated accuracy", "calibrated": "Log-likelihood"}
_PERCENT = ("accuracy", "consistency")
_PLAIN = ("approach", "label", "family", "form", "score", "spread")
_TESTED = ("mark", "p_value", "p_holm", "estimate", "error")
_RUN = ("seconds", "diverged", "models", "baseline")


class Curve(NamedTuple):
    """How the score grew: ``epochs [E]`` and ``values [T, E]``, of the final training."""

    epochs: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One line of the table; its first four names are as in :class:`ruleout.methods.Approach`."""

    approach: str
    label: str
    family: str
    form: str
    score: float = np.nan  #: the mean over trials, NaN for an approach that diverged
    spread: float = np.nan  #: standard deviation over trials, or standard error over rows
    trials: tuple[float, ...] = ()  #: the score of every trial
    #: what was chosen, by most trials if each chose for itself
    configuration: Mapping[str, Any] = field(default_factory=dict)
    configurations: tuple[Mapping[str, Any], ...] = ()  #: what each trial chose
    estimate: float = np.nan  #: the criterion on the rows that chose, so a little too good
    error: float = np.nan  #: its standard error
    p_value: float = np.nan  #: of the t-test against the reference; NaN: not tested
    p_holm: float = np.nan  #: the same after Holm's correction
    #: ``"•"``: the reference is significantly better than this row, ``"○"``: worse
    mark: parts.Mark = ""
    seconds: float = 0.0  #: how long it took, choosing and training
    diverged: int = 0  #: how many models of the grid diverged
    models: int = 0  #: of how many
    baseline: bool = False  #: a line for comparison only, never the best and without a mark
    #: how the score grew with the epochs
    curve: Curve | None = field(default=None, repr=False)
    #: the score of every judging row, mean over trials; of groups one each (`by_group`)
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)
    #: the score of every judging row in every trial, ``[T, m]``; NaN where a row says nothing
    cells: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

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
        found = {name: _plain(getattr(self, name)) for name in (*_PLAIN, *_TESTED, *_RUN)}
        found["trials"] = [_plain(value) for value in self.trials]
        found["configuration"] = dict(self.configuration)
        found["configurations"] = [dict(one) for one in self.configurations]
        if self.curve is not None:
            kept = [[_plain(v) for v in one] for one in self.curve.values.tolist()]
            found["curve"] = {"epochs": self.curve.epochs.tolist(), "values": kept}
        return found


def _plain(value: Any) -> Any:
    """Return a number that JSON has; None for NaN and infinities."""
    return None if isinstance(value, float) and not isfinite(value) else value


@dataclass(frozen=True, kw_only=True)
class Method:
    """How approaches were chosen, judged and compared."""

    #: what judged: ``"labels"`` (true labels of test rows), ``"sets"`` (label sets of test rows),
    #: ``"kept"`` (rows kept back), ``"folds"`` (every row, by the trial that did not see it)
    kind: Kind
    rows: int  #: how many rows judged
    trials: int  #: how many trials there were
    measure: str = "accuracy"  #: what the score is
    higher_is_better: bool = True  #: which end of it is good
    criterion: str = "accuracy"  #: what chose the configurations
    criterion_up: bool = True  #: which end of it is good
    over: Over = "trials"  #: what the t-test takes for a sample: trials, rows or both
    level: float = 0.05  #: of the test
    holm: bool = False  #: whether marks are corrected
    average: int = 1  #: over how many of the last kept epochs the score of true labels is averaged
    reference: str = ""  #: the approach that the others are tested against; empty for none
    #: what an accuracy estimated from sets assumes
    assumption: str = "It assumes that sets are drawn at random and that none is wrong."
    rejected: bool = False  #: whether a test rejects that: then nothing is called an accuracy

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
        return self.kind == "labels" or self.measure in _PERCENT

    @property
    def criterion_label(self) -> str:
        if self.criterion == "accuracy":
            return "Held-out estimate" if self.rejected else "Held-out accuracy"
        return f"Held-out {_LABELS.get(self.criterion, self.criterion).lower()}"

    @property
    def criterion_percent(self) -> bool:
        return self.criterion in _PERCENT

    @property
    def test(self) -> str:
        """The test behind the marks."""
        holm = ", corrected after Holm" if self.holm else ""
        over = "trials and rows" if self.over == "both" else self.over
        return f"paired t-test over the {over}, two-sided, {100 * self.level:g} % level{holm}"

    def sentences(self) -> list[str]:
        """Return what a reader must know to read the table right."""
        judges = "" if self.over == "trials" else ", the rows that judge"
        claim = f"Marks allow for chance in first weights, batches, choices{judges}."
        if self.over == "rows":
            claim = "Marks tell these trained models apart; trained again, they may differ."
        marks = f"• {self.reference} is better than this row, ○ worse: {self.test}. {claim}"
        return [*self.about_scores(), *([marks] if self.reference else [])]

    def about_scores(self) -> list[str]:
        """Return what the scores are, and what they are not."""
        chose = f"{self.criterion_label}: on the rows that chose, whose choice flatters it."
        if self.kind == "labels":
            return [self._score(), chose]
        say = f"{self.assumption} " if self.measure == "accuracy" or self.rejected else ""
        if self.measure == "calibrated":
            say += "A log-likelihood, each model as sure as suits it best, tells which is better "
            say += "if what was ruled out says nothing of which class left is true. "
        say += "Errors cover the rows that judge, not other training rows. "
        if self.kind == "folds":
            say += "Trials share training rows, so errors are a little too small. "
        return [self._score(), chose, say + "The best of several scores is partly luck."]

    def _score(self) -> str:
        trials = counted(self.trials, "trial")
        what = self.score_label
        if self.kind == "labels":
            last = f", averaged over the last {self.average} epochs" if self.average > 1 else ""
            spread = f"mean ± {self.spread_label} of {trials}" if self.trials > 1 else trials
            return f"{what}: true labels of {counted(self.rows, 'test row')}{last}; {spread}."
        rows = counted(self.rows, "row")
        source = {
            "sets": counted(self.rows, "test row"),
            "kept": f"{rows} kept back, which neither trained nor chose",
            "folds": f"{rows}, each judged by the trial that neither trained nor chose on it",
        }[self.kind]
        mean = "" if self.kind == "folds" else f", mean of {trials}"
        error = "± standard error over the rows"
        return f"{what}: from what was ruled out for {source}{mean}; {error}."


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Comparison:
    """Approaches side by side, each with the configuration that was chosen without true labels."""

    rows: tuple[Row, ...]  #: one per approach, in the order asked for
    method: Method  #: how they were judged and compared
    facts: Mapping[str, Any]  #: what was run: rows, classes, model, grid, epochs, device, versions
    classes: tuple[ClassName, ...]  #: the class names
    sizes: NDArray[np.intp]  #: how many examples rule out 0, 1, …, k-1 classes, over all trials
    pictures: Pictures | None = None  #: what is known of the predictions of the best approach

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
        return sorted(self.rows, key=lambda r: (r.baseline, r.failed, r.failed or sign * r.score))

    @property
    def notes(self) -> list[str]:
        """What must be known to read the table right."""
        lost = [f"{r.approach} ({r.note})" for r in self.rows if r.diverged and not r.failed]
        more = [f"Diverged in part: {', '.join(lost)}."] if lost else []
        alive = [row for row in self.rows if not row.failed and not row.baseline]
        tested = len(alive) > 1 and self.method.reference
        if tested and not np.isfinite([row.p_value for row in alive]).any():
            least = {"trials": "two trials", "rows": "two rows", "both": "three trials"}
            more.append(f"No p: the test takes at least {least[self.method.over]}.")
        if any(len({*map(str, row.configurations)}) > 1 for row in self.rows):
            more.append("+: trials chose differently; the choice of most is shown.")
        return [*self.method.sentences(), *more]

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

    def table(self) -> Table:
        """Return what every printed table shows, best row first."""
        rows, method = self.ranked, self.method
        scores = [_shown(row.score, row.spread, method.percent, "diverged") for row in rows]
        columns = [
            ("", [row.mark for row in rows]),
            ("approach", [row.approach for row in rows]),
            ("family", [row.family for row in rows]),
            (method.score_label.lower() + ", %" * method.percent, scores),
        ]
        if method.reference:
            used = [row.p_holm if method.holm else row.p_value for row in rows]
            columns.append(("p", list(map(p_value, used))))
        share = method.criterion_percent
        held = [_shown(row.estimate, row.error, share) for row in rows]
        columns.append((method.criterion_label.lower() + ", %" * share, held))
        columns += [(name.replace("_", " "), _chosen(name, rows)) for name in self._settings()]
        columns.append(("time", [duration(row.seconds) for row in rows]))
        own = sum(not row.baseline for row in self.rows)
        grid = self.facts["grid"].split(" (")[0]
        ways, trials = counted(own, "approach", "approaches"), counted(method.trials, "trial")
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
        most = max(len(row.trials) for row in self.rows)
        return [
            {name: _plain(getattr(row, name)) for name in (*_PLAIN, *_TESTED)}
            | {name: row.configuration.get(name) for name in self._settings()}
            | {name: getattr(row, name) for name in _RUN}
            | {f"trial_{i + 1}": _plain((*row.trials, *[None] * most)[i]) for i in range(most)}
            for row in self.ranked
        ]

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame, one row per approach, best first."""
        import pandas as pd

        return pd.DataFrame(self._records())

    def to_csv(self, path: str | Path) -> None:
        """Write one line per approach, best first; the file appears whole or not at all."""
        records = self._records()
        rows = [[str(v) if isinstance(v, bool) else v for v in one.values()] for one in records]
        write_text(path, Table(list(records[0]), rows).csv())

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
        self,
        *,
        title: str = "Approaches side by side",
        law: Law | None = None,
        facts: Mapping[str, object] | None = None,
    ) -> parts.Report:
        """Return a page: table, learning curves, set sizes, reliability, what was contradicted.

        `law` is the size law to draw over the sizes, if it is known; `facts` are more to say about
        the run, such as the name of the data.
        """
        own = {n[:1].upper() + n[1:].replace("_", " "): v for n, v in self.facts.items()}
        own["Time"] = duration(own.pop("Seconds", None))
        sections = [parts.Section("Scores", [_scores(self), *_diverged(self)])]
        if (curves := _curves(self)) is not None:
            sections.append(parts.Section("Learning curves", [curves]))
        sections.append(parts.Section("What was ruled out", [_histogram(self, law)]))
        if (seen := self.pictures) is not None:
            text = f"{seen.approach}, the approach with the best score."
            looked = [*_looked_at(self, seen)]
            sections.append(parts.Section("Predictions of the best", looked, text))
        return parts.Report(title, list(_summary(self)), {**(facts or {}), **own}, sections)

    def write(self, folder: str | Path, **told: Any) -> Path:
        """Write ``report.html``, ``table.csv``, ``table.md`` and ``results.json``.

        The folder is made if there is none; each file appears whole or not at all. `told` is what
        :meth:`report` takes. Returns the path of the page.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        self.to_csv(place / "table.csv")
        write_text(place / "table.md", self.to_markdown())
        write_text(place / "results.json", self.to_json() + "\n")
        return write(self.report(**told), place / "report.html")


def _shown(mean: float, error: float, percent: bool, otherwise: str = MISSING) -> str:
    return value(mean, error, points if percent else number) if isfinite(mean) else otherwise


def _chosen(name: str, rows: list[Row]) -> list[str]:
    """Show one setting of each row; where its trials chose differently, with a +."""
    found = numbers([row.configuration.get(name) for row in rows])
    return [
        shown + "+" * (len({str(one.get(name)) for one in row.configurations}) > 1)
        for shown, row in zip(found, rows, strict=True)
    ]


def _summary(table: Comparison) -> Iterator[str]:
    alive = [row for row in table.rows if not row.failed and not row.baseline]
    if not alive:
        yield "Every approach diverged; try smaller learning rates."
        return
    best, chosen = table.best, table.chosen
    yield f"{table.method.score_label}: {_winner(table, alive)}."
    if chosen is not best:
        said = f"before any score was seen, {chosen.approach} would be chosen"
        yield f"By the criterion alone, {said}; its score is {_score_of(table, chosen)}."
    for row in table.rows:
        if row.baseline and not row.failed:
            yield f"For comparison, {row.label} ({row.family}): {_score_of(table, row)}."
    if reference := table.method.reference:
        worse = f"{sum(row.mark == '•' for row in table.rows)} of {len(alive) - 1} others"
        yield f"{reference} is significantly better than {worse} ({table.method.test})."


def _winner(table: Comparison, alive: list[Row]) -> str:
    best, reference = table.best, table.method.reference
    score = _score_of(table, best)
    same = [row.approach for row in alive if isclose(row.score, best.score, abs_tol=1e-12)]
    if len(same) > 1:
        return f"{', '.join(same[:-1])} and {same[-1]} share the best score, {score}"
    if best.mark == "○" and len(alive) > 2:
        than = f"significantly better than {reference}; it is not tested against the others"
        return f"{best.approach} has the best score, {score}, {than}"
    if best.approach == reference:
        rivals = [row.approach for row in alive if row is not best and row.mark != "•"]
    else:
        rivals = [reference] if reference and best.mark != "○" else []
    if not rivals:
        return f"{best.approach} is best with {score}"
    others = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} others" if len(rivals) > 3 else "")
    but = f"but the test does not tell it from {others}"
    return f"{best.approach} has the best score, {score}, {but}"


def _score_of(table: Comparison, row: Row) -> str:
    percent = table.method.percent
    return _shown(row.score, row.spread, percent) + " %" * percent


def _scores(table: Comparison) -> parts.ScoreTable:
    method = table.method
    return parts.ScoreTable(
        "Approaches, best first",
        [_score(method, row) for row in table.ranked],
        score_label=method.score_label,
        spread_label=method.spread_label,
        estimate_label=method.criterion_label,
        unit="percent" if method.percent else "number",
        higher_is_better=method.higher_is_better,
        order="given",
        ours=method.reference,
        test_label=method.test,
        note=" ".join(method.about_scores()),
    )


def _score(method: Method, row: Row) -> parts.Score:
    told = {name: getattr(row, name) for name in ("family", "form", "mark", "seconds")}
    if method.percent == method.criterion_percent:  # one unit for a table
        told |= {"estimate": row.estimate, "estimate_error": row.error}
    return parts.Score(
        row.approach,
        row.score,
        row.spread,
        label=row.label if row.label != row.approach else "",
        p_value=row.p_holm if method.holm else row.p_value,
        chosen={name.replace("_", " "): value for name, value in row.configuration.items()},
        trials=row.trials if method.trials > 1 else (),
        reference=row.baseline,
        **told,
    )


def _diverged(table: Comparison) -> Iterator[parts.Note]:
    if failed := [row.approach for row in table.rows if row.failed]:
        yield parts.Note(f"Diverged, so without a score: {', '.join(failed)}.", kind="warning")
    lost = [row for row in table.rows if row.diverged and not row.failed]
    if lost:
        said = ", ".join(f"{row.approach} {row.diverged} of {row.models}" for row in lost)
        yield parts.Note(f"Models of the grid that diverged and were passed over: {said}.")


def _curves(table: Comparison) -> parts.Curves | None:
    method, lines = table.method, []
    for row in table.rows:
        if (curve := row.curve) is not None:
            mean, many = curve.values.mean(0), len(curve.values) > 1
            spread = curve.values.std(0, ddof=int(many))
            band: Any = (mean - spread, mean + spread) if many else ((), ())
            lines.append(parts.Line(row.approach, curve.epochs, mean, band[0], band[1], row.family))
    if not lines:
        return None
    drawn = [row for row in table.ranked if row.curve is not None]
    top = {row.family: row.approach for row in reversed(drawn)}  # the best of each family
    return parts.Curves(
        f"{method.score_label} while the chosen configuration trains",
        lines,
        y_label=method.score_label,
        band_label=f"± standard deviation of {method.trials} trials" if method.trials > 1 else "",
        unit="percent" if method.percent else "number",
        visible=top.values(),
        note="The best of each family is highlighted at first.",
    )


def _histogram(table: Comparison, law: Law | None) -> parts.Histogram:
    first = 0 if table.sizes[0] else 1
    expected = np.zeros(0)
    if law is not None:
        whole = np.concatenate([[0.0], size_law(law, len(table.classes))])
        expected = (whole * table.sizes[1:].sum())[first:]
    named = f" ({law})" if isinstance(law, str) else ""
    return parts.Histogram(
        "How many classes each example rules out",
        table.sizes[first:],
        expected=expected,
        first=first,
        y_label="Examples" if table.sizes.sum() == table.facts["rows"] else "Examples, all trials",
        expected_label=f"expected under the law{named}",
    )


def _looked_at(table: Comparison, seen: Pictures) -> Iterator[parts.Part]:
    names, kind = list(table.classes), table.method.kind
    sure, right, error, count = seen.bins
    trial = "" if kind == "folds" else ", first trial"
    if kind == "labels" or not table.method.rejected:
        yield parts.Reliability(
            "How often it is right when it is this sure",
            sure,
            right,
            count,
            error=error,
            estimated=kind != "labels",
            note=f"{int(count.sum()):,} rows{trial}; bins of at least 10 rows.",
        )
    yield parts.Matrix(
        "Ruled out against predicted",
        names,
        names,
        seen.ruled,
        diagonal="predicted although it was ruled out.",
        note=f"Counted on {seen.ruled_rows}.",
    )
    if seen.confusion is not None:
        yield parts.Matrix(
            "True against predicted",
            names,
            names,
            seen.confusion,
            row_label="true",
            diagonal="right predictions.",
            note=f"{table.method.rows:,} test rows, first trial.",
        )
