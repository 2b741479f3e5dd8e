"""How often somebody may do something: bounded counts in memory, for one event loop."""

import math
from collections import OrderedDict
from collections.abc import Hashable

from ruleout.web.service.options import LIMITED_KEYS, Options


class _Recent(OrderedDict[Hashable, tuple[float, float]]):
    """Two numbers for each key; the key that was used least recently goes first."""

    def keep(self, key: Hashable, one: float, other: float) -> None:
        self[key] = one, other
        self.move_to_end(key)
        if len(self) > LIMITED_KEYS:
            self.popitem(last=False)


class Buckets:
    """A bucket of tokens for each key; it refills at a rate, up to a burst.

    A clock that goes back refills nothing.
    """

    def __init__(self, options: Options) -> None:
        self._size, self._rate, self._clock = options.burst, options.rate, options.clock
        self._kept = _Recent()

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

    A day without a failure forgets those before; a clock that goes back makes no delay longer.
    """

    def __init__(self, options: Options) -> None:
        self._options, self._kept = options, _Recent()

    def wait(self, key: Hashable) -> int:
        """Return the seconds until the next try; 0: now."""
        failures, then = self._kept.get(key, (0, 0.0))
        beyond = failures - self._options.free_failures
        if beyond < 0:
            return 0
        delay: float = min(2.0 ** min(beyond, 60), self._options.longest_delay)
        passed = self._options.clock().timestamp() - then
        return math.ceil(max(0.0, min(delay, delay - passed)))

    def failed(self, key: Hashable) -> None:
        now = self._options.clock().timestamp()
        failures, then = self._kept.get(key, (0, now))
        self._kept.keep(key, 1 if now - then > 86_400 else failures + 1, now)

    def succeeded(self, key: Hashable) -> None:
        self._kept.pop(key, None)
