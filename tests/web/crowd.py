"""A crowd of annotators over HTTP: many at once in one thread, cheap enough to share two cores.

They keep an answer until it is acknowledged, as the page's outbox does, and send it again with the
same id whenever the server has died in between.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import uuid4

from ruleout.web import Store, User

_CSRF = re.compile(rb'<meta name="csrf" content="([^"]+)"')
_LOST = (OSError, EOFError, asyncio.IncompleteReadError)


@dataclass
class Told:
    """What the server said to the crowd."""

    acknowledged: set[str] = field(default_factory=set)
    sent: set[str] = field(default_factory=set)
    seconds: list[float] = field(default_factory=list)
    refused: list[tuple[int, str]] = field(default_factory=list)


class Line:
    """A connection of one session, opened anew when it breaks."""

    def __init__(self, port: int, cookie: str) -> None:
        self._port, self._cookie = port, cookie
        self._csrf = ""
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def log_in(self) -> None:
        """Read the token against forged requests from the page."""
        _, content = await self._asked(b"GET", "/", b"")
        found = _CSRF.search(content)
        assert found is not None, content[:300]
        self._csrf = found[1].decode()

    async def post(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        """Send JSON and return the status and what came back."""
        status, content = await self._asked(b"POST", path, json.dumps(body).encode())
        return status, json.loads(content)

    async def _asked(self, method: bytes, path: str, body: bytes) -> tuple[int, bytes]:
        try:
            return await self._exchanged(method, path, body)
        except _LOST:
            self.hang_up()
            raise

    async def _exchanged(self, method: bytes, path: str, body: bytes) -> tuple[int, bytes]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        reader, writer = self._streams
        head = (
            f"{path} HTTP/1.1\r\nHost: 127.0.0.1:{self._port}\r\nCookie: {self._cookie}\r\n"
            f"X-CSRF-Token: {self._csrf}\r\nContent-Type: application/json\r\n"
            f"Accept: text/html, application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        writer.write(method + b" " + head.encode() + body)
        await writer.drain()
        answer = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answer.split(b"content-length:")[1].split(b"\r\n")[0])
        return int(answer.split()[1]), await reader.readexactly(length)

    def hang_up(self) -> None:
        """Close the connection; the next request opens another."""
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


@dataclass
class Annotator:
    """Answers questions until so many answers are acknowledged, or for ever."""

    line: Line
    told: Told
    answers: int | None = None
    pause: Callable[[], float] | None = None  # seconds of thought
    undo_every: int = 0

    async def work(self) -> None:
        """Answer until done or cancelled; wait and send again where the server is gone."""
        try:
            await self._work()
        finally:
            self.line.hang_up()

    async def _work(self) -> None:
        await self._until_through(self.line.log_in)
        given = 0
        questions: list[Any] = []
        while self.answers is None or given < self.answers:
            if not questions:
                questions = await self._next(given)
                continue
            if self.pause:
                await asyncio.sleep(self.pause())
            questions = await self._answer(questions[0], given)
            given += 1
            if self.undo_every and given % self.undo_every == 0:
                questions = await self._send({"id": str(uuid4()), "kind": "undo", "hold": 3})
                given -= 1

    def _hold(self, given: int) -> int:
        return 3 if self.answers is None else min(3, self.answers - given)

    async def _next(self, given: int) -> list[Any]:
        body = {"count": self._hold(given)}
        status, said = await self._until_through(lambda: self.line.post("/api/next", body))
        if status != 200 or not said["questions"]:
            await asyncio.sleep(0.05)
            return []
        return list(said["questions"])

    async def _answer(self, question: Any, given: int) -> list[Any]:
        hold = self._hold(given + 1)
        body = {"id": str(uuid4()), "kind": "no", "question": question["id"], "hold": hold}
        return await self._send(body)

    async def _send(self, body: dict[str, Any]) -> list[Any]:
        """Send until it is acknowledged; the time of the exchange that went through counts."""
        self.told.sent.add(body["id"])

        async def once() -> tuple[int, Any]:
            start = time.perf_counter()
            found = await self.line.post("/api/answer", body)
            self.told.seconds.append(time.perf_counter() - start)
            return found

        status, said = await self._until_through(once)
        if status != 200:
            self.told.refused.append((status, str(said)))
            return []
        assert said["receipt"]["id"] == body["id"]
        if said["receipt"]["status"] != "nothing":  # an undo that found nothing is in no log
            self.told.acknowledged.add(body["id"])
        return list(said["questions"])

    async def _until_through(self, ask: Callable[[], Any]) -> Any:
        while True:
            try:
                found = await ask()
            except _LOST:
                await asyncio.sleep(0.05)
                continue
            if found is None or found[0] not in (429, 500, 503):
                return found
            await asyncio.sleep(0.05)


def cookie_of(store: Store, user: User) -> str:
    """Begin a session and return its cookie."""
    return f"ruleout-{store.identity[:8]}={store.begin(user, hours=24)}"


def crowd(
    store: Store, port: int, users: Iterable[User], told: Told, *, think: float = 0.0, **more: Any
) -> list[Annotator]:
    """Make an annotator for each user, with a session; they think `think` seconds on average."""
    random = Random(1)
    pause = (lambda: random.expovariate(1 / think)) if think else None
    return [
        Annotator(Line(port, cookie_of(store, user)), told, pause=pause, **more) for user in users
    ]


async def all_at_work(annotators: Iterable[Annotator]) -> None:
    """Let all of them work until each is done."""
    await asyncio.gather(*(one.work() for one in annotators))
