"""Every test of the store runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from web.made import Make, make_items
from web.servers import QUICK, Server, install, programs, server

from ruleout.web import Item, Settings, Store


def _server(**options: str) -> Iterator[Server]:
    if programs() is None:
        install()
    binaries = programs()
    if binaries is None:
        pytest.skip("no PostgreSQL is installed (apt-get install postgresql)")
    with server(binaries, None, **options) as running:
        yield running


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Server]:
    """A quick server: it would not survive a power cut."""
    yield from _server(**QUICK)


@pytest.fixture(scope="session")
def durable_postgresql() -> Iterator[Server]:
    """A server as teams run it."""
    yield from _server()


def _url(kind: str, fixture: str, folder: Path, request: pytest.FixtureRequest) -> str:
    if kind == "sqlite":
        return f"sqlite:///{folder / 'project.sqlite'}"
    return str(request.getfixturevalue(fixture).database())


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database."""
    return _url(request.param, "postgresql", tmp_path, request)


@pytest.fixture(params=["sqlite", "postgresql"])
def durable_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database on a disk that is waited for."""
    return _url(request.param, "durable_postgresql", tmp_path, request)


@pytest.fixture
def make(url: str) -> Iterator[Make]:
    """Make a project of so many items; settings by name."""
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
