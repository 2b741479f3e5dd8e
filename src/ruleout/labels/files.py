"""Label sets on disk: CSV, JSONL, Parquet and NPZ, by suffix.

Every format carries the class list, so that a class nobody ever ruled out is not lost. Files that
other programs wrote carry none; then `classes=` says what the classes are.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.lib import format as npy
from numpy.typing import NDArray

from ruleout.labels import bits
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import Classes
from ruleout.labels.errors import InputError, LabelError
from ruleout.labels.row_files import (
    COLUMN,
    META,
    Row,
    build,
    find,
    listed,
    parse_json,
    read_csv,
    read_jsonl,
    settle,
    split,
    write_csv,
    write_jsonl,
)
from ruleout.labels.sets import LabelSets

Reader: TypeAlias = Callable[[Path, Classes | None, str, bool], LabelSets]
Writer: TypeAlias = Callable[[LabelSets, IO[bytes]], None]


def read(
    path: str | Path,
    *,
    classes: Classes | None = None,
    column: str = "excluded",
    unlabelled: bool = False,
) -> LabelSets:
    """Read label sets; the suffix says how."""
    file = Path(path)
    reader, _ = _by_suffix(file)
    try:
        return reader(file, classes, column, unlabelled)
    except LabelError as error:
        error.file = file
        raise


def write(sets: LabelSets, path: str | Path) -> None:
    """Write label sets; the suffix says how. The file appears whole or not at all."""
    _, writer = _by_suffix(Path(os.path.realpath(path)))  # of what a link leads to
    with atomic_write(path) as out:
        writer(sets, out)


def _by_suffix(file: Path) -> tuple[Reader, Writer]:
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise LabelError(
            f"unknown file type {suffix!r}", f"use one of {', '.join(SUFFIXES)}", file=file
        )
    return SUFFIXES[suffix]


_RATIO = 1100  # deflate shrinks at most about 1032 to 1: an archive that claims more is lying
_PIECE = 1 << 24  # bytes read at a time


def read_npz(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read what :func:`write_npz` wrote, or any archive with a 0/1 array named like `column`."""
    with opened(file) as archive:
        return read_sets(archive, wanted, column, unlabelled)


@contextmanager
def opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever is wrong with it becomes one sentence."""
    with open(file, "rb") as stream:  # a missing file stays a FileNotFoundError
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except InputError:
            raise
        except Exception:  # zip, zlib, lzma, NumPy's header: each breaks in ways of its own
            raise LabelError("this is not a readable NPZ file", "write it again") from None


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays."""
    return [name[:-4] for name in archive.namelist() if name.endswith(".npy")]


def read_sets(
    archive: zipfile.ZipFile, wanted: Classes | None, column: str, unlabelled: bool
) -> LabelSets:
    """Read the packed bits, or a 0/1 array named like `column`, with the class list beside it."""
    names = names_in(archive)
    if {"packed", "meta"} <= set(names):
        meta = parse_json(member(archive, "meta").tobytes())
        inside = meta.get("classes") if isinstance(meta, dict) else meta
        return LabelSets.from_packed(member(archive, "packed"), settle(inside, wanted), unlabelled)
    find(column, names)
    own = member(archive, "classes").tolist() if "classes" in names else None
    classes = wanted if own is None else settle(own, wanted)
    return LabelSets(member(archive, column), classes, unlabelled=unlabelled)


def member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array after its header, its size and the archive agree with each other."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(stream)
        if dtype.hasobject:
            raise LabelError(f"array {name!r} holds Python objects", "save plain numbers or text")
        size = math.prod(shape) * dtype.itemsize
        packed = min(info.compress_size, os.fstat(archive.fp.fileno()).st_size)  # type: ignore[union-attr]  # open
        if size != info.file_size - stream.tell() or size > packed * _RATIO:
            raise LabelError(f"array {name!r} is not of the size it claims", "write it again")
        data, done = np.empty(size, np.uint8), 0
        while piece := stream.read(_PIECE):
            data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
            done += len(piece)
    if done != size:
        raise EOFError
    data.flags.writeable = False  # then LabelSets need no copy of their own
    return data.view(dtype).reshape(shape, order="F" if fortran else "C")


def write_npz(sets: LabelSets, out: IO[bytes]) -> None:
    """Write ``packed`` (uint8) and ``meta`` (JSON as bytes)."""
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    np.savez(out, packed=sets.packed, meta=np.frombuffer(meta.encode(), np.uint8))


def read_parquet(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read a list column of names, or a text column of names separated by ``|``."""
    with open(file, "rb") as stream:  # a missing file stays a FileNotFoundError
        try:
            table = pq.ParquetFile(stream, page_checksum_verification=True)
            kind = table.schema_arrow.field(find(column, table.schema_arrow.names)).type
            if not _holds_names(kind):
                raise LabelError(
                    f"the column holds {kind}", "give lists of class names", column=column
                )
            meta = (table.schema_arrow.metadata or {}).get(META)
            classes = settle(None if meta is None else parse_json(meta), wanted)
            return build(_values(table, column), classes, column, unlabelled)
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise LabelError("this is not a readable Parquet file", "write it again") from None


def _holds_names(kind: pa.DataType) -> bool:
    """Accept text, lists of text or whole numbers, and dictionary forms of these."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
        if pa.types.is_integer(kind) or pa.types.is_null(kind):
            return True
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(
        test(kind)
        for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    )


def _values(table: pq.ParquetFile, column: str) -> Iterator[Row]:
    row = 0
    for batch in table.iter_batches(batch_size=8192, columns=[column]):
        for value in batch.column(0).to_pylist():
            names = split(value) if isinstance(value, str) else value
            yield None, listed(names, row=row, column=column)
            row += 1


def write_parquet(sets: LabelSets, out: IO[bytes]) -> None:
    """Write one list column."""
    kind = pa.list_(pa.string() if isinstance(sets.classes[0], str) else pa.int64())
    schema = pa.schema([(COLUMN, kind)], metadata={META: json.dumps(sets.classes).encode()})
    with pq.ParquetWriter(out, schema, write_page_checksum=True) as table:
        for piece in bits.chunks(*sets.shape):
            rows = pa.array(sets[piece].to_lists(), kind)
            table.write_batch(pa.record_batch([rows], schema=schema))


SUFFIXES: dict[str, tuple[Reader, Writer]] = {
    ".csv": (read_csv, write_csv),
    ".jsonl": (read_jsonl, write_jsonl),
    ".parquet": (read_parquet, write_parquet),
    ".npz": (read_npz, write_npz),
}
