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
from web.made import Make, make_items
from web.servers import MEMORY, Server, running_server

from ruleout.web import Item, Settings, Store

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


@pytest.fixture(scope="session")
def durable_postgresql() -> Iterator[Server]:
    """A server as teams run it."""
    yield from running_server(None)


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
