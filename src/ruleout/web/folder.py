"""A labelling project on disk: a folder with ``project.json`` and the SQLite file.

Where the project is on a PostgreSQL server, the folder holds ``project.json`` alone.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from sqlalchemy import MetaData

from ruleout.labels.errors import InputError
from ruleout.web.addresses import (
    DATABASE,
    VARIABLE,
    from_environment,
    postgresql,
    sqlite,
    without_password,
)
from ruleout.web.engines import Database
from ruleout.web.errors import StoreError
from ruleout.web.items import Found
from ruleout.web.making import whole_folder
from ruleout.web.names import storable
from ruleout.web.projectfile import FILE, Card, Source, read_card, write_card
from ruleout.web.records import Settings
from ruleout.web.store import Store

__all__ = ["Project"]


@dataclass(frozen=True, kw_only=True)
class Project:
    """A project that is open; :meth:`create` makes one and :meth:`open` opens it.

    Attributes
    ----------
    folder
        Where the project is.
    store
        Its answers, people and settings.
    source, kind
        Where its items came from, and what they are.
    """

    folder: Path
    store: Store
    source: Path
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
        """Make a project and open it; where that fails, nothing is left behind.

        Parameters
        ----------
        folder
            The new folder.
        settings
            What is asked, and how.
        found
            From :func:`ruleout.web.items.read_items`.
        source
            What the items were read from.
        database
            The address of an empty PostgreSQL database. Without it ``RULEOUT_DATABASE`` counts,
            whose password is not written down; else a SQLite file is made in the folder.
        """
        given = None if database is None else postgresql(database)
        address = given or from_environment()
        items = _place(source)
        kept = given or (DATABASE if address is None else without_password(address))
        with ExitStack() as undo:
            with whole_folder(folder) as part:
                url = address or _private(part)
                with Store.create(url, settings, found.items) as store:
                    identity = store.identity
                if address is not None:
                    undo.callback(_clear, address)
                write_card(_card(kept, identity, found, items), part)
            undo.pop_all()  # everything is in its place
        return cls.open(folder)

    @classmethod
    def open(cls, folder: str | Path) -> Project:
        """Open a project; ``RULEOUT_DATABASE`` goes before the address in its folder."""
        place = Path(os.path.realpath(Path(folder).expanduser()))
        card = read_card(place)
        own = sqlite(place) if card.database == DATABASE else postgresql(card.database)
        store = Store.open(from_environment() or own)
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
        """The folder of the images; None where the items are no images.

        Raises
        ------
        InputError
            If it is no longer where it was.
        """
        if self.kind != "images":
            return None
        if not self.source.is_dir():
            remedy = f"move it back, or write its new place as source into {self.folder / FILE}"
            raise InputError("the folder of the images is gone", remedy, file=self.source)
        return self.source

    def close(self) -> None:
        """Close every connection."""
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


def _private(folder: Path) -> str:
    """Return the address of a new SQLite file; it will hold hashes of passwords."""
    os.close(os.open(folder / DATABASE, os.O_CREAT | os.O_EXCL, 0o600))
    return sqlite(folder)


def _place(source: str | Path) -> str:
    place = os.path.realpath(Path(source).expanduser())
    if not storable(place):
        raise InputError(f"the path {place!a} is not UTF-8", "rename what it is made of")
    return place


def _card(database: str, identity: str, found: Found, source: str) -> Card:
    kind: Source = "table" if found.root is None else "images"
    return Card(database=database, identity=identity, source=source, kind=kind)


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
