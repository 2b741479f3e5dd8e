"""A Ray cluster of two nodes on this machine, of which one can be killed."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from web.servers import free_port

RAY = Path(sys.executable).with_name("ray")


class Cluster:
    """A head and a node, a core each; whoever has `environment` may use them."""

    def __init__(self, folder: str) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        self.environment = {
            "RAY_ADDRESS": self.address,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN": secrets.token_hex(32),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        port = self.address.partition(":")[2]
        words = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={folder}")
        self.head = self._start(*words)
        self.node: subprocess.Popen[bytes] | None = None
        self.start_node()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        usual = ["start", "--block", "--num-cpus=1", "--object-store-memory=100000000"]
        environment = {**os.environ, **self.environment, "OMP_NUM_THREADS": "1"}
        del environment["RAY_ADDRESS"]
        with Path(self.folder, "log").open("ab") as log:
            return subprocess.Popen(
                [str(RAY), *usual, *words],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def start_node(self) -> None:
        end = time.monotonic() + 120
        while "Ray runtime started" not in Path(self.folder, "log").read_text():
            assert time.monotonic() < end, Path(self.folder, "log").read_text()
            time.sleep(0.1)
        if self.node is None:
            self.node = self._start(f"--address={self.address}")

    def kill_node(self) -> None:
        """Kill all processes of the second node at once, as a power cut would."""
        if self.node is not None:
            _kill(self.node)
            self.node = None

    def workers(self) -> list[int]:
        """Return the processes that compute a task just now, on both nodes."""
        nodes = [node for node in (self.head, self.node) if node is not None]
        return [one for node in nodes for one in members(node, b"ray::_do")]

    def close(self) -> None:
        self.kill_node()
        _kill(self.head)


def members(process: subprocess.Popen[bytes], command: bytes = b"") -> list[int]:
    """Return the processes of a node, of which each worker has a group of its own."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # gone meanwhile
            if os.getsid(int(folder.name)) == process.pid:
                found += [int(folder.name)] * (folder / "cmdline").read_bytes().startswith(command)
    return found


def _kill(process: subprocess.Popen[bytes]) -> None:
    for member in members(process):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)
    process.wait()


@contextmanager
def cluster() -> Iterator[Cluster]:
    """Start a cluster, and kill it in the end."""
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # names of sockets are short
    made = Cluster(folder)
    try:
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)
