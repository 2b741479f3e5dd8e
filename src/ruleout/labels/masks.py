"""From anything that looks like a table of 0 and 1, or like lists of names, to packed bits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.arrays import is_missing, plain, to_array
from ruleout.labels.bits import Bits, chunk_rows, pack, width
from ruleout.labels.classes import ClassName, check_count, class_names, position, positions, unknown
from ruleout.labels.errors import LabelError, brief

__all__ = ["codes_of", "is_table", "pack_codes", "pack_table"]


def is_table(source: Any) -> bool:
    """Tell tables of 0 and 1 (arrays, frames, sparse matrices) from lists of names."""
    return len(getattr(source, "shape", ())) > 1 or hasattr(source, "tocsr")


def pack_table(source: Any) -> tuple[Bits, int, tuple[ClassName, ...] | None]:
    """Pack a table of 0 and 1; return the bits, k, and the column names of a DataFrame."""
    table, names = _table(source)
    if table.ndim != 2:
        raise LabelError(
            f"expected a table of n rows and k classes, got {table.ndim} dimension(s)",
            "give one row per example"
            if table.ndim > 2
            else "one ruled-out class per row goes into LabelSets.from_single, "
            "true labels into LabelSets.from_labels",
        )
    n, k = table.shape
    check_count(k)
    rows = table.tocsr() if hasattr(table, "tocsr") else table

    def block(piece: slice) -> NDArray[np.bool_]:
        cells = rows[piece]
        return _cells(cells.toarray() if hasattr(cells, "toarray") else cells, piece, names)

    return pack(block, n, k), k, names


def _table(source: Any) -> tuple[Any, tuple[ClassName, ...] | None]:
    """Return something to slice by rows, and the column names it brings."""
    if hasattr(source, "tocsr"):
        return source, None
    if hasattr(source, "column_names"):  # an Arrow table
        columns = [column.to_numpy(zero_copy_only=False) for column in source.columns]
        return np.stack(columns, axis=1), class_names(source.column_names)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):  # pandas or polars
        return source.to_numpy(), class_names(list(source.columns))
    if isinstance(source, (list, tuple)):
        _check_ragged(source)
    return to_array(source, "the table"), None


def _check_ragged(source: Any) -> None:
    lengths = [len(cells) if hasattr(cells, "__len__") else None for cells in source]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            raise LabelError(
                f"the row has {_cell_count(length)} where row 0 has {_cell_count(lengths[0])}",
                "give every row one cell per class; lists of names go into LabelSets.from_lists",
                row=row,
            )


def _cell_count(length: int | None) -> str:
    return "no cells" if length is None else f"{length} cells"


def _cells(
    block: NDArray[Any], piece: slice, names: tuple[ClassName, ...] | None
) -> NDArray[np.bool_]:
    """Check one block of rows for values other than 0 and 1."""
    if block.dtype == np.bool_:
        return block
    if block.dtype.kind in "iuf":
        good = (block == 0) | (block == 1)
    elif block.dtype.kind in "OUS":
        good = np.frompyfunc(_is_bit, 1, 1)(block).astype(np.bool_)
    else:
        raise LabelError(
            f"the table is of type {block.dtype}", "1 means ruled out, 0 means still a candidate"
        )
    if not good.all():
        row, column = (int(i) for i in np.argwhere(~good)[0])
        raise _not_a_bit(plain(block[row, column]), piece.start + row, column, names)
    return block.astype(np.bool_)


def _is_bit(value: object) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and bool(value in (0, 1))


def _not_a_bit(
    value: Any, row: int, column: int, names: tuple[ClassName, ...] | None
) -> LabelError:
    if is_missing(value):
        remedy = "fill in or drop missing values"
    elif isinstance(value, str):
        remedy = "for lists of class names use LabelSets.from_lists"
    else:
        remedy = "1 means ruled out, 0 means still a candidate"
        if names:
            remedy += "; leave out columns that are not classes"
    where = names[column] if names else column
    return LabelError(f"{brief(value)} is neither 0 nor 1", remedy, row=row, column=where)


def codes_of(rows: Iterable[Any], classes: tuple[ClassName, ...]) -> Iterator[list[int]]:
    """Turn each row of labels into positions among `classes`, in the order given."""
    table = positions(classes)
    if not isinstance(rows, Iterable):
        raise LabelError(f"expected lists of class names, got {brief(rows)}", "give one per row")
    for row, labels in enumerate(rows):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise LabelError(
                f"the row is {brief(labels)}, not a list",
                "give a list of class names per row; for one label per row use from_single",
                row=row,
            )
        codes = [
            table.get(label, -1) if type(label) in (str, int) else position(label, table)
            for label in labels
        ]
        if -1 in codes:
            label = next(label for label in labels if position(label, table) < 0)
            raise unknown(plain(label), classes, row=row)
        yield codes


def pack_codes(rows: Iterable[list[int]], classes: tuple[ClassName, ...]) -> Bits:
    """Pack rows of class positions; a class may stand in a row only once."""
    stream, k, done = iter(rows), len(classes), 0
    blocks = []
    while block := list(islice(stream, chunk_rows(k))):
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
