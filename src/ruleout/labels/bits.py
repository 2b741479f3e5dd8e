"""Rows of yes/no values kept as packed bits, eight classes to a byte."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import ClassName, check_count, class_names, is_missing, plain, to_array
from ruleout.labels.errors import LabelError, brief

Bits = NDArray[np.uint8]

_CELLS = 1 << 22  # cells unpacked at a time: 4 MiB of bool, whatever n is


def width(k: int) -> int:
    return (k + 7) // 8


def chunk_rows(k: int) -> int:
    """Rows of k cells that make a few MiB."""
    return max(1, _CELLS // max(k, 1))


def chunks(n: int, k: int) -> Iterator[slice]:
    """Cut n rows into slices of a few MiB of cells."""
    step = chunk_rows(k)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def pack(rows: Callable[[slice], NDArray[Any]], n: int, k: int) -> Bits:
    """Pack n rows of k bools that `rows(slice)` hands out piece by piece."""
    bits = np.empty((n, width(k)), np.uint8)
    for piece in chunks(n, k):
        bits[piece] = np.packbits(rows(piece), axis=1, bitorder="little")
    return bits


def unpack(bits: Bits, k: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits, axis=1, count=k, bitorder="little").view(np.bool_)


def frozen(packed: Bits) -> Bits:
    """Make an array read-only for good: the owner itself, or a copy where others own the memory."""
    array = np.ascontiguousarray(packed)
    if array.base is not None and array.flags.writeable:
        array = array.copy()
    array.flags.writeable = False
    return array


def one_hot(codes: NDArray[np.intp], k: int) -> Bits:
    packed = np.zeros((len(codes), width(k)), np.uint8)
    packed[np.arange(len(codes)), codes // 8] = np.left_shift(1, codes % 8)
    return packed


def count(bits: Bits) -> NDArray[np.intp]:
    sizes = np.empty(len(bits), np.intp)
    for piece in chunks(len(bits), bits.shape[1]):
        np.bitwise_count(bits[piece]).sum(axis=1, dtype=np.intp, out=sizes[piece])
    return sizes


def complement(bits: Bits, k: int) -> Bits:
    """Flip every class of every row; the padding stays zero."""
    every = np.packbits(np.ones(k, np.bool_), bitorder="little")
    return np.bitwise_xor(bits, every)


def equal(a: Bits, b: Bits) -> bool:
    """Compare row by row, a few MiB at a time."""
    if a is b:
        return True
    pieces = chunks(len(a), a.shape[1])
    return a.shape == b.shape and all(np.array_equal(a[piece], b[piece]) for piece in pieces)


def check_rows(
    bits: Bits, k: int, *, unlabelled: bool, full: str = "leave at least one class as a candidate"
) -> None:
    """Raise unless every row leaves a candidate and, unless `unlabelled`, rules something out."""
    sizes = count(bits)
    if rows := np.flatnonzero(sizes == k).tolist():
        raise LabelError("every class is ruled out", full, row=rows, rank=1)
    if not unlabelled and (rows := np.flatnonzero(sizes == 0).tolist()):
        remedy, told = "rule out at least one class, drop the row, or pass", "unlabelled=True"
        raise LabelError("nothing is ruled out", remedy, argument=told, row=rows, rank=2)


def check_packed(packed: Any, k: int) -> Bits:
    """Return what is packed bits of k classes as an array; raise if it is not."""
    array, wide = to_array(packed, "packed"), width(k)
    if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != wide:
        problem = f"packed bits of {array.dtype} with shape {array.shape}"
        raise LabelError(problem, f"{k} classes need uint8 of shape (n, {wide})")
    if k % 8 and (beyond := array[:, -1] >> (k % 8) > 0).any():
        remedy = "pack with numpy.packbits(..., axis=1, bitorder='little')"
        raise LabelError("a bit beyond the last class is set", remedy, row=int(beyond.argmax()))
    return array


def is_table(source: Any) -> bool:
    """Tell tables of 0 and 1 from lists of names."""
    return len(getattr(source, "shape", ())) > 1 or hasattr(source, "tocsr")


def pack_table(source: Any) -> tuple[Bits, int, tuple[ClassName, ...] | None]:
    """Pack a table of 0 and 1; return the bits, k, and the column names of a DataFrame."""
    table, names = _table(source)
    if table.ndim != 2:
        flat = "one ruled-out class per row goes into LabelSets.from_single, true labels into "
        flat += "LabelSets.from_labels"
        problem = f"expected a table of n rows and k classes, got {table.ndim} dimension(s)"
        raise LabelError(problem, flat if table.ndim < 2 else "give one row per example")
    n, k = table.shape
    check_count(k)
    rows = table.tocsr() if hasattr(table, "tocsr") else table
    return pack(lambda piece: _cells(rows[piece], piece, names), n, k), k, names


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
        sizes = [f"{len(row)} cells" if hasattr(row, "__len__") else "no cells" for row in source]
        for row, size in enumerate(sizes):
            if size != sizes[0]:
                problem = f"the row has {size} where row 0 has {sizes[0]}"
                remedy = "give every row one cell per class; lists of names go into "
                raise LabelError(problem, f"{remedy}LabelSets.from_lists", row=row)
    return to_array(source, "the table"), None


def _cells(cells: Any, piece: slice, names: tuple[ClassName, ...] | None) -> NDArray[np.bool_]:
    """Check one block of rows for values other than 0 and 1."""
    block: NDArray[Any] = cells.toarray() if hasattr(cells, "toarray") else cells
    if block.dtype == np.bool_:
        return block
    remedy = "1 means ruled out, 0 means still a candidate"
    if block.dtype.kind in "iuf":
        good = (block == 0) | (block == 1)
    elif block.dtype.kind in "OUS":
        good = np.frompyfunc(_is_bit, 1, 1)(block).astype(np.bool_)
    else:
        raise LabelError(f"the table is of type {block.dtype}", remedy)
    if good.all():
        return block.astype(np.bool_)
    row, column = (int(i) for i in np.argwhere(~good)[0])
    value, where = plain(block[row, column]), names[column] if names else column
    if is_missing(value):
        remedy = "fill in or drop missing values"
    elif isinstance(value, str):
        remedy = "for lists of class names use LabelSets.from_lists"
    elif names:
        remedy += "; leave out columns that are not classes"
    problem = f"{brief(value)} is neither 0 nor 1"
    raise LabelError(problem, remedy, row=piece.start + row, column=where)


def _is_bit(value: object) -> bool:
    return isinstance(value, (int, float, np.number, np.bool_)) and bool(value in (0, 1))


def pack_codes(rows: Iterable[list[int]], classes: tuple[ClassName, ...]) -> Bits:
    """Pack rows of class positions; a class may occur in a row only once."""
    stream, k, done = iter(rows), len(classes), 0
    blocks = []
    while block := list(islice(stream, chunk_rows(k))):
        sizes = [len(row) for row in block]
        mask = np.zeros((len(block), k), np.bool_)
        mask[np.repeat(np.arange(len(block)), sizes), list(chain.from_iterable(block))] = True
        repeated = mask.sum(axis=1) != sizes
        if repeated.any():
            place = int(np.argmax(repeated))
            twice = next(code for code in block[place] if block[place].count(code) > 1)
            problem = f"class {brief(classes[twice])} appears twice"
            raise LabelError(problem, "name each class once", row=done + place)
        blocks.append(np.packbits(mask, axis=1, bitorder="little"))
        done += len(block)
    return np.concatenate(blocks) if blocks else np.empty((0, width(k)), np.uint8)
