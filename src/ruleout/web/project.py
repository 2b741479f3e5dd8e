"""A labelling project on disk: a folder with ``project.json`` and the SQLite file.

Where the project is on a PostgreSQL server, the folder holds ``project.json`` alone. That may hold
a password, so only its owner may read it, and no sentence repeats what stands in it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NoReturn, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile

from sqlalchemy import MetaData
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ruleout.labels.atomic import atomic_folder, atomic_write, write_text
from ruleout.labels.classes import storable
from ruleout.labels.errors import InputError, brief
from ruleout.labels.row_files import parse_json
from ruleout.web.database import Database
from ruleout.web.entities import Settings, StoreError
from ruleout.web.items import Found, read_items
from ruleout.web.store import Store

FILE = "project.json"
FORMAT = 1

DATABASE = "labels.sqlite"
VARIABLE = "RULEOUT_DATABASE"  # takes the place of the address in project.json

#: What the items are: the images of a folder, or the rows of a table file.
Source: TypeAlias = Literal["images", "table"]

_LARGEST = 65_536  # bytes of project.json
_INIT = "make one with `ruleout label init`"
_SCHEMES = ("postgres", "postgresql", "postgresql+psycopg")


@dataclass(frozen=True, kw_only=True)
class Project(AbstractContextManager["Project"]):
    """A project that is open; :meth:`create` makes one and :meth:`open` opens it."""

    folder: Path
    store: Store
    source: Path  # where its items came from
    kind: Source

    @classmethod
    def create(
        cls,
        folder: str | Path,
        settings: Settings,
        found: Found,
        source: str | Path,
        *,
        database: str | None = None,
    ) -> Project:
        """Make a project of the items found in `source`; where that fails, nothing is left behind.

        `database` is the address of an empty PostgreSQL database. Without it ``RULEOUT_DATABASE``
        counts, whose password is not written down; else a SQLite file is made in the folder.
        """
        given = None if database is None else postgresql(database)
        address = given or _from_environment()
        kept = given or (DATABASE if address is None else without_password(address))
        place = os.path.realpath(os.path.expanduser(source))
        if not storable(place):
            raise InputError(f"the path {place!a} is not UTF-8", "rename what it is made of")
        with ExitStack() as undo:
            with whole_folder(folder) as part:
                if address is None:  # the file will hold hashes of passwords
                    (part / DATABASE).touch(0o600, exist_ok=False)
                with Store.create(address or _sqlite(part), settings, found.items) as store:
                    identity = store.identity
                if address is not None:
                    undo.callback(_clear, address)
                kind: Source = "table" if found.root is None else "images"
                card = Card(database=kept, identity=identity, source=place, kind=kind)
                write_card(card, part)
            undo.pop_all()  # everything is in its place
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Project:
        """Open a project; ``RULEOUT_DATABASE`` goes before the address in its folder."""
        place = Path(os.path.realpath(os.path.expanduser(folder)))
        card = read_card(place)
        own = _sqlite(place) if card.database == DATABASE else postgresql(card.database)
        store = Store.open(_from_environment() or own)
        if store.identity != card.identity:
            store.close()
            remedy = f"check {VARIABLE} and {FILE}"
            raise StoreError("the database holds another project", remedy, file=place)
        return cls(folder=place, store=store, source=Path(card.source), kind=card.kind)

    @property
    def name(self) -> str:
        """What people see: the name of the folder."""
        return self.folder.name or "ruleout"

    @property
    def images(self) -> Path | None:
        """The folder of the images; None where the items are not images."""
        if self.kind != "images":
            return None
        if not self.source.is_dir():
            remedy = f"move it back, or write its new place as source into {self.folder / FILE}"
            raise InputError("the folder of the images is gone", remedy, file=self.source)
        return self.source

    def found(self, place: str | Path, settings: Settings, **columns: Any) -> Found:
        """Read further items: of images, those in the folder that the project has."""
        found = read_items(place, settings.classes, **columns)
        if found.root not in (None, self.source.resolve()):
            problem = f"the images of the project are in {str(self.source)!r}"
            raise InputError(problem, "put new ones there, and name that folder", file=place)
        return found

    def backup(self, file: str | Path) -> None:
        """Write all but the images into a new ZIP file, for its owner's eyes; unpack to restore.

        ``images.sha256`` has the hashes of the images, as ``sha256sum -c`` takes them.
        """
        target = Path(os.path.realpath(os.path.expanduser(file)))
        if target.exists():
            raise InputError("the file is there already", "give another name", file=target)
        with atomic_write(target) as out, TemporaryDirectory(dir=target.parent) as part:
            os.chmod(out.name, 0o600)
            self.store.copy_to(Path(part, DATABASE))
            with ZipFile(out, "w", ZIP_DEFLATED) as pack:
                pack.write(Path(part, DATABASE), DATABASE)
                examples = sorted((self.folder / "examples").rglob("*"))
                for one in (self.folder / FILE, self.folder / "guidelines.md", *examples):
                    if one.is_file():
                        pack.write(one, one.relative_to(self.folder))
                every = (item for _, item in self.store.items() if item.kind == "image")
                hashes = "".join(f"{item.sha256}  {item.path}\n" for item in every)
                pack.writestr("images.sha256", hashes)

    def close(self) -> None:
        self.store.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _clear(address: str) -> None:
    """Drop the tables that were made in an empty database a moment ago."""
    database = Database(address)
    try:
        with database.writing() as db:
            tables = MetaData()
            tables.reflect(db)
            tables.drop_all(db)
    finally:
        database.close()


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yield a hidden folder to fill; it takes its name only when the block ends well.

    The name must be free, or that of an empty folder: nothing is ever written over.
    """
    target = Path(os.path.realpath(os.path.expanduser(path)))
    if not target.parent.is_dir():
        raise InputError("the folder does not exist", "make it first", file=target.parent)
    if target.exists() and not target.is_dir():
        raise InputError("this is a file", "give the name of a new folder", file=target)
    if target.is_dir() and any(target.iterdir()):
        raise InputError("the folder is not empty", "give the name of a new one", file=target)
    with atomic_folder(target, Path.rename) as part:  # an empty folder gives its name up
        yield part


