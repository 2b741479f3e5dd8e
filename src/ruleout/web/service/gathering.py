"""What many requests ask for, done a batch at a time in a thread, while the others are read."""

from __future__ import annotations

from asyncio import CancelledError, Future, Task, get_running_loop
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
        try:
            while self._waiting:
                await self._do([self._waiting.popleft() for _ in range(self._next())])
        finally:  # at once, not when the task is told to be done: who asks until then waits
            self._free += 1

    def _next(self) -> int:
        return min(MOST, len(self._waiting))

    async def _do(self, batch: Sequence[tuple[A, Future[B]]]) -> None:
        wanted = [asked for asked, _ in batch]
        try:
            run = get_running_loop().run_in_executor(self._threads, self._run, wanted)
            _settle(batch, await run)
        except BaseException as error:
            _settle(batch, [error] * len(batch))
            if not isinstance(error, Exception):
                raise


def _settle(batch: Sequence[tuple[A, Future[B]]], found: Sequence[B | BaseException]) -> None:
    """Hand over; who was cancelled, as when a browser is gone, wants nothing any more."""
    for (_, future), one in zip(batch, found, strict=True):
        if future.done():
            continue
        if isinstance(one, CancelledError):  # the loop ends
            future.cancel()
        elif isinstance(one, BaseException):
            future.set_exception(one)
        else:
            future.set_result(one)
