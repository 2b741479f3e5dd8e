"""A small project behind the service, with people, images and a clock that tests move."""

from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

from argon2 import PasswordHasher
from web.service.client import Client

from ruleout.web import Item, Settings, Store, User
from ruleout.web.service import Options, make_app

QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(100))
PASSWORD = "a long password"


class Clock:
    """Shows the time that it is set to."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        """Return it."""
        return self.now

    def pass_by(self, **span: float) -> None:
        """Let time pass."""
        self.now += timedelta(**span)


class Site:
    """A project of ten images (or of given items) that is being served."""

    def __init__(
        self, url: str, folder: Path, items: list[Item] | None = None, **more: Any
    ) -> None:
        self.url, self.images = url, folder / "images"
        self.images.mkdir(exist_ok=True)
        self.clock = Clock()
        self._stack = ExitStack()
        asked = Settings(classes=more.pop("classes", tuple("abcdef")), **more.pop("settings", {}))
        self.store = Store.create(url, asked, items or self._pictures())
        self._stack.callback(self.store.close)
        self.options = Options(**{"hasher": QUICK, "clock": self.clock, **more})
        self.app = make_app(self.store, images=self.images, options=self.options)
        self.cookie = f"ruleout-{self.store.identity[:8]}"

    def _pictures(self) -> list[Item]:
        for number in range(10):
            (self.images / f"{number}.png").write_bytes(PNG)
        return [Item(name=f"{n}.png", kind="image", path=f"{n}.png") for n in range(10)]

    def client(self, token: str | None = None) -> Client:
        """Return a client, of a session where one is given."""
        return self._stack.enter_context(Client(self.app, token, self.cookie))

    def login(self, name: str = "Ann", role: Any = "annotator") -> Client:
        """Return a client that is logged in, with the token for its POSTs."""
        client = self.client(self.store.begin(self.user(name, role), hours=12, now=self.clock()))
        client.read_csrf()
        return client

    def user(self, name: str, role: Any = "annotator") -> User:
        """Return the user of that name, new or not."""
        known = {user.name: user for user in self.store.users()}
        return known.get(name) or self.store.add_user(name, role, self.clock())

    def member(self, name: str, role: Any = "annotator", password: str = PASSWORD) -> User:
        """Return a user who has a password."""
        token = self.store.invite(name, role, now=self.clock())
        return self.store.accept(token, QUICK.hash(password), self.clock())

    def __enter__(self) -> Site:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stack.close()
