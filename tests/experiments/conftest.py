"""Every ledger and every engine passes the same tests; those on Ray are in the slow tier."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from ruleout.experiments import drive, drive_ray


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if params.get("driving") == "ray":
            item.add_marker(pytest.mark.slow)


@pytest.fixture(params=["file", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where an empty ledger can be made."""
    if request.param == "file":
        return str(tmp_path / "a.sqlite")
    return str(request.getfixturevalue("postgresql").database())


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[object]:
    """Two nodes of Ray, which drivers that this process starts will use."""
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed (pip install 'ruleout[ray]')")
    from experiments.clusters import cluster

    with cluster() as made, pytest.MonkeyPatch.context() as patch:
        for name, value in made.environment.items():
            patch.setitem(os.environ, name, value)
        yield made


@pytest.fixture(params=["local", "ray"])
def driving(request: pytest.FixtureRequest) -> Callable[..., None]:
    """An engine, one task at a time."""
    if request.param == "local":
        return drive
    request.getfixturevalue("ray_cluster")
    return partial(drive_ray, workers=1)
