"""True labels replaced by what is ruled out: the same table, written again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from ruleout.datasets.errors import DataError
from ruleout.datasets.tables.folder import label_file
from ruleout.datasets.tables.labelling import labelled
from ruleout.datasets.tables.reader import SUFFIXES, naming, read, read_columns
from ruleout.datasets.tables.request import Request, choose
from ruleout.datasets.tables.table import Table
from ruleout.datasets.tables.writing import write_arrays, write_columns
from ruleout.labels.files.rows import COLUMN
from ruleout.labels.laws import Law
from ruleout.labels.process import Seed, draw
from ruleout.labels.sets import LabelSets

__all__ = ["redraw"]


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
