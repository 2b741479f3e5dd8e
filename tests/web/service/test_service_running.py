"""The service as a process: it listens, keeps to its name, answers quickly and stops in order."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from web.service import served_project
from web.service.site import Site

from ruleout.web import StoreError
from ruleout.web.service import serve


@contextmanager
def process(folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Serve the project of a folder in a process of its own."""
    url = f"sqlite:///{folder / 'project.sqlite'}"
    command = [sys.executable, served_project.__file__, url, str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running, running.stdout.readline().strip()
    finally:
        running.kill()
        running.communicate()


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_stop(
    site: Site, tmp_path: Path, told: signal.Signals
) -> None:
    token = site.store.begin(site.user("Ann"), hours=1)
    with process(tmp_path) as (running, address), httpx.Client(base_url=address) as client:
        client.cookies.set(site.cookie, token)
        response = client.get("/api/project")
        assert response.json()["user"]["name"] == "Ann"
        assert "server" not in response.headers
        assert client.get("/health", headers={"host": "evil.example"}).status_code == 421
        running.send_signal(told)
        said, _ = running.communicate(timeout=30)
        assert said == "stopped in order\n"


@pytest.mark.usefixtures("site")
def test_what_is_written_in_two_pieces_does_not_wait(tmp_path: Path) -> None:
    """Without TCP_NODELAY each response takes 40 ms."""
    with process(tmp_path) as (_, address), httpx.Client(base_url=address) as client:
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
