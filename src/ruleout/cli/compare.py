"""``ruleout compare``: approaches side by side on the user's own data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ruleout.cli import common
from ruleout.cli import shared_options as options
from ruleout.cli.common import Source, Terminal, friendly, watching

if TYPE_CHECKING:
    from ruleout.comparison import Comparison, Progress
    from ruleout.datasets import Table

_WIDE = ("family", "time")  # columns that a narrow terminal does without


@friendly()
@Source.from_options(*options.LEARNING, "error_rate", data=options.Data)
def compare(
    source: Source,
    approaches: Annotated[
        options.Names,
        "By default the eighteen of the paper, and likelihood where sets may be wrong.",
    ] = None,
    grid: Annotated[
        Literal["small", "paper", "none"],
        "8 configurations, the paper's 36, or none: the defaults.",
    ] = "small",
    model: Annotated[str, "linear, mlp, resnet32, densenet22, …"] = "linear",
    trials: Annotated[int, typer.Option(min=1, help="How many times each is trained.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the rows.")] = 250,
    judge: Annotated[
        str | None,
        "The share of rows kept back to judge, or 'folds': every row once. By default 0.2, or "
        "folds with up to 5,000 rows and at least four trials, without --label.",
    ] = None,
    criterion: Annotated[
        str | None,
        "What chooses: accuracy, consistency, likelihood, calibrated or risk. By default "
        "accuracy, or calibrated (likelihood) where sets are not as chance draws them.",
    ] = None,
    early_stopping: options.EarlyStopping = False,
    scale: options.Scale = None,
    holm: Annotated[bool, "Correct the marks for the number of tests, by Holm."] = False,
    out: Annotated[Path, "DIR", "The folder for report.html and the tables."] = Path(
        "ruleout-compare"
    ),
    seed: options.SeedOfTable = 0,
    device: options.Device = "cpu",
    precision: options.Precision = "float32",
) -> None:
    """Compare approaches on your data; configurations are chosen without true labels.

    Each trial keeps part of the rows back to judge: by what was ruled out there, or by true labels
    where --label names them; these are used only to report.
    """
    source = source.need_sets()
    table = source.training_table()
    common.check_folder(out)  # before hours of training
    named = common.parse_names(approaches) if approaches else None
    told: dict[str, Any] = {"grid": None if grid == "none" else grid, "approaches": named}
    told |= {"model": model, "trials": trials, "epochs": epochs, "criterion": criterion}
    told |= {"early_stopping": early_stopping, "holm": holm, "seed": seed}
    told["scale"] = common.scaling(table, scale)
    told |= {"device": device, "precision": precision, "expect": common.expecting(device)}
    found = _run(table, _share(judge), told)
    console = Terminal()
    show(console, found)
    facts = {"Data": table.source.name, "sha256": f"{table.sha256[:16]}…"}
    page = found.write(out, title=f"Approaches side by side on {table.source.name}", facts=facts)
    console.print(f"Report: {page}", soft_wrap=True, highlight=False)


def _share(text: str | None) -> Any:
    if text is None:
        return None
    try:
        share = text if text == "folds" else float(text)
    except ValueError:
        share = 0.0
    if share != "folds" and not 0 < float(share) < 1:
        raise typer.BadParameter(f"{text!r} is neither a share between 0 and 1 nor 'folds'")
    return share


def _run(table: Table, judge: Any, told: dict[str, Any]) -> Comparison:
    """Compare; with true labels, a share of the rows is kept back to be judged by them."""
    from ruleout.comparison import compare as run
    from ruleout.comparison.judging import SHARE
    from ruleout.methods import PAPER
    from ruleout.selection import split
    from ruleout.training import Trial
    from ruleout.training.validation import together

    assert table.sets is not None
    x, labels, groups = table.x, table.labels, table.groups
    rows = Trial(table.sets, weight=table.weight, groups=groups, evidence=table.evidence)
    if table.evidence is not None and told["approaches"] is None:
        told["approaches"] = [*PAPER, "likelihood"]
    if table.weight is not None:  # rows that weigh nothing neither train nor choose nor judge
        kept = table.weight.nonzero()[0]
        x, rows = x[kept], replace(rows.part(kept), rows=None)
        labels, groups = (one if one is None else one[kept] for one in (labels, groups))
    told |= {"judge": judge, "shape": table.shape}
    if labels is not None:
        if judge == "folds":
            raise typer.BadParameter("--judge folds needs no true labels; leave out --label")
        train, test = split(
            x.shape[0], judge or SHARE, seed=told["seed"], groups=together(x, groups)
        )
        told["test"] = (x[test], labels[test])
        x, rows = x[train], replace(rows.part(train), rows=None)
    about = common.assumed(table.evidence or table.sets, table)
    assert about is not None  # of sets there always is one
    told["score"] = usual = "calibrated" if about.level == "warning" else "accuracy"
    told["criterion"] = told["criterion"] or usual
    with common.as_notes(), overall() as progress:
        found = run(x, rows, progress=progress, **told)
    method = replace(found.method, assumption=about.message, rejected=about.level == "warning")
    return replace(found, method=method)


@contextmanager
def overall() -> Iterator[Progress]:
    """Show how far a comparison is: one bar, or a line whenever the next approach begins."""
    with watching(lambda name, done, _: f"{100 * done:3.0f} %  {name}", whole=True) as (show, _):
        yield lambda done, name: show(name, done, 1.0)


def show(console: Terminal, found: Comparison) -> None:
    """Print the table, the best rows in bold, lines for comparison dimmed."""
    from rich.box import SIMPLE
    from rich.table import Table

    whole = found.table()
    wide = console.width >= 110
    shown = [place for place, head in enumerate(whole.heads) if wide or head not in _WIDE]
    table = Table(box=SIMPLE, pad_edge=False, show_edge=False)
    for place in shown:
        head = "\n".join(wrap(whole.heads[place].replace(", %", ",\N{NO-BREAK SPACE}%"), 11))
        side: Literal["left", "right"] = "left" if place < whole.names else "right"
        table.add_column(head, justify=side, no_wrap=True, vertical="bottom")
    top = found.ranked[0].score  # equal scores are equally bold
    for row, cells in zip(found.ranked, whole.rows, strict=True):
        style = "dim" if row.baseline else "bold" if row.score == top else None
        table.add_row(*(str(cells[place]) for place in shown), style=style)
    console.print(table)
    console.print()
    for line in found.notes:
        console.print(line, style="dim", highlight=False)
