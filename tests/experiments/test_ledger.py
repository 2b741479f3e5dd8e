"""The ledger: each record once, whole or not at all, whoever writes and whatever dies."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiments.killed_writers import at_moments, at_statements
from experiments.made import record, same, spec
from processes import QUICK
from tiers import COUNT

from ruleout.experiments import Ledger, Record, Spec, gather
from ruleout.experiments.ledger import RETRIES
from ruleout.labels.errors import InputError


def lost() -> Record:
    """A record with all that can be missing or odd."""
    of = spec("cce")
    usual = record(of)
    estimates = usual.estimates.copy()
    estimates[0, 1] = np.nan
    curves = {"test": usual.curves["test"], "loss": np.full((3, 6), np.nan, np.float32)}
    return record(
        of,
        [0.1, np.nan, 1 / 3],
        estimates=estimates,
        chosen=np.array([0, 3, 1]),
        epochs=np.array([2, 4, 6, 7, 8, 250]),
        curves=curves,
        configurations=[{"learning_rate": 1e-6 * n, "q": 0.7} for n in range(4)],
        about={"device_name": "Ünïcode “CPU”", "seconds": 0.1 + 0.2, "versions": {"torch": "2"}},
    )


# ---------------------------------------------------------------------- records


def test_a_record_comes_back_to_the_last_bit(place: str) -> None:
    records = [record(spec()), lost(), record(spec("exp", trials=1))]
    with Ledger(place) as ledger:
        for one in records:
            ledger.write(one)
    with Ledger(place, make=False) as ledger:
        for one, found in zip(records, ledger.records(), strict=True):
            assert same(one, found)


def test_the_first_record_of_a_task_stays(place: str) -> None:
    first, second = record(spec(), [0.5, 0.6, 0.7]), record(spec(), [0.1, 0.2, 0.3])
    with Ledger(place) as ledger:
        for one in (first, second, first):
            ledger.write(one)
        assert len(ledger.records()) == 1
        assert same(ledger.records()[0], first)


def test_records_stand_in_the_order_of_the_tasks(place: str) -> None:
    specs = [spec(name) for name in ("exp", "mae", "log")]
    with Ledger(place) as ledger:
        ledger.add(specs)
        for one in reversed(specs):
            ledger.write(record(one))
        ledger.add([*specs, spec("gce")])
        assert ledger.specs() == [*specs, spec("gce")]
        assert [one.spec for one in ledger.records()] == specs
        assert [one.spec for one in ledger.records([specs[1].key])] == [specs[1]]
        assert ledger.done() == {one.key for one in specs}
        assert ledger.open() == [spec("gce")]


def test_a_record_that_cannot_be_written_leaves_no_trace(place: str) -> None:
    usual = record(spec())
    odd = record(spec(), about={"versions": object()})
    worse = record(spec(), curves={"test": usual.curves["test"], "loss": np.array([["a"]])})
    with Ledger(place) as ledger:
        for one in (odd, worse):
            with pytest.raises((TypeError, ValueError)):
                ledger.write(one)
            assert ledger.records() == []
        ledger.write(usual)
        assert same(ledger.records()[0], usual)


def test_taking_another_ledger_adds_what_is_missing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a.sqlite") as here, Ledger(tmp_path / "b.sqlite") as there:
        here.write(record(spec("log"), [0.5, 0.5, 0.5]))
        for name in ("log", "exp", "mae"):
            there.write(record(spec(name)))
        assert here.take(there) == 2
        assert here.take(there) == 0
        assert len(here.records()) == 3
        assert here.records()[0].accuracy.tolist() == [0.5, 0.5, 0.5]
        for found, one in zip(here.records()[1:], there.records()[1:], strict=True):
            assert same(found, one)


# ---------------------------------------------------------------------- failures


def test_a_task_is_given_up_after_one_try_and_three_retries(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.add([spec()])
        for times in range(1, 2 + RETRIES):
            assert ledger.open() == [spec()]
            ledger.fail(spec(), f"error {times}")
            (failure,) = ledger.failures()
            assert (failure.times, failure.error) == (times, f"error {times}")
            assert failure.given_up is (times == 1 + RETRIES)
        assert RETRIES == 3
        assert ledger.open() == []


def test_tasks_that_failed_come_last(place: str) -> None:
    specs = [spec(name) for name in ("log", "exp", "mae")]
    with Ledger(place) as ledger:
        ledger.add(specs)
        for number in (0, 0, 1):
            ledger.fail(specs[number], "no")
        assert ledger.open() == [specs[2], specs[1], specs[0]]
        assert ledger.open(specs[:1]) == specs[:1]


def test_forgiven_tasks_are_tried_again(tmp_path: Path) -> None:
    """As often as new ones; what happened stays written down."""
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.add([spec("log"), spec("exp")])
        for name in ("log", "exp"):
            for _ in range(4):
                ledger.fail(spec(name), "no")
        ledger.forgive([spec("log")])
        assert ledger.open() == [spec("log")]
        assert [one.spec for one in ledger.failures()] == [spec("exp")]
        for _ in range(4):
            assert ledger.open() == [spec("log")]
            ledger.fail(spec("log"), "no")
        assert ledger.open() == []
    rows = sqlite3.connect(tmp_path / "a.sqlite").execute("SELECT count(*) FROM failures")
    assert rows.fetchone() == (12,)


def test_a_task_that_succeeds_at_last_is_no_failure(place: str) -> None:
    with Ledger(place) as ledger:
        ledger.add([spec()])
        ledger.fail(spec(), "no")
        ledger.write(record(spec()))
        assert ledger.failures() == []
        assert ledger.open() == []


def test_an_error_can_hold_any_text(place: str) -> None:
    """Names of files can hold bytes that are no text."""
    with Ledger(place) as ledger:
        ledger.add([spec()])
        ledger.fail(spec(), "cannot read \udcff'; DROP TABLE tasks; --")
        assert ledger.failures()[0].error.startswith("cannot read ")
        assert ledger.open() == [spec()]


# ---------------------------------------------------------------------- files that are not ledgers


def database(file: Path, *statements: str) -> None:
    connection = sqlite3.connect(file)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize("version", [0, 1, 7])
def test_another_database_is_refused_and_left_alone(tmp_path: Path, version: int) -> None:
    file = tmp_path / "other.db"
    database(file, "CREATE TABLE birds (name)", f"PRAGMA user_version = {version}")
    before = file.read_bytes()
    with pytest.raises(InputError) as caught:
        Ledger(file)
    assert str(caught.value) == f"{file}: this database is not a ledger; name another file"
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_a_ledger_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    Ledger(file).close()
    database(file, "PRAGMA user_version = 2")
    with pytest.raises(InputError) as caught:
        Ledger(file)
    assert str(caught.value) == f"{file}: the ledger has schema 2, newer than 1; update ruleout"


@pytest.mark.parametrize(
    "content", [b"name,weight\ncat,3\n" * 100, b"SQLite format 3\0" + b"x" * 5000]
)
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.csv"
    file.write_bytes(content)
    with pytest.raises(InputError, match="this is not a ledger") as caught:
        Ledger(file)
    assert str(caught.value).startswith(f"{file}: ")
    assert "\n" not in str(caught.value)
    assert file.read_bytes() == content


def test_a_missing_ledger_is_not_made_to_be_read(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    with pytest.raises(InputError) as caught:
        Ledger(file, make=False)
    assert str(caught.value) == (
        f"{file}: there is no such ledger; run `ruleout paper` first, or check the name"
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "none/a.sqlite"])
def test_a_place_where_no_file_can_be_is_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    with pytest.raises((InputError, OSError), match=r"\S"):
        Ledger(tmp_path / name)


# ---------------------------------------------------------------------- claims


def test_a_task_is_claimed_by_one(tmp_path: Path) -> None:
    one, two = (Ledger(tmp_path / "a.sqlite") for _ in range(2))
    with one, two:
        with one.claim(spec()) as first, two.claim(spec()) as second:
            assert (first, second) == (True, False)
            assert two.claimed() == {spec().key}
            with two.claim(spec("exp")) as other:
                assert other
                assert one.claimed() == {spec().key, spec("exp").key}
        assert one.claimed() == set()
        with two.claim(spec()) as again:
            assert again
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]  # nothing is left behind


def test_an_error_lets_the_claim_go(place: str) -> None:
    with Ledger(place) as ledger:
        with pytest.raises(ZeroDivisionError), ledger.claim(spec()):
            raise ZeroDivisionError
        with ledger.claim(spec()) as again:
            assert again


def test_a_folder_of_claims_may_go_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last to let a claim go removes the folder, at any moment."""
    with Ledger(tmp_path / "a.sqlite") as ledger:
        monkeypatch.setattr(Path, "is_dir", lambda _: True)
        assert ledger.claimed() == set()


