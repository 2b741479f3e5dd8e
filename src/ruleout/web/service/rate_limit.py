"""How often somebody may do something: counts in memory, with a bound on their number.

For one event loop: nothing here is locked.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from datetime import datetime


class _Recent(OrderedDict[Hashable, tuple[float, float]]):
    """Two numbers for each key; the key that was used least recently goes first."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: Hashable, one: float, other: float) -> None:
        self[key] = one, other
        self.move_to_end(key)
        if len(self) > self._most:
            self.popitem(last=False)


class Buckets:
    """A bucket of tokens for each key; it refills at a rate, up to its size.

    Parameters
    ----------
    size, rate
        The tokens of a full bucket, and how many come back per second.
    clock
        What time it is; a clock that goes back refills nothing.
    most
        How many buckets are kept.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon = lambda: datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> buckets = Buckets(size=2, rate=0.1, clock=noon, most=100)
    >>> [buckets.take("ann") for _ in range(3)]
    [0, 0, 10]
    """

    def __init__(
        self, *, size: float, rate: float, clock: Callable[[], datetime], most: int
    ) -> None:
        self._size, self._rate, self._clock = float(size), rate, clock
        self._kept = _Recent(most)

    def take(self, key: Hashable) -> int:
        """Take a token and return 0, or return the seconds to wait for one."""
        now = self._clock().timestamp()
        left, then = self._kept.get(key, (self._size, now))
        left = min(self._size, left + max(0.0, now - then) * self._rate)
        taken = left >= 1
        self._kept.keep(key, left - 1 if taken else left, now)
        return 0 if taken else math.ceil((1 - left) / self._rate)


class Delays:
    """Growing delays after failures: some are free, then each doubles the wait for the next try.

    Parameters
    ----------
    free
        How many failures in a row cost nothing.
    longest
        The longest delay in seconds; a day without a failure forgets those before.
    clock
        What time it is; a clock that goes back makes no delay longer.
    most
        How many keys are kept.

    Examples
    --------
    >>> from datetime import UTC
    >>> noon = lambda: datetime(2026, 1, 1, 12, tzinfo=UTC)
    >>> delays, told = Delays(free=2, longest=60, clock=noon, most=100), []
    >>> for _ in range(5):
    ...     delays.failed("ann")
    ...     told.append(delays.wait("ann"))
    >>> told
    [0, 1, 2, 4, 8]
    """

    def __init__(
        self, *, free: int, longest: float, clock: Callable[[], datetime], most: int
    ) -> None:
        self._free, self._longest, self._clock = free, longest, clock
        self._kept = _Recent(most)

    def wait(self, key: Hashable) -> int:
        """Return the seconds until the next try; 0: now."""
        failures, then = self._kept.get(key, (0, 0.0))
        if failures < self._free:
            return 0
        delay: float = min(2.0 ** min(failures - self._free, 60), self._longest)
        passed = self._clock().timestamp() - then
        return math.ceil(max(0.0, min(delay, delay - passed)))

    def failed(self, key: Hashable) -> None:
        now = self._clock().timestamp()
        failures, then = self._kept.get(key, (0, now))
        self._kept.keep(key, 1 if now - then > _A_DAY else failures + 1, now)

    def succeeded(self, key: Hashable) -> None:
        self._kept.pop(key, None)


_A_DAY = 86_400
