"""Batches: who waits shares one, each gets what is theirs, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Lock
from time import sleep
from typing import Any

import pytest

from ruleout.web.batcher import LARGEST_BATCH, Batcher


def squared(batch: Sequence[int]) -> list[int | BaseException]:
    """Square numbers."""
    return [n * n for n in batch]


class Slow:
    """Runs batches, the first only when told to."""

    def __init__(self) -> None:
        self.go, self.begun = Event(), Event()
        self.batches: list[list[Any]] = []

    def __call__(self, batch: Sequence[int]) -> list[int | BaseException]:
        """Square numbers; zero fails, and seven brings all down."""
        self.begun.set()
        assert self.go.wait(30)
        self.batches.append([*batch])
        if 7 in batch:
            raise KeyError("seven")
        return [n * n or ValueError("zero") for n in batch]


def _sent(batcher: Batcher[int, int], slow: Slow, numbers: Sequence[int]) -> list[Any]:
    """Send 1 ahead and the numbers after it, while the first is being done."""
    ahead = batcher.submit(1)
    assert slow.begun.wait(30)
    futures = [batcher.submit(n) for n in numbers]
    slow.go.set()
    assert ahead.result(30) == 1
    return [future.exception(30) or future.result(30) for future in futures]


def test_who_waits_shares_a_batch_in_the_order_of_arrival() -> None:
    slow = Slow()
    with Batcher(slow) as batcher:
        assert _sent(batcher, slow, [3, 2, 5]) == [9, 4, 25]
    assert slow.batches == [[1], [3, 2, 5]]


def test_a_batch_has_a_largest_size() -> None:
    slow = Slow()
    with Batcher(slow) as batcher:
        _sent(batcher, slow, range(10, 15 + LARGEST_BATCH))
    assert [len(batch) for batch in slow.batches] == [1, LARGEST_BATCH, 5]


def test_who_fails_fails_alone_unless_all_do() -> None:
    slow = Slow()
    with Batcher(slow) as batcher:
        found = _sent(batcher, slow, [2, 0, 3])
        assert found[::2] == [4, 9]
        assert isinstance(found[1], ValueError)
        with pytest.raises(KeyError):
            batcher.submit(7).result(30)
        assert batcher.submit(4).result(30) == 16


def test_every_thread_gets_its_own() -> None:
    with (
        Batcher(squared, lanes=3) as batcher,
        ThreadPoolExecutor(16) as threads,
    ):
        assert list(threads.map(lambda n: batcher.submit(n).result(30), range(2000))) == [
            n * n for n in range(2000)
        ]


class Counted:
    """Counts how many batches are done at the same time, at most."""

    def __init__(self) -> None:
        self._guard, self._at_work = Lock(), 0
        self.most = 0

    def __call__(self, batch: Sequence[int]) -> list[int | BaseException]:
        """Take a while, and return what came."""
        with self._guard:
            self._at_work += 1
            self.most = max(self.most, self._at_work)
        sleep(0.005)
        with self._guard:
            self._at_work -= 1
        return [*batch]


@pytest.mark.parametrize("lanes", [1, 3])
def test_no_more_batches_are_done_at_a_time_than_there_are_lanes(lanes: int) -> None:
    run = Counted()
    with Batcher(run, lanes=lanes) as batcher, ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: batcher.submit(n).result(30), range(300)))
    assert run.most == lanes


def test_who_cancels_holds_nobody_up() -> None:
    slow = Slow()
    with Batcher(slow) as batcher:
        ahead = batcher.submit(2)
        assert slow.begun.wait(30)
        gone, stays = batcher.submit(3), batcher.submit(4)
        assert gone.cancel()
        slow.go.set()
        assert (ahead.result(30), stays.result(30)) == (4, 16)


def test_after_the_end_everybody_is_told() -> None:
    batcher = Batcher(squared)
    assert batcher.submit(1).result(30) == 1
    batcher.close()
    for _ in range(3):
        with pytest.raises(RuntimeError):
            batcher.submit(1).result(30)


# ---------------------------------------------------------------------- on an event loop


def test_requests_that_wait_share_a_batch() -> None:
    slow = Slow()

    async def crowd() -> list[Any]:
        batcher = Batcher(slow)
        ahead = asyncio.create_task(batcher.ask(1))
        while not slow.begun.is_set():
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batcher.ask(n)) for n in (3, 0, 5)]
        await asyncio.sleep(0.01)
        slow.go.set()
        return await asyncio.gather(ahead, *others, return_exceptions=True)

    found = asyncio.run(crowd())
    assert [found[0], found[1], found[3]] == [1, 9, 25]
    assert isinstance(found[2], ValueError)
    assert slow.batches == [[1], [3, 0, 5]]


def test_a_batch_that_fails_leaves_the_next_alone() -> None:
    slow = Slow()
    slow.go.set()

    async def crowd() -> Any:
        batcher = Batcher(slow, lanes=2)
        with pytest.raises(KeyError):
            await batcher.ask(7)
        gone = asyncio.create_task(batcher.ask(2))
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.gather(*(batcher.ask(n) for n in range(10, 300)))

    assert asyncio.run(crowd()) == [n * n for n in range(10, 300)]


def test_lanes_bound_the_threads_of_a_batcher() -> None:
    run = Counted()

    async def crowd() -> None:
        batcher = Batcher(run, lanes=2)

        async def one(n: int) -> None:
            await asyncio.sleep(n % 7 / 1000)
            assert await batcher.ask(n) == n

        await asyncio.gather(*(one(n) for n in range(200)))

    asyncio.run(crowd())
    assert run.most == 2


def test_one_request_after_another_each_finds_a_lane() -> None:
    """Who asks in the moment between the end of a batch and the end of its task is served too."""
    slow = Slow()
    slow.go.set()

    async def crowd() -> list[int]:
        batcher = Batcher(slow)
        async with asyncio.timeout(30):
            return [await batcher.ask(n) for n in range(10, 210)]

    assert asyncio.run(crowd()) == [n * n for n in range(10, 210)]


def test_a_loop_that_ends_in_the_midst_takes_no_lane_with_it() -> None:
    slow = Slow()
    batcher = Batcher(slow)

    async def gone() -> None:
        task = asyncio.create_task(batcher.ask(2))
        while not slow.begun.is_set():
            await asyncio.sleep(0.001)
        slow.go.set()
        task.cancel()

    async def next_one() -> int:
        async with asyncio.timeout(30):
            return await batcher.ask(3)

    asyncio.run(gone())
    assert asyncio.run(next_one()) == 9


def _nothing(_: Sequence[int]) -> list[int | BaseException]:
    return []


def test_a_run_that_returns_too_little_is_an_error_and_no_silence() -> None:
    with Batcher(_nothing) as batcher:
        for _ in range(2):
            with pytest.raises(ValueError, match="shorter"):
                batcher.submit(1).result(30)

    async def ask() -> None:
        async with asyncio.timeout(30):
            await Batcher(_nothing).ask(1)

    with pytest.raises(ValueError, match="shorter"):
        asyncio.run(ask())
