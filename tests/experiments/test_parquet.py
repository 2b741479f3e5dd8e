"""A ledger as Parquet files: all that the ledger holds, and nothing else is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from experiments.made import record, same, spec

from ruleout.experiments import Holdings, Ledger, Record, gather, paper_tables
from ruleout.experiments.ledger import read_parquet, write_parquet
from ruleout.labels.errors import InputError
from ruleout.report import csv

FILES = ["cells.parquet", "configurations.parquet", "curves.parquet", "trials.parquet"]


def records() -> list[Record]:
    """Different settings, grids and lengths, and numbers that are missing."""
    usual = record(spec("cce"))
    estimates = usual.estimates.copy()
    estimates[0, 1] = np.nan
    gone = record(
        spec("cce"),
        [0.1, np.nan, 1 / 3],
        estimates=estimates,
        configurations=[{"learning_rate": 0.1, "weight_decay": 0.0, "q": n / 4} for n in range(4)],
        curves={"loss": np.full((3, 6), np.nan, np.float32)},
    )
    few = record(spec("exp", "texture", trials=2, epochs=9, features="standardised"))
    return [record(spec()), gone, few, record(spec("log", "texture", search_trials=1)),
            record(spec("log", "mnist", grid="printed"))]  # fmt: skip


def test_what_was_written_is_read_back_to_the_last_bit(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a.sqlite") as ledger:
        for one in records():
            ledger.write(one)
        kept = ledger.records()
    made = write_parquet(kept, tmp_path / "new" / "folder")
    assert sorted(file.name for file in made) == FILES
    found = read_parquet(tmp_path / "new" / "folder")
    assert len(found) == len(kept) == 5
    for one, other, original in zip(found, kept, records(), strict=True):
        assert same(one, other)
        assert same(one, original)
        assert one.spec.key == original.spec.key


def test_the_same_records_give_the_same_files(tmp_path: Path) -> None:
    one, two = (write_parquet(records(), tmp_path / name) for name in "ab")
    again = write_parquet(read_parquet(tmp_path / "a"), tmp_path / "c")
    for files in zip(one, two, again, strict=True):
        assert len({file.read_bytes() for file in files}) == 1


def test_tables_of_a_folder_are_those_of_its_ledger(tmp_path: Path) -> None:
    with Ledger(tmp_path / "a.sqlite") as ledger:
        for one in records():
            ledger.write(one)
    write_parquet(gather(tmp_path / "a.sqlite").records, tmp_path / "folder")
    kept, found = (paper_tables(gather(tmp_path / name)) for name in ("a.sqlite", "folder"))
    assert [csv(table.cells) for table in kept] == [csv(table.cells) for table in found]


def test_curves_can_be_left_out(tmp_path: Path) -> None:
    write_parquet(records(), tmp_path / "a", curves=False)
    for one, other in zip(read_parquet(tmp_path / "a"), records(), strict=True):
        assert one.curves == {}
        assert np.array_equal(one.accuracy, other.accuracy, equal_nan=True)
        assert np.array_equal(one.estimates, other.estimates, equal_nan=True)
    assert len(paper_tables(gather(tmp_path / "a"))) == 3


def test_no_records_are_files_too(tmp_path: Path) -> None:
    write_parquet([], tmp_path)
    assert read_parquet(tmp_path) == []


def test_others_can_read_the_files(tmp_path: Path) -> None:
    """A row for each cell, trial and configuration, under names that speak."""
    write_parquet(records()[:1], tmp_path)
    tables = {name: pq.read_table(tmp_path / name) for name in FILES}
    assert [len(tables[name]) for name in FILES] == [1, 12, 9, 3]
    names = set(tables["cells.parquet"].column_names)
    assert names >= {"key", "dataset", "model", "approach", "law", "protocol", "features", "trials"}
    tried = tables["configurations.parquet"]
    assert set(tried.column_names) == {
        "key", "trial", "configuration", "learning_rate", "weight_decay", "estimate", "error",
        "test",
    }  # fmt: skip
    assert tables["trials.parquet"]["accuracy"].to_pylist() == records()[0].accuracy.tolist()


def test_of_several_ledgers_each_cell_counts_once(tmp_path: Path) -> None:
    """The first record found is taken; a failure that another ledger mended is none."""
    first, second = record(spec("log"), [0.1, 0.2, 0.3]), record(spec("log"), [0.7, 0.8, 0.9])
    write_parquet([first], tmp_path / "folder")
    with Ledger(tmp_path / "a.sqlite") as ledger:
        ledger.write(second)
        ledger.add([spec("exp"), spec("mae")])
        ledger.fail(spec("exp"), "no")
    with Ledger(tmp_path / "b.sqlite") as ledger:
        ledger.write(record(spec("exp")))
        ledger.write(record(spec("gce")))
    found = gather(tmp_path / "folder", tmp_path / "a.sqlite", tmp_path / "b.sqlite")
    assert [one.approach for one in found.specs] == ["log", "exp", "mae", "gce"]
    assert [one.spec.approach for one in found.records] == ["log", "exp", "gce"]
    assert found.records[0].accuracy.tolist() == [0.1, 0.2, 0.3]
    assert found.failures == ()
    other = gather(tmp_path / "a.sqlite", tmp_path / "folder")
    assert other.records[0].accuracy.tolist() == [0.7, 0.8, 0.9]
    assert [one.spec.approach for one in other.failures] == ["exp"]
    assert other.only([spec("exp")]) == Holdings((spec("exp"),), (), other.failures)


# ---------------------------------------------------------------------- bad files


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_parquet(records(), tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError) as caught:
        gather(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / name}: the file is missing; name a ledger, or the folder of its Parquet files"
    )


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    write_parquet(records(), tmp_path)
    whole = (tmp_path / name).read_bytes()
    for damage in (b"", b"no parquet", whole[:-9], whole[: len(whole) // 2], b"\0" * len(whole)):
        (tmp_path / name).write_bytes(damage)
        with pytest.raises(InputError) as caught:
            read_parquet(tmp_path)
        assert str(caught.value).startswith(f"{tmp_path / name}: this is not Parquet (")
        assert str(caught.value).endswith("; write it again")


def column_away(name: str) -> Callable[[pa.Table], pa.Table]:
    return lambda table: table.drop_columns([name])


def column_of(name: str, value: Any) -> Callable[[pa.Table], pa.Table]:
    def change(table: pa.Table) -> pa.Table:
        place = table.column_names.index(name)
        return table.set_column(place, name, pa.array([value] * len(table)))

    return change


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("cells", column_away("key")),
        ("cells", column_away("seed")),
        ("cells", column_of("features", "scaled")),
        ("cells", column_of("protocol", "none")),
        ("cells", column_of("configurations", "{")),
        ("cells", column_of("configurations", None)),
        ("cells", column_of("about", 3)),
        ("cells", column_of("average", 9999)),
        ("cells", column_of("seed", 7)),
        ("trials", column_away("accuracy")),
        ("trials", column_of("key", "another")),
        ("trials", column_of("chosen", None)),
        ("configurations", column_away("estimate")),
        ("configurations", column_of("key", "another")),
        ("configurations", column_of("estimate", "high")),
        ("configurations", lambda table: table.slice(1)),
        ("curves", column_away("points")),
    ],
)
def test_files_that_do_not_belong_together_are_refused(
    tmp_path: Path, name: str, change: Callable[[pa.Table], pa.Table]
) -> None:
    write_parquet(records()[:1], tmp_path)
    file = tmp_path / f"{name}.parquet"
    pq.write_table(change(pq.read_table(file)), file)
    with pytest.raises(InputError, match="these files are not a ledger") as caught:
        read_parquet(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path}: ")
    assert str(caught.value).endswith("; name a folder that `ruleout report` wrote")


def test_rows_in_another_order_are_the_same_records(tmp_path: Path) -> None:
    """Trials are compared in pairs: their numbers say which, not their place in the file."""
    write_parquet(records(), tmp_path)
    for name in ("trials", "configurations", "curves"):
        file = tmp_path / f"{name}.parquet"
        table = pq.read_table(file)
        pq.write_table(table.take(np.arange(len(table))[::-1]), file)
    for one, other in zip(read_parquet(tmp_path), records(), strict=True):
        assert same(one, other)


@pytest.mark.parametrize("chosen", [4, -1])
def test_a_choice_outside_the_grid_is_refused(tmp_path: Path, chosen: int) -> None:
    write_parquet(records()[:1], tmp_path)
    file = tmp_path / "trials.parquet"
    pq.write_table(column_of("chosen", chosen)(pq.read_table(file)), file)
    with pytest.raises(InputError, match="these files are not a ledger"):
        read_parquet(tmp_path)
