"""Label sets on disk: CSV, TSV, JSONL, Parquet and NPZ, by suffix.

Every format carries the class list, so that a class nobody ever ruled out is not lost. Files that
other programs wrote carry none; then `classes=` says what the classes are.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from numpy.typing import NDArray

from ruleout.labels import bits
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import Classes, ClassName, agree, class_names
from ruleout.labels.column_files import Cells, read_columns, write_columns
from ruleout.labels.errors import InputError, LabelError
from ruleout.labels.row_files import (
    COLUMN,
    SUFFIXES,
    find_column,
    name_codes,
    name_places,
    names_in,
    naming,
    parse_json,
    suffix_of,
)
from ruleout.labels.sets import LabelSets

_RATIO = 1100  # deflate shrinks at most about 1032 to 1: an archive that claims more is lying
_PIECE = 1 << 24  # bytes read at a time


def read(
    path: str | Path,
    *,
    classes: Classes | None = None,
    column: str = COLUMN,
    unlabelled: bool = False,
) -> LabelSets:
    """Read label sets; the suffix says how."""
    file = Path(path)
    _check_suffix(file)
    with naming(file):
        if suffix_of(file) == ".npz":
            with npz_file(file) as archive:
                return npz_sets(archive, classes, column, unlabelled)

        def no_features(names: list[str]) -> list[str]:
            if names:  # of JSONL without rows there are none
                find_column(column, names)
            return []

        found = read_columns(file, no_features, [column])
        names = settle(found.classes, classes)
        return build(found.cells[column], names, column, unlabelled)


def write(sets: LabelSets, path: str | Path) -> None:
    """Write label sets; the suffix says how. The file appears whole or not at all."""
    file = Path(os.path.realpath(path))  # of what a link leads to
    _check_suffix(file)
    if file.suffix.lower() == ".npz":
        with atomic_write(file) as out:
            np.savez(out, **npz_arrays(sets))  # type: ignore[arg-type]  # arrays by name
        return
    schema = pa.schema([(COLUMN, name_lists(sets.classes))])
    blocks = ([(names,) for names in sets[piece]] for piece in bits.chunks(*sets.shape))
    write_columns(file, schema, blocks, sets.classes)


def name_lists(classes: tuple[ClassName, ...]) -> pa.DataType:
    """Return the type of a column that holds lists of class names."""
    return pa.list_(pa.string() if isinstance(classes[0], str) else pa.int64())


def _check_suffix(file: Path) -> None:
    known = (*SUFFIXES, ".npz")
    if suffix_of(file) not in known:
        raise LabelError(
            f"unknown file type {file.suffix.lower()!r}",
            f"use one of {', '.join(known)}",
            file=file,
        )


# ---------------------------------------------------------------------- names


def settle(inside: Any, wanted: Classes | None) -> tuple[ClassName, ...]:
    """Return the class list of the file, or the one asked for; the two must not differ."""
    if inside is None:
        if wanted is None:
            raise LabelError(
                "the file does not say what the classes are",
                "pass classes=[...] with every class name",
            )
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
    candidates: bool = False,
    full: str = "leave at least one class as a candidate",
) -> LabelSets:
    """Build label sets from cells of names; each text is read once, however often it occurs.

    With `candidates` the cells name what is not ruled out. `full` is the remedy where everything
    is.
    """
    places = name_places(classes)
    faults: list[tuple[int, LabelError]] = []

    def codes() -> Iterator[list[int]]:
        for place, value in enumerate(cells.values):
            try:
                yield name_codes(names_in(value, unlabelled), classes, places)
            except LabelError as error:
                faults.append((place, error))
                yield []

    packed = bits.pack_codes(codes(), classes)
    try:
        if faults:
            faults[0][1].rows = [place for place, _ in faults]
            raise faults[0][1]
        packed = bits.complement(packed, len(classes)) if candidates else packed
        bits.check_rows(packed, len(classes), unlabelled=unlabelled, full=full)
    except LabelError as error:
        error.column, error.rows = column, cells.rows(error.rows)
        raise
    sets = LabelSets._trusted(packed, classes)
    return sets if cells.codes is None else sets[cells.codes]


# ---------------------------------------------------------------------- NPZ


@contextmanager
def npz_file(file: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever is wrong with it becomes one sentence."""
    with open(file, "rb") as stream:  # a missing file stays a FileNotFoundError
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except (InputError, MemoryError):
            raise
        except Exception:  # zip, zlib, lzma, NumPy's header: each breaks in ways of its own
            raise LabelError("this is not a readable NPZ file", "write it again") from None


def npz_names(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays."""
    return [name[:-4] for name in archive.namelist() if name.endswith(".npy")]


def npz_sets(
    archive: zipfile.ZipFile,
    wanted: Classes | None,
    column: str,
    unlabelled: bool,
    *,
    candidates: bool = False,
) -> LabelSets:
    """Read the packed bits, or a 0/1 array named like `column`, with the class list beside it."""
    names = npz_names(archive)
    if {"packed", "meta"} <= set(names) and not candidates:
        meta = parse_json(npz_array(archive, "meta").tobytes())
        inside = meta.get("classes") if isinstance(meta, dict) else meta
        packed = npz_array(archive, "packed")
        return LabelSets.from_packed(packed, settle(inside, wanted), unlabelled)
    find_column(column, names)
    own = npz_array(archive, "classes").tolist() if "classes" in names else None
    classes = wanted if own is None else settle(own, wanted)
    made = LabelSets.from_candidates if candidates else LabelSets
    return made(npz_array(archive, column), classes, unlabelled=unlabelled)


def npz_array(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array without pickles, after its header, its size and the archive agree."""
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


def npz_arrays(sets: LabelSets) -> dict[str, NDArray[Any]]:
    """Return what an archive holds of label sets: ``packed``, and ``meta`` (JSON as bytes)."""
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    return {"packed": sets.packed, "meta": np.frombuffer(meta.encode(), np.uint8)}
