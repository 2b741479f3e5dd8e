"""A real service on a free port, with real little images, that can stop and come back."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from argon2 import PasswordHasher
from PIL import Image
from sklearn.datasets import load_digits

from ruleout.web import Item, LogRow, Settings, Store, User
from ruleout.web.service import Options, make_app

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
PASSWORD = "a quiet green pond"
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)  # tests log in often


@dataclass
class Site:
    """A project that is served."""

    store: Store
    images: Path
    options: Options
    port: int = 0
    server: uvicorn.Server | None = None
    thread: threading.Thread | None = None
    users: dict[str, User] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serve, at the same address as before."""
        listener = socket.create_server(("127.0.0.1", self.port))
        self.port = listener.getsockname()[1]
        app = make_app(self.store, images=self.images, options=self.options)
        config = uvicorn.Config(app, log_config=None, lifespan="off", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, args=([listener],))
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)

    def stop(self) -> None:
        """Stop serving; nobody gets an answer any more."""
        if self.server is not None and self.thread is not None:
            self.server.should_exit = True
            self.thread.join()
            for listener in self.server.servers:
                listener.close()
        self.server = None

    def invite(self, name: str, role: Any = "annotator") -> str:
        """Return an invite link."""
        return f"{self.address}/join/{self.store.invite(name, role)}"

    def session(self, name: str, role: Any = "annotator") -> dict[str, Any]:
        """Return the cookie of somebody who has logged in."""
        self.store.accept(self.store.invite(name, role), QUICK.hash(PASSWORD))
        token = self.store.begin(self.store.user(name), hours=1)
        cookie = f"ruleout-{self.store.identity[:8]}"
        return {"name": cookie, "value": token, "url": self.address, "httpOnly": True}

    def counted(self) -> list[LogRow]:
        """Return the answers that stand and fill a round, in the order of arrival."""
        kinds = ("yes", "no", "excluded")
        return [row for row in self.store.log() if row.counts and row.kind in kinds]


@cache
def _digits() -> Any:
    return load_digits().images


def digit_images(folder: Path, n: int) -> list[Item]:
    """Write so many digits as PNG files."""
    folder.mkdir(exist_ok=True)
    for number, pixels in enumerate(_digits()[:n]):
        framed = np.pad(255 - pixels * 15.9, 1, constant_values=255).astype("uint8")
        Image.fromarray(framed).save(folder / f"{number}.png")
    return [Item(name=f"{i}.png", kind="image", path=f"{i}.png") for i in range(n)]


@contextmanager
def served(url: str, folder: Path, items: int | list[Item], **settings: Any) -> Iterator[Site]:
    """Serve a project of so many digits, or of these items."""
    every = digit_images(folder / "images", items) if isinstance(items, int) else items
    asked = Settings(**{"classes": DIGITS, "cap": 5, **settings})
    options = Options(name="Digits", hasher=QUICK)
    with Store.create(url, asked, every) as store:
        site = Site(store, folder / "images", options)
        site.start()
        try:
            yield site
        finally:
            site.stop()
