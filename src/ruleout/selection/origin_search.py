"""How sets came about, learnt from features and sets alone: a matrix Q without true labels."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, LabelError
from ruleout.labels.origins import Transition, evidence, learn_origin
from ruleout.selection import DivergedError, at_best, cut_trials, foretold, rows_aside
from ruleout.training import Trial, fit_grid
from ruleout.training.grid_fit import predict
from ruleout.training.validation import as_trials, check_features

Array = NDArray[np.float64]

_FOLDS, _STEPS, _FEWEST, _RESTARTS = 3, 2000, 5, 10
_SURE = 2.0  # standard errors
_WALKS = 7  # at most so many trainings
_CORE, _TELLS = 0.9, 10  # how sure, and how many sets a true class tells as much as


@dataclass(frozen=True, eq=False)
class FoundOrigin:
    """What :func:`find_origin` found."""

    origin: Transition | None  #: None: sets are taken as drawn at random
    #: ``[k, k]``: how far each entry of the matrix differs between parts of the rows, as the
    #: standard error of their mean; None without an origin
    spread: Array | None
    #: of each beginning that was tried: by how much better sets held out are foretold than if they
    #: were random (mean logarithm), how much more often predictions were not ruled out, and the
    #: standard error of both
    tried: dict[str, tuple[float, float, float, float]]
    why: str  #: in a sentence

    def evidence(self, sets: LabelSets) -> Any:
        """Return what these sets say of every class; None where they are taken as random."""
        return None if self.origin is None else evidence(sets, origin=self.origin)


def find_origin(
    x: Any,
    sets: LabelSets | Trial,
    *,
    model: Any = "linear",
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-4,
    worse: float = _SURE,
    seed: int = 0,
    **options: Any,
) -> FoundOrigin:
    r"""Learn a matrix Q from rows and their sets, without true labels, or say that it is of no use.

    Sets say how likely each class is ruled out for a row, :math:`\bar p(x) = Q^\top p(x)`, and that
    can be learnt like any other label. Two ways lead from there to Q, both with models that did not
    see the rows they speak of (three folds):

    - *model*: a model that takes sets as random says how likely each class is; by EM
      (:func:`~ruleout.labels.learn_origin`) Q is brought to agree with it.
    - *clusters*: rows with alike :math:`\bar p(x)` are of one class, whichever it is. k-means finds
      k clusters, a matrix and a model without names are learnt from them, and then names are given
      so that as few rows as possible of which the model is sure have their own class ruled out. It
      needs no model that is right at first, but enough rows to tell names: where two could be
      swapped at no cost, this way is not gone.

    From each a model is trained with the likelihood under Q, and Q is learnt once more from it. A
    matrix is taken only if sets held out are foretold better than as random ones, by two standard
    errors more than fitting so many numbers gains by chance (:math:`k (k-2) / 2n`). Where half of
    the wrong classes or more are ruled out, predictions of its model must also not be ruled out
    more often (by `worse` standard errors) than those of the model that takes sets as random: where
    sets do not depend on the class alone (names in a caption, say) a matrix foretells sets better
    and classes worse. Smaller sets do not tell that. Of those that pass, the one that foretells
    best is taken.

    Parameters
    ----------
    x, sets
        As for :func:`ruleout.fit_grid`, one trial. True classes that its evidence knows help.
    worse
        ``approach="auto"`` says 1: a weak matrix that is refused costs it little, and one that is
        wrongly taken cost 9 points on a split of BirdSong, at 1.8 standard errors.
    model, learning_rate, weight_decay, options
        Of the models; further options for :func:`ruleout.fit_grid`. Epochs make 2,000 steps unless
        they are given: after a few dozen, a matrix looked better than it was.

    Examples
    --------
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> q = np.roll(np.eye(10), 3, 1) * 0.5 + (1 - np.eye(10)) / 18  # one class is favoured
    >>> found = find_origin(x, ro.labels.Transition(q, "released").draw(y, 10))
    >>> bool(np.abs(found.origin.rates - q).mean() < 0.03)
    True
    """
    for name in {"approach", "grid", "watch", "start", "checkpoint"} & options.keys():
        raise InputError(f"find_origin has its own {name}", "leave it out")
    x = check_features(x)
    trial, *others = as_trials(sets, x.shape[0], seed, x)
    if others:
        raise InputError(f"{1 + len(others)} trials are given", "give one")
    n, k = trial.sets.shape
    even = Transition((1 - np.eye(k)) / (k - 1))
    aside = rows_aside([trial], 0.5, _FOLDS)
    kept, _ = cut_trials([replace(trial, evidence=None)], aside)
    size = int(options.setdefault("batch_size", 256))
    steps = -(-len(kept[0].sets) // size)
    options.setdefault("epochs", max(_FEWEST, -(-_STEPS // steps)))
    where = options.get("device")
    grid = [{"learning_rate": learning_rate, "weight_decay": weight_decay}]
    options |= {"seed": seed, "moments": False, "every": options["epochs"]}
    tell, epochs, walks = options.pop("progress", None), options["epochs"], 0

    def unseen(approach: str, own: Any, origin: Transition | None = None) -> Tensor:
        """Return the logits of rows by the model that did not see them, ``[n, k]``."""
        nonlocal walks
        walks, told = walks + 1, kept
        if origin is not None:
            told = [replace(one, evidence=evidence(one.sets, origin=origin)) for one in kept]
        how = options if own is model else options | {"model_options": None}
        if tell is not None:
            before, every = (walks - 1) * epochs, _WALKS * epochs
            how = how | {"progress": lambda done, _: tell(before + done, every)}
        fit = fit_grid(x, told, approach=approach, model=own, grid=grid, **how)
        if fit.diverged.any():
            raise DivergedError("training diverged", "scale the features, or lower learning_rate")
        found = torch.zeros(n, k, dtype=torch.float64)
        for fold, rows in enumerate(aside):
            own_rows = x[trial.part(rows).rows]
            found[rows] = predict(fit.module(fold).to(where), own_rows).double()
        return found

    truth = None if trial.evidence is None else trial.evidence.truth
    asked = np.concatenate(aside)
    asked = asked[trial.sets.sizes[asked] > 0]
    guarded = trial.sets.sizes[asked].mean() >= (k - 1) / 2
    plain = unseen("likelihood", model, even)
    first, stays = _foretold(plain, even, trial.sets, asked)
    fitted = k * (k - 2) / (2 * max(len(asked), 1))  # what so many numbers gain by chance
    tried, best, most = dict[str, tuple[float, float, float, float]](), None, 0.0

    def learn(chance: NDArray[Any], rounds: int) -> tuple[Transition, Tensor] | None:
        """Let both learn from each other, in turn; None if a matrix tells no classes apart."""
        for _ in range(rounds):
            origin = learn_origin(Transition, trial.sets, chance)
            try:
                logits = unseen("likelihood", model, origin)
            except LabelError:  # it does not tell classes apart, as where some have a few rows
                return None
            chance = logits.softmax(-1).numpy()
        return origin, logits

    starts: dict[str, NDArray[Any]] = {"model": plain.softmax(-1).numpy()}
    if len(asked) > k:
        pairs = (-unseen("op-after", "mlp")).softmax(-1).numpy()
        if (learnt := learn(_clusters(pairs, asked), 2)) is not None:
            chance = learnt[1].softmax(-1).numpy()
            if (names := _names(chance, trial.sets, asked, truth)) is not None:
                starts["clusters"] = chance[:, np.argsort(names)]
    for name, known in starts.items():
        learnt = learn(_with_truth(known, truth), 2 if name == "model" else 1)
        if learnt is None:
            continue
        origin, logits = learnt
        own, right = _foretold(logits, origin, trial.sets, asked)
        gain, error = _mean(own - first - fitted)
        more, doubt = _mean(right - stays)
        tried[name] = gain, error, more, doubt
        if gain > max(_SURE * error, most) and (not guarded or more >= -worse * doubt):
            best, most = (name, origin, logits.softmax(-1).numpy()), gain
    if best is None:
        return FoundOrigin(None, None, tried, _why_not(tried))
    name, origin, chance = best
    parts = [
        learn_origin(Transition, trial.sets[rows], _with_truth(chance, truth)[rows]).rates
        for rows in aside
    ]
    spread = np.std(parts, 0, ddof=1) / np.sqrt(len(parts))
    gain, error, *_ = tried[name]
    why = f"sets held out are foretold better by a learnt matrix ({gain:.3f} ± {error:.3f})"
    return FoundOrigin(origin, spread, tried, why)


def _foretold(
    logits: Tensor, origin: Transition, sets: LabelSets, rows: NDArray[np.intp]
) -> tuple[Array, Array]:
    """Return how well the set of each row is foretold, and 1 where the prediction was not out."""
    costs = torch.from_numpy(np.minimum(-origin.log_likelihood(sets[rows]), 1e4))
    out = sets[rows].excluded[np.arange(len(rows)), logits[rows].argmax(-1).numpy()]
    return at_best(foretold, logits[rows], costs).numpy(), 1.0 - out


def _mean(values: Array) -> tuple[float, float]:
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


def _clusters(chance: Array, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the number of each row's cluster, by what is likely ruled out; -1 of other rows."""
    from sklearn.cluster import KMeans

    n, k = chance.shape
    found = np.full(n, -1)
    made = KMeans(k, n_init=_RESTARTS, random_state=0).fit(np.sqrt(chance[rows]))
    found[rows] = made.labels_
    return found


