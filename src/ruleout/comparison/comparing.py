"""`compare`: approaches side by side, each chosen without true labels."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ruleout.comparison import significance as tests
from ruleout.comparison.comparison_result import Comparison, Curve, Method, Over, Row
from ruleout.comparison.judging import Judging, look, plan
from ruleout.comparison.significance import mean_and_error
from ruleout.datasets.tables import Scaling
from ruleout.labels import LabelSets
from ruleout.labels.errors import brief, counted
from ruleout.methods import PAPER, Approach
from ruleout.methods import approach as find_approach
from ruleout.models import build
from ruleout.selection import Criterion, DivergedError, Rule, refit_chosen, search
from ruleout.selection import criterion as find_criterion
from ruleout.training import SMALL_GRID, GridFit, Trial, configurations, estimate_seconds
from ruleout.training.class_weights import weigh_rows
from ruleout.training.grids import Configuration, Grid, set_apart
from ruleout.training.nets import warn_of_clpl
from ruleout.training.validation import check_counts, check_features

#: Called with the share of the work that is done, and the approach at work.
Progress: TypeAlias = Callable[[float, str], None]

_OURS = ("log", "exp")  # the reference of the paper


def compare(
    x: Any,
    sets: LabelSets | Trial | Sequence[LabelSets | Trial],
    *,
    groups: Any = None,
    scale: bool = False,
    approaches: Sequence[str | Approach] | None = None,
    grid: Grid | None = "small",
    model: str | Callable[..., nn.Module] = "linear",
    trials: int | None = None,
    criterion: str | Criterion = "accuracy",
    share: float = 0.1,
    rule: Rule = "best",
    test: tuple[Any, Any] | None = None,
    judge: float | Literal["folds"] | None = None,
    score: str | Criterion = "accuracy",
    reference: str | Sequence[str] = _OURS,
    over: Over | None = None,
    level: float = 0.05,
    holm: bool = False,
    average: int = 1,
    epochs: int = 250,
    early_stopping: bool = False,
    patience: int = 10,
    class_weight: Mapping[Any, float] | str | None = None,
    every: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    precision: str = "float32",
    progress: Progress | None = None,
    expect: Callable[[float], None] | None = None,
    **options: Any,
) -> Comparison:
    """Compare approaches on one data set, each with the configuration that suits it.

    For every approach a grid is trained, one configuration is chosen by a criterion that needs no
    true labels, and that one is trained again. All approaches share trials, splits and batch
    orders, so that they can be compared in pairs.

    A score must not come from rows that trained or chose. Without `test`, a part of the rows is
    therefore kept back to judge: with ``judge=0.2`` a fifth, the same for all trials; with
    ``judge="folds"`` every row judges the one trial that did not see it. The second gives smaller
    standard errors for the same work.

    Parameters
    ----------
    x, sets
        As for :func:`ruleout.fit_grid`. One table of sets is used for all trials, which then
        differ in splits, first weights and batch order; a list makes a trial of each.
    groups
        What each row of x belongs to, ``[n]``: a group trains, chooses or judges as a whole, and
        so do rows with equal features. Errors and tests are then those of groups.
    scale
        Scale the columns of x, and of test rows alike, as :class:`~ruleout.RuleOutClassifier` does.
    approaches
        Names or approaches; None: the eighteen of the paper.
    grid
        ``"small"`` (8 configurations), ``"paper"`` (36), None for the defaults, or any grid of
        :func:`ruleout.training.configurations`.
    model, epochs, seed, device, precision, options
        As for :func:`ruleout.fit_grid`.
    trials
        How many; None: 5, or as many as there are tables of sets.
    criterion, share, rule
        How configurations are chosen: see :func:`ruleout.selection.search`. Every trial chooses for
        itself: one choice for all would make them depend on each other.
    test
        ``(x_test, y_test)`` with true labels (class names), used only to report, or
        ``(x_test, sets_test)``. Then all rows of `x` train and choose.
    judge
        Without `test`: the share of rows kept back, or ``"folds"``. None: folds where there are at
        most 5,000 rows and four trials or more, else 0.2.
    score
        What label sets are turned into: a criterion, as ``"accuracy"`` or ``"calibrated"``.
    reference
        The others are tested against that of these which the criterion puts first. They must be
        among the approaches; where LOG and EXP, the default, are not, all are in the running.
    over
        What the t-test takes for a sample: ``"trials"`` (chance in training and choosing),
        ``"rows"`` (chance in the rows that judge: it is about these very models), or ``"both"``.
        None: both; with one trial rows.
    level, holm
        When a difference is marked, and whether p-values are corrected for their number first.
    average
        Average true-label scores, and the criterion, over the last so many epochs.
    early_stopping, patience
        Also choose the number of epochs of each approach: a configuration stops after `patience`
        epochs without a better criterion on the rows that choose.
    class_weight
        A dictionary from class to weight, or ``"balanced"``, as for
        :class:`~ruleout.RuleOutClassifier`. Rows that choose or judge count alike.
    every
        Keep learning curves of every so many epochs; None: about fifty points.
    progress
        Called with the share of the work that is done, and the name of the approach at work.
    expect
        Called before training with about how many seconds it will take, at most.

    Examples
    --------
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y[:1200], classes=10, seed=0)
    >>> grid = {"learning_rate": [1e-1, 1e-2]}
    >>> table = compare(
    ...     x[:1200], sets, approaches=["log", "cce"], grid=grid, epochs=15,
    ...     test=(x[1200:], y[1200:]),
    ... )
    >>> table.best.approach
    'log'
    """
    began = time.perf_counter()
    x = check_features(x)
    chosen = _approaches(approaches)
    configs = _configurations(grid, chosen)
    named = (reference,) if isinstance(reference, str) else tuple(reference)
    known = {one.name for one in chosen}  # a user's own name is not in the table
    ours = [name if name in known else find_approach(name).name for name in named]
    if named != _OURS and (absent := [name for name in ours if name not in known]):
        say = f"add it, or name one of {', '.join(one.name for one in chosen)}"
        raise ValueError(f"reference {absent[0]!r} is not among the approaches; {say}")
    chooses, judges = find_criterion(criterion), find_criterion(score)
    check_counts(epochs=epochs, patience=patience)
    if not 1 <= average <= epochs:
        told = f"the {epochs} epochs, not {brief(average)}"
        raise ValueError(f"average must lie between 1 and {told}")
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {brief(level)}")
    if over not in (None, "trials", "rows", "both"):
        raise ValueError(f"over must be 'trials', 'rows' or 'both', not {brief(over)}")
    apart = {"trials": trials, "test": test, "judge": judge, "groups": groups}
    judging = plan(x, sets, score=judges, seed=seed, **apart)
    more: dict[str, Any] = {}
    if scale:
        scaling, more["columns"] = Scaling.of(x), "scaled"
        x, judging = scaling(x), replace(judging, x=scaling(judging.x))
    if early_stopping:
        more["early stopping"] = f"after {patience} epochs without a better {chooses.name}"
    if class_weight is not None:
        more["class weight"] = str(class_weight)
        judging = replace(judging, trials=[_weighted(t, class_weight) for t in judging.trials])
    if model != "linear" and any(one.name.startswith("clpl") for one in chosen):
        shape = tuple(options.get("shape") or x.shape[1:])
        made = build(model, shape, 2, seed=0, **(options.get("model_options") or {}))
        warn_of_clpl(made, stacklevel=2)
    options |= {"model": model, "epochs": epochs, "seed": seed}
    options |= {"device": device, "precision": precision}
    choosing: dict[str, Any] = {"criterion": chooses, "share": share, "rule": rule}
    choosing |= {"grid": configs, "average": average, "refit": False}
    choosing["per_trial"] = True  # one choice for all would make trials depend on each other
    choosing |= {"every": 1, "patience": patience} if early_stopping else {"every": epochs}
    costs = _costs(chosen, judging)
    if expect is not None:
        once = estimate_seconds(x, judging.trials, grid=configs, roughly=True, **options)
        expect(once * sum(costs) * (1 + 2 / len(configs)))
    every = every or -(-epochs // 50)
    runner = _Runner(x, judging, every, progress, choosing, {**options, "tail": average})
    true, several = judging.kind == "labels", len(judging.trials) > 1
    method = Method(
        kind=judging.kind,
        rows=judging.count,
        trials=len(judging.trials),
        measure=judging.name,
        higher_is_better=true or judges.higher_is_better,
        criterion=chooses.name,
        criterion_up=chooses.higher_is_better,
        over=over or ("both" if several else "rows"),
        level=level,
        holm=holm,
        average=average,
    )
    rows, best = runner.run_all(chosen, costs, 1 if method.higher_is_better else -1)
    if progress is not None:
        progress(1.0, chosen[-1].name)
    marked, method = with_marks(rows, method, ours)
    return Comparison(
        rows=marked,
        method=method,
        facts=runner.facts(best, time.perf_counter() - began) | more,
        classes=judging.trials[0].sets.classes,
        sizes=_sizes(sets),
        pictures=None if best is None else look(x, judging, best[1], best[0].approach),
    )


def _approaches(names: Sequence[str | Approach] | None) -> list[Approach]:
    wanted = PAPER if names is None else [names] if isinstance(names, str) else names
    found = [find_approach(one) for one in wanted]
    if not found:
        raise ValueError("no approach is named; give at least one, or None for the paper's")
    for name, times in Counter(one.name for one in found).items():
        if times > 1:
            raise ValueError(f"approach {name!r} is named twice; give one another name: .named()")
    return found


def _configurations(grid: Grid | None, approaches: Sequence[Approach]) -> list[Configuration]:
    """Return the configurations; raises where an approach lacks an option that they set."""
    found = configurations(grid)
    rest = {n: v for n, v in found[0].items() if n not in SMALL_GRID and not set_apart(n)}
    for one in approaches if rest else ():
        one.with_options(**rest)
    return found


def _weighted(trial: Trial, class_weight: Any) -> Trial:
    """Weigh the rows of a trial as their classes; those that weigh nothing are left out."""
    sets = trial.sets
    weight = weigh_rows(sets, sets.classes, class_weight, trial.weight, trial.rate)
    return replace(trial, weight=weight).part(np.flatnonzero(weight))


def _sizes(sets: LabelSets | Trial | Sequence[LabelSets | Trial]) -> NDArray[np.intp]:
    tables = [sets] if isinstance(sets, LabelSets | Trial) else sets
    found = [one.sets if isinstance(one, Trial) else one for one in tables]
    k = len(found[0].classes)
    return np.asarray(sum(np.bincount(one.sizes, minlength=k)[:k] for one in found))


@dataclass(frozen=True)
class _Runner:
    """Chooses, trains and judges one approach after another, all on the same rows."""

    x: Any
    judging: Judging
    every: int  # epochs from one point of a learning curve to the next
    tell: Progress | None
    choosing: Mapping[str, Any]  # for `search`
    training: Mapping[str, Any]  # for `fit_grid`

    def run_all(
        self, approaches: Sequence[Approach], costs: Sequence[float], sign: int
    ) -> tuple[list[Row], tuple[Row, GridFit] | None]:
        """Return the rows of all, and the best with its models; those of others are let go."""
        rows: list[Row] = []
        best: tuple[Row, GridFit] | None = None
        marks = [0.0, *(np.cumsum(costs) / np.sum(costs)).tolist()]
        for approach, (start, end) in zip(approaches, pairwise(marks), strict=True):
            row, fit = self._run(approach, start, end)
            rows.append(row)
            better = best is None or sign * row.score > sign * best[0].score
            if fit is not None and not row.failed and better:
                best = row, fit
        return rows, best

    def _part(self, low: float, high: float, name: str) -> Callable[[int, int], None] | None:
        """Return what says how far a part of the work is; the whole goes from 0 to 1."""
        if (tell := self.tell) is None:
            return None
        tell(low, name)
        return lambda done, every: tell(low + (high - low) * done / every, name)

    def _run(
        self, approach: Approach, start: float = 0.0, end: float = 1.0
    ) -> tuple[Row, GridFit | None]:
        """Choose, train and judge; an approach without a finite estimate comes back as such."""
        began = time.perf_counter()
        trials, training = self.judging.trials, {**self.training, "approach": approach}
        models = (grid := len(self.choosing["grid"])) * len(trials)
        about = {n: getattr(approach, n) for n in ("label", "family", "form")}
        about |= {"approach": approach.name, "models": models}
        middle = start + (end - start) * grid / (grid + 2)  # what is chosen costs two more
        tell = self._part(start, middle, approach.name)
        try:
            found = search(self.x, trials, progress=tell, **self.choosing, **training)
        except DivergedError:
            seconds = time.perf_counter() - began
            return Row(**about, diverged=models, seconds=seconds), None
        tell = self._part(middle, end, approach.name)
        training |= {"epochs": found.epochs, "every": self.every, "progress": tell}
        training["watch"] = {"judged": self.judging.watch()}
        final = refit_chosen(self.x, trials, found.chosen, found.grid, **training)
        estimate, error = found.estimate
        tried, most = found.grid.configurations, Counter(found.chosen.tolist()).most_common(1)[0][0]
        row = Row(
            **about,
            **self._judged(final),
            configuration=tried[most],
            configurations=tuple(tried[c] for c in found.chosen),
            estimate=estimate,
            error=error,
            diverged=int((found.grid.diverged > 0).sum()),
            seconds=time.perf_counter() - began,
        )
        return row, final

    def _judged(self, final: GridFit) -> dict[str, Any]:
        if (final.diverged > 0).any():
            return {}
        history = final.history[f"judged/{self.judging.name}"][:, 0]
        trials, values, cells = self.judging.per_row(final)
        if self.judging.kind == "labels":
            trials = history[:, -self.training["tail"] :].mean(-1)
            cells += (trials - cells.mean(1))[:, None]
            score = float(trials.mean())
            spread = float(trials.std(ddof=1)) if len(trials) > 1 else np.nan
        else:
            score, spread = mean_and_error(values)
        found = {"score": score, "spread": spread, "trials": tuple(trials.tolist())}
        return found | {"curve": Curve(final.epochs, history), "values": values, "cells": cells}

    def facts(self, best: tuple[Row, GridFit] | None, seconds: float) -> dict[str, Any]:
        trials, training = self.judging.trials, self.training
        model = training["model"]
        told: dict[str, Any] = {
            "rows": int(self.x.shape[0]),
            "features": int(np.prod(self.x.shape[1:])),
            "classes": len(trials[0].sets.classes),
            "model": model if isinstance(model, str) else getattr(model, "__name__", "a function"),
            "grid": _grid_in_words(self.choosing["grid"]),
            "trials": len(trials),
            "epochs": training["epochs"],
            "chosen on": f"{100 * self.choosing['share']:g} % of the training rows",
            "seed": training["seed"],
            "precision": training["precision"],
            "seconds": round(seconds, 2),
        }
        if best is not None:
            record = best[1].record
            told |= {name: record[name] for name in ("optimizer", "batch_size", "device")}
            told["device"] = f"{record['device']} ({record['device_name']})"
            told |= {f"{name} version": version for name, version in record["versions"].items()}
        return told


def _grid_in_words(grid: Sequence[Configuration]) -> str:
    """Say it as: 2 configurations (learning rate 0.1, 0.01; q 0.7)."""
    parts = []
    for name in grid[0]:
        found = (one[name] for one in grid)
        told = dict.fromkeys(f"{v:g}" if isinstance(v, float) else str(v) for v in found)
        parts.append(f"{name.replace('_', ' ')} {', '.join(told)}")
    return f"{counted(len(grid), 'configuration')} ({'; '.join(parts)})"


def _costs(approaches: Sequence[Approach], judging: Judging) -> list[float]:
    """Say how many times longer each trains than one that reads sets as a whole.

    A decomposed training set has as many times more steps as sets have classes on average.
    """
    size = float(np.mean([trial.sets.sizes.mean() for trial in judging.trials]))
    return [max(size, 1) if one.form == "pairs-before" else 1.0 for one in approaches]


def with_marks(
    rows: Sequence[Row], method: Method, reference: Sequence[str]
) -> tuple[tuple[Row, ...], Method]:
    """Return the rows with p-values and marks, and the method with the reference named.

    The reference is that of those asked for which the criterion puts first, before any score was
    seen: picked by its score, luck would be on its side. Where none of them has a score, it is
    picked among all.
    """
    alive = [row for row in rows if not row.failed]
    asked = [row for row in alive if row.approach in reference] or alive
    if not asked or len(rows) < 2:
        return tuple(rows), method
    ours = max(asked, key=lambda row: row.estimate if method.criterion_up else -row.estimate)
    over = {"trials": "trials", "rows": "values", "both": "cells"}[method.over]
    both = partial(tests.crossed_t_test, shared=method.kind != "folds")
    found = tests.significance(
        getattr(ours, over),
        [None if row is ours or row.failed else getattr(row, over) for row in rows],
        level=method.level,
        higher_is_better=method.higher_is_better,
        test=both if method.over == "both" else tests.paired_t_test,
    )
    marked = tuple(
        replace(row, p_value=p, p_holm=fair, mark=corrected if method.holm else mark)
        for row, (p, fair, mark, corrected) in zip(rows, found, strict=True)
    )
    return marked, replace(method, reference=ours.approach)
