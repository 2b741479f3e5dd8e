"""Selection: criteria that need no true labels, and choosing by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import product
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ruleout import losses
from ruleout.labels import LabelSets
from ruleout.labels.classes import unknown_name
from ruleout.labels.errors import InputError, brief
from ruleout.labels.origins import Evidence, Interval, says
from ruleout.losses.functions import graded_likelihood
from ruleout.losses.loss_registry import as_tensors, check_excluded, rates_of
from ruleout.training import GridFit, Progress, Stopping, Trial, Watch, fit_grid
from ruleout.training.grid_fit import predict
from ruleout.training.validation import as_trials, check_features, group_numbers
from ruleout.training.watches import by_group

__all__ = ["Criterion", "Estimate", "criterion"]
__all__ += ["DivergedError", "Search", "choose", "refit_chosen", "search", "set_aside", "split"]


class Estimate(NamedTuple):
    """An estimate and its standard error, one per stacked model."""

    estimate: Tensor  #: ``[...]``
    standard_error: Tensor  #: ``[...]``, infinite for fewer than two rows


@dataclass(frozen=True)
class Criterion:
    """A mean over rows of held-out logits and what was ruled out there.

    Its `name` is ``accuracy``, ``consistency``, ``likelihood``, ``calibrated`` or ``risk``;
    `higher_is_better` says which end of the scale to choose.
    """

    name: str
    higher_is_better: bool
    values: Callable[..., Tensor]
    #: where what was said may be wrong: from :class:`~ruleout.labels.origins.Evidence` to the
    #: table ``[n, k]`` that it reads, and from logits and this table to values; None: it reads sets
    graded: tuple[Callable[[Evidence], Any], Callable[..., Tensor]] | None = None

    def __call__(
        self, logits: Tensor, excluded: Any, rate: Any = None, groups: Any = None
    ) -> Estimate:
        """Return the mean and its standard error.

        `excluded` is 1 where a class was ruled out, ``[..., n, k]`` like the logits; a row that
        rules nothing out does not count, and there is no place for true labels. `rate`,
        ``[..., n]``, is how likely a wrong class stays possible in each row, for sets that answers
        made (:meth:`ruleout.Answers.per_item`); None: as in sets drawn at random. With `groups`,
        ``[n]``, the standard error is that of groups, whose rows may be alike.

        >>> logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
        >>> found = criterion("accuracy")(logits, torch.tensor([[0, 1, 1], [0, 1, 1]]))
        >>> found.estimate, found.standard_error
        (tensor(0.5000), tensor(0.5000))
        """
        values, says = self.rows(logits, excluded, rate)
        if groups is not None:
            numbers = torch.from_numpy(group_numbers(groups, values.shape[-1]))
            values, says = by_group(values, says.expand_as(values), numbers.to(values.device))
        n = says.sum(-1)
        mean = (says * values).sum(-1) / n
        spread = (says * (values - mean.unsqueeze(-1)).square()).sum(-1)
        error = (spread / (n * (n - 1).clamp(min=1))).sqrt()
        return Estimate(mean, torch.where(n > 1, error, torch.inf))

    def rows(self, logits: Tensor, excluded: Any, rate: Any = None) -> tuple[Tensor, Tensor]:
        """Return the value of each row, and 1 where the row counts, ``[..., n]`` both.

        Where a model diverged, logits that are no numbers predict nothing: the value is NaN.
        """
        scores, mask = as_tensors(logits, excluded)
        check_excluded(mask)
        known = (mask,) if rate is None else (mask, rates_of(rate, scores))
        values = self.values(scores, *known)
        return values.masked_fill(scores.isnan().any(-1), torch.nan), mask.amax(-1)


def _accuracy(logits: Tensor, excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    # Hits, not errors: only the predicted class enters, so equal predictions are equal to the bit.
    return losses.unbiased(1 - losses.zero_one(logits), excluded, rate)


def _consistency(logits: Tensor, excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    del rate  # a share of predictions, whatever was to be expected
    return 1 - _at_prediction(logits, excluded)


def _at_prediction(logits: Tensor, table: Tensor) -> Tensor:
    return ((1 - losses.zero_one(logits)) * table).sum(-1)


def _likelihood(logits: Tensor, excluded: Tensor, rate: Tensor | None = None) -> Tensor:
    return -losses.get("likelihood").function(logits, excluded, rate=rate)


def foretold(logits: Tensor, costs: Tensor) -> Tensor:
    return -graded_likelihood(logits, costs)


def at_best(values: Callable[..., Tensor], logits: Tensor, *known: Tensor) -> Tensor:
    """Divide the logits by the temperature, a power of two, that suits all rows best."""
    tried = torch.stack([values(logits / 2.0**power, *known) for power in range(-2, 9)])
    best = tried.mean(-1, keepdim=True).argmax(0, keepdim=True)
    return tried.gather(0, best.expand_as(tried[:1]))[0]


def foretold_better(logits: Tensor, trial: Trial) -> Tensor:
    """Return how much better what was said of each row is foretold than by chance, ``[n]``."""
    values: Callable[..., Tensor] = _likelihood
    known = [torch.from_numpy(trial.sets.excluded).to(logits)]
    if trial.evidence is not None:
        values, known = foretold, [torch.from_numpy(trial.evidence.costs).to(logits)]
    elif trial.rate is not None:
        known.append(rates_of(trial.rate, logits))
    return at_best(values, logits, *known) - values(torch.zeros_like(logits), *known)


_credit, _costs = attrgetter("credit.value"), attrgetter("costs")
_best, _graded_best = partial(at_best, _likelihood), partial(at_best, foretold)
_EVERY = (
    Criterion("accuracy", True, _accuracy, (_credit, _at_prediction)),
    Criterion("consistency", True, _consistency),
    Criterion("likelihood", True, _likelihood, (_costs, foretold)),
    Criterion("calibrated", True, _best, (_costs, _graded_best)),
)
_SHARES = {one.name: one for one in _EVERY}


def criterion(name: str | Criterion, *, loss: str = "cce", **options: Any) -> Criterion:
    r"""Return a criterion that judges models without true labels; one is returned as it is.

    Parameters
    ----------
    name
        - ``"accuracy"``: :math:`1 - \frac1n \sum_i \frac{k-1}{s_i} 1(\hat y_i \in \bar Y_i)`, an
          unbiased estimate of the ordinary accuracy (the 0-1 loss in Eq. 10). Single values can
          lie below 0, since a wrong prediction that was ruled out stands for those that were not.
          With rates q of answers :math:`1/(1-q_i)` takes the place of :math:`(k-1)/s_i`.
        - ``"consistency"``: the share of predictions that were not ruled out. Not an accuracy: a
          random guess scores high when few classes are ruled out.
        - ``"likelihood"``: the mean of log z, z being the probability that is left on the
          candidates: how well what was said is foretold. It needs sets to be equally likely given
          their size only up to what the true class decides.
        - ``"calibrated"``: the same at the temperature that suits the rows best, so that a model
          that is too sure of itself is not taken for a bad one.
        - ``"risk"``: the mean of a loss, by default the unbiased estimate of cross entropy. Any
          loss that reads whole sets can be named; lower is better.
    loss, options
        For ``"risk"``: the loss and its options.

    Examples
    --------
    >>> criterion("risk", loss="gce", q=0.5).higher_is_better
    False
    """
    if isinstance(name, Criterion):
        return name
    if name in _SHARES:
        return _SHARES[name]
    if name != "risk":
        raise unknown_name("criterion", name, [*_SHARES, "risk"], "criteria")
    chosen = losses.get(loss, **options)
    if chosen.kind == "single":
        raise ValueError(f"loss {loss!r} reads single labels; name one that reads whole sets")
    return Criterion(name, False, chosen.per_example)


_criterion = criterion  # where an argument has that name
Rule: TypeAlias = Literal["best", "likeliest", "one-standard-error"]


class DivergedError(InputError):
    """No configuration has a finite estimate: all of them diverged."""


def split(
    n: int, share: float = 0.1, *, seed: int, groups: Any = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Set some rows aside at random.

    Of `n` rows the `share` is rounded up, at least one and not all. Returns the numbers of the rows
    kept and of those set aside, in order. With `groups`, ``[n]``, whole groups are set aside: as
    many as fit into the share, else the smallest.

    >>> kept, aside = split(25, 0.1, seed=0)
    >>> len(kept), len(aside)
    (22, 3)
    """
    if not 0 < share < 1:
        raise ValueError(f"the share to set aside must lie between 0 and 1, not {brief(share)}")
    if n < 2:
        raise InputError(f"{n} row cannot be split", "give at least two rows")
    count = min(n - 1, max(1, int(np.ceil(round(n * share, 9)))))
    chance = np.random.default_rng([seed, 0])
    if groups is not None:
        aside = draw_groups(group_numbers(groups, n), count, chance)
        return np.flatnonzero(~aside), np.flatnonzero(aside)
    order = chance.permutation(n)
    return np.sort(order[count:]), np.sort(order[:count])