@dataclass(frozen=True, kw_only=True)
class Card:
    """What ``project.json`` says."""

    database: str  # "labels.sqlite", or the address of a PostgreSQL database
    identity: str  # of the project in it, so that no other is opened by mistake
    source: str
    kind: Source


def write_card(card: Card, folder: Path) -> None:
    """Write ``project.json``, for its owner's eyes."""
    (folder / FILE).touch(0o600, exist_ok=False)
    write_text(folder / FILE, json.dumps({"format": FORMAT, **asdict(card)}, indent=2) + "\n")


def read_card(folder: Path) -> Card:
    """Read ``project.json``; whatever is wrong with it is one sentence."""
    if not folder.exists():
        raise StoreError("there is no such folder", f"check the name, or {_INIT}", file=folder)
    if not folder.is_dir():
        raise StoreError("this is a file", "give the folder of a project", file=folder)
    file = folder / FILE
    if not file.is_file():  # a pipe would keep us waiting
        raise StoreError(f"this is not a labelling project: it has no {FILE}", _INIT, file=folder)
    with open(file, "rb") as stream:
        content = stream.read(_LARGEST + 1)
    if len(content) > _LARGEST:
        _refuse(file, f"the file is larger than {_LARGEST:,} bytes")
    try:
        found = parse_json(content)
    except InputError as error:
        _refuse(file, error.problem)
    version = found.get("format") if isinstance(found, dict) else None
    if type(version) is not int or version < 1:
        _refuse(file, "this is not the file of a labelling project")
    if version > FORMAT:
        problem = f"the project was made by a newer ruleout (format {brief(version, 20)})"
        raise StoreError(problem, "update ruleout", file=file)
    values: dict[str, Any] = {field.name: found.get(field.name) for field in fields(Card)}
    for name, value in values.items():
        if not isinstance(value, str) or not value or not storable(value):
            _refuse(file, f"{name!r} is {'missing' if value is None else 'not a usable text'}")
    if values["kind"] not in ("images", "table"):
        _refuse(file, "'kind' is neither 'images' nor 'table'")
    if not Path(values["source"]).is_absolute():
        _refuse(file, "'source' is not a whole path")
    return Card(**values)


def _refuse(file: Path, problem: str) -> NoReturn:
    raise StoreError(problem, "restore the file from a backup", file=file)


def postgresql(text: str) -> str:
    """Return the address of a PostgreSQL database as SQLAlchemy wants it."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        url = make_url("unknown://")
    if url.drivername not in _SCHEMES or not url.database:
        remedy = "write postgresql://USER@HOST/DATABASE, or leave it out for a file in the project"
        raise StoreError("this is not the address of a PostgreSQL database", remedy)
    if any("password" in key.lower() for key in url.query):
        problem = "the address holds a password behind the question mark, where it may be printed"
        raise StoreError(problem, "write postgresql://USER:PASSWORD@HOST/DATABASE")
    return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def without_password(address: str) -> str:
    return make_url(address)._replace(password=None).render_as_string()


def _sqlite(folder: Path) -> str:
    return URL.create("sqlite", database=str(folder / DATABASE)).render_as_string()


def _from_environment() -> str | None:
    text = os.environ.get(VARIABLE)
    try:
        return postgresql(text) if text else None
    except StoreError as error:
        raise StoreError(f"{VARIABLE}: {error.problem}", error.remedy) from None
