"""Rows of CSV, TSV, JSONL and Parquet files, with the line where text files have one."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, nearest
from ruleout.labels.files.text import MARK, json_objects, text_lines

__all__ = ["Line", "column_of", "placed", "read_rows"]

Line: TypeAlias = tuple[int | None, dict[str, Any]]  # its number in a text file, and its cells


def read_rows(file: str | Path) -> Iterator[Line]:
    """Yield the rows of a table file, the suffix says how to read it.

    Class lists that files of this package carry are left out. Cells of CSV and TSV files are
    texts; other files keep their types.
    """
    path = Path(file)
    readers: dict[str, Callable[[Path], Iterator[Line]]] = {
        ".csv": _csv,
        ".tsv": _csv,
        ".jsonl": _jsonl,
        ".parquet": _parquet,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise InputError(
            f"unknown file type {path.suffix!r}", f"use one of {', '.join(readers)}", file=path
        )
    with placed(path):
        yield from reader(path)


@contextmanager
def placed(file: Path) -> Iterator[None]:
    """Add the file to errors that do not name one."""
    try:
        yield
    except InputError as error:
        error.file = error.file or file
        raise


def _csv(file: Path) -> Iterator[Line]:
    delimiter = "\t" if file.suffix.lower() == ".tsv" else ","
    table = csv.reader(text_lines(file), strict=True, delimiter=delimiter)
    try:
        header = next(table, None)
        if not header:
            raise InputError("the file names no columns", "name them in the first line", line=1)
        _check_header(header)
        for row, cells in enumerate(cells for cells in table if cells):
            if len(cells) != len(header):
                raise InputError(
                    f"the row has {len(cells)} cells where the header has {len(header)}",
                    "give every row the same cells, and quote cells that hold a separator",
                    row=row,
                    line=table.line_num,
                )
            named = zip(header, cells, strict=True)
            yield table.line_num, {key: cell for key, cell in named if not key.startswith(MARK)}
    except csv.Error as error:
        problem, line = f"this is not valid CSV ({error})", table.line_num
        raise InputError(problem, "mend the quotes, or use JSONL", line=line) from None


def _check_header(header: list[str]) -> None:
    for name, times in Counter(header).items():
        if times > 1:
            raise InputError(f"column {name!a} stands twice", "name each column once", line=1)


def _jsonl(file: Path) -> Iterator[Line]:
    for line, value in json_objects(file):
        if line > 1 or set(value) != {"classes"}:
            yield line, value


def _parquet(file: Path) -> Iterator[Line]:
    with open(file, "rb") as stream:
        try:
            table = pq.ParquetFile(stream, page_checksum_verification=True)
            _check_header(table.schema_arrow.names)
            for batch in table.iter_batches(batch_size=1024):
                yield from ((None, cells) for cells in batch.to_pylist())
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError):
            raise InputError("this is not a readable Parquet file", "write it again") from None


def column_of(cells: dict[str, Any], column: str, **where: Any) -> Any:
    """Return the cell of a column, or say which column may be meant.

    >>> column_of({"text": "a"}, "text")
    'a'
    """
    if column not in cells:
        say = f"the columns are {shown(list(cells))}"
        raise InputError(f"there is no column {column!r}", nearest(column, cells, say), **where)
    return cells[column]
