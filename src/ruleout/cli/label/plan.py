"""``ruleout label plan``: how many questions a target accuracy will roughly take."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ruleout.cli.common import FeaturesFrom, as_notes, tell
from ruleout.cli.label.common import in_time, labelling, show

if TYPE_CHECKING:
    from ruleout.learning.planning import Forecast, Planned, Point
    from ruleout.web.progress import Progress

__all__ = ["plan"]

_WAYS = {
    "intersection": "yes and no, what is left possible",
    "answers": "yes and no, unbiased risk",
    "no": "no alone, as in the paper",
    "labels": "true labels",
}


@labelling()
def plan(
    project: Annotated[
        Path | None,
        typer.Argument(metavar="[PROJECT]", help="Measure on the answers this project has."),
    ] = None,
    target: Annotated[
        float, typer.Option("--target", metavar="SHARE", help="The accuracy to reach, as in 0.9.")
    ] = 0.9,
    labels: Annotated[
        int | None,
        typer.Option(
            "--labels", metavar="N", min=1, help="Without a project: N true labels would do."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="With a project: linear or mlp.")] = "linear",
    features_from: FeaturesFrom = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed measures the same.")] = 0,
) -> None:
    """Say how many questions a target accuracy will roughly take, with its uncertainty.

    With a project that has answers, models are trained on growing shares of them and tested on
    the rest, without true labels. Without one, the study in the documentation answers.
    """
    if not 0 < target < 1:
        raise typer.BadParameter(f"{target} is no share; write --target 0.9", param_hint="--target")
    if project is None:
        _from_study(target, labels)
        return
    if labels is not None:
        raise typer.BadParameter("--labels is for planning without a project")
    from ruleout.learning import read_review
    from ruleout.learning.planning import forecast, measure_curve
    from ruleout.learning.training_data import said
    from ruleout.web.project import Project

    with Project.open(project) as opened, as_notes():
        review = read_review(opened, features_from)
        tell([*review.table.notes, *said(review.dropped, "they are left out")])
        progress = opened.store.progress()
        found = measure_curve(review, model=model, seed=seed, progress=_step)
    _print_points(found, model)
    _print_forecast(forecast(found, target, seed=seed), progress)


def _step(done: int, total: int) -> None:
    typer.echo(f"measured {done} of {total}", err=True)


def _print_points(found: list[Point], model: str) -> None:
    typer.echo(f"Measured on this project ({model}), without true labels:")
    for point in found:
        typer.echo(f"  {point.questions:9,.0f} questions: {point.accuracy:.3f} ± {point.error:.3f}")


def _print_forecast(found: Forecast, progress: Progress) -> None:
    typer.echo(f"{found.target:g} {_in_words(found)}")
    if math.isinf(found.questions):
        return
    more = max(0, found.questions - progress.answers)
    pace = progress.per_hour
    if not more:
        typer.echo("So many were answered already.")
        return
    time = f", {in_time(3600 * more / pace)} at the pace of the last answers" if pace else ""
    typer.echo(f"That is {_rounded(more)} more than were answered{time}.")


def _in_words(found: Forecast) -> str:
    """Say the number and its range.

    >>> from ruleout.learning.planning import Curve, Forecast
    >>> _in_words(Forecast(0.9, 1234, 900, math.inf, 0.8, Curve(0.05, 2.0, 0.5)))
    'takes about 1,200 questions (8 of 10: 900 or more).'
    """
    if math.isinf(found.questions):
        share = f"{100 * found.reachable:.0f} of 100 curves that fit as well reach it"
        return f"is beyond the curve; {share}. Another model or better features may help."
    return f"takes about {_rounded(found.questions)} questions (8 of 10: {_span(found)})."


def _span(found: Forecast | Planned) -> str:
    if math.isinf(found.low):
        return _rounded(found.low)
    upper = "or more" if math.isinf(found.high) else f"to {_rounded(found.high)}"
    return f"{_rounded(found.low)} {upper}"


def _rounded(value: float) -> str:
    """Return two digits of a number: more would be a lie."""
    if math.isinf(value):
        return "not reached"
    unit = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return f"{round(value / unit) * unit:,}"


def _from_study(target: float, labels: int | None) -> None:
    from ruleout.learning.planning import label_ratio, study_plans

    plans = study_plans(target)
    if not plans:
        raise ValueError(
            "this copy holds no study to plan by; give a project that has some answers"
        )
    if labels is not None:
        typer.echo(f"Where {labels:,} true labels would do, the study's ratios say:")
        for way in ("intersection", "answers", "no"):
            ratio = label_ratio(way)
            span = f"{_rounded(labels * ratio.low)} to {_rounded(labels * ratio.high)}"
            middle = _rounded(labels * ratio.middle)
            typer.echo(f"  {middle} questions ({span}), learning from {_WAYS[way]}")
        return
    from rich.table import Table

    grid = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("data", "model", "learning from", "questions", "range"):
        grid.add_column(column, justify="right" if column in ("questions", "range") else "left")
    for one in plans:
        asked = _rounded(one.questions)
        grid.add_row(one.data, one.model, _WAYS[one.way], asked, _span(one))
    typer.echo(f"Questions until {target:g} in the study with a simulated annotator, 10 classes:")
    show(grid)
    typer.echo("Your data differ: give --labels N, or a project that has some answers.")
