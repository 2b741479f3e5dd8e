"""``ruleout paper``: the paper's tables, run again."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ruleout.cli.common import check_folder, friendly, parse_names
from ruleout.cli.progress import following

if TYPE_CHECKING:
    from ruleout.experiments import Ledger, Spec

__all__ = ["paper"]


class Table(StrEnum):
    """The tables of the paper."""

    uci = "uci"
    linear = "linear"
    deep = "deep"
    fixed_linear = "fixed-linear"
    fixed_mlp = "fixed-mlp"


class Features(StrEnum):
    """How features are given to a model."""

    raw = "raw"
    standardised = "standardised"


class Protocol(StrEnum):
    """Two readings of the paper."""

    released = "released"
    text = "text"


class Engine(StrEnum):
    """Where tasks are done."""

    local = "local"


_ENGINES = {Engine.local: following}


@friendly()
def paper(
    table: Annotated[Table, typer.Argument(metavar="TABLE", help="Which table to compute.")],
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    trials: Annotated[int, typer.Option(min=1, help="Trials of each cell.")] = 5,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the rows.")] = 250,
    datasets: Annotated[
        list[str] | None, typer.Option(metavar="A,B,…", help="Only these data sets.")
    ] = None,
    approaches: Annotated[
        list[str] | None, typer.Option(metavar="A,B,…", help="Only these approaches.")
    ] = None,
    features: Annotated[
        Features, typer.Option(help="Features as they are, or scaled by the training rows.")
    ] = Features.raw,
    protocol: Annotated[
        Protocol, typer.Option(help="As the authors' code does it, or as their text says.")
    ] = Protocol.released,
    precision: Annotated[str, typer.Option(help="float32, float64, tf32 or bf16.")] = "float32",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")] = 0,
    engine: Annotated[Engine, typer.Option(help="Where tasks are done.")] = Engine.local,
    workers: Annotated[
        int, typer.Option(min=0, help="Processes at work. 0: one per core, at most 4 on a GPU.")
    ] = 0,
    ledger: Annotated[
        Path, typer.Option(metavar="FILE", help="Where results are kept, each once.")
    ] = Path("ruleout-paper.sqlite"),
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="The folder for the report and the tables.")
    ] = Path("ruleout-paper"),
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only count the runs and estimate the time.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Try cells again that failed too often.")
    ] = False,
) -> None:
    """Compute a table of the paper, cell by cell, and set it beside the printed numbers.

    What is in the ledger is not computed again: stopped at any point, the same command goes on.
    Each cell trains the paper's grid of 36 configurations in every trial at once.
    """
    from ruleout.experiments import Ledger as Open
    from ruleout.experiments import plan

    check_folder(out)
    specs = plan(
        str(table),
        datasets=parse_names(datasets) if datasets else None,
        approaches=parse_names(approaches) if approaches else None,
        features=str(features),
        protocol=str(protocol),
        trials=trials,
        epochs=epochs,
        average=min(10, epochs),
        precision=precision,
        seed=seed,
    )
    count = workers or _workers(device, len(specs))
    if dry_run:
        _estimate(Open(ledger) if ledger.exists() else Open(":memory:"), specs, device, count)
        return
    _check(specs, device, precision)
    with Open(ledger) as found:
        if retry:
            found.forgive(specs)
    _ENGINES[engine](ledger, specs, device=device, workers=count)
    _report(ledger, specs, out)


def _workers(device: str, tasks: int) -> int:
    """Return one process per core; on a GPU some, so that it works while others compile."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most if device == "cpu" else min(most, 4), tasks))


def _check(specs: list[Spec], device: str, precision: str) -> None:
    """Raise before anything starts where data or device are not there."""
    from ruleout.datasets import load
    from ruleout.training.device import find_device, find_precision

    find_precision(precision)
    find_device(device, precision)
    for name in dict.fromkeys(spec.dataset for spec in specs):
        load(name)  # features that take a while are made here, once, not by every worker


def _estimate(ledger: Ledger, specs: list[Spec], device: str, workers: int) -> None:
    """Say how much there is to do."""
    from ruleout.experiments.runner import estimate, models
    from ruleout.report.formats import duration

    with ledger:
        left = ledger.open(specs)
        done = len({spec.key for spec in specs} & ledger.done())
        seconds = estimate(ledger, left, device) / workers if left else 0.0
    typer.echo(f"{len(specs)} cells: {done} in the ledger, {len(left)} to run.")
    if len(specs) - done - len(left):
        typer.echo(f"{len(specs) - done - len(left)} failed too often; --retry tries them again.")
    if left:
        trained = sum(models(spec) for spec in left)
        typer.echo(
            f"{trained:,} models to train, about {duration(seconds)} on {device} with {workers} "
            f"worker{'s' if workers > 1 else ''}."
        )


def _report(ledger: Path, specs: list[Spec], out: Path) -> None:
    from ruleout.experiments import gather, paper_tables, write_report
    from ruleout.report import text

    held = gather(ledger).only(specs)
    for table in paper_tables(held):
        typer.echo(f"\n{text(table.cells)}")
    made = write_report(held, out, _formats())
    typer.echo(f"Report: {made[0]}")
    if held.failures:
        for failure in held.failures:
            typer.echo(f"ruleout: {failure.spec} failed: {failure.error}", err=True)
        raise typer.Exit(1)


def _formats() -> Any:
    """Return what can be written here: figures need matplotlib."""
    from importlib.util import find_spec

    from ruleout.experiments import FORMATS

    drawn = find_spec("matplotlib") is not None
    return [one for one in FORMATS if drawn or one not in ("png", "pdf")]
