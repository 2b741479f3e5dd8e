"""Tables: made by migrations, equal to what the code expects, never somebody else's."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, inspect, text
from web.made import START, Make, assert_expected_tables, make_items

from ruleout.web import Settings, Store, StoreError, queries
from ruleout.web.database import TABLE

SETTINGS = Settings(classes=tuple("abc"))


def test_the_migrations_make_the_tables_that_the_code_expects(make: Make) -> None:
    with make()._database.reading() as db:
        assert_expected_tables(db)


def test_sqlite_finds_the_next_item_without_sorting(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    seen: list[str] = []
    with Store.create(url, SETTINGS, make_items(3)) as store:
        engine = store._database.engine
        event.listen(engine, "before_cursor_execute", lambda _c, _k, sql, *_: seen.append(sql))
        store.next(store.add_user("Ann"), 2)
        free = next(sql for sql in seen if "ORDER BY slots.test" in sql)
        with store._database.reading() as db:
            plan = str(
                db.exec_driver_sql(f"EXPLAIN QUERY PLAN {free}", (1,) * free.count("?")).all()
            )
    assert "slots USING INDEX ix_slots_free" in plan
    assert "TEMP B-TREE" not in plan
    assert "SCAN answers" not in plan


@pytest.mark.parametrize(
    ("query", "given", "index"),
    [
        (queries.OPEN, {"users": [1]}, "ix_slots_open"),
        (queries.OPEN, {"users": [*range(1, 50)]}, "ix_slots_open"),
        (queries.FREE, {"users": [1], "people": 1, "count": 1}, "ix_slots_free"),
        (queries.FREE, {"users": [*range(50)], "people": 50, "count": 50}, "ix_slots_free"),
        (queries.KNOWN, {"ids": [f"reply {n}" for n in range(50)]}, "answers"),
        (queries.ASKED, {"items": [*range(1, 50)], "users": [*range(1, 50)]}, "item"),
        (queries.LAST_ANSWERS, {"users": [*range(1, 50)]}, "ix_answers_user_number"),
        (queries.STANDING, {"questions": [*range(1, 50)]}, "ix_answers_question"),
        (queries.GOLD_ROUNDS, {"items": [1, 2], "now": START}, "item"),
    ],
)
def test_what_every_turn_asks_is_found_by_index(
    make: Make, query: Any, given: Any, index: str
) -> None:
    """In a new project too, where PostgreSQL knows of no questions and keeps its plans."""
    store = make(500)
    with store._database.writing() as db:
        store._database.by_index(db)
        asked = query.params(**given)
        bound = asked.compile(db.engine, compile_kwargs={"literal_binds": True})
        explain = "EXPLAIN QUERY PLAN" if store._database.file else "EXPLAIN"
        plan = "\n".join(str(row) for row in db.execute(text(f"{explain} {bound}")))
    assert index in plan
    assert index == "ix_slots_free" or "SCAN" not in plan  # in the order of that index
    assert "Seq Scan" not in plan


def test_a_newer_database_is_refused_and_left_alone(make: Make, url: str) -> None:
    with make()._database.writing() as db:
        db.execute(text(f"UPDATE {TABLE} SET version_num = '9999'"))
    with pytest.raises(StoreError, match=r"newer ruleout .*; update ruleout"):
        Store.open(url)


def test_somebody_elses_database_is_refused_and_left_alone(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as db:
        db.execute(text("CREATE TABLE recipes (name TEXT)"))
    with pytest.raises(StoreError, match="not a labelling project"):
        Store.open(url)
    with pytest.raises(StoreError, match=r"holds other tables .*'recipes'"):
        Store.create(url, SETTINGS, make_items(1))
    assert inspect(engine).get_table_names() == ["recipes"]
    engine.dispose()


def test_a_project_is_not_made_twice(make: Make, url: str) -> None:
    make()
    with pytest.raises(StoreError, match="a project already"):
        Store.create(url, SETTINGS, make_items(1))


def test_of_two_who_make_a_project_at_once_one_does(url: str) -> None:
    def create(n: int) -> int:
        try:
            Store.create(url, SETTINGS, make_items(n)).close()
        except StoreError:
            return 0
        return n

    with ThreadPoolExecutor(4) as threads:
        made = sorted(threads.map(create, range(1, 5)))
    assert made[:3] == [0, 0, 0]
    with Store.open(url) as store:
        assert len(list(store.items())) == made[3]


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("nonsense", "not the address"),
        ("mysql://a@b/c", "'mysql'"),
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:////nowhere/at/all.sqlite", "no file"),
        ("postgresql+psycopg://ann:secret@127.0.0.1:1/x", r"cannot open .*ann:\*\*\*@"),
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_a_sentence(url: str, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence) as refused:
        Store.open(url)
    assert "secret" not in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    file.write_bytes(b"not a database " * 100)
    with pytest.raises(StoreError, match=r"cannot open .*a\.sqlite"):
        Store.open(f"sqlite:///{file}")


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no folder"):
        Store.create(f"sqlite:///{tmp_path / 'no' / 'a.sqlite'}", SETTINGS, make_items(1))


def test_an_empty_sqlite_file_has_no_project(tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "a.sqlite").close()
    (tmp_path / "a.sqlite").touch()
    with pytest.raises(StoreError, match="not a labelling project"):
        Store.open(f"sqlite:///{tmp_path / 'a.sqlite'}")


def test_sqlite_writes_ahead_and_waits_for_the_disk(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    with Store.create(url, SETTINGS, make_items(1)) as store, store._database.writing() as db:
        told = [db.execute(text(f"PRAGMA {name}")).scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys")]  # fmt: skip
    assert told == ["wal", 2, 1]


def test_the_service_never_loads_torch() -> None:
    program = "import sys, ruleout.web; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("damaged", [
    "no JSON", "[]", "{}", '{"classes": 5}', '{"classes": ["a", "b"], "more": 1}',
    '{"classes": ["a", "b"], "mode": "x"}', "[" * 100_000,
])  # fmt: skip
def test_damaged_settings_are_said_in_a_sentence(tmp_path: Path, damaged: str) -> None:
    file = tmp_path / "a.sqlite"
    Store.create(f"sqlite:///{file}", SETTINGS, make_items(3)).close()
    with sqlite3.connect(file) as db:
        db.execute("UPDATE project SET settings = ?", (damaged,))
    db.close()
    with pytest.raises(StoreError, match="the settings of the project are damaged"):
        Store.open(f"sqlite:///{file}")


def test_many_open_a_project_whose_journal_has_to_change(tmp_path: Path) -> None:
    """As one that was copied, or made by an older ruleout; SQLite makes only one of them wait."""
    file = tmp_path / "a.sqlite"
    Store.create(f"sqlite:///{file}", SETTINGS, make_items(3)).close()

    def opened(_: int) -> list[str]:
        with Store.open(f"sqlite:///{file}") as store:
            return store.check()

    for _ in range(10):
        with closing(sqlite3.connect(file)) as db:
            db.execute("PRAGMA journal_mode = DELETE")
        with ThreadPoolExecutor(8) as threads:
            assert list(threads.map(opened, range(8))) == [[]] * 8
