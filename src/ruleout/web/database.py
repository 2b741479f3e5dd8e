"""Where SQLite and PostgreSQL differ: how to connect, who may write, what a check looks at.

SQLite has one writer: a lock in this process and ``BEGIN IMMEDIATE`` between processes. PostgreSQL
locks rows (``FOR UPDATE``, which SQLite leaves out by itself). Both have an acknowledged answer on
disk: ``synchronous = FULL``, ``synchronous_commit = on``.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Condition, Lock
from typing import Any, cast

from sqlalchemy import Connection, Table, create_engine, event, exc, inspect
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, OperationalError

from ruleout.labels.journal import ALIVE, PATIENCE, keep_a_journal
from ruleout.web.entities import StoreError, UnavailableError

LOST = "restore it from a backup, or make a project with `ruleout label init`"
_REMEDY = "write sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE"
_WRITERS: dict[str, FairLock] = {}
_CONNECTIONS = 20  # writers at a time
_CROSSED = ("40001", "40P01", "55P03")  # PostgreSQL's for transactions in each other's way
_OFF = ("enable_seqscan", "enable_bitmapscan", "enable_hashjoin", "enable_mergejoin", "jit")
_LOCAL = {**dict.fromkeys(_OFF, "off"), "cpu_tuple_cost": "1", "lock_timeout": "5s"}
_TURNS = "SELECT " + ", ".join(f"set_config('{k}', '{v}', true)" for k, v in _LOCAL.items())
_MIGRATION = 0x72756C656F7574  # "ruleout", the advisory lock of whoever makes or upgrades tables


class FairLock:
    """Lets threads in by the order of arrival; a plain lock lets the quick starve the patient."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._guard = Lock()
        self._waiting: list[Condition] = []

    def __enter__(self) -> None:
        with self._guard:
            mine = Condition(self._guard)
            self._waiting.append(mine)
            try:
                mine.wait_for(lambda: self._free and self._waiting[0] is mine)
                self._free -= 1
            finally:  # also who gives up while waiting
                self._waiting.remove(mine)
                self._wake()

    def _wake(self) -> None:
        if self._free and self._waiting:
            self._waiting[0].notify()

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._free += 1
            self._wake()


class Database:
    """Transactions on a project's database, from any thread."""

    def __init__(self, url: str) -> None:
        parsed = _parsed(url)
        self.file: Path | None = None
        self.lanes = 2  # how many batches of turns are worth doing at a time
        self._writers = FairLock(_CONNECTIONS)
        if parsed.drivername == "sqlite":
            self.file = Path(str(parsed.database)).absolute()
            self.lanes = 1
            self._writers = _WRITERS.setdefault(str(self.file.resolve()), FairLock(1))
        #: As people may see it: the file, or the address without its password.
        self.name = str(self.file or parsed.render_as_string(hide_password=True))
        alive = {} if self.file else {k: v for k, v in ALIVE.items() if k not in parsed.query}
        # Writers take turns for the first twenty connections; the rest are for readers.
        pool: dict[str, Any] = {"pool_size": _CONNECTIONS, "max_overflow": 10, "pool_timeout": 60}
        try:
            self.engine = create_engine(parsed, connect_args=alive, **pool)
        except ImportError:
            remedy = "run pip install 'ruleout[postgres]'"
            raise StoreError("PostgreSQL needs psycopg, which is absent", remedy) from None
        event.listen(self.engine, "connect", _sqlite if self.file else _postgresql)
        if self.file:
            event.listen(self.engine, "begin", _begin)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Everything inside, on disk when the block ends, or nothing."""
        with self._writers, _translated(), self.engine.begin() as connection:
            yield connection

    def by_index(self, connection: Connection) -> None:
        """Look everything in this transaction up by an index, and wait for nobody long.

        PostgreSQL keeps plans: one of when a table was small would read all of it for a minute,
        however large it becomes. Its guess of how many questions are open would have it read all
        questions, bitmaps go through what is long gone, and compiling takes longer than any turn.
        And a process that stands still must not hold up everybody.
        """
        if not self.file:
            connection.exec_driver_sql(_TURNS)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One view of the database, whatever is written meanwhile."""
        with _translated(), self.engine.connect() as plain:
            level = {} if self.file else {"isolation_level": "REPEATABLE READ"}
            connection = plain.execution_options(reading=True, **level)
            with connection.begin():
                yield connection

    @contextmanager
    def looking(self) -> Iterator[Connection]:
        """One statement that reads, without the cost of a transaction around it."""
        with _translated(), self.engine.connect() as plain:
            yield plain.execution_options(isolation_level="AUTOCOMMIT")

    def keep_a_journal(self) -> None:
        """Let readers of SQLite read while one writes (kept in the file)."""
        if self.file:
            with self._writers, _translated(), self.engine.connect() as plain:
                alone = plain.execution_options(isolation_level="AUTOCOMMIT")
                keep_a_journal(alone.exec_driver_sql)

    def alone(self, connection: Connection) -> None:
        """Let one process at a time make or upgrade the tables, until its transaction ends."""
        if not self.file:
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_MIGRATION})")

    def hold_turns(self, connection: Connection) -> None:
        """Let turns, which lock users first, end and wait until this is written, as in SQLite."""
        if not self.file:
            connection.exec_driver_sql("LOCK TABLE users IN EXCLUSIVE MODE")

    def settle(self, connection: Connection, *tables: Table) -> None:
        """Tell PostgreSQL how much was loaded just now, or it plans for empty tables.

        Name no table that is empty: a plan for no rows would be kept while they come in.
        """
        if not self.file:
            connection.exec_driver_sql(f"ANALYZE {', '.join(table.name for table in tables)}")

    def copy_to(self, file: Path) -> None:
        """Write the database as it is at one moment into a new file, while others write."""
        if not self.file:
            remedy = "copy the database with pg_dump, and keep project.json with it"
            raise StoreError("the project is in PostgreSQL", remedy)
        file.touch(0o600, exist_ok=False)  # it holds hashes of passwords
        with _translated(), self.engine.connect() as plain, closing(sqlite3.connect(file)) as copy:
            cast(sqlite3.Connection, plain.connection.driver_connection).backup(copy)

    def damage(self, connection: Connection) -> list[str]:
        if not self.file:
            return []  # PostgreSQL checks its keys as it writes
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        loose = connection.exec_driver_sql("PRAGMA foreign_key_check").all()
        return [str(line) for line in found if line != "ok"] + [f"loose: {row}" for row in loose]

    def close(self) -> None:
        self.engine.dispose()


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StoreError("this is not the address of a database", _REMEDY) from None
    if parsed.drivername not in ("sqlite", "postgresql+psycopg"):
        raise StoreError(f"{parsed.drivername!r} is not a database that is known here", _REMEDY)
    if parsed.drivername == "sqlite" and parsed.database in (None, "", ":memory:"):
        raise StoreError("a project in memory would be lost", _REMEDY)
    return parsed


