"""The bad-input table for files: malformed inputs, each with the exact sentence a user reads."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ruleout import LabelError, LabelSets

ANIMALS = ["cat", "dog", "bird", "fish"]


def given(name: str, content: str | bytes, **options: Any) -> Callable[[], LabelSets]:
    """Write a file of that name into the current folder, then read it."""

    def read() -> LabelSets:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        return LabelSets.read(name, **options)

    return read


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def npz(**arrays: Any) -> bytes:
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def parquet(table: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


def lying() -> bytes:
    """An archive whose array header claims a terabyte and holds nothing."""
    header, out = io.BytesIO(), io.BytesIO()
    claim = {"descr": "|u1", "fortran_order": False, "shape": (10**9, 10**3)}
    np.lib.format.write_array_header_1_0(header, claim)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("packed.npy", header.getvalue())
        archive.writestr("meta.npy", npy(np.frombuffer(b'{"classes": ["a", "b"]}', np.uint8)))
    return out.getvalue()


meta = np.frombuffer(json.dumps({"classes": ["a", "b", "c"]}).encode(), np.uint8)

TABLE: list[tuple[str, Callable[[], object], str]] = [
    (
        "csv empty",
        given("a.csv", ""),
        "a.csv: the file is empty; give a first line that names the columns",
    ),
    (
        "csv no column",
        given("a.csv", "exclude\ncat\n", classes=ANIMALS),
        "a.csv: there is no column 'excluded'; did you mean 'exclude'?",
    ),
    (
        "csv no classes",
        given("a.csv", "excluded\ncat\n"),
        "a.csv: the file does not say what the classes are; pass classes=[...] with every class name",
    ),
    (
        "csv unknown",
        given("a.csv", "excluded\ncat|dog\nbrid\n", classes=ANIMALS),
        "a.csv, line 3, column 'excluded': unknown class 'brid'; did you mean 'bird'?",
    ),
    (
        "csv blank name",
        given("a.csv", "excluded\ncat||dog\n", classes=ANIMALS),
        "a.csv, line 2, column 'excluded': unknown class ''; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "csv twice",
        given("a.csv", "excluded\ncat|cat\n", classes=ANIMALS),
        "a.csv, line 2, column 'excluded': class 'cat' appears twice; name each class once",
    ),
    (
        "csv empty row",
        given("a.csv", "id,excluded\n1,cat\n2,\n", classes=ANIMALS),
        "a.csv, line 3, column 'excluded': nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True",
    ),
    (
        "csv full row",
        given("a.csv", "excluded\ncat|dog|bird|fish\n", classes=ANIMALS),
        "a.csv, line 2, column 'excluded': every class is ruled out; leave at least one class as a candidate",
    ),
    (
        "csv ragged",
        given("a.csv", "id,excluded\n1,cat\n2\n", classes=ANIMALS),
        "a.csv, line 3: the row has 1 cells where the header has 2; give every row the same cells, and quote cells that hold the separator",
    ),
    (
        "csv not utf8",
        given("a.csv", b"excluded\n\xff\xfe\n", classes=ANIMALS),
        "a.csv: this is not UTF-8 text; save the file as UTF-8",
    ),
    (
        "csv quote",
        given("a.csv", 'excluded\n"cat\n', classes=ANIMALS),
        "a.csv, line 2: this is not valid CSV (unexpected end of data); fix the quotes",
    ),
    (
        "csv class list",
        given("a.csv", 'excluded,"classes: [""cat"", "\ncat,\n'),
        "a.csv, line 1: this is not valid JSON; fix or remove it",
    ),
    (
        "csv class list object",
        given("a.csv", 'excluded,"classes: {""a"": 1}"\ncat,\n'),
        "a.csv: the file's class list is not a list; fix it, or write the file again",
    ),
    (
        "csv other classes",
        given("a.csv", 'excluded,"classes: [""cat"", ""dog""]"\ncat,\n', classes=ANIMALS),
        "a.csv: the classes are 'cat', 'dog', not 'cat', 'dog', 'bird', 'fish'; use the same class names in the same order",
    ),
    (
        "csv huge cell",
        given("a.csv", "excluded\n" + "x" * 200_000 + "\n", classes=ANIMALS),
        "a.csv, row 0, column 'excluded': unknown class 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "jsonl broken",
        given("a.jsonl", '{"excluded": ["cat"]}\n{"excluded": [\n', classes=ANIMALS),
        "a.jsonl, line 2: this is not valid JSON; fix or remove it",
    ),
    (
        "jsonl list",
        given("a.jsonl", '["cat"]\n', classes=ANIMALS),
        'a.jsonl, line 1: the line holds [\'cat\'], not an object; write lines like {"excluded": ["cat", "dog"]}',
    ),
    (
        "jsonl key",
        given("a.jsonl", '{"exluded": ["cat"]}\n', classes=ANIMALS),
        "a.jsonl: there is no column 'excluded'; did you mean 'exluded'?",
    ),
    (
        "jsonl text",
        given("a.jsonl", '{"excluded": 1.5}\n', classes=ANIMALS),
        "a.jsonl, line 1, column 'excluded': the row holds 1.5, not a list; give class names",
    ),
    (
        "jsonl null",
        given("a.jsonl", '{"excluded": null}\n', classes=ANIMALS),
        "a.jsonl, line 1, column 'excluded': the row holds nothing, not a list; give class names",
    ),
    (
        "jsonl number",
        given("a.jsonl", '{"excluded": [7]}\n', classes=ANIMALS),
        "a.jsonl, line 1, column 'excluded': unknown class 7; the classes are 'cat', 'dog', 'bird', 'fish'",
    ),
    (
        "jsonl nested",
        given("a.jsonl", "[" * 100_000, classes=ANIMALS),
        "a.jsonl, line 1: this is not valid JSON; fix or remove it",
    ),
    (
        "jsonl empty",
        given("a.jsonl", ""),
        "a.jsonl: the file does not say what the classes are; pass classes=[...] with every class name",
    ),
    (
        "parquet broken",
        given("a.parquet", b"PAR1nonsense"),
        "a.parquet: this is not a readable Parquet file; write it again",
    ),
    (
        "parquet column",
        given("a.parquet", parquet(pa.table({"x": [1]}))),
        "a.parquet: there is no column 'excluded'; the columns are 'x'",
    ),
    (
        "parquet classes",
        given("a.parquet", parquet(pa.table({"excluded": [["cat"]]}))),
        "a.parquet: the file does not say what the classes are; pass classes=[...] with every class name",
    ),
    (
        "parquet null",
        given("a.parquet", parquet(pa.table({"excluded": [["cat"], None]})), classes=ANIMALS),
        "a.parquet, row 1, column 'excluded': the row holds nothing, not a list; give class names",
    ),
    (
        "parquet number",
        given("a.parquet", parquet(pa.table({"excluded": [1, 2]})), classes=ANIMALS),
        "a.parquet, row 0, column 'excluded': unknown class '1'; the classes are 'cat', 'dog', 'bird', 'fish' (2 rows: rows 0, 1)",
    ),
    (
        "npz broken",
        given("a.npz", b"PK nonsense"),
        "a.npz: this is not a readable NPZ file; write it again",
    ),
    (
        "npz pickle",
        given("a.npz", npz(excluded=np.array([[None, 1]], object))),
        "a.npz: array 'excluded' holds Python objects; save plain numbers or text",
    ),
    (
        "npz lying",
        given("a.npz", lying()),
        "a.npz: array 'packed' is not of the size it claims; write it again",
    ),
    (
        "npz padding",
        given("a.npz", npz(packed=np.array([[9]], np.uint8), meta=meta)),
        "a.npz, row 0: a bit beyond the last class is set; pack with numpy.packbits(..., axis=1, bitorder='little')",
    ),
    (
        "npz name",
        given("a.npz", npz(mask=np.eye(3))),
        "a.npz: there is no column 'excluded'; the columns are 'mask'",
    ),
    (
        "npz value",
        given("a.npz", npz(excluded=np.array([[0, 3]]))),
        "a.npz, row 0, column 1: 3 is neither 0 nor 1; 1 means ruled out, 0 means still a candidate",
    ),
    (
        "npz width",
        given("a.npz", npz(packed=np.array([[1, 0]], np.uint8), meta=meta)),
        "a.npz: packed bits of uint8 with shape (1, 2); 3 classes need uint8 of shape (n, 1)",
    ),
    (
        "csv column twice",
        given("a.csv", "excluded,excluded\ncat,dog\n", classes=ANIMALS),
        "a.csv: column 'excluded' appears twice; name each column once",
    ),
    (
        "csv blank line",
        given("a.csv", "excluded\ncat\n\ndog\n", classes=ANIMALS),
        "a.csv, line 3, column 'excluded': nothing is ruled out; rule out at least one class, drop the row, or pass unlabelled=True",
    ),
    (
        "csv commas",
        given("a.csv", 'excluded\n"cat,dog"\n', classes=ANIMALS),
        "a.csv, line 2, column 'excluded': unknown class 'cat,dog'; separate class names by |",
    ),
    (
        "csv semicolons",
        given("a.csv", "id;excluded\n1,cat\n", classes=ANIMALS),
        "a.csv: the header is 'id;excluded'; separate columns by commas, semicolons or tabs in every line",
    ),
    (
        "npz wide",
        given("a.npz", npz(excluded=np.empty((0, 10**8), np.uint8))),
        "a.npz: 100000000 classes given; at most 1,000,000 are possible",
    ),
    (
        "npz text bytes",
        given("a.npz", npz(excluded=np.full((1, 8), 255, np.uint8).view("<U1"))),
        "a.npz: this is not a readable NPZ file; write it again",
    ),
    (
        "parquet dates",
        given("a.parquet", parquet(pa.table({"excluded": pa.array([2**62], pa.timestamp("us"))}))),
        "a.parquet, column 'excluded': the column holds timestamp[us]; give class names or whole numbers",
    ),
]


@pytest.mark.parametrize(
    ("call", "sentence"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_malformed_file_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[[], object], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LabelError) as caught:
        call()
    assert str(caught.value) == sentence


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_missing_file_stays_file_not_found(suffix: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LabelSets.read(tmp_path / f"none{suffix}")


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet", ".npz"])
def test_broken_bytes_never_give_another_error(suffix: str, tmp_path: Path) -> None:
    """Cut a good file anywhere, or change a byte: it reads or it raises LabelError."""
    path = tmp_path / f"sets{suffix}"
    LabelSets([[1, 0, 0, 1], [0, 1, 0, 0]] * 30, ANIMALS).write(path)
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    for turn in range(300):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] = rng.integers(256)
        path.write_bytes(bytes(bad))
        try:
            LabelSets.read(path)
        except LabelError as error:
            assert str(path) in str(error)  # noqa: PT017  # reading well is right, too


def test_writing_fails_whole(tmp_path: Path) -> None:
    """When writing raises, neither the file nor a part of it is there."""
    names = ["x" * 70_000 + str(i) for i in range(4)]
    sets = LabelSets([[1, 0, 0, 0], [1, 1, 1, 0]], names)
    with pytest.raises(LabelError, match=r"write \.parquet instead"):
        sets.write(tmp_path / "sets.csv")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        sets.write(tmp_path / "missing" / "sets.npz")


def test_foreign_files_are_read(tmp_path: Path) -> None:
    """Files of other programs: extra columns, spaces, Windows line ends, a byte-order mark."""
    expected = LabelSets.from_lists([["cat", "dog"], ["bird"]], ANIMALS)
    csv = tmp_path / "a.csv"
    csv.write_bytes(b"\xef\xbb\xbfid,excluded,note\r\n1,cat | dog,a\r\n\r\n2,bird,b\r\n")
    assert LabelSets.read(csv, classes=ANIMALS) == expected
    csv.write_text("id,no\n1,cat|dog\n2,bird\n")
    assert LabelSets.read(csv, classes=ANIMALS, column="no") == expected
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": 1, "excluded": ["cat", "dog"]}\n\n{"excluded": ["bird"]}')
    assert LabelSets.read(lines, classes=ANIMALS) == expected
    table = tmp_path / "a.parquet"
    pq.write_table(pa.table({"excluded": ["cat|dog", "bird"]}), table)
    assert LabelSets.read(table, classes=ANIMALS) == expected
    np.savez(tmp_path / "a.npz", excluded=expected.excluded, classes=np.array(ANIMALS))
    assert LabelSets.read(tmp_path / "a.npz") == expected
    np.savez_compressed(tmp_path / "a.npz", excluded=np.asfortranarray(expected.excluded))
    assert LabelSets.read(tmp_path / "a.npz", classes=ANIMALS) == expected


def test_our_csv_is_plain_to_other_programs(tmp_path: Path) -> None:
    """One header row, the names where anybody looks for them; saved again, it still reads."""
    path = tmp_path / "a.csv"
    sets = LabelSets.from_lists([["cat", "dog"], ["bird"]], ANIMALS)
    sets.write(path)
    frame = pd.read_csv(path)
    assert frame["excluded"].tolist() == ["cat|dog", "bird"]
    frame.assign(id=[7, 8]).to_csv(path, index=False)
    assert LabelSets.read(path) == sets


def test_blank_lines_are_rows_in_one_column_and_nothing_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("excluded\ncat\n\ndog\n\n\n")
    sets = LabelSets.read(path, classes=ANIMALS, unlabelled=True)
    assert sets.to_lists() == [["cat"], [], ["dog"]]


def test_the_number_of_classes_may_be_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    LabelSets([[1, 0, 0, 0]], ANIMALS).write(path)
    assert LabelSets.read(path, classes=4).classes == tuple(ANIMALS)
    with pytest.raises(LabelError, match="the classes are 'cat'"):
        LabelSets.read(path, classes=3)


def test_permissions_and_links_survive_writing(tmp_path: Path) -> None:
    path, link = tmp_path / "a.csv", tmp_path / "link.csv"
    sets = LabelSets([[1, 0]])
    sets.write(path)
    path.chmod(0o600)
    link.symlink_to(path)
    LabelSets([[0, 1]]).write(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    assert LabelSets.read(path) == LabelSets([[0, 1]])


def test_parquet_notices_a_changed_page(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    sets = LabelSets([[1, 0, 0, 1], [0, 1, 0, 0]] * 300, ANIMALS)
    sets.write(path)
    good, noticed = path.read_bytes(), 0
    for place in range(4, len(good) // 2, 7):
        bad = bytearray(good)
        bad[place] ^= 4
        path.write_bytes(bytes(bad))
        try:
            assert LabelSets.read(path) == sets, place  # a byte that does not matter
        except LabelError:
            noticed += 1
    assert noticed > 10


def test_numbers_as_class_names_survive_text_files(tmp_path: Path) -> None:
    sets = LabelSets.from_lists([[30], [10, 20]], [10, 20, 30])
    for suffix in (".csv", ".jsonl", ".parquet", ".npz"):
        sets.write(tmp_path / f"a{suffix}")
        assert LabelSets.read(tmp_path / f"a{suffix}").classes == (10, 20, 30)
