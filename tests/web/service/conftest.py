"""Sites: most tests run on SQLite, those that write also on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TypeAlias

import pytest
from web.service.site import Site

MakeSite: TypeAlias = Callable[..., Site]


@pytest.fixture
def make_site(tmp_path: Path, quick_folder: Path) -> Iterator[MakeSite]:
    """Make a site on SQLite; options by name."""
    with ExitStack() as stack:
        yield lambda **more: stack.enter_context(
            Site(f"sqlite:///{quick_folder / 'project.sqlite'}", tmp_path, **more)
        )


@pytest.fixture
def site(make_site: MakeSite) -> Site:
    """A site on SQLite."""
    return make_site()


@pytest.fixture
def any_site(url: str, tmp_path: Path) -> Iterator[Site]:
    """A site on SQLite, then one on PostgreSQL."""
    with Site(url, tmp_path) as made:
        yield made