def _sqlite(connection: Any, _: object) -> None:
    connection.isolation_level = None  # transactions begin where _begin says so
    for setting in ("synchronous = FULL", "foreign_keys = ON", f"busy_timeout = {1000 * PATIENCE}"):
        connection.execute(f"PRAGMA {setting}")


def _postgresql(connection: Any, _: object) -> None:
    connection.autocommit = True
    connection.execute("SET synchronous_commit = on")
    connection.autocommit = False


def _begin(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get("isolation_level") != "AUTOCOMMIT":
        connection.exec_driver_sql("BEGIN" if options.get("reading") else "BEGIN IMMEDIATE")


@contextmanager
def _translated() -> Iterator[None]:
    """Say that the database failed in one sentence; a broken constraint is told apart."""
    try:
        yield
    except IntegrityError:
        raise
    except (DBAPIError, exc.TimeoutError) as error:
        cause = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise UnavailableError(cause[0] if cause else type(error).__name__) from error


def one_by_one(error: Exception) -> bool:
    """Tell whether what failed for many may go well for each: not where the database is down."""
    cause = error.__cause__ if isinstance(error, UnavailableError) else None
    crossed = getattr(getattr(cause, "orig", None), "sqlstate", None) in _CROSSED
    return crossed or not isinstance(cause, OperationalError | exc.TimeoutError)


#: Holds the revision; its name tells our databases from others.
TABLE = "ruleout_revision"

#: Booleans as SQLAlchemy asks for them: an index is used where a question has its very words.
_WORDS = {
    "sqlite": {"serial": "INTEGER NOT NULL", "needed": "needed = 1", "test": "test = 1",
               "further": "needed = 0"},
    "postgresql": {"serial": "SERIAL NOT NULL", "needed": "needed", "test": "test",
                   "further": "NOT needed"},
}  # fmt: skip


def make(database: Database, connection: Connection) -> None:
    database.alone(connection)
    tables = inspect(connection).get_table_names()
    if TABLE in tables:
        problem = f"{database.name} holds a project already"
        raise StoreError(problem, "open it, or give another name")
    if tables:
        problem = f"{database.name} holds other tables (such as {min(tables)!r})"
        raise StoreError(problem, "give the project a database of its own")
    climb(connection)


def upgrade(database: Database, connection: Connection) -> None:
    """Bring the tables up to date; refuse a database that is newer, or not a project."""
    if (found := revision(connection)) in _steps() and found != max(_steps()):
        database.alone(connection)
        climb(connection)
        found = revision(connection)  # a newer ruleout may have been quicker
    if found is None:
        raise StoreError(f"{database.name} is not a labelling project", LOST)
    if found not in _steps():
        problem = f"{database.name} was made by a newer ruleout (revision {found[:20]})"
        raise StoreError(problem, "update ruleout")


def revision(connection: Connection) -> str | None:
    """Return the revision of the tables; None where there are none of ours."""
    if not inspect(connection).has_table(TABLE):
        return None
    return connection.exec_driver_sql(f"SELECT version_num FROM {TABLE}").scalar()


def climb(connection: Connection, to: str = "9999") -> None:
    """Run the steps that are missing in the words of the database; some are for one alone.

    A step adds what is new; nothing that was written changes.
    """
    own, secret, done = connection.dialect.name, secrets.randbits(63), revision(connection)
    if done is None:
        connection.exec_driver_sql(f"CREATE TABLE {TABLE} (version_num TEXT NOT NULL PRIMARY KEY)")
        connection.exec_driver_sql(f"INSERT INTO {TABLE} VALUES ('')")
    for step, file in _steps().items():
        if (done or "") < step <= to:
            for statement in file.read_text().split(";\n"):
                only = statement.partition("\n")[0].partition("-- only ")[2]
                if statement and (not only or only.startswith(own)):
                    connection.exec_driver_sql(statement.format(secret=secret, **_WORDS[own]))
            connection.exec_driver_sql(f"UPDATE {TABLE} SET version_num = '{step}'")


def _steps() -> dict[str, Path]:
    files = (Path(__file__).parent / "migrations").glob("step_*.sql")
    return {file.stem.removeprefix("step_"): file for file in sorted(files)}
