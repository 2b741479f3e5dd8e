"""What a machine lacks skips a test with its reason; RULEOUT_STRICT=1 makes that a failure."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import settings
from tiers import STRICT
from typer.main import get_command

settings.register_profile("ruleout", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ruleout")
torch.set_num_threads(1)  # one for each of two workers


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("cuda") and not torch.cuda.is_available():
        pytest.skip("no CUDA device")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Under RULEOUT_STRICT=1 a skipped test has failed; CUDA is excepted, since CI has none."""
    report = yield
    if STRICT and report.skipped and not item.get_closest_marker("cuda"):
        report.outcome = "failed"
        report.longrepr = f"skipped, but RULEOUT_STRICT=1: {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Any]:
    """A quick server: it would not survive a power cut."""
    from web.servers import MEMORY, QUICK, running_server

    yield from running_server(MEMORY, **QUICK)


@pytest.fixture(scope="session", autouse=True)
def same_secret() -> Iterator[None]:
    """Have all labelling projects draw the same, so that tests of chance repeat themselves.

    Items have small numbers, which tests can name; `web.made.sparse_lots` has those of users.
    """

    def small(rng: np.random.Generator, count: int, taken: set[int]) -> list[int]:
        return [int(number) for number in rng.permutation(count) + 1 + max(taken, default=0)]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ruleout.web.store.new_secret", lambda: 2026)
        patch.setattr("ruleout.web.store._lots", small)
        yield


@pytest.fixture(scope="session", autouse=True)
def same_commands() -> Iterator[None]:
    """Read the options of all commands once: typer's runner does so in each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", cache(get_command))
        yield
