"""Rows of yes/no values kept as packed bits, eight classes to a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import LabelError

__all__ = [
    "Bits",
    "check_rows",
    "chunk_rows",
    "chunks",
    "complement",
    "count",
    "equal",
    "frozen",
    "one_hot",
    "pack",
    "unpack",
    "width",
]

Bits = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_CELLS = 1 << 22  # cells unpacked at a time: 4 MiB of bool, whatever n is


def width(k: int) -> int:
    """Bytes that k classes take."""
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


def unpack(bits: Bits, k: int) -> Mask:
    """Unpack into bool (n, k)."""
    return np.unpackbits(bits, axis=1, count=k, bitorder="little").view(np.bool_)


def frozen(packed: Bits) -> Bits:
    """Make an array read-only for good: the owner itself, or a copy where others own the memory."""
    array = np.ascontiguousarray(packed)
    if array.base is not None and array.flags.writeable:
        array = array.copy()
    array.flags.writeable = False
    return array


def one_hot(codes: NDArray[np.intp], k: int) -> Bits:
    """Set one bit per row."""
    packed = np.zeros((len(codes), width(k)), np.uint8)
    packed[np.arange(len(codes)), codes // 8] = np.left_shift(1, codes % 8)
    return packed


def count(bits: Bits) -> NDArray[np.intp]:
    """Count the set bits of each row."""
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


def check_rows(bits: Bits, k: int, *, unlabelled: bool) -> None:
    """Raise unless every row leaves a candidate and, unless `unlabelled`, rules something out."""
    sizes = count(bits)
    if (sizes == k).any():
        raise LabelError(
            "every class is ruled out",
            "leave at least one class as a candidate",
            row=int(np.argmax(sizes == k)),
        )
    if not unlabelled and (sizes == 0).any():
        raise LabelError(
            "nothing is ruled out",
            "rule out at least one class, drop the row, or pass unlabelled=True",
            row=int(np.argmax(sizes == 0)),
        )
