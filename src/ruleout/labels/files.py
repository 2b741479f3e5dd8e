"""Label sets and columns on disk: CSV, TSV, JSONL, Parquet and NPZ, by suffix.

Every format carries the class list, so that a class nobody ever ruled out is not lost. Files that
other programs wrote carry none; then `classes=` says what the classes are. Arrow is fast; where a
fault is, :mod:`ruleout.labels.row_files` says.
"""

from __future__ import annotations

import csv
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import TextIOWrapper
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pyarrow.types as kinds
from numpy.lib import format as npy
from numpy.typing import NDArray

from ruleout.labels import row_files
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import Classes, ClassName, agree, class_names
from ruleout.labels.errors import LabelError, brief
from ruleout.labels.row_files import COLUMN, MARK, META, SUFFIXES
from ruleout.labels.sets import LabelSets, check_rows, chunks, complement, pack_codes

Choose = Callable[[list[str]], list[str]]  # from the columns of a file to those that are features
Block: TypeAlias = pa.RecordBatch | Sequence[Sequence[Any]]  # columns, or rows of values

RATIO = 1100  # deflate shrinks at most about 1032 to 1: an archive that claims more is lying
_BLOCK = 1 << 24  # bytes read and parsed at a time; no row of CSV may be longer
_TEXT, _BATCH = 1 << 24, 65_536  # bytes of CSV, and rows of Parquet, that make a batch
_MEMORY = 3  # bytes that reading a byte of CSV takes
_LINES = 1024  # lines of JSON turned into columns at a time
_KEYS = 100_000  # different keys that the lines of a file may have together
_ROWS = 8192  # rows turned into Python values at a time
_CELL = 131_072  # longest cell that Python's csv module reads
_WORDS = {"true": 1.0, "True": 1.0, "TRUE": 1.0, "false": 0.0, "False": 0.0, "FALSE": 0.0}


