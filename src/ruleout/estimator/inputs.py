"""What X, y and weights may be: rows of finite numbers, what is known of each, what each weighs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ruleout.datasets.tables import Request, Scaling
from ruleout.datasets.text_columns import add_words
from ruleout.labels import Answers, LabelSets
from ruleout.labels.classes import is_missing, plain, shown, unknown
from ruleout.labels.errors import InputError, nearest
from ruleout.labels.origins import Evidence, says
from ruleout.training import Trial
from ruleout.training.class_weights import weigh_rows
from ruleout.training.validation import first_not_finite

Array = NDArray[np.float64]


class TrainingData(NamedTuple):
    x: Any  # [n, d]: an array or a CSR matrix
    trial: Trial  # what is known of its rows
    classes: NDArray[Any]  # [k], of any type that scikit-learn takes
    rows: NDArray[np.intp] | None = None  # those of X that teach; None: all
    scaling: Scaling | None = None  # that x has gone through

    def weighted(
        self, sample_weight: Any, class_weight: Any, unlabelled: bool = False
    ) -> TrainingData:
        """Weigh rows; leave out those that weigh nothing, and those about which nothing is known.

        With `unlabelled` the latter stay.
        """
        sets, rate, weight = self.trial.sets, self.trial.rate, None
        said = self.trial.evidence
        told = says(sets if said is None else said)
        keep = told | unlabelled
        if sample_weight is not None:
            weight = _checked_weights(sample_weight, len(sets))
        if class_weight is not None:
            weight = weigh_rows(sets, self.classes.tolist(), class_weight, weight, rate)
        if weight is not None:
            keep = keep & (weight > 0)
        trial = replace(self.trial, weight=weight)
        if keep.all():
            return self._replace(trial=trial)
        if not (keep & told).any():
            problem, remedy = "every row with an answer weighs zero", "give some row a weight"
            if said is None and not told.any():
                problem, remedy = "y rules nothing out", "give at least one row a ruled-out class"
            if said is not None and not told.any():
                problem = "by the error rates every answer is a guess: none tells classes apart"
                remedy = "see whether gold questions and error rates are right, and ask again"
            raise InputError(problem, remedy)
        rows = np.flatnonzero(keep)
        return TrainingData(self.x[rows], replace(trial.part(rows), rows=None), self.classes, rows)


def pick_columns(frame: Any, reading: Mapping[str, Any]) -> Any:
    """Return the columns a model was trained on, text as numbers; nameless ones as they are."""
    arrow = hasattr(frame, "column_names")
    own = list(frame.column_names if arrow else frame.columns)
    names, ask = list(reading["features"]), Request(reading=reading)
    if not all(isinstance(name, str) for name in own):
        return frame
    for name in (*names, *ask.texts):
        if name not in own:
            say = nearest(name, own, f"its columns are {shown(own)}")
            raise InputError(f"X lacks the column {name!r}, which the model was trained on", say)
    picked = np.asarray(frame.select(names)) if arrow else frame[names].to_numpy()
    return add_words(picked, frame, ask.texts, ask.words)[0] if ask.texts else picked


def check_finite(x: Any, names: Sequence[Any] | None = None) -> None:
    """Raise where a number is not finite, naming its row and column."""
    bad = first_not_finite(x)
    if bad is None:
        return
    row, column, value = bad
    where = column if names is None else str(names[column])
    problem, remedy = "X holds NaN", "fill in or drop missing values"
    if not np.isnan(value):
        problem = "X holds infinity (inf) or a number beyond its precision"
        remedy = "fix it, scale the features, or use precision='float64'"
        if x.dtype == np.float64:
            remedy = "fix it, or drop the row"
    raise InputError(problem, remedy, row=row, column=where)


def per_row(y: Any, n: int) -> tuple[Any, NDArray[np.float64] | None]:
    """Combine answers into what they rule out for each of n rows, with the rates; of others none.

    A row without answers rules nothing out. Of evidence its sets are returned.
    """
    if isinstance(y, Evidence):
        return y.sets, None
    if not isinstance(y, Answers):
        return y, None
    items, sets, rates = y.per_item()
    if len(items) and not 0 <= items[0] <= items[-1] < n:
        item = items[0] if items[0] < 0 else items[-1]
        raise InputError(f"an answer is about row {item}, but X has {n} rows", "number them from 0")
    packed, rate = np.zeros((n, sets.packed.shape[1]), np.uint8), np.zeros(n)
    packed[items], rate[items] = sets.packed, rates
    return LabelSets.from_packed(packed, sets.classes, unlabelled=True), rate


def holds_sets(y: Any) -> bool:
    """Tell sets, one row of 0 and 1 each, from one label per row."""
    if isinstance(y, (Answers, Evidence, LabelSets)) or hasattr(y, "tocsr"):
        return True
    if isinstance(y, (list, tuple)):
        if len(y) and all(isinstance(one, (list, tuple)) and len(one) == 1 for one in y):
            say = "give labels as [3, 5, …], or what is ruled out by LabelSets.from_lists"
            raise InputError("y holds a list of one class for each row", say)
        return any(isinstance(one, (list, tuple, np.ndarray)) and len(one) != 1 for one in y)
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) > 1 and shape[1:] != (1,)


def target(y: Any, classes: Any = None, *, whole: bool = True) -> tuple[LabelSets, NDArray[Any]]:
    """Return what was ruled out, and the classes; `whole` says that every class occurs in y."""
    if holds_sets(y):
        sets = _as_sets(y, classes)
        if not sets.sizes.any():
            raise InputError("y rules nothing out", "give at least one row with a ruled-out class")
        return sets, np.array(sets.classes)
    if classes is None and not whole:
        problem = "the first call of partial_fit cannot know all classes from labels"
        raise InputError(problem, "give classes=[...]")
    for row, one in enumerate(y) if y.dtype == object else ():
        if is_missing(one) or isinstance(one, list | tuple | Set):
            raise unknown(one, (), row=row, column="y")
    if classes is None:
        if y.dtype == object and len({isinstance(one, str) for one in y}) > 1:
            raise InputError("y mixes text and numbers", "give classes of one type")
        check_classification_targets(y)
    names = np.unique(y) if classes is None else class_array(classes)
    _check_single(y, () if classes is None else names.tolist())
    if len(names) < 2:
        say = "name all classes, at least two, in classes=[...]"
        raise InputError(f"y holds one class, {names[0]!s}", say)
    return LabelSets.from_labels(positions(y, names), len(names)), names


def _check_single(y: NDArray[Any], classes: Collection[Any]) -> None:
    """Raise where labels list several classes: "a|b", unless it is the name of a class."""
    if y.dtype.kind not in "OUT":
        return
    known = {*classes}
    for label in np.unique(y).tolist():
        if isinstance(label, str) and "|" in label and label not in known:
            problem = f"{label!r} lists several classes, and y holds one label per row"
            sets = "LabelSets.from_lists([t.split('|') for t in y], classes)"
            say, row = f"where they are ruled out, give {sets}", int(np.argmax(y == label))
            raise InputError(problem, say, row=row, column="y")


def known_target(y: Any, classes: NDArray[Any]) -> LabelSets:
    if not holds_sets(y):
        return target(y, classes)[0]
    named = classes.dtype.kind in "iuUO"
    return _as_sets(y, classes.tolist() if named else len(classes))


def check_rows(n: int, y: Any, what: str = "set") -> None:
    rows = y.shape[0] if hasattr(y, "shape") else len(y)
    if rows != n:
        raise InputError(f"X has {n} rows but y has {rows}", f"give one {what} for each row")


def _as_sets(y: Any, classes: Any = None) -> LabelSets:
    """Return label sets; warn if a bare table looks like one-hot labels."""
    sets = LabelSets(y, classes, unlabelled=isinstance(y, LabelSets))
    if not isinstance(y, LabelSets) and len(sets) and (sets.sizes == 1).all():
        say = (
            "every row of y holds exactly one 1, which is read as one ruled-out class per row; "
            "if 1 marks the true class, give 1-D labels instead, and if it does not, "
            "LabelSets.from_single says so without this warning"
        )
        warnings.warn(say, UserWarning, stacklevel=outside())
    return sets


def outside() -> int:
    """Return the `stacklevel` of the caller outside the house."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ruleout."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]  # None ends the loop
    return level


