# ruff: noqa: E501  # the sentences stand as users read them
"""Rows read in batches: the same values, notes and errors as reading everything at once."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ruleout as ro
from ruleout.datasets import Table, read_batches, read_table
from ruleout.labels import files

SIZES = [(1, 1), (60, 7), (1 << 24, 65_536)]  # bytes of text, rows of Parquet


@pytest.fixture(params=SIZES, ids=["1", "7", "whole"])
def sized(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read so much at a time, and hand out at least four rows."""
    text, rows = request.param
    monkeypatch.setattr(files, "_TEXT", text)
    monkeypatch.setattr(files, "_BATCH", rows)
    monkeypatch.setattr("ruleout.datasets.tables._ROWS", 4)
    monkeypatch.setattr("ruleout.labels.sets._CELLS", 1)


def same(file: Path, **options: Any) -> list[Table]:
    """Compare all batches with one table, and return them."""
    found, whole = list(read_batches(file, **options)), read_table(file, **options)
    assert np.array_equal(np.concatenate([table.x for table in found]), whole.x)
    for table in found:
        assert (table.features, table.classes) == (whole.features, whole.classes)
        assert (table.sha256, table.reading) == (whole.sha256, whole.reading)
    if whole.sets is not None:
        sets = [table.sets for table in found if table.sets is not None]
        assert ro.LabelSets.concatenate(sets) == whole.sets
    if whole.labels is not None:
        assert np.concatenate([table.labels for table in found]).tolist() == whole.labels.tolist()
    assert [table.notes for table in found[:-1]] == [()] * (len(found) - 1)
    assert found[-1].notes == whole.notes
    return found


