"""Columns as a file holds them, and the matrix of numbers that becomes of them."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from ruleout.datasets.errors import DataError
from ruleout.labels.errors import brief

__all__ = ["Cells", "Columns", "check_memory", "first_missing", "to_matrix"]

Cells: TypeAlias = pa.ChunkedArray | list[Any]  # text, or whatever JSON and Parquet lists hold

_MOST = float(np.finfo(np.float32).max)
_EXACT = 2**24  # float32 holds every whole number up to here


@dataclass(frozen=True)
class Columns:
    """One table file: columns of features, cells of labels, and the class list inside."""

    features: pa.Table
    cells: dict[str, Cells]
    classes: Any = None

    def __len__(self) -> int:
        if self.features.num_columns or not self.cells:
            return int(self.features.num_rows)
        return len(next(iter(self.cells.values())))


def to_matrix(table: pa.Table) -> tuple[NDArray[np.float32], list[str]]:
    """Return float32 ``[n, d]`` and the names of columns whose numbers lose digits in it."""
    x = np.empty((table.num_rows, table.num_columns), np.float32)
    coarse = []
    for place, name in enumerate(table.column_names):
        values = _numbers(table.column(place), name)
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        if not math.isfinite(high - low) or max(-low, high) > _MOST:
            raise _outside(values, name)
        x[:, place] = values
        if max(-low, high) > _EXACT and _loses(values, x[:, place]):
            coarse.append(name)
    return x, coarse


def _loses(values: NDArray[np.float64], held: NDArray[np.float32]) -> bool:
    """Tell whether these are whole numbers that float32 does not hold exactly."""
    return bool((values == np.rint(values)).all() and (values != held).any())


def check_memory(*sizes: int) -> None:
    """Raise if float32 of these sizes cannot fit into this machine."""
    need = 4 * math.prod(sizes)
    have = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if need > have:
        times = " × ".join(f"{size:,}" for size in sizes)
        raise DataError(
            f"{times} numbers take {need / 1e9:.0f} GB, this machine has {have / 1e9:.0f} GB",
            "read a part of it",
        )


def first_missing(column: pa.ChunkedArray) -> int:
    """Return the first row whose cell is null."""
    return int(np.argmax(column.is_null().to_numpy()))


def _numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    kind = column.type
    if kinds.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if _is_text(kind):
        return _parsed(column, name)
    if column.null_count:
        raise _empty(first_missing(column), name)
    plain = kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)
    if not plain and not kinds.is_decimal(kind):
        raise _no_number(_shown(column, kind), 0, name)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())


def _is_text(kind: pa.DataType) -> bool:
    tests = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    return any(test(kind) for test in tests)


def _parsed(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    """Read text as numbers one by one (``+3``), or name the first cell that is none."""
    values = np.empty(len(column))
    for row, cell in enumerate(column.to_pylist()):
        if cell is None or not cell.strip():
            raise _empty(row, name)
        try:
            values[row] = float("_" if "_" in cell else cell)
        except ValueError:
            raise _no_number(brief(cell), row, name) from None
    return values


def _shown(column: pa.ChunkedArray, kind: pa.DataType) -> str:
    try:
        return brief(str(column[0].as_py())) if len(column) else str(kind)
    except (ValueError, OverflowError, ImportError):  # dates that Python cannot hold
        return f"a cell of type {kind}"


def _empty(row: int, name: str) -> DataError:
    return DataError(
        "the cell is empty", "fill it in, drop the row, or ignore the column", row=row, column=name
    )


def _no_number(value: str, row: int, name: str) -> DataError:
    return DataError(
        f"{value} is not a number",
        f"ignore the column (--ignore {name}) or turn it into numbers",
        row=row,
        column=name,
    )


def _outside(values: NDArray[np.float64], name: str) -> DataError:
    """Build the error for NaN, infinity, and numbers that float32 cannot hold."""
    row = int(np.argmax(~(np.abs(values) <= _MOST)))
    if math.isnan(values[row]):
        return _empty(row, name)
    if math.isinf(values[row]):
        return DataError(
            "the cell is infinite",
            "fill it in, drop the row, or ignore the column",
            row=row,
            column=name,
        )
    return DataError(
        f"{values[row]:g} is too large for float32", "scale the column", row=row, column=name
    )
