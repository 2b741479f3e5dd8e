"""What is to be labelled, read from a folder of images or a table file.

Names, texts and cells come from strangers: names are refused where they could mislead a reader,
and nothing is opened that is not a plain file inside the folder.
"""

import hashlib
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from ruleout.labels.classes import class_names, storable, unknown
from ruleout.labels.errors import InputError, brief
from ruleout.labels.row_files import cell_of, map_rows, naming, text_lines
from ruleout.web.entities import Item
from ruleout.web.names import check_name, suggest, unique

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)  # sizes that BMP's second header may have
_LONGEST = 200  # characters of a class name: it has to fit on a button


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How many items a project may have, and how large one of them may be."""

    items: int = 1_000_000
    image_bytes: int = 50_000_000
    characters: int = 100_000


@dataclass(frozen=True, kw_only=True)
class Found:
    """Items in a stable order, the folder their paths start from, and notes for the reader."""

    items: tuple[Item, ...]
    root: Path | None = None
    notes: tuple[str, ...] = ()


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

    `text` is the column to show, else all but `name` and `gold` are; `name` that of names, else
    rows are called ``row 0``, ``row 1``…; `gold` that of true classes, empty where not known.
    """
    path, most = Path(source), limits or Limits()
    notes: list[str] = []
    if path.is_dir():
        for option, column in (("text", text), ("name", name), ("gold", gold)):
            if column is not None:
                raise InputError(
                    f"{option} is the column {column!r}, but a folder of images has no columns",
                    "leave it out, or give a CSV, TSV, JSONL or Parquet file",
                    file=path,
                )
        items, notes = read_folder(path, most=most.items, largest=most.image_bytes)
        remedy = "give PNG, JPEG, GIF, WebP or BMP files"
    elif path.is_file():
        items = _read_rows(path, classes, text, name, gold, most)
        remedy = "give a file with at least one row below the header"
    else:
        raise InputError("there is no such file or folder", "check the path", file=path)
    if not items:
        raise InputError("there is nothing to label", remedy, file=path)
    root = path.resolve() if path.is_dir() else None
    return Found(items=tuple(items), root=root, notes=tuple(notes))


def read_gold(file: str | Path, items: Sequence[Item], classes: Sequence[str]) -> tuple[Item, ...]:
    """Return the items with the true classes of a file with columns ``item`` and ``class``."""
    known = {item.name: place for place, item in enumerate(items)}
    changed, told = list(items), dict[int, int]()

    def mark(_: int, cells: dict[str, Any]) -> None:
        name = _cell(cells, "item")
        if str(name) not in known:
            remedy = suggest(name, known, "name items as the project does")
            raise InputError(f"there is no item {brief(name)}", remedy, column="item")
        code = _class_code(cells, "class", classes)
        if code is not None:
            place = known[str(name)]
            if told.setdefault(place, code) != code:
                raise InputError(f"item {brief(name)} has two classes", "keep one", column="class")
            changed[place] = replace(changed[place], gold=code)

    list(map_rows(file, mark))
    return tuple(changed)


def read_classes(file: str | Path, known: Sequence[str] = ()) -> tuple[str, ...]:
    """Read class names beside those that are known, one per line, UTF-8; blank only at the end."""
    path = Path(file)
    with naming(path):
        lines = [line.strip() for line in text_lines(path)]
        while lines and not lines[-1]:
            lines.pop()
        return check_classes(lines, known, "write one class name per line", path)


def check_classes(
    names: Sequence[str], known: Sequence[str], remedy: str, file: Path | None = None
) -> tuple[str, ...]:
    """Return class names that a file has line by line, or somebody typed, beside known ones."""
    meet = unique("class name", "name each class once", file)
    for name in known:
        meet(name)
    for line, name in enumerate(names, 1):
        where = {"line": line} if file else {}
        meet(check_name(name, "class name", remedy, longest=_LONGEST, **where), **where)
    class_names((*known, *names))
    return tuple(names)


def image_type(head: bytes) -> str | None:
    """Return the media type of an image from its first 32 bytes, or None.

    SVG and HTML are not images here: they can hold programs.
    """
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    header = int.from_bytes(head[14:18], "little")
    if head[:2] == b"BM" and head[6:10] == bytes(4) and header in _BITMAP_HEADERS:
        return "image/bmp"
    return None


def read_folder(folder: str | Path, *, most: int, largest: int) -> tuple[list[Item], list[str]]:
    """Read the images below a folder, sorted by name, and notes on what was left out.

    Hidden files are left out without a note; a link is followed to a file inside the folder.
    """
    root = Path(folder).resolve()
    items: list[Item] = []
    left_out: Counter[str] = Counter()
    meet = unique("name", "rename one of the files", root)
    for name in sorted(_files(root, left_out), key=os.fsencode):
        found = _image(root, name, largest)
        if isinstance(found, str):
            left_out[found] += 1
            continue
        check_name(name, "name", "rename the file", file=root)
        meet(name)
        items.append(found)
        if len(items) > most:
            raise InputError(f"there are more than {most:,} images", "split them", file=root)
    return items, [f"{count} left out: {reason}." for reason, count in sorted(left_out.items())]


