"""``ruleout fit``: from a table to a model folder."""

from __future__ import annotations

from datetime import datetime
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import (
    UNKNOWN,
    Source,
    as_notes,
    assumed,
    expecting,
    friendly,
    scaling,
    watching,
)
from ruleout.labels import Evidence, LabelSets
from ruleout.labels.errors import counted
from ruleout.labels.origins import may_err, says

if TYPE_CHECKING:
    from ruleout.datasets import Finding, Table
    from ruleout.estimator.classifier import Judged


@friendly()
@Source.from_options(*options.LEARNING, "error_rate", "how")
def fit(
    out: Annotated[Path, "MODEL", "The folder to write."],
    source: Source,
    approach: Annotated[
        str | None,
        "How to learn from what was ruled out. By default log, or likelihood where some of it may "
        "be wrong. auto: a few are tried, chosen by what holds for these sets.",
    ] = None,
    model: Annotated[str, "linear, mlp, or for images resnet32, densenet22, resnet34."] = "linear",
    hidden: Annotated[str | None, "A,B,…", "Widths of an mlp's hidden layers: 300,100."] = None,
    grid: Annotated[
        Literal["small", "paper", "none"],
        "Choose the learning rate and weight decay from 8 pairs, from the paper's 36 in up to four "
        "times as many epochs, or not at all. A value given below is not chosen.",
    ] = "small",
    learning_rate: Annotated[float | None, "Without a grid 0.001."] = None,
    weight_decay: Annotated[float | None, "Without a grid 0.00001."] = None,
    epochs: Annotated[
        int | None, "Passes over the rows. By default 100, or more where rows are few."
    ] = None,
    batch_size: Annotated[int, "Rows per step."] = 256,
    optimizer: Annotated[str, "adam, adamw or sgd."] = "adam",
    criterion: Annotated[str, "Choose by accuracy, consistency or risk."] = "accuracy",
    rule: Annotated[
        str | None,
        "best; likeliest: of those that accuracy cannot tell from the best, what foretells best "
        "what was said; one-standard-error: the simplest near the best. By default the likeliest "
        "where true classes of some rows are known, else the best.",
    ] = None,
    early_stopping: options.EarlyStopping = False,
    scale: options.Scale = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed trains the same model.")] = 0,
    device: options.Device = "cpu",
    precision: options.Precision = "float32",
) -> None:
    """Train a classifier from what each row is not, and write it to a folder.

    Settings are chosen on rows held out, from what was ruled out there: a tenth of the rows, or up
    to 5,000 rows (1,000 where the model is not linear) each row once, in five folds.

    Then the model is trained on all rows. With --label it learns from true labels. A labelling
    project brings its answers with it.
    """
    source = source if source.label else source.with_board()
    given = source.sets != bool(source.label)
    source = source.need_column("--excluded, --candidates or --label", given)
    auto = approach == "auto"
    if auto and (grid != "small" or learning_rate is not None or weight_decay is not None):
        say = "auto chooses its own; leave out --grid, --learning-rate and --weight-decay"
        raise typer.BadParameter(say, param_hint="--approach")
    from ruleout.estimator import RuleOutClassifier
    from ruleout.estimator.model_folder import CARD, check_place
    from ruleout.methods import approach as find_approach

    card = check_place(out) / CARD  # before hours of training
    replaced = datetime.fromtimestamp(card.stat().st_mtime) if card.exists() else None
    clf = RuleOutClassifier(
        approach=approach or "log",
        model=model,
        hidden=_widths(hidden),
        grid=_grid(grid, learning_rate, weight_decay),
        learning_rate=1e-3 if learning_rate is None else learning_rate,
        weight_decay=1e-5 if weight_decay is None else weight_decay,
        epochs=epochs,
        batch_size=batch_size,
        optimizer=optimizer,
        criterion=criterion,
        rule=rule,
        early_stopping=early_stopping,
        random_state=seed,
        device=None if device == "cpu" else device,
        precision=precision,
    )
    graded = approach is None or auto or find_approach(approach).graded is not None
    table, target, weight = source.training_data(graded, clf.learns_unlabelled)
    if approach is None and isinstance(target, Evidence) and may_err(target):
        clf.set_params(approach="likelihood")
    clf.set_params(
        classes=list(table.classes or ()) if source.label else None,
        shape=table.shape if len(table.shape) > 1 else None,
        scale=bool(scale) if auto else scaling(table, scale),  # auto looks for itself
    )
    with as_notes(), watching(lambda stage, n, m: f"{stage}: epoch {n} of {m}") as (progress, _):
        told: Any = {"groups": table.groups, "progress": progress, "expect": expecting(device)}
        clf.fit(table.x, target, weight, **told)
    about = assumed(target, table)
    if about is not None and about.level == "warning":
        clf.record_["rejected"] = about.numbers["why"]  # fewer rows may not show it again
    clf.save(out, reading=dict(table.reading))
    _print(clf, table, target, out, replaced, about)


