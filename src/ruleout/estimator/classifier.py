"""`RuleOutClassifier`: the scikit-learn face."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from hashlib import sha256
from itertools import product
from math import log, prod
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from ruleout.datasets.tables import Scaling, row_hashes
from ruleout.estimator import inputs
from ruleout.estimator.auto import Auto
from ruleout.estimator.scorers import unbiased_accuracy
from ruleout.labels.errors import InputError, brief
from ruleout.labels.origins import Evidence, says
from ruleout.methods import Approach
from ruleout.methods import approach as find_approach
from ruleout.models import MODELS, build
from ruleout.selection import Rule, Search, folds, foretold_better, pool, search
from ruleout.selection.origin_search import find_origin
from ruleout.training import Callback, GridFit, State, Trial, configurations, fingerprint
from ruleout.training.device import find_device
from ruleout.training.engine import estimate_seconds, fit_grid
from ruleout.training.grid_fit import predict as module_logits
from ruleout.training.grids import named_grid, split_grid
from ruleout.training.nets import dense_layers, warn_of_clpl
from ruleout.training.optimizers import check_optimizer
from ruleout.training.validation import (
    as_shape,
    check_shape,
    gather,
    group_numbers,
    together,
)

Array = NDArray[np.float64]

#: Called with what is being trained, epochs done, and epochs in all.
Progress: TypeAlias = Callable[[str, int, int], None]

_EPOCHS, _STEPS, _FEW_STEPS = 100, 2000, 500
_FOLDS, _CUTS, _MANY = 5, (4, 16), 5000  # of rows: parts, cut anew so often, up to how many
_MANY_DEAR = 1000  # up to how many, where a model takes longer than a linear one


class Judged(NamedTuple):
    """A criterion on the rows that were held out."""

    name: str
    estimate: float  #: of accuracy, less what choosing adds; NaN where nothing follows
    standard_error: float  #: of what chose
    low: float | None = None  #: of accuracy: the ends of its 95 % interval
    high: float | None = None


class Resolved(NamedTuple):
    """The most likely class of each row.

    Examples
    --------
    >>> Resolved(np.array(["cat"]), np.array([0.9]), np.array([0.3])).labels
    array(['cat'], dtype='<U3')
    """

    labels: NDArray[Any]  #: ``[n]``: class names
    probability: Array  #: ``[n]``: of the label, by the model and all that was said about the row
    before: Array  #: ``[n]``: of the label by the model alone


class Scaled(nn.Module):
    """A model that scales the columns of what it reads, as they were when it was trained."""

    module: nn.Module
    mean: Tensor
    spread: Tensor

    def __init__(self, module: nn.Module, *scaling: Any) -> None:
        super().__init__()
        self.module, self.example_shape = module, getattr(module, "example_shape", ())
        kind = next(module.parameters()).dtype
        for name, values in zip(Scaling._fields, scaling, strict=True):
            self.register_buffer(name, torch.as_tensor(values).to(kind).clone())

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.module(((x.flatten(1) - self.mean) / self.spread).view_as(x))
        return logits


class Committee(nn.Module):
    """Several models that were trained alike: the mean of their probabilities."""

    def __init__(self, members: Iterable[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.example_shape = getattr(self.members[0], "example_shape", ())

    def forward(self, x: Tensor) -> Tensor:
        every = torch.stack([one(x.clone()).log_softmax(-1) for one in self.members])
        return every.logsumexp(0) - log(len(every))


class TrainingState(NamedTuple):
    """Where training stands, so that it can go on."""

    seed: int
    calls: int  # of fit and partial_fit
    optimizer: str
    engine: State | None  # None starts the optimizer anew

    @property
    def order(self) -> int:
        """The seed of the next walk over rows: another one for every call."""
        if self.calls == 0:
            return self.seed
        return int(np.random.SeedSequence([self.seed, self.calls]).generate_state(1)[0])


class RuleOutClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    r"""A classifier that learns from what each example is *not*.

    Parameters
    ----------
    approach
        A name of :func:`ruleout.approaches`, or what :func:`ruleout.approach` returns. Or
        ``"auto"``: a few approaches, with settings that suit them, are tried and chosen from as a
        grid is, by a criterion that holds for these sets; :attr:`auto_` says why. `grid`,
        `criterion`, `rule`, `learning_rate`, `weight_decay` and `batch_size` are then its own.
    approach_options
        Options of its loss, such as ``{"q": 0.5}`` of GCE.
    model
        A name of :data:`ruleout.models.MODELS`, or a function ``(shape, classes) → nn.Module``.
    hidden, model_options
        Widths of the hidden layers of ``model="mlp"`` (None: one of 500), and its other options.
    shape
        The shape of an example where the model reads images but rows are flat: ``(3, 32, 32)``.
    scale
        Scale the columns of X inside the model, by the rows of the first training: each less its
        mean, over its standard deviation; see :class:`ruleout.datasets.tables.Scaling`. Or
        ``"range"``: to between 0 and 1. With ``approach="auto"`` columns of very different sizes
        are brought to that range, unless they are scaled anyway.
    learning_rate, weight_decay, batch_size, optimizer
        Of the training: ``"adam"`` (weight decay inside the gradient), ``"adamw"``, ``"sgd"`` or
        ``"sgd-momentum"`` (0.9).
    epochs
        Passes over the rows. None: 100, or more where rows are few, as many as make 2,000 steps, or
        500 with ``grid="small"``.
    grid
        Configurations to choose from: ``"small"`` (8, of which some learn fast), ``"paper"`` (36),
        a dictionary of lists, or a list of dictionaries, of ``learning_rate``, ``weight_decay``,
        ``batch_size``, options of the model (``model.hidden``) and of the loss. All are trained on
        most rows, the others choose one by `criterion` *from their sets alone*, and the choice is
        trained on all rows. Up to 5,000 rows, with models that are not linear 1,000, are cut into
        five folds that take turns to choose.
    criterion
        ``"accuracy"``, ``"consistency"``, ``"risk"``, or what
        :func:`ruleout.criterion` returns.
    rule
        ``"best"``; ``"likeliest"``: of all configurations that accuracy cannot tell from the best,
        the one that foretells best what was said about rows held out; or ``"one-standard-error"``:
        see :func:`ruleout.selection.search`. None: the likeliest where the true class of some rows
        is known, else the best.
    validation_fraction
        The share of rows held out to choose on; they count alike whatever their weight. None: up
        to 5,000 rows (1,000 if the model is not linear) every row once, in five folds; else a
        tenth, with ``grid="small"`` at least 1,000 rows.
    early_stopping, patience
        Also choose the number of epochs: a configuration stops after `patience` epochs without a
        better criterion on the rows held out, then the model is trained on all rows for as many
        epochs as its best had, on average over folds.
    members
        How many models are trained in the end, with other first weights and orders of the rows;
        predictions are the mean of theirs. None: 1, with ``approach="auto"`` 5, or 3 of each
        approach where several predict together.
    classes
        All class names in their order, or their number, where y does not bring them.
    class_weight
        A dictionary from class to weight, or ``"balanced"``. A row weighs the mean of the classes
        it may still be, so an ordinary label has the weight of its class. Balanced weights are
        1 / (k · share of the class), with shares estimated from the sets without bias.
    device
        None: the CPU; or ``"cuda"``.
    precision
        ``"float32"``, ``"float64"``, ``"tf32"`` or ``"bf16"``.
    random_state
        A whole number, a `RandomState`, or None. Decides the first weights, the order of the rows
        and which of them are held out; a whole number makes fits repeatable.
    verbose
        1 prints where training stands.

    Attributes
    ----------
    classes_
        The class names: in the order of the sets, sorted for ordinary labels.
    n_features_in_, feature_names_in_
        Of X; names only where X brings them as text.
    configuration_
        What was trained: learning rate, weight decay, options of the loss.
    criterion_
        Name, estimate and standard error on the rows held out, where there were any. Of accuracy
        also ``low`` and ``high``, a 95 % interval, and what choosing adds is taken off (`honest` in
        :func:`ruleout.selection.search`); not with `early_stopping` on a share of many rows, which
        leaves it a little too good.
    search_
        All configurations that were tried, one array per column, where there was a grid.
    history_
        ``epoch`` and ``loss`` of the final training.
    search_history_
        ``epoch``, ``estimate`` and ``standard_error`` of the criterion for the configuration that
        was chosen, where rows were held out.
    n_iter_
        Passes over the rows that made the final weights.
    module_
        The trained `nn.Module`.
    record_
        How it was trained: approach, seeds, device, versions, data hash.
    auto_
        What ``approach="auto"`` tried and why, in a sentence.

    Examples
    --------
    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> clf = RuleOutClassifier(learning_rate=0.1, epochs=10, random_state=0).fit(x, sets)
    >>> clf.score(x, y) > 0.85
    True
    >>> clf.resolve(x[:3], sets[:3]).labels
    array([0, 1, 2])
    """

    #: of the settings chosen, each trained without one fold; classifiers pickled before have none
    _fold_models = nn.ModuleList()

    def __init__(
        self,
        *,
        approach: Any = "log",
        approach_options: Any = None,
        model: Any = "linear",
        hidden: Any = None,
        model_options: Any = None,
        shape: Any = None,
        scale: bool | str = False,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        epochs: int | None = None,
        batch_size: int = 256,
        optimizer: str = "adam",
        grid: Any = None,
        criterion: Any = "accuracy",
        rule: str | None = None,
        validation_fraction: float | None = None,
        early_stopping: bool = False,
        patience: int = 10,
        members: int | None = None,
        classes: Any = None,
        class_weight: Any = None,
        device: Any = None,
        precision: str = "float32",
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.approach = approach
        self.approach_options = approach_options
        self.model = model
        self.hidden = hidden
        self.model_options = model_options
        self.shape = shape
        self.scale = scale
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.epochs = epochs
        self.batch_size = batch_size
        self.optimizer = optimizer
        self.grid = grid
        self.criterion = criterion
        self.rule = rule
        self.validation_fraction = validation_fraction
        self.early_stopping = early_stopping
        self.patience = patience
        self.members = members
        self.classes = classes
        self.class_weight = class_weight
        self.device = device
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        progress: Progress | None = None,
        expect: Callable[[float], None] | None = None,
        callback: Callback | None = None,
    ) -> Self:
        """Train on what was ruled out.

        Parameters
        ----------
        X
            ``[n, d]``: an array, a DataFrame or a sparse matrix; or images ``[n, channels, h, w]``.
            Also a torch Dataset or DataLoader, or an iterable of Arrow record batches, which are
            read once and kept.
        y
            :class:`~ruleout.LabelSets`; a table of 0 and 1 (1: ruled out), whose column names are
            the classes in a DataFrame; or ordinary labels, one per row, which rule out all others.
            Or :class:`~ruleout.Answers`, whose items are numbers of rows: then every "yes" and
            every "no" teaches, and rows that nobody was asked about are left out. Or what
            :func:`ruleout.evidence` returns, where some of it may be wrong: then the approach
            ``"likelihood"`` learns from all of it, and what is held out is judged with the error
            rates in mind. None: the labels that a Dataset or DataLoader brings.
        sample_weight
            One weight per row. A row of weight 0 is left out; a weight of 2 counts as the row twice
            where it falls into a batch.
        groups
            What each row belongs to, one value per row: a group is held out as a whole or not, and
            so are rows with equal features.
        progress
            Called after every epoch with what is being trained, epochs done, and epochs in all.
        expect
            Called before training with about how many seconds it will take, at most.
        callback
            Called after every epoch with where all models stand, which it can also stop: see
            :class:`~ruleout.training.EpochEnd`. Where a grid is searched, its histories hold the
            criterion on the rows held out, such as ``"held out/accuracy"``; those of the final
            training, which takes as many epochs, do not.
        """
        X, own = gather(X, "X", pairs=y is None)
        y = own if y is None else y
        data = self._training_data(X, y, sample_weight, reset=True, groups=groups)
        options = self._engine_options(X, data)
        options["epochs"] = self._epochs(len(data.trial.sets))
        seed = _seed(self.random_state)
        said = data.trial.evidence
        heard = int(says(said or data.trial.sets).sum())
        choosing = self._choosing(heard, said is not None and said.truth is not None)
        auto, tell = None, progress or (_print_tenths() if self.verbose else None)
        if self._auto:
            if self.grid is not None and not self._small_grid:
                raise InputError("approach='auto' chooses its own settings", "leave grid out")
            told = {n: value for n, value in options.items() if n not in ("approach", "epochs")}
            told["progress"] = _stage(tell, "learning how sets came about")
            find = partial(find_origin, data.x, data.trial, worse=1.0, seed=seed, **told)
            auto = Auto.of(data.x, data.trial, self.model, self._model_options(), find)
            data = data._replace(trial=auto.trial)
            if self.epochs is None and auto.epochs is not None:
                options["epochs"] = auto.epochs
        options |= {"grid": self._grid() if auto is None else auto.grid, "seed": seed}
        if choosing:
            if auto is not None:
                choosing |= {"criterion": auto.criterion, "rule": "best"}  # as it was evaluated
            trial = replace(data.trial, groups=together(data.x, data.trial.groups))
            data, said, judge = data._replace(trial=trial), trial.evidence, choosing["criterion"]
            if said is not None and judge == "accuracy" and not said.credit.weight.any():
                choosing["criterion"] = "likelihood"  # so much is wrong that no accuracy follows
        if expect is not None:
            seconds = estimate_seconds(data.x, [data.trial], roughly=True, **options)
            times = 1.25 * max(1, (choosing.get("folds") or 0) - 1) if choosing else 1
            expect(times * seconds)  # with judging, and training the choice
        options |= {"callback": callback, "progress": _stage(tell, "training")}
        found = None
        if choosing:
            if getattr(choosing["criterion"], "name", choosing["criterion"]) == "accuracy":
                choosing["honest"] = _stage(tell, "judging the choice") or True
            options["progress"] = _stage(tell, f"searching {len(options['grid'])} configurations")
            found = search(data.x, [data.trial], refit=False, **choosing, **options)
            options |= {"grid": [found.configuration], "epochs": found.epochs}
            options["progress"] = _stage(tell, "training the choice on all rows")
            if auto is not None:
                scores = found.estimates[0], found.errors[0]
                options["grid"] = auto.choices(found.grid.configurations, *scores)
        usual = 1 if auto is None else 3 if len(options["grid"]) > 1 else 5
        count = _whole("members", usual if self.members is None else self.members)
        seeds = np.random.SeedSequence(seed).generate_state(count).tolist()
        each = [replace(data.trial, seed=own) for own in [seed, *seeds[1:]]]
        final = fit_grid(data.x, each, **options)
        judged = None if found is None else data.trial
        kept = _taught(final, data.x, judged, options["device"])
        module = _trained(final, data.scaling, kept)
        self.classes_ = data.classes
        self.__dict__.pop("reading_", None)  # these rows were not read from its file
        known = fingerprint(data.x, [data.trial.sets])  # once, however many members learned it
        self._keep(module, final, TrainingState(seed, 1, self.optimizer, final.state), known, kept)
        taught = X if data.rows is None else _safe_indexing(X, data.rows)
        self.record_["rows"] = f"{self.sum_rows(taught):016x}"
        if found is not None and choosing:
            self._keep_search(found)
            way = "share" if choosing["folds"] is None else "folds"
            self.record_["held_out" if way == "share" else way] = choosing[way]
            self._fold_models = _fold_models(found, data.scaling)
        if auto is not None:
            self.auto_ = auto.why
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Walk once over these rows, going on from what was learned before.

        Weights, Adam's moments and its count of steps carry over, also from :meth:`fit`; every call
        walks in another order. No rows are held out: `grid` and `early_stopping` do not apply.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`. FREE, NN and GA take the shares of the classes from these rows.
        classes
            All classes, for ordinary labels in the first call.
        """
        if isinstance(self.class_weight, str):
            say = "class_weight='balanced' needs all rows at once"
            raise InputError(say, "give partial_fit a dictionary")
        if self._auto or self.members not in (None, 1):
            say = "name one approach, and train one member"
            raise InputError("partial_fit goes on with one model", say)
        first = not hasattr(self, "_state")
        X = gather(X, "X")[0]
        data = self._training_data(X, y, sample_weight, reset=first, named=classes, part=True)
        options = self._engine_options(X, data)
        if first:
            state = TrainingState(_seed(self.random_state), 0, self.optimizer, None)
        else:
            state, own = self._state, deepcopy(_inner(self.module_))
            options |= {"model": lambda *_, **__: own, "model_options": None}
        if state.engine is not None and state.optimizer == options["optimizer"]:
            # Every call has an order of its own, and rows of its own to remember.
            options["start"] = replace(state.engine, epochs=0, memory=None)
        tuned = not first and self.grid is not None
        options["grid"] = [self.configuration_ if tuned else self._base()]
        fit = fit_grid(data.x, [data.trial], epochs=1, seed=state.order, **options)
        module = _trained(fit, data.scaling, [(0, 0)])
        before = {} if first else vars(self).copy()
        self.classes_ = data.classes
        now = TrainingState(state.seed, state.calls + 1, self.optimizer, fit.state)
        self._keep(module, fit, now, fit.record["data"], [(0, 0)])
        if before:
            history, record = before["history_"], before["record_"]
            count = self.n_iter_ = before["n_iter_"] + 1
            self.history_ = {
                "epoch": np.append(history["epoch"], count),
                "loss": np.append(history["loss"], fit.history["loss"][0, 0]),
            }
            both = record["data"] + self.record_["data"]  # of all rows ever seen, in their order
            self.record_ |= {"model": record["model"], "epochs": count, "seed": state.seed}
            self.record_["data"] = sha256(both.encode()).hexdigest()
        return self

    def _keep(
        self, module: nn.Module, fit: GridFit, state: TrainingState, data: str, kept: Places
    ) -> None:
        """Keep a trained model, and what it was trained on; what was judged no longer holds."""
        self.module_, self._state, self._fold_models = module, state, nn.ModuleList()
        scaled = {"scaled": True} if isinstance(module, Scaled) else {}
        every = [dict(fit.configurations[place]) for _, place in kept]
        many = {"members": every} if len(every) > 1 else {}
        self.record_: dict[str, Any] = fit.record | scaled | many
        self.record_["data"] = data
        self.configuration_: dict[str, Any] = dict(fit.configurations[0])
        self.n_iter_ = int(fit.stopped[0, 0])
        kept = fit.epochs <= self.n_iter_
        self.history_ = {"epoch": fit.epochs[kept], "loss": fit.history["loss"][0, 0, kept]}
        for name in ("auto_", "criterion_", "search_", "search_history_"):
            self.__dict__.pop(name, None)

    def _keep_search(self, found: Search) -> None:
        grid, place = found.grid, int(found.chosen[0])
        self.criterion_ = Judged(found.criterion.name, *found.estimate)
        for number in found.numbers:
            judged: Any = {"estimate": np.nan} if number is None else number._asdict()
            self.criterion_ = self.criterion_._replace(**judged)
        if not np.isfinite(self.criterion_.standard_error) and self.criterion_.low is None:
            say = "a single row was held out to choose on, so chance decided; give more rows, or a "
            say += "larger validation_fraction"
            warnings.warn(say, UserWarning, stacklevel=inputs.outside())
        columns = {n: [one[n] for one in grid.configurations] for n in found.configuration}
        told = (Real, str)  # widths of hidden layers and the like become text
        tried = {
            n: np.array([v if isinstance(v, told) else str(v) for v in column])
            for n, column in columns.items()
        }
        self.search_ = tried | {
            "estimate": found.estimates[0],
            "standard_error": found.errors[0],
            "epochs": np.rint(pool(grid.stopped, found.mass)[0]).astype(int),
            "diverged": grid.diverged.max(0),
        }
        name = f"held out/{found.criterion.name}"
        self.search_history_ = {
            "epoch": grid.epochs,
            "estimate": pool(grid.history[name], found.mass)[0, place],
            "standard_error": pool(grid.errors[name], found.mass, 2)[0, place],
        }

    def _training_data(
        self,
        X: Any,
        y: Any,
        weight: Any,
        *,
        reset: bool,
        groups: Any = None,
        named: Any = None,
        part: bool = False,
    ) -> inputs.TrainingData:
        rate, known = None, y if isinstance(y, Evidence) else None
        if y is None or not inputs.holds_sets(y):
            if hasattr(X, "shape") and hasattr(y, "__len__"):
                inputs.check_rows(X.shape[0], y, "label")
            x, y = self._checked(X, y, reset=reset)
        else:
            x = self._checked(X, reset=reset)
            y, rate = inputs.per_row(y, x.shape[0])
            inputs.check_rows(x.shape[0], y)
        if part and not reset:
            if named is not None and not np.array_equal(inputs.class_array(named), self.classes_):
                say = "classes differ from those of the first call"
                raise InputError(say, "leave them out, or fit anew")
            sets, names = inputs.known_target(y, self.classes_), self.classes_
        else:
            sets, names = inputs.target(y, self.classes if named is None else named, whole=not part)
        codes = None if groups is None else group_numbers(groups, x.shape[0])
        trial = Trial(sets, rate=rate, groups=codes, evidence=known)
        data = inputs.TrainingData(x, trial, names)
        data = data.weighted(weight, self.class_weight, self.learns_unlabelled)
        if not isinstance(self.scale, bool | np.bool_) and self.scale != "range":
            raise InputError(f"scale is {brief(self.scale)}", 'say True, False or "range"')
        own = self.module_ if part and not reset else None
        if isinstance(own, Scaled):
            scaling = Scaling(own.mean.numpy(), own.spread.numpy())
        elif own is None and self.scale:
            scaling = (Scaling.of_range if self.scale == "range" else Scaling.of)(data.x)
        elif own is None and self._auto and Scaling.of(data.x).apart:
            scaling = Scaling.of_range(data.x)
        else:
            return data
        return data._replace(x=scaling(data.x), scaling=scaling)

    def _checked(self, X: Any, *y: Any, reset: bool) -> Any:
        """Bring X to the dtype of the training, as rows of finite numbers."""
        reading = getattr(self, "reading_", {})
        read = reading.get("features")
        if np.ma.is_masked(X):
            raise InputError("X has masked values", "fill them in or drop their rows")
        if read is not None and not reset and hasattr(X, "columns"):
            X = inputs.pick_columns(X, reading)
        if isinstance(X, np.ndarray) and X.ndim > 2:
            if not reset:
                shape: Any = self.module_.example_shape
                check_shape(X.shape[1:], shape, "X")
            X = X.reshape(len(X), prod(X.shape[1:]))
        kind = np.float64 if self.precision == "float64" else np.float32
        with np.errstate(over="ignore", invalid="ignore"):
            found = validate_data(
                self, X, *y, reset=reset, accept_sparse="csr", dtype=kind, ensure_all_finite=False
            )
        inputs.check_finite(found[0] if y else found, getattr(self, "feature_names_in_", read))
        return found

    def _engine_options(self, X: Any, data: inputs.TrainingData) -> dict[str, Any]:
        """Return what :func:`ruleout.fit_grid` is told besides data, grid, epochs and seed."""
        made = isinstance(self.model, nn.Module)
        if made or (not isinstance(self.model, str) and not callable(self.model)):
            what = f"an nn.Module, {type(self.model).__name__}" if made else brief(self.model)
            say = "give a function that makes it: (shape, classes) → nn.Module"
            raise InputError(f"model is {what}", f"name one of {', '.join(MODELS)}, or {say}")
        images = isinstance(X, np.ndarray) and X.ndim > 2
        shape = None if self.shape is None else as_shape(self.shape)
        if shape and images:
            check_shape(X.shape[1:], shape, "X")
        options = {
            "approach": self._method,
            "model": self.model,
            "batch_size": _whole("batch_size", self.batch_size),
            "optimizer": check_optimizer(self.optimizer),
            "shape": shape or tuple((X if images else data.x).shape[1:]),
            "model_options": self._model_options(),
            "device": self.device,
            "precision": self.precision,
        }
        self._check_model(options, data)
        return options

    def _check_model(self, options: Mapping[str, Any], data: inputs.TrainingData) -> None:
        """Say before training what a user's own model gets wrong, and what CLPL loses."""
        shape, k = options["shape"], len(data.classes)
        if prod(shape) != (wide := data.x.shape[1]):
            problem = f"X has {wide} features, but shape={shape} holds {prod(shape)}"
            raise InputError(problem, "make them agree")
        convex = options["approach"].name == "clpl"
        if isinstance(self.model, str) and not convex:
            return
        module = build(self.model, shape, k, seed=0, **options["model_options"])
        if convex:
            warn_of_clpl(module, inputs.outside())

    def _model_options(self, chosen: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the options of the model, less those that a grid chooses but for the `chosen`."""
        options = dict(self.model_options or {})
        if self.hidden is not None:
            options["hidden"] = tuple(_whole("hidden", width) for width in np.ravel(self.hidden))
        if chosen:
            ((_, told),) = split_grid([dict(chosen)], 1, options)
            options = told["model_options"]
        return options

    @property
    def _auto(self) -> bool:
        return isinstance(self.approach, str) and self.approach == "auto"

    @property
    def _method(self) -> Approach:
        """The approach as an object; until ``"auto"`` has chosen, LOG."""
        if not isinstance(self.approach, str | Approach):
            say = "name one of ro.approaches(), or give an Approach"
            raise InputError(f"approach is {brief(self.approach)}", say)
        return find_approach("log" if self._auto else self.approach)

    @property
    def learns_unlabelled(self) -> bool:
        """Whether the approach learns from rows about which nothing is known; else they go."""
        memory = self._method.memory
        return memory is not None and memory.unlabelled

    @property
    def _small_grid(self) -> bool:
        return isinstance(self.grid, str) and self.grid == "small"

    @property
    def _small(self) -> bool:
        return self._auto or self._small_grid

    def _epochs(self, n: int) -> int:
        """Return 100, or more where rows are few.

        Adam moves a weight by at most about the learning rate in a step. At 1e-3 iris from one
        ruled-out class per row has a test accuracy of 0.75 after 500 steps, 0.83 after 1,000, 0.91
        after 2,000 (means of 4 splits). At 0.1 and 0.01, in the small grid, 500 are enough, but not
        for a linear model where sets may be wrong, whose rate grows to its size first (Texture, a
        tenth of three answers wrong: 0.970 and 0.952 after 500, 0.975 and 0.962 after 1,000; means
        of 8 draws). More than 250 epochs, and more for an MLP, made it worse.
        """
        if self.epochs is not None:
            return _whole("epochs", self.epochs)
        sizes = [one.get("batch_size", self.batch_size) for one in self._grid()]
        per_epoch = -(-n // max(_whole("batch_size", size) for size in sizes))
        steps = _FEW_STEPS if self._small else _STEPS
        linear = self._small and self.model == "linear" and not self._auto
        if linear and find_approach(self.approach).graded:
            steps = max(steps, min(1000, 250 * per_epoch))
        return max(_EPOCHS, -(-steps // per_epoch))

    def _base(self) -> dict[str, Any]:
        options = {} if self.approach_options is None else self.approach_options
        if not isinstance(options, Mapping):
            raise InputError(f"approach_options is {brief(options)}", "give a dictionary or None")
        find_approach("log" if self._auto else self.approach, **options)  # raises for unknown ones
        base = {"learning_rate": self.learning_rate, "weight_decay": self.weight_decay}
        return configurations([base | dict(options)])[0]

    def _grid(self) -> list[dict[str, Any]]:
        """Return the configurations; what a grid does not name is as the parameters say."""
        base, grid = self._base(), self.grid
        if grid is None:
            return [base]
        grid = named_grid(grid)
        if isinstance(grid, Mapping):
            return configurations({**base, **grid})
        if isinstance(grid, (list, tuple)) and all(isinstance(one, Mapping) for one in grid):
            return configurations([{**base, **one} for one in grid])
        raise InputError(f"grid is {brief(grid)}", "name one, or give a dictionary of lists")

    def _choosing(self, n: int, known: bool = False) -> dict[str, Any] | None:
        """Return how rows held out choose, or None where there is nothing to choose.

        `n` rows say something; of some the true class may be `known`.
        """
        if self.grid is None and not self.early_stopping and not self._auto:
            return None
        share, rule = self.validation_fraction, self.rule
        rule = ("likeliest" if known else "best") if rule is None else rule
        many = _MANY if self.model == "linear" else _MANY_DEAR
        parts = _FOLDS if share is None and n <= many else None
        if share is None:
            share = max(0.1, 1000 / n) if self._small and parts is None else 0.1
        if not isinstance(share, Real) or not 0 < share < 1:
            say = "give a share between 0 and 1"
            raise InputError(f"validation_fraction is {brief(share)}", say)
        if rule not in get_args(Rule):
            raise InputError(f"unknown rule {brief(rule)}", f"say {', '.join(get_args(Rule))}")
        patience = _whole("patience", self.patience) if self.early_stopping else None
        choosing = {"criterion": self.criterion, "share": float(share), "rule": rule}
        return choosing | {"folds": parts, "patience": patience}

    def _logits(self, X: Any, module: nn.Module | None = None) -> Tensor:
        """Return ``[n, k]`` in float64, by the model if no other one is given.

        Linear models and perceptrons are evaluated in float64, so that a row's result does not
        depend on the rows beside it; other models in the precision they were trained in.
        """
        check_is_fitted(self, "module_")
        x, module = self._checked(gather(X, "X")[0], reset=False), module or self.module_
        if _dense(module):
            module = deepcopy(module).double()
        if self.device is not None:
            module = deepcopy(module).to(find_device(self.device, "float32"))
        return module_logits(module, x).double()

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most likely class of each row."""
        places = self._logits(X).argmax(-1).numpy()
        return np.asarray(self.classes_[places])

    def predict_proba(self, X: Any) -> Array:
        """Return the probability of each class, ``[n, k]``, in the order of ``classes_``."""
        return np.asarray(self._logits(X).softmax(-1).numpy())

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithm of each probability, ``[n, k]``."""
        return np.asarray(self._logits(X).log_softmax(-1).numpy())

    def decision_function(self, X: Any) -> Array:
        """Return the logits, ``[n, k]``; of two classes the second minus the first, ``[n]``."""
        logits = self._logits(X).numpy()
        return np.asarray(logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; of sets its estimate, if they are random and none is wrong.

        `y` is one label per row, or what was ruled out: label sets, a table of 0 and 1, or answers.
        """
        return unbiased_accuracy(self, X, y, sample_weight)

    def resolve(
        self,
        X: Any,
        sets: Any = None,
        sample_weight: Any = None,
        *,
        likelihood: Any = None,
        groups: Any = None,
        cross: Any = None,
        progress: Progress | None = None,
    ) -> Resolved:
        r"""Return the most likely class of each row by the model and by what was said about it.

        Bayes' rule multiplies the two. How sure the model may be, all that was said tells: its
        probabilities p become :math:`(1-\lambda) q^t / \sum q^t + \lambda/k`,
        :math:`q = p\, e^{av}`: a = 0 leaves classes as frequent as the model sees them, a = 1 makes
        them equally frequent in up to 4,096 rows, unless rows are few. The answer is a mean over t,
        a, :math:`\lambda`, each counting as likely as it makes all that was said. Beforehand
        :math:`\lambda` is the larger, the more often models that were trained on other rows name
        another class (measured: benchmarks/resolve_calibration.py).

        Parameters
        ----------
        sets
            What was ruled out for each row: label sets, a table of 0 and 1, answers, or evidence.
        likelihood
            ``[n, k]``, in the place of sets where answers may be wrong: the logarithm of how likely
            all that was said about a row is for each class, up to a constant. Or several of them,
            one for each error rate that may be true, in pairs: the logarithm of how plausible it
            is, and the table.
        cross
            Whether these rows trained the model, which then has learned the very answers that it
            is to be combined with. Models of its settings are trained on four fifths of the rows
            each, by `sets`, `sample_weight` and `groups` as in :meth:`fit`, and a row is named by
            those that did not see it. Where some rows trained, give their numbers: `sets`, weights
            and groups are then about these. None: where X and `sets` are to the bit those of `fit`.
            Other rows are named by the mean of the models of the five folds, where these chose the
            settings of a linear model or perceptron, else by the one model.
        progress
            Called after every epoch of that training, as in :meth:`fit`.
        """
        check_is_fitted(self, "module_")
        if sets is None and (likelihood is None or (cross is not None and cross is not False)):
            say = "give one of the two, and with cross the sets that trained"
            raise ValueError(f"resolve takes sets or a likelihood; {say}")
        X, seen = gather(X, "X")[0], cross
        rows, known = cross if np.ndim(cross) else None, {"reset": False, "part": True}
        if sets is not None and cross is not False:
            some = X if rows is None else _safe_indexing(X, rows)
            data = self._training_data(some, sets, sample_weight, groups=groups, **known)
            seen = cross is not None or self._trained_by(some, data)
        told = self._unseen(X, data, rows, progress) if seen else self._fresh(X)
        said, before = _posterior(*told, self._cases(sets, likelihood, told[0]))
        best, places = said.max(-1)
        before = before.gather(-1, places.unsqueeze(-1)).squeeze(-1)
        return Resolved(np.asarray(self.classes_[places.numpy()]), best.numpy(), before.numpy())

    def sum_rows(self, X: Any) -> int:
        """Return a number of 64 bits that tells which rows these are, in whatever order.

        Those of parts add up, modulo 2⁶⁴. That of the rows of :meth:`fit` is ``record_["rows"]``,
        in hexadecimal digits.
        """
        x = self._checked(gather(X, "X")[0], reset=False)
        return int(row_hashes(x).sum(dtype=np.uint64))

    def _trained_by(self, X: Any, data: inputs.TrainingData) -> bool:
        """Tell whether these rows, in whatever order, are those that trained the model."""
        told = X if data.rows is None else _safe_indexing(X, data.rows)
        known = f"{self.sum_rows(told):016x}" == self.record_.get("rows")
        return known or fingerprint(data.x, [data.trial.sets]) == str(self.record_["data"])

    def _unseen(
        self, X: Any, data: inputs.TrainingData, rows: Any, progress: Progress | None
    ) -> tuple[Tensor, float]:
        """Return log probabilities ``[n, k]`` by models that did not see a row, and their doubt.

        Of few rows models differ much: the mean of several errs less, and knows better how much.
        """
        x, n = self._checked(X, reset=False), len(data.trial.sets)
        x = x if data.scaling is None else data.scaling(x)
        rows = np.arange(x.shape[0]) if rows is None else np.asarray(rows)
        rows = rows if data.rows is None else rows[data.rows]
        groups = together(data.x, data.trial.groups)
        groups = np.arange(n) if groups is None else groups
        if len(np.unique(groups)) < 2:
            say = "train on more, or leave these rows to the model with cross=False"
            raise InputError("a single row, or group, trained the model", say)
        options, chance = self._engine_options(X, data), np.random.default_rng(self._state.seed)
        fewest, most = _CUTS if _dense(self.module_) else _CUTS[:1] * 2
        cuts = int(np.clip(1000 * fewest // n, fewest, most)) if n < _MANY else 1
        parts = [part for _ in range(cuts) for part in folds(n, _FOLDS, groups, chance)]
        fit = fit_grid(
            data.x, [data.trial.part(np.setdiff1d(np.arange(n), part)) for part in parts],
            grid=[self.configuration_], epochs=self.n_iter_, seed=self._state.seed, moments=False,
            progress=_stage(progress, "training without the rows to name"), **options,
        )  # fmt: skip
        others = np.setdiff1d(np.arange(x.shape[0]), rows)
        places = [np.concatenate([rows[part], others]) for part in parts]
        each = (module_logits(fit.module(t), x[own]).double() for t, own in enumerate(places))
        mean, doubt = _mean((x.shape[0], len(self.classes_)), places, each)
        if fit.diverged.any() or mean.isnan().any():
            raise InputError("training without some of the rows diverged", "lower learning_rate")
        return mean, doubt if cuts > 1 else _DOUBT

    def _fresh(self, X: Any) -> tuple[Tensor, float]:
        """Return the same of rows that no model saw: by those of the folds, if they were kept."""
        if not self._fold_models:
            return self._logits(X), _DOUBT
        each = [self._logits(X, one) for one in self._fold_models]
        return _mean(each[0].shape, [np.arange(len(each[0]))] * len(each), each)

    def _cases(self, sets: Any, likelihood: Any, like: Tensor) -> Iterator[tuple[float, Tensor]]:
        """Yield how likely all that was said is, at each error rate that may be true."""
        if likelihood is None and isinstance(sets, Evidence):
            inputs.check_rows(len(like), sets)
            likelihood = sets.cases()
        if likelihood is None:
            known = inputs.known_target(inputs.per_row(sets, len(like))[0], self.classes_)
            inputs.check_rows(len(like), known)
            likelihood = np.where(known.excluded, -np.inf, 0.0)
        one = isinstance(likelihood, np.ndarray | Tensor | list)
        for weight, table in [(0.0, likelihood)] if one else likelihood:
            found = torch.as_tensor(np.asarray(table, float))
            if found.shape != like.shape or not found.amax(-1).isfinite().all():
                told, wanted = tuple(found.shape), tuple(like.shape)
                say = f"likelihood has shape {told}, or a row without a finite maximum"
                raise ValueError(f"{say}; give {wanted} logarithms")
            yield weight, found

    def save(self, path: str | Path, *, reading: Mapping[str, Any] | None = None) -> None:
        """Write a folder with ``model.safetensors`` and ``card.json``; no pickle.

        The folder appears whole or not at all. A model folder of that name is replaced; anything
        else there is left alone, with an error. What an optimizer remembers is not saved:
        `partial_fit` after :func:`ruleout.load` starts its moments anew. An approach is saved by
        name with its options: one of your own must be registered again before more training.

        `reading` says how the rows were read from files, kept in the card for whoever predicts.
        None: as in the card that this classifier was loaded from, if it was.
        """
        from ruleout.estimator.model_folder import save

        check_is_fitted(self, "module_")
        save(self, path, getattr(self, "reading_", {}) if reading is None else reading)

    def export(self, path: str | Path) -> None:
        """Write an ONNX file that turns rows into probabilities; class names are in its metadata.

        The input ``x`` is float32, ``[n, d]`` or ``[n, channels, h, w]``, with any n; the output is
        called ``probabilities``. Needs ``pip install 'ruleout[export]'``.
        """
        from ruleout.estimator.model_folder import export

        check_is_fitted(self, "module_")
        export(self, path)


def _seed(random_state: Any) -> int:
    """Return a whole number as it is, else one drawn from the random state."""
    state = check_random_state(random_state)  # raises for a negative number
    whole = isinstance(random_state, Integral)
    return int(random_state if whole else state.randint(np.iinfo(np.int32).max))


def _whole(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} is {brief(value)}", "give a whole number of at least 1")
    return int(value)


def _inner(module: nn.Module) -> nn.Module:
    return module.module if isinstance(module, Scaled) else module


def _dense(module: nn.Module) -> bool:
    """Whether a model, or all of a committee, are linear models or perceptrons."""
    inner = _inner(module)
    every = inner.members if isinstance(inner, Committee) else [inner]
    return all(dense_layers(one) is not None for one in every)


Places: TypeAlias = Sequence[tuple[int, int]]  #: models of a fit: their trials and configurations


def _taught(fit: GridFit, x: Any, trial: Trial | None, device: Any) -> Places:
    """Return which models predict: those that learned something, as far as the judged one did.

    That one has the first seed; without a trial none was judged. Where steps are few and small, the
    weights with which a model begins decide, and others may know nothing. What counts is how much
    better than by chance about 5,000 training rows are foretold, at the best temperature of each:
    a tenth at least, or a difference that may be chance (3 standard errors).
    """
    trials, models = fit.shape
    every = list(product(range(trials), range(models)))
    if trials == 1 or trial is None:
        return every
    rows = np.arange(0, len(trial.sets), max(1, len(trial.sets) // _SOME))
    part, where = trial.part(rows), find_device(device, "float32")
    kept, judged = list[tuple[int, int]](), dict[int, Tensor]()
    for at in every:
        logits = module_logits(fit.module(*at).to(where), x[part.rows])
        gain = foretold_better(logits, part)
        first = judged.setdefault(at[1], gain)
        more, error = torch.std_mean(first - gain)[::-1]
        near = gain.mean() > 0.1 * first.mean() or more < 3 * error / len(rows) ** 0.5
        if at[0] == 0 or (near and not fit.diverged[at]):
            kept.append(at)
    if left := len(every) - len(kept):
        say = f"{left} of {len(every)} models learned next to nothing, beside what the judged one "
        say += "did, and are left out; give more epochs, or a higher learning_rate"
        warnings.warn(say, UserWarning, stacklevel=inputs.outside())
    return kept


_SOME = 5000  # training rows by which models are compared


def _trained(fit: GridFit, scaling: Scaling | None, kept: Places) -> nn.Module:
    """Return the model of a fit, or several of them; raise if one is lost."""
    every = []
    for trial, place in kept:
        module = fit.module(trial, place)
        if fit.diverged[trial, place] or not _finite(module):
            rate = fit.configurations[place]["learning_rate"]
            ended = int(fit.diverged[trial, place] or fit.epochs[-1])
            say = f"scale the features, or lower learning_rate (it was {rate:g})"
            raise InputError(f"training diverged in epoch {ended}", say)
        every.append(module)
    module = every[0] if len(every) == 1 else Committee(every)
    return (module if scaling is None else Scaled(module, *scaling)).eval()


def _fold_models(found: Search, scaling: Scaling | None) -> nn.ModuleList:
    """Return the models of the folds, with the settings that were chosen; none of large models."""
    place, count = int(found.chosen[0]), found.mass.shape[1]
    every = [found.grid.module(fold, place) for fold in range(count)] if count > 1 else []
    good = all(dense_layers(one) is not None and _finite(one) for one in every)
    every = [one if scaling is None else Scaled(one, *scaling) for one in every if good]
    return nn.ModuleList(every).eval()


def _finite(module: nn.Module) -> bool:
    return all(bool(torch.isfinite(value).all()) for value in module.state_dict().values())


def _stage(tell: Progress | None, name: str) -> Callable[[int, int], None] | None:
    return None if tell is None else partial(tell, name)


def _print_tenths() -> Progress:
    last = ("", -1)

    def call(stage: str, done: int, total: int) -> None:
        nonlocal last
        tenth = (stage, 10 * done // total)
        if tenth != last:
            print(f"{stage}: epoch {done} of {total}")
        last = tenth

    return call


#: How sure a model may be: powers of its probabilities, shares of what it knows nothing about; how
#: far classes are as frequent as it sees them, or equally so.
_POWERS, _EVEN = np.geomspace(1 / 16, 16, 17), (0.0, 0.5, 1.0)
_SHARES = torch.tensor([1e-6, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.55, 0.75]).double()
_DOUBT = 0.035  # the share to be expected of a single model
_SAMPLE = 4096  # rows that tell how sure
_ROWS = 5  # which tell as much about how frequent a class is as was known before
_BENT = 1.5  # how far from 0 the logarithm of a power is, beforehand


def _mean(
    shape: tuple[int, ...], places: Sequence[Any], each: Iterable[Tensor]
) -> tuple[Tensor, float]:
    """Return the logarithm of the mean over models, ``[n, k]``, and the share to be expected of it.

    `each` has a model's logits for the rows in its `places`. How often a model names another class
    than the mean, without its own part in it, says how much may be doubted.
    """
    found = torch.zeros(2, *shape, dtype=torch.float64)
    for own, logits in zip(places, each, strict=True):
        found[0, own] += logits.softmax(-1)
        found[1, own, logits.argmax(-1)] += 1
    count = found[1].sum(-1, keepdim=True)
    mean = found[0] / count
    others = count - found[1].gather(-1, mean.argmax(-1, keepdim=True))
    differ = float((others / (count - 1).clamp(min=1)).mean())
    return mean.log(), 1.5 * differ**2 + 0.002


def _evening(logits: Tensor) -> Tensor:
    """Return what added to logits, ``[n, k]``, makes classes equally frequent, if rows are many.

    Beforehand it is about 0, with a variance of 1 / `_ROWS`; by Newton's method.
    """
    (n, k), found = logits.shape, logits.new_zeros(logits.shape[1])
    for _ in range(50):
        seen = (logits + found).softmax(-1)
        often = seen.sum(0)
        bend = (often + _ROWS).diag() - seen.T @ seen
        step: Tensor = torch.linalg.solve(bend, often - n / k + _ROWS * found)
        found = found - step / step.abs().amax().clamp(min=1)
        if step.abs().amax() < 1e-6:
            break
    return found


def _posterior(
    logits: Tensor, doubt: float, cases: Iterable[tuple[float, Tensor]]
) -> tuple[Tensor, Tensor]:
    """Return the probability of every class with all that was said, and without, ``[n, k]`` both.

    Both are means over the cases, powers, shares and how even classes are, as likely as each makes
    all that was said; beforehand a power is about 1, and a share about `doubt`, falling
    exponentially.
    """
    prior = torch.gradient(_SHARES)[0].log() - _SHARES / doubt
    n, k = logits.shape
    some = torch.linspace(0, n - 1, min(n, _SAMPLE)).long()
    evening = _evening(logits[some])
    each = [(even, logits + even * evening) for even in _EVEN]
    best, total, means = -np.inf, 0.0, torch.zeros(2, n, k, dtype=torch.float64)
    for plausible, table in cases:
        top = table.amax(-1, keepdim=True)
        chance = (table - top).exp()
        for power, (even, own) in product(_POWERS, each):
            agree = ((power * own[some]).softmax(-1) * chance[some]).sum(-1, keepdim=True)
            mixed = (1 - _SHARES) * agree + _SHARES * chance[some].mean(-1, keepdim=True)
            likely = mixed.log().sum(0) * (n / max(len(some), 1)) + prior
            likely += float(top.sum()) + plausible - (np.log(power) / _BENT) ** 2 / 2 - even
            if float(likely.max()) > best:
                means, total = (
                    part * np.exp(best - float(likely.max())) for part in (means, total)
                )
                best = float(likely.max())
            for share, weight in zip(_SHARES, (likely - best).exp(), strict=True):
                if weight > 1e-3:
                    before = (1 - share) * (power * own).softmax(-1) + share / k
                    said = before * chance
                    means += weight * torch.stack([said / said.sum(-1, keepdim=True), before])
                    total += float(weight)
    return means[0] / total, means[1] / total
