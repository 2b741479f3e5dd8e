"""Which rows train, which choose, and which judge: those that judge did neither before."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from ruleout.comparison.significance import mean_and_error
from ruleout.labels import LabelSets
from ruleout.labels.classes import agree, encode
from ruleout.labels.errors import InputError, brief, counted
from ruleout.selection import Criterion, criterion, draw_groups, even, folds, watch_of
from ruleout.training import GridFit, Trial, Watch, hits, validation
from ruleout.training.grid_fit import predict
from ruleout.training.watches import as_target, by_group

#: What judges: true labels, label sets of test rows, rows kept back, or every row once.
Kind: TypeAlias = Literal["labels", "sets", "kept", "folds"]

SHARE, MANY = 0.2, 5000  # of the rows judges where there are more than so many, else every row


@dataclass(frozen=True, eq=False)
class Judging:
    """The trials to train, and the rows on which their models are judged."""

    kind: Kind
    trials: list[Trial]  # what trains and chooses
    x: Any  # where the judging rows are
    rows: NDArray[np.intp]  # [T, m]: which judge each trial; only folds differ
    targets: list[Any]  # of each trial: true labels (positions), or label sets of its judging rows
    name: str  # of the measure
    values: Any  # the measure: (logits, target) → [m]
    rates: list[Any] | None = None  # of each trial, where answers made the sets that judge
    groups: NDArray[np.intp] | None = None  # [T, m]: what the judging rows belong to
    # of each trial, where what was said may be wrong: then targets are tables [m, k] of numbers
    weights: list[Any] | None = None
    evidence: list[Any] | None = None

    @property
    def count(self) -> int:
        return np.unique(self.rows).size if self.kind == "folds" else self.rows.shape[1]

    def watch(self) -> Watch:
        measure = {self.name: self.values}
        if self.kind in ("labels", "sets"):
            return Watch(self.targets, measure, x=self.x)
        told: Any = {"rate": self.rates, "weight": self.weights}
        return Watch(self.targets, measure, rows=list(self.rows), **told)

    def logits(self, fit: GridFit, trial: int) -> torch.Tensor:
        """Return the logits ``[m, k]`` of a trial's model on the rows that judge it."""
        return predict(fit.module(trial), self.x[self.rows[trial]])

    def per_row(self, fit: GridFit) -> tuple[NDArray[np.float64], ...]:
        """Return the measure of each trial ``[T]``, of each judging row, and of both ``[T, m]``.

        That of a row is its mean over trials. A row that rules nothing out says nothing: it is left
        out, and NaN in the last. Of groups there is one value each, so that errors and tests are
        those of groups.
        """
        values = np.full(self.rows.shape, np.nan)
        for trial in range(len(self.rows)):
            logits = self.logits(fit, trial)
            known = [as_target(self.targets[trial], logits)]
            if self.rates is not None:
                known.append(torch.from_numpy(np.asarray(self.rates[trial])).to(logits))
            values[trial] = self.values(logits, *known).double().numpy()
            if isinstance(self.targets[trial], LabelSets):
                values[trial, self.targets[trial].sizes == 0] = np.nan
            if self.weights is not None:  # means of these values are then weighted means
                weight = np.asarray(self.weights[trial])
                values[trial] *= np.where(weight > 0, weight / weight[weight > 0].mean(), np.nan)
        each = [one[~np.isnan(one)] for one in values]
        means = np.array([one.mean() if len(one) else np.nan for one in each])
        cells, groups = _reduced(values, self.groups), self.groups
        if self.kind != "folds":
            some = ~np.isnan(cells).all(0)
            return means, np.nanmean(cells[:, some], 0), cells
        whole = _reduced(values.reshape(1, -1), None if groups is None else groups.reshape(1, -1))
        return means, whole[~np.isnan(whole)], cells


def _reduced(values: NDArray[np.float64], groups: NDArray[np.intp] | None) -> NDArray[np.float64]:
    """Return one value for each group, NaN where it says nothing; without groups, the values."""
    if groups is None:
        return values
    told = (np.nan_to_num(values), ~np.isnan(values), groups)
    found, heard = by_group(*map(torch.from_numpy, told))
    return np.where(heard > 0, found, np.nan)


