"""How the service behaves: what projects may set, and every limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from argon2 import PasswordHasher

from ruleout.web.items import Limits

#: The names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

HEADER_BYTES = 65_536  # of one request, give or take what arrives at once
HEADER_SECONDS = 30.0  # for the headers of a request to arrive
BODY_SECONDS = 30  # for its body
FORM_FIELDS = 20
KEEP_ALIVE_SECONDS = 75  # a connection is kept while somebody looks at an item
STOP_SECONDS = 10  # for requests to end when the service is stopped
TOKEN_CHARACTERS = 200  # in a cookie or an invite link; ours have 43
PASSWORD_CHARACTERS = (10, 1000)
HASHES_AT_ONCE = 2  # one takes 64 MiB and all of a core
HASHES_WAITING = 400  # people who may wait for theirs, half of them from one address
LIMITED_KEYS = 10_000  # people and addresses whose requests are counted
CHECKED_IMAGES = 100_000  # whose content is known to be as it was
KEPT_ITEMS = 1000  # in memory: they never change, and each is sent several times


def body_bytes(classes: int) -> int:
    """Return how large a body may be; ruling out most of very many classes takes more.

    >>> body_bytes(10), body_bytes(100_000)
    (65536, 804096)
    """
    return max(65_536, 4096 + 8 * classes)


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a running service; the project's own are in its store.

    Attributes
    ----------
    name
        What the project is called on its pages.
    origin
        The address that people type where a proxy stands in front, such as
        ``https://label.example.org``; None: the one that a request names.
    hosts
        The names by which the service may be addressed, without ports; None: any. A page of a
        stranger can make its own name point at 127.0.0.1 and then read what is served there
        (DNS rebinding), so :func:`serve` sets the loopback names where it serves on loopback.
    behind_proxy, proxies
        Whether a proxy tells client addresses and the scheme, and which addresses it has.
    session_hours
        How long a login lasts without a request.
    rate, burst
        How many requests per second one person may send for long, and at once.
    free_failures, longest_delay
        How many logins of a name from an address may fail before the next try must wait, and the
        longest wait in seconds; each failure doubles it.
    limits
        How large an image may be.
    hasher
        How passwords are hashed.
    clock
        What time it is.
    """

    name: str = "ruleout"
    origin: str | None = None
    hosts: tuple[str, ...] | None = None
    behind_proxy: bool = False
    proxies: str = "127.0.0.1,::1"
    session_hours: float = 12.0
    rate: float = 30.0
    burst: float = 100.0
    free_failures: int = 5
    longest_delay: float = 300.0
    limits: Limits = field(default_factory=Limits)
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    clock: Callable[[], datetime] = _now
