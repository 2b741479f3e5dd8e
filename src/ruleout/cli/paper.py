"""``ruleout paper``: the paper's tables, run again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import check_folder, friendly, parse_names, plugins, watching
from ruleout.labels.errors import counted

if TYPE_CHECKING:
    from ruleout.experiments import Ledger, Spec

_Table = Literal[
    "uci", "linear", "deep", "fixed-linear", "fixed-mlp", "linear-mlp", "beyond", "own"
]


@friendly()
def paper(
    table: Annotated[_Table, typer.Argument(metavar="TABLE", help="Which table to compute.")],
    device: options.Device = "cpu",
    trials: Annotated[int, typer.Option(min=1, help="Trials of each cell.")] = 5,
    search_trials: Annotated[
        int, typer.Option(min=0, help="Trials that search the grid for the others. 0: all.")
    ] = 0,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Passes over the rows. By default 250; beyond: 100.")
    ] = None,
    datasets: Annotated[options.Names, "Only these data sets."] = None,
    approaches: Annotated[options.Names, "Only these approaches."] = None,
    models: Annotated[options.Names, "These models, not the table's."] = None,
    laws: Annotated[
        options.Names,
        "How sets are drawn: released, paper, fixed:3, fixed:k-2; with a bias, strong:released or "
        "weak:fixed:1; with mistakes, released~0.2.",
    ] = None,
    features: Annotated[
        Literal["raw", "standardised"], "Features as they are, or scaled by the training rows."
    ] = "raw",
    protocol: Annotated[
        Literal["released", "text"], "As the authors' code does it, or as their text says."
    ] = "released",
    precision: options.Precision = "float32",
    grid: Annotated[
        Literal["paper", "printed", "halving", "small"] | None,
        "36 configurations, the one that the paper's source prints, successive halving of 36, or "
        "8. By default 36; beyond: 8.",
    ] = None,
    seed: options.SeedOfTable = 0,
    engine: Annotated[
        Literal["local", "ray"], "Where cells are computed: here, or by a Ray cluster."
    ] = "local",
    workers: Annotated[
        int, typer.Option(min=0, help="Processes at work. 0: one per core, at most 4 on a GPU.")
    ] = 0,
    task_cpus: Annotated[float, typer.Option(min=0.01, help="Ray: cores that a cell takes.")] = 1,
    task_gpus: Annotated[float, typer.Option(min=0.01, help="Ray: GPUs, on CUDA.")] = 0.25,
    ledger: Annotated[
        str,
        "FILE",
        "Where results are kept, each once: a file, or postgresql://USER@HOST/DATABASE.",
    ] = "ruleout-paper.sqlite",
    checkpoints: Annotated[
        Path | None, "DIR", "Keep cells under way here, and go on with those that were killed."
    ] = None,
    out: Annotated[Path, "DIR", "The folder for the report and the tables."] = Path(
        "ruleout-paper"
    ),
    dry_run: Annotated[bool, "Only count the runs and estimate the time."] = False,
    retry: Annotated[bool, "Try cells again that failed too often."] = False,
) -> None:
    """Compute a table of the paper, cell by cell, and set it beside the printed numbers.

    "linear-mlp" is all of them but CIFAR-10; there --search-trials is for MLPs, linear models
    search in every trial. "beyond" has what came since: later approaches and auto, biased and wrong
    sets, real boards. "own" has the data sets and approaches that you name, with linear models.

    What is in the ledger is not computed again: stopped at any point, the same command goes on,
    with --checkpoints also inside a cell. Each cell trains the paper's grid of 36 configurations in
    every trial at once, unless --grid and --search-trials say less.
    """
    from ruleout.experiments import Ledger as Open
    from ruleout.experiments import MissingLedgerError, check_specs, plan
    from ruleout.training.device import find_device

    check_folder(out)
    if checkpoints is not None:
        check_folder(checkpoints, "--checkpoints")
    if ledger == ":memory:":
        raise typer.BadParameter("a ledger is a file, or postgresql://…")
    beyond = table == "beyond"
    epochs = epochs or (100 if beyond else 250)
    specs = plan(
        None if table == "own" else table,
        datasets=parse_names(datasets) if datasets else None,
        approaches=parse_names(approaches) if approaches else None,
        models=parse_names(models) if models else None,
        laws=parse_names(laws) if laws else None,
        features=features,
        protocol=protocol,
        trials=trials,
        search_trials=search_trials,
        epochs=epochs,
        average=min(10, epochs),
        precision=precision,
        grid=grid or ("small" if beyond else "paper"),
        seed=seed,
    )
    count = workers or _workers(device, len(specs))
    if dry_run:
        try:
            kept = Open(ledger, make=False)
        except MissingLedgerError:
            kept = Open(":memory:")
        _estimate(kept, specs, device, count)
        return
    if engine == "local" or not device.startswith("cuda"):  # of Ray only the nodes need a GPU
        find_device(device, precision)
    check_specs(specs)  # features that take a while are made here, once, not by every worker
    with Open(ledger) as found:
        if retry:
            found.forgive(specs)
    how: dict[str, Any] = {"device": device, "workers": workers, "checkpoints": checkpoints}
    how["modules"] = plugins()
    how |= {"cpus": task_cpus, "gpus": task_gpus} if engine == "ray" else {"workers": count}
    _run(ledger, specs, engine, **how)
    _report(ledger, specs, out)


def _workers(device: str, tasks: int) -> int:
    """Return one process per core; on a GPU some, so that it works while others compile."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(most if device == "cpu" else min(most, 4), tasks))


