"""Estimating how long tasks will take, to order them and to tell users before they start."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from statistics import median

import numpy as np

from ruleout.datasets.loading import find
from ruleout.experiments.ledger import Ledger
from ruleout.experiments.preparation import prepare
from ruleout.experiments.records import Record
from ruleout.experiments.specs import Spec
from ruleout.labels import size_law
from ruleout.methods import approach
from ruleout.training import Trial, configurations, fit_grid

__all__ = ["cost", "estimate", "models"]

_STEPS = 20  # of a probe
_BESIDES = 1.25  # training the choice and measuring, on top of the grid


def models(spec: Spec) -> int:
    """Return how many models a task trains: the grid, and the choice, for every trial.

    >>> models(Spec(dataset="digits", approach="log"))
    185
    """
    return spec.trials * (len(configurations(spec.values)) + 1)


def cost(spec: Spec) -> float:
    """Return the work of a task in units that only compare: more for more and wider rows.

    Approaches that decompose before shuffling walk over pairs instead of rows; PC after shuffling
    makes k comparisons where others make one.
    """
    rows, features, k = _sizes(spec.dataset)
    width = features + 60.0  # besides the product, a step works on logits
    if approach(spec.runs).form == "pairs-before":
        rows *= float(np.arange(1, k) @ size_law(spec.law, k))
    elif spec.approach.startswith("pc"):
        width += 20.0 * k
    return rows * spec.epochs * models(spec) * k * width


@cache
def _sizes(dataset: str) -> tuple[float, int, int]:
    entry = find(dataset)
    return float(entry.rows[0]), entry.features, len(entry.classes)


def estimate(ledger: Ledger, specs: Sequence[Spec], device: str | None = None) -> float:
    """Return about how many seconds tasks will take, one after another.

    What the ledger has timed on such a device tells; for other data sets a few steps are timed.
    """
    rates = _rates(ledger.records(), device or "cpu")
    total = 0.0
    for spec in specs:
        kind = spec.dataset, spec.model, spec.epochs
        if kind not in rates:
            rates[kind] = _probe(spec, device)
        total += rates[kind] * cost(spec)
    return total


def _rates(records: Sequence[Record], device: str) -> dict[tuple[str, str, int], float]:
    """Return seconds per unit of cost for what was timed: data set, model, epochs."""
    found: dict[tuple[str, str, int], list[float]] = {}
    for record in records:
        spec = record.spec
        if record.about.get("device") == device:
            times = found.setdefault((spec.dataset, spec.model, spec.epochs), [])
            times.append(record.seconds / cost(spec))
    return {kind: median(values) for kind, values in found.items()}


def _probe(spec: Spec, device: str | None) -> float:
    """Time a few steps; return seconds per unit of cost.

    Linear models are timed as they train, the whole grid at once. Of larger ones, which gain
    little from that, one is timed, and stands for all.
    """
    plain = replace(spec, approach="log")
    data = prepare(plain)
    whole = spec.model == "linear"
    rows = min((_STEPS if whole else 4) * spec.batch_size, len(data.trials[0].sets))
    some = np.arange(rows)
    trials = [Trial(t.sets[some], _of(t)[some], seed=t.seed) for t in data.trials]
    grid = configurations(spec.values)
    times = 1 if whole else len(grid) * len(trials)

    def seconds(epochs: int) -> float:
        began = time.perf_counter()
        fit_grid(
            data.x, trials if whole else trials[:1], approach=plain.runs, model=spec.model,
            grid=grid if whole else grid[:1], epochs=epochs, batch_size=spec.batch_size,
            shape=data.shape, device=device, precision=spec.precision,
        )  # fmt: skip
        return time.perf_counter() - began

    seconds(1)  # the first run also loads what others find loaded
    first = seconds(1)
    epoch = max(seconds(3) - first, 0.0) / 2 or first
    share = len(data.trials[0].sets) / rows
    return _BESIDES * times * epoch * spec.epochs * share / cost(plain)


def _of(trial: Trial) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.arange(len(trial.sets)) if trial.rows is None else np.asarray(trial.rows)
