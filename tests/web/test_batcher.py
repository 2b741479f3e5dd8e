"""Batches: who waits shares one, each gets what is theirs, and nobody waits for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Event, Lock
from time import sleep
from typing import Any

import pytest

from ruleout.web.batcher import LARGEST_BATCH, Batcher


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


def _sent(slow: Slow, numbers: Sequence[int]) -> list[Any]:
    """Send 1 ahead and the numbers after it, while the first is being done."""

    async def crowd() -> list[Any]:
        batcher = Batcher(slow)
        ahead = asyncio.create_task(batcher.ask(1))
        while not slow.begun.is_set():
            await asyncio.sleep(0.001)
        others = [asyncio.create_task(batcher.ask(n)) for n in numbers]
        await asyncio.sleep(0.01)
        slow.go.set()
        found = await asyncio.gather(ahead, *others, return_exceptions=True)
        assert found[0] == 1
        return found[1:]

    return asyncio.run(crowd())


def test_requests_that_wait_share_a_batch_in_the_order_of_arrival() -> None:
    slow = Slow()
    assert _sent(slow, [3, 2, 5]) == [9, 4, 25]
    assert slow.batches == [[1], [3, 2, 5]]


def test_requests_that_arrived_together_are_one_batch_from_the_start() -> None:
    """The first does not run ahead of those that the loop has read but not looked at yet."""
    slow = Slow()
    slow.go.set()

    async def crowd() -> list[int]:
        batcher = Batcher(slow)
        return await asyncio.gather(*(batcher.ask(n) for n in range(10, 30)))

    assert asyncio.run(crowd()) == [n * n for n in range(10, 30)]
    assert slow.batches == [[*range(10, 30)]]


def test_a_batch_has_a_largest_size() -> None:
    slow = Slow()
    _sent(slow, range(10, 15 + LARGEST_BATCH))
    assert [len(batch) for batch in slow.batches] == [1, LARGEST_BATCH, 5]


def test_one_that_fails_fails_alone() -> None:
    found = _sent(Slow(), [2, 0, 3])
    assert found[::2] == [4, 9]
    assert isinstance(found[1], ValueError)


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


@pytest.mark.parametrize("lanes", [1, 2])
def test_no_more_batches_are_done_at_a_time_than_there_are_lanes(lanes: int) -> None:
    run = Counted()

    async def crowd() -> None:
        batcher = Batcher(run, lanes=lanes)

        async def one(n: int) -> None:
            await asyncio.sleep(n % 7 / 1000)
            assert await batcher.ask(n) == n

        await asyncio.gather(*(one(n) for n in range(200)))

    asyncio.run(crowd())
    assert run.most == lanes


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
    async def ask(batcher: Batcher[int, int]) -> None:
        for _ in range(2):
            async with asyncio.timeout(30):
                with pytest.raises(ValueError, match="shorter"):
                    await batcher.ask(1)

    asyncio.run(ask(Batcher(_nothing)))
