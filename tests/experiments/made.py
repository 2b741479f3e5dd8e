"""Specs and records for the tests, all numbers made up, and ways to compute them."""

from __future__ import annotations

import os
import signal
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ruleout.experiments import Holdings, Record, Spec, run
from ruleout.training import engine

GRID = '{"learning_rate": [0.1, 0.01], "weight_decay": [0.0, 0.001]}'
CONFIGURATIONS = [
    {"learning_rate": rate, "weight_decay": decay} for rate in (0.1, 0.01) for decay in (0.0, 0.001)
]


def spec(approach: str = "log", dataset: str = "yeast", **settings: Any) -> Spec:
    """A cell of the UCI table, in a setting of a few trials and epochs."""
    usual: dict[str, Any] = {"trials": 3, "epochs": 6, "average": 2, "grid": GRID}
    return Spec(dataset=dataset, approach=approach, **(usual | settings))


def record(of: Spec, accuracy: ArrayLike | None = None, **told: Any) -> Record:
    """Numbers that depend on the spec alone; those that are given take their place."""
    random = np.random.default_rng(int(of.key[:8], 16))
    shape = (of.searching, len(CONFIGURATIONS))
    usual: dict[str, Any] = {
        "configurations": [dict(one) for one in CONFIGURATIONS],
        "chosen": np.full(of.trials, int(random.integers(4))),
        "estimates": random.uniform(0.2, 0.9, shape),
        "errors": random.uniform(0.01, 0.1, shape),
        "tests": random.uniform(0.2, 0.9, shape),
        "accuracy": random.uniform(0.2, 0.9, of.trials),
        "epochs": np.arange(1, of.epochs + 1),
        "curves": {
            name: random.uniform(0, 1, (of.trials, of.epochs)).astype(np.float32)
            for name in ("loss", "test", "train")
        },
        "about": {
            "approach": of.runs, "data": "0" * 64, "device": "cpu", "device_name": "a CPU",
            "diverged": 0, "diverged_final": 0, "grid_seconds": 1.25, "models": 12,
            "seconds": 1.5, "stack": [3, 4], "threads": 1, "versions": {"torch": "2.0"},
        },
    }  # fmt: skip
    if accuracy is not None:
        usual["accuracy"] = np.asarray(accuracy, float)
    return Record(spec=of, **(usual | told))


def held(*records: Record) -> Holdings:
    """What a ledger with these records holds."""
    return Holdings(tuple(one.spec for one in records), records)


def same(one: Record, other: Record) -> bool:
    """Whether two records hold the same numbers, to the last bit; NaN equals NaN."""
    arrays = ("chosen", "estimates", "errors", "tests", "accuracy", "epochs")
    return (
        one.spec == other.spec
        and one.configurations == other.configurations
        and dict(one.about) == dict(other.about)
        and all(_equal(getattr(one, name), getattr(other, name)) for name in arrays)
        and one.curves.keys() == other.curves.keys()
        and all(_equal(one.curves[name], other.curves[name]) for name in one.curves)
    )


def _equal(one: Any, other: Any) -> bool:
    return bool(one.dtype == other.dtype and np.array_equal(one, other, equal_nan=True))


# ---------------------------------------------------------------------- computing


def noting(of: Spec, *, device: str | None = None, notes: str, takes: float = 0.0) -> Record:
    """Write down which task is computed, one line of a file each; take a moment."""
    del device
    with Path(notes).open("a") as file:  # a line is appended whole
        file.write(f"{of.approach}\n")
    time.sleep(takes)
    return record(of)


def failing(
    of: Spec, *, device: str | None = None, notes: str, fails: dict[str, int], takes: float = 0.0
) -> Record:
    """Fail the first so many times that a task is computed."""
    found = noting(of, device=device, notes=notes, takes=takes)
    if Path(notes).read_text().split().count(of.approach) <= fails.get(of.approach, 0):
        raise ZeroDivisionError(f"{of.approach} is\nnot well")
    return found


def ending(of: Spec, *, device: str | None = None) -> Record:
    """End the process, as a kernel does that is short of memory."""
    del of, device
    os._exit(9)


def keeping(of: Spec, *, device: str | None = None, checkpoint: Path) -> Record:
    """Use the folder of the task, which nobody has used before."""
    del device
    checkpoint.mkdir(parents=True)
    (checkpoint / "search.seconds").write_text(of.key)
    return record(of)


def dying(of: Spec, *, device: str | None = None, checkpoint: Path, at: int) -> Record:
    """Train, save every epoch, and kill this process, which is used for nothing else, at one."""
    save, times = engine.Checkpoint.save, count(1)

    def saving(self: engine.Checkpoint, block: Any, stack: Any, *, now: bool = False) -> None:
        del now
        save(self, block, stack, now=True)
        if next(times) == at:
            os.kill(os.getpid(), signal.SIGKILL)

    engine.Checkpoint.save = saving  # type: ignore[method-assign]
    return run(of, device=device, checkpoint=checkpoint)
