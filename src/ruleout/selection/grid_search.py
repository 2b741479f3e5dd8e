"""Choosing a configuration by a criterion, and setting rows aside for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief
from ruleout.selection.criteria import Criterion
from ruleout.selection.criteria import criterion as find_criterion
from ruleout.training import GridFit, Progress, Stopping, Trial, Watch, fit_grid
from ruleout.training.validation import as_trials

Rule: TypeAlias = Literal["best", "one-standard-error"]


class DivergedError(InputError):
    """No configuration has a finite estimate: all of them diverged."""


def split(n: int, share: float = 0.1, *, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Set some rows aside at random.

    Parameters
    ----------
    n
        The number of rows.
    share
        How many of them to set aside, rounded up, at least one and not all.
    seed
        Of the choice.

    Returns
    -------
    kept, aside
        Row numbers, in order.

    Examples
    --------
    >>> kept, aside = split(25, 0.1, seed=0)
    >>> len(kept), len(aside)
    (22, 3)
    """
    if not 0 < share < 1:
        raise ValueError(f"the share to set aside must lie between 0 and 1, not {brief(share)}")
    if n < 2:
        raise InputError(f"{n} row cannot be split", "give at least two rows")
    count = min(n - 1, max(1, int(np.ceil(round(n * share, 9)))))
    order = np.random.default_rng([seed, 0]).permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])


def choose(
    estimates: ArrayLike,
    errors: ArrayLike | None = None,
    *,
    higher_is_better: bool = True,
    rule: Rule = "best",
    configurations: Sequence[Mapping[str, Any]] | None = None,
) -> int:
    """Return the number of the configuration to take.

    Parameters
    ----------
    estimates
        ``[C]``, or ``[T, C]`` of several trials, whose mean decides. A configuration with an
        estimate that is not finite (it diverged) is never taken.
    errors
        Standard errors of the same shape, needed by ``"one-standard-error"``.
    higher_is_better
        As the criterion says.
    rule
        ``"best"``, or ``"one-standard-error"``: of all configurations within one standard error of
        the best, the one with the strongest weight decay, then the smallest learning rate.
    configurations
        What the configurations are, needed by ``"one-standard-error"``.

    Examples
    --------
    >>> choose([0.71, 0.80, 0.79])
    1
    >>> grid = [{"learning_rate": 0.1, "weight_decay": w} for w in (0.0, 0.01, 0.1)]
    >>> choose([0.71, 0.80, 0.79], [0.02] * 3, rule="one-standard-error", configurations=grid)
    2
    """
    table = np.atleast_2d(np.asarray(estimates, float))
    scores = table.mean(0) if higher_is_better else -table.mean(0)
    if not np.isfinite(scores).any():
        raise DivergedError("no configuration has a finite estimate", "try smaller learning rates")
    scores = np.where(np.isfinite(scores), scores, -np.inf)
    best = int(np.argmax(scores))
    if rule == "best":
        return best
    if rule != "one-standard-error":
        raise ValueError(f"unknown rule {brief(rule)}; say 'best' or 'one-standard-error'")
    if errors is None or configurations is None:
        raise ValueError("the one-standard-error rule needs errors and configurations")
    spread = np.atleast_2d(np.asarray(errors, float))
    error = float(np.sqrt(np.square(spread[:, best]).sum())) / len(spread)
    near = np.flatnonzero(np.isfinite(scores) & (scores >= scores[best] - error))
    return max(near.tolist(), key=lambda c: _simplicity(configurations[c], float(scores[c])))


def _simplicity(configuration: Mapping[str, Any], score: float) -> tuple[float, float, float]:
    rate, decay = configuration["learning_rate"], configuration["weight_decay"]
    return float(decay), -float(rate), score


@dataclass(frozen=True, eq=False, repr=False)
class Search:
    """What a search found.

    Attributes
    ----------
    grid
        The whole grid, trained on the rows that were not set aside.
    criterion
        What chose.
    estimates, errors
        ``[T, C]``: the criterion on the rows set aside, and its standard errors.
    chosen
        ``[T]``: the number of the configuration of each trial; all the same unless every trial
        chose for itself.
    final
        The chosen configuration trained on all rows, ``[T, 1]``; None without refit.
    """

    grid: GridFit
    criterion: Criterion
    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]
    chosen: NDArray[np.intp]
    final: GridFit | None

    @property
    def configuration(self) -> dict[str, Any]:
        """The chosen configuration (of the first trial)."""
        return self.grid.configurations[int(self.chosen[0])]

    @property
    def estimate(self) -> tuple[float, float]:
        """The criterion of what was chosen, mean over trials, and its standard error.

        The rows set aside chose it, so it is a little too good.
        """
        trials = np.arange(len(self.chosen))
        errors = self.errors[trials, self.chosen]
        mean = float(self.estimates[trials, self.chosen].mean())
        return mean, float(np.sqrt(np.square(errors).sum()) / len(errors))

    def __repr__(self) -> str:
        mean, error = self.estimate
        name = self.criterion.name
        return f"Search({self.configuration}, {name} {mean:.4f} ± {error:.4f})"


