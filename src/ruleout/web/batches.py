"""Many small transactions as one: SQLite waits for the disk once for all who wait meanwhile.

Whoever comes first leads: takes the work of all who wait, in the order of arrival, runs it in one
transaction, and wakes them when it is on disk. The next in line leads then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Generic, TypeVar

__all__ = ["Batches", "Job"]

T = TypeVar("T")

#: More would let the first of them wait longer than the disk takes.
MOST = 32


class Job(Generic[T]):
    """Work that somebody waits for: a function, and later what it returned or raised."""

    def __init__(self, work: Callable[..., T]) -> None:
        self.work = work
        self.done = False
        self._value: T | None = None
        self._error: BaseException | None = None
        self._asleep = Lock()
        self._asleep.acquire()

    def wait(self) -> None:
        """Sleep until woken."""
        self._asleep.acquire()

    def wake(self) -> None:
        """Wake who waits; once for every sleep."""
        self._asleep.release()

    def run(self, *given: Any) -> None:
        """Do the work and keep what comes of it."""
        self._value = self.work(*given)

    def fail(self, error: BaseException) -> None:
        """Have the work raise this."""
        self._error = error

    def result(self) -> T:
        """Return what the work returned, or raise what it raised."""
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Batches:
    """Runs jobs of many threads, a batch at a time.

    `run` gets a batch and must not raise: it tells each job of its failure.

    Examples
    --------
    >>> batches = Batches(lambda jobs: jobs[0].run())
    >>> batches.do(lambda: "done")
    'done'
    """

    def __init__(self, run: Callable[[Sequence[Job[Any]]], object]) -> None:
        self._run = run
        self._guard = Lock()
        self._waiting: deque[Job[Any]] = deque()
        self._led = False

    def do(self, work: Callable[..., T]) -> T:
        """Do the work in the next batch, and return what it returns."""
        job = Job(work)
        if not self._join(job):
            self._sleep(job)
        if not job.done:
            self._lead()
        return job.result()

    def _join(self, job: Job[Any]) -> bool:
        """Queue up; tell whether to lead."""
        with self._guard:
            self._waiting.append(job)
            leads, self._led = not self._led, True
            return leads

    def _lead(self) -> None:
        with self._guard:
            jobs = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        try:
            self._run(jobs)
        finally:
            self._hand_over()
            for job in jobs:
                job.done = True
                job.wake()

    def _hand_over(self) -> None:
        with self._guard:
            if self._waiting:
                self._waiting[0].wake()  # not done: it leads
            else:
                self._led = False

    def _sleep(self, job: Job[Any]) -> None:
        try:
            job.wait()
        except BaseException:
            self._give_up(job)
            raise

    def _give_up(self, job: Job[Any]) -> None:
        """Leave the line; who had been told to lead just now passes it on."""
        with self._guard:
            if job not in self._waiting:
                return  # it is being done, or is done
            first = self._waiting[0] is job
            told = first and job._asleep.acquire(blocking=False)
            self._waiting.remove(job)
        if told:
            self._hand_over()