def test_a_ledger_may_be_made_while_another_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the second has seen before the first one was done."""
    asked = Ledger._rows
    for when in range(3):  # later ones wait
        count = iter(range(100))
        path = tmp_path / f"{when}.sqlite"

        def asking(ledger: Ledger, *words: Any, count: Any = count, when: int = when) -> Any:
            if next(count) == when:
                with monkeypatch.context() as calm:
                    calm.setattr(Ledger, "_rows", asked)
                    Ledger(ledger.path).close()
            return asked(ledger, *words)

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "_rows", asking)
            with Ledger(path) as late:
                late.add([spec()])
                assert late.open() == [spec()]


# ---------------------------------------------------------------------- many at once


def write_some(path: str, me: int, every: int) -> None:
    """Write records that others write too, and records of one's own."""
    Path(path).with_name(f"ready-{me}").touch()
    while len(list(Path(path).parent.glob("ready-*"))) < every:
        time.sleep(0.001)
    for turn in range(6):
        with Ledger(path) as ledger:  # opened anew each time: that must be safe too
            ledger.write(record(spec(seed=turn)))
            ledger.write(record(spec(seed=1000 * (1 + me) + turn)))
            ledger.fail(spec(seed=turn), f"{me}")


def test_several_processes_write_at_once(tmp_path: Path) -> None:
    """To the same new file: every key once, every record whole."""
    path, many = tmp_path / "a.sqlite", 3
    writers = [QUICK.Process(target=write_some, args=(str(path), n, many)) for n in range(many)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert [writer.exitcode for writer in writers] == [0] * many
    seeds = {*range(6), *(1000 * (1 + me) + turn for me in range(many) for turn in range(6))}
    with Ledger(path, make=False) as ledger:
        found = ledger.records()
        assert len(found) == len(seeds)
        assert {one.spec.seed for one in found} == seeds
        assert all(same(one, record(one.spec)) for one in found)
        assert sum(times for _, times, *_ in ledger._failed()) == 6 * many


def kill(writers: Callable[[Path, int], None], path: Path, times: int) -> None:
    process = QUICK.Process(target=writers, args=(path, times))
    process.start()
    process.join(300)
    assert process.exitcode == 0


def rows(path: Path) -> dict[str, Any]:
    """Count what the tables hold, without asking the ledger."""
    names = ("records", "trials", "configurations", "curves")
    connection = sqlite3.connect(path)
    found = {n: connection.execute(f"SELECT count(*) FROM {n}").fetchone()[0] for n in names}
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    return found


def test_a_writer_killed_between_two_statements_leaves_nothing_of_a_record(tmp_path: Path) -> None:
    """The first statement adds the task, then come trials, configurations and curves."""
    path = tmp_path / "a.sqlite"
    kill(at_statements, path, 4)
    assert set(rows(path).values()) == {0}
    with Ledger(path) as ledger:
        for seed in range(4):
            ledger.write(record(spec(seed=seed)))
        assert all(same(one, record(one.spec)) for one in ledger.records())


def killed_at_random_moments(tmp_path: Path, times: int) -> None:
    path = tmp_path / "a.sqlite"
    kill(at_moments, path, times)
    count = rows(path)
    assert count["trials"] == 3 * count["records"]
    assert count["configurations"] == 12 * count["records"]
    assert count["curves"] == 9 * count["records"]
    acknowledged = {int(line) for line in path.with_suffix(".txt").read_text().split()}
    assert acknowledged
    with Ledger(path) as ledger:
        found = ledger.records()
        assert {one.spec.seed for one in found} >= acknowledged
        assert len({one.spec.key for one in found}) == len(found)
        assert all(same(one, record(one.spec)) for one in found)


def test_writers_killed_at_random_moments_leave_whole_records(tmp_path: Path) -> None:
    """What was acknowledged is there; what is there is whole."""
    killed_at_random_moments(tmp_path, 3)


@pytest.mark.slow
def test_writers_killed_at_two_hundred_moments_leave_whole_records(tmp_path: Path) -> None:
    killed_at_random_moments(tmp_path, max(1, int(200 * COUNT)))


def test_specs_of_a_newer_version_are_told(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.add([spec()])
    text = spec().to_json().replace('"seed"', '"sead"')
    database(tmp_path / "a.sqlite", f"UPDATE tasks SET spec = '{text}'")
    with (
        Ledger(tmp_path / "a.sqlite") as ledger,
        pytest.raises(InputError, match="a spec has the unknown name 'sead'"),
    ):
        ledger.specs()


def test_a_spec_is_found_by_its_key(place: str) -> None:
    """The same spec from anywhere is the same task."""
    again = Spec.from_json(spec().to_json())
    with Ledger(place) as ledger:
        ledger.add([spec(), again])
        assert ledger.specs() == [again]


def test_a_damaged_ledger_is_one_sentence(tmp_path: Path) -> None:
    """Bytes of pages, of a blob, of texts that are JSON, and rows that are gone; it is named."""
    whole = tmp_path / "a.sqlite"
    with Ledger(whole) as ledger:
        for place in range(30):
            ledger.write(record(spec("log", trials=3, seed=place)))
    connection = sqlite3.connect(whole)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    content = whole.read_bytes()
    for change in (
        None,
        "UPDATE records SET epochs = x'01'",
        "UPDATE records SET configurations = '{'",
        "UPDATE tasks SET spec = '{'",
        "UPDATE tasks SET spec = '{\"datset\": 1}'",
        "UPDATE tasks SET spec = json_set(spec, '$.protocol', 'future')",
        "UPDATE tasks SET spec = json_set(spec, '$.epochs', 7)",
        "DELETE FROM trials WHERE trial = 1",
        "DELETE FROM configurations WHERE trial = 1",
        "UPDATE trials SET chosen = 99",
        "UPDATE curves SET points = substr(points, 1, 8)",
        "UPDATE records SET about = '[]'",
    ):
        file = tmp_path / "b.sqlite"
        broken = content[:8192] + b"\xff" * (len(content) - 12288) + content[-4096:]
        file.write_bytes(broken if change is None else content)
        if change is not None:
            database(file, change)
        with pytest.raises(InputError) as caught:
            gather(file)
        said = str(caught.value).removeprefix(f"{file}: ")
        assert said.startswith(("the ledger is damaged (", "a spec has the unknown name"))
        assert caught.value.file == file


def test_a_ledger_that_cannot_be_written_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.sqlite"
    with Ledger(file) as ledger:
        ledger.write(record(spec("log")))
    before = file.read_bytes()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everywhere
    assert [one.spec.approach for one in gather(file).records] == ["log"]
    assert list(tmp_path.iterdir()) == [file]
    assert file.read_bytes() == before


def test_an_empty_file_is_no_ledger_to_read(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    file.touch()
    with pytest.raises(InputError, match="the file is empty; name a file that ruleout made"):
        gather(file)
    assert not file.stat().st_size
    Ledger(file).close()  # but one may be made there
