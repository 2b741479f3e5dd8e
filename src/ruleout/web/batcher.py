"""Collects what many ask for and does it a batch at a time: one trip to the database for all."""

from asyncio import CancelledError, Future, Task, get_running_loop
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

#: More at once would let the first of them wait longer than the disk takes.
LARGEST_BATCH = 64


class Batcher(Generic[A, B]):
    """Collects on an event loop what is asked for while a batch is being done: the next batch.

    `run` does a batch in a thread, in the order of arrival, and returns what each gets, or an
    exception to raise there; where it raises, nobody gets anything. `lanes` batches are done at a
    time. A batch is closed only when the loop has read all requests that have arrived.
    """

    def __init__(
        self, run: Callable[[Sequence[A]], Sequence[B | BaseException]], *, lanes: int = 1
    ) -> None:
        self._run = run
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._free = lanes
        self._busy: set[Task[None]] = set()  # kept, or they might be swept up half done
        self._threads = ThreadPoolExecutor(lanes, thread_name_prefix="ruleout-batch")

    async def ask(self, asked: A) -> B:
        """Wait for what comes of it; who is cancelled holds nobody up."""
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
                count = min(LARGEST_BATCH, len(self._waiting))
                await self._do([self._waiting.popleft() for _ in range(count)])
        finally:  # at once, not when the task is told to be done: who asks until then waits
            self._free += 1

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
