"""Every test of the store runs on SQLite; those that PostgreSQL might fail run there too.

The rest of them runs on PostgreSQL in the slow tier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from sqlalchemy import Connection, event
from web.made import Make, make_items
from web.servers import MEMORY, QUICK, Server, install, programs, server

from ruleout.web import Item, Settings, Store, database

#: Whose tests run on PostgreSQL in the default tier: locks, batches, plans, old schemas.
ON_BOTH = (
    "test_store_batches", "test_store_grow", "test_store_races", "test_store_schema",
    "test_store_upgrade",
)  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        on = getattr(getattr(item, "callspec", None), "params", {}).get("url")
        if on == "postgresql" and item.path.stem not in ON_BOTH:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session", autouse=True)
def migrate_once() -> Iterator[None]:
    """Run the migrations once for each kind of database; then say again what they said."""
    climb, known = database.climb, dict[str, list[tuple[str, Any]]]()

    def again(connection: Connection, to: str = "head") -> None:
        kind = connection.dialect.name
        if to != "head" or database.revision(connection) is not None:
            climb(connection, to)
        elif kind in known:
            for statement, given in known[kind]:
                connection.exec_driver_sql(statement, given)
        else:
            said: list[tuple[str, Any]] = []

            def listen(_c: object, _k: object, sql: str, given: Any, *_: object) -> None:
                if not sql.startswith(("SELECT", "PRAGMA")):
                    said.append((sql, given))

            event.listen(connection, "before_cursor_execute", listen)
            climb(connection, to)
            event.remove(connection, "before_cursor_execute", listen)
            known[kind] = said

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(database, "climb", again)
        yield


def _server(folder: Path | None, **options: str) -> Iterator[Server]:
    if programs() is None:
        install()
    binaries = programs()
    if binaries is None:
        pytest.skip("no PostgreSQL is installed (apt-get install postgresql)")
    with server(binaries, folder, **options) as running:
        yield running


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A quick server: it would not survive a power cut."""
    yield from _server(MEMORY, **QUICK)


@pytest.fixture(scope="session")
def durable_postgresql() -> Iterator[Server]:
    """A server as teams run it."""
    yield from _server(None)


@pytest.fixture
def quick_folder() -> Iterator[Path]:
    """A folder in memory, for databases whose disk is not what is tested."""
    with TemporaryDirectory(dir=MEMORY) as folder:
        yield Path(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, quick_folder: Path) -> str:
    """The address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{quick_folder / 'project.sqlite'}"
    return str(request.getfixturevalue("postgresql").database())


@pytest.fixture(params=["sqlite", "postgresql"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database on a disk that is waited for."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'project.sqlite'}"
    return str(request.getfixturevalue("durable_postgresql").database())


@pytest.fixture
def make(url: str) -> Iterator[Make]:
    """Make a project of some items; settings by name."""
    with ExitStack() as stack:

        def made(items: int | list[Item] = 5, **settings: Any) -> Store:
            every = make_items(items) if isinstance(items, int) else items
            asked = Settings(**{"classes": tuple("abcdef"), **settings})
            return stack.enter_context(Store.create(url, asked, every))

        yield made


@pytest.fixture
def again(url: str) -> Iterator[Callable[[], Store]]:
    """Open the project of the test once more."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Store.open(url))
