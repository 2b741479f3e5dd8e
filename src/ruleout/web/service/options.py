"""How the service behaves: what projects may set, and every limit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

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


def body_bytes(classes: int) -> int:
    """Ruling out most of very many classes takes a larger body."""
    return max(65_536, 4096 + 8 * classes)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a running service; the project's own are in its store."""

    name: str = "ruleout"  # of the project, on its pages
    guidelines: Path | None = None  # the folder where those for annotators may be
    origin: str | None = None  # what people type, where a proxy stands in front
    # The names that it answers to, without ports; None: any. A stranger's page can make its own
    # name point at 127.0.0.1 and then read what is served there (DNS rebinding), so `serve` sets
    # the loopback names where it serves on loopback.
    hosts: tuple[str, ...] | None = None
    behind_proxy: bool = False  # whether a proxy tells client addresses and the scheme
    proxies: str = "127.0.0.1,::1"  # the addresses that it has
    session_hours: float = 12.0  # without a request
    rate: float = 30.0  # requests per second of one person for long
    burst: float = 100.0  # and at once
    free_failures: int = 5  # logins of a name from an address, before the next try must wait
    longest_delay: float = 300.0  # seconds; each failure doubles the wait up to this
    limits: Limits = field(default_factory=Limits)
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
