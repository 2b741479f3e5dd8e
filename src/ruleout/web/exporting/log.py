"""The answer log on disk, complete, and the lists that go with an export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ruleout.web.exporting.cells import write_rows
from ruleout.web.exporting.known import Contradiction
from ruleout.web.records import LogRow

__all__ = ["LOG", "write_contradictions", "write_log", "write_names"]

_TIME = pa.timestamp("us", "UTC")
_NAMES = pa.list_(pa.string())

#: The columns of the log. Those of :func:`ruleout.web.importing.read_answers` have its names.
LOG = pa.schema(
    [
        ("number", pa.int64()),
        ("item", pa.string()),
        ("annotator", pa.string()),
        ("kind", pa.string()),
        ("proposed", _NAMES),
        ("excluded", _NAMES),
        ("which", pa.string()),
        ("round", pa.int64()),
        ("mode", pa.string()),
        ("law", pa.string()),
        ("seed", pa.string()),  # seeds may have more than 64 bits
        ("gold", pa.bool_()),
        ("counts", pa.bool_()),
        ("late", pa.bool_()),
        ("id", pa.string()),
        ("undoes", pa.string()),
        ("took_ms", pa.int64()),
        ("time", _TIME),
        ("received", _TIME),
    ]
)


def write_log(rows: Iterable[LogRow], classes: Sequence[str], path: str | Path) -> None:
    """Write every row of the log, counted or not, as CSV, JSONL or Parquet by suffix.

    Classes are written by name. In CSV, texts that a spreadsheet would compute begin with an
    apostrophe, and yes and no stand for true and false.
    """
    write_rows(path, LOG, [_cells(row, classes) for row in rows], classes)


def _cells(row: LogRow, classes: Sequence[str]) -> list[Any]:
    return [
        row.number,
        row.item_name,
        row.user_name,
        row.kind,
        [classes[code] for code in row.proposed],
        [classes[code] for code in row.excluded],
        None if row.which is None else classes[row.which],
        row.round,
        row.mode,
        row.law,
        str(row.seed),
        row.gold,
        row.counts,
        row.late,
        row.id,
        row.undoes,
        row.took_ms,
        row.sent,
        row.received,
    ]


def write_contradictions(
    contradictions: Iterable[Contradiction], classes: Sequence[str], path: str | Path
) -> None:
    """Write the answers of contradicting items, one row per answer, with the log's columns."""
    write_log((row for one in contradictions for row in one.answers), classes, path)


def write_names(names: Iterable[str], path: str | Path, column: str = "item") -> None:
    """Write a list of items, such as those of which nothing is known."""
    write_rows(path, pa.schema([(column, pa.string())]), [[name] for name in names])