def _estimate(ledger: Ledger, specs: list[Spec], device: str, workers: int) -> None:
    from ruleout.experiments import count_models, estimate
    from ruleout.report.number_format import duration

    with ledger:
        left = ledger.open(specs)
        done = len({spec.key for spec in specs} & ledger.done())
        seconds = estimate(ledger, left, device, workers)
    typer.echo(f"{counted(len(specs), 'cell')}: {done} in the ledger, {len(left)} to run.")
    if len(specs) - done - len(left):
        typer.echo(f"{len(specs) - done - len(left)} failed too often; --retry tries them again.")
    if left:
        trained = sum(count_models(spec) for spec in left)
        typer.echo(
            f"{counted(trained, 'model')} to train, about {duration(seconds)} on {device} with "
            f"{counted(workers, 'worker')}."
        )


def _run(path: str | Path, specs: Sequence[Spec], engine: str = "local", **how: Any) -> None:
    """Work through tasks and tell of each when it is over; those of earlier runs count only."""
    from ruleout.experiments import cost, drive, drive_ray

    costs = {spec.key: cost(spec) for spec in specs}
    order = sorted(specs, key=lambda spec: -costs[spec.key]) if how["workers"] != 1 else list(specs)
    known: set[str] | None = None
    failed, began = 0, time.perf_counter()
    with watching(whole=True) as (show, say):

        def seen(ledger: Ledger) -> None:
            nonlocal known, failed
            done = ledger.done() & costs.keys()
            if known is None:
                known, left = set(done), len(costs) - len(done)
                say(f"{counted(len(costs), 'cell')}: {len(done)} in the ledger, {left} to run")
            for record in ledger.records(done - known):
                known.add(record.spec.key)
                chosen = record.configuration.items()
                told = ((n, f"{v:g}" if isinstance(v, float) else v) for n, v in chosen)
                setting = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in told)
                found = f"{100 * record.mean:.2f} ± {100 * record.std:.2f} ({setting})"
                took = f"{time.perf_counter() - began:.0f} s"
                say(f"{len(known)}/{len(costs)}  {record.spec}: {found}  {took}")
            every = [one for one in ledger.failures() if one.spec.key in costs]
            if (times := sum(one.times for one in every)) > failed:
                last = every[-1]
                say(f"failed ({last.times}): {last.spec}: {last.error}")
            failed = times
            cells = f"{len(done)} of {len(specs)} cells"
            show(cells, sum(costs[key] for key in done), sum(costs.values()))

        (drive_ray if engine == "ray" else drive)(path, order, seen=seen, **how)


def _report(ledger: str, specs: list[Spec], out: Path) -> None:
    from ruleout.experiments import FORMATS, gather, paper_tables, write_report
    from ruleout.report import text

    held = gather(ledger).only(specs)
    for table in paper_tables(held):
        typer.echo(f"\n{text(table.cells)}")
    drawn = find_spec("matplotlib") is not None  # figures need it
    formats = [one for one in FORMATS if drawn or one not in ("png", "pdf")]
    made = write_report(held, out, formats)
    typer.echo(f"Report: {made[0]}")
    if held.failures:
        for failure in held.failures:
            typer.echo(f"ruleout: {failure.spec} failed: {failure.error}", err=True)
        if any(failure.given_up for failure in held.failures):
            typer.echo("ruleout: cells that failed too often run again with --retry", err=True)
        raise typer.Exit(1)