HEADER, ROW = "a,b,not,is\n", "{i},{i}.5,x|y,z\n"
TEXTS = {
    "plain": HEADER + "".join(ROW.format(i=i) for i in range(40)),
    "line ends": "a,b,not,is\r\n\r\n" + "1,2,x,z\r\n\r\n\r\n3,4,y,x\r\n" * 9 + "\r\n\r\n",
    "old line ends": "a,b,not,is\r" + "1,2,x,z\r3,4,y,x\r" * 9,
    "no last line end": HEADER + "1,2,x,z\n" * 11 + "3,4,y,x",
    "quoted": HEADER + '1,2,"x|""y\n""",z\n"3",4,y,"x"\n' * 9,
    "quotes inside": HEADER + '1,2,x"|y,z\n3,4,"y\nx",x" \n' * 9 + "5,6,x,z\n",
    "byte order mark": "\ufeff" + HEADER + "1,2,x,z\n3,4,y,x\n" * 9,
    "signs and words": HEADER + "1,+2,x,z\ntrue,4,y,x\n5,false,y,x\n" * 9,
    "large numbers": HEADER + "1,16777217,x,z\n123456789123,2,y,x\n1.5,7,y,x\n" * 9,
    "without a name": "a,,not,is\n" + "1,2,x,z\n3,4,y,x\n" * 9,
    "class list": 'a,not,is,"classes: [""x"", ""y"", ""z"", ""w""]"\n' + "1,x,z,\n2,y,x,\n" * 9,
}


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize("name", TEXTS)
def test_text_is_the_same_in_batches(name: str, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(TEXTS[name], newline="")
    found = same(file, excluded="not", label="is")
    assert {len(table) for table in found[:-1]} <= {4}
    packed = tmp_path / "a.csv.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert len(same(packed, excluded="not", label="is")) == len(found)
    same(file, features=[found[0].features[0]])


@pytest.mark.usefixtures("sized")
def test_blank_lines_of_a_single_column_are_rows_in_batches(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("not\nx\n\ny\n\n\n\nx|y\n\n\n")
    options = {"excluded": "not", "classes": ["x", "y", "z"]}
    found = same(file, **options, unlabelled=True, featureless=True)
    assert sum(map(len, found)) == 7


@pytest.mark.usefixtures("sized")
def test_parquet_is_the_same_in_batches(tmp_path: Path) -> None:
    n = 40
    columns = {
        "a": pa.array(range(n), pa.int32()),
        "b": pa.array([i % 3 == 0 for i in range(n)]),
        "not": pa.array([["x"], ["y", "z"]] * (n // 2)),
        "is": pa.array(["y", "x"] * (n // 2)).dictionary_encode(),
    }
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=9)
    found = same(tmp_path / "a.parquet", excluded="not", label="is")
    assert [len(table) for table in found] == [4] * 10


#: Row, column and what is there instead.
FAULTS: dict[str, list[tuple[int, int, str]]] = {
    "a text": [(30, 1, "Rome")],
    "the first column counts": [(3, 1, ""), (30, 0, "inf"), (33, 0, "q")],
    "an unknown class": [(2, 2, ""), (31, 2, "x|q"), (35, 2, "r")],
    "all before nothing": [(2, 2, ""), (31, 2, "x|y|z")],
    "many rows": [(row, 2, "") for row in range(9, 30)],
    "a label": [(5, 3, "q"), (25, 3, "")],
    "one class": [(row, place, "x") for row in range(40) for place in (2, 3)],
    "one class and a text": [
        *((row, place, "x") for row in range(40) for place in (2, 3)),
        (30, 0, "Rome"),
    ],
    "a wide row": [(2, 0, "Rome"), (20, 3, "z,1")],
    "an open quote": [(2, 0, "Rome"), (20, 2, '"x')],
    "another separator": [(row, 2, "x;y") for row in range(0, 40, 2)],
}


def faulty(name: str, path: Path) -> Path:
    rows = [[str(i), f"{i}.5", "x|y" if i % 2 else "x", "z"] for i in range(40)]
    for row, place, text in FAULTS[name]:
        rows[row][place] = text
    path.write_text("\n".join(["a,b,not,is", *map(",".join, rows)]) + "\n")
    return path


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize("classes", [None, ["x", "y", "z"]])
@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_the_same_in_batches(
    name: str, classes: list[str] | None, tmp_path: Path
) -> None:
    file = faulty(name, tmp_path / "a.csv")
    options: dict[str, Any] = {"excluded": "not", "label": "is", "classes": classes}
    said = []
    for read in (read_table, lambda *given, **more: list(read_batches(*given, **more))):
        try:
            read(file, **options)
            said.append("nothing")
        except ValueError as error:
            said.append(str(error))
    assert said[0] == said[1]
    assert said[0] != "nothing" or (name == "one class" and classes)


@pytest.mark.usefixtures("sized")
@pytest.mark.parametrize("classes", [None, ["x", "y", "z"]])
@pytest.mark.parametrize("name", ["the first column counts", "an unknown class", "a label", "a wide row"])  # fmt: skip
def test_rows_left_out_are_the_same_in_batches(
    name: str, classes: list[str] | None, tmp_path: Path
) -> None:
    file = faulty(name, tmp_path / "a.csv")
    same(file, excluded="not", label="is", classes=classes, skip_bad_rows=True)


@pytest.mark.usefixtures("sized")
def test_where_no_row_can_be_used_the_last_fault_is_told(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,b\n" + "x,1\n" * 9 + "1,y\n" * 9)
    with pytest.raises(ValueError) as whole:
        read_table(file, skip_bad_rows=True)
    with pytest.raises(ValueError) as parts:
        list(read_batches(file, skip_bad_rows=True))
    assert str(parts.value) == str(whole.value)
    assert "(9 rows: lines 11, 12, 13, 14, 15, …)" in str(whole.value)


def test_a_row_longer_than_a_batch_is_read_and_one_that_never_ends_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "a.csv"
    file.write_text("a,not\n1," + "x" + " " * 50_000 + "\n2,y\n")
    monkeypatch.setattr(files, "_TEXT", 1000)
    assert len(same(file, excluded="not")[0]) == 2
    monkeypatch.setattr(files, "_BLOCK", 20_000)
    with pytest.raises(ValueError, match="this is not a readable CSV file"):
        list(read_batches(file, excluded="not"))


def test_batches_are_of_one_size_and_smaller_where_rows_are_wide(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": np.arange(150_000.0)}), file)
    assert [len(table) for table in read_batches(file)] == [65_536, 65_536, 18_928]
    assert {len(table) for table in read_batches(file, wide=10_000)} == {4096, 150_000 % 4096}


def test_other_files_are_one_batch(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2, "b": 3}\n' * 5000)
    with pytest.raises(ValueError, match="line 1, column 'b': the cell is empty"):
        list(read_batches(tmp_path / "a.jsonl"))
    assert [len(table) for table in read_batches(tmp_path / "a.jsonl", features=["a"])] == [10_000]
