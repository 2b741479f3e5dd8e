"""Archives of arrays: NPZ and MATLAB's .mat, with what was ruled out and true labels in them.

NPZ has an array ``x`` of rows or images. A .mat file is as the boards of partial-label learning
are: ``data`` with a row for each example, and tables such as ``partial_target`` and ``target``,
which have a column for each.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import tables
from ruleout.datasets.tables import LARGEST, Request, Table, row_names
from ruleout.labels.classes import ClassName, class_names, encode, shown
from ruleout.labels.errors import DataError
from ruleout.labels.files import RATIO, NpzArchive, archived_sets, settle
from ruleout.labels.row_files import check_memory, find_column, readable
from ruleout.labels.sets import LabelSets

_CHANNELS = (1, 3, 4)

# Elements of MATLAB files, and how their numbers are written; classes and flags of a matrix.
_MATRIX, _COMPRESSED, _HEAD = 14, 15, 1 << 12
_NUMBERS = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8"}
_NUMBERS[13] = "u8"
_SPARSE, _COMPLEX = 5, 0x800


class MatArchive:
    """The arrays of a MATLAB file of version 5 to 7, tables with the rows of ``data`` first.

    SciPy's reader takes what a file says for granted, and a damaged one ends the process. Here
    nothing is believed: sizes are checked before memory is taken, places before they are used.
    """

    rows = "data"

    def __init__(self, content: bytes) -> None:
        if content.startswith(b"\x89HDF"):
            raise DataError("this is an HDF5 file", "save it with scipy.io.savemat")
        version, self._order = content[124:126], {b"IM": "<", b"MI": ">"}[content[126:128]]
        if b"\2" in version:
            problem = "this is a MATLAB file of version 7.3, which is HDF5"
            raise DataError(problem, "save it with -v7, or with scipy.io.savemat")
        self._held: list[tuple[str, _Variable]] = []
        for kind, data in self._elements(memoryview(content)[128:]):
            packed = kind == _COMPRESSED
            head = memoryview(zlib.decompressobj().decompress(data, _HEAD))[8:] if packed else data
            if packed or kind == _MATRIX:
                flags, shape, name = islice(self._elements(head), 3)
                sizes, told = (tuple(self._numbers(one).tolist()) for one in (shape, flags))
                self._held.append((bytes(name[1]).decode(), _Variable(data, packed, sizes, *told)))

    @classmethod
    @contextmanager
    def open(cls, file: Path) -> Iterator[MatArchive]:
        content = file.read_bytes()  # a missing file stays a FileNotFoundError
        with readable(".mat file of version 5 to 7", error=DataError):
            yield cls(content)

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self._held]

    def array(self, name: str) -> Any:
        """Read one array of numbers, sparse ones as CSR; vectors have one dimension."""
        from scipy import sparse  # late: it takes a while

        known = dict(self._held)
        data, packed, shape, flags, filled = found = known[find_column(name, self.names)]
        if found.kind not in range(_SPARSE, 16) or flags & _COMPLEX:
            raise DataError(f"array {name!r} does not hold plain numbers", "save plain numbers")
        cells = max(*shape, 2 * filled) if found.kind == _SPARSE else math.prod(shape)
        if min(shape) < 0 or cells > len(data) * RATIO:
            raise DataError(f"array {name!r} is not of the size it claims", "write it again")
        check_memory(cells)
        if packed:
            data = memoryview(zlib.decompressobj().decompress(data, 16 * cells + _HEAD))[8:]
        parts = islice(self._elements(data), 3, 6 if found.kind == _SPARSE else 4)
        value: Any
        if found.kind == _SPARSE:
            rows, ends, values = map(self._numbers, parts)
            rows, values = (one[: max(int(ends[-1]), 0)] for one in (rows, values))
            beyond = len(rows) and not 0 <= rows.min() <= rows.max() < shape[0]
            if ends[0] or (ends[1:] < ends[:-1]).any() or ends[-1] != len(rows) or beyond:
                raise ValueError  # SciPy would write to places that are not its own
            value = sparse.csc_array((values, rows, ends), (shape[0], shape[1]))
        else:
            value = self._numbers(next(parts)).reshape(shape, order="F")
        n = known[self.rows].shape[0] if self.rows in known else shape[-1]
        if name != self.rows and len(shape) == 2:
            value = value.T if shape[1] == n or shape[0] != n else value
            if value.shape[1] == 1:
                value = np.ravel(value.toarray() if found.kind == _SPARSE else value)
                whole = value.dtype.kind == "f" and (value == np.rint(value)).all()
                return value.astype(np.int64) if whole else value
        return sparse.csr_array(value) if found.kind == _SPARSE else value

    def _elements(self, data: memoryview) -> Iterator[tuple[int, memoryview]]:
        """Yield the kind and the content of one element after the other."""
        at = 0
        while at < len(data):
            kind, size = struct.unpack_from(f"{self._order}II", data, at)
            start, at = at + 8, at + 8
            if kind >> 16:  # a short one: its size is there, and its content where sizes are
                kind, size, start = kind & 0xFFFF, kind >> 16, start - 4
            else:
                at += size + (0 if kind == _COMPRESSED else -size % 8)
            if start + size > min(at, len(data)):
                raise EOFError
            yield kind, data[start : start + size]

    def _numbers(self, element: tuple[int, memoryview]) -> NDArray[Any]:
        kind = np.dtype(self._order + _NUMBERS[element[0]])
        return np.frombuffer(element[1], kind).astype(kind.newbyteorder("="), copy=False)


class _Variable(NamedTuple):
    """A variable of a MATLAB file that was not read yet."""

    data: memoryview
    packed: bool
    shape: tuple[int, ...]
    flags: int
    filled: int  # cells of a sparse matrix, at most

    @property
    def kind(self) -> int:
        return self.flags & 0xFF


Archive: TypeAlias = NpzArchive | MatArchive
KINDS: dict[str, type[NpzArchive] | type[MatArchive]] = {".npz": NpzArchive, ".mat": MatArchive}


def read_archive(path: Path, ask: Request, kind: str = "") -> Table:
    """Read arrays without pickles, checked before memory is taken; `kind` is the suffix."""
    kind = kind or path.suffix.lower()
    with KINDS[kind].open(path) as archive:
        sets, called = None, None
        if ask.texts or ask.answer:
            raise DataError(f"a {kind} file has no columns of text", "give a table instead")
        if ask.skip_bad_rows:
            raise DataError(f"a {kind} file has no lines", "leave --skip-bad-rows out")
        about = ask.voted[0] if ask.voted else ask.about
        if len(ask.voted) > 1:
            raise DataError(f"{len(ask.voted)} arrays of votes are asked for", "name one")
        if about is not None:
            sets = archived_sets(archive, ask.classes, about, ask.unlabelled, ask.kind)
        labels, classes, notes = _labels(archive, ask, sets)
        rows = len(sets) if sets is not None else 0 if labels is None else len(labels)
        raw = _array(archive, rows if ask.featureless else None)
        n, own = raw.shape[0], archive.rows
        for name, other in ((about, sets), (ask.label, labels)):
            if other is not None and len(other) != n:
                problem = f"{own} has {n} rows and {name!r} has {len(other)}"
                raise DataError(problem, f"give one per row of {own}")
        if not n:
            raise DataError(f"array {own!r} has no rows", "give at least one")
        names = []
        if raw.ndim == 2 and raw.shape[1] and "features" in archive.names:
            remedy = f"save the names of the {raw.shape[1]} columns of {own}"
            names = _names(archive, "features", "U", raw.shape[1], remedy)
        if ask.names is not None:
            remedy = f"save the names of the {n} rows of {own} as text"
            called = row_names(
                _names(archive, ask.names, "Uiu", n, remedy), ask.names, ask.item == ask.names
            )

        each = partial(_names, archive, n=n, remedy=f"save one for each row of {own}")

        def cells(name: str) -> Any:
            told = archive.array(name)
            if told.ndim == 2:
                return _named(told, classes, name, True)
            if name != ask.known or classes is None:
                return each(name, "Uiu")
            _check_first(told, classes, name)
            nothing = {-1} - {*classes}  # which many take for "not known"
            return [None if v != v or v in nothing else v for v in each(name, "Uiuf")]

        aside = tables.weight_and_groups(
            ask, lambda name: np.array(each(name, "biuf"), float), cells
        )
        if ask.known is not None and classes is not None:
            told = aside["known"].tolist()
            aside["known"] = tables.known_classes(told, classes, ask.known)
    aside |= {"sets": sets, "labels": labels, "classes": classes, "row_names": called}
    aside |= _columns(raw, names, ask, own) if raw.ndim == 2 else _images(raw, ask, own)
    return Table(**aside, source=path, sha256=tables.sha256_of(path), notes=tuple(notes))


def _array(archive: Archive, rows: int | None) -> Any:
    """Read the features; without any, that many empty rows take their place, or None raises."""
    if rows is not None and archive.rows not in archive.names:
        return np.empty((rows, 0), np.float32)
    array = archive.array(archive.rows)
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        problem = f"array {archive.rows!r} is of type {array.dtype} and shape {array.shape}"
        raise DataError(problem, "save numbers, one row or image per example")
    return array


def _labels(
    archive: Archive, ask: Request, sets: LabelSets | None
) -> tuple[Any, tuple[ClassName, ...] | None, list[str]]:
    if ask.label is None:
        return None, None if sets is None else sets.classes, []
    array, notes = archive.array(ask.label), []
    if array.dtype.kind == "f" and array.ndim == 1 and (array == np.rint(array)).all():
        array = array.astype(np.int64)
    inside = archive.array("classes").tolist() if "classes" in archive.names else None
    if sets is not None:
        classes = sets.classes
    elif inside is None and ask.classes is None and array.ndim == 2:
        classes = class_names(array.shape[1])
    elif inside is None and ask.classes is None:
        classes = class_names(np.unique(array))
        notes += tables.guess_notes(classes)
    else:
        classes = settle(inside, ask.classes)
    if array.ndim == 2:
        return _named(array, classes, ask.label), classes, notes
    if _check_first(array, classes, ask.label) and isinstance(archive, MatArchive):
        notes.append(
            f"Array {ask.label!r} holds no 0, the first of the classes {shown(classes)}: if it "
            "counts them from 1, as MATLAB does, subtract 1."
        )
    return np.array(classes)[encode(array, classes, ask.label)], classes, notes


def _check_first(array: NDArray[Any], classes: tuple[ClassName, ...], name: str) -> bool:
    """Tell whether numbers of classes, which count from 0, hold no 0; raise if they are too large.

    All too large ones are k: then they count from 1.
    """
    if array.dtype.kind not in "iuf" or classes != tuple(range(len(classes))):
        return False
    if np.nanmax(array, initial=0) == len(classes):
        problem = f"array {name!r} counts classes from 1, and they are {shown(classes)}"
        raise DataError(problem, "subtract 1, or save 0 and 1 for each class")
    return bool(np.nanmin(array, initial=len(classes)) == 1)


def _named(
    table: Any, classes: tuple[ClassName, ...] | None, name: str, gaps: bool = False
) -> NDArray[Any]:
    """Return the class that each row of a table of 0 and 1 names; with `gaps`, or an empty text."""
    table = tables.dense(table)
    if classes is None or table.shape[1] != len(classes):
        problem = f"array {name!r} is {table.shape[1]} wide for {len(classes or ())} classes"
        raise DataError(problem, "save one label, or 0 and 1 for each class")
    if not ((table == 0) | (table == 1)).all():
        raise DataError(f"array {name!r} holds more than 0 and 1", "save 1 for the true class")
    many = np.count_nonzero(table, 1)
    if bad := np.flatnonzero((many > 1) | (many < 1 - gaps)).tolist():
        problem = f"the row names {many[bad[0]]} classes, not one"
        raise DataError(problem, "save 1 for the true class alone", row=bad, column=name)
    found = np.array(classes)[table.argmax(1)]
    return np.where(many > 0, found.astype(str), "") if gaps else found


def _names(archive: Archive, name: str, kinds: str, n: int, remedy: str) -> list[Any]:
    found = archive.array(name)
    if found.dtype.kind not in kinds or found.shape != (n,):
        raise DataError(f"array {name!r} is of type {found.dtype} and shape {found.shape}", remedy)
    return list(found.tolist())


def _columns(raw: Any, names: list[str], ask: Request, own: str) -> dict[str, Any]:
    if ask.reading is not None and ask.reading.get("kind") != "columns":
        problem = f"array {own!r} holds rows, and images are wanted"
        raise DataError(problem, "save (n, height, width)")
    before = ask.wanted if ask.features is None else None
    if not names and before is not None and len(before) == raw.shape[1]:
        names = list(before)  # the columns have no names of their own: their order counts
    columns = None if names or before is None else (ask.reading or {}).get("columns", len(before))
    if columns not in (None, raw.shape[1]):
        problem = f"array {own!r} has {raw.shape[1]} columns without names"
        raise DataError(problem, f"give the {columns} that the model was trained on")
    names = names or [f"x{place}" for place in range(raw.shape[1])]
    told = ("features", "ignore", "featureless", "reading")  # a matrix has nothing but features
    features = tables.choose(names, Request(**{name: getattr(ask, name) for name in told}))
    reading = {"kind": "columns", "features": features, "columns": raw.shape[1]}
    if not hasattr(raw, "indptr"):
        check_memory(len(raw), max(len(features), 1))
    if features != names:
        raw = raw[:, [names.index(name) for name in features]]
    held: dict[str, Any] = {"x": _floats(raw, features), "features": tuple(features)}
    return held | {"shape": (len(features),), "reading": reading}


def _images(raw: NDArray[Any], ask: Request, own: str) -> dict[str, Any]:
    """Put channels first; bytes become numbers from 0 to 1."""
    if ask.ignore or ask.features:
        raise DataError(f"array {own!r} holds images", "images have no columns to choose from")
    if raw.ndim == 3:
        raw = raw[:, None]
    elif raw.ndim == 4 and raw.shape[1] not in (1, 3) and raw.shape[3] in _CHANNELS:
        raw = raw.transpose(0, 3, 1, 2)
    if raw.ndim != 4 or raw.shape[1] not in _CHANNELS or not raw[0].size:
        remedy = "save (n, columns), (n, height, width), or images of 1, 3 or 4 channels"
        raise DataError(f"array {own!r} has shape {raw.shape}", remedy)
    shape = tuple(int(side) for side in raw.shape[1:])
    if ask.reading is not None and ask.reading.get("shape") != list(shape):
        wanted = ask.reading.get("shape")
        say = f"images of shape {tuple(wanted)}" if wanted else "columns"
        raise DataError(f"array {own!r} holds images of shape {shape}", f"{say} are wanted")
    check_memory(*raw.shape)
    x = _floats(raw.reshape(len(raw), -1), None)
    if raw.dtype == np.uint8:
        x /= np.float32(255)
    scale = "0 to 1" if raw.dtype == np.uint8 else "as stored"
    reading = {"kind": "images", "shape": list(shape), "scale": scale}
    return {"x": x, "features": (), "shape": shape, "reading": reading}


def _floats(raw: Any, features: list[str] | None) -> Any:
    """Convert to float32, and refuse what is not finite as such."""
    cells = raw.tocoo() if hasattr(raw, "indptr") else None
    with np.errstate(over="ignore"):
        x: Any = np.array(raw, np.float32, order="C") if cells is None else raw.astype(np.float32)
    values, told = (x, raw) if cells is None else (x.data, cells.data)
    if not values.size or (values.min() >= -LARGEST and values.max() <= LARGEST):
        return x
    bad = tuple(np.argwhere(~(np.abs(values) <= LARGEST))[0])
    row, column = map(int, bad if cells is None else (cells.row[bad], cells.col[bad]))
    problem, remedy = f"the value is {told[bad]}", "fill it in or drop the row"
    if np.isfinite(told[bad]):
        problem, remedy = f"{told[bad]:g} is too large for float32", "scale the column"
    where = features[column] if features else column
    raise DataError(problem, remedy, row=row, column=where)
