"""First come, first served: a lock of the standard library lets the quick starve the patient."""

from __future__ import annotations

from collections import deque
from threading import Lock

__all__ = ["Turns"]


class Turns:
    """Lets so many threads in at a time, in the order of arrival.

    Examples
    --------
    >>> turns = Turns(1)
    >>> with turns:
    ...     "alone"
    'alone'
    """

    def __init__(self, places: int) -> None:
        self._free = places
        self._guard = Lock()
        self._waiting: deque[Lock] = deque()

    def __enter__(self) -> None:
        with self._guard:
            if self._free:
                self._free -= 1
                return
            mine = Lock()
            mine.acquire()
            self._waiting.append(mine)
        try:
            mine.acquire()  # until who leaves hands the place over
        except BaseException:
            self._give_up(mine)
            raise

    def __exit__(self, *_: object) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._free += 1

    def _give_up(self, mine: Lock) -> None:
        with self._guard:
            if mine in self._waiting:
                self._waiting.remove(mine)
                return
        self.__exit__()  # the place was handed over just now: pass it on
