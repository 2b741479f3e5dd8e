"""A comparison as a page: the parts of its report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import isclose
from typing import TYPE_CHECKING

import numpy as np

from ruleout.comparison.comparison_result import Row, plain, shown
from ruleout.comparison.judging import Pictures
from ruleout.labels.laws import Law, size_law
from ruleout.report import (
    Curves,
    Histogram,
    Line,
    Matrix,
    Note,
    Part,
    Reliability,
    Report,
    Score,
    ScoreTable,
    Section,
)
from ruleout.report.formats import duration

if TYPE_CHECKING:
    from ruleout.comparison.comparison_result import Comparison


def page(table: Comparison, title: str, law: Law | None, facts: Mapping[str, object]) -> Report:
    """Return the whole report."""
    own = {_headed(name): value for name, value in table.facts.items() if name != "seconds"}
    own["Time"] = duration(table.facts.get("seconds"))
    sections = [
        Section("Scores", [_scores(table), *_diverged(table)]),
        *([Section("Learning curves", [_curves(table)])] if _lines(table) else []),
        Section("What was ruled out", [_histogram(table, law)]),
    ]
    if table.pictures is not None:
        text = f"{table.pictures.approach}, the approach with the best score."
        sections.append(Section("Predictions of the best", list(_pictures(table)), text))
    return Report(title, list(_summary(table)), {**facts, **own}, sections)


def _headed(name: str) -> str:
    return (name[:1].upper() + name[1:]).replace("_", " ")


def _summary(table: Comparison) -> Iterator[str]:
    alive = [row for row in table.rows if not row.failed and not row.baseline]
    if not alive:
        yield "Every approach diverged; try smaller learning rates."
        return
    best, chosen = table.best, table.chosen
    yield f"{table.method.score_label}: {_winner(table, alive)}."
    if chosen is not best:
        yield (
            f"By the criterion alone, before any score was seen, {chosen.approach} would be "
            f"chosen; its score is {_shown(table, chosen)}."
        )
    for row in table.rows:
        if row.baseline and not row.failed:
            yield f"For comparison, {row.label} ({row.family}): {_shown(table, row)}."
    worse = sum(row.mark == "•" for row in table.rows)
    if table.method.reference:
        yield (
            f"{table.method.reference} is significantly better than {worse} of "
            f"{len(alive) - 1} others ({table.method.test})."
        )


def _winner(table: Comparison, alive: list[Row]) -> str:
    """Say who is best, as far as the test does."""
    best, reference = table.best, table.method.reference
    score = _shown(table, best)
    same = [row.approach for row in alive if isclose(row.score, best.score, abs_tol=1e-12)]
    if len(same) > 1:
        return f"{', '.join(same[:-1])} and {same[-1]} share the best score, {score}"
    if best.approach == reference:
        rivals = [row.approach for row in alive if row is not best and row.mark != "•"]
    else:
        rivals = [reference] if reference and best.mark != "○" else []
    if not rivals:
        return f"{best.approach} is best with {score}"
    others = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} others" if len(rivals) > 3 else "")
    return (
        f"{best.approach} has the best score, {score}, but the test does not tell it from {others}"
    )


def _shown(table: Comparison, row: Row) -> str:
    percent = table.method.percent
    return shown(row.score, row.spread, percent) + " %" * percent


def _scores(table: Comparison) -> ScoreTable:
    method = table.method
    return ScoreTable(
        "Approaches, best first",
        [_score(table, row) for row in table.ranked],
        score_label=method.score_label,
        spread_label=method.spread_label,
        estimate_label=f"Held-out {method.criterion}",
        unit="percent" if method.percent else "number",
        higher_is_better=method.higher_is_better,
        order="given",
        ours=method.reference,
        test_label=method.test,
        note=" ".join(method.about_scores()),
    )


def _score(table: Comparison, row: Row) -> Score:
    comparable = table.method.percent == table.method.criterion_percent  # one unit for a table
    return Score(
        row.approach,
        plain(row.score),
        plain(row.spread),
        label=row.label if row.label != row.approach else "",
        family=row.family,
        form=row.form,
        mark=row.mark,
        p_value=plain(row.p_holm if table.method.holm else row.p_value),
        chosen={name.replace("_", " "): value for name, value in row.configuration.items()},
        estimate=plain(row.estimate) if comparable else None,
        estimate_error=plain(row.error) if comparable else None,
        seconds=row.seconds,
        trials=row.trials if table.method.trials > 1 else (),
        reference=row.baseline,
    )


def _diverged(table: Comparison) -> Iterator[Note]:
    if failed := [row.approach for row in table.rows if row.failed]:
        yield Note(f"Diverged, so without a score: {', '.join(failed)}.", kind="warning")
    lost = [row for row in table.rows if row.diverged and not row.failed]
    if lost:
        said = ", ".join(f"{row.approach} {row.diverged} of {row.models}" for row in lost)
        yield Note(f"Models of the grid that diverged and were passed over: {said}.")


def _lines(table: Comparison) -> list[Line]:
    lines = []
    for row in table.rows:
        if row.curve is None:
            continue
        x, values = row.curve.epochs, row.curve.values
        line = Line(row.approach, x, values.mean(0), family=row.family)
        if len(values) > 1:
            mean, spread = values.mean(0), values.std(0, ddof=1)
            line = replace(line, low=mean - spread, high=mean + spread)
        lines.append(line)
    return lines


def _curves(table: Comparison) -> Curves:
    method = table.method
    top: dict[str, str] = {}  # the best of each family
    for row in table.ranked:
        if row.curve is not None:
            top.setdefault(row.family, row.approach)
    return Curves(
        f"{method.score_label} while the chosen configuration trains",
        _lines(table),
        y_label=method.score_label,
        band_label=f"± standard deviation of {method.trials} trials" if method.trials > 1 else "",
        unit="percent" if method.percent else "number",
        visible=list(top.values()),
        note="The best of each family is highlighted at first.",
    )


def _histogram(table: Comparison, law: Law | None) -> Histogram:
    first = 0 if table.sizes[0] else 1
    counts = table.sizes[first:]
    expected = np.zeros(0)
    if law is not None:
        whole = np.concatenate([[0.0], size_law(law, len(table.classes))])
        expected = (whole * table.sizes[1:].sum())[first:]
    named = f" ({law})" if isinstance(law, str) else ""
    return Histogram(
        "How many classes each example rules out",
        counts,
        expected=expected,
        first=first,
        y_label="Examples" if table.sizes.sum() == table.facts["rows"] else "Examples, all trials",
        expected_label=f"expected under the law{named}",
    )


def _pictures(table: Comparison) -> Iterator[Part]:
    seen = table.pictures
    assert seen is not None
    names = list(table.classes)
    yield _reliability(table, seen)
    yield Matrix(
        "Ruled out against predicted",
        names,
        names,
        seen.ruled,
        diagonal="predicted although it was ruled out.",
        note=f"Counted on {seen.ruled_rows}.",
    )
    if seen.confusion is not None:
        yield Matrix(
            "True against predicted",
            names,
            names,
            seen.confusion,
            row_label="true",
            diagonal="right predictions.",
            note=f"{table.method.rows:,} test rows, first trial.",
        )


def _reliability(table: Comparison, seen: Pictures) -> Reliability:
    true = table.method.kind == "labels"
    trial = "" if table.method.kind == "folds" else ", first trial"
    return Reliability(
        "How often it is right when it is this sure",
        seen.bins.confidence,
        seen.bins.accuracy,
        seen.bins.count,
        error=seen.bins.error,
        estimated=not true,
        note=f"{int(seen.bins.count.sum()):,} rows{trial}; bins of at least 10 rows.",
    )
