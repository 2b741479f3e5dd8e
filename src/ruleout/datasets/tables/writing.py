"""Tables on disk: columns with the class list, the way they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ruleout.datasets.tables.table import Table
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.files.parquet import META
from ruleout.labels.files.rows import join
from ruleout.labels.files.text import MARK, csv_writer
from ruleout.labels.sets import LabelSets

__all__ = ["write_arrays", "write_columns"]

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


def _rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    for batch in table.to_batches(max_chunksize=_ROWS):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _csv(table: pa.Table, classes: tuple[ClassName, ...], out: IO[bytes], separator: str) -> None:
    with csv_writer(out, separator) as lines:
        lines.writerow([*table.column_names, MARK + json.dumps(classes)])
        for row in _rows(table):
            lines.writerow([*(join(cell) if isinstance(cell, list) else cell for cell in row), ""])


def _jsonl(table: pa.Table, classes: tuple[ClassName, ...], out: IO[bytes]) -> None:
    out.write(json.dumps({"classes": classes}).encode() + b"\n")
    for place, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):  # JSON has no NaN
            column = table.column(place)
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, field.type), column)
            table = table.set_column(place, field.name, column)
    names = table.column_names
    for row in _rows(table):
        line = json.dumps(dict(zip(names, row, strict=True)), default=str)
        out.write(line.encode() + b"\n")
