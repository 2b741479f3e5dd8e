"""Choosing, training and judging one approach after another, all on the same rows."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison.judging import Judging
from ruleout.comparison.rows import Curve, Row
from ruleout.comparison.statistics import mean_and_error
from ruleout.methods import Approach
from ruleout.selection import DivergedError, Search, refit_chosen, search
from ruleout.training import GridFit
from ruleout.training.grids import Configuration

__all__ = ["Ahead", "Progress", "Runner"]

#: Called with the share of the work that is done, and the approach at work.
Progress: TypeAlias = Callable[[float, str], None]


@dataclass(frozen=True)
class Runner:
    """What all approaches of a comparison share.

    Attributes
    ----------
    x, judging
        The examples, which of them train and which judge.
    grid
        The configurations.
    average
        Over how many of the last kept epochs scores are averaged.
    every
        Keep the learning curve of every so many epochs.
    choosing
        For :func:`ruleout.selection.search`: criterion, share, rule.
    training
        For :func:`ruleout.fit_grid`: model, epochs, seed, device, ...
    """

    x: Any
    judging: Judging
    grid: Sequence[Configuration]
    average: int
    every: int
    choosing: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)

    def run(self, approach: Approach, ahead: Ahead | None = None) -> tuple[Row, GridFit | None]:
        """Choose, train and judge; an approach without a finite estimate comes back as such."""
        began = time.perf_counter()
        models = len(self.grid) * len(self.judging.trials)
        about = {n: getattr(approach, n) for n in ("label", "family", "form")}
        about |= {"approach": approach.name, "models": models}
        try:
            found = self._search(approach, ahead)
        except DivergedError:
            seconds = time.perf_counter() - began
            return Row(**about, diverged=models, seconds=seconds), None
        final = self._train(approach, found, ahead)
        told = self._chosen(found) | self._judged(final)
        return Row(**about, **told, seconds=time.perf_counter() - began), final

    def _search(self, approach: Approach, ahead: Ahead | None) -> Search:
        return search(
            self.x,
            self.judging.trials,
            approach=approach,
            grid=self.grid,
            per_trial=self.judging.kind == "folds",  # or a row would choose where it judges
            average=self.average,
            every=self.training["epochs"],
            tail=self.average,
            refit=False,
            progress=None if ahead is None else ahead.choosing(approach),
            **self.choosing,
            **self.training,
        )

    def _train(self, approach: Approach, found: Search, ahead: Ahead | None) -> GridFit:
        """Train what was chosen on all rows that do not judge."""
        return refit_chosen(
            self.x,
            self.judging.trials,
            found.chosen,
            found.grid,
            approach=approach,
            watch={"judged": self.judging.watch()},
            every=self.every,
            tail=self.average,
            progress=None if ahead is None else ahead.training(approach),
            **self.training,
        )

    def _chosen(self, found: Search) -> dict[str, Any]:
        estimate, error = found.estimate
        most = Counter(found.chosen.tolist()).most_common(1)[0][0]
        return {
            "configuration": found.grid.configurations[most],
            "configurations": tuple(found.grid.configurations[c] for c in found.chosen),
            "estimate": estimate,
            "error": error,
            "diverged": int((found.grid.diverged > 0).sum()),
        }

    def _judged(self, final: GridFit) -> dict[str, Any]:
        if (final.diverged > 0).any():
            return {}
        history = final.history[f"judged/{self.judging.name}"][:, 0]
        trials, values = self.judging.per_row(final)
        if self.judging.kind == "labels":
            trials = history[:, -self.average :].mean(-1)
        score, spread = self._summary(trials, values)
        return {
            "score": score,
            "spread": spread,
            "trials": tuple(trials.tolist()),
            "curve": Curve(final.epochs, history),
            "values": values,
        }

    def _summary(
        self, trials: NDArray[np.float64], values: NDArray[np.float64]
    ) -> tuple[float, float]:
        """Return the mean with its deviation over trials, or its standard error over rows."""
        if self.judging.kind != "labels":
            return mean_and_error(values)
        spread = float(trials.std(ddof=1)) if len(trials) > 1 else np.nan
        return float(trials.mean()), spread


class Ahead:
    """How much work is done and how much lies ahead, over all approaches.

    A decomposed training set has as many times more steps as sets have classes on average; the
    training on all rows costs about as much as two configurations of the grid.
    """

    def __init__(
        self, approaches: Sequence[Approach], judging: Judging, models: int, report: Progress
    ) -> None:
        size = float(np.mean([trial.sets.sizes.mean() for trial in judging.trials]))
        costs = [max(size, 1) if one.form == "pairs-before" else 1.0 for one in approaches]
        ends = np.cumsum(costs) / np.sum(costs)
        starts = [0.0, *ends[:-1].tolist()]
        self._spans = {
            one.name: (start, end)
            for one, start, end in zip(approaches, starts, ends.tolist(), strict=True)
        }
        self._grid, self._report = models / (models + 2), report

    def choosing(self, approach: Approach) -> Callable[[int, int], None]:
        """Return the progress of the grid."""
        return self._part(approach.name, 0.0, self._grid)

    def training(self, approach: Approach) -> Callable[[int, int], None]:
        """Return the progress of the final training."""
        return self._part(approach.name, self._grid, 1.0)

    def begin(self, approach: Approach) -> None:
        """Say that an approach is next."""
        self._report(self._spans[approach.name][0], approach.name)

    def end(self) -> None:
        """Say that all are done."""
        self._report(1.0, list(self._spans)[-1])

    def _part(self, name: str, low: float, high: float) -> Callable[[int, int], None]:
        start, end = self._spans[name]

        def tell(done: int, every: int) -> None:
            self._report(start + (end - start) * (low + (high - low) * done / every), name)

        return tell
