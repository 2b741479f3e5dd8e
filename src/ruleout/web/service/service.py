"""What the routes of one running service share."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path

from ruleout.web.service.bodies import most_bytes
from ruleout.web.service.cookies import Cookie
from ruleout.web.service.failures import Failures
from ruleout.web.service.limits import Buckets
from ruleout.web.service.options import Options
from ruleout.web.service.pages import Pages
from ruleout.web.service.passwords import Passwords
from ruleout.web.store import Store

__all__ = ["Service"]


@dataclass(frozen=True)
class Service:
    """A store, its images, and what is kept in memory while it is served."""

    store: Store
    images: Path | None
    options: Options

    def now(self) -> datetime:
        """Return what time it is."""
        return self.options.clock()

    @cached_property
    def cookie(self) -> Cookie:
        """The session's cookie."""
        return Cookie(self.store.identity)

    @cached_property
    def pages(self) -> Pages:
        """The templates."""
        return Pages(self.options.name)

    @cached_property
    def failures(self) -> Failures:
        """What is said about errors."""
        return Failures(self.pages)

    @cached_property
    def passwords(self) -> Passwords:
        """How passwords are checked."""
        return Passwords(self.options.hasher)

    @cached_property
    def most_bytes(self) -> int:
        """How large a request may be."""
        return most_bytes(len(self.store.settings.classes))

    @cached_property
    def requests(self) -> Buckets:
        """How often each person asks."""
        return Buckets(size=self.options.burst, rate=self.options.rate, clock=self.options.clock)

    @cached_property
    def by_name(self) -> Buckets:
        """How often logins with a name failed; one more is allowed each minute."""
        return Buckets(size=self.options.name_failures, rate=1 / 60, clock=self.options.clock)

    @cached_property
    def by_address(self) -> Buckets:
        """How often logins from an address failed; one more is allowed every six seconds."""
        return Buckets(size=self.options.address_failures, rate=1 / 6, clock=self.options.clock)
