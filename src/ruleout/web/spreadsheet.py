"""Cells that no spreadsheet takes for a formula, and the three kinds of table files."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from ruleout.labels.files import short_cell, write_columns
from ruleout.labels.row_files import join

#: What formulas begin with; the wide forms too, which some spreadsheets read as the narrow ones.
FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def inert(text: str) -> str:
    """Put an apostrophe before a text that a spreadsheet would compute.

    Also before one that looks as if that had been done, so that it can be undone.
    """
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def unescaped(text: str) -> str:
    """Undo :func:`inert`."""
    return text[1:] if text[:1] == "'" and text.lstrip("'").startswith(FORMULA) else text


def names_cell(names: Iterable[str]) -> str:
    """Write class names as one cell separated by ``|``, the way label-set files are read.

    A backslash before the first letter keeps it from being a formula; it reads as the letter.
    """
    cell = join(names)
    return short_cell(f"\\{cell}" if cell.startswith(FORMULA) else cell)


def write_rows(
    path: str | Path,
    schema: pa.Schema,
    rows: Sequence[Sequence[Any]],
    classes: Sequence[str] | None = None,
) -> None:
    """Write CSV, JSONL or Parquet by suffix, whole or not at all, with the class list if given.

    Lists of text are class names. In CSV, they are joined and texts are made inert.
    """
    write_columns(Path(path), schema, [rows], classes, cell=_cell)


def _cell(value: Any) -> Any:
    if isinstance(value, str):
        return inert(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.isoformat()
    return names_cell(value) if isinstance(value, (list, tuple)) else value
