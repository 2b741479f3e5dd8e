"""Rows of a table as items: one column as text, or every column as cells."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ruleout.labels.classes import unknown
from ruleout.labels.errors import InputError, brief
from ruleout.web.items.names import check_name, storable, unique
from ruleout.web.items.rows import column_of, placed, read_rows
from ruleout.web.records import Item

__all__ = ["class_code", "plain_cell", "read_table"]


def read_table(
    file: str | Path,
    classes: Sequence[str],
    *,
    text: str | None = None,
    name: str | None = None,
    gold: str | None = None,
    most: int,
    longest: int,
) -> list[Item]:
    """Read items from CSV, TSV, JSONL or Parquet, in the order of the file.

    Parameters
    ----------
    classes
        The class names, which the cells of `gold` hold.
    text
        The column to show; without it every column is shown, `name` and `gold` excepted.
    name
        The column of names; without it rows are called ``row 0``, ``row 1`` and so on.
    gold
        The column of true classes; where its cell is empty the class is not known.
    most
        How many rows there may be.
    longest
        How many characters the text of a row, or all its cells together, may have.
    """
    path, items = Path(file), []
    meet = unique("name", "name each row once", path)
    with placed(path):
        for row, (line, cells) in enumerate(islice(read_rows(path), most + 1)):
            where: dict[str, Any] = {"row": row, "line": line}
            own = f"row {row}" if name is None else _name(cells, name, where)
            known = None if gold is None else class_code(cells, gold, classes, where)
            shown = {key: cell for key, cell in cells.items() if key not in (name, gold)}
            items.append(_item(own, shown, text, known, longest, where))
            meet(own, **where)
        if len(items) > most:
            raise InputError(f"there are more than {most:,} rows", "split the file")
    return items


def _name(cells: dict[str, Any], column: str, where: dict[str, Any]) -> str:
    value = plain_cell(column_of(cells, column, **where), column, where)
    text = "" if value is None else str(value)
    return check_name(text, "name", "give every row a name", column=column, **where)


def class_code(
    cells: dict[str, Any], column: str, classes: Sequence[str], where: dict[str, Any]
) -> int | None:
    """Return the position of the class that a cell names, None if it is empty."""
    value = plain_cell(column_of(cells, column, **where), column, where)
    label = "" if value is None else str(value).strip()
    if label and label not in classes:
        raise unknown(label, tuple(classes), column=column, **where)
    return classes.index(label) if label else None


def _item(
    name: str,
    cells: dict[str, Any],
    text: str | None,
    gold: int | None,
    longest: int,
    where: dict[str, Any],
) -> Item:
    if text is not None:
        value = plain_cell(column_of(cells, text, **where), text, where)
        shown = "" if value is None else str(value)
        if not shown.strip():
            remedy = "drop the row, or fill the cell"
            raise InputError("the text is empty", remedy, column=text, **where)
        _check_length(len(shown), longest, where)
        return Item(name=name, kind="text", text=shown, sha256=_sha256(shown), gold=gold)
    plain = {_key(key, where): plain_cell(cell, key, where) for key, cell in cells.items()}
    content = json.dumps(plain, sort_keys=True)
    _check_length(len(content), longest, where)
    return Item(name=name, kind="row", cells=plain, sha256=_sha256(content), gold=gold)


def _check_length(length: int, longest: int, where: dict[str, Any]) -> None:
    if length > longest:
        raise InputError(
            f"the row has {length:,} characters, more than {longest:,}", "shorten it", **where
        )


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _key(key: str, where: dict[str, Any]) -> str:
    if not storable(key):
        raise InputError(f"the column name {key!a} cannot be stored", "rename it", **where)
    return key


def plain_cell(value: Any, column: str, where: dict[str, Any]) -> Any:
    """Return a value that JSON and every database can hold: text, a number, a bool, or None.

    Whole numbers beyond 64 bits, infinities, dates and nested values become text; NaN is None.

    >>> plain_cell(3, "a", {}), plain_cell([1, 2], "a", {}), plain_cell(2**70, "a", {})
    (3, '[1, 2]', '1180591620717411303424')
    """
    if isinstance(value, bytes):
        remedy = "save text, or give images as files in a folder"
        raise InputError("the cell holds bytes", remedy, column=column, **where)
    if isinstance(value, float) and math.isnan(value):
        return None
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    text = value if isinstance(value, str) else _as_text(value)
    if not storable(text):
        remedy = "leave out NUL characters and lone surrogates"
        raise InputError(
            f"the cell holds {brief(ascii(text))}, which databases cannot hold",
            remedy,
            column=column,
            **where,
        )
    return text


def _as_text(value: Any) -> str:
    try:
        return json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    except (TypeError, ValueError, RecursionError):  # bytes inside, or a number of too many digits
        return f"a {type(value).__name__} that cannot be shown"