def _files(root: Path, left_out: Counter[str]) -> Iterator[str]:
    """Yield the names of files below the folder; links to folders are not followed."""
    for place, folders, files in os.walk(root, onerror=_unreadable):
        for name in [*folders, *files]:
            path = Path(place, name)
            if path.is_symlink() and not name.startswith("."):
                _check_link(path, root)
        linked = [name for name in folders if Path(place, name).is_symlink()]
        left_out.update(["links to folders"] * len(linked))
        folders[:] = [name for name in folders if not name.startswith(".")]
        shown = [Path(place, name) for name in files if not name.startswith(".")]
        yield from (path.relative_to(root).as_posix() for path in shown)


def _unreadable(error: OSError) -> None:
    remedy = "give its path and the right to read it"
    raise InputError("the folder cannot be read", remedy, file=error.filename)


def _check_link(path: Path, root: Path) -> None:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return  # leads nowhere: left out with a note, like any other file that is not an image
    if not target.is_relative_to(root):
        problem = f"the link {path.relative_to(root).as_posix()!a} leads out of the folder"
        raise InputError(problem, "copy what it leads to into the folder", file=root)


def _image(root: Path, name: str, largest: int) -> Item | str:
    """Return the image, or why the file is none."""
    path = root / name
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            return "not plain files"
        with open(path, "rb") as stream:
            head = stream.read(32)
            if image_type(head) is None:
                return "not PNG, JPEG, GIF, WebP or BMP images"
            if status.st_size > largest:
                problem = f"the image {name!a} has {status.st_size:,} bytes, more than {largest:,}"
                raise InputError(problem, "make it smaller", file=root)
            stream.seek(0)
            whole = hashlib.file_digest(stream, "sha256")
    except OSError:
        return "files that cannot be read"
    return Item(name=name, kind="image", path=name, sha256=whole.hexdigest())


def _read_rows(
    path: Path,
    classes: Sequence[str],
    text: str | None,
    name: str | None,
    gold: str | None,
    most: Limits,
) -> list[Item]:
    meet = unique("name", "name each row once", path)

    def item(row: int, cells: dict[str, Any]) -> Item:
        given = f"row {row}" if name is None else _text(cells, name)
        own = check_name(given, "name", "give every row a name", column=name)
        known = None if gold is None else _class_code(cells, gold, classes)
        shown = {key: cell for key, cell in cells.items() if key not in (name, gold)}
        if text is not None:
            content = _text(shown, text)
            if not content.strip():
                raise InputError("the text is empty", "drop the row, or fill the cell", column=text)
            more: dict[str, Any] = {"kind": "text", "text": content}
        else:
            for key in shown:
                if not storable(key):
                    raise InputError(f"the column name {key!a} cannot be stored", "rename it")
            plain = {key: _cell(shown, key) for key in shown}
            content = json.dumps(plain, sort_keys=True)
            more = {"kind": "row", "cells": plain}
        if len(content) > most.characters:
            problem = f"the row has {len(content):,} characters, more than {most.characters:,}"
            raise InputError(problem, "shorten it")
        meet(own)
        digest = hashlib.sha256(content.encode()).hexdigest()
        return Item(name=own, sha256=digest, gold=known, **more)

    items = list(islice(map_rows(path, item), most.items + 1))
    if len(items) > most.items:
        raise InputError(f"there are more than {most.items:,} rows", "split the file", file=path)
    return items


def _class_code(cells: dict[str, Any], column: str, classes: Sequence[str]) -> int | None:
    label = _text(cells, column).strip()
    if label and label not in classes:
        raise unknown(label, tuple(classes), column=column)
    return classes.index(label) if label else None


def _text(cells: dict[str, Any], column: str) -> str:
    value = _cell(cells, column)
    return "" if value is None else str(value)


def _cell(cells: dict[str, Any], column: str) -> Any:
    """Return a value that JSON and every database can hold: text, a number, a bool, or None.

    Whole numbers beyond 64 bits, infinities, dates and nested values become text; NaN is None.
    """
    value = cell_of(cells, column)
    if isinstance(value, bytes):
        remedy = "save text, or give images as files in a folder"
        raise InputError("the cell holds bytes", remedy, column=column)
    if isinstance(value, float) and not math.isinf(value):
        return None if math.isnan(value) else value
    if value is None or isinstance(value, bool) or (isinstance(value, int) and abs(value) < 2**63):
        return value
    try:
        text = json.dumps(value) if isinstance(value, (list, dict)) else str(value)
    except (TypeError, ValueError, RecursionError):  # bytes inside, or a number of too many digits
        text = f"a {type(value).__name__} that cannot be shown"
    if not storable(text):
        problem = f"the cell holds {brief(ascii(text))}, which databases cannot hold"
        raise InputError(problem, "leave out NUL characters and lone surrogates", column=column)
    return text
