"""Processes that write to one ledger and are killed while they do."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from experiments.made import record, spec

from ruleout.experiments import Ledger


def child(work: Callable[[], None]) -> int:
    """Start a process that works; nobody else has threads here, so a fork is safe."""
    number = os.fork()
    if number == 0:
        try:
            work()
        finally:
            os._exit(1)
    return number


def writing(path: Path, first: int) -> None:
    """Write records for as long as it may; say which are acknowledged."""
    with Ledger(path) as ledger, path.with_suffix(".txt").open("a", buffering=1) as said:
        for seed in range(first, first + 1000):
            ledger.write(record(spec(seed=seed, epochs=400)))
            said.write(f"{seed}\n")


def at_a_statement(path: Path, number: int) -> None:
    """Kill this process when it has made so many statements of a record."""
    with Ledger(path) as ledger:
        made, count = ledger._many, iter(range(100))

        def counting(query: str, rows: Any) -> None:
            made(query, rows)
            if next(count) == number:
                os.kill(os.getpid(), signal.SIGKILL)

        ledger._many = counting  # type: ignore[method-assign]
        ledger.write(record(spec(seed=number)))


def at_statements(path: Path, times: int) -> None:
    """Kill one writer after another, each a statement later."""
    for turn in range(times):
        os.waitpid(child(partial(at_a_statement, path, turn)), 0)


def at_moments(path: Path, times: int) -> None:
    """Kill two writers at once, so many times."""
    dice = random.Random(0)
    for turn in range(times):
        two = [child(partial(writing, path, turn * 1000 + 7 * n)) for n in (0, 1)]
        time.sleep(dice.uniform(0.0, 0.3))
        for number in two:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