def draw_groups(
    groups: NDArray[np.intp], count: int, chance: np.random.Generator
) -> NDArray[np.bool_]:
    """Return which rows are of some groups, drawn while they have at most `count` rows."""
    sizes = np.bincount(groups)
    if len(sizes) < 2:
        raise InputError("all rows are of one group", "give at least two groups")
    order, drawn, left = chance.permutation(len(sizes)), np.zeros(len(sizes), np.bool_), count
    for group in order:
        if sizes[group] <= left:
            drawn[group], left = True, left - sizes[group]
    if left == count:
        drawn[order[sizes[order].argmin()]] = True
    return np.asarray(drawn[groups])


def folds(
    n: int, count: int, groups: NDArray[np.intp] | None, chance: np.random.Generator
) -> list[NDArray[np.intp]]:
    """Cut all rows into parts of one size; groups stay whole, the largest are dealt out first."""
    if groups is None:
        order, size = chance.permutation(n), n // count
        return [np.sort(order[t * size : (t + 1) * size]) for t in range(count)]
    sizes, filled = np.bincount(groups), np.zeros(count, np.intp)
    fold, order = np.zeros(len(sizes), np.intp), chance.permutation(len(sizes))
    for group in order[np.argsort(-sizes[order], kind="stable")]:
        fold[group] = filled.argmin()
        filled[fold[group]] += sizes[group]
    return [np.flatnonzero(fold[groups] == place) for place in range(count)]


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
    errors, configurations
        Standard errors of the same shape, and what the configurations are; both are needed by
        ``"one-standard-error"``.
    higher_is_better
        As the criterion says.
    rule
        ``"best"``, or ``"one-standard-error"``: of all configurations within one standard error of
        the best, the one with the strongest weight decay, then the smallest learning rate.

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

    def simplicity(c: int) -> tuple[float, float, float]:
        one = configurations[c]
        return float(one["weight_decay"]), -float(one["learning_rate"]), float(scores[c])

    return max(near.tolist(), key=simplicity)