def plan(
    x: Any,
    sets: LabelSets | Trial | Sequence[LabelSets | Trial],
    *,
    trials: int | None,
    test: tuple[Any, Any] | None,
    judge: float | str | None,
    score: Criterion,
    seed: int,
    groups: Any = None,
) -> Judging:
    """Decide which rows train and which judge; see :func:`ruleout.compare`."""
    given = _trials(x, sets, trials, seed, groups)
    if test is not None:
        return _tested(given, test, score, np.prod(x.shape[1:]))
    if any(trial.rows is not None for trial in given):
        say = "trials that choose their own rows leave none to judge all of them on"
        raise InputError(say, "give test rows: test=(x_test, y_test)")
    n, count = x.shape[0], len(given)
    chance = np.random.default_rng([seed, 0, 1])  # as no batch and no split uses
    own = given[0].groups
    many = own.max() + 1 if own is not None and len(own) else n
    if judge is None:  # of few rows a share says too little; of few folds each trains on few
        judge = "folds" if n <= MANY and many >= 2 * count > 6 else SHARE
    if judge == "folds":
        if count < 2 or many < count:
            what = "rows" if own is None else "groups"
            raise ValueError(f"folds need at least two trials, each with {what}, not {count}")
        return _kept(x, given, folds(n, count, own, chance), "folds", score)
    if isinstance(judge, str) or not 0 < judge < 1:
        raise ValueError(f"judge must be a share between 0 and 1, or 'folds', not {brief(judge)}")
    some = max(1, int(np.ceil(round(n * judge, 9))))
    if own is None:
        aside = np.sort(chance.permutation(n)[:some])
    elif own.max() < 2:
        problem = f"{own.max() + 1} group(s) are too few to train, choose and judge"
        raise InputError(problem, "give at least three, or test rows")
    else:
        aside = np.flatnonzero(draw_groups(own, some, chance))
    return _kept(x, given, [aside] * count, "kept", score)


def _trials(x: Any, sets: Any, count: int | None, seed: int, groups: Any) -> list[Trial]:
    """Return trials that know their seed; one table of sets makes `count` of them.

    What belongs together, by `groups` or because rows of x are equal, is one group.
    """
    found = validation.as_trials(sets, n := x.shape[0], seed)
    if groups is not None:
        codes = validation.group_numbers(groups, n)
        found = [replace(t, groups=codes if t.rows is None else codes[t.rows]) for t in found]
    found = [replace(t, groups=validation.together(x, t.groups, t.rows)) for t in found]
    found = validation.as_trials(found, n, seed)
    if isinstance(sets, LabelSets | Trial):
        count = 5 if count is None else count
        validation.check_counts(trials=count)
        return [replace(found[0], seed=seed + place) for place in range(count)]
    if count not in (None, len(found)):
        raise ValueError(f"{len(found)} tables of sets make as many trials, not {brief(count)}")
    return found


def _tested(trials: list[Trial], test: tuple[Any, Any], score: Criterion, wide: Any) -> Judging:
    x, known = validation.check_features(test[0], "x_test"), test[1]
    if (own := np.prod(x.shape[1:])) != wide:
        say = "give the same features in the same order"
        raise InputError(f"x_test has {own} features, x has {wide}", say)
    classes = trials[0].sets.classes
    true = not isinstance(known, LabelSets)
    if true:
        known = encode(known, classes, "y_test")
    else:
        agree(known.classes, classes)
    if len(known) != x.shape[0] or not len(known):
        problem = f"x_test has {x.shape[0]} rows but there are {len(known)} test labels"
        raise InputError(problem, "give one for each row, at least one")
    rows = np.tile(np.arange(x.shape[0]), (len(trials), 1))
    name, values = ("accuracy", hits) if true else (score.name, score.values)
    kind: Kind = "labels" if true else "sets"
    alike = validation.together(x)
    groups = None if alike is None else alike[rows]
    return Judging(kind, trials, x, rows, [known] * len(trials), name, values, None, groups)


