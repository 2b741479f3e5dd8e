"""CSV, TSV and JSONL as columns: Arrow reads fast, Python says where a fault is."""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as arrow_csv

from ruleout.datasets.errors import DataError
from ruleout.datasets.tables.columns import Columns
from ruleout.labels.files.rows import parse_json
from ruleout.labels.files.text import MARK, csv_cells, json_objects, text_lines

__all__ = ["Choose", "read_csv", "read_jsonl"]

Choose = Callable[[list[str]], list[str]]  # from the columns of a file to those that are features

_BLOCK = 1 << 24  # bytes that Arrow parses at a time; no row may be longer
_ROWS = 1024  # lines of JSON turned into columns at a time
_KEYS = 100_000  # different keys that the lines of a file may have together


def read_csv(
    file: Path, choose: Choose, labels: Sequence[str], *, raw: bool = False, tab: bool = False
) -> Columns:
    """Read the features that `choose` picks, and the columns of labels as text.

    With `raw`, features stay text as well, letter by letter.
    """
    header, inside = _header(file, tab)
    features = choose([name for name in header if not name.startswith(MARK)])
    text = {*labels, *(features if raw else ())}
    content = file.read_bytes()
    if content.count(b'"') % 2:
        _diagnose(file, tab)  # Arrow takes a quote that never ends for a long cell
    if len(header) == 1:  # then an empty line is a row, unless nothing follows
        content = content.rstrip(b"\r\n")
    if not content.endswith(b"\n"):
        content += b"\n"
    try:
        table = _parse(content, header, tab, [*features, *labels], text)
    except pa.ArrowException as error:
        _diagnose(file, tab)
        raise _unreadable(error) from None
    cells = {name: table.column(name) for name in labels}
    return Columns(table.select(features), cells, inside)


def _parse(
    content: bytes, header: list[str], tab: bool, columns: list[str], text: set[str]
) -> pa.Table:
    return arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(
            block_size=_BLOCK, column_names=header, skip_rows_after_names=1
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=_delimiter(tab),
            newlines_in_values=b'"' in content,
            ignore_empty_lines=len(header) > 1,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(text, pa.string()), include_columns=columns
        ),
    )


def _delimiter(tab: bool) -> str:
    return "\t" if tab else ","


def _header(file: Path, tab: bool) -> tuple[list[str], Any]:
    """Return the names of the columns, and the class list that our own files carry in one."""
    try:
        lines = csv.reader(text_lines(file), strict=True, delimiter=_delimiter(tab))
        header = next(lines, None)
    except csv.Error as error:
        raise DataError(f"this is not valid CSV ({error})", "mend the quotes", line=1) from None
    if header is None:
        raise DataError("the file is empty", "give a first line that names the columns")
    if not header:
        raise DataError("the first line is blank", "it is to name the columns", line=1)
    lists = [name.removeprefix(MARK) for name in header if name.startswith(MARK)]
    return header, parse_json(lists[0], line=1) if lists else None


def _diagnose(file: Path, tab: bool) -> None:
    """Read it the slow way, which says in which line the fault is."""
    table = csv.reader(text_lines(file), strict=True, delimiter=_delimiter(tab))
    try:
        deque(csv_cells(table, len(next(table)), 0), maxlen=0)
    except csv.Error as error:
        raise DataError(
            f"this is not valid CSV ({error})", "mend the quotes", line=table.line_num
        ) from None


def _unreadable(error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:80]
    return DataError(f"this is not a readable CSV file ({reason})", "write it again")


def read_jsonl(file: Path, choose: Choose, labels: Sequence[str]) -> Columns:
    """Read one object per line; a first line that holds only ``classes`` is the class list."""
    objects = (value for _, value in json_objects(file))
    first = list(islice(objects, 1))
    inside = first.pop()["classes"] if first and set(first[0]) == {"classes"} else None
    parts: dict[str, list[pa.Array]] = {}
    cells: dict[str, list[Any]] = {name: [] for name in labels}
    rows = 0
    for block in _blocks(first, objects):
        if set().union(*block) - parts.keys():
            for key in dict.fromkeys(chain.from_iterable(block)):
                parts.setdefault(key, [pa.nulls(rows)])
        if len(parts) > _KEYS:
            raise DataError(f"the lines have over {_KEYS:,} different keys", "use the same keys")
        for key, values in zip(parts, _transposed(block, list(parts)), strict=True):
            parts[key].append(pa.nulls(len(block)) if key in cells else _array(values))
            if key in cells:
                cells[key].extend([None] * (rows - len(cells[key])))
                cells[key].extend(values)
        rows += len(block)
    features = choose(list(parts))
    table = pa.table({name: _joined(parts[name]) for name in features})
    return Columns(table, dict(cells), inside)


def _blocks(
    start: list[dict[str, Any]], objects: Iterator[dict[str, Any]]
) -> Iterator[list[dict[str, Any]]]:
    while block := [*start, *islice(objects, _ROWS)]:
        yield block
        start = []


def _transposed(block: list[dict[str, Any]], keys: list[str]) -> Iterable[Sequence[Any]]:
    """Return the values of each key; fast where every object has all of them."""
    if len(keys) > 1 and all(len(value) == len(keys) for value in block):
        return zip(*map(itemgetter(*keys), block), strict=True)
    return ([value.get(key) for value in block] for key in keys)


def _array(values: Sequence[Any]) -> pa.Array:
    """Build a column; mixed kinds become numbers where all are, else text."""
    try:
        return pa.array(values)
    except (ValueError, OverflowError, pa.ArrowException):
        if all(value is None or isinstance(value, (bool, int, float)) for value in values):
            return pa.array([None if v is None else _float(v) for v in values], pa.float64())
        return pa.array([None if v is None else _text(v) for v in values], pa.string())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def _joined(parts: list[pa.Array]) -> pa.ChunkedArray:
    """Join the blocks of a column, whatever kind each one is."""
    found = {part.type for part in parts if not pa.types.is_null(part.type)}
    numbers = {pa.int64(), pa.float64(), pa.bool_()}
    if len(found) <= 1:
        kind = found.pop() if found else pa.null()
    elif found <= numbers:
        kind = pa.float64()
    else:
        values = [value for part in parts for value in part.to_pylist()]
        return pa.chunked_array([_array(values)])
    return pa.chunked_array([part.cast(kind, safe=False) for part in parts], kind)
