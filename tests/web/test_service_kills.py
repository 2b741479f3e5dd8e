"""kill -9 of the server under a crowd: what was acknowledged is there, and nothing is doubled."""

from __future__ import annotations

import asyncio
import time
from random import Random

import pytest
from tiers import COUNT
from web.crowd import Told, all_at_work, crowd
from web.made import counted, make_items
from web.served import served

from ruleout.web import Settings, Store

CLIENTS = 20


def _killed_often(url: str, times: int) -> Told:
    """Let a crowd label, kill the server so often, and return what it had said."""
    random, told = Random(7), Told()
    settings = Settings(classes=tuple("abcdef"), rounds=2)
    with Store.create(url, settings, make_items(5_000)) as store:
        users = [store.add_user(f"user {n}") for n in range(CLIENTS)]
        with served(url) as server:
            people = crowd(store, server.port, users, told, undo_every=7, think=0.005)

            async def kill() -> None:
                for _ in range(times):
                    before = len(told.acknowledged)
                    await asyncio.sleep(random.uniform(0.01, 0.4))
                    while len(told.acknowledged) < before + 5:  # to kill an idle one says nothing
                        await asyncio.sleep(0.005)
                    await asyncio.to_thread(server.kill)
                    await asyncio.to_thread(server.start)
                    assert store.check() == []

            async def labelling() -> None:
                work = asyncio.create_task(all_at_work(people))
                killing = asyncio.create_task(kill())
                await asyncio.wait([work, killing], return_when=asyncio.FIRST_COMPLETED)
                work.cancel()
                await killing
                await asyncio.gather(work, return_exceptions=True)

            asyncio.run(labelling())
        _check(store, told, times)
    return told


def _check(store: Store, told: Told, times: int) -> None:
    rows = list(store.log())
    logged = [row.id for row in rows]
    assert len(logged) == len(set(logged))
    assert told.acknowledged <= set(logged) <= told.sent
    standing = [(row.item, row.round) for row in counted(store)]
    assert len(standing) == len(set(standing))
    assert len(told.acknowledged) > times
    assert store.check() == []


def test_nothing_acknowledged_is_lost_when_the_server_is_killed(url: str) -> None:
    _killed_often(url, times=2)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_in_many_kills_of_the_server(durable_url: str) -> None:
    start = time.perf_counter()
    times = max(5, int(100 * COUNT**2))  # in CI 9
    told = _killed_often(durable_url, times)
    seconds = time.perf_counter() - start
    print(f"{times} kills, {len(told.acknowledged)} acknowledged, 0 lost, {seconds:.0f} s")
