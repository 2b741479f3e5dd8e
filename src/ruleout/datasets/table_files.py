"""Columns as a file holds them, and the matrix of numbers that becomes of them."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pyarrow.types as kinds
from numpy.typing import NDArray

from ruleout.datasets.dataset import DataError
from ruleout.datasets.tables import Request, Table, choose
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName, class_names, shown, unknown
from ruleout.labels.errors import InputError, LabelError, brief, nearest
from ruleout.labels.laws import Law
from ruleout.labels.process import Seed, draw
from ruleout.labels.row_files import (
    COLUMN,
    FULL,
    MARK,
    META,
    Row,
    build,
    csv_cells,
    csv_writer,
    join,
    json_objects,
    listed,
    parse_json,
    settle,
    split,
    text_lines,
)
from ruleout.labels.sets import LabelSets

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


Choose = Callable[[list[str]], list[str]]  # from the columns of a file to those that are features

_BLOCK = 1 << 24  # bytes that Arrow parses at a time; no row may be longer
_LINES = 1024  # lines of JSON turned into columns at a time
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
    while block := [*start, *islice(objects, _LINES)]:
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


def read_parquet(file: Path, choose: Choose, labels: Sequence[str]) -> Columns:
    """Read the features that `choose` picks, and the columns of labels."""
    with open(file, "rb") as stream:
        try:
            source = pq.ParquetFile(stream, page_checksum_verification=True)
            schema = source.schema_arrow
            features = choose(list(schema.names))
            check_memory(source.metadata.num_rows, max(len(features), 1))
            table = source.read(columns=[*features, *labels])
        except (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError):
            raise DataError("this is not a readable Parquet file", "write it again") from None
    meta: Any = (schema.metadata or {}).get(META)
    cells = {name: _cells(table.column(name), name) for name in labels}
    return Columns(table.select(features), cells, None if meta is None else parse_json(meta))


def _cells(column: pa.ChunkedArray, name: str) -> Cells:
    """Return text as text, lists as lists; whole numbers and true/false become text."""
    kind = column.type
    if kinds.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return list(column.to_pylist())
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    if any(test(kind) for test in (*texts, kinds.is_integer, kinds.is_boolean, kinds.is_null)):
        return column.cast(pa.string())
    if kinds.is_floating(kind):  # what pandas makes of whole numbers with gaps
        try:
            return column.cast(pa.int64()).cast(pa.string())
        except pa.ArrowInvalid:
            pass
    raise DataError(f"the column holds {kind}", "give class names or whole numbers", column=name)


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


SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")


def read(path: Path, ask: Request) -> Table:
    """Read whatever lies at `path`."""
    from ruleout.datasets.image_folders import read_folder
    from ruleout.datasets.npz import read_archive

    with naming(path):
        ask.check()
        if path.is_dir():
            return read_folder(path, ask, read_columns)
        check_file(path)
        if not (ask.size is None and ask.labels_file is None and ask.files is None):
            raise DataError("this is a file", "only a folder of images takes a size and labels")
        return read_archive(path, ask) if path.suffix.lower() == ".npz" else _read(path, ask)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file into errors that do not name one, and mend what the system says."""
    try:
        yield
    except InputError as error:
        error.file = path if error.file is None else error.file
        raise
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror or error})",
            "check its permissions",
            file=path,
        ) from None
    except MemoryError:
        raise DataError("this machine has too little memory for it", "read a part of it") from None


def check_file(path: Path) -> None:
    """Raise unless this is a file of a kind that can be read."""
    if path.suffix.lower() not in SUFFIXES:
        kinds = f"use {', '.join(SUFFIXES)}, or a folder of images"
        raise DataError(f"unknown file type {path.suffix!r}", kinds)
    if not os.path.lexists(path):
        folder = path.parent
        if not folder.is_dir():
            raise DataError("there is no such file", f"the folder {folder} does not exist either")
        names = sorted(entry.name for entry in folder.iterdir())
        raise DataError("there is no such file", nearest(path.name, names, "check the name"))
    if not path.is_file():
        raise DataError("this is not a file", "give the name of a file")


