"""Running the service: one process, one port, until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from errno import EADDRNOTAVAIL
from ipaddress import ip_address
from pathlib import Path
from signal import SIGINT, SIGTERM
from threading import current_thread, main_thread

import uvicorn

from ruleout.web.entities import StoreError
from ruleout.web.service.app import make_app
from ruleout.web.service.options import LOOPBACK, Options
from ruleout.web.service.patience import Impatient
from ruleout.web.store import Store

__all__ = ["serve"]

_THINKING = 75  # seconds a connection is kept while somebody looks at an item
_STOPPING = 10  # seconds for requests to end


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

    Parameters
    ----------
    host, port
        Where to listen; port 0 takes a free one. On a loopback address only requests that name a
        loopback host (or that of ``options.origin``) are answered, see :class:`Options`.
    certificate, key
        For https: PEM files. Without them the service speaks plain http.
    ready
        Called with the address once connections are accepted.
    """
    chosen = options or Options()
    if chosen.hosts is None and _is_loopback(host):
        chosen = replace(chosen, hosts=LOOPBACK)
    config = uvicorn.Config(
        make_app(store, images=images, options=chosen),
        http=Impatient,
        server_header=False,
        proxy_headers=chosen.behind_proxy,
        forwarded_allow_ips=chosen.proxies,
        access_log=False,
        log_config=None,
        lifespan="off",
        ws="none",
        timeout_keep_alive=_THINKING,
        timeout_graceful_shutdown=_STOPPING,
        ssl_certfile=certificate,
        ssl_keyfile=key,
    )
    _load(config)
    with _listener(host, port) as listener:
        if ready is not None:
            ready(chosen.origin or _address(host, listener, config.is_ssl))
        _Server(config).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Stops in order and returns; uvicorn's own would pass the signal on, which kills us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop at SIGINT and SIGTERM."""
        if current_thread() is not main_thread():  # signals are for the main thread alone
            yield
            return
        before = {one: signal.signal(one, self.handle_exit) for one in (SIGINT, SIGTERM)}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)


def _load(config: uvicorn.Config) -> None:
    try:
        config.load()
    except OSError as error:  # what ssl raises is one too
        remedy = "give a certificate and its key as PEM files"
        raise StoreError(f"cannot speak https ({error})", remedy) from None


def _is_loopback(host: str) -> bool:
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


def _address(host: str, listener: socket.socket, secure: bool) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http{'s' * secure}://{shown}:{listener.getsockname()[1]}"