def search(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    criterion: str | Criterion = "accuracy",
    share: float = 0.1,
    rule: Rule = "best",
    per_trial: bool = False,
    average: int = 1,
    patience: int | None = None,
    refit: bool = True,
    seed: int = 0,
    watch: Mapping[str, Watch] | None = None,
    progress: Progress | None = None,
    refit_progress: Progress | None = None,
    **options: Any,
) -> Search:
    """Choose a configuration without true labels, then train it on all rows.

    Parameters
    ----------
    x, sets
        As for :func:`ruleout.fit_grid`.
    criterion
        A name, or what :func:`ruleout.criterion` returns.
    share
        How many rows are set aside to choose on; they keep what was ruled out there.
    rule
        See :func:`choose`.
    per_trial
        Let every trial choose for itself; otherwise the mean over the trials decides.
    average
        Average the criterion over the last so many kept epochs.
    patience
        Stop a configuration after so many kept epochs without a better value of the criterion; the
        epoch of its best value then counts, also for the refit.
    refit
        Train the choice again, on all rows.
    seed
        Of the split, the first weights and the batch order; trial t takes seed + t.
    watch
        Measured in both trainings.
    progress, refit_progress
        Called with (epochs done, epochs in all) of the grid, and of the refit; where the second is
        not given, the first is called for both.
    options
        For :func:`ruleout.fit_grid`: approach, model, grid, epochs, device, ...

    Examples
    --------
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> found = search(x, sets, grid={"learning_rate": [1e-1, 1e-4]}, epochs=5)
    >>> found.configuration
    {'learning_rate': 0.1, 'weight_decay': 1e-05}
    """
    judge = criterion if isinstance(criterion, Criterion) else find_criterion(criterion)
    trials = as_trials(sets, x.shape[0] if hasattr(x, "shape") else len(x), seed)
    parts = [set_aside(trial, share) for trial in trials]
    kept = [train for train, _ in parts]
    held = Watch(
        [aside.sets for _, aside in parts],
        {judge.name: judge.values},
        rows=[aside.rows for _, aside in parts],
        rate=None if trials[0].rate is None else [aside.rate for _, aside in parts],
    )
    name = f"held out/{judge.name}"
    stop = Stopping(name, patience, judge.higher_is_better) if patience else None
    both = {**(watch or {}), "held out": held}
    folder = options.pop("checkpoint", None)
    if folder is not None:
        options["checkpoint"] = Path(folder) / "grid"
    options |= {"seed": seed, "progress": progress}
    grid = fit_grid(x, kept, watch=both, stopping=stop, moments=False, **options)
    estimates, errors = _judged(grid, name, average, stop is not None)
    chosen = _choices(estimates, errors, judge, rule, per_trial, grid)
    final = None
    if refit:
        if stop is not None:
            own = grid.stopped[np.arange(len(chosen)), chosen]
            options["epochs"] = max(1, round(float(own.mean())))
        options |= {"watch": watch, "progress": refit_progress or progress}
        if folder is not None:
            options["checkpoint"] = Path(folder) / "refit"
        final = refit_chosen(x, trials, chosen, grid, **options)
    return Search(grid, judge, estimates, errors, chosen, final)


def set_aside(trial: Trial, share: float) -> tuple[Trial, Trial]:
    """Return the part of a trial that trains and the part that chooses, by the trial's seed."""
    kept, aside = split(len(trial.sets), share, seed=int(trial.seed or 0))
    return trial.part(kept), trial.part(aside)


def _judged(
    grid: GridFit, name: str, average: int, stopped: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the criterion of every model and its standard error, ``[T, C]`` each."""
    values, errors = grid.history[name], grid.errors[name]
    if stopped:
        place = np.searchsorted(grid.epochs, np.maximum(grid.stopped, 1))[..., None]
        estimate = np.take_along_axis(values, place, -1)[..., 0]
        return estimate, np.take_along_axis(errors, place, -1)[..., 0]
    estimate = np.where(grid.diverged > 0, np.nan, values[..., -average:].mean(-1))
    return estimate, errors[..., -average:].mean(-1)


def _choices(
    estimates: NDArray[np.float64],
    errors: NDArray[np.float64],
    judge: Criterion,
    rule: Rule,
    per_trial: bool,
    grid: GridFit,
) -> NDArray[np.intp]:
    def one(values: NDArray[np.float64], spread: NDArray[np.float64]) -> int:
        up, known = judge.higher_is_better, grid.configurations
        return choose(values, spread, higher_is_better=up, rule=rule, configurations=known)

    if per_trial:
        return np.array([one(v, e) for v, e in zip(estimates, errors, strict=True)])
    return np.full(len(estimates), one(estimates, errors))


def refit_chosen(
    x: Any, trials: list[Trial], chosen: NDArray[np.intp], tried: GridFit, **options: Any
) -> GridFit:
    """Train what was chosen on all rows; where trials differ, each takes its own.

    Parameters
    ----------
    x, trials
        All rows.
    chosen
        ``[T]``: the number of each trial's configuration among those that were tried.
    tried
        The grid that chose.
    options
        For :func:`ruleout.fit_grid`.

    Returns
    -------
    GridFit
        ``[T, 1]``.
    """
    distinct, own = np.unique(chosen, return_inverse=True)
    left = [tried.configurations[place] for place in distinct]
    return fit_grid(x, trials, **{**options, "grid": left}).pick(own)
