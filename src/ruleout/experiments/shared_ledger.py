"""A ledger in PostgreSQL: any number of machines work on it, each taking open tasks.

Its statements are those of the SQLite file. A claim is an advisory lock, which the server lets go
when the session ends: at once for a process that was killed, and after some 25 seconds, when the
network no longer answers for it, for a machine.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from ruleout.experiments.ledger import SIGN, Ledger, MissingLedgerError, statements
from ruleout.experiments.specs import Spec
from ruleout.labels.errors import InputError
from ruleout.labels.journal import ALIVE, PATIENCE

# For this session, as far as the server knows them: a schema of our own, what is acknowledged is on
# disk, a task may take hours, and whoever no longer answers is gone.
_SET = """SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES
    ('search_path', 'ruleout_ledger'), ('synchronous_commit', 'on'), ('idle_session_timeout', '0'),
    ('tcp_keepalives_idle', '10'), ('tcp_keepalives_interval', '5'), ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '25000')) AS ours (name, value) USING (name)"""
_SCHEMA = """SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace
    WHERE nspname = 'ruleout_ledger'"""
_HELD = """SELECT classid::bigint << 32 | objid::bigint FROM pg_locks WHERE locktype = 'advisory'
    AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""


class SharedLedger(Ledger):
    """What `Ledger` returns for an address of PostgreSQL."""

    _failure, _suspect = psycopg.Error, "the address and your rights there"

    def __init__(self, path: str | Path, *, make: bool = True) -> None:
        try:
            self._address: dict[str, Any] = conninfo_to_dict(str(path).replace("+psycopg", "", 1))
        except psycopg.Error:  # what it says holds the password
            say = "write postgresql://USER@HOST/DATABASE"
            raise InputError("this is not an address of PostgreSQL", say) from None
        told = {name: str(one) for name, one in self._address.items() if "password" not in name}
        self.path = make_conninfo(**told) or "PostgreSQL"
        with self._told():
            self._database = self._connected()
            try:
                if make and not self._schema():
                    self._make()
                if not self._schema():
                    raise MissingLedgerError(self.path)
                self._check_schema(self._schema())
            except BaseException:
                self.close()
                raise

    def _connected(self) -> Any:
        made = psycopg.connect(autocommit=True, **(ALIVE | self._address))
        made.execute(_SET)
        return made

    def _schema(self) -> int:
        ((told,),) = self._rows(_SCHEMA) or [(None,)]
        if told and not told.isdecimal():
            problem = "its schema ruleout_ledger is not a ledger"
            raise InputError(problem, "name another database", file=self.path)
        return int(told or 0)

    def _make(self) -> None:
        with self._database.transaction():
            self._rows("SELECT pg_advisory_xact_lock(?)", SIGN)  # others may make it now
            if not self._schema():
                for statement in statements("ledger_postgresql.sql"):
                    self._rows(statement)

    @contextmanager
    def claim(self, spec: Spec) -> Iterator[bool]:
        """Claim a task while the block runs; False where another session has it."""
        ((mine,),) = self._rows("SELECT pg_try_advisory_lock(?)", _number(spec.key))
        try:
            yield mine
        finally:
            if mine:
                with suppress(psycopg.OperationalError):  # a session that is lost holds no locks
                    self._database.execute("SELECT pg_advisory_unlock(%s)", [_number(spec.key)])

    def claimed(self) -> set[str]:
        held = {number for (number,) in self._rows(_HELD)}
        return {key for (key,) in self._rows("SELECT key FROM tasks") if _number(key) in held}

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._told():
            self._reach()
            with self._database.transaction():
                self._rows("LOCK TABLE tasks IN EXCLUSIVE MODE")  # one writes, others read or wait
                yield

    def _reach(self, query: str = "SELECT 1", values: Sequence[Any] = ()) -> Any:
        """Ask, and connect again where the server was restarted or the line cut meanwhile.

        Claims are lost then: another may do the same task, and the first record of it stays.
        """
        end = time.monotonic() + PATIENCE
        while True:
            try:
                if self._database.closed:
                    self._database = self._connected()
                return self._database.execute(query, values)
            except psycopg.OperationalError:
                if not self._database.closed or time.monotonic() > end:
                    raise
                time.sleep(0.5)

    def _rows(self, query: str, *values: Any) -> list[Any]:
        with self._told():
            within = self._database.info.transaction_status == psycopg.pq.TransactionStatus.INTRANS
            ask = self._database.execute if within else self._reach
            found = ask(query.replace("?", "%s"), values)
            return found.fetchall() if found.description else []

    def _many(self, query: str, rows: Sequence[Sequence[Any]]) -> None:
        self._database.cursor().executemany(query.replace("?", "%s"), rows)


def _number(key: str) -> int:
    """Return 64 bits of a key, as PostgreSQL numbers its locks."""
    return int.from_bytes(bytes.fromhex(key[:16]), signed=True)
