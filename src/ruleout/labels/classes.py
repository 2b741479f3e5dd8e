"""Names of classes and of all that is registered: what they may be, and how one is found."""

import numbers
import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import LabelError, brief, nearest

ClassName: TypeAlias = str | int
Classes: TypeAlias = int | Sequence[ClassName] | NDArray[Any]
T = TypeVar("T")

_MISSING = ("na", "n/a", "nan", "none", "null", "<na>", "nat")  # what programs write for unknown
_KINDS: dict[type, str] = {str: "text", int: "whole numbers", float: "numbers"}
_MOST = 1_000_000  # classes: far more than anybody has, and few enough to list


def class_names(classes: Classes) -> tuple[ClassName, ...]:
    """Return the class names: k whole numbers for an int, else the names themselves, checked."""
    if _is_whole(classes):
        check_count(int(classes))  # type: ignore[arg-type]  # an int, as the line above says
        return tuple(range(int(classes)))  # type: ignore[arg-type]  # the same
    unordered = isinstance(classes, (str, bytes, bytearray, Set, Mapping))
    if unordered or not isinstance(classes, Iterable) or getattr(classes, "ndim", 1) != 1:
        remedy = "give the number of classes or a list of class names; the order matters"
        raise LabelError(f"classes is {brief(classes)}", remedy)
    names = tuple(_name(value, place) for place, value in enumerate(classes))
    check_count(len(names))
    if len({type(name) for name in names}) > 1:
        problem = "class names mix text and whole numbers"
        raise LabelError(problem, "use all of one kind, for example all text")
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        problem = f"class name {brief(twice)} appears twice in classes"
        raise LabelError(problem, "name each class once")
    return names


def check_count(k: int) -> None:
    if k < 2:
        raise LabelError(f"{k} class(es) given", "at least two classes are needed")
    if k > _MOST:
        raise LabelError(f"{brief(k)} classes given", f"at most {_MOST:,} are possible")


def _is_whole(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, (bool, np.bool_))


def _name(value: object, place: int) -> ClassName:
    if _is_whole(value):
        number = int(value)  # type: ignore[call-overload]  # a whole number, as the line above says
        if abs(number) >= 2**63:
            raise LabelError(f"class {place} is {brief(number)}", "use numbers below 2^63, or text")
        return int(number)
    if not isinstance(value, str):
        problem = f"class {place} is {brief(value)}"
        raise LabelError(problem, "a class name is a text or a whole number")
    name = str(value)
    if not name.strip():
        raise LabelError(f"class {place} is {brief(name)}, a blank", "give every class a name")
    if not storable(name):
        problem = f"class {place} is {brief(name)}, which files and NumPy cannot hold"
        raise LabelError(problem, "leave out NUL characters and lone surrogates")
    return name


