"""kill -9 at any moment: what was acknowledged is there, and nothing is half there."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest
from tiers import COUNT
from web.made import make_items

from ruleout.web import Settings, Store

PROGRAM = Path(__file__).with_name("killed_annotator.py")


def _killed(url: str, users: list[int], seconds: float) -> set[str]:
    """Let workers answer, kill them, and return what was acknowledged to them."""
    running = [
        subprocess.Popen(
            [sys.executable, str(PROGRAM), url, str(user)], stdout=subprocess.PIPE, text=True
        )
        for user in users
    ]
    for worker in running:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    told = {worker.stdout.readline().strip() for worker in running if worker.stdout}
    time.sleep(seconds)
    for worker in running:
        worker.kill()
    for worker in running:
        output, _ = worker.communicate()
        whole = output.splitlines(keepends=True)
        told |= {line.strip() for line in whole if line.endswith("\n")}
    return told


def _run(url: str, times: int, workers: int) -> None:
    settings = Settings(classes=tuple("abcdef"), rounds=2)
    random = Random(5)
    acknowledged: set[str] = set()
    with Store.create(url, settings, make_items(200)) as store:
        users = [store.add_user(f"user {n}").id for n in range(workers)]
        for _ in range(times):
            acknowledged |= _killed(url, users, random.uniform(0.02, 0.5))
            assert store.check() == []
        logged = {row.id for row in store.log()}
    assert len(acknowledged) >= times * workers
    assert acknowledged <= logged
    assert len(logged - acknowledged) <= times * workers  # one may be on its way when killed


def test_nothing_acknowledged_is_lost_when_workers_are_killed(url: str) -> None:
    _run(url, times=1, workers=2)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_many_kills(durable_url: str) -> None:
    _run(durable_url, times=max(2, int(25 * COUNT)), workers=5)
