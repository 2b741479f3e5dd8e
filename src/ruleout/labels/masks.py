"""From anything that looks like a table of 0 and 1, or like lists of names, to packed bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.bits import Bits, pack, width
from ruleout.labels.classes import ClassName, class_names, positions, unknown
from ruleout.labels.errors import LabelError, brief

__all__ = ["codes_of", "is_table", "pack_codes", "pack_table"]

_BLOCK = 4096  # rows of names scattered into one dense block at a time


def is_table(source: Any) -> bool:
    """Tell tables of 0 and 1 (arrays, frames, sparse matrices) from lists of names."""
    return hasattr(source, "shape") or _is_frame(source)


def _is_frame(source: Any) -> bool:
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


def pack_table(source: Any) -> tuple[Bits, int, tuple[ClassName, ...] | None]:
    """Pack a table of 0 and 1; return the bits, k, and the column names of a DataFrame."""
    names = class_names(list(source.columns)) if _is_frame(source) else None
    if hasattr(source, "tocsr"):
        rows = source.tocsr()
        n, k = rows.shape
        return pack(lambda piece: _cells(rows[piece].toarray(), piece, names), n, k), k, None
    table = source.to_numpy() if _is_frame(source) else _array(source)
    if table.ndim != 2:
        raise LabelError(
            f"expected a table of n rows and k classes, got {table.ndim} dimension(s)",
            "give one row per example"
            if table.ndim > 2
            else "one ruled-out class per row goes into LabelSets.from_single, "
            "true labels into LabelSets.from_labels",
        )
    n, k = table.shape
    return pack(lambda piece: _cells(table[piece], piece, names), n, k), k, names


def _array(source: Any) -> NDArray[Any]:
    try:
        return np.asarray(source)
    except ValueError:
        pass
    lengths = [len(cells) if hasattr(cells, "__len__") else None for cells in source]
    first = lengths[0]
    row = next((row for row, length in enumerate(lengths) if length != first), 0)
    found = "no" if lengths[row] is None else lengths[row]
    raise LabelError(
        f"the row has {found} cells where row 0 has {first}",
        "give every row one cell per class; lists of names go into LabelSets.from_lists",
        row=row,
    )


def _cells(
    block: NDArray[Any], piece: slice, names: tuple[ClassName, ...] | None
) -> NDArray[np.bool_]:
    """Check one block of rows for values other than 0 and 1."""
    if block.dtype == np.bool_:
        return block
    if block.dtype.kind in "iuf":
        good = (block == 0) | (block == 1)
    else:
        good = np.frompyfunc(_is_bit, 1, 1)(block).astype(np.bool_)
    if not good.all():
        row, column = (int(i) for i in np.argwhere(~good)[0])
        raise _not_a_bit(block[row, column], piece.start + row, names[column] if names else column)
    return block.astype(np.bool_)


def _is_bit(value: object) -> bool:
    return isinstance(value, (bool, int, float, np.generic)) and bool(value == 0 or value == 1)


def _not_a_bit(value: Any, row: int, column: object) -> LabelError:
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        remedy = "fill in or drop missing values"
    elif isinstance(value, str):
        remedy = "for lists of class names use LabelSets.from_lists"
    else:
        remedy = "1 means ruled out, 0 means still a candidate"
    return LabelError(f"{brief(value)} is neither 0 nor 1", remedy, row=row, column=column)


def codes_of(rows: Iterable[Any], classes: tuple[ClassName, ...]) -> Iterator[list[int]]:
    """Turn each row of labels into positions among `classes`, in the order given."""
    table = positions(classes)
    for row, labels in enumerate(rows):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise LabelError(
                f"the row is {brief(labels)}, not a list",
                "give a list of class names per row; for one label per row use from_single",
                row=row,
            )
        yield [_code(label, table, classes, row) for label in labels]


def _code(label: Any, table: dict[object, int], classes: tuple[ClassName, ...], row: int) -> int:
    try:
        code = -1 if isinstance(label, (bool, np.bool_)) else table.get(label, -1)
    except TypeError:  # an unhashable label names no class
        code = -1
    if code < 0:
        raise unknown(label, classes, row=row)
    return code


def pack_codes(rows: Iterable[list[int]], classes: tuple[ClassName, ...]) -> Bits:
    """Pack rows of class positions; a class may stand in a row only once."""
    stream, k, done = iter(rows), len(classes), 0
    blocks = []
    while block := list(islice(stream, _BLOCK)):
        sizes = [len(row) for row in block]
        mask = np.zeros((len(block), k), np.bool_)
        mask[np.repeat(np.arange(len(block)), sizes), [code for row in block for code in row]] = (
            True
        )
        repeated = mask.sum(axis=1) != sizes
        if repeated.any():
            place = int(np.argmax(repeated))
            twice = next(code for code in block[place] if block[place].count(code) > 1)
            raise LabelError(
                f"class {brief(classes[twice])} stands twice",
                "name each class once",
                row=done + place,
            )
        blocks.append(np.packbits(mask, axis=1, bitorder="little"))
        done += len(block)
    return np.concatenate(blocks) if blocks else np.empty((0, width(k)), np.uint8)
