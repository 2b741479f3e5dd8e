"""A user's own data: what becomes features, sets, labels and classes, whatever the format."""

from __future__ import annotations

import gzip
import hashlib
import json
import subprocess
import sys
import tempfile
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ruleout as ro
from ruleout.datasets.tables import Table, draw_table, read_table
from ruleout.labels.files import write_columns

PETS = "id,weight,wild,city,not,is\n7,4.2,false,Rome,dog|fish,cat\n8,+30,true,Oslo,cat,dog\n"
EXPECTED = ro.LabelSets.from_lists([["dog", "fish"], ["cat"]], ["cat", "dog", "fish"])


def write(folder: Path, suffix: str) -> Path:
    """Write the pets in a format, as other programs would."""
    path = folder / f"pets{suffix}"
    columns: dict[str, list[Any]] = {
        "id": [7, 8],
        "weight": [4.2, 30],
        "wild": [False, True],
        "city": ["Rome", "Oslo"],
        "not": [["dog", "fish"], ["cat"]],
        "is": ["cat", "dog"],
    }
    if suffix == ".csv":
        path.write_text(PETS)
    elif suffix == ".tsv":
        path.write_text(PETS.replace(",", "\t"))
    elif suffix == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join(map(json.dumps, rows)))
    return path


every = pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])


@every
def test_numbers_are_features_and_named_columns_are_labels(suffix: str, tmp_path: Path) -> None:
    path = write(tmp_path, suffix)
    table = read_table(path, excluded="not", label="is", ignore=["id", "city"])
    assert table.features == ("weight", "wild")
    assert table.x.tolist() == [[np.float32(4.2), 0], [30, 1]]
    assert (table.x.dtype.name, table.x.flags.c_contiguous) == ("float32", True)
    assert table.shape == (2,)
    assert table.sets == EXPECTED
    assert table.labels is not None
    assert table.labels.tolist() == ["cat", "dog"]
    assert table.classes == ("cat", "dog", "fish")
    assert table.row_names is None
    assert table.source == path
    assert table.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert table.notes == (
        "The classes are those seen in the data, 'cat', 'dog', 'fish': a class that never occurs "
        "there is missing. Name all with --classes.",
    )


@every
def test_demanded_features_come_in_their_order_and_all_else_is_ignored(
    suffix: str, tmp_path: Path
) -> None:
    path, names = write(tmp_path, suffix), ["weight", "id"]
    stored = {"kind": "columns", "features": names}
    for table in (read_table(path, features=names), read_table(path, reading=stored)):
        assert table.features == ("weight", "id")
        assert table.x.tolist() == [[np.float32(4.2), 7], [30, 8]]
        assert (table.sets, table.labels, table.classes, table.notes) == (None, None, None, ())


@every
def test_a_reading_is_plain_json_and_repeats_itself(suffix: str, tmp_path: Path) -> None:
    first = read_table(write(tmp_path, suffix), features=["wild", "weight"])
    stored = json.loads(json.dumps(first.reading))
    other = tmp_path / "new.csv"
    other.write_text("name,weight,more,wild\nx,1,9,true\n")
    again = read_table(other, reading=stored)
    assert again.features == first.features
    assert again.x.tolist() == [[1, 1]]


def test_a_table_is_shown_in_one_line_and_cannot_be_changed(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, ".csv"), excluded="not", features=["id"])
    assert repr(table) == "Table('pets.csv', 2 rows of shape (1,), 3 classes, label sets)"
    assert len(table) == 2
    with pytest.raises(FrozenInstanceError):
        table.sha256 = "other"  # type: ignore[misc]  # that it fails is the point


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_our_own_files_of_sets_bring_their_class_list(suffix: str, tmp_path: Path) -> None:
    sets = ro.draw([0, 1, 2, 3], ["a", "b", "c", "never"], seed=1)
    sets.write(tmp_path / f"sets{suffix}")
    table = read_table(tmp_path / f"sets{suffix}", excluded="excluded", featureless=True)
    assert table.sets == sets
    assert table.x.shape == (4, 0)
    assert table.notes == ()


