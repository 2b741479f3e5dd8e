"""How often somebody may do something: token buckets in memory, with a bound on their number."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime
from threading import Lock

__all__ = ["Buckets"]


class Buckets:
    """A bucket of tokens for each key; it refills at a rate, up to its size.

    Parameters
    ----------
    size, rate
        The tokens of a full bucket, and how many come back per second.
    clock
        What time it is; a clock that goes back refills nothing.
    most
        How many buckets are kept; the one that was used least recently goes first.

    Examples
    --------
    >>> from datetime import UTC
    >>> buckets = Buckets(size=2, rate=0.1, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
    >>> [buckets.take("ann") for _ in range(3)]
    [0, 0, 10]
    """

    def __init__(
        self, *, size: float, rate: float, clock: Callable[[], datetime], most: int = 10_000
    ) -> None:
        self._size, self._rate, self._clock, self._most = float(size), rate, clock, most
        self._kept: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()
        self._guard = Lock()

    def take(self, key: Hashable) -> int:
        """Take a token and return 0, or return the seconds to wait for one."""
        with self._guard:
            left, now = self._left(key)
            taken = left >= 1
            self._keep(key, left - 1 if taken else left, now)
        return 0 if taken else math.ceil((1 - left) / self._rate)

    def give_back(self, key: Hashable) -> None:
        """Return a token that was taken for nothing."""
        with self._guard:
            left, now = self._left(key)
            self._keep(key, min(self._size, left + 1), now)

    def __len__(self) -> int:
        return len(self._kept)

    def _left(self, key: Hashable) -> tuple[float, float]:
        now = self._clock().timestamp()
        left, then = self._kept.get(key, (self._size, now))
        return min(self._size, left + max(0.0, now - then) * self._rate), now

    def _keep(self, key: Hashable, left: float, now: float) -> None:
        self._kept[key] = left, now
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
