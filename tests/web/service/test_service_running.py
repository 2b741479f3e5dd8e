"""The service as a process: it listens, keeps to its name, answers quickly and stops in order."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from web.service import served_project
from web.service.running import on_a_port
from web.service.site import Site

from ruleout.web import StoreError
from ruleout.web.service import serve
from ruleout.web.service.server import HeaderTimeout


@contextmanager
def process(site: Site) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve a project in a process of its own."""
    command = [sys.executable, served_project.__file__, site.url, str(site.images)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running, running.stdout.readline().strip()
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(site: Site, told: signal.Signals) -> None:
    token = site.store.begin(site.user("Ann"), hours=1)
    with process(site) as (running, address), httpx.Client(base_url=address) as client:
        client.cookies.set(site.cookie, token)
        response = client.get("/api/project")
        assert response.json()["user"]["name"] == "Ann"
        assert "server" not in response.headers
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert client.post("/login", data={"name": "Ann", "password": "x"}).status_code == 401
        running.send_signal(told)
        said, log = running.communicate(timeout=30)
        assert said == "stopped in order\n"
        line = r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d[+-]\d{4} WARNING login of 'Ann' from \S+ failed\n"
        assert re.fullmatch(line, log)


def test_what_is_written_in_two_pieces_does_not_wait(site: Site) -> None:
    """Without TCP_NODELAY each response takes 40 ms."""
    with process(site) as (_, address), httpx.Client(base_url=address) as client:
        times = []
        for _ in range(20):
            start = time.perf_counter()
            assert client.get("/health").status_code == 200
            times.append(time.perf_counter() - start)
        assert min(times) < 0.02


def test_a_port_that_is_taken_is_said_in_a_sentence(site: Site) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreError, match=f"cannot listen on '127.0.0.1' port {port}"):
            serve(site.store, port=port)


def test_a_broken_certificate_is_said_in_a_sentence(site: Site, tmp_path: Path) -> None:
    broken = tmp_path / "broken.pem"
    broken.write_text("no certificate")
    with pytest.raises(StoreError, match="cannot speak https"):
        serve(site.store, port=0, certificate=broken, key=broken)


@pytest.fixture
def connect(site: Site) -> Iterator[Callable[[], socket.socket]]:
    """Connect to a service that waits half a second for a request."""

    class Quick(HeaderTimeout):
        seconds = 0.5

    with ExitStack() as stack:
        address = stack.enter_context(on_a_port(site.app, http=Quick, timeout_keep_alive=1))
        port = int(address.rpartition(":")[2])

        def connected() -> socket.socket:
            return stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5))

        yield connected


WHOLE = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def _is_answered(connection: socket.socket) -> bool:
    told = b""
    while not told.endswith(b'{"ok":true}') and (more := connection.recv(1000)):
        told += more
    return b"200 OK" in told


def _is_cut(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1000)
    except OSError:  # systems differ in how they say it
        return True


@pytest.mark.parametrize("begun", [b"", b"GET /he", WHOLE + b"GET /he"])
def test_who_is_slow_to_ask_is_cut_off(connect: Callable[[], socket.socket], begun: bytes) -> None:
    connection = connect()
    connection.sendall(begun)
    assert _is_answered(connection) == begun.startswith(WHOLE)
    assert _is_cut(connection)


def test_who_asks_again_in_time_is_not_cut_off(connect: Callable[[], socket.socket]) -> None:
    connection = connect()
    for _ in range(3):
        connection.sendall(WHOLE[:30])
        time.sleep(0.3)
        connection.sendall(WHOLE[30:])
        assert _is_answered(connection)


def _is_taken(connection: socket.socket, piece: bytes) -> bool:
    time.sleep(0.002)
    try:
        connection.sendall(piece)
    except OSError:
        return False
    return True


def test_headers_without_end_are_not_kept(connect: Callable[[], socket.socket]) -> None:
    connection, piece = connect(), b"x: " + b"a" * 9995 + b"\r\n"
    connection.sendall(b"GET /health HTTP/1.1\r\n")
    taken = sum(_is_taken(connection, piece) for _ in range(100))
    assert taken < 50
