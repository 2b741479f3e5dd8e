"""Building the service and running it: one process, one port, until it is told to stop."""

import asyncio
import logging
import socket
from collections.abc import Callable
from dataclasses import replace
from errno import EADDRNOTAVAIL
from ipaddress import ip_address
from operator import attrgetter
from pathlib import Path
from signal import SIGINT
from types import SimpleNamespace

import uvicorn
from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from ruleout.web.entities import StoreError, UnavailableError
from ruleout.web.service import options as limits
from ruleout.web.service.auth import Auth
from ruleout.web.service.gate import ACCESS, Call, Gate, json_response
from ruleout.web.service.guidelines import Guidelines
from ruleout.web.service.images import Images
from ruleout.web.service.label_api import LabelApi
from ruleout.web.service.options import Options
from ruleout.web.service.pages import Pages
from ruleout.web.service.problems import LOG, cause
from ruleout.web.service.team_api import TeamApi
from ruleout.web.store import Store


def make_app(store: Store, *, images: Path | None = None, options: Options | None = None) -> Gate:
    """Return the labelling service of a project as an ASGI application; who calls closes the store.

    `images` is the folder that the paths of images start from; None: there are no images.
    """
    chosen = options or Options()
    pages = Pages(chosen.name)
    guidelines = Guidelines(chosen.guidelines, chosen.limits.image_bytes)

    def health(_: Call) -> Response:
        try:
            store.ping()
        except UnavailableError as error:
            LOG.error("the database does not answer: %s", cause(error))
            return json_response({"ok": False}, 503)
        return json_response({"ok": True})

    rooms = SimpleNamespace(
        health=health,
        pages=pages,
        auth=Auth(store, chosen, pages),
        label=LabelApi(store, chosen, pages, guidelines),
        team=TeamApi(store, chosen, pages),
        images=Images(store, images, chosen, guidelines),
    )
    endpoints = {row: attrgetter(rule.to)(rooms) for row, rule in ACCESS.items()}
    return Gate(store, chosen, endpoints, pages.failed)


def serve(
    store: Store,
    *,
    images: Path | None = None,
    host: str = "127.0.0.1",
    port: int = 8000,
    options: Options | None = None,
    certificate: Path | None = None,
    key: Path | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve a project until the process gets SIGINT or SIGTERM; requests under way are answered.

    On a loopback address only requests that name a loopback host, or that of ``options.origin``,
    are answered. Port 0 takes a free one; `certificate` and `key` are PEM files, for https. `ready`
    is called with the address once connections are accepted.
    """
    _log_with_times()
    chosen = options or Options()
    if chosen.hosts is None and is_loopback(host):
        chosen = replace(chosen, hosts=limits.LOOPBACK)
    config = uvicorn.Config(
        make_app(store, images=images, options=chosen),
        http=HeaderTimeout,
        server_header=False,
        proxy_headers=chosen.behind_proxy,
        forwarded_allow_ips=chosen.proxies,
        access_log=False,
        log_config=None,
        lifespan="off",
        ws="none",
        timeout_keep_alive=limits.KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=limits.STOP_SECONDS,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    try:
        config.load()
    except OSError as error:  # what ssl raises is one too
        remedy = "give a certificate and its key as PEM files"
        raise StoreError(f"cannot speak https ({error})", remedy) from None
    with _listener(host, port) as listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http{'s' * config.is_ssl}://{shown}:{listener.getsockname()[1]}"
        if ready is not None:
            ready(chosen.origin or address)
        _Server(config).run(sockets=[listener])


def _log_with_times() -> None:
    """Let the log tell when, and who did what, unless the program that serves has its own ways."""
    if not logging.getLogger().handlers and not LOG.handlers:
        time = "%Y-%m-%dT%H:%M:%S%z"
        logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", datefmt=time)
        LOG.setLevel(logging.INFO)


class _Server(uvicorn.Server):
    """Stops in order and returns; uvicorn's own would pass the signal on, which kills us."""

    def handle_exit(self, sig: int, _: object) -> None:
        self.force_exit |= self.should_exit and sig == SIGINT
        self.should_exit = True


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        problem = f"cannot listen on {host!a} port {port} ({error})"
        remedy = "choose another --port, or stop what uses it"
        if isinstance(error, socket.gaierror) or getattr(error, "errno", 0) == EADDRNOTAVAIL:
            remedy = "give --host an address of this machine, or 0.0.0.0 for all"
        raise StoreError(problem, remedy) from None
    # Connections inherit it. Without, each answer may wait 40 ms for the client to confirm.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class HeaderTimeout(AutoHTTPProtocol):  # type: ignore[misc, valid-type]  # uvicorn chooses it
    """A connection that is cut where headers take too long, or are too long.

    uvicorn waits for ever until a request has begun, and some of its parsers keep headers of any
    size. This watches what arrives while no request is under way.
    """

    seconds = limits.HEADER_SECONDS
    _bytes = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        if not self._is_busy():
            self._watch()
            self._bytes += len(data)
            if self._bytes > limits.HEADER_BYTES and self._bytes > len(data):
                self.transport.abort()
                return
        super().data_received(data)
        if self._is_busy():
            self._forget()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def _is_busy(self) -> bool:
        """Tell whether a request has begun and is not answered; else bytes are of the next one."""
        return self.cycle is not None and not self.cycle.response_complete

    def _watch(self) -> None:
        """Wait for a request; further bytes of one give no more time."""
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.transport.abort)

    def _forget(self) -> None:
        self._bytes = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
