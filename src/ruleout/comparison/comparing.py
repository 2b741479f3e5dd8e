"""`compare`: approaches side by side, chosen without true labels."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ruleout.comparison.asked import (
    as_criterion,
    check_numbers,
    find_all,
    find_grid,
    find_reference,
    warn_of_clpl,
)
from ruleout.comparison.judging import Judging, plan
from ruleout.comparison.marking import with_marks
from ruleout.comparison.method import Method, Over
from ruleout.comparison.pictures import look
from ruleout.comparison.result import Comparison
from ruleout.comparison.rows import Row
from ruleout.comparison.running import Ahead, Progress, Runner
from ruleout.labels import LabelSets
from ruleout.methods import Approach
from ruleout.selection import Criterion
from ruleout.selection.choosing import Rule
from ruleout.training import GridFit, Trial
from ruleout.training.features import check_features
from ruleout.training.grids import Configuration, Grid

__all__ = ["compare"]


def compare(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    approaches: Sequence[str | Approach] | None = None,
    grid: Grid | None = "small",
    model: str | Callable[..., nn.Module] = "linear",
    trials: int | None = None,
    criterion: str | Criterion = "accuracy",
    share: float = 0.1,
    rule: Rule = "best",
    test: tuple[Any, Any] | None = None,
    judge: float | Literal["folds"] = 0.2,
    score: str | Criterion = "accuracy",
    reference: str | Sequence[str] = ("log", "exp"),
    over: Over | None = None,
    level: float = 0.05,
    holm: bool = False,
    average: int = 1,
    epochs: int = 250,
    every: int | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    precision: str = "float32",
    progress: Progress | None = None,
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
    approaches
        Names or approaches; None: the eighteen of the paper.
    grid
        ``"small"`` (8 configurations), ``"paper"`` (36), None for the defaults, or any grid of
        :func:`ruleout.training.configurations`.
    model, epochs, seed, device, precision, options
        As for :func:`ruleout.fit_grid`.
    trials
        How many; None: 3, or as many as there are tables of sets.
    criterion, share, rule
        How configurations are chosen: see :func:`ruleout.selection.search`. The mean over trials
        decides; with folds every trial chooses for itself.
    test
        ``(x_test, y_test)`` with true labels (class names), used only to report, or
        ``(x_test, sets_test)``. Then all rows of `x` train and choose.
    judge
        Without `test`: the share of rows kept back, or ``"folds"``.
    score
        What label sets are turned into: ``"accuracy"``, ``"consistency"``, ``"risk"``.
    reference
        The others are tested against the best of these; where none takes part, against the best.
    over
        What the paired t-test runs over. None: trials where true labels judge and there are
        several, else rows.
    level, holm
        When a difference is marked, and whether p-values are corrected for their number first.
    average
        Average true-label scores, and the criterion, over the last so many epochs.
    every
        Keep learning curves of every so many epochs; None: about fifty points.
    progress
        Called with the share of the work that is done, and the name of the approach at work.

    Returns
    -------
    Comparison

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
    chosen = find_all(approaches)
    configs = find_grid(grid, chosen)
    ours = find_reference(reference)
    chooses, judges = as_criterion(criterion), as_criterion(score)
    check_numbers(average=average, epochs=epochs, level=level, over=over)
    judging = plan(x, sets, trials=trials, test=test, judge=judge, score=judges, seed=seed)
    shape = tuple(options.get("shape") or x.shape[1:])
    warn_of_clpl(chosen, model, shape, options.get("model_options") or {})
    options |= {"model": model, "epochs": epochs, "seed": seed}
    options |= {"device": device, "precision": precision}
    choosing = {"criterion": chooses, "share": share, "rule": rule}
    runner = Runner(x, judging, configs, average, every or -(-epochs // 50), choosing, options)
    ahead = None if progress is None else Ahead(chosen, judging, len(configs), progress)
    method = _method(judging, judges, chooses, over, level=level, holm=holm, average=average)
    rows, best = _run(runner, chosen, method.higher_is_better, ahead)
    if ahead is not None:
        ahead.end()
    marked, method = with_marks(rows, method, ours)
    return Comparison(
        rows=marked,
        method=method,
        facts=_facts(runner, best, time.perf_counter() - began),
        classes=judging.trials[0].sets.classes,
        sizes=_sizes(sets),
        pictures=None if best is None else look(x, judging, best[1], best[0].approach),
    )


def _run(
    runner: Runner, approaches: Sequence[Approach], up: bool, ahead: Ahead | None
) -> tuple[list[Row], tuple[Row, GridFit] | None]:
    """Run all; return their rows, and the best with its models."""
    rows: list[Row] = []
    best: tuple[Row, GridFit] | None = None
    for approach in approaches:
        if ahead is not None:
            ahead.begin(approach)
        row, fit = runner.run(approach, ahead)
        rows.append(row)
        if fit is None or row.failed:
            continue
        if best is None or (row.score > best[0].score if up else row.score < best[0].score):
            best = row, fit
    return rows, best


def _method(
    judging: Judging, judges: Criterion, chooses: Criterion, over: Over | None, **told: Any
) -> Method:
    true = judging.kind == "labels"
    return Method(
        kind=judging.kind,
        rows=judging.count,
        trials=len(judging.trials),
        measure=judging.name,
        higher_is_better=true or judges.higher_is_better,
        criterion=chooses.name,
        criterion_up=chooses.higher_is_better,
        over=over or ("trials" if true and len(judging.trials) > 1 else "rows"),
        **told,
    )


def _facts(
    runner: Runner, best: tuple[Row, GridFit] | None, seconds: float
) -> dict[str, str | int | float]:
    """Write down what was run."""
    trials, training = runner.judging.trials, runner.training
    model = training["model"]
    told: dict[str, str | int | float] = {
        "rows": int(runner.x.shape[0]),
        "features": int(np.prod(runner.x.shape[1:])),
        "classes": len(trials[0].sets.classes),
        "model": model if isinstance(model, str) else getattr(model, "__name__", "a function"),
        "grid": _grid_in_words(runner.grid),
        "trials": len(trials),
        "epochs": training["epochs"],
        "chosen on": f"{100 * runner.choosing['share']:g} % of the training rows",
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
    """Say how many configurations there are, and of which values.

    >>> _grid_in_words([{"learning_rate": 0.1, "q": 0.7}, {"learning_rate": 0.01, "q": 0.7}])
    '2 configurations (learning rate 0.1, 0.01; q 0.7)'
    """
    parts = []
    for name in grid[0]:
        values = dict.fromkeys(
            f"{one[name]:g}" if isinstance(one[name], float) else str(one[name]) for one in grid
        )
        parts.append(f"{name.replace('_', ' ')} {', '.join(values)}")
    count = "1 configuration" if len(grid) == 1 else f"{len(grid)} configurations"
    return f"{count} ({'; '.join(parts)})"


def _sizes(sets: LabelSets | Sequence[LabelSets | Trial]) -> NDArray[np.intp]:
    """Count the sizes of all tables of sets."""
    tables = [sets] if isinstance(sets, LabelSets) else sets
    found = [one.sets if isinstance(one, Trial) else one for one in tables]
    k = len(found[0].classes)
    return np.asarray(sum(np.bincount(one.sizes, minlength=k)[:k] for one in found))