@dataclass(frozen=True, eq=False, repr=False)
class Search:
    """What a search found."""

    #: the whole grid, trained on the rows that were not set aside; with K folds ``[T·K, C]``, those
    #: of a trial beside each other
    grid: GridFit
    criterion: Criterion  #: what chose
    estimates: NDArray[np.float64]  #: ``[T, C]``: the criterion on the rows set aside
    errors: NDArray[np.float64]  #: ``[T, C]``: its standard errors
    chosen: NDArray[np.intp]  #: ``[T]``: the number of the configuration that each trial chose
    final: GridFit | None  #: the choice trained on all rows, ``[T, 1]``; None without refit
    aside: Sequence[NDArray[np.intp]]  #: the rows set aside, of each trial and fold
    mass: NDArray[np.float64]  #: ``[T, K]``: how much they count
    #: where `honest` numbers were asked for, the accuracy of what each trial chose; None where
    #: nothing follows from what was said
    numbers: Sequence[Interval | None] = ()

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

    @property
    def epochs(self) -> int:
        """For how many epochs the choice is to be trained: as many as it had, mean over trials."""
        each = np.repeat(self.chosen, len(self.grid.stopped) // len(self.chosen))
        own = self.grid.stopped[np.arange(len(each)), each]
        return max(1, round(float(own.mean())))

    def __repr__(self) -> str:
        mean, error = self.estimate
        return f"Search({self.configuration}, {self.criterion.name} {mean:.4f} ± {error:.4f})"


def search(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    criterion: str | Criterion = "accuracy",
    share: float = 0.1,
    folds: int | None = None,
    rule: Rule = "best",
    per_trial: bool = False,
    average: int = 1,
    patience: int | None = None,
    refit: bool = True,
    honest: bool | Progress = False,
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
        As for :func:`ruleout.fit_grid`. Rows with equal features are set aside together or not; a
        :class:`~ruleout.training.Trial` says by its groups which rows belong together.
    criterion, rule
        A name, or what :func:`ruleout.criterion` returns; for the rule see :func:`choose`. With
        ``"likeliest"`` accuracy leaves all configurations that it cannot tell from the best (95 %,
        by the rows in which they differ), and of these the one is taken that foretells best what
        was said about rows held out: where sets say little about accuracy, they say more about
        that. Other criteria then choose by themselves.
    share
        How many rows are set aside to choose on; they keep what was ruled out there.
    folds
        Instead of a share, set every row aside once: so many models of each configuration are
        trained, each without one fold, and choose together. For accuracy rows then count by how
        much they say; in an honest number they do so only where mistakes are expected. Fewer where
        rows or groups are fewer than two for each fold, at least two.
    per_trial
        Let every trial choose for itself; otherwise the mean over the trials decides.
    average
        Average the criterion over the last so many kept epochs.
    patience
        Stop a configuration after so many kept epochs without a better value of the criterion; the
        epoch of its best value then counts, also for the refit.
    refit, watch
        Train the choice again, on all rows; the watches are measured in both trainings.
    honest
        Estimate the accuracy of the choice, with an interval. Rows are predicted by models that did
        not train on them. With folds the choice is trained once more, in 10 to 20 of them, since a
        few rows more can make a model much better. The best of several is too good by chance; by
        how much, 300 bootstrap samples of the rows (or groups) tell: what is best there looks so
        much better there than in all rows, and what is trained once more a part of it. Models also
        differ by the rows they happened to see; 0.225 times the share of rows for which those of
        few and of many folds predict differently counts as the standard error of that (measured:
        benchmarks/fit_coverage.py). A function is called as `progress` is.
    seed
        Of the split, the first weights and the batch order; trial t takes seed + t.
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
    judge = _criterion(criterion)
    x = check_features(x)
    trials = as_trials(sets, x.shape[0], seed, x)
    aside = rows_aside(trials, share, folds)
    kept, apart = cut_trials(trials, aside)
    if folds and judge.name == "accuracy":
        apart = [replace(trial, evidence=trial.said) for trial in apart]
    mass = np.array([_counting(judge, trial).sum() for trial in apart]).reshape(len(trials), -1)
    if not mass.sum(1).all():
        say = "give more rows, better answers, or another criterion"
        raise InputError(f"no row held out tells anything about {judge.name}", say)
    held = watch_of(judge, even(apart), [len(trial.sets) for trial in apart])
    name = f"held out/{judge.name}"
    stop = Stopping(name, patience, judge.higher_is_better) if patience else None
    seen = {**(watch or {}), "held out": held}
    folder = options.pop("checkpoint", None)
    if folder is not None:
        options["checkpoint"] = Path(folder) / "grid"
    options |= {"seed": seed, "progress": progress}
    grid = fit_grid(x, kept, watch=seen, stopping=stop, **{"moments": False, **options})
    each = _judged(grid, name, 1 if stop else average, stop is not None)
    estimates, errors = (pool(one, mass, power) for one, power in zip(each, (1, 2), strict=True))
    likeliest = rule == "likeliest" and judge.name == "accuracy"
    how: dict[str, Any] = {"higher_is_better": judge.higher_is_better}
    how |= {"rule": "best" if rule == "likeliest" else rule, "configurations": grid.configurations}
    if per_trial:
        both = zip(estimates, errors, strict=True)
        chosen = np.array([choose(values, spread, **how) for values, spread in both])
    else:
        chosen = np.full(len(estimates), choose(estimates, errors, **how))
    found = Search(grid, judge, estimates, errors, chosen, None, aside, mass)
    number = honest and (folds or not patience)  # else the epochs were chosen by the same rows
    if likeliest or number:
        every = [_Outcomes.of(x, trial, found, t, options) for t, trial in enumerate(trials)]
    if likeliest:
        groups = [[one] for one in every] if per_trial else [every] * len(every)
        found = replace(found, chosen=np.array([_likeliest(some) for some in groups]))
    if number:
        told = {**options, "progress": None if honest is True else honest}
        found = replace(found, numbers=_honest(x, trials, found, every, likeliest, told))
    if not refit:
        return found
    options |= {"epochs": found.epochs, "watch": watch, "progress": refit_progress or progress}
    if folder is not None:
        options["checkpoint"] = Path(folder) / "refit"
    return replace(found, final=refit_chosen(x, trials, found.chosen, grid, **options))


class _Outcomes(NamedTuple):
    """What all configurations say of rows that they did not see, and how well that did."""

    kept: NDArray[np.intp]  # [C]: the configurations that did not diverge
    said: Evidence  # about the rows
    predicted: NDArray[np.intp]  # [C, n]
    weight: NDArray[np.float64]  # [n]: of each row
    earned: NDArray[np.float64]  # [n, C]: credit, times the weight
    foretold: NDArray[np.float64]  # [n, C]: the logarithm of how likely what was said is
    units: NDArray[np.intp]  # [n]: numbers of groups, or of the rows themselves

    @staticmethod
    def of(x: Any, trial: Trial, found: Search, t: int, options: Mapping[str, Any]) -> _Outcomes:
        k, kept = found.mass.shape[1], np.flatnonzero(np.isfinite(found.estimates[t]))
        aside = found.aside[t * k : (t + 1) * k]
        held = trial.part(np.sort(np.concatenate(aside)))
        said, groups = held.said, held.groups
        weight, costs = said.credit.weight.mean(1), torch.from_numpy(said.costs)
        predicted, earned, likely = [], [], []
        for c in kept.tolist():
            logits = _unseen(found.grid, x, trial, aside, t * k, c, options.get("device"))
            predicted.append(logits.argmax(-1).numpy())
            earned.append(weight * said.credit.of(predicted[-1]).value)
            likely.append(_foretold(logits, costs).numpy())
        units = np.arange(len(weight))
        if groups is not None:
            units = np.unique(groups, return_inverse=True)[1]
        tables = np.stack(earned, 1), np.stack(likely, 1)
        return _Outcomes(kept, said, np.stack(predicted), weight, *tables, units)

    @property
    def apart(self) -> NDArray[np.float64]:
        """How far accuracies may lie apart by chance, ``[C, C]``: 1.96 standard errors."""
        total = self.weight.sum()
        off = self.earned - self.weight[:, None] * (self.earned.sum(0) / total)
        sums = np.zeros((int(self.units.max()) + 1, off.shape[1]))
        np.add.at(sums, self.units, off)
        both = sums.T @ sums / total**2
        own = np.diag(both)
        return np.asarray(1.96 * np.sqrt(np.maximum(own + own[:, None] - 2 * both, 0)))


def _likeliest(every: Sequence[_Outcomes]) -> int:
    """Return the configuration that the trials choose together, of those that never diverged."""
    kept = reduce(np.intersect1d, [one.kept for one in every])
    places = [np.searchsorted(one.kept, kept) for one in every]
    pairs = list(zip(every, places, strict=True))
    means = np.mean([one.earned.sum(0)[own] / one.weight.sum() for one, own in pairs], 0)
    likely = np.mean([one.foretold.mean(0)[own] for one, own in pairs], 0)
    apart = [np.square(one.apart[np.ix_(own, own)]) for one, own in pairs]
    return int(kept[_pick(means, likely, np.sqrt(np.sum(apart, 0)) / len(every))])


def _pick(means: Any, foretold: Any, apart: Any) -> int:
    """Return which foretells best of those whose accuracy may be as high as the highest."""
    best = int(np.argmax(means))
    near = means >= means[best] - apart[best]
    return int(np.argmax(np.where(near & np.isfinite(foretold), foretold, -np.inf)))


_IGNORANT = (0.0, 0.03, 0.1, 0.2, 0.3)  # shares of rows


def _foretold(logits: Tensor, costs: Tensor) -> Tensor:
    r"""Return the logarithm of how likely what was said about each row is, ``[n]``.

    :math:`(1-\lambda) \sum_y p_y P(\bar Y \mid y) + \lambda \frac1k \sum_y P(\bar Y \mid y)`: of
    a share of rows the model knows nothing. That share, and the temperature of p, suit the rows
    best, so that a model that is too sure is not taken for a bad one.
    """
    logits = logits.double()
    nothing = foretold(torch.zeros_like(logits), costs)
    models = (foretold(logits / 2.0**power, costs) for power in range(-2, 9))
    tried = (
        torch.logaddexp(np.log1p(-share) + model, nothing + (np.log(share) if share else -np.inf))
        for model, share in product(models, _IGNORANT)
    )
    return max(tried, key=lambda one: float(one.mean()))


def _honest(
    x: Any,
    trials: Sequence[Trial],
    found: Search,
    every: Sequence[_Outcomes],
    likeliest: bool,
    options: Mapping[str, Any],
) -> list[Interval | None]:
    """Estimate the accuracy of what each trial chose: see :func:`search`."""
    finer = _choice_unseen(x, trials, found, options) if found.mass.shape[1] > 1 else {}
    numbers = list[Interval | None]()
    for t, trial in enumerate(trials):
        one = every[t]
        own = int(np.searchsorted(one.kept, found.chosen[t]))
        unseen = finer.get(t, one.predicted[own])
        apart = one.apart if likeliest else None
        shift = _optimism(one, own, unseen, int(trial.seed or 0), apart)
        spread = _DIFFER * float(np.mean(unseen != one.predicted[own]))
        groups = None if trial.groups is None else one.units
        number = one.said.judge(unseen, -shift, groups, spread)
        numbers.append(number and number.proper)
    return numbers


def _choice_unseen(
    x: Any, trials: Sequence[Trial], found: Search, options: Mapping[str, Any]
) -> dict[int, NDArray[np.intp]]:
    """Return what the choice of each trial predicts for rows that it did not see, in more folds."""
    many = int(np.clip(10_000 // len(trials[0].sets), 10, 20))
    told = {**options, "epochs": found.epochs, "callback": None, "checkpoint": None}
    predicted = {}
    for c in {*found.chosen.tolist()}:
        own = np.flatnonzero(found.chosen == c).tolist()
        some = [trials[t] for t in own]
        aside = rows_aside(some, 0.5, many)
        kept, _ = cut_trials(some, aside)
        fit = fit_grid(
            x, kept, **{**told, "grid": [found.grid.configurations[c]], "moments": False}
        )
        k = len(aside) // len(own)
        for i, t in enumerate(own):
            cut = aside[i * k : (i + 1) * k]
            logits = _unseen(fit, x, trials[t], cut, i * k, 0, options.get("device"))
            predicted[t] = logits.argmax(-1).numpy()
    return predicted


def _unseen(
    fit: GridFit, x: Any, trial: Trial, aside: Sequence[Any], first: int, c: int, where: Any
) -> Tensor:
    """Return logits of all rows set aside, in their order, by models that did not see them."""
    parts = [
        predict(fit.module(fold, c).to(where), x[trial.part(rows).rows])
        for fold, rows in enumerate(aside, first)
    ]
    order = torch.from_numpy(np.argsort(np.concatenate(aside)))
    return torch.cat(parts)[order]


def _optimism(
    tried: _Outcomes,
    own: int,
    unseen: NDArray[np.intp],
    seed: int,
    apart: NDArray[np.float64] | None = None,
) -> float:
    """Return by how much `unseen`, ``[n]``, looks better than it is, since its kind was chosen.

    What is chosen in samples of the rows looks so much better there than in all of them. Models
    that were trained anew share the part of it that `unseen` has, too, in samples in which the
    predictions of the same configuration, `own`, are chosen, or as good. `apart`, ``[C, C]``, is by
    how much accuracies may differ for the likelihood to choose; None: accuracy alone does.
    """
    weight, units, last = tried.weight, tried.units, tried.said.credit.of(unseen)
    says = weight > 0  # and how much rows count in the number, as `judge` has it
    told = says.astype(float) if last.sure else weight
    value = np.divide(tried.earned, weight[:, None], where=says[:, None], out=0 * tried.earned)
    earned = told[:, None] * np.concatenate([value, last.value[:, None]], 1)  # [n, C + 1]
    chance, count = np.random.default_rng([seed, 0, 2]), int(units.max()) + 1
    means, off, both = earned.sum(0) / told.sum(), list[float](), np.zeros(2)
    for _ in range(_BAGS):
        times = np.bincount(chance.integers(count, size=count), minlength=count)[units]
        if times @ weight > 0:
            more = times @ earned / (times @ told) - means
            inside = times @ tried.earned / (times @ weight)
            likely = None if apart is None else times @ tried.foretold
            place = int(inside.argmax()) if apart is None else _pick(inside, likely, apart)
            off.append(more[place])
            both += (abs(inside[own] - inside[place]) < 1e-9) * more[[own, -1]]
    share = np.clip(both[1] / both[0], 0, 1) if both[0] > 0 else 1.0
    return max(float(share * np.mean(off)), 0.0)


_BAGS, _DIFFER = 300, 0.225


def watch_of(judge: Criterion, trials: Sequence[Trial], counts: Sequence[int]) -> Watch:
    """Return what measures a criterion on trials, of which the first so many rows count."""
    told: dict[str, Any] = {"rows": [trial.rows for trial in trials]}
    if trials[0].groups is not None:
        told["groups"] = [trial.groups for trial in trials]
    if trials[0].evidence is None or judge.graded is None:
        if trials[0].rate is not None:
            told["rate"] = [trial.rate for trial in trials]
        return Watch([trial.sets for trial in trials], {judge.name: judge.values}, **told)
    table, values = judge.graded
    known = [trial.evidence for trial in trials if trial.evidence is not None]
    weight = [
        _counting(judge, one) * (np.arange(len(one.sets)) < n)
        for one, n in zip(trials, counts, strict=True)
    ]
    return Watch([table(one) for one in known], {judge.name: values}, weight=weight, **told)


def _counting(judge: Criterion, trial: Trial) -> NDArray[np.float64]:
    """Return how much each row counts: by what it says, or alike where it says something."""
    if trial.evidence is None or judge.graded is None:
        return says(trial.sets).astype(float)
    if judge.name == "accuracy":
        return np.asarray(trial.evidence.credit.weight.mean(1))
    return says(trial.evidence).astype(float)


def pool(values: NDArray[Any], mass: NDArray[np.float64], power: int = 1) -> NDArray[np.float64]:
    """Turn means of each fold, ``[T·K, ...]``, into those over all folds, ``[T, ...]``.

    Folds count by their mass, ``[T, K]``. Of errors ``power=2`` makes the error of the mean.
    """
    if mass.shape[1] == 1:
        return values
    parts = values.reshape(*mass.shape, *values.shape[1:])
    share = (mass / mass.sum(1, keepdims=True)).reshape(*mass.shape, *[1] * (values.ndim - 1))
    with np.errstate(invalid="ignore"):
        found = np.where(share > 0, share * parts, 0) ** power
    return np.asarray(found.sum(1) ** (1 / power))


def rows_aside(trials: Sequence[Trial], share: float, most: int | None) -> list[NDArray[np.intp]]:
    """Return which rows are set aside: a share of each trial, or each of its folds."""
    units = [np.arange(len(one.sets)) if one.groups is None else one.groups for one in trials]
    fewest = min(int(own.max()) + 1 for own in units)
    if most is None or fewest < 2:  # which raises
        each = [(len(one.sets), share, int(one.seed or 0), one.groups) for one in trials]
        return [split(n, part, seed=own, groups=groups)[1] for n, part, own, groups in each]
    count, found = max(2, min(most, fewest // 2)), []
    for trial, own in zip(trials, units, strict=True):
        chance = np.random.default_rng([int(trial.seed or 0), 0])
        found += folds(len(own), count, own, chance)
    return found


def cut_trials(
    trials: Sequence[Trial], aside: Sequence[NDArray[np.intp]]
) -> tuple[list[Trial], list[Trial]]:
    """Return what trains and what is set aside, of each trial and fold."""
    owners = [trial for trial in trials for _ in range(len(aside) // len(trials))]
    pairs = list(zip(owners, aside, strict=True))
    kept = [one.part(np.setdiff1d(np.arange(len(one.sets)), rows)) for one, rows in pairs]
    return kept, [one.part(rows) for one, rows in pairs]


def set_aside(trial: Trial, share: float) -> tuple[Trial, Trial]:
    """Return the part of a trial that trains and the part that chooses, by the trial's seed."""
    kept, aside = split(len(trial.sets), share, seed=int(trial.seed or 0), groups=trial.groups)
    return trial.part(kept), trial.part(aside)


def even(trials: Sequence[Trial]) -> list[Trial]:
    """Bring trials that are measured on, where groups made them differ, to one length."""
    most = max(len(trial.sets) for trial in trials)
    return [trial.padded(most) for trial in trials]


def _judged(
    grid: GridFit, name: str, average: int, patient: bool
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return criterion and standard error, ``[T, C]``, over the last kept epochs of each model."""
    values, errors = grid.history[name], grid.errors[name]
    last = np.searchsorted(grid.epochs, np.maximum(grid.stopped, 1))[..., None]
    places = np.maximum(last - np.arange(min(average, values.shape[-1]))[::-1], 0)
    estimate, error = (np.take_along_axis(kept, places, -1).mean(-1) for kept in (values, errors))
    return np.where((grid.diverged > 0) & (not patient), np.nan, estimate), error


def refit_chosen(
    x: Any, trials: list[Trial], chosen: NDArray[np.intp], tried: GridFit, **options: Any
) -> GridFit:
    """Train what was chosen on all rows, ``[T, 1]``; where trials differ, each takes its own.

    `chosen`, ``[T]``, is the number of each trial's configuration in the grid that was `tried`;
    `options` are for :func:`ruleout.fit_grid`.
    """
    distinct, own = np.unique(chosen, return_inverse=True)
    left = [tried.configurations[place] for place in distinct]
    return fit_grid(x, trials, **{**options, "grid": left}).pick(own)
