"""``project.json``: where the database and the items of a project are.

It may hold the password of a database, so only its owner may read it, and no sentence repeats
what stands in it.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias

from ruleout.labels.errors import brief
from ruleout.labels.row_files import parse_json
from ruleout.web.errors import StoreError
from ruleout.web.names import storable

__all__ = ["FILE", "FORMAT", "Card", "Source", "read_card", "write_card"]

FILE = "project.json"
FORMAT = 1

#: What the items are: the images of a folder, or the rows of a table file.
Source: TypeAlias = Literal["images", "table"]

_LARGEST = 65_536  # bytes
_INIT = "make one with `ruleout label init`"
_REMEDY = "restore the file from a backup"


@dataclass(frozen=True, kw_only=True)
class Card:
    """What ``project.json`` says.

    Attributes
    ----------
    database
        ``labels.sqlite``, or the address of a PostgreSQL database.
    identity
        Of the project in that database, so that no other is opened by mistake.
    source, kind
        Where the items came from, and what they are.
    """

    database: str
    identity: str
    source: str
    kind: Source


def write_card(card: Card, folder: Path) -> None:
    """Write ``project.json``, for its owner's eyes."""
    content = json.dumps({"format": FORMAT, **asdict(card)}, indent=2).encode()
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(handle, "wb") as out:
        out.write(content + b"\n")
        out.flush()
        os.fsync(out.fileno())


def read_card(folder: Path) -> Card:
    """Read ``project.json``; whatever is wrong with it is one sentence."""
    if not folder.exists():
        raise StoreError("there is no such folder", f"check the name, or {_INIT}", file=folder)
    if not folder.is_dir():
        raise StoreError("this is a file", "give the folder of a project", file=folder)
    file = folder / FILE
    if not file.is_file():  # a pipe would keep us waiting
        problem = f"this is not a labelling project: it has no {FILE}"
        raise StoreError(problem, _INIT, file=folder)
    with open(file, "rb") as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        _refuse(file, f"the file is larger than {_LARGEST:,} bytes")
    return _checked(parse_json(content, file=file), file)


def _checked(found: Any, file: Path) -> Card:
    version = found.get("format") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        _refuse(file, "this is not the file of a labelling project")
    if version > FORMAT:
        problem = f"the project was made by a newer ruleout (format {brief(version, 20)})"
        raise StoreError(problem, "update ruleout", file=file)
    values: dict[str, Any] = {}
    for key in (field.name for field in fields(Card)):
        value = found.get(key)
        if not isinstance(value, str) or not value or not storable(value):
            _refuse(file, f"{key!r} is {'missing' if value is None else 'not a usable text'}")
        values[key] = value
    if values["kind"] not in ("images", "table"):
        _refuse(file, "'kind' is neither 'images' nor 'table'")
    if not Path(values["source"]).is_absolute():
        _refuse(file, "'source' is not a whole path")
    return Card(**values)


def _refuse(file: Path, problem: str) -> NoReturn:
    raise StoreError(problem, _REMEDY, file=file)
