"""How the service behaves where projects differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from argon2 import PasswordHasher

from ruleout.web.items import Limits

__all__ = ["LOOPBACK", "Options"]

#: The names of this machine for itself.
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


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
    name_failures, address_failures
        How many logins may fail at once for a name and from an address.
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
    name_failures: int = 10
    address_failures: int = 50
    limits: Limits = field(default_factory=Limits)
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    clock: Callable[[], datetime] = _now
