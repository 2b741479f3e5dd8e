"""What y may be: label sets, a table of 0 and 1, answers, or one ordinary label per row."""

from __future__ import annotations

import sys
import warnings
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from ruleout.labels import Answers, LabelSets
from ruleout.labels.classes import plain, shown, unknown
from ruleout.labels.errors import InputError


class Target(NamedTuple):
    """What was ruled out, the classes as the user names them, and of answers the rates."""

    sets: LabelSets
    classes: NDArray[Any]  # [k], of any type that scikit-learn takes
    rate: NDArray[np.float64] | None = None


def per_row(y: Any, n: int) -> tuple[Any, NDArray[np.float64] | None]:
    """Combine answers into what they rule out for each of n rows, with the rates.

    A row without answers rules nothing out. Any other y is returned as it is, without rates.

    >>> asked = LabelSets([[1, 1, 0, 0], [1, 0, 1, 0]])
    >>> answers = Answers(asked, np.array([True, False]), np.array([2, 2]))
    >>> sets, rates = per_row(answers, 3)
    >>> sets.to_lists(), rates
    ([[], [], [0, 2, 3]], array([0.        , 0.        , 0.11111111]))
    """
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
    """Tell sets, one row of 0 and 1 each, from one label per row.

    >>> holds_sets([[1, 0, 0], [0, 1, 1]]), holds_sets([2, 0]), holds_sets([[2], [0]])
    (True, False, False)
    """
    if isinstance(y, (Answers, LabelSets)) or hasattr(y, "tocsr"):
        return True
    if isinstance(y, (list, tuple)):
        return len(y) > 0 and isinstance(y[0], (list, tuple, np.ndarray)) and len(y[0]) != 1
    shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    return len(shape) > 1 and shape[1:] != (1,)


def target(y: Any, classes: Any = None, *, whole: bool = True) -> Target:
    """Read y, whatever it is; of ordinary labels, all other classes are ruled out.

    Parameters
    ----------
    y
        Sets as :func:`holds_sets` tells them, or a 1-D array.
    classes
        All class names in their order, or how many there are; None takes those that y brings.
    whole
        Whether this is all of y, so that every class occurs in it.
    """
    if holds_sets(y):
        sets = _as_sets(y, classes)
        if not sets.sizes.any():
            raise InputError("y rules nothing out", "give at least one row with a ruled-out class")
        return Target(sets, np.array(sets.classes))
    if classes is None and not whole:
        raise InputError(
            "the first call of partial_fit cannot know all classes from labels",
            "give classes=[...]",
        )
    if classes is None:
        check_classification_targets(y)
    names = np.unique(y) if classes is None else class_array(classes)
    if len(names) < 2:
        raise InputError(
            f"y holds one class, {names[0]!s}", "name all classes, at least two, in classes=[...]"
        )
    return Target(LabelSets.from_labels(positions(y, names), len(names)), names)


def known_target(y: Any, classes: NDArray[Any]) -> LabelSets:
    """Read y, whatever it is, for a model whose classes are known."""
    if not holds_sets(y):
        return target(y, classes).sets
    named = classes.dtype.kind in "iuUO"
    return _as_sets(y, classes.tolist() if named else len(classes))


def check_rows(n: int, y: Any, what: str = "set") -> None:
    """Raise unless y has n rows."""
    rows = y.shape[0] if hasattr(y, "shape") else len(y)
    if rows != n:
        raise InputError(f"X has {n} rows but y has {rows}", f"give one {what} for each row")


def _as_sets(y: Any, classes: Any = None) -> LabelSets:
    """Return label sets; warn if a bare table looks like one-hot labels."""
    sets = LabelSets(y, classes, unlabelled=isinstance(y, LabelSets))
    if not isinstance(y, LabelSets) and len(sets) and (sets.sizes == 1).all():
        warnings.warn(
            "every row of y holds exactly one 1, which is read as one ruled-out class per row; "
            "if 1 marks the true class, give 1-D labels instead, and if it does not, "
            "LabelSets.from_single says so without this warning",
            UserWarning,
            stacklevel=_outside(),
        )
    return sets


def _outside() -> int:
    """Return the `stacklevel` of the caller outside the house."""
    frame, level = sys._getframe(1), 1
    while frame is not None and frame.f_globals.get("__name__", "").startswith("ruleout."):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]  # None ends the loop
    return level


def class_array(classes: Any) -> NDArray[Any]:
    """Return class names as an array, checked; a number k means 0 … k-1.

    >>> class_array(3)
    array([0, 1, 2])
    """
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        return np.arange(int(classes))
    names = np.asarray(classes)
    if names.ndim != 1 or len(names) < 2 or len(np.unique(names)) < len(names):
        raise InputError(
            f"classes is {shown(np.ravel(names).tolist())}",
            "list every class once, at least two",
        )
    return names


def positions(y: NDArray[Any], names: NDArray[Any]) -> NDArray[np.intp]:
    """Return where each label stands among the class names."""
    table = {name: place for place, name in enumerate(names.tolist())}
    values, inverse = np.unique(y, return_inverse=True)
    codes = np.array([table.get(value, -1) for value in values.tolist()], np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes[inverse] < 0))
        raise unknown(plain(y[row]), tuple(names.tolist()), row=row, column="y")
    return np.asarray(codes[inverse])
