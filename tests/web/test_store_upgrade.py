"""A project of an older ruleout is brought up to date when it is opened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import Connection, MetaData, insert, inspect, select, update
from sqlalchemy.exc import IntegrityError
from web.made import assert_expected_tables, at, make_items, said

from ruleout.web import Question, Reply, Settings, Store, StoreError, User, database
from ruleout.web.database import TABLE, Database, climb, revision
from ruleout.web.schema import METADATA, slots

SETTINGS = Settings(classes=tuple("abcdef"), rounds=2, lease_seconds=3600)


def project_of_step_1(url: str) -> tuple[User, User, list[Question], Reply]:
    """Make a project as the first schema had it: two people, open and answered questions."""
    with TemporaryDirectory() as folder:
        new = f"sqlite:///{folder}/new.sqlite"
        with Store.create(new, SETTINGS, make_items(6)) as store:
            ann, bob = (store.add_user(name, now=at(0)) for name in ("Ann", "Bob"))
            held = {user.id: store.next(user, 3, at(1)) for user in (ann, bob)}
            reply = said("no", held[ann.id][0].id)
            store.answer(ann, reply, at(1))
            store.answer(bob, said("skip", held[bob.id][0].id), at(1))
        _copy_to_step_1(new, url)
    return ann, bob, held[ann.id][1:], reply


def _copy_to_step_1(source: str, target: str) -> None:
    """Copy what the first schema could hold."""
    new, old = Database(source), Database(target)
    with new.reading() as read, old.writing() as db:
        climb(db, "0001")
        tables = MetaData()
        tables.reflect(db)
        names = [name for name in tables.tables if name != TABLE]
        for table in tables.sorted_tables:
            if table.name not in names:
                continue
            current = METADATA.tables[table.name]
            counted = {"users": "id", "questions": "id", "answers": "number"}.get(table.name)
            kept = [current.c[one.name] for one in table.c if one.name != counted]
            for row in read.execute(select(*kept).order_by(*current.primary_key)):
                db.execute(insert(current).values(dict(row._mapping)))
    new.close()
    old.close()


def test_a_project_of_the_first_schema_keeps_everything(url: str) -> None:
    ann, bob, held, reply = project_of_step_1(url)
    with Store.open(url) as store:
        assert (store.settings, store.users()) == (SETTINGS, [ann, bob])
        assert [row.kind for row in store.log()] == ["no", "skip"]
        assert store.next(ann, 2, at(2)) == held
        assert store.answer(ann, reply, at(3)).status == "recorded"
        assert store.turn(ann, said("no", held[0].id), 3, at(3)).receipt.status == "recorded"
        told = store.progress()
        assert (told.items, told.wanted, told.given, told.skips) == (6, 12, 2, 1)
        assert store.check() == []
    with Store.open(url) as again:
        assert len(list(again.log())) == 3


def test_the_tables_are_then_what_the_code_expects(url: str) -> None:
    project_of_step_1(url)
    with Store.open(url) as store, store._database.reading() as db:
        assert_expected_tables(db)
        assert revision(db) == "0005"


def test_its_people_may_be_let_in(url: str) -> None:
    ann, *_ = project_of_step_1(url)
    with Store.open(url) as store:
        assert store.password("Ann") == (ann, None)
        store.accept(store.invite("Ann"), "hash")
        assert store.sessions([store.begin(ann, hours=1)])[0][0] == ann


@pytest.mark.parametrize("needed", [True, False])
def test_nobody_may_hold_two_rounds_of_an_item_there_either(url: str, needed: bool) -> None:
    ann, _, held, _ = project_of_step_1(url)
    with Store.open(url) as store:
        other = store.next(ann, 3, at(2))[2]
        row = {"item": held[0].item, "round": 9, "place": 0, "needed": needed, "test": not needed,
               "question": other.id, "holder": ann.id, "expires": at(9)}  # fmt: skip
        with store._database.writing() as db:
            db.execute(update(slots).where(slots.c.question == other.id)
                       .values(question=None, holder=None, expires=None))  # fmt: skip
        with pytest.raises(IntegrityError), store._database.writing() as db:
            db.execute(insert(slots).values(row))
        with store._database.writing() as db:  # but for what is imported
            db.execute(insert(slots).values({**row, "needed": False, "test": False}))


def test_many_who_open_it_at_once_upgrade_it_once(url: str) -> None:
    project_of_step_1(url)

    def opened(_: int) -> int:
        with Store.open(url) as store, store._database.reading() as db:
            return len(db.execute(select(slots)).all())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(opened, range(4))) == [12] * 4


def test_who_waited_while_a_newer_ruleout_upgraded_it_leaves_it_alone(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project_of_step_1(url)

    def alone(_: Database, db: Connection) -> None:
        climb(db)
        db.exec_driver_sql(f"UPDATE {TABLE} SET version_num = '0999'")

    monkeypatch.setattr(Database, "alone", alone)
    with pytest.raises(StoreError, match="newer ruleout"):
        Store.open(url)


def test_an_upgrade_that_is_cut_off_leaves_nothing_behind(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, *_ = project_of_step_1(url)
    words = {**database._WORDS}
    broken = {name: {**own, "further": "no such words"} for name, own in words.items()}
    monkeypatch.setattr(database, "_WORDS", broken)
    with pytest.raises(StoreError, match="cannot open"):
        Store.open(url)
    old = Database(url)
    with old.reading() as db:
        assert revision(db) == "0001"
        assert "invites" not in inspect(db).get_table_names()
    old.close()
    monkeypatch.setattr(database, "_WORDS", words)
    with Store.open(url) as store, store._database.reading() as db:
        assert_expected_tables(db)
        assert store.password("Ann") == (ann, None)
