"""Collects what many ask for and does it a batch at a time: one trip to the database for all."""

from __future__ import annotations

from asyncio import wrap_future
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Generic, TypeVar

A = TypeVar("A")
B = TypeVar("B")

#: More at once would let the first of them wait longer than the disk takes.
LARGEST_BATCH = 64


class Batcher(Generic[A, B]):
    """Collects what is asked for while a batch is being done; that is the next batch.

    Parameters
    ----------
    run
        Does a batch, in the order of arrival: returns what each gets, or an exception to raise
        there. Where it raises, nobody gets anything.
    lanes
        How many batches are done at a time, each in a thread of its own.

    Examples
    --------
    >>> import asyncio
    >>> with Batcher(lambda batch: [n * n for n in batch]) as squares:
    ...     squares.submit(4).result(), asyncio.run(squares.ask(3))
    (16, 9)
    """

    def __init__(
        self, run: Callable[[Sequence[A]], Sequence[B | BaseException]], *, lanes: int = 1
    ) -> None:
        self._run = run
        self._guard = Lock()
        self._waiting: deque[tuple[A, Future[B]]] = deque()
        self._free = lanes
        self._threads = ThreadPoolExecutor(lanes, thread_name_prefix="ruleout-batch")

    def submit(self, asked: A) -> Future[B]:
        """Queue up; the future gets what comes of it."""
        future: Future[B] = Future()
        with self._guard:
            self._waiting.append((asked, future))
            begins = self._free > 0
            self._free -= begins
        if begins:
            self._begin()
        return future

    async def ask(self, asked: A) -> B:
        """Wait on an event loop for what comes of it; who is cancelled holds nobody up."""
        return await wrap_future(self.submit(asked))

    def close(self) -> None:
        """End the threads, once all is done that was asked for."""
        self._threads.shutdown()

    def __enter__(self) -> Batcher[A, B]:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------------ in a lane

    def _begin(self) -> None:
        try:
            self._threads.submit(self._work)
        except RuntimeError as error:  # closed
            while batch := self._batch():
                _settle(batch, [error] * len(batch))

    def _work(self) -> None:
        """Do batch after batch until nobody waits."""
        while batch := self._batch():
            try:
                _settle(batch, self._run([asked for asked, _ in batch]))
            except BaseException as error:
                _settle(batch, [error] * len(batch))

    def _batch(self) -> list[tuple[A, Future[B]]]:
        with self._guard:
            if not self._waiting:
                self._free += 1
            return [self._waiting.popleft() for _ in range(min(LARGEST_BATCH, len(self._waiting)))]


def _settle(batch: Sequence[tuple[A, Future[B]]], found: Sequence[B | BaseException]) -> None:
    for (_, future), one in zip(batch, found, strict=True):
        if future.done() or not future.set_running_or_notify_cancel():
            continue
        if isinstance(one, BaseException):
            future.set_exception(one)
        else:
            future.set_result(one)
