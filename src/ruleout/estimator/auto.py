"""``approach="auto"``: a short list of approaches with settings that suit them, and who judges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from ruleout.datasets import inspect
from ruleout.labels.origins import may_err
from ruleout.selection import DivergedError
from ruleout.selection.origin_search import FoundOrigin
from ruleout.training import Trial, configurations

_TINY, _FEW, _MANY = 32, 2000, 10_000  # rows: fewer make no batches; up to so many smaller ones
_EPOCHS, _DEEP = 200, (300, 300, 300)  # of perceptrons with batch norm, on few rows


class Auto(NamedTuple):
    """What is tried, by which criterion it is chosen, and why."""

    grid: list[dict[str, Any]]
    criterion: str
    why: str
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

        Random sets, as far as tests can say: LOG and PRODEN, judged by accuracy. Others: the
        likelihood alone if `find` learns how sets came about, else CC and PRODEN, or, if the model
        is not linear, conformal PRODEN and CroSel's selection, which believe rows the model is sure
        of (linear ones are sure of wrong classes: 64 and 53 % on Texture with biased sets, CC and
        PRODEN 89 and 93 %). These are judged by how well what was said about rows held out is
        foretold, at the temperature that suits each model. Perceptrons are also tried with three
        layers and batch norm, and only so where sets are not random: on BirdSong plain ones
        foretold what was said as well, but named fewer rows rightly (benchmarks/boards.py).
        """
        mistakes, n = may_err(trial.evidence), len(trial.sets)
        told = inspect(trial.sets, x).assumption(mistakes=mistakes)
        random = told.level != "warning"
        if mistakes:
            names, said = ["likelihood"], "some of what was said may be wrong"
        elif random:
            names, said = ["log", "proden"], "tests do not reject that sets are random"
        else:
            names = ["cc", "proden"] if model == "linear" else ["conformal-proden", "crosel"]
            said = "sets are not random"
            said += f" ({', '.join(told.numbers['why'])})"
            if trial.evidence is None and trial.rate is None:
                try:
                    found = find()
                except DivergedError:
                    found = FoundOrigin(None, None, {}, "no matrix was learnt: training diverged")
                said, learnt = f"{said}; {found.why}", found.evidence(trial.sets)
                if learnt is not None:
                    names, trial = ["likelihood"], replace(trial, evidence=learnt)
        grid = [{"approach": name, **one} for name in names for one in configurations("small")]
        epochs = None
        deeper = n >= _TINY and (n <= _MANY or not random)
        if model == "mlp" and "norm" not in options and deeper:
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
        criterion = "accuracy" if random else "calibrated"
        why = f"{said}; tried {', '.join(names)}, chosen by {criterion}"
        return Auto(grid, criterion, why, trial, epochs)

    def choices(
        self, grid: Sequence[Mapping[str, Any]], scores: Any, errors: Any
    ) -> list[Mapping[str, Any]]:
        """Return what is trained in the end: the best of each approach that may be the best.

        Accuracy leaves out what it tells from the best (1.96 standard errors, as if each had been
        judged by other rows). How well sets are foretold leaves out nothing: it says little about
        which approach errs least.
        """
        order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), kind="stable").tolist()
        best: dict[str, int] = {}
        for place in order:
            best.setdefault(grid[place]["approach"], place)
        first, *others = best.values()
        if self.criterion == "accuracy":
            near = scores[first] - 1.96 * np.hypot(errors, errors[first])
            others = [place for place in others if scores[place] >= near[place]]
        return [grid[place] for place in (first, *others)]
