"""``approach="auto"``: a short list of approaches with settings that suit them, and who judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ruleout.datasets import inspect
from ruleout.estimator.inputs import may_err
from ruleout.selection import DivergedError
from ruleout.selection.origin_search import FoundOrigin
from ruleout.training import Trial

_FEW, _MANY = 2000, 10_000  # rows: up to so many smaller batches
_EPOCHS, _DEEP = 200, (300, 300, 300)  # of perceptrons with batch norm, on few rows


class Auto(NamedTuple):
    """What is tried, by which criterion it is chosen, and why."""

    grid: list[dict[str, Any]]
    criterion: str
    why: str
    mixed: bool  # whether the best of every approach predict together
    trial: Trial  # with what is learnt about how its sets came about, if anything
    epochs: int | None = None  # None: as for any other grid

    @staticmethod
    def of(
        x: Any,
        trial: Trial,
        model: Any,
        options: Mapping[str, Any],
        find: Callable[[], FoundOrigin],
    ) -> Auto:
        """Look at the rows and their sets, and say what to try.

        Sets that tests do not reject as drawn at random are judged by accuracy, others by how well
        what was said about rows held out is foretold, at the temperature that suits each model.
        That says little about which approach errs least, so the best of each predict together then.
        LOG is always tried; where sets are not random, CC (LOG without the weight that stands for
        randomness) in its place, or, if `find` learns how sets came about, the likelihood under
        that alone. Perceptrons are also tried with three layers and batch norm, and only so where
        sets are not random: on BirdSong plain ones foretold what was said as well, but named fewer
        rows rightly (tried by hand; what is left is in benchmarks/boards.py).
        """
        mistakes, n = may_err(trial.evidence), len(trial.sets)
        told = inspect(trial.sets, x).assumption(mistakes=mistakes)
        random = told.level != "warning"
        if mistakes:
            names, said = ["likelihood"], "some of what was said may be wrong"
        elif random:
            names, said = ["log", "proden"], "tests do not reject that sets are random"
        else:
            names, said = ["cc", "proden", "cavl"], "sets are not random"
            said += f" ({', '.join(told.numbers['why'])})"
            if trial.evidence is None and trial.rate is None:
                try:
                    found = find()
                except DivergedError:
                    found = FoundOrigin(None, None, {}, "no matrix was learnt: training diverged")
                said, learnt = f"{said}; {found.why}", found.evidence(trial.sets)
                if learnt is not None:
                    names, trial = ["likelihood"], replace(trial, evidence=learnt)
        grid: list[dict[str, Any]] = [
            {"approach": name, "learning_rate": rate, "weight_decay": decay}
            for name, rate, decay in product(names, (1e-1, 1e-2, 1e-3), (1e-3, 1e-5))
        ]
        epochs = None
        if model == "mlp" and "norm" not in options and (n <= _MANY or not random):
            small = 16 if n <= _FEW else 64 if n <= _MANY else 256
            deep: dict[str, Any] = {"batch_size": small, "schedule": "one-cycle"}
            wide: dict[str, Any] = {"batch_size": 256, "schedule": None, "model.norm": False}
            deep |= {"learning_rate": 1e-2, "model.norm": True}
            if "hidden" not in options:
                deep, wide = deep | {"model.hidden": _DEEP}, wide | {"model.hidden": (500,)}
            tried = product(names, (1e-3, 1e-4))
            normed = [{"approach": name, "weight_decay": decay, **deep} for name, decay in tried]
            grid = [one | wide for one in grid] + normed if random else normed
            epochs = _EPOCHS if n <= _FEW else None
        criterion, mixed = "accuracy" if random else "calibrated", len(names) > 1 and not random
        done = "settings of each chosen" if mixed else "chosen"
        why = f"{said}; tried {', '.join(names)}, {done} by {criterion}"
        return Auto(grid, criterion, why, mixed, trial, epochs)

    def choices(self, grid: Sequence[Mapping[str, Any]], scores: Any, chosen: int) -> list[Any]:
        """Return what is trained in the end: what was chosen, or the best of each approach."""
        if not self.mixed:
            return [grid[chosen]]
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable")
        best: dict[str, Any] = {}
        for place in order.tolist():
            best.setdefault(grid[place]["approach"], grid[place])
        return list(best.values())
