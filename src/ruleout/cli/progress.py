"""Showing how far tasks are: a bar with the time left on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ruleout.experiments import Ledger, Record, Spec

__all__ = ["following"]


def following(path: Path, specs: Sequence[Spec], *, device: str, workers: int) -> None:
    """Work through tasks and tell of each when it is over."""
    from rich.console import Console

    from ruleout.experiments import drive
    from ruleout.experiments.runner import cost

    console = Console(stderr=True)
    costs = {spec.key: cost(spec) for spec in specs}
    order = sorted(specs, key=lambda spec: -costs[spec.key]) if workers > 1 else list(specs)

    def say(line: str) -> None:
        console.print(line, highlight=False, soft_wrap=True, markup=False)

    tell = _teller(specs, say)
    told: dict[str, Any] = {"device": device, "workers": workers}
    if not console.is_terminal:
        drive(path, order, seen=tell, **told)
        return
    from rich import progress as rich

    columns = ("{task.description}", rich.BarColumn(None), "{task.percentage:3.0f} %")
    left = rich.TimeRemainingColumn(elapsed_when_finished=True)
    with rich.Progress(*columns, left, console=console, transient=True) as bar:
        task = bar.add_task("", total=sum(costs.values()))

        def show(ledger: Ledger) -> None:
            tell(ledger)
            done = ledger.done() & costs.keys()
            bar.update(task, completed=sum(costs[key] for key in done))
            bar.update(task, description=f"{len(done)} of {len(specs)} cells")

        drive(path, order, seen=show, **told)


def _teller(specs: Sequence[Spec], say: Callable[[str], None]) -> Callable[[Ledger], None]:
    """Return what prints a line for each task that is over; those of earlier runs count only."""
    keys = {spec.key for spec in specs}
    known: set[str] | None = None
    failed = 0
    began = time.perf_counter()

    def tell(ledger: Ledger) -> None:
        nonlocal known, failed
        done = ledger.done() & keys
        if known is None:
            known = set(done)
            say(f"{len(keys)} cells: {len(done)} in the ledger, {len(keys) - len(done)} to run")
        for record in ledger.records(done - known):
            known.add(record.spec.key)
            say(f"{len(known)}/{len(keys)}  {_line(record)}  {time.perf_counter() - began:.0f} s")
        every = [one for one in ledger.failures() if one.spec.key in keys]
        if (times := sum(one.times for one in every)) > failed:
            last = every[-1]
            say(f"failed ({last.times}): {last.spec}: {last.error}")
        failed = times

    return tell


def _line(record: Record) -> str:
    setting = ", ".join(f"{n.replace('_', ' ')} {v:g}" for n, v in record.configuration.items())
    return f"{record.spec}: {100 * record.mean:.2f} ± {100 * record.std:.2f} ({setting})"
