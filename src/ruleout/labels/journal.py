"""SQLite's journal: others read while one writes, in ledgers and labelling projects."""

import sqlite3
from collections.abc import Callable
from time import monotonic, sleep

PATIENCE = 60  # seconds that one waits for others who write


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
            if not _is_busy(error) or monotonic() > end:
                raise
            sleep(0.02)


def _is_busy(error: Exception) -> bool:
    cause = getattr(error, "orig", error)  # SQLAlchemy wraps what SQLite raised
    busy = sqlite3.SQLITE_BUSY
    return isinstance(cause, sqlite3.OperationalError) and cause.sqlite_errorcode & 0xFF == busy
