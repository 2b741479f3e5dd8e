"""Passwords: argon2, and a login that costs the same whether or not there is such a user."""

from __future__ import annotations

import secrets
import unicodedata
from collections.abc import Callable
from functools import cached_property
from typing import ParamSpec, TypeVar

from anyio import CapacityLimiter, to_thread
from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from ruleout.web.service.problems import ProblemError

__all__ = ["LONGEST", "SHORTEST", "Passwords"]

#: How many characters a password has.
SHORTEST, LONGEST = 10, 1000

_AT_A_TIME = 2  # one hash takes 64 MiB and all of a core
_WAITING = 200  # people who may wait for theirs

P = ParamSpec("P")
T = TypeVar("T")


class Passwords:
    """Hashes and checks passwords."""

    def __init__(self, hasher: PasswordHasher) -> None:
        self._hasher = hasher
        self._limiter = CapacityLimiter(_AT_A_TIME)

    @cached_property
    def _nobodys(self) -> str:
        """The hash that is checked for who has none, so that nobody can tell by the time."""
        return self._hasher.hash(secrets.token_hex(16))

    def hash(self, password: str) -> str:
        """Return the text that the store keeps."""
        return self._hasher.hash(_bytes(password))

    def fits(self, password: str, kept: str | None) -> bool:
        """Tell whether it is the password; with None it takes as long and is not."""
        try:
            fits = self._hasher.verify(self._nobodys if kept is None else kept, _bytes(password))
        except (VerificationError, InvalidHashError):
            return False
        return fits and kept is not None

    def is_stale(self, kept: str) -> bool:
        """Tell whether the hash was made with other parameters than today's."""
        return self._hasher.check_needs_rehash(kept)

    async def slowly(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function that hashes in one of few threads, so that the others stay free."""
        if self._limiter.statistics().tasks_waiting >= _WAITING:
            sentence = "too many people are logging in just now; try again in a moment"
            raise ProblemError("unavailable", sentence, {"retry-after": "5"})
        return await to_thread.run_sync(lambda: function(*args, **kwargs), limiter=self._limiter)


def _bytes(password: str) -> bytes:
    """One password is the same bytes on every keyboard."""
    return unicodedata.normalize("NFC", password).encode()
