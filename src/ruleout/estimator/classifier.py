"""`RuleOutClassifier`: the scikit-learn face."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from hashlib import sha256
from math import prod
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from torch import Tensor, nn

from ruleout.estimator.inputs import check_x, check_x_y, row_weights
from ruleout.estimator.scorers import unbiased_accuracy
from ruleout.estimator.targets import Target, check_rows, class_array, known_target, per_row, target
from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief
from ruleout.methods import approach
from ruleout.models import MODELS, build
from ruleout.selection import Search, search
from ruleout.training import PAPER_GRID, GridFit, State, Trial, configurations, fit_grid
from ruleout.training.device import find_device
from ruleout.training.grid_fit import predict as module_logits
from ruleout.training.nets import dense_layers
from ruleout.training.optimizers import check_optimizer

__all__ = ["RuleOutClassifier"]


class Resolved(NamedTuple):
    """The most likely class among the candidates of each row.

    Examples
    --------
    >>> Resolved(np.array(["cat"]), np.array([0.9]), np.array([0.3])).labels
    array(['cat'], dtype='<U3')
    """

    labels: NDArray[Any]  #: ``[n]``: class names
    probability: Array  #: ``[n]``: of the label, given that it is one of the candidates
    before: Array  #: ``[n]``: of the label among all classes, before what was ruled out is used


class Predicting:
    """The methods of a fitted classifier; the fitted attributes come with `fit`."""

    module_: nn.Module
    classes_: NDArray[Any]
    device: Any

    def _logits(self, X: Any) -> Tensor:
        """Return ``[n, k]`` in float64.

        Linear models and perceptrons are evaluated in float64, so that a row's result does not
        depend on the rows beside it; other models in the precision they were trained in.
        """
        x = check_x(self, X)
        module = self.module_
        if dense_layers(module) is not None:
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
        """Return the accuracy; of sets its unbiased estimate, which needs no true label.

        Parameters
        ----------
        X
            Rows.
        y
            One label per row, or what was ruled out: label sets, a table of 0 and 1, or answers.
        sample_weight
            One weight per row.
        """
        return unbiased_accuracy(self, X, y, sample_weight)

    def resolve(self, X: Any, sets: Any = None, *, likelihood: Any = None) -> Resolved:
        """Return the most likely class among each row's candidates, with its probability.

        Parameters
        ----------
        X
            Rows.
        sets
            What was ruled out for each: label sets, a table of 0 and 1, or answers.
        likelihood
            ``[n, k]``, in the place of sets where answers may be wrong: the logarithm of how likely
            all that was said about a row is for each class, up to a constant. The confidence of
            the model is set first, by the one factor of its logits that makes all of it likeliest:
            who learns from wrong answers is right more often than sure.
        """
        logits = self._logits(X)
        evidence = self._evidence(sets, likelihood, logits)
        factor = 1.0 if likelihood is None else _confidence(logits, evidence)
        left = (factor * logits + evidence).log_softmax(-1)
        best, places = left.max(-1)
        before = logits.log_softmax(-1).gather(-1, places.unsqueeze(-1)).squeeze(-1)
        labels = np.asarray(self.classes_[places.numpy()])
        return Resolved(labels, best.exp().numpy(), before.exp().numpy())

    def _evidence(self, sets: Any, likelihood: Any, like: Tensor) -> Tensor:
        """Return what is added to the logits: minus infinity for what sets rule out."""
        if (sets is None) == (likelihood is None):
            raise ValueError("resolve takes sets or a likelihood; give one of the two")
        if likelihood is None:
            known = known_target(per_row(sets, len(like))[0], self.classes_)
            check_rows(len(like), known)
            excluded = torch.from_numpy(known.excluded)
            return torch.zeros_like(like).masked_fill(excluded, -torch.inf)
        found = torch.as_tensor(np.asarray(likelihood, float))
        if found.shape != like.shape or not (found.amax(-1) > -torch.inf).all():
            raise ValueError(
                f"likelihood has shape {tuple(found.shape)}, or a row without any class; "
                f"give {tuple(like.shape)} logarithms"
            )
        return found


def _confidence(logits: Tensor, evidence: Tensor) -> float:
    """Return the factor of the logits under which the evidence is likeliest, the one nearest 1."""
    factors = sorted(np.geomspace(1 / 16, 16, 65).tolist(), key=lambda f: abs(np.log(f)))
    likely = torch.stack(
        [((f * logits).log_softmax(-1) + evidence).logsumexp(-1).sum() for f in factors]
    )
    best = likely >= likely.max() - 1e-9 * len(logits)  # rounding decides nothing
    return float(factors[int(best.double().argmax())])


class RuleOutClassifier(Predicting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # untyped
    r"""A classifier that learns from what each example is *not*.

    Parameters
    ----------
    approach
        A name of :func:`ruleout.approaches`.
    approach_options
        Options of its loss, such as ``{"q": 0.5}`` of GCE.
    model
        A name of :data:`ruleout.models.MODELS`, or a function ``(shape, classes) → nn.Module``.
    hidden
        Widths of the hidden layers of ``model="mlp"``; None: one of 500.
    model_options
        Other options of the model.
    shape
        The shape of an example where the model reads images but rows are flat: ``(3, 32, 32)``.
    learning_rate, weight_decay, batch_size, optimizer
        Of the training: ``"adam"`` (weight decay inside the gradient), ``"adamw"`` or ``"sgd"``.
    epochs
        Passes over the rows. None: 100, or more where rows are few, as many as make 2,000 steps.
    grid
        Configurations to choose from: ``"paper"``, a dictionary of lists, or a list of
        dictionaries, of ``learning_rate``, ``weight_decay`` and options of the loss. All are
        trained on most rows, the others choose one by `criterion` *from their sets alone*, and
        the choice is trained on all rows.
    criterion
        ``"accuracy"`` (unbiased), ``"consistency"``, ``"risk"``, or what
        :func:`ruleout.criterion` returns.
    rule
        ``"best"`` or ``"one-standard-error"``; see :func:`ruleout.selection.choose`.
    validation_fraction
        The share of rows held out to choose on; they count alike whatever their weight.
    early_stopping, patience
        Also choose the number of epochs: a configuration stops after `patience` epochs without a
        better criterion on the rows held out, then the model is trained on all rows for as many
        epochs as its best had.
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
        Name, estimate and standard error on the rows held out, where there were any. The same rows
        chose, so it is a little too good.
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

    def __init__(
        self,
        *,
        approach: Any = "log",
        approach_options: Any = None,
        model: Any = "linear",
        hidden: Any = None,
        model_options: Any = None,
        shape: Any = None,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-5,
        epochs: int | None = None,
        batch_size: int = 256,
        optimizer: str = "adam",
        grid: Any = None,
        criterion: Any = "accuracy",
        rule: str = "best",
        validation_fraction: float = 0.1,
        early_stopping: bool = False,
        patience: int = 10,
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

    # ------------------------------------------------------------------ learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on what was ruled out.

        Parameters
        ----------
        X
            ``[n, d]``: an array, a DataFrame or a sparse matrix; or images ``[n, channels, h, w]``.
        y
            :class:`~ruleout.LabelSets`; a table of 0 and 1 (1: ruled out), whose column names are
            the classes in a DataFrame; or ordinary labels, one per row, which rule out all others.
            Or :class:`~ruleout.Answers`, whose items are numbers of rows: then every "yes" and
            every "no" teaches, and rows that nobody was asked about are left out.
        sample_weight
            One weight per row. A row of weight 0 is left out; a weight of 2 counts as the row twice
            where it falls into a batch.
        """
        return self._fit(X, y, sample_weight)

    def _fit(
        self, X: Any, y: Any, sample_weight: Any = None, progress: Progress | None = None
    ) -> Self:
        """Fit, and tell `progress` what is being trained, epochs done and epochs in all."""
        data = self._data(X, y, sample_weight, reset=True)
        options = self._options(X, data)
        options["epochs"] = epochs_of(self, len(data.sets))
        options["progress"] = progress or (printer() if self.verbose else None)
        seed = seed_of(self.random_state)
        found = train(data, grid_of(self), held_of(self), seed=seed, **options)
        self.classes_ = data.classes
        keep(self, found, Course(seed, 1, self.optimizer, found.fit.state))
        keep_search(self, found.found)
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
            raise InputError(
                "class_weight='balanced' needs all rows at once", "give partial_fit a dictionary"
            )
        course = getattr(self, "_course", None)
        data = self._data(X, y, sample_weight, reset=course is None, named=classes, part=True)
        options = self._options(X, data)
        if course is None:
            course, known = Course(seed_of(self.random_state), 0, self.optimizer, None), None
            self.classes_, configuration = data.classes, base_of(self)
        else:
            known = self.module_
            configuration = base_of(self) if self.grid is None else self.configuration_
        found = go_on(data, configuration, known, course, **options)
        keep_on(self, found, course)
        return self

    def _data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        reset: bool,
        named: Any = None,
        part: bool = False,
    ) -> Data:
        """Check everything that is handed in; leave out rows that say or weigh nothing."""
        x, y, rate = check_x_y(self, X, y, reset=reset)
        if part and not reset:
            known = Target(known_target(y, self._same(named)), self.classes_)
        else:
            known = target(y, self.classes if named is None else named, whole=not part)
        known = known._replace(rate=rate)
        weight = row_weights(known, sample_weight, self.class_weight)
        return used(Data(x, known.sets, weight, known.classes, rate))

    def _same(self, named: Any) -> NDArray[Any]:
        """Return the known classes; raise if a later call names others."""
        if named is not None and not np.array_equal(class_array(named), self.classes_):
            raise InputError(
                "classes differ from those of the first call", "leave them out, or fit anew"
            )
        return self.classes_

    def _options(self, X: Any, data: Data) -> dict[str, Any]:
        """Return what the engine is told, with the shape of an example settled."""
        options = engine_options(self)
        wide = isinstance(X, np.ndarray) and X.ndim > 2
        shape = options["shape"] or (X.shape[1:] if wide else data.x.shape[1:])
        if prod(shape) != data.x.shape[1]:
            raise InputError(
                f"X has {data.x.shape[1]} features, but shape={shape} holds {prod(shape)}",
                "make them agree",
            )
        check_model(options, shape, len(data.classes))
        return options | {"shape": shape}

    # ------------------------------------------------------------------ keeping

    def save(self, path: str | Path, *, reading: Mapping[str, Any] | None = None) -> None:
        """Write a folder with ``model.safetensors`` and ``card.json``; no pickle.

        The folder appears whole or not at all. A model folder of that name is replaced; anything
        else there is left alone, with an error. What an optimizer remembers is not saved:
        `partial_fit` after :func:`ruleout.load` starts its moments anew.

        Parameters
        ----------
        path
            Of the folder.
        reading
            How the rows were read from files, kept in the card for whoever predicts. None: as in
            the card that this classifier was loaded from, if it was.
        """
        from ruleout.estimator.model_folder import save

        save(self, path, getattr(self, "reading_", {}) if reading is None else reading)

    def export(self, path: str | Path) -> None:
        """Write an ONNX file that turns rows into probabilities; class names are in its metadata.

        The input ``x`` is float32, ``[n, d]`` or ``[n, channels, h, w]``, with any n; the output is
        called ``probabilities``. Needs ``pip install 'ruleout[export]'``.
        """
        from ruleout.estimator.onnx_export import export

        export(self, path)


_EPOCHS, _STEPS = 100, 2000


def epochs_of(clf: Any, n: int) -> int:
    """Return the number of epochs: 100, or more where rows are few.

    Adam moves a weight by at most about the learning rate in a step, so a small table needs many
    epochs to get anywhere: with the default rate of 1e-3, scikit-learn's checks (30 to 300 rows)
    are learned in 2,000 steps and not in 500, and iris from one ruled-out class per row has a test
    accuracy of 0.75 after 500 steps, 0.83 after 1,000 and 0.91 after 2,000 (means of 4 splits).
    """
    if clf.epochs is not None:
        return int(_whole("epochs", clf.epochs))
    per_epoch = -(-n // int(_whole("batch_size", clf.batch_size)))
    return max(_EPOCHS, -(-_STEPS // per_epoch))


def seed_of(random_state: Any) -> int:
    """Return the seed: a whole number as it is, else one drawn from the random state."""
    if isinstance(random_state, Integral):
        check_random_state(random_state)  # raises for a negative one
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def base_of(clf: Any) -> dict[str, Any]:
    """Return the configuration that the parameters themselves make."""
    options = {} if clf.approach_options is None else clf.approach_options
    if not isinstance(options, Mapping):
        raise InputError(f"approach_options is {brief(options)}", "give a dictionary or None")
    base = {"learning_rate": clf.learning_rate, "weight_decay": clf.weight_decay}
    return configurations([base | dict(options)])[0]


def grid_of(clf: Any) -> list[dict[str, Any]]:
    """Return the configurations; what a grid does not name is as the classifier says."""
    base, grid = base_of(clf), clf.grid
    if grid is None:
        return [base]
    if isinstance(grid, str) and grid == "paper":
        return configurations({**base, **PAPER_GRID})
    if isinstance(grid, Mapping):
        return configurations({**base, **grid})
    if isinstance(grid, (list, tuple)) and all(isinstance(one, Mapping) for one in grid):
        return configurations([{**base, **one} for one in grid])
    raise InputError(f"grid is {brief(grid)}", "say 'paper', or give a dictionary of lists")


def held_of(clf: Any) -> Held | None:
    """Return how rows held out choose, or None where there is nothing to choose."""
    if clf.grid is None and not clf.early_stopping:
        return None
    share = clf.validation_fraction
    if not isinstance(share, (int, float)) or not 0 < share < 1:
        raise InputError(f"validation_fraction is {brief(share)}", "give a share between 0 and 1")
    if clf.rule not in ("best", "one-standard-error"):
        raise InputError(f"unknown rule {brief(clf.rule)}", "say 'best' or 'one-standard-error'")
    patience = int(_whole("patience", clf.patience)) if clf.early_stopping else None
    return Held(clf.criterion, float(share), clf.rule, patience)


def engine_options(clf: Any) -> dict[str, Any]:
    """Return what :func:`ruleout.fit_grid` is told besides data, grid, epochs and seed."""
    if not isinstance(clf.model, str) and not callable(clf.model):
        say = f"name one of {', '.join(MODELS)}, or give a function (shape, classes) → nn.Module"
        raise InputError(f"model is {brief(clf.model)}", say)
    if not isinstance(clf.approach, str):
        raise InputError(f"approach is {brief(clf.approach)}", "name one of ro.approaches()")
    return {
        "approach": approach(clf.approach),
        "model": clf.model,
        "batch_size": int(_whole("batch_size", clf.batch_size)),
        "optimizer": check_optimizer(clf.optimizer),
        "shape": None if clf.shape is None else tuple(clf.shape),
        "model_options": model_options(clf),
        "device": clf.device,
        "precision": clf.precision,
    }


def _whole(name: str, value: Any) -> Integral:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} is {brief(value)}", "give a whole number of at least 1")
    return value


def model_options(clf: Any) -> dict[str, Any]:
    """Return the options of the model, where it is one of ours those that it has."""
    options = dict(clf.model_options or {})
    if clf.hidden is not None:
        options["hidden"] = tuple(int(_whole("hidden", width)) for width in np.ravel(clf.hidden))
    if isinstance(clf.model, str) and clf.model in MODELS:
        known = list(inspect.signature(MODELS[clf.model]).parameters)[2:]
        for name in options:
            if name not in known:
                say = f"its options are {', '.join(known)}" if known else "it has none"
                if name == "hidden":
                    say = "hidden layers belong to model='mlp'"
                raise InputError(f"model {clf.model!r} has no option {brief(name)}", say)
    return options


def check_model(options: Mapping[str, Any], shape: tuple[int, ...], k: int) -> None:
    """Build the model once, to say early what a user's own gets wrong, and what CLPL loses."""
    convex = options["approach"].name == "clpl"
    if isinstance(options["model"], str) and not convex:
        return
    module = build(options["model"], shape, k, seed=0, **options["model_options"])
    if not isinstance(options["model"], str):
        _check_own(module, shape, k)
    layers = dense_layers(module)
    if convex and (layers is None or len(layers) > 1):
        warnings.warn(
            "CLPL is convex in a linear model only; with this one its guarantee is gone",
            UserWarning,
            stacklevel=2,
        )


def _check_own(module: Any, shape: tuple[int, ...], k: int) -> None:
    if not isinstance(module, nn.Module):
        raise InputError(
            f"the model function returned a {type(module).__name__}", "return an nn.Module"
        )
    if not any(True for _ in module.parameters()):
        raise InputError("the model has no parameters", "return an nn.Module with some")
    with torch.no_grad():
        out = module.eval()(torch.zeros(2, *shape))
    if not isinstance(out, torch.Tensor) or out.shape != (2, k):
        found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise InputError(
            f"the model turns (2, {', '.join(map(str, shape))}) into {found}",
            f"return one logit per class, (2, {k})",
        )


#: Called with what is being trained, epochs done, and epochs in all.
Progress: TypeAlias = Callable[[str, int, int], None]


class Data(NamedTuple):
    """What a classifier is trained on."""

    x: Any  # [n, d]: an array or a CSR matrix
    sets: LabelSets
    weight: NDArray[np.float64] | None
    classes: NDArray[Any]
    rate: NDArray[np.float64] | None = None  # where answers made the sets

    @property
    def trial(self) -> Trial:
        """The same for the engine."""
        return Trial(self.sets, weight=self.weight, rate=self.rate)


def used(data: Data) -> Data:
    """Leave out rows that weigh nothing, and those without an answer where answers teach."""
    keep = np.ones(len(data.sets), np.bool_) if data.weight is None else data.weight > 0
    if data.rate is not None:
        keep &= data.sets.sizes > 0
    if keep.all():
        return data
    if not keep.any():
        raise InputError("every row with an answer weighs zero", "give some row a weight")
    rows = np.flatnonzero(keep)
    weight = None if data.weight is None else data.weight[rows]
    rate = None if data.rate is None else data.rate[rows]
    return Data(data.x[rows], data.sets[rows], weight, data.classes, rate)


class Held(NamedTuple):
    """How rows that are held out choose a configuration."""

    criterion: Any
    share: float
    rule: Any
    patience: int | None


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained model and how it came about."""

    module: nn.Module
    fit: GridFit
    found: Search | None

    @property
    def configuration(self) -> dict[str, Any]:
        """What was trained: learning rate, weight decay, options of the loss."""
        return dict(self.fit.configurations[0])

    @property
    def history(self) -> dict[str, NDArray[Any]]:
        """The epochs, and the mean loss of each."""
        return {"epoch": self.fit.epochs, "loss": self.fit.history["loss"][0, 0]}


def train(
    data: Data,
    grid: list[dict[str, Any]],
    held: Held | None,
    *,
    seed: int,
    progress: Progress | None = None,
    **options: Any,
) -> Fitted:
    """Train on all rows; with `held`, first choose a configuration on some of them."""
    options |= {"grid": grid, "seed": seed, "progress": _stages(progress, len(grid), held)}
    if held is None:
        fit, found = fit_grid(data.x, [data.trial], **options), None
    else:
        criterion, share, rule, patience = held
        options |= {"criterion": criterion, "share": share, "rule": rule, "patience": patience}
        found = search(data.x, [data.trial], **options)
        assert found.final is not None
        fit = found.final
    return Fitted(_module(fit), fit, found)


class Course(NamedTuple):
    """Where training stands, so that it can go on."""

    seed: int
    calls: int  # of fit and partial_fit
    optimizer: str
    state: State | None  # None starts the optimizer anew

    @property
    def order(self) -> int:
        """The seed of the next walk over rows: another one for every call."""
        if self.calls == 0:
            return self.seed
        return int(np.random.SeedSequence([self.seed, self.calls]).generate_state(1)[0])


def go_on(
    data: Data,
    configuration: dict[str, Any],
    module: nn.Module | None,
    course: Course,
    **options: Any,
) -> Fitted:
    """Walk once over the rows, from a module and the optimizer's state where there are any."""
    if module is not None:  # one that was loaded has no state to start from
        own = deepcopy(module)
        options |= {"model": lambda *_: own, "model_options": None}
    if course.state is not None and course.optimizer == options["optimizer"]:
        # The order of the rows has a seed of its own for every call, whatever was counted before.
        options["start"] = replace(course.state, epochs=0)
    options |= {"grid": [configuration], "epochs": 1, "seed": course.order}
    fit = fit_grid(data.x, [data.trial], **options)
    return Fitted(_module(fit), fit, None)


def _module(fit: GridFit) -> nn.Module:
    """Return the one model of a fit, in the precision it was trained in; raise if it is lost."""
    weights = {name: value[0, 0].clone() for name, value in fit.weights.items()}
    finite = all(bool(torch.isfinite(value).all()) for value in weights.values())
    if fit.diverged[0, 0] or not finite:
        rate = fit.configurations[0]["learning_rate"]
        raise InputError(
            f"training diverged in epoch {int(fit.diverged[0, 0]) or int(fit.epochs[-1])}",
            f"scale the features, or lower learning_rate (it was {rate:g})",
        )
    module = fit.fresh(0)
    module.load_state_dict(weights, assign=True)
    return module.eval()


def _stages(
    progress: Progress | None, models: int, held: Held | None
) -> Callable[[int, int], None] | None:
    """Name the stages of a search: training starts anew for the refit."""
    if progress is None:
        return None
    names = ["training"]
    if held is not None:
        names = [f"searching {models} configurations", "training the choice on all rows"]
    last = 0

    def call(done: int, total: int) -> None:
        nonlocal last
        if done <= last and len(names) > 1:
            names.pop(0)
        last = done
        progress(names[0], done, total)

    return call


class Judged(NamedTuple):
    """A criterion on the rows that were held out."""

    name: str
    estimate: float
    standard_error: float


def keep(clf: Any, found: Fitted, course: Course) -> None:
    """Keep the model of a fit."""
    clf.module_ = found.module
    clf.configuration_ = found.configuration
    clf.history_ = {"epoch": found.fit.epochs, "loss": found.fit.history["loss"][0, 0]}
    clf.n_iter_ = int(found.fit.epochs[-1])
    clf.record_ = found.fit.record
    clf._course = course
    _forget(clf, "reading_")


def keep_on(clf: Any, found: Fitted, course: Course) -> None:
    """Keep the model of one more walk; what was judged before no longer holds."""
    now = Course(course.seed, course.calls + 1, clf.optimizer, found.fit.state)
    if course.calls == 0:
        keep(clf, found, now)
        return
    history, record, done = clf.history_, clf.record_, clf.n_iter_ + 1
    keep(clf, found, now)
    clf.n_iter_ = done
    clf.history_ = {
        "epoch": np.append(history["epoch"], done),
        "loss": np.append(history["loss"], clf.history_["loss"]),
    }
    both = record["data"] + clf.record_["data"]  # of all rows ever seen, in their order
    clf.record_ |= {"model": record["model"], "epochs": done, "seed": course.seed}
    clf.record_["data"] = sha256(both.encode()).hexdigest()
    keep_search(clf, None)


def keep_search(clf: Any, found: Search | None) -> None:
    """Keep what was tried and how it was judged; without a search there is nothing to keep."""
    _forget(clf, "criterion_", "search_", "search_history_")
    if found is None:
        return
    grid, place = found.grid, int(found.chosen[0])
    clf.criterion_ = Judged(found.criterion.name, *found.estimate)
    columns = {n: np.array([one[n] for one in grid.configurations]) for n in found.configuration}
    clf.search_ = columns | {
        "estimate": found.estimates[0],
        "standard_error": found.errors[0],
        "epochs": grid.stopped[0],
        "diverged": grid.diverged[0],
    }
    name = f"held out/{found.criterion.name}"
    clf.search_history_ = {
        "epoch": grid.epochs,
        "estimate": grid.history[name][0, place],
        "standard_error": grid.errors[name][0, place],
    }


def _forget(clf: Any, *names: str) -> None:
    for name in names:
        if hasattr(clf, name):
            delattr(clf, name)


def printer() -> Progress:
    """Return a function that prints a line for every tenth of a stage."""
    last = ("", -1)

    def call(stage: str, done: int, total: int) -> None:
        nonlocal last
        tenth = (stage, 10 * done // total)
        if tenth != last:
            print(f"{stage}: epoch {done} of {total}")
        last = tenth

    return call


Array = NDArray[np.float64]