def class_array(classes: Any) -> NDArray[Any]:
    """Return class names as an array, checked; a number k means 0 … k-1."""
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        return np.arange(int(classes))
    names = np.asarray(classes)
    if names.ndim != 1 or len(names) < 2 or len(np.unique(names)) < len(names):
        problem = f"classes is {shown(np.ravel(names).tolist())}"
        raise InputError(problem, "list every class once, at least two")
    return names


def positions(y: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    table = {name: place for place, name in enumerate(names.tolist())}
    values, inverse = np.unique(y, return_inverse=True)
    codes = np.array([table.get(value, -1) for value in values.tolist()], np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes[inverse] < 0))
        raise unknown(plain(y[row]), tuple(names.tolist()), row=row, column="y")
    return np.asarray(codes[inverse])


def _checked_weights(sample_weight: Any, n: int) -> Array:
    weight = np.asarray(sample_weight, np.float64)
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise InputError(f"sample_weight has shape {weight.shape}", f"give {n}, one for each row")
    if not np.isfinite(weight).all() or (weight < 0).any():
        row = int(np.argmax(~(np.isfinite(weight) & (weight >= 0))))
        raise InputError(f"sample_weight is {weight[row]}", "give numbers, zero or above", row=row)
    if not weight.any():
        raise InputError("every sample_weight is zero", "give at least one row a weight")
    return weight