def storable(text: str) -> bool:
    """Tell whether a database can hold the text: no NUL, no half of a surrogate pair."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


def agree(found: tuple[ClassName, ...], wanted: Classes) -> tuple[ClassName, ...]:
    """Return `found` if the caller asked for the same classes, or for as many."""
    if _is_whole(wanted) and wanted == len(found):
        return found
    names = class_names(wanted)
    if found != names:
        problem = f"the classes are {shown(found)}, not {shown(names)}"
        raise LabelError(problem, "use the same class names in the same order")
    return found


def positions(classes: tuple[ClassName, ...]) -> dict[object, int]:
    """Map each label a user may write to its position: names, and positions of text names."""
    table: dict[object, int] = {}
    if isinstance(classes[0], str):
        table.update((place, place) for place in range(len(classes)))
    table.update((name, place) for place, name in enumerate(classes))
    return table


def position(label: object, table: dict[object, int]) -> int:
    """Return the position of a label, -1 if it names no class."""
    label = plain(label)
    known = isinstance(label, (str, int, float)) and not isinstance(label, bool)
    return table.get(label, -1) if known else -1


def shown(classes: Sequence[ClassName], most: int = 8) -> str:
    """Names of classes, columns or items for a message, shortened when there are many."""
    names = ", ".join(brief(name) for name in classes[:most])
    return names if len(classes) <= most else f"{names}, … ({len(classes)} in all)"


def look_alikes(classes: Sequence[ClassName]) -> list[str]:
    """Say which class names are probably one class, or mean that none is known."""
    alike: dict[str, list[str]] = {}
    for name in (name for name in classes if isinstance(name, str)):
        folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
        alike.setdefault("" if folded in _MISSING else folded, []).append(name)
    notes = []
    for folded, names in alike.items():
        same = len({unicodedata.normalize("NFC", name) for name in names}) < len(names)
        listed = ", ".join(map(ascii if same else brief, names))
        if not folded:
            notes.append(f"The classes {listed} look like missing values; if so, drop those rows.")
        elif len(names) > 1:
            notes.append(
                f"The classes {listed} differ only in how they are written; if they are one class, "
                "write it the same way everywhere."
            )
    return notes


def unknown(label: object, classes: tuple[ClassName, ...], **where: Any) -> LabelError:
    say, text = f"the classes are {shown(classes)}", brief(label)
    remedy = nearest(label, classes, say) if isinstance(label, str) else say
    if is_missing(label):
        remedy = "fill in or drop missing labels"
    elif isinstance(label, (list, tuple, Set)):
        remedy = "give one label; sets of labels go into LabelSets(...) or from_lists"
    elif text.strip("'") in map(str, classes) and type(label) is not type(classes[0]):
        own, its = (_KINDS.get(type(one), type(one).__name__) for one in (classes[0], label))
        remedy = f"the classes are {own}, and {where.get('column', 'this')} holds {its}: give {own}"
    return LabelError(f"unknown class {text}", remedy, **where)


def whole(name: Any, names: Container[Any] = ()) -> Any:
    """Return ``4`` of ``4.0``, which tables with empty cells make of it, unless it is a name."""
    if isinstance(name, float):
        return int(name) if name.is_integer() else name
    if isinstance(name, str) and name not in names and re.fullmatch(r"-?\d+\.0+", name):
        return name.partition(".")[0]
    return name


def unknown_name(what: str, name: object, known: Iterable[object], many: str = "") -> ValueError:
    """Return the error of a name that is not known: with the nearest name, or with all of them."""
    names = [str(one) for one in known]
    say = f"the {many or f'{what}s'} are {', '.join(names)}"
    return ValueError(f"unknown {what} {brief(name)}; {nearest(name, names, say)}")


def find_name(what: str, name: Any, table: Mapping[str, T], many: str = "") -> T:
    """Return the entry of that name; raise :func:`unknown_name` where there is none."""
    try:
        return table[name]
    except (KeyError, TypeError):  # what is no name may not be hashable
        raise unknown_name(what, name, table, many) from None


def encode(labels: Any, classes: tuple[ClassName, ...], what: str) -> NDArray[np.intp]:
    """Turn one label per row into positions; whole numbers are such when the names are text."""
    values = to_array(labels, what, keep_types=True)
    if values.ndim != 1:
        remedy = "give one label per row; sets of labels go into LabelSets(...) or from_lists"
        raise LabelError(f"{what} has {values.ndim} dimensions instead of one", remedy)
    if values.dtype.kind not in "iufUO":
        problem = f"{what} is of type {values.dtype}"
        raise LabelError(problem, "give class names or whole numbers, one per row")
    table = positions(classes)
    if values.dtype.kind == "O":
        found = np.array([position(value, table) for value in values], np.intp)
    else:
        distinct, inverse = np.unique(values, return_inverse=True)
        codes = np.array([position(value, table) for value in distinct], np.intp)
        found = codes[inverse] if len(values) else np.empty(0, np.intp)
    if (found < 0).any():
        row = int(np.argmax(found < 0))
        raise unknown(plain(values[row]), classes, row=row, column=what)
    return found


def codes_of(rows: Iterable[Any], classes: tuple[ClassName, ...]) -> Iterator[list[int]]:
    """Turn each row of labels into positions among `classes`, in the order given."""
    table = positions(classes)
    if not isinstance(rows, Iterable):
        raise LabelError(f"expected lists of class names, got {brief(rows)}", "give one per row")
    for row, labels in enumerate(rows):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            remedy = "give a list of class names per row; for one label per row use from_single"
            raise LabelError(f"the row is {brief(labels)}, not a list", remedy, row=row)
        codes = [
            table.get(label, -1) if type(label) in (str, int) else position(label, table)
            for label in labels
        ]
        if -1 in codes:
            label = next(label for label in labels if position(label, table) < 0)
            raise unknown(plain(label), classes, row=row)
        yield codes


def to_array(source: Any, what: str, *, keep_types: bool = False) -> NDArray[Any]:
    """Return an array, or say in our words what NumPy, torch or pandas would say in theirs.

    With `keep_types` a list is not made uniform: NumPy would turn ``["cat", 1]`` into two texts.
    """
    if np.ma.is_masked(source):
        raise LabelError(f"{what} has masked values", "fill them in or drop their rows")
    try:
        if keep_types and isinstance(source, (list, tuple)):
            return np.fromiter(source, object, len(source))
        return np.asarray(source)
    except MemoryError:
        raise
    except Exception as error:
        reason = str(error).split("\n")[0]
        problem = f"{what} cannot be read as an array ({brief(reason)})"
        raise LabelError(problem, "give a NumPy array or a list") from None


def plain(value: Any) -> Any:
    """Unwrap scalars of NumPy, torch and Arrow; leave everything else as it is."""
    if isinstance(value, np.generic) or getattr(value, "shape", None) == ():
        return value.item()
    return value.as_py() if hasattr(value, "as_py") else value


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA, whose comparisons cannot be trusted."""
    nan = isinstance(value, float) and value != value
    return value is None or nan or type(value).__name__ in ("NAType", "NaTType")
