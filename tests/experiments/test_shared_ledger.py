"""A ledger in PostgreSQL: what it has beyond the tests that it shares with a file."""

from __future__ import annotations

import random
import signal
import sqlite3
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from experiments.made import noting, record, same, spec
from processes import QUICK
from typer.testing import CliRunner

from ruleout.cli import app
from ruleout.experiments import Ledger, MissingLedgerError, drive, gather, write_report
from ruleout.labels.errors import InputError

SPECS = [spec(name) for name in ("log", "exp", "mae", "mse", "gce", "cce")]


@pytest.fixture
def url(postgresql: Any) -> str:
    return str(postgresql.database())


def asked(url: str, query: str) -> list[Any]:
    """Ask the database without a ledger."""
    address = url.replace("+psycopg", "")
    with psycopg.connect(address, autocommit=True, options="-csearch_path=ruleout_ledger") as plain:
        return plain.execute(query).fetchall()


def test_a_missing_ledger_is_not_made_to_be_read(url: str) -> None:
    with pytest.raises(MissingLedgerError, match="there is no such ledger"):
        gather(url)
    assert asked(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'ruleout_ledger'") == []


def test_a_ledger_of_a_newer_version_is_refused(url: str) -> None:
    Ledger(url).close()
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as plain:
        plain.execute("COMMENT ON SCHEMA ruleout_ledger IS '2'")
    with pytest.raises(InputError, match="the ledger has schema 2, newer than 1; update ruleout"):
        Ledger(url)


def test_a_schema_of_that_name_that_is_not_a_ledger_is_left_alone(url: str) -> None:
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as plain:
        plain.execute("CREATE SCHEMA ruleout_ledger")
        plain.execute("COMMENT ON SCHEMA ruleout_ledger IS 'notes of mine'")
    for make in (True, False):
        with pytest.raises(InputError, match="its schema ruleout_ledger is not a ledger; name"):
            Ledger(url, make=make)
    tables = "SELECT 1 FROM pg_tables WHERE schemaname = 'ruleout_ledger'"
    assert asked(url, tables) == []


def test_both_kinds_of_ledgers_have_the_same_columns(url: str, tmp_path: Path) -> None:
    Ledger(url).close()
    Ledger(tmp_path / "a.sqlite").close()
    columns = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema"
    shared = {tuple(row) for row in asked(url, f"{columns} = 'ruleout_ledger'")}
    file = sqlite3.connect(tmp_path / "a.sqlite")
    names = [name for (name,) in file.execute("SELECT name FROM sqlite_master WHERE sql NOTNULL")]
    found = {(n, row[1]) for n in names for row in file.execute(f"PRAGMA table_info({n})")}
    file.close()
    assert shared == found | {("tasks", "rowid")}


def test_a_task_is_claimed_by_one_session(url: str) -> None:
    with Ledger(url) as one, Ledger(url) as two:
        one.add(SPECS)
        with one.claim(SPECS[0]) as first, two.claim(SPECS[0]) as second:
            assert (first, second) == (True, False)
            assert two.claimed() == {SPECS[0].key}
        assert one.claimed() == set()
        with two.claim(SPECS[0]) as again:
            assert again


def test_sessions_of_machines_that_are_gone_end_by_themselves(url: str) -> None:
    """The server asks after each of them, and what is acknowledged is on disk."""
    with Ledger(url) as ledger:
        for name, value in (("tcp_keepalives_idle", "10"), ("synchronous_commit", "on")):
            assert ledger._rows(f"SHOW {name}") == [(value,)]


ENDS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


def test_claims_of_a_lost_session_are_let_go_without_waiting_for_the_server(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver of many tasks would else wait a minute for each before it says what is wrong."""
    with Ledger(url) as ledger, ledger.claim(SPECS[0]), ledger.claim(SPECS[1]):
        asked(url, ENDS)
        monkeypatch.setattr(ledger, "_connected", pytest.fail)


def test_a_server_that_was_restarted_is_found_again(url: str) -> None:
    """What took hours to compute is not lost with a connection."""
    with Ledger(url) as ledger, ledger.claim(SPECS[0]):
        asked(url, ENDS)
        ledger.write(record(SPECS[0]))
        assert same(ledger.records()[0], record(SPECS[0]))


def test_a_line_that_is_cut_while_the_server_is_asked_is_no_end(url: str) -> None:
    with Ledger(url) as ledger:
        own = ledger._rows("SELECT pg_backend_pid()")[0][0]
        assert ledger._rows("SELECT pg_terminate_backend(?)", own) == [(False,)]  # asked again


@pytest.mark.parametrize(
    "bad",
    [
        "postgresql://me:hush%zz@127.0.0.1/db",
        "postgresql://me:hush@127.0.0.1:1/db",
        "postgres://me@127.0.0.1:1/db?password=hush",
        "postgresql+psycopg://me:hush@127.0.0.1:port/db",
    ],
)
@pytest.mark.parametrize(
    "words", [["report", "--out", "out"], ["paper", "uci", "--dry-run", "--ledger"]]
)
def test_a_server_that_cannot_be_reached_is_told_without_the_password(
    words: list[str], bad: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*words, bad])
    assert result.exit_code == 1
    text = " ".join(result.output.split())
    assert text.startswith("ruleout: ")
    assert "cannot be used (" in text or "write postgresql://USER@HOST/DATABASE" in text
    assert "hush" not in text
    assert "Traceback" not in text
    assert not list(tmp_path.iterdir())


def test_a_dry_run_makes_nothing_on_a_server(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ruleout.experiments.estimate", lambda *_: 60.0)
    result = CliRunner().invoke(app, ["paper", "uci", "--dry-run", "--ledger", url])
    assert "72 cells: 0 in the ledger, 72 to run." in result.output
    assert asked(url, "SELECT 1 FROM pg_namespace WHERE nspname = 'ruleout_ledger'") == []


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ruleout.experiments.shared_ledger", raising=False)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"run pip install 'ruleout\[postgres\]'"):
        Ledger("postgresql://h/db")


def tables(path: str | Path, folder: Path) -> dict[str, bytes]:
    made = write_report(gather(path), folder, ["latex", "markdown", "csv"])
    return {file.name: file.read_bytes() for file in made}


def test_drivers_killed_at_random_moments_leave_the_tables_of_a_calm_run(
    url: str, tmp_path: Path
) -> None:
    compute = partial(noting, notes=str(tmp_path / "notes"), takes=0.05)
    drive(tmp_path / "calm.sqlite", SPECS, compute=partial(noting, notes=str(tmp_path / "calm")))
    dice, words, killed = random.Random(0), {"compute": compute}, []
    for _ in range(3):
        two = [QUICK.Process(target=drive, args=(url, SPECS), kwargs=words) for _ in "ab"]
        for driver in two:
            driver.start()
        time.sleep(dice.uniform(0.05, 0.2))
        for driver in two:
            driver.kill()  # a driver that found every cell taken may have ended already
            driver.join(60)
        killed += [driver.exitcode for driver in two]
    assert -signal.SIGKILL in killed
    drive(url, SPECS, compute=compute)
    assert asked(url, "SELECT count(*), count(DISTINCT key) FROM records") == [(6, 6)]
    assert asked(url, "SELECT count(*) FROM failures") == [(0,)]
    assert len((tmp_path / "notes").read_text().split()) <= 6 + 3 * 2  # what was under way
    for of, expected in zip(SPECS, gather(tmp_path / "calm.sqlite").records, strict=True):
        (found,) = (one for one in gather(url).records if one.spec == of)
        assert same(found, expected)
    assert tables(url, tmp_path / "a") == tables(tmp_path / "calm.sqlite", tmp_path / "b")
