"""The real service in a process of its own, to be killed and started again."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from web.servers import free_port

PROGRAM = Path(__file__).with_name("serving.py")


class Served:
    """A server that can be killed and started again on the same port."""

    def __init__(self, url: str, port: int | None = None, **limits: Any) -> None:
        self.url, self.port = url, port or free_port()
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = [sys.executable, str(PROGRAM), self.url, str(self.port)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(command, env=environment, **self._limits)
        until = time.monotonic() + 60
        while not self.answers():
            assert self._process.poll() is None, "the server ended before it answered"
            assert time.monotonic() < until, "the server did not answer for a minute"
            time.sleep(0.02)

    def answers(self) -> bool:
        """Tell whether somebody listens."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """End it with kill -9, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


@contextmanager
def served(url: str, **limits: Any) -> Iterator[Served]:
    """Serve a project, and kill the server in the end."""
    server = Served(url, **limits)
    server.start()
    try:
        yield server
    finally:
        server.kill()
