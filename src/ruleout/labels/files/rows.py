"""What all files of names share: settle the class list, look names up, place the first fault."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from ruleout.labels.classes import Classes, ClassName, agree, class_names, shown, unknown
from ruleout.labels.errors import LabelError, brief, nearest
from ruleout.labels.masks import pack_codes
from ruleout.labels.sets import LabelSets

__all__ = [
    "COLUMN",
    "FULL",
    "Row",
    "build",
    "find",
    "join",
    "listed",
    "parse_json",
    "settle",
    "split",
]

COLUMN = "excluded"  # the column that `write` makes and `read` looks for
FULL = "every class is ruled out"

Row: TypeAlias = tuple[int | None, list[Any]]  # the line where a text file has one, and the names


def settle(inside: Any, wanted: Classes | None) -> tuple[ClassName, ...]:
    """Return the class list of the file, or the one asked for; the two must not differ."""
    if inside is None:
        if wanted is None:
            raise LabelError(
                "the file does not say what the classes are",
                "pass classes=[...] with every class name",
            )
        return class_names(wanted)
    if not isinstance(inside, list):
        raise LabelError("the file's class list is not a list", "mend it, or write the file again")
    found = class_names(inside)
    return found if wanted is None else agree(found, wanted)


def build(
    rows: Iterable[Row], classes: tuple[ClassName, ...], column: str, unlabelled: bool
) -> LabelSets:
    """Build label sets from rows of names."""
    names: dict[Any, int] = {name: code for code, name in enumerate(classes)}
    if isinstance(classes[0], int):  # in text files whole numbers are text
        names.update((str(name), code) for code, name in enumerate(classes))

    def codes() -> Iterator[list[int]]:
        for row, (line, labels) in enumerate(rows):
            where = {"row": row, "line": line, "column": column}
            found = [names.get(label, -1) if type(label) is str else -1 for label in labels]
            if -1 in found:  # whole numbers, spaces around names, or a fault
                found = [_lookup(label, names, classes, where) for label in labels]
            _check(found, classes, unlabelled, where)
            yield found

    return LabelSets._trusted(pack_codes(codes(), classes), classes)


def _lookup(
    label: Any, names: dict[Any, int], classes: tuple[ClassName, ...], where: dict[str, Any]
) -> int:
    code = None
    if isinstance(label, str):
        code = names.get(label, names.get(label.strip()))
    elif isinstance(label, int) and not isinstance(label, bool):
        code = names.get(label)
    if code is None:
        error = unknown(label, classes, **where)
        if isinstance(label, str) and any(
            part.strip() in names for part in re.split("[,;/]", label)
        ):
            error.remedy = "separate class names by |"
        raise error
    return code


def _check(
    found: list[int], classes: tuple[ClassName, ...], unlabelled: bool, where: dict[str, Any]
) -> None:
    if len(set(found)) < len(found):
        twice = next(code for code in found if found.count(code) > 1)
        raise LabelError(
            f"class {brief(classes[twice])} stands twice", "name each class once", **where
        )
    if len(found) == len(classes):
        raise LabelError(FULL, "leave at least one class as a candidate", **where)
    if not found and not unlabelled:
        raise LabelError(
            "nothing is ruled out",
            "rule out at least one class, drop the row, or pass unlabelled=True",
            **where,
        )


def find(column: str, header: Sequence[str]) -> int:
    """Return where `column` stands in the header."""
    if column in header:
        if header.count(column) > 1:
            raise LabelError(f"column {column!r} stands twice", "name each column once")
        return header.index(column)
    if len(header) == 1 and column in re.split("[;\t]", header[0]):
        raise LabelError(f"the header is {brief(header[0])}", "separate columns by commas")
    say = f"the columns are {shown(header)}" if header else "the file is empty"
    raise LabelError(f"there is no column {column!r}", nearest(column, header, say))


def split(cell: str) -> list[str]:
    r"""Split ``cat|dog`` into names; ``\|`` and ``\\`` stand for the characters themselves."""
    if not cell.strip():
        return []
    if "\\" not in cell:
        return cell.split("|")
    names, name, letters = [], "", iter(cell)
    for letter in letters:
        if letter == "|":
            names.append(name)
            name = ""
        else:
            name += next(letters, "\\") if letter == "\\" else letter
    return [*names, name]


def join(names: Iterable[ClassName]) -> str:
    """Write names as one cell, the way :func:`split` reads it."""
    return "|".join(str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names)


def parse_json(text: str | bytes, **where: Any) -> Any:
    """Read JSON, or say where it is broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise LabelError("this is not valid JSON", "mend or remove it", **where) from None


def listed(value: Any, **where: Any) -> list[Any]:
    """Return `value` if it is a list."""
    if not isinstance(value, list):
        found = "nothing" if value is None else brief(value)
        raise LabelError(f"the row holds {found}, not a list", "give class names", **where)
    return value
