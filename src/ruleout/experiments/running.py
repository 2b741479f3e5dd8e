"""Running a spec: search the grid, train the choice, keep what tables and figures need."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from ruleout.experiments.preparation import Prepared, prepare
from ruleout.experiments.protocols import protocol
from ruleout.experiments.records import Record
from ruleout.experiments.specs import Spec
from ruleout.selection import Search, refit_chosen, search, set_aside
from ruleout.training import GridFit

__all__ = ["run"]


def run(
    spec: Spec,
    *,
    device: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Record:
    """Compute one cell: a whole grid for all trials, then the chosen configuration.

    Parameters
    ----------
    spec
        What to run.
    device
        As for :func:`ruleout.fit_grid`.
    progress
        Called with (epochs done, epochs in all) while the grid trains.

    Examples
    --------
    >>> spec = Spec(dataset="digits", approach="log", trials=2, epochs=12, grid='{"learning_rate": [0.01, 1e-6]}')
    >>> found = run(spec)
    >>> found.configuration["learning_rate"], found.accuracy.shape, found.curves["test"].shape
    (0.01, (2,), (2, 12))
    """  # noqa: E501
    began = time.perf_counter()
    data = prepare(spec)
    options: dict[str, Any] = {
        "approach": spec.runs,
        "model": spec.model,
        "epochs": spec.epochs,
        "batch_size": spec.batch_size,
        "shape": data.shape,
        "device": device,
        "precision": spec.precision,
        "seed": spec.seed,
    }
    found = search(
        data.x,
        data.trials,
        criterion=spec.criterion,
        share=spec.share,
        per_trial=spec.per_trial,
        average=spec.average,
        refit=False,
        grid=spec.values,
        watch={"test": data.test},
        every=spec.epochs,
        tail=spec.average,
        progress=progress,
        **options,
    )
    searched = time.perf_counter() - began
    final = _final(spec, data, found, options)
    about = {"seconds": time.perf_counter() - began, "grid_seconds": searched}
    return _record(spec, found, final, _about(found, final) | about)


def _final(spec: Spec, data: Prepared, found: Search, options: dict[str, Any]) -> GridFit:
    """Train what was chosen, on all rows or on those that were not set aside."""
    trials, train = data.trials, data.train
    if not protocol(spec.protocol).refit:
        trials = [set_aside(trial, spec.share)[0] for trial in trials]
    watch = {"test": data.test, "train": train}
    return refit_chosen(
        data.x, trials, found.chosen, found.grid, watch=watch, moments=False, **options
    )


def _record(spec: Spec, found: Search, final: GridFit, about: dict[str, Any]) -> Record:
    tests = found.grid.history["test/accuracy"][..., -spec.average :].mean(-1)
    names = {"test": "test/accuracy", "train": "train/accuracy", "loss": "loss"}
    curves = {n: final.history[h][:, 0].astype(np.float32) for n, h in names.items()}
    return Record(
        spec=spec,
        configurations=found.grid.configurations,
        chosen=found.chosen,
        estimates=found.estimates,
        errors=found.errors,
        tests=tests,
        accuracy=final.history["test/accuracy"][:, 0, -spec.average :].mean(-1),
        epochs=final.epochs,
        curves=curves,
        about=about,
    )


def _about(found: Search, final: GridFit) -> dict[str, Any]:
    told = found.grid.record
    names = ("approach", "device", "device_name", "threads", "stack", "versions", "data")
    return {name: told[name] for name in names} | {
        "models": int(np.prod(found.grid.shape)),
        "diverged": int((found.grid.diverged > 0).sum()),
        "diverged_final": int((final.diverged > 0).sum()),
    }
