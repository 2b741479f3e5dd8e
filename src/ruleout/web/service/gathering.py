"""What many requests ask for, done a batch at a time in a thread, while the others are read."""

from __future__ import annotations

from asyncio import Future, Task, get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from ruleout.web.together import MOST

__all__ = ["Gathering"]

A = TypeVar("A")
B = TypeVar("B")


class Gathering(Generic[A, B]):
    """:class:`ruleout.web.together.Together` for an event loop: a thread is bothered per batch.

    Examples
    --------
    >>> import asyncio
    >>> squares = Gathering(lambda batch: [n * n for n in batch])
    >>> asyncio.run(squares.ask(3))
    9
    """

    def __init__(
        self, run: Callable[[Sequence[A]], Sequence[B | BaseException]], *, lanes: int = 1
    ) -> None:
        self._run = run
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._free = lanes
        self._busy: set[Task[None]] = set()  # kept, or they might be swept up half done
        self._threads = ThreadPoolExecutor(lanes, thread_name_prefix="ruleout-gathering")

    async def ask(self, asked: A) -> B:
        """Wait for what comes of it."""
        loop = get_running_loop()
        future: Future[B] = loop.create_future()
        self._waiting.append((asked, future))
        if self._free:
            self._free -= 1
            lane = loop.create_task(self._work())
            self._busy.add(lane)
            lane.add_done_callback(self._busy.discard)
        return await future

    async def _work(self) -> None:
        """Do batch after batch until nobody waits."""
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
            wanted = [asked for asked, _ in batch]
            try:
                run = get_running_loop().run_in_executor(self._threads, self._run, wanted)
                found: Sequence[B | BaseException] = await run
            except Exception as error:
                found = [error] * len(batch)
            for (_, future), one in zip(batch, found, strict=True):
                _settle(future, one)
        self._free += 1  # here, not when the task is told to be done: who asks until then waits


def _settle(future: Future[B], found: B | BaseException) -> None:
    """Hand over; who was cancelled, as when a browser is gone, wants nothing any more."""
    if future.done():
        return
    if isinstance(found, BaseException):
        future.set_exception(found)
    else:
        future.set_result(found)
