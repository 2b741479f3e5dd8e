"""`RuleOutClassifier`: the scikit-learn face."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from ruleout.estimator.features import check_x_y
from ruleout.estimator.fitting import Course, Data, Progress, go_on, train, used
from ruleout.estimator.outcome import keep, keep_on, keep_search, printer
from ruleout.estimator.prediction import Predicting
from ruleout.estimator.settings import (
    base_of,
    check_model,
    engine_options,
    epochs_of,
    grid_of,
    held_of,
    seed_of,
)
from ruleout.estimator.targets import Target, class_array, known_target, target
from ruleout.estimator.weights import row_weights
from ruleout.labels.errors import InputError

__all__ = ["RuleOutClassifier"]


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
        from ruleout.estimator.folder import save

        save(self, path, getattr(self, "reading_", {}) if reading is None else reading)

    def export(self, path: str | Path) -> None:
        """Write an ONNX file that turns rows into probabilities; class names are in its metadata.

        The input ``x`` is float32, ``[n, d]`` or ``[n, channels, h, w]``, with any n; the output is
        called ``probabilities``. Needs ``pip install 'ruleout[export]'``.
        """
        from ruleout.estimator.exporting import export

        export(self, path)
