"""Items from a folder or a file, whichever it is, and classes that are known of some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ruleout.labels.errors import InputError, brief
from ruleout.web.items.folder import read_folder
from ruleout.web.items.names import suggest
from ruleout.web.items.rows import column_of, placed, read_rows
from ruleout.web.items.tables import class_code, plain_cell, read_table
from ruleout.web.records import Item

__all__ = ["Found", "Limits", "read_gold", "read_items"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much is too much.

    Attributes
    ----------
    items
        How many items a project may have.
    image_bytes
        How large one image may be.
    characters
        How long the text of one item may be.
    """

    items: int = 1_000_000
    image_bytes: int = 50_000_000
    characters: int = 100_000


@dataclass(frozen=True, kw_only=True)
class Found:
    """Items in a stable order, the folder their paths start from, and notes for the reader."""

    items: tuple[Item, ...]
    root: Path | None = None
    notes: tuple[str, ...] = field(default=())


def read_items(
    source: str | Path,
    classes: Sequence[str],
    *,
    text: str | None = None,
    name: str | None = None,
    gold: str | None = None,
    limits: Limits | None = None,
) -> Found:
    """Read what is to be labelled: a folder of images, or a CSV, TSV, JSONL or Parquet file.

    `text`, `name` and `gold` name columns of a file, as in :func:`read_table`; a folder has none.

    Raises
    ------
    InputError
        One sentence with file and row: what is wrong, and how to mend it.
    """
    path, most = Path(source), limits or Limits()
    notes: list[str] = []
    if path.is_dir():
        _check_folder(path, {"text": text, "name": name, "gold": gold})
        items, notes = read_folder(path, most=most.items, largest=most.image_bytes)
        remedy = "give PNG, JPEG, GIF, WebP or BMP files"
    elif path.is_file():
        items = read_table(
            path,
            classes,
            text=text,
            name=name,
            gold=gold,
            most=most.items,
            longest=most.characters,
        )
        remedy = "give a file with at least one row below the header"
    else:
        raise InputError("there is no such file or folder", "check the path", file=path)
    if not items:
        raise InputError("there is nothing to label", remedy, file=path)
    root = path.resolve() if path.is_dir() else None
    return Found(items=tuple(items), root=root, notes=tuple(notes))


def _check_folder(folder: Path, columns: dict[str, str | None]) -> None:
    for option, column in columns.items():
        if column is not None:
            raise InputError(
                f"{option} is the column {column!r}, but a folder of images has no columns",
                "leave it out, or give a CSV, TSV, JSONL or Parquet file",
                file=folder,
            )


def read_gold(file: str | Path, items: Sequence[Item], classes: Sequence[str]) -> tuple[Item, ...]:
    """Return the items with the true classes that a file of columns ``item`` and ``class`` names.

    Items that the file does not name stay as they are.
    """
    path = Path(file)
    known = {item.name: place for place, item in enumerate(items)}
    changed = list(items)
    with placed(path):
        for row, (line, cells) in enumerate(read_rows(path)):
            where: dict[str, Any] = {"row": row, "line": line}
            name = plain_cell(column_of(cells, "item", **where), "item", where)
            if str(name) not in known:
                remedy = suggest(name, known, "name items as the project does")
                raise InputError(f"there is no item {brief(name)}", remedy, column="item", **where)
            code = class_code(cells, "class", classes, where)
            if code is not None:
                place = known[str(name)]
                changed[place] = replace(changed[place], gold=code)
    return tuple(changed)