def _kept(
    x: Any, trials: list[Trial], parts: list[NDArray[np.intp]], kind: Kind, score: Criterion
) -> Judging:
    own, judges = [], []
    for trial, aside in zip(trials, parts, strict=True):
        rows = np.setdiff1d(np.arange(x.shape[0]), aside)
        if len(rows) < 2:
            problem = f"of {counted(x.shape[0], 'row')} too few are left to train and choose"
            raise InputError(problem, "give more rows")
        if trial.groups is not None and len(np.unique(trial.groups[rows])) < 2:
            problem = "the groups that judge leave only one to train and choose"
            raise InputError(problem, "give more groups, or let fewer rows judge")
        own.append(trial.part(rows))
        judges.append(trial.part(aside))
    equal = even(judges)
    held = watch_of(score, equal, [len(one.sets) for one in judges])
    (values,) = (held.measures or {}).values()
    groups = None if held.groups is None else np.stack(held.groups)
    said = None if held.weight is None else [one.evidence for one in equal]
    told = score.name, values, held.rate, groups, held.weight, said
    return Judging(kind, own, x, np.stack(held.rows), held.target, *told)


class Pictures(NamedTuple):
    """What is known about the predictions of one approach."""

    approach: str
    bins: NDArray[np.float64]  # of each bin confidence, accuracy, its error and rows: [4, bins]
    ruled: NDArray[np.int64]  # [k, k]: how often a class (row) was ruled out, another predicted
    ruled_rows: str  # how many rows that is, and what rows they are
    confusion: NDArray[np.int64] | None  # [k, k]: true against predicted, where labels are known


def look(x: Any, judging: Judging, fit: GridFit, approach: str) -> Pictures:
    """Where trials share their judging rows, the first trial alone is looked at."""
    k = len(judging.trials[0].sets.classes)
    measure = judging.values if judging.kind == "labels" else criterion("accuracy").values
    sure, right, counted = [], [], np.zeros((k, k), np.int64)
    for trial in range(len(judging.trials) if judging.kind == "folds" else 1):
        logits, known = judging.logits(fit, trial), judging.targets[trial]
        predicted = logits.argmax(-1).numpy()
        says = known.sizes > 0 if isinstance(known, LabelSets) else np.full(len(known), True)
        if judging.evidence is None:
            earned = measure(logits, as_target(known, logits)).double().numpy()
        else:
            found, says = judging.evidence[trial], np.asarray(judging.weights)[trial] > 0
            known, earned = found.sets, found.credit.of(predicted).value
        sure.append(logits.double().softmax(-1).amax(-1).numpy()[says])
        right.append(earned[says])
        if isinstance(known, LabelSets):
            counted += pairs(known, predicted)
        else:
            counted += _table(np.asarray(known), predicted, k)
    binned = bins(np.concatenate(sure), np.concatenate(right))
    if judging.kind != "labels":
        return Pictures(approach, binned, counted, f"{judging.count:,} judging rows", None)
    own = judging.trials[0]
    rows = np.arange(x.shape[0]) if own.rows is None else own.rows
    predicted = predict(fit.module(0), x[rows]).argmax(-1).numpy()
    said = f"{len(rows):,} training rows of the first trial"
    return Pictures(approach, binned, pairs(own.sets, predicted), said, counted)


def pairs(sets: LabelSets, predicted: NDArray[Any]) -> NDArray[np.int64]:
    """Count, for each ruled-out class (row), what was predicted instead (column)."""
    rows, codes = sets.nonzero()
    return _table(codes, predicted[rows], len(sets.classes))


def _table(rows: NDArray[Any], columns: NDArray[Any], k: int) -> NDArray[np.int64]:
    return np.bincount(rows * k + columns, minlength=k * k).reshape(k, k)


def bins(
    confidence: NDArray[np.float64], right: NDArray[np.float64], count: int = 10
) -> NDArray[np.float64]:
    """Sort rows into bins of equal width; a bin of fewer than 10 rows joins the next."""
    order = np.argsort(confidence, kind="stable")
    places = np.minimum((confidence * count).astype(int), count - 1)
    cuts, start = [], 0
    for end in np.bincount(places, minlength=count).cumsum().tolist():
        if end - start >= 10:
            cuts.append(end)
            start = end
    if start < len(order):  # the last bin takes what is left
        cuts = cuts[:-1]
    kept = [part for part in np.split(order, cuts) if len(part)]
    told = [(confidence[p].mean(), *mean_and_error(right[p]), len(p)) for p in kept]
    return np.array(told, float).reshape(-1, 4).T
