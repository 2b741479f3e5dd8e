"""A client of the application in the same process, as a browser or a program would be."""

from __future__ import annotations

import asyncio
import re
from types import TracebackType
from typing import Any
from urllib.parse import unquote

import httpx

from ruleout.web.service.gate import Gate

PAGE = {"accept": "text/html,application/xhtml+xml"}
ORIGIN = "http://testserver"


class Client:
    """Sends requests one after the other; `csrf` is sent along where it is set."""

    def __init__(self, app: Gate, token: str | None = None, cookie: str = "") -> None:
        self._runner = asyncio.Runner()
        self._app = app
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        self.http = httpx.AsyncClient(transport=transport, base_url=ORIGIN)
        self.csrf: str | None = None
        if token is not None:
            self.http.cookies.set(cookie, token)

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:
        """Send a request."""
        return self._runner.run(self.http.request(method, path, **more))

    def raw(self, address: str) -> tuple[int, dict[str, str], bytes]:
        """Ask for an address as it stands: httpx would tidy it up, a server does not."""
        path, _, query = address.partition("?")
        cookies = "; ".join(f"{name}={value}" for name, value in self.http.cookies.items())
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET",
            "scheme": "http", "path": unquote(path), "raw_path": path.encode(), "root_path": "",
            "query_string": query.encode(), "client": ("127.0.0.1", 1),
            "server": ("testserver", 80),
            "headers": [(b"host", b"testserver"), (b"cookie", cookies.encode())],
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        self._runner.run(self._app(scope, receive, send))
        headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
        return sent[0]["status"], headers, b"".join(part.get("body", b"") for part in sent[1:])

    def together(self, *requests: tuple[str, str, dict[str, Any]]) -> list[httpx.Response]:
        """Send requests at the same time."""

        async def every() -> list[httpx.Response]:
            sent = [self.http.request(method, path, **more) for method, path, more in requests]
            return await asyncio.gather(*sent)

        return self._runner.run(every())

    def get(self, path: str, **more: Any) -> httpx.Response:
        """Ask for something."""
        return self.send("GET", path, **more)

    def page(self, path: str) -> httpx.Response:
        """Ask for a page as a browser does."""
        return self.get(path, headers=PAGE)

    def api(self, path: str, body: Any, **headers: str) -> httpx.Response:
        """Send JSON as the page does."""
        own = {"x-csrf-token": self.csrf} if self.csrf else {}
        return self.send("POST", path, json=body, headers={**own, **headers})

    def form(self, path: str, headers: Any = None, **fields: str) -> httpx.Response:
        """Send a form as a browser does."""
        own = {"csrf": self.csrf} if self.csrf else {}
        return self.send("POST", path, data={**own, **fields}, headers={**PAGE, **(headers or {})})

    def read_csrf(self) -> str:
        """Read the token against forged requests from the page, and send it from now on."""
        found = re.search(r'<meta name="csrf" content="([^"]+)"', self.page("/").text)
        assert found is not None
        self.csrf = found[1]
        return self.csrf

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._runner.run(self.http.aclose())
        self._runner.close()
