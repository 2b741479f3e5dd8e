"""The driver: works through tasks until each is recorded or given up.

Any number of drivers may share a ledger. Each takes the next task that nobody has claimed.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import torch

from ruleout.experiments.ledger import Ledger
from ruleout.experiments.records import Record
from ruleout.experiments.running import run
from ruleout.experiments.specs import Spec
from ruleout.labels.errors import InputError

__all__ = ["Run", "drive", "work"]

#: What computes a record: ``(spec, device=...)``.
Run: TypeAlias = Callable[..., Record]

_PAUSE = 0.2  # seconds between looks at what others do


def work(
    ledger: Ledger, specs: Sequence[Spec], *, device: str | None = None, compute: Run = run
) -> Iterator[Spec]:
    """Do tasks one after another until none is left to claim; yield each when it is over.

    A task that raises is written down with its error, tried again after the others, and given up
    after :data:`~ruleout.experiments.ledger.RETRIES` retries.
    """
    ledger.add(specs)
    while True:
        task = _next(ledger, specs, device, compute)
        if task is None:
            return
        yield task


def _next(ledger: Ledger, specs: Sequence[Spec], device: str | None, compute: Run) -> Spec | None:
    """Do the first task that can be claimed; None where there is none."""
    for spec in ledger.open(specs):
        with ledger.claim(spec) as mine:
            if mine and spec in ledger.open([spec]):  # nobody finished it meanwhile
                _do(ledger, spec, device, compute)
                return spec
    return None


def _do(ledger: Ledger, spec: Spec, device: str | None, compute: Run) -> None:
    try:
        record = compute(spec, device=device)
    except Exception as error:  # whatever it is, it is written down and the others go on
        text = " ".join(f"{type(error).__name__}: {error}".split())
        where = traceback.extract_tb(error.__traceback__)[-1]
        ledger.fail(spec, f"{text[:500]} ({Path(where.filename).name}, line {where.lineno})")
    else:
        ledger.write(record)


def drive(
    path: str | Path,
    specs: Sequence[Spec],
    *,
    device: str | None = None,
    workers: int = 1,
    compute: Run = run,
    seen: Callable[[Ledger], None] | None = None,
) -> None:
    """Work through tasks with several processes, and wait for those that others have claimed.

    Parameters
    ----------
    path
        The ledger.
    specs
        The tasks.
    device
        As for :func:`ruleout.fit_grid`.
    workers
        How many processes. One: this one.
    compute
        What computes a record; with several workers a function of a module.
    seen
        Called with the ledger now and then, to show progress.
    """
    with Ledger(path) as ledger:
        ledger.add(specs)
        watch = seen or (lambda _: None)
        watch(ledger)
        with _helpers(workers, path, specs, device, compute) as alive:
            while left := ledger.open(specs):
                if workers == 1:
                    for _ in work(ledger, specs, device=device, compute=compute):
                        watch(ledger)
                elif not alive() and not {spec.key for spec in left} & ledger.claimed():
                    raise InputError(
                        f"all workers ended, but {len(left)} tasks are left",
                        "start again, with fewer workers if the memory is short",
                    )
                watch(ledger)
                time.sleep(_PAUSE)
        watch(ledger)


@contextlib.contextmanager
def _helpers(
    count: int, path: str | Path, specs: Sequence[Spec], device: str | None, compute: Run
) -> Iterator[Callable[[], bool]]:
    """Start processes that work; they are ended when the block is left, and end with this one."""
    if count == 1:
        yield lambda: False
        return
    made = multiprocessing.get_context("spawn")  # a fork of a process with threads can hang
    threads = max(1, torch.get_num_threads() // count)
    given = (str(path), list(specs), device, compute, os.getpid(), threads)
    helpers = [made.Process(target=_helper, args=given, daemon=True) for _ in range(count)]
    for helper in helpers:
        helper.start()
    try:
        yield lambda: any(helper.is_alive() for helper in helpers)
    finally:
        for helper in helpers:
            helper.terminate()
        for helper in helpers:
            helper.join()


def _helper(
    path: str, specs: list[Spec], device: str | None, compute: Run, parent: int, threads: int
) -> None:
    """Work in a process of its own, which ends with its parent and leaves Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    torch.set_num_threads(threads)
    with Ledger(path) as ledger:
        while ledger.open(specs):
            for _ in work(ledger, specs, device=device, compute=compute):
                pass
            time.sleep(_PAUSE)


def _end_with(parent: int) -> None:
    """End this process when the one that started it is gone."""
    while os.getppid() == parent:
        time.sleep(_PAUSE)
    os._exit(1)
