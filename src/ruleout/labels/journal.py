"""What ledgers and labelling projects tell their databases: SQLite's journal, patience."""

import sqlite3
from collections.abc import Callable
from time import monotonic, sleep

PATIENCE = 60  # seconds that one waits for others who write
#: So that a connection that a firewall forgot is given up after half a minute, not after many.
ALIVE = {"connect_timeout": 10, "keepalives_idle": 30, "keepalives_interval": 5,
         "keepalives_count": 3, "tcp_user_timeout": 30_000}  # fmt: skip


def keep_a_journal(execute: Callable[[str], object]) -> None:
    """Keep a write-ahead log from now on, going on trying while others use the file.

    Of two processes that do this at once, SQLite lets only one wait by itself.
    """
    end = monotonic() + PATIENCE
    while True:
        try:
            execute("PRAGMA journal_mode = WAL")
            return
        except Exception as error:
            cause = getattr(error, "orig", error)  # SQLAlchemy wraps what SQLite raised
            code = getattr(cause, "sqlite_errorcode", None) or 0
            if code & 0xFF != sqlite3.SQLITE_BUSY or monotonic() > end:
                raise
            sleep(0.02)
