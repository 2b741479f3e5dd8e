"""A PostgreSQL server of our own, on loopback, in a temporary folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

QUICK = {"fsync": "off", "full_page_writes": "off"}

#: Where files are quick and lost with the power; None where there is no such place.
MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None


def programs() -> Path | None:
    """Return the folder with initdb, the newest where there are several."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    on_path = shutil.which("initdb")
    return Path(on_path).parent if on_path else None


def _version(initdb: Path) -> float:
    return float(initdb.parts[-3])


def install() -> None:
    """Install PostgreSQL where that is allowed: as root, in CI."""
    if hasattr(os, "geteuid") and os.geteuid() == 0 and os.environ.get("CI"):
        subprocess.run(["apt-get", "update", "-qq"], check=False)
        subprocess.run(["apt-get", "install", "-y", "-qq", "postgresql"], check=False)


class Server:
    """A running server with one database."""

    def __init__(self, port: int) -> None:
        self.port = port

    def database(self) -> str:
        """Empty the database and return its URL; a new one each time would take a second."""
        address = f"host=127.0.0.1 port={self.port} user=ruleout dbname=postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                "DROP SCHEMA IF EXISTS public, ruleout_ledger CASCADE; CREATE SCHEMA public"
            )
        return f"postgresql+psycopg://ruleout@127.0.0.1:{self.port}/postgres"


def running_server(folder: Path | None, **options: str) -> Iterator[Server]:
    """Start a server for a fixture; skip its tests where there is no PostgreSQL."""
    if programs() is None:
        install()
    binaries = programs()
    if binaries is None:
        pytest.skip("no PostgreSQL is installed (apt-get install postgresql)")
    with server(binaries, folder, **options) as running:
        yield running


@contextmanager
def server(binaries: Path, folder: Path | None = None, **options: str) -> Iterator[Server]:
    """Start a server, in a folder where one is given, and stop it in the end."""
    folder = Path(tempfile.mkdtemp(prefix="ruleout-pg-", dir=folder))
    port = free_port()
    told = {**options, "port": str(port), "unix_socket_directories": str(folder),
            "listen_addresses": "127.0.0.1", "max_connections": "300"}  # fmt: skip
    flags = " ".join(f"-c {name}={value}" for name, value in told.items())
    data, control = str(folder / "data"), str(binaries / "pg_ctl")
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres", "postgres")
        _as_postgres([str(binaries / "initdb"), "-D", data, "-U", "ruleout", "-A", "trust",
                      "-E", "UTF8", "--locale=C", "--no-sync"], folder)  # fmt: skip
        log = str(folder / "log")
        _as_postgres([control, "start", "-w", "-D", data, "-l", log, "-o", flags], folder)
        try:
            yield Server(port)
        finally:
            _as_postgres([control, "stop", "-w", "-m", "immediate", "-D", data], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _as_postgres(command: Sequence[str], folder: Path) -> None:
    """Run a command as a user other than root, whom PostgreSQL refuses."""
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    with (folder / "output").open("ab") as output:  # a pipe would stay open in the server
        done = subprocess.run(
            [*as_user, *command], cwd=folder, stdout=output, stderr=output, check=False
        )
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed: {(folder / 'output').read_text()}")


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
