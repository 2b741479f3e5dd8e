"""NPZ: an array ``x`` of rows or images, with what was ruled out and true labels beside it."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets import tables
from ruleout.datasets.tables import Request, Table, row_names
from ruleout.labels.classes import ClassName, class_names, encode
from ruleout.labels.errors import DataError
from ruleout.labels.files import npz_array, npz_file, npz_names, npz_sets, settle
from ruleout.labels.row_files import check_memory, find_column
from ruleout.labels.sets import LabelSets, chunks

_CHANNELS = (1, 3, 4)
_MOST = np.finfo(np.float32).max


def read_archive(path: Path, ask: Request) -> Table:
    """Read arrays without pickles, checked before memory is taken."""
    with npz_file(path) as archive:
        sets, called = None, None
        if ask.texts:
            raise DataError("an NPZ file has no text columns", "give a table instead")
        if ask.skip_bad_rows:
            raise DataError("an NPZ file has no lines", "leave --skip-bad-rows out")
        if ask.about is not None:
            told = {"candidates": ask.candidates is not None}
            sets = npz_sets(archive, ask.classes, ask.about, ask.unlabelled, **told)
        labels, classes, notes = _labels(archive, ask, sets)
        rows = len(sets) if sets is not None else 0 if labels is None else len(labels)
        raw = _array(archive, rows if ask.featureless else None)
        for name, other in ((ask.about, sets), (ask.label, labels)):
            if other is not None and len(other) != len(raw):
                problem = f"x has {len(raw)} rows and {name!r} has {len(other)}"
                raise DataError(problem, "give one per row of x")
        if not len(raw):
            raise DataError("array 'x' has no rows", "give at least one")
        names = []
        if raw.ndim == 2 and "features" in npz_names(archive):
            remedy = f"save the names of the {raw.shape[1]} columns of x"
            names = _names(archive, "features", "U", raw.shape[1], remedy)
        if ask.names is not None:
            remedy = f"save the names of the {len(raw)} rows of x as text"
            called = row_names(_names(archive, ask.names, "Uiu", len(raw), remedy), ask.names)
        each = partial(_names, archive, n=len(raw), remedy="save one for each row of x")
        aside = tables.weight_and_groups(
            ask, lambda name: np.array(each(name, "biuf"), float), partial(each, kinds="Uiu")
        )
    aside |= {"sets": sets, "labels": labels, "classes": classes, "row_names": called}
    aside |= _columns(raw, names, ask) if raw.ndim == 2 else _images(raw, ask)
    return Table(**aside, source=path, sha256=tables.sha256_of(path), notes=tuple(notes))


def _array(archive: zipfile.ZipFile, rows: int | None) -> NDArray[Any]:
    """Read x; without one, that many empty rows take its place, or None raises."""
    if rows is not None and "x" not in npz_names(archive):
        return np.empty((rows, 0), np.float32)
    array = npz_array(archive, find_column("x", npz_names(archive)))
    if array.dtype.kind not in "biuf" or array.ndim < 2:
        problem = f"array 'x' is of type {array.dtype} and shape {array.shape}"
        raise DataError(problem, "save numbers, one row or image per example")
    return array


def _labels(
    archive: zipfile.ZipFile, ask: Request, sets: LabelSets | None
) -> tuple[Any, tuple[ClassName, ...] | None, list[str]]:
    if ask.label is None:
        return None, None if sets is None else sets.classes, []
    names, notes = npz_names(archive), []
    array = npz_array(archive, find_column(ask.label, names))
    if array.dtype.kind == "f" and (array == np.rint(array)).all():
        array = array.astype(np.int64)
    inside = npz_array(archive, "classes").tolist() if "classes" in names else None
    if sets is not None:
        classes = sets.classes
    elif inside is None and ask.classes is None:
        classes = class_names(np.unique(array))
        notes += tables.guess_notes(classes)
    else:
        classes = settle(inside, ask.classes)
    return np.array(classes)[encode(array, classes, ask.label)], classes, notes


def _names(archive: zipfile.ZipFile, name: str, kinds: str, n: int, remedy: str) -> list[Any]:
    found = npz_array(archive, find_column(name, npz_names(archive)))
    if found.dtype.kind not in kinds or found.shape != (n,):
        raise DataError(f"array {name!r} is of type {found.dtype} and shape {found.shape}", remedy)
    return list(found.tolist())


def _columns(raw: NDArray[Any], names: list[str], ask: Request) -> dict[str, Any]:
    if ask.reading is not None and ask.reading.get("kind") != "columns":
        raise DataError("array 'x' holds rows, and images are wanted", "save (n, height, width)")
    before = ask.wanted if ask.features is None else None
    if not names and before is not None and len(before) == raw.shape[1]:
        names = list(before)  # the columns have no names of their own: their order counts
    names = names or [f"x{place}" for place in range(raw.shape[1])]
    own: Any = dict.fromkeys(("excluded", "candidates", "label", "names", "weight", "group"))
    features = tables.choose(names, replace(ask, **own))
    check_memory(len(raw), max(len(features), 1))
    if features != names:
        raw = raw[:, [names.index(name) for name in features]]
    held: dict[str, Any] = {"x": _floats(raw, features), "features": tuple(features)}
    reading = {"kind": "columns", "features": features}
    return held | {"shape": (len(features),), "reading": reading}


def _images(raw: NDArray[Any], ask: Request) -> dict[str, Any]:
    """Put channels first; bytes become numbers from 0 to 1."""
    if ask.ignore or ask.features:
        raise DataError("array 'x' holds images", "images have no columns to choose from")
    if raw.ndim == 3:
        raw = raw[:, None]
    elif raw.ndim == 4 and raw.shape[1] not in (1, 3) and raw.shape[3] in _CHANNELS:
        raw = raw.transpose(0, 3, 1, 2)
    if raw.ndim != 4 or raw.shape[1] not in _CHANNELS or not raw[0].size:
        remedy = "save (n, columns), (n, height, width), or images of 1, 3 or 4 channels"
        raise DataError(f"array 'x' has shape {raw.shape}", remedy)
    shape = tuple(int(side) for side in raw.shape[1:])
    if ask.reading is not None and ask.reading.get("shape") != list(shape):
        wanted = ask.reading.get("shape")
        say = f"images of shape {tuple(wanted)}" if wanted else "columns"
        raise DataError(f"array 'x' holds images of shape {shape}", f"{say} are wanted")
    check_memory(*raw.shape)
    x = _floats(raw.reshape(len(raw), -1), None)
    if raw.dtype == np.uint8:
        x /= np.float32(255)
    scale = "0 to 1" if raw.dtype == np.uint8 else "as stored"
    reading = {"kind": "images", "shape": list(shape), "scale": scale}
    return {"x": x, "features": (), "shape": shape, "reading": reading}


def _floats(raw: NDArray[Any], features: list[str] | None) -> NDArray[np.float32]:
    """Convert rows a few MiB at a time, and refuse what is not finite as float32."""
    x = np.empty(raw.shape, np.float32)
    for piece in chunks(*raw.shape):
        block = raw[piece]
        if raw.dtype.kind == "f":
            good = np.abs(block) <= _MOST
            if not good.all():
                row, column = (int(place) for place in np.argwhere(~good)[0])
                value, where = block[row, column], features[column] if features else column
                problem, remedy = f"the value is {value}", "fill it in or drop the row"
                if np.isfinite(value):
                    problem, remedy = f"{value:g} is too large for float32", "scale the column"
                raise DataError(problem, remedy, row=piece.start + row, column=where)
        x[piece] = block
    return x
