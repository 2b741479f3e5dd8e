"""Where the database of a project is: a file in its folder, or a PostgreSQL server.

Addresses may hold a password. None of the sentences here repeats one.
"""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from ruleout.web.errors import StoreError

__all__ = ["DATABASE", "VARIABLE", "from_environment", "postgresql", "sqlite", "without_password"]

#: The SQLite file in the folder of a project.
DATABASE = "labels.sqlite"

#: The environment variable that takes the place of the address in ``project.json``.
VARIABLE = "RULEOUT_DATABASE"

_REMEDY = "write postgresql://USER@HOST/DATABASE, or leave it out for a file in the project"
_SCHEMES = ("postgres", "postgresql", "postgresql+psycopg")


def postgresql(text: str) -> str:
    """Return the address of a PostgreSQL database as SQLAlchemy wants it.

    >>> postgresql("postgresql://ann@db/labels")
    'postgresql+psycopg://ann@db/labels'
    """
    url = _parsed(text)
    if url.drivername not in _SCHEMES or not url.database:
        raise StoreError("this is not the address of a PostgreSQL database", _REMEDY)
    if any("password" in key.lower() for key in url.query):
        problem = "the address holds a password behind the question mark, where it may be printed"
        raise StoreError(problem, "write postgresql://USER:PASSWORD@HOST/DATABASE")
    return url.set(drivername="postgresql+psycopg").render_as_string(hide_password=False)


def without_password(address: str) -> str:
    """Return the address without its password.

    >>> without_password("postgresql+psycopg://ann:secret@db/labels")
    'postgresql+psycopg://ann@db/labels'
    """
    url = make_url(address)
    return URL.create(
        url.drivername, url.username, None, url.host, url.port, url.database, url.query
    ).render_as_string()


def sqlite(folder: Path) -> str:
    """Return the address of the file in the folder of a project, whatever the folder is called.

    >>> sqlite(Path("/data/pets"))
    'sqlite:////data/pets/labels.sqlite'
    """
    return URL.create("sqlite", database=str(folder / DATABASE)).render_as_string()


def from_environment() -> str | None:
    """Return the address that the environment gives; None where it gives none."""
    text = os.environ.get(VARIABLE)
    try:
        return postgresql(text) if text else None
    except StoreError as error:
        raise StoreError(f"{VARIABLE}: {error.problem}", error.remedy) from None


def _parsed(text: str) -> URL:
    try:
        return make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError("this is not the address of a PostgreSQL database", _REMEDY) from None
