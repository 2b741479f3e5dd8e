"""Class names: what they may be, and how a label finds its position among them."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import LabelError, brief, nearest

__all__ = ["ClassName", "Classes", "class_names", "encode", "positions", "shown"]

ClassName: TypeAlias = str | int
Classes: TypeAlias = int | Sequence[ClassName] | NDArray[Any]


def class_names(classes: Classes) -> tuple[ClassName, ...]:
    """Return the class names: k whole numbers for an int, else the names themselves, checked.

    Examples
    --------
    >>> class_names(3)
    (0, 1, 2)
    >>> class_names(["cat", "dog"])
    ('cat', 'dog')
    """
    if isinstance(classes, numbers.Integral) and not isinstance(classes, bool):
        names: tuple[ClassName, ...] = tuple(range(int(classes)))
    elif isinstance(classes, str) or not isinstance(classes, Iterable):
        raise LabelError(
            f"classes is {brief(classes)}", "give the number of classes or a list of class names"
        )
    else:
        names = tuple(_name(value, place) for place, value in enumerate(classes))
    if len(names) < 2:
        raise LabelError(f"{len(names)} class(es) given", "at least two classes are needed")
    if len({type(name) for name in names}) > 1:
        raise LabelError(
            "class names mix text and whole numbers", "use all of one kind, for example all text"
        )
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise LabelError(
            f"class name {brief(twice)} stands twice in classes", "name each class once"
        )
    return names


def _name(value: object, place: int) -> ClassName:
    if isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    if not isinstance(value, str):
        raise LabelError(
            f"class {place} is {brief(value)}", "a class name is a text or a whole number"
        )
    name = str(value)
    if not name.strip():
        raise LabelError(f"class {place} is {brief(name)}, a blank", "give every class a name")
    if "\0" in name or any("\ud800" <= letter <= "\udfff" for letter in name):
        raise LabelError(
            f"class {place} is {brief(name)}, which files and NumPy cannot hold",
            "leave out NUL characters and lone surrogates",
        )
    return name


def positions(classes: tuple[ClassName, ...]) -> dict[object, int]:
    """Map each label a user may write to its position: names, and positions of text names."""
    table: dict[object, int] = {}
    if isinstance(classes[0], str):
        table.update((place, place) for place in range(len(classes)))
    table.update((name, place) for place, name in enumerate(classes))
    return table


def shown(classes: Sequence[ClassName], most: int = 8) -> str:
    """Class names for a message, shortened when there are many."""
    names = ", ".join(brief(name) for name in classes[:most])
    return names if len(classes) <= most else f"{names}, … ({len(classes)} classes)"


def unknown(label: object, classes: tuple[ClassName, ...], **where: Any) -> LabelError:
    """Build the error for a label that names no class."""
    say = f"the classes are {shown(classes)}"
    remedy = nearest(label, classes, say) if isinstance(label, str) else say
    return LabelError(f"unknown class {brief(label)}", remedy, **where)


def encode(labels: Any, classes: tuple[ClassName, ...], what: str) -> NDArray[np.intp]:
    """Turn one label per row into positions among `classes`.

    A label is a class name; whole numbers count as positions when the names are text.
    """
    values = np.asarray(labels)
    if values.ndim != 1:
        raise LabelError(
            f"{what} has {values.ndim} dimensions instead of one",
            "give one label per row; sets of labels go into LabelSets(...) or from_lists",
        )
    if values.dtype.kind == "f":
        values = _whole(values, what)
    table = positions(classes)
    if values.dtype.kind in "iuU":
        distinct, inverse = np.unique(values, return_inverse=True)
        codes = np.array([table.get(value, -1) for value in distinct.tolist()], np.intp)
        found = codes[inverse] if len(values) else np.empty(0, np.intp)
    else:
        found = np.array([_position(value, table) for value in values.tolist()], np.intp)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise unknown(values[row : row + 1].tolist()[0], classes, row=row, column=what)
    return found


def _position(label: object, table: dict[object, int]) -> int:
    if isinstance(label, bool):
        return -1
    try:
        return table.get(label, -1)
    except TypeError:  # an unhashable label names no class
        return -1


def _whole(values: NDArray[Any], what: str) -> NDArray[Any]:
    """Take 3.0 for 3, since tables often come as floats; refuse 3.5 and NaN."""
    bad = ~np.isfinite(values) | (values != np.floor(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise LabelError(
            f"label {float(values[row])!r} is not a whole number",
            "fill in or drop such rows, or use class names",
            row=row,
            column=what,
        )
    return values.astype(np.int64)