def _names(
    chance: Array, sets: LabelSets, rows: NDArray[np.intp], truth: NDArray[np.intp] | None
) -> NDArray[np.intp] | None:
    """Return the class that each column of `chance` is: few of its rows may have it ruled out.

    Rows count of which it is sure, or all, and true classes more than sets. None where two names
    could be swapped at no cost.
    """
    from scipy.optimize import linear_sum_assignment

    k, x = chance.shape[1], sets.excluded.astype(float)
    own = np.eye(k)[chance.argmax(1)]
    sure = rows[chance[rows].max(1) > _CORE]
    for out in (own[sure].T @ x[sure], chance[rows].T @ x[rows]):
        if truth is not None:
            out -= _TELLS * own.T @ np.eye(k + 1)[truth][:, :k]
        names = linear_sum_assignment(out)[1]
        swapped, kept = out[:, names] + out[:, names].T, np.add.outer(*[out[range(k), names]] * 2)
        if not ((swapped <= kept) & ~np.eye(k, dtype=bool)).any():
            return np.asarray(names)
    return None


def _with_truth(chance: NDArray[Any], truth: NDArray[np.intp] | None) -> NDArray[Any]:
    """Put true classes in the place of what models say, where they are known."""
    if truth is None:
        return chance
    known = np.eye(chance.shape[1] + 1)[truth][:, :-1]
    return np.where(truth[:, None] >= 0, known, chance)


def _why_not(tried: dict[str, tuple[float, float, float, float]]) -> str:
    if not tried:
        return "no matrix that could be learnt tells classes apart"
    worse = [more for gain, error, more, _ in tried.values() if gain > _SURE * error]
    if not worse:
        return "no matrix foretells sets held out better than chance does"
    points = -100 * max(worse)
    told = f"predictions with a learnt matrix are ruled out more often ({points:.1f} points)"
    return f"{told}: sets do not depend on the class alone, or rows are too few"