def read_columns(
    path: Path, choosing: Choose, labels: Sequence[str], *, raw: bool = False
) -> Columns:
    """Read a table file as columns: those that `choosing` picks, and those of labels."""
    check_file(path)
    suffix = path.suffix.lower()
    if suffix == ".npz":
        raise DataError("an NPZ file has no columns", "use .csv, .tsv, .parquet or .jsonl")
    if suffix == ".parquet":
        columns = read_parquet(path, choosing, labels)
    elif suffix == ".jsonl":
        columns = read_jsonl(path, choosing, labels)
    else:
        columns = read_csv(path, choosing, labels, raw=raw, tab=suffix == ".tsv")
    if not len(columns):
        raise DataError("the file has no rows", "give at least one")
    return columns


def _read(path: Path, ask: Request) -> Table:
    if ask.reading is not None and ask.reading.get("kind") != "columns":
        raise DataError("this is a table, and images are wanted", "give a folder of images")
    header: list[str] = []

    def choosing(names: list[str]) -> list[str]:
        header.extend(names)
        return choose(names, ask)

    columns = read_columns(path, choosing, ask.held)
    x, coarse = to_matrix(columns.features)
    sets, labels, classes, notes = labelled(columns.cells, columns.classes, ask)
    if "" in header and ask.wanted is None:
        notes.append("A column without a name, such as a saved index, is left out.")
    if coarse:
        notes.append(
            f"The columns {shown(coarse)} hold whole numbers above 16,777,216, which lose their "
            "last digits as float32. Ignore them if they are ids or dates."
        )
    features = tuple(columns.features.column_names)
    with open(path, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Table(
        x=x if features else x.reshape(len(columns), 0),
        shape=(len(features),),
        features=features,
        sets=sets,
        labels=labels,
        classes=classes,
        row_names=None if ask.names is None else row_names(columns.cells[ask.names], ask.names),
        source=path,
        sha256=digest,
        reading={"kind": "columns", "features": list(features)},
        notes=tuple(notes),
    )


_ROWS = 8192  # rows turned into Python values at a time


def write_columns(table: pa.Table, classes: tuple[ClassName, ...], path: Path) -> None:
    """Write CSV, TSV, JSONL or Parquet by suffix; lists of names go into CSV with ``|``."""
    with atomic_write(path) as out:
        if path.suffix.lower() == ".parquet":
            meta = {**(table.schema.metadata or {}), META: json.dumps(classes).encode()}
            pq.write_table(table.replace_schema_metadata(meta), out, write_page_checksum=True)
        elif path.suffix.lower() == ".jsonl":
            _jsonl(table, classes, out)
        else:
            _csv(table, classes, out, "\t" if path.suffix.lower() == ".tsv" else ",")


def write_arrays(table: Table, sets: LabelSets, path: Path, label: str | None) -> None:
    """Write x, the packed sets with their class list, and the true labels if they have a name."""
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    arrays: dict[str, Any] = {"x": table.x.reshape(len(table), *table.shape)}
    if table.features:
        arrays["features"] = np.array(table.features)
    if label is not None:
        arrays[label] = table.labels
    arrays |= {"packed": sets.packed, "meta": np.frombuffer(meta.encode(), np.uint8)}
    with atomic_write(path) as out:
        np.savez(out, **arrays)


def _row_values(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv(table: pa.Table, classes: tuple[ClassName, ...], out: IO[bytes], separator: str) -> None:
    with csv_writer(out, separator) as lines:
        lines.writerow([*table.column_names, MARK + json.dumps(classes)])
        for row in _row_values(table):
            lines.writerow([*(join(cell) if isinstance(cell, list) else cell for cell in row), ""])


def _jsonl(table: pa.Table, classes: tuple[ClassName, ...], out: IO[bytes]) -> None:
    out.write(json.dumps({"classes": classes}).encode() + b"\n")
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):  # JSON has no NaN
            column = table.column(place)
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
            table = table.set_column(place, field.name, column)
    names = table.column_names
    for row in _row_values(table):
        line = json.dumps(dict(zip(names, row, strict=True)), default=str)
        out.write(line.encode() + b"\n")


def redraw(
    path: Path,
    out: Path,
    ask: Request,
    *,
    law: Law,
    seed: Seed,
    keep_label: bool,
    sets_only: bool,
) -> tuple[LabelSets, tuple[str, ...]]:
    """Draw, write, and return the sets with the notes of reading."""
    suffix, label = out.suffix.lower(), str(ask.label)
    _check(path, out, suffix)
    if path.suffix.lower() == ".npz" or (suffix == ".npz" and not sets_only):
        table = read(path, replace(ask, featureless=sets_only))
        columns = _of_numbers(table, label)
    else:
        table, columns = _of_columns(path, ask, raw=suffix in (".csv", ".tsv"))
    sets = draw(table.labels, table.classes or (), law, seed)
    if sets_only:
        sets.write(out)
    elif suffix == ".npz":
        write_arrays(table, sets, out, label if keep_label else None)
    elif columns is None:
        raise DataError("images go into .npz", "write .npz, or use --sets-only", file=out)
    else:
        write_columns(_replaced(columns, label, sets, keep_label, path), sets.classes, out)
    return sets, table.notes


def _check(path: Path, out: Path, suffix: str) -> None:
    if suffix not in SUFFIXES:
        raise DataError(f"unknown file type {suffix!r}", f"use {', '.join(SUFFIXES)}", file=out)
    if out.exists() and path.exists() and out.samefile(path):
        raise DataError("this file is to be read and written", "give another name", file=out)


def _of_numbers(table: Table, label: str) -> pa.Table | None:
    """Return the columns of an array, the label last; None for images."""
    if len(table.shape) > 1:
        return None
    columns = {name: table.x[:, place] for place, name in enumerate(table.features)}
    return pa.table({**columns, label: table.labels})


def _of_columns(path: Path, ask: Request, raw: bool) -> tuple[Table, pa.Table]:
    """Read all columns of a table, or of the label file of a folder, whatever they hold."""
    from ruleout.datasets.image_folders import label_file

    order: list[str] = []

    def everything(names: list[str]) -> list[str]:
        choose(names, replace(ask, featureless=True))
        order.extend(names)
        return [name for name in names if name != ask.label]

    with naming(path):
        file = label_file(path, ask) if path.is_dir() else path
    with naming(file):
        found = read_columns(file, everything, ask.named, raw=raw)
        _, labels, classes, notes = labelled(found.cells, found.classes, ask)
    table = Table(
        x=np.empty((len(found), 0), np.float32),
        shape=(0,),
        features=(),
        labels=labels,
        classes=classes,
        source=file,
        sha256="",
        notes=tuple(notes),
    )
    label = pa.field(str(ask.label), pa.array(labels).type)
    return table, found.features.append_column(label, pa.array(labels)).select(order)


def _replaced(
    columns: pa.Table, label: str, sets: LabelSets, keep_label: bool, path: Path
) -> pa.Table:
    """Put a list column in the place of the label, or behind it."""
    if COLUMN in columns.column_names and (keep_label or label != COLUMN):
        raise DataError(
            f"there is a column {COLUMN!r} already", "rename it, or use --sets-only", file=path
        )
    kind = pa.list_(pa.string() if isinstance(sets.classes[0], str) else pa.int64())
    lists, place = pa.array(sets.to_lists(), kind), columns.column_names.index(label)
    if keep_label:
        return columns.add_column(place + 1, COLUMN, lists)
    return columns.set_column(place, COLUMN, lists)