def test_class_names_that_are_whole_numbers_sort_as_such(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,not,y\n1,2|10,0\n2,0,10\n")
    table = read_table(path, excluded="not", label="y")
    assert table.classes == (0, 2, 10)
    assert table.labels is not None
    assert table.labels.tolist() == [0, 10]
    path.write_text("a,not\n1,02|10\n2,0\n")
    assert read_table(path, excluded="not").classes == ("0", "02", "10")


def test_class_names_that_look_alike_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,y\n1,Cat\n2,cat\n3,caf\u00e9\n4,cafe\u0301\n5,NA\n6,nan\n7,dog\n")
    table = read_table(path, label="y")
    assert len(table.classes or ()) == 7
    assert "'Cat', 'cat' differ only in how they are written" in " ".join(table.notes)
    assert "'cafe\\u0301', 'caf\\xe9' differ only" in " ".join(table.notes)
    assert "'NA', 'nan' look like missing values" in " ".join(table.notes)
    assert len(table.notes) == 4
    np.savez(tmp_path / "a.npz", x=np.ones((2, 1)), y=np.array(["Cat", "cat"]))
    assert "'Cat', 'cat' differ" in read_table(tmp_path / "a.npz", label="y").notes[1]
    path.write_text("a,y\n1,Cat\n2,cat\n")
    assert read_table(path, label="y", classes=["Cat", "cat"]).notes == ()


def test_single_complementary_labels_are_sets_of_one(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3], "not": [2, 0, 1]}), path)
    table = read_table(path, excluded="not")
    assert table.sets == ro.LabelSets.from_single([2, 0, 1], 3)
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1, "not": 2}\n{"a": 2, "not": 0}\n{"a": 3, "not": "1"}\n')
    assert read_table(lines, excluded="not").sets == table.sets


def test_labels_of_other_types_become_names(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1, 2], "b": [True, False], "f": [3.0, 4.0]}), path)
    assert read_table(path, label="b", features=["a"]).classes == ("false", "true")
    assert read_table(path, label="f", features=["a"]).classes == (3, 4)
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1, "b": true, "f": 3.0}\n{"a": 2, "b": false, "f": 4}\n')
    assert read_table(lines, label="b", features=["a"]).classes == ("false", "true")
    assert read_table(lines, label="f", features=["a"]).classes == (3, 4)


def test_rows_that_rule_nothing_out_need_to_be_allowed(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("a,not\n1,cat|dog\n2,\n3,fish\n")
    sets = read_table(path, excluded="not", unlabelled=True).sets
    assert sets is not None
    assert sets.sizes.tolist() == [2, 0, 1]
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"a": 1, "not": ["cat", "dog"]}\n{"a": 2}\n{"a": 3, "not": ["fish"]}\n')
    assert read_table(lines, excluded="not", unlabelled=True).sets == sets


def test_files_of_other_programs(tmp_path: Path) -> None:
    """A byte-order mark, Windows line ends, blank lines, spaces, quotes, an index without name."""
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'\xef\xbb\xbf,a,"b ""c""\nd",not\r\n0, 1 ,2,cat | dog\r\n\r\n1,3,"4","fish"\r\n'
    )
    table = read_table(path, excluded="not")
    assert table.features == ("a", 'b "c"\nd')
    assert table.x.tolist() == [[1, 2], [3, 4]]
    assert table.sets is not None
    assert table.sets.to_lists() == [["cat", "dog"], ["fish"]]
    assert table.notes[-1] == "A column without a name, such as a saved index, is left out."
    path.write_text("a,b,,\n1,2,,\n")
    assert read_table(path).features == ("a", "b")


def test_the_index_that_pandas_saves_is_not_a_feature(tmp_path: Path) -> None:
    """Of a frame some rows of which were dropped, and of one that went through CSV twice."""
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4], "not": ["cat", "dog", "cat", "dog"]})
    frame = frame.drop(index=2)
    frame.to_parquet(tmp_path / "a.parquet")
    assert "__index_level_0__" in pq.read_schema(tmp_path / "a.parquet").names
    frame.to_csv(tmp_path / "a.csv")
    pd.read_csv(tmp_path / "a.csv").to_csv(tmp_path / "b.csv")
    assert (tmp_path / "b.csv").read_text().startswith(",Unnamed: 0,a")
    for name in ("a.parquet", "a.csv", "b.csv"):
        table = read_table(tmp_path / name, excluded="not")
        assert table.features == ("a",)
        assert table.notes[-1] == "A column without a name, such as a saved index, is left out."
    before = {"kind": "columns", "features": ["Unnamed: 0", "a"]}
    assert read_table(tmp_path / "b.csv", reading=before).x.tolist() == [[0, 1], [1, 2], [3, 4]]