def read(file: Path, classes: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    row_files.check_suffix(file, (*SUFFIXES, ".npz"))
    with row_files.naming(file):
        if row_files.suffix_of(file) == ".npz":
            with NpzArchive.open(file) as archive:
                return archived_sets(archive, classes, column, unlabelled)

        def no_features(names: list[str]) -> list[str]:
            if names:  # of JSONL without rows there are none
                row_files.find_column(column, names)
            return []

        found = next(column_batches(file, no_features, [column], whole=True))
        names = settle(found.classes, classes)
        return build(found.cells[column], names, column, unlabelled)


def write(sets: LabelSets, path: str | Path) -> None:
    file = Path(os.path.realpath(path))  # of what a link leads to
    row_files.check_out(file, (*SUFFIXES, ".npz"))
    if file.suffix.lower() == ".npz":
        with atomic_write(file) as out:
            np.savez(out, **npz_arrays(sets))  # type: ignore[arg-type]  # arrays by name
        return
    schema = pa.schema([(COLUMN, name_lists(sets.classes))])
    blocks = ([(names,) for names in sets[piece]] for piece in chunks(*sets.shape))
    write_columns(file, schema, blocks, sets.classes)


def name_lists(classes: tuple[ClassName, ...]) -> pa.DataType:
    return pa.list_(pa.string() if isinstance(classes[0], str) else pa.int64())


def settle(inside: Any, wanted: Classes | None) -> tuple[ClassName, ...]:
    """Return the class list of the file, or the one asked for; the two must not differ."""
    if inside is None:
        if wanted is None:
            remedy = "pass classes=[...] with every class name"
            raise LabelError("the file does not say what the classes are", remedy)
        return class_names(wanted)
    if not isinstance(inside, list):
        raise LabelError("the file's class list is not a list", "fix it, or write the file again")
    found = class_names(inside)
    return found if wanted is None else agree(found, wanted)


def build(
    cells: Cells,
    classes: tuple[ClassName, ...],
    column: str,
    unlabelled: bool,
    *,
    candidates: bool | NDArray[np.bool_] = False,
    full: str = "leave at least one class as a candidate",
) -> LabelSets:
    """Build label sets from cells of names; each text is read once, however often it occurs.

    With `candidates` the cells name what is left, or those of some rows do. `full` is the remedy
    where nothing is.
    """
    places = row_files.name_places(classes)
    faults: list[tuple[int, LabelError]] = []

    def codes() -> Iterator[list[int]]:
        for place, value in enumerate(cells.values):
            try:
                yield row_files.name_codes(row_files.names_in(value, unlabelled), classes, places)
            except LabelError as error:
                faults.append((place, error))
                yield []

    packed = pack_codes(codes(), classes)
    try:
        if faults:
            faults[0][1].rows = [place for place, _ in faults]
            raise faults[0][1]
        if isinstance(candidates, np.ndarray):  # what one row rules out another may leave
            packed = packed if cells.codes is None else packed[cells.codes]
            packed[candidates], cells = complement(packed[candidates], len(classes)), Cells(())
        elif candidates:
            empty = ~packed.any(1) & unlabelled  # nothing is known, not that nothing is possible
            packed = complement(packed, len(classes))
            packed[empty] = 0
        check_rows(packed, len(classes), unlabelled=unlabelled, full=full)
    except LabelError as error:
        error.column, error.rows = column, cells.rows(error.rows)
        raise
    sets = LabelSets._trusted(packed, classes)
    return sets if cells.codes is None else sets[cells.codes]


@dataclass(frozen=True, eq=False)
class NpzArchive:
    """The arrays of an NPZ file, each checked before memory is taken; nothing is unpickled."""

    rows = "x"  # the array of features
    file: zipfile.ZipFile

    @classmethod
    @contextmanager
    def open(cls, file: Path) -> Iterator[NpzArchive]:
        with open(file, "rb") as stream, row_files.readable("NPZ file"):
            yield cls(zipfile.ZipFile(stream))

    @property
    def names(self) -> list[str]:
        return [name[:-4] for name in self.file.namelist() if name.endswith(".npy")]

    def array(self, name: str) -> NDArray[Any]:
        """Read one array, after its header, its size and the archive agree."""
        info = self.file.getinfo(f"{row_files.find_column(name, self.names)}.npy")
        with self.file.open(info) as stream:
            version = npy.read_magic(stream)
            header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = header(stream)
            if dtype.hasobject:
                problem = f"array {name!r} holds Python objects"
                raise LabelError(problem, "save plain numbers or text")
            size = math.prod(shape) * dtype.itemsize
            packed = min(info.compress_size, os.fstat(self.file.fp.fileno()).st_size)  # type: ignore[union-attr]  # open
            if size != info.file_size - stream.tell() or size > packed * RATIO:
                raise LabelError(f"array {name!r} is not of the size it claims", "write it again")
        with self.file.open(info) as stream:
            data: NDArray[Any] = npy.read_array(stream, allow_pickle=False)
        data.flags.writeable = False  # then LabelSets need no copy of their own
        return data


def archived_sets(
    archive: Any, wanted: Classes | None, column: str, unlabelled: bool, kind: str = "excluded"
) -> LabelSets:
    """Read the packed bits, or an array named like `column`, with the class list beside it.

    The `kind` says what the array holds: 1 where a class is ``excluded`` or among ``candidates``,
    or ``votes``.
    """
    names = archive.names
    if {"packed", "meta"} <= set(names) and kind == "excluded":
        meta = row_files.parse_json(archive.array("meta").tobytes())
        inside = meta.get("classes") if isinstance(meta, dict) else meta
        return LabelSets.from_packed(archive.array("packed"), settle(inside, wanted), unlabelled)
    table = archive.array(column)
    if table.ndim != 2 and kind != "excluded":
        problem = f"array {column!r} has shape {table.shape}"
        raise LabelError(problem, "save a table with a cell for each row and class")
    own = archive.array("classes").tolist() if "classes" in names else None
    classes = wanted if own is None else settle(own, wanted)
    makers: dict[str, Any] = {
        "candidates": LabelSets.from_candidates,
        "votes": LabelSets.from_votes,
    }
    return cast("LabelSets", makers.get(kind, LabelSets)(table, classes, unlabelled=unlabelled))


def npz_arrays(sets: LabelSets) -> dict[str, NDArray[Any]]:
    """Return what an archive holds of label sets: ``packed``, and ``meta`` (JSON as bytes)."""
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    return {"packed": sets.packed, "meta": np.frombuffer(meta.encode(), np.uint8)}


@dataclass(frozen=True, eq=False)
class Cells:
    """A column of labels or names: a value per row, or each once and `codes` that say which."""

    values: Iterable[Any]
    codes: NDArray[np.int32] | None = None

    def __iter__(self) -> Iterator[Any]:
        if self.codes is None:
            return iter(self.values)
        values = list(self.values)
        return (values[code] for code in self.codes.tolist())

    def without(self, kept: NDArray[np.bool_]) -> Cells:
        if self.codes is None:
            return Cells([value for value, keep in zip(self.values, kept, strict=True) if keep])
        values = list(self.values)
        codes, places = np.unique(self.codes[kept], return_inverse=True)
        return Cells([values[code] for code in codes.tolist()], places.astype(np.int32))

    def rows(self, places: Sequence[int]) -> list[int]:
        """Return the rows that hold the values at these places."""
        if self.codes is None:
            return list(places)
        return list(np.flatnonzero(np.isin(self.codes, places)).tolist())


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a file that are features, those of labels, and the class list inside."""

    features: pa.Table
    cells: dict[str, Cells]
    classes: Any
    rows: int
    skipped: int = 0  # rows that could not be read at all

    def numbers(self, name: str) -> NDArray[np.float64]:
        return numbers(self.features.column(name))

    def without(self, rows: Sequence[int]) -> Columns:
        kept = np.ones(self.rows, np.bool_)
        kept[list(rows)] = False
        cells = {name: column.without(kept) for name, column in self.cells.items()}
        features = self.features  # without columns it has no rows to leave out
        features = features.filter(pa.array(kept)) if features.num_columns else features
        return replace(self, features=features, cells=cells, rows=int(kept.sum()))


def column_batches(
    file: Path,
    choose: Choose,
    labels: Sequence[str] = (),
    *,
    raw: bool = False,
    skip: bool = False,
    whole: bool = False,
) -> Iterator[Columns]:
    """Yield the features that `choose` picks and the columns of labels, in batches or as a `whole`.

    With `raw`, features of text files stay text as well, letter by letter. With `skip`, rows that
    are wider or narrower than the header, and lines that are not JSON, are left out.

    JSONL is always read whole, since any line may bring a column. Nothing is yielded of files
    without rows, unless they are read whole.
    """
    suffix = row_files.suffix_of(file)
    if suffix == ".parquet":
        yield from _parquet_batches(file, choose, labels, whole)
    elif suffix in (".jsonl", ".json"):
        yield _read_jsonl(file, choose, labels, skip)
    else:
        yield from _csv_batches(file, choose, labels, raw, skip, whole)


def _csv_batches(
    file: Path, choose: Choose, labels: Sequence[str], raw: bool, skip: bool, whole: bool
) -> Iterator[Columns]:
    header, _ = row_files.csv_rows(file)
    lists = [name.removeprefix(MARK) for name in header if name.startswith(MARK)]
    inside = row_files.parse_json(lists[0], line=1) if lists else None
    features = choose([name for name in header if not name.startswith(MARK)])
    quotes, ends, size = _scan(file)
    if quotes % 2:
        _diagnose(file)  # Arrow takes a quote that never ends for a long cell
    text = {*labels, *(features if raw else ())}
    for part in [None] if whole else _text_blocks(file, size, len(header) > 1):
        skipped: list[Any] | None = [] if skip else None
        try:
            table = _parse(file, part, header, [*features, *labels], text, quotes > 0, skipped)
        except pa.ArrowInvalid as error:
            if _diagnose(file):
                problem = f"this is not a readable CSV file ({' '.join(str(error).split())[:80]})"
                raise LabelError(problem, "write it again") from None
            table = pa.table({name: pa.array([], pa.string()) for name in [*features, *labels]})
        if whole and len(header) == 1:  # then an empty line is a row, unless nothing follows
            table = table.slice(0, max(table.num_rows - max(ends - 1, 0), 0))
        cells = {name: _texts(table.column(name)) for name in labels}
        yield Columns(table.select(features), cells, inside, table.num_rows, len(skipped or ()))


def _scan(file: Path) -> tuple[int, int, int]:
    """Return how many quotes there are, how many line ends at the end, and the bytes before."""
    quotes, size, tail = 0, 0, b""
    try:
        with pa.input_stream(str(file)) as stream:
            while block := stream.read(_BLOCK):
                quotes += block.count(b'"')
                size += len(block)
                blank = len(block.rstrip(b"\r\n"))
                tail = block[blank:] if blank else tail + block
    except OSError as error:
        if error.errno is None:  # not the system's, but that of what unpacks
            raise LabelError("this is not a readable gzip file", "write it again") from None
        raise
    return quotes, tail.count(b"\n") or tail.count(b"\r"), size - len(tail)


def _text_blocks(file: Path, size: int, several: bool) -> Iterator[pa.Buffer]:
    """Yield the rows in the first `size` bytes of a CSV file in blocks, without the header.

    A line end that is not inside of a quoted cell ends a row; such a cell begins with its quote.
    Blocks of blank lines are left out where there are `several` columns.
    """
    stop = re.escape(row_files.separator_of(file)).encode() + rb"\r\n"
    cells = rb'[^"\r\n]++|(?<![^%b])"(?:[^"]++|"")*+"|(?<=[^%b])"' % (stop, stop)
    row = rb"(?:%b)*+(?:\r?\n|\r(?=[^\n]))" % cells
    first, rows = re.compile(row), re.compile(rb"(?:%b)*+" % row)
    text, header = b"", None
    with pa.input_stream(str(file)) as stream:
        while block := stream.read(min(_TEXT, size)):
            text, size = text + block, size - len(block)
            if header is None:
                header = first.match(text)
                text = text if header is None else text[header.end() :]
            end = len(text)
            if size and b'"' in text:
                end = rows.match(text).end()  # type: ignore[union-attr]  # no rows match, too
            elif size:
                end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1
            end = end or len(text) * (len(text) > _BLOCK)  # no row is that long: Arrow says so
            if header is None or not end:
                continue
            if not several or text[:end].strip(b"\r\n"):
                sink = pa.BufferOutputStream()
                sink.write(text[:end])
                yield sink.getvalue()
            text = text[end:]


def _parse(
    file: Path,
    part: pa.Buffer | None,
    header: list[str],
    columns: list[str],
    text: set[str],
    quoted: bool,
    skipped: list[Any] | None,
) -> pa.Table:
    """Parse the rows of a CSV file, or a part of them that has no header."""

    def leave_out(row: Any) -> str:
        assert skipped is not None  # only then it is called
        skipped.append(row)
        return "skip"

    # Arrow opens the file itself, or owns the part: what belongs to Python would be freed by
    # Arrow's threads, and a thread that does so while Python shuts down aborts the process. It
    # aborts as well where memory ends, so that a limit is looked at before.
    left = row_files.memory_left()
    if _MEMORY * (file.stat().st_size if part is None else part.size) > left:
        raise MemoryError
    with pa.input_stream(str(file)) if part is None else pa.BufferReader(part) as stream:
        return arrow_csv.read_csv(
            stream,
            read_options=arrow_csv.ReadOptions(
                block_size=_BLOCK,
                column_names=header,
                skip_rows_after_names=int(part is None),
                # each thread reserves memory, and none may come back to Python
                use_threads=left == math.inf and skipped is None,
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=row_files.separator_of(file),
                newlines_in_values=quoted,
                ignore_empty_lines=len(header) > 1,
                invalid_row_handler=None if skipped is None else leave_out,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(text, pa.string()), include_columns=columns
            ),
        )


def _diagnose(file: Path) -> int:
    """Count the rows the slow way, which says in which line a fault is."""
    return sum(1 for _ in row_files.csv_rows(file)[1])


def _read_jsonl(file: Path, choose: Choose, labels: Sequence[str], skip: bool) -> Columns:
    skipped: list[int] = []
    inside, lines = row_files.json_rows(file, skipped if skip else None)
    objects = (value for _, value in lines)
    parts: dict[str, list[pa.Array]] = {}
    cells: dict[str, list[Any]] = {name: [] for name in labels}
    rows = 0
    while block := list(islice(objects, _LINES)):
        if set().union(*block) - parts.keys():
            for key in dict.fromkeys(chain.from_iterable(block)):
                parts.setdefault(key, [pa.nulls(rows)])
        if len(parts) > _KEYS:
            raise LabelError(f"the lines have over {_KEYS:,} different keys", "use the same keys")
        for key, values in zip(parts, _transposed(block, list(parts)), strict=True):
            parts[key].append(pa.nulls(len(block)) if key in cells else as_column(values))
            if key in cells:
                cells[key].extend([None] * (rows - len(cells[key])))
                cells[key].extend(values)
        rows += len(block)
    table = pa.table({name: _joined(parts[name]) for name in choose(list(parts))})
    held = {name: Cells(found) for name, found in cells.items()}
    return Columns(table, held, inside, rows, len(skipped))


def _transposed(block: list[dict[str, Any]], keys: list[str]) -> Iterable[Sequence[Any]]:
    """Return the values of each key; fast where every object has all of them."""
    if len(keys) > 1 and all(len(value) == len(keys) for value in block):
        return zip(*map(itemgetter(*keys), block), strict=True)
    return ([value.get(key) for value in block] for key in keys)


def as_column(values: Sequence[Any]) -> pa.Array:
    """Build a column; mixed kinds become numbers where all are, else text."""
    try:
        return pa.array(values)
    except (ValueError, OverflowError, pa.ArrowException):
        if all(value is None or isinstance(value, (bool, int, float)) for value in values):
            return pa.array([None if v is None else _float(v) for v in values], pa.float64())
        texts = [v if v is None or isinstance(v, str) else json.dumps(v) for v in values]
        known = [v if v is None else v.encode("utf-8", "replace").decode() for v in texts]
        return pa.array(known, pa.string())


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # a whole number of more than 308 digits
        return float("inf")


def _joined(parts: list[pa.Array]) -> pa.ChunkedArray:
    """Join the blocks of a column, whatever kind each one is."""
    found = {part.type for part in parts if not kinds.is_null(part.type)}
    if len(found) <= 1:
        kind = found.pop() if found else pa.null()
    elif found <= {pa.int64(), pa.float64(), pa.bool_()}:
        kind = pa.float64()
    else:
        values = [value for part in parts for value in part.to_pylist()]
        return pa.chunked_array([as_column(values)])
    return pa.chunked_array([part.cast(kind, safe=False) for part in parts], kind)


@contextmanager
def parquet_file(file: Path) -> Iterator[pq.ParquetFile]:
    faults = (pa.ArrowException, OSError, UnicodeDecodeError, OverflowError)
    told = {"pre_buffer": False, "buffer_size": 1 << 20}  # or all that was read stays
    with pa.OSFile(str(file)) as stream, row_files.readable("Parquet file", faults):
        yield pq.ParquetFile(stream, page_checksum_verification=True, **told)


def _parquet_batches(
    file: Path, choose: Choose, labels: Sequence[str], whole: bool
) -> Iterator[Columns]:
    with parquet_file(file) as source:
        schema = source.schema_arrow
        features = choose(list(schema.names))
        meta = (schema.metadata or {}).get(META)
        inside = None if meta is None else row_files.parse_json(meta)
        if whole:
            row_files.check_memory(source.metadata.num_rows, max(len(features), 1))
            parts = iter([source.read(columns=[*features, *labels])])
        else:
            found = source.iter_batches(_BATCH, columns=[*features, *labels])
            parts = (pa.Table.from_batches([batch]) for batch in found)
        for table in parts:
            cells = {name: _cells(table.column(name), name) for name in labels}
            rows = source.metadata.num_rows if whole else table.num_rows
            yield Columns(table.select(features), cells, inside, rows)


def _cells(column: pa.ChunkedArray, name: str) -> Cells:
    """Return lists as lists; whole numbers and true/false become text."""
    column = _decoded(column)
    kind = column.type
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return Cells(_Lists(column))
    if _is_text(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind) or kinds.is_null(kind):
        return _texts(column.cast(pa.string()))
    if kinds.is_floating(kind):  # what pandas makes of whole numbers with gaps
        try:
            return _texts(column.cast(pa.int64()).cast(pa.string()))
        except pa.ArrowInvalid:
            pass
    raise LabelError(f"the column holds {kind}", "give class names or whole numbers", column=name)


class _Lists:
    """A column of lists, turned into Python's piece by piece each time it is walked."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self._column = column

    def __iter__(self) -> Iterator[Any]:
        for start in range(0, len(self._column), _ROWS):
            yield from self._column.slice(start, _ROWS).to_pylist()


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if kinds.is_dictionary(column.type) else column


def _texts(column: pa.ChunkedArray) -> Cells:
    coded = column.fill_null("").combine_chunks().dictionary_encode()
    return Cells(coded.dictionary.to_pylist(), coded.indices.to_numpy())


def _is_text(kind: pa.DataType) -> bool:
    tests = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    return any(test(kind) for test in tests)


def numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as float64; what is empty or no number is NaN."""
    column = _decoded(column)
    if _is_text(column.type):
        return np.fromiter(map(_number, column.to_pylist()), np.float64, len(column))
    tests = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    if not any(test(column.type) for test in tests):
        return np.full(len(column), np.nan)
    return np.asarray(column.cast(pa.float64(), safe=False).to_numpy())


def _number(cell: str | None) -> float:
    """Read text that Arrow does not take for a number, such as ``+3``, or ``true`` beside 2."""
    try:
        return float("nan" if cell is None or "_" in cell else cell)
    except ValueError:
        return _WORDS.get(str(cell), float("nan"))


def shown_cell(column: pa.ChunkedArray, row: int) -> str:
    """Return a cell for a message, nothing if it is empty."""
    try:
        value = str(column[row].as_py())
    except (ValueError, OverflowError, ImportError):  # dates that Python cannot hold
        return f"a cell of type {_decoded(column).type}"
    return "" if value.strip().lower() in ("", "none", "nan") else brief(value)


def write_columns(
    path: Path,
    schema: pa.Schema,
    blocks: Iterable[Block],
    classes: Sequence[ClassName] | None = None,
    *,
    cell: Callable[[Any], Any] | None = None,
) -> None:
    """Write by suffix, whole or not at all; in CSV and TSV, `cell` says how values are written."""
    suffix = path.suffix.lower()
    row_files.check_out(path, SUFFIXES)
    listed = None if classes is None else json.dumps(list(classes))
    with atomic_write(path) as out:
        if suffix == ".parquet":
            _write_parquet(out, schema, blocks, listed)
        elif suffix == ".jsonl":
            _write_jsonl(out, schema.names, blocks, listed)
        else:
            more = [] if listed is None else [""]
            text = _LineFeeds(out, "utf-8", newline="")
            separator = "\t" if suffix == ".tsv" else ","
            lines = csv.writer(text, lineterminator="\r\n", delimiter=separator)
            lines.writerow([*schema.names, *(short_cell(MARK + str(listed)) for _ in more)])
            lines.writerows([*map(cell or _joined_names, row), *more] for row in _rows(blocks))
            text.detach()


def _write_parquet(
    out: IO[bytes], schema: pa.Schema, blocks: Iterable[Block], listed: str | None
) -> None:
    more = {} if listed is None else {META: listed.encode()}
    schema = schema.with_metadata({**(schema.metadata or {}), **more})
    with pq.ParquetWriter(out, schema, write_page_checksum=True) as table:
        for block in blocks:
            if isinstance(block, pa.RecordBatch):
                table.write_batch(block.replace_schema_metadata(schema.metadata))
            elif block:
                columns = zip(zip(*block, strict=True), schema.types, strict=True)
                arrays = [pa.array(column, kind) for column, kind in columns]
                table.write_batch(pa.record_batch(arrays, schema=schema))


def _rows(blocks: Iterable[Block]) -> Iterator[Sequence[Any]]:
    for block in blocks:
        if not isinstance(block, pa.RecordBatch):
            yield from block
            continue
        for start in range(0, len(block), _ROWS):
            piece = block.slice(start, _ROWS)
            yield from zip(*map(_python, piece.columns, piece.schema.names), strict=True)


def _python(column: pa.Array, name: str) -> list[Any]:
    try:
        return cast("list[Any]", column.to_pylist())
    except (ValueError, OverflowError, ImportError):  # dates that Python cannot hold
        problem = f"a cell of type {column.type} cannot be written as text"
        raise LabelError(problem, "write .parquet instead", column=name) from None


def _write_jsonl(
    out: IO[bytes], names: list[str], blocks: Iterable[Block], listed: str | None
) -> None:
    def text(value: Any) -> str:
        return str(value.isoformat() if hasattr(value, "isoformat") else value)

    if listed is not None:
        out.write(f'{{"classes": {listed}}}\n'.encode())
    for row in _rows(blocks):
        values = (None if value != value else value for value in row)  # JSON does not have NaN
        out.write(json.dumps(dict(zip(names, values, strict=True)), default=text).encode() + b"\n")


def _joined_names(value: Any) -> Any:
    return short_cell(row_files.join(value)) if isinstance(value, (list, tuple)) else value


def short_cell(cell: str) -> str:
    """Return the cell, if Python's csv module can read it again."""
    if len(cell) > _CELL:
        raise LabelError(f"a cell would be {len(cell)} characters long", "write .parquet instead")
    return cell


class _LineFeeds(TextIOWrapper):
    """Lines end in a line feed, although the csv module writes both line ends.

    Before Python 3.13 it quotes only the line ends that it writes itself.
    """

    def write(self, line: str) -> int:
        return super().write(line.removesuffix("\r\n") + "\n")
