"""`compare`: approaches side by side, chosen without true labels."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ruleout.comparison.comparison_result import Comparison, Curve, Method, Over, Row
from ruleout.comparison.judging import Judging, look, plan
from ruleout.comparison.significance import mean_and_error, significance
from ruleout.labels import LabelSets
from ruleout.labels.errors import brief
from ruleout.methods import PAPER, Approach
from ruleout.methods import approach as find_approach
from ruleout.models import build
from ruleout.selection import Criterion, DivergedError, Search, criterion, refit_chosen, search
from ruleout.selection.grid_search import Rule
from ruleout.training import GridFit, Trial, configurations
from ruleout.training.grids import Configuration, Grid
from ruleout.training.nets import dense_layers
from ruleout.training.validation import check_features

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


#: Eight configurations that suit most approaches on features of about unit scale.
SMALL_GRID: Mapping[str, tuple[float, ...]] = {
    "learning_rate": (1e-1, 1e-2, 1e-3, 1e-4),
    "weight_decay": (1e-3, 1e-5),
}

_SPEED = {"learning_rate", "weight_decay"}


def find_all(names: Sequence[str | Approach] | None) -> list[Approach]:
    """Return the approaches asked for; unknown names suggest the nearest.

    >>> [one.label for one in find_all(["log", "ga-after"])]
    ['LOG', 'GA']
    """
    if isinstance(names, str):
        names = [names]
    wanted = PAPER if names is None else names
    found = [one if isinstance(one, Approach) else find_approach(one) for one in wanted]
    if not found:
        raise ValueError("no approach is named; give at least one, or None for the paper's")
    for place, one in enumerate(found):
        if any(one.name == other.name for other in found[:place]):
            raise ValueError(f"approach {one.name!r} is named twice; name each once")
    return found


def find_grid(grid: Grid | None, approaches: Sequence[Approach]) -> list[Configuration]:
    """Return the configurations; raises where an approach lacks an option that they set."""
    if isinstance(grid, str) and grid == "small":
        grid = SMALL_GRID
    elif isinstance(grid, str) and grid != "paper":
        raise ValueError(f"unknown grid {brief(grid)}; say 'small', 'paper' or give lists")
    found = configurations(grid)
    options = {name: value for name, value in found[0].items() if name not in _SPEED}
    for one in approaches if options else ():
        find_approach(one.name, **options)
    return found


def find_reference(names: str | Sequence[str]) -> tuple[str, ...]:
    """Return the reference approaches; unknown names suggest the nearest.

    >>> find_reference("log")
    ('log',)
    """
    listed = (names,) if isinstance(names, str) else tuple(names)
    return tuple(find_approach(name).name for name in listed)


def as_criterion(name: str | Criterion) -> Criterion:
    """Return the criterion of that name."""
    return name if isinstance(name, Criterion) else criterion(name)


def check_numbers(*, average: int, epochs: int, level: float, over: Any) -> None:
    """Raise where a number makes no sense."""
    if epochs < 1:
        raise ValueError(f"epochs must be a whole number of at least 1, not {brief(epochs)}")
    if not 1 <= average <= epochs:
        raise ValueError(
            f"average must lie between 1 and the {epochs} epochs, not {brief(average)}"
        )
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, not {brief(level)}")
    if over not in (None, "trials", "rows"):
        raise ValueError(f"over must be 'trials' or 'rows', not {brief(over)}")


def warn_of_clpl(
    approaches: Sequence[Approach],
    model: str | Callable[..., nn.Module],
    shape: tuple[int, ...],
    options: Mapping[str, Any],
) -> None:
    """Say so where CLPL is trained with a model that is not linear."""
    if not any(one.name.startswith("clpl") for one in approaches) or model == "linear":
        return
    layers = dense_layers(build(model, shape, 2, seed=0, **options))
    if layers is None or len(layers) > 1:
        warnings.warn(
            "CLPL is convex for linear models only; with this model its convexity is gone",
            UserWarning,
            stacklevel=3,
        )


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


def with_marks(
    rows: Sequence[Row], method: Method, reference: Sequence[str]
) -> tuple[tuple[Row, ...], Method]:
    """Return the rows with p-values and marks, and the method with the reference named.

    The reference is the best of those asked for; where none of them has a score, the best of all.
    """
    alive = [row for row in rows if not row.failed]
    asked = [row for row in alive if row.approach in reference] or alive
    if not asked or len(rows) < 2:
        return tuple(rows), method
    ours = max(asked, key=lambda row: row.score if method.higher_is_better else -row.score)
    over = "trials" if method.over == "trials" else "values"
    found = significance(
        getattr(ours, over),
        [None if row is ours or row.failed else getattr(row, over) for row in rows],
        level=method.level,
        higher_is_better=method.higher_is_better,
    )
    marked = [
        replace(
            row,
            p_value=one.p_value,
            p_holm=one.p_holm,
            mark=one.mark_holm if method.holm else one.mark,
        )
        for row, one in zip(rows, found, strict=True)
    ]
    return tuple(marked), replace(method, reference=ours.approach)