def _widths(text: str | None) -> list[int] | None:
    try:
        return None if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        problem = f"{text!r} is not a list of widths; write --hidden 300,100"
        raise typer.BadParameter(problem) from None


def _grid(name: str, rate: float | None, decay: float | None) -> Any:
    """Return the grid, less what was given; None where nothing is left to choose."""
    given = {"learning_rate": rate, "weight_decay": decay}
    left = [key for key, value in given.items() if value is None]
    if name == "none" or not left:
        return None
    from ruleout.training.grids import named_grid

    return name if len(left) == 2 else {key: list(named_grid(name)[key]) for key in left}


def _print(
    clf: Any,
    table: Table,
    target: Any,
    out: Path,
    replaced: datetime | None,
    assumption: Finding | None,
) -> None:
    kind, (silent, known) = " × ".join(map(str, table.shape)), _counts(target)
    also = f"; the true class of {known:,} is known" if known else ""
    if silent:
        kept = clf.learns_unlabelled
        how = "learn from what the model says of them" if kept else "are left out"
        also += f"; {silent:,} more say nothing and {how}"
    rows = f"{counted(len(table) - silent, 'row')} of {kind} features"
    typer.echo(f"Trained on {rows}, {len(clf.classes_)} classes{also}.")
    if hasattr(clf, "auto_"):
        typer.echo(f"Auto: {clf.auto_}.")
    plain = {n: f"{v:g}" if isinstance(v, float) else v for n, v in clf.configuration_.items()}
    chosen = ", ".join(f"{name} {value}" for name, value in plain.items() if value is not None)
    if hasattr(clf, "criterion_"):
        count = len(clf.search_["estimate"])
        by = "" if table.labels is not None else ", without true labels"
        by = f", with {known:,} true labels" if getattr(target, "corrected", False) else by
        typer.echo(f"Chosen of {count} by {clf.criterion_.name}{by}: {chosen}.")
        judged = clf.criterion_.name
        told = assumption if judged in ("accuracy", "calibrated") else None
        rejected = told is not None and told.level == "warning"
        if judged != "accuracy" or not rejected:
            typer.echo(_number(clf.criterion_, "folds" in clf.record_))
        if told is not None and (rejected or isfinite(clf.criterion_.estimate)):
            typer.echo(told.message)
        if judged == "likelihood" and clf.criterion == "accuracy":  # which could not choose
            typer.echo(f"No accuracy is estimated: {UNKNOWN}.")
    else:
        typer.echo(f"Settings: {chosen}.")
    if replaced is not None:
        typer.echo(f"Replaced the model of {replaced:%Y-%m-%d %H:%M}.")
    many = clf.record_.get("members", ())
    of = dict.fromkeys(one["approach"] for one in many if "approach" in one)
    told_of = f"; {len(many)} models, whose mean predicts" if many else ""
    told_of += f" ({', '.join(of)})" if len(of) > 1 else ""
    typer.echo(f"Epochs: {clf.n_iter_}{told_of}.\nWritten: {out}")


def _counts(target: Any) -> tuple[int, int]:
    """Return about how many rows nothing is known, and of how many the true class."""
    silent = int((~says(target)).sum()) if isinstance(target, LabelSets | Evidence) else 0
    truth = target.truth if isinstance(target, Evidence) else None
    return silent, 0 if truth is None else int((truth >= 0).sum())


def _number(judged: Judged, folds: bool) -> str:
    """Say how good the choice is, and what was done to say so."""
    name, estimate, error, low, high = judged
    if low is not None:
        how = "every row held out once" if folds else "on rows held out"
        ends = f"95 % interval {low:.3f} to {high:.3f}"
        return f"Its {name}: {estimate:.4f}, {ends} ({how}; what choosing adds is taken off)."
    if not isfinite(estimate):
        return f"No {name} is estimated: {UNKNOWN}."
    name = "log likelihood of what was said" if name == "calibrated" else name
    error_told = f" ± {error:.4f}" if isfinite(error) else ""
    why = "the same rows chose, so it is a little too good"
    return f"Its {name} on rows held out: {estimate:.4f}{error_told} ({why})."
