"""From cells of names to label sets, true labels, and the class list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ruleout.datasets.errors import DataError
from ruleout.datasets.tables.columns import Cells
from ruleout.datasets.tables.request import Request
from ruleout.labels.classes import ClassName, class_names, shown, unknown
from ruleout.labels.errors import LabelError, brief
from ruleout.labels.files.rows import FULL, Row, build, listed, settle, split
from ruleout.labels.sets import LabelSets

__all__ = ["guess_note", "labelled", "row_names"]


def labelled(
    cells: dict[str, Cells], inside: Any, ask: Request
) -> tuple[LabelSets | None, NDArray[Any] | None, tuple[ClassName, ...] | None, list[str]]:
    """Return what was asked for: sets, labels, their classes, and notes about them."""
    if not ask.named:
        return None, None, None, []
    guessed = inside is None and ask.classes is None
    classes = _seen(cells, ask) if guessed else settle(inside, ask.classes)
    sets = labels = None
    if ask.excluded is not None:
        try:
            sets = _sets(cells[ask.excluded], classes, ask.excluded, ask.unlabelled)
        except LabelError as error:
            if guessed and error.problem == FULL:
                error.remedy = "if there are more classes, name them all with --classes"
            raise
    if ask.label is not None:
        labels = _labels(cells[ask.label], classes, ask.label)
    return sets, labels, classes, [guess_note(classes)] if guessed else []


def row_names(cells: Cells, column: str) -> tuple[str, ...]:
    """Return the names of the rows as text; each stands once."""
    seen: dict[str, None] = {}
    for row, cell in enumerate(cells if isinstance(cells, list) else cells.to_pylist()):
        name = "" if cell is None else str(cell)
        if not name or name in seen:
            problem = f"the name {brief(name)} stands twice" if name else "the name is empty"
            raise DataError(problem, "give every row a name of its own", row=row, column=column)
        seen[name] = None
    return tuple(seen)


def guess_note(classes: tuple[ClassName, ...]) -> str:
    """Say that the class list is only what was seen."""
    return (
        f"The classes are those seen in the data, {shown(classes)}: a class that never occurs "
        "there is missing. Name all with --classes."
    )


def _seen(cells: dict[str, Cells], ask: Request) -> tuple[ClassName, ...]:
    """Sort the names that occur; names that are all whole numbers become such."""
    names: set[str] = set()
    if ask.excluded is not None:
        for _, row in _rows(_distinct(cells[ask.excluded]), ask.excluded, True):
            names.update(str(name).strip() for name in row if _is_name(name))
        _check_separator(names)
    if ask.label is not None:
        labels = _distinct(cells[ask.label])
        names.update(str(name).strip() for name in map(_plain, labels) if _is_name(name))
    names.discard("")
    if len(names) < 2:
        raise DataError(
            f"{len(names)} class name(s) occur in the data",
            "name all classes with classes=[...] (--classes cat,dog,bird)",
            column=" and ".join(ask.named),
        )
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", name) for name in names):
        return class_names(sorted(int(name) for name in names))
    return class_names(sorted(names))


def _check_separator(names: set[str]) -> None:
    """Raise if names look like lists that are separated by something else than ``|``."""
    parts = {name: [part.strip() for part in re.split("[,;]", name)] for name in names}
    times = Counter(part for split_up in parts.values() for part in set(split_up))
    for name in sorted(names):
        if len(parts[name]) > 1 and any(times[part] > 1 for part in parts[name] if part):
            raise DataError(
                f"{brief(name)} looks like several class names",
                "separate class names by |, or name all classes with classes=[...]",
            )


def _is_name(name: object) -> bool:
    return isinstance(name, (str, int)) and not isinstance(name, bool)


def _distinct(cells: Cells) -> list[Any]:
    return list(cells.unique().to_pylist()) if isinstance(cells, pa.ChunkedArray) else cells


def _rows(cells: Iterable[Any], column: str, unlabelled: bool) -> Iterator[Row]:
    for row, cell in enumerate(cells):
        if isinstance(cell, str):
            yield None, split(cell)
        elif cell is None and unlabelled:
            yield None, []
        elif isinstance(cell, int) and not isinstance(cell, bool):
            yield None, [cell]
        else:
            yield None, listed(cell, row=row, column=column)


def _sets(cells: Cells, classes: tuple[ClassName, ...], column: str, unlabelled: bool) -> LabelSets:
    """Build the sets; equal cells of text are read once."""
    if isinstance(cells, pa.ChunkedArray):
        cells = cells.fill_null("")
        coded = cells.combine_chunks().dictionary_encode()
        try:
            each = _rows(coded.dictionary.to_pylist(), column, unlabelled)
            rows: NDArray[Any] = coded.indices.to_numpy()
            return build(each, classes, column, unlabelled)[rows]
        except LabelError:  # now row by row, to name the row
            cells = cells.to_pylist()
    return build(_rows(cells, column, unlabelled), classes, column, unlabelled)


def _labels(cells: Cells, classes: tuple[ClassName, ...], column: str) -> NDArray[Any]:
    """Return the class name of each row."""
    places: dict[object, int] = {str(name): place for place, name in enumerate(classes)}
    if isinstance(cells, pa.ChunkedArray):
        coded = cells.fill_null("").combine_chunks().dictionary_encode()
        values = coded.dictionary.to_pylist()
        codes = np.array([places.get(value.strip(), -1) for value in values], np.intp)
        codes = codes[coded.indices.to_numpy()]
    else:
        codes = np.array([_place(value, places) for value in cells], np.intp)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        value = cells[row].as_py() if isinstance(cells, pa.ChunkedArray) else cells[row]
        if value is None or value == "":
            raise DataError(
                "the cell is empty", "fill in the label or drop the row", row=row, column=column
            )
        raise unknown(value, classes, row=row, column=column)
    return np.asarray(np.array(classes)[codes])


def _place(value: object, places: dict[object, int]) -> int:
    value = _plain(value)
    return places.get(str(value).strip(), -1) if _is_name(value) else -1


def _plain(value: object) -> object:
    """Write true and 1.0 the way other files do: ``true`` and ``1``."""
    if isinstance(value, bool):
        return str(value).lower()
    return int(value) if isinstance(value, float) and value.is_integer() else value