def test_a_carriage_return_in_a_name_survives(tmp_path: Path) -> None:
    """Python 3.11 and 3.12 would leave it without quotes."""
    sets = ro.LabelSets.from_lists([["a\r"], ["b"]], ["a\r", "b", "c"])
    sets.write(tmp_path / "a.csv")
    assert ro.LabelSets.read(tmp_path / "a.csv") == sets
    assert read_table(tmp_path / "a.csv", excluded="excluded", featureless=True).sets == sets


def test_one_column_keeps_blank_lines_as_rows_as_label_sets_do(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("not\ncat\n\ndog\n\n\n")
    options: dict[str, Any] = {"classes": ["cat", "dog"], "unlabelled": True}
    table = read_table(path, excluded="not", featureless=True, **options)
    assert table.sets == ro.LabelSets.read(path, column="not", **options)
    assert len(table) == 3


def test_whole_numbers_that_float32_cannot_hold_are_noted(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("when,a\n1700000001,0.5\n1700000002,2e9\n")
    (note,) = read_table(path).notes
    assert note.startswith("The columns 'when' hold whole numbers above 16,777,216")


def test_json_columns_may_change_their_kind(tmp_path: Path) -> None:
    """Whole numbers, then fractions, true, and numbers beyond 64 bits, over many blocks."""
    path = tmp_path / "a.jsonl"
    values = [1] * 5000 + [2.5] * 5000 + [True, 10**20, None]
    lines = [json.dumps({"a": value, f"k{place % 3}": 1}) for place, value in enumerate(values)]
    path.write_text("\n".join(lines[:-1]) + "\n" + '{"a": 1, "late": "x"}\n')
    table = read_table(path, features=["a"])
    assert table.x[:, 0].tolist() == [float(np.float32(value)) for value in values[:-1]] + [1]


# ---------------------------------------------------------------------- everyday files


def test_packed_text_files_are_read(tmp_path: Path) -> None:
    content = {".csv": "a,not\n1,cat|dog\n2,fish\n", ".tsv": "a\tnot\n1\tcat|dog\n2\tfish\n"}
    content[".jsonl"] = '{"a": 1, "not": ["cat", "dog"]}\n{"a": 2, "not": ["fish"]}\n'
    for suffix, text in content.items():
        path = tmp_path / f"a{suffix}.gz"
        path.write_bytes(gzip.compress(text.encode()))
        table = read_table(path, excluded="not")
        assert table.x.tolist() == [[1], [2]]
        assert table.sets is not None
        assert table.sets.to_lists() == [["cat", "dog"], ["fish"]]
        classes = ["cat", "dog", "fish"]
        assert ro.LabelSets.read(path, column="not", classes=classes) == table.sets
        path.write_bytes(gzip.compress(text.encode())[:-9])
        with pytest.raises(ro.LabelError, match="this is not a readable gzip file"):
            read_table(path, excluded="not")


def test_what_separates_columns_is_seen_in_the_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for text in ('a;b;"not, or"\n1;2;cat|dog\n3;4;fish\n', 'a\tb\t"not, or"\n1\t2\tcat|dog\n'):
        path.write_text(text)
        table = read_table(path, excluded="not, or", classes=["cat", "dog", "fish"])
        assert table.features == ("a", "b")
        assert table.x[0].tolist() == [1, 2]
    path.write_text("a;b;not\n1;2;cat|dog\n3;x;fish\n")
    with pytest.raises(ValueError, match="line 3, column 'b': 'x' is not a number"):
        read_table(path, excluded="not")


def test_candidates_are_what_was_not_ruled_out(tmp_path: Path) -> None:
    path, classes = tmp_path / "a.csv", ["cat", "dog", "fish"]
    path.write_text("a,may\n1,cat|dog\n2,fish\n")
    expected = ro.LabelSets.from_candidates([["cat", "dog"], ["fish"]], classes)
    assert read_table(path, candidates="may").sets == expected
    np.savez(tmp_path / "a.npz", x=np.ones((2, 1)), may=expected.candidates, classes=classes)
    assert read_table(tmp_path / "a.npz", candidates="may").sets == expected
    with pytest.raises(ValueError, match="and of candidates are asked for; name one of the two"):
        read_table(path, candidates="may", excluded="may")
    path.write_text("a,may\n1,cat|dog|fish\n2,fish\n")
    with pytest.raises(ValueError, match="line 2, column 'may': nothing is ruled out"):
        read_table(path, candidates="may")


def test_rows_that_cannot_be_used_may_be_left_out(tmp_path: Path) -> None:
    """Numbers, sets and true labels each have a row at fault; the others are read."""
    path = tmp_path / "a.csv"
    rows = "1,2,dog,cat\n2,x,dog,cat\n3,,cat|fish,dog\n4,4,dog,cow\n5,5,cow,cat\n6,6,fish,dog\n"
    path.write_text("a,b,not,y\n" + rows)
    options: dict[str, Any] = {"excluded": "not", "label": "y", "classes": ["cat", "dog", "fish"]}
    with pytest.raises(ValueError, match=r"column 'b': 'x' is not a number.*2 rows: lines 3, 4"):
        read_table(path, **options)
    table = read_table(path, **options, skip_bad_rows=True)
    assert table.x.tolist() == [[1, 2], [6, 6]]
    assert table.sets is not None
    assert table.sets.to_lists() == [["dog"], ["fish"]]
    assert table.labels is not None
    assert table.labels.tolist() == ["cat", "dog"]
    assert table.notes == (
        "2 row(s) left out: 'x' is not a number in column 'b' (line 3, line 4).",
        "1 row(s) left out: unknown class 'cow' in column 'not' (line 6).",
        "1 row(s) left out: unknown class 'cow' in column 'y' (line 5).",
    )
    path.write_text("a,b,not,y\n" + rows + "7,7\n8,8,dog,cat,1\n")
    table = read_table(path, **options, skip_bad_rows=True)
    assert len(table) == 2
    assert table.notes[0] == "2 row(s) left out: they are not whole."
    path.write_text("a,b,not,y\n1,x,dog,cat\n")
    with pytest.raises(ValueError, match="'x' is not a number"):
        read_table(path, **options, skip_bad_rows=True)


def test_of_many_rows_left_out_a_note_names_the_first(tmp_path: Path) -> None:
    """Rows of a file without lines are named as lines are: five, and that there are more."""
    pq.write_table(pa.table({"a": [1, *[None] * 7], "y": [0, 1] * 4}), tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", label="y", classes=2, skip_bad_rows=True)
    named = ", ".join(f"row {row}" for row in range(1, 6))
    problem = "7 row(s) left out: the cell is empty in column 'a'"
    assert table.notes == (f"{problem} ({named}, …).",)


def test_lines_that_are_not_json_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1, "not": ["cat"]}\n{"a": \n[1]\n{"a": 2, "not": ["dog"]}\n')
    table = read_table(path, excluded="not", classes=["cat", "dog", "cow"], skip_bad_rows=True)
    assert (table.x.tolist(), table.notes) == (
        [[1], [2]],
        ("2 row(s) left out: they are not whole.",),
    )


def test_arrow_is_given_nothing_that_is_pythons(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread of Arrow that frees Python's memory while Python ends would abort the process."""
    path, given_to = tmp_path / "a.csv", []
    path.write_text("a,not\n1,cat|dog\n2,fish\n")
    parse = arrow_csv.read_csv

    def spy(stream: Any, **options: Any) -> Any:
        given_to.append(type(stream))
        return parse(stream, **options)

    monkeypatch.setattr(arrow_csv, "read_csv", spy)
    read_table(path, excluded="not")
    assert given_to == [pa.OSFile]


# ---------------------------------------------------------------------- NPZ

CUBE = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        (CUBE, (1, 4, 5)),
        (CUBE[..., None], (1, 4, 5)),
        (CUBE[:, None], (1, 4, 5)),
        (np.stack([CUBE] * 3, -1), (3, 4, 5)),
        (np.stack([CUBE] * 3, 1), (3, 4, 5)),
    ],
)
def test_arrays_of_images_get_channels_first(
    x: Any, shape: tuple[int, ...], tmp_path: Path
) -> None:
    np.savez(tmp_path / "a.npz", x=x)
    table = read_table(tmp_path / "a.npz")
    assert (table.shape, table.features) == (shape, ())
    expected = np.stack([CUBE / 255] * shape[0], 1).reshape(2, -1)
    assert np.allclose(table.x, expected)
    assert table.x.flags.c_contiguous
    np.savez(tmp_path / "b.npz", x=x / 255)
    assert np.allclose(read_table(tmp_path / "b.npz").x, expected)
    assert np.array_equal(read_table(tmp_path / "a.npz", reading=table.reading).x, table.x)


def test_npz_holds_masks_or_packed_sets_labels_and_names(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    x, names = np.array([[1, 2, 3], [4, 5, 6]]), np.array(["cat", "dog", "fish"])
    np.savez(
        path,
        x=np.asfortranarray(x),
        no=EXPECTED.excluded,
        classes=names,
        y=np.array(["dog", "cat"]),
        features=np.array(["a", "b", "c"]),
    )
    table = read_table(path, excluded="no", label="y", features=["c", "a"])
    assert (table.sets, table.classes) == (EXPECTED, ("cat", "dog", "fish"))
    assert table.x.tolist() == [[3, 1], [6, 4]]
    assert table.labels is not None
    assert table.labels.tolist() == ["dog", "cat"]
    np.savez(path, x=x, y=np.array([0.0, 5.0]))
    table = read_table(path, label="y")
    assert (table.classes, table.features) == ((0, 5), ("x0", "x1", "x2"))
    assert len(table.notes) == 1
    assert read_table(path, reading={"kind": "columns", "features": ["a", "b", "c"]}).x.shape == (
        2,
        3,
    )


# ---------------------------------------------------------------------- written and read

text = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6
).filter(str.strip)
number = st.floats(-(2.0**125), 2.0**125, width=32)


@st.composite
def tables(draw: Any) -> tuple[pa.Table, ro.LabelSets]:
    kinds = [
        number,
        st.integers(-(2**20), 2**20),
        st.booleans(),
    ]
    n = draw(st.integers(1, 6))
    names = draw(st.lists(text, min_size=1, max_size=4, unique=True))
    names = [name for name in names if name != "excluded"] or ["a"]
    columns: dict[str, Any] = {}
    for name in names:
        kind = draw(st.sampled_from(kinds))
        columns[name] = draw(st.lists(kind, min_size=n, max_size=n))
    classes = draw(st.lists(text, min_size=2, max_size=4, unique=True))
    row = st.integers(1, 2 ** len(classes) - 2)
    codes = draw(st.lists(row, min_size=n, max_size=n))
    mask = np.array([[code >> j & 1 for j in range(len(classes))] for code in codes])
    sets = ro.LabelSets(mask, classes)
    columns["excluded"] = sets.to_lists()
    return pa.table(columns), sets


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet"])
@given(pair=tables())
def test_what_was_written_is_read_back(suffix: str, pair: tuple[pa.Table, ro.LabelSets]) -> None:
    columns, sets = pair
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"data{suffix}")
        write_columns(path, columns.schema, columns.to_batches(), sets.classes)
        table = read_table(path, excluded="excluded")
    names = [name for name in columns.column_names if name != "excluded"]
    assert table.features == tuple(names)
    expected = np.stack([np.array(columns.column(name).to_pylist()) for name in names], 1)
    assert np.array_equal(table.x, expected.astype(np.float32))
    assert table.sets == sets
    assert table.notes == ()


def test_json_has_null_in_the_place_of_nan(tmp_path: Path) -> None:
    columns = pa.table({"a": [1.5, float("nan")], "b": [[0.5], None], "c": [2, None]})
    write_columns(tmp_path / "a.jsonl", columns.schema, columns.to_batches())
    lines = (tmp_path / "a.jsonl").read_text().splitlines()
    assert lines == ['{"a": 1.5, "b": [0.5], "c": 2}', '{"a": null, "b": null, "c": null}']


# ---------------------------------------------------------------------- drawn


@every
@pytest.mark.parametrize("after", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_drawing_replaces_the_labels_and_keeps_the_rest(
    suffix: str, after: str, tmp_path: Path
) -> None:
    path, out = write(tmp_path, suffix), tmp_path / f"out{after}"
    options: dict[str, Any] = {"label": "is", "classes": ["cat", "dog", "fish", "cow"]}
    sets = draw_table(path, out, law=2, seed=3, **options)
    assert sets == ro.draw(["cat", "dog"], options["classes"], law=2, seed=3)
    table = read_table(out, excluded="excluded", ignore=["city", "not"])
    assert table.features == ("id", "weight", "wild")
    assert table.x.tolist() == [[7, np.float32(4.2), 0], [8, 30, 1]]
    assert table.sets == sets
    assert {file.name for file in tmp_path.iterdir()} == {out.name, path.name}
    draw_table(path, out, keep_label=True, **options)
    table = read_table(out, excluded="excluded", label="is", features=["id"])
    assert table.labels is not None
    assert table.labels.tolist() == ["cat", "dog"]
    draw_table(path, tmp_path / "sets.npz", sets_only=True, law=2, seed=3, **options)
    assert ro.LabelSets.read(tmp_path / "sets.npz") == sets


def test_csv_keeps_every_letter_of_other_columns(tmp_path: Path) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text('zip,y,t\n007,cat,"1,50"\n0x1,dog,2020-01-01\n')
    draw_table(path, out, label="y", seed=0)
    assert out.read_text() == (
        'zip,excluded,t,"classes: [""cat"", ""dog""]"\n007,dog,"1,50",\n0x1,cat,2020-01-01,\n'
    )


def test_arrays_are_drawn_to_arrays_and_to_columns(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, x=np.array([[1, 2], [3, 4], [5, 6]]), y=np.array([0, 1, 2]))
    sets = draw_table(path, tmp_path / "b.npz", label="y", keep_label=True)
    table = read_table(tmp_path / "b.npz", excluded="excluded", label="y")
    assert table.sets == sets
    assert table.x.tolist() == [[1, 2], [3, 4], [5, 6]]
    draw_table(path, tmp_path / "c.csv", label="y")
    assert np.array_equal(read_table(tmp_path / "c.csv", excluded="excluded").x, table.x)
    np.savez(path, x=CUBE, y=np.array([0, 1]))
    draw_table(path, tmp_path / "b.npz", label="y", classes=3)
    again = read_table(tmp_path / "b.npz", excluded="excluded")
    assert (again.shape, len(again)) == ((1, 4, 5), 2)
    with pytest.raises(ValueError, match=r"c\.csv: images go into \.npz"):
        draw_table(path, tmp_path / "c.csv", label="y", classes=3)


def test_importing_loads_neither_arrow_nor_torch() -> None:
    code = """
import sys, ruleout.datasets
heavy = {"torch", "sklearn", "scipy", "pyarrow", "PIL", "pandas"}
print(sorted(heavy & set(sys.modules)), callable(ruleout.datasets.read_table))"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] True"


def test_table_type_is_public() -> None:
    assert ro.datasets.Table is Table


NUMBERED = "f,not,is,known\n1,1|2,0,0\n2,1.0,2,2.0\n3,0|1,2.0,\n4,2.0|0.0,1.0,1\n"


def test_whole_numbers_are_classes_however_they_are_written(tmp_path: Path) -> None:
    """Other programs write 1.0 where a column has empty cells."""
    path = tmp_path / "a.csv"
    path.write_text(NUMBERED)
    told: Any = {"excluded": "not", "label": "is", "known": "known"}
    for classes in (None, 3):
        table = read_table(path, **told, classes=classes)
        assert table.classes == (0, 1, 2)
        assert table.sets is not None
        assert table.sets.to_lists() == [[1, 2], [1], [0, 1], [0, 2]]
        assert table.labels is not None
        assert table.labels.tolist() == [0, 2, 2, 1]
        assert table.known is not None
        assert table.known.tolist() == ["0", "2", "", "1"]
    path.write_text(NUMBERED.replace("2,2.0\n", "2,2.5\n"))  # then 1.0 may be a name like 2.5
    assert read_table(path, **told).classes == ("0", "0.0", "1", "1.0", "2", "2.0", "2.5")


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_lists_of_numbers_are_names(suffix: str, tmp_path: Path) -> None:
    rows = [{"f": 1.5, "not": [1.0, 2.0]}, {"f": 2.5, "not": [0.0]}]
    path = tmp_path / f"a{suffix}"
    if suffix == ".jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path)
    table = read_table(path, excluded="not")
    assert table.sets is not None
    assert table.sets.to_lists() == [[1, 2], [0]]
