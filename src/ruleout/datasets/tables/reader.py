"""From a path and a request to a :class:`Table`: which reader, and what all of them share."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ruleout.datasets.errors import DataError
from ruleout.datasets.tables.archive import read_archive
from ruleout.datasets.tables.columns import Columns, to_matrix
from ruleout.datasets.tables.folder import read_folder
from ruleout.datasets.tables.labelling import labelled, row_names
from ruleout.datasets.tables.parquet import read_parquet
from ruleout.datasets.tables.request import Request, choose
from ruleout.datasets.tables.table import Table
from ruleout.datasets.tables.text import Choose, read_csv, read_jsonl
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, nearest

__all__ = ["SUFFIXES", "naming", "read", "read_columns"]

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")


def read(path: Path, ask: Request) -> Table:
    """Read whatever lies at `path`."""
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
