"""Text tables: what is read, and what is refused with the exact sentence a user reads."""

from __future__ import annotations

import hashlib
import io
import tracemalloc
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ruleout.datasets import DataError, load
from ruleout.datasets.data_formats import DataFile, TableSet, read_delimited
from ruleout.datasets.registry import REGISTRY

GOOD = b"a,0.5,1,cat\nb,-2,?,dog\nc,3e1,4,cat\n"
ENTRY = TableSet(
    file=DataFile(
        "uci",
        "pets.zip",
        hashlib.sha256(GOOD).hexdigest(),
        "https://example.org/pets.zip",
        2000,
        (3, 4),
        ("pets.dat",),
    ),
    classes=("cat", "dog"),
    source="Made on the spot.",
    comma=True,
    first=1,
    missing=2,
)
PLAIN = replace(ENTRY, file=replace(ENTRY.file, sha256=""), missing=None)


def packed(name: str = "pets.dat", content: bytes = GOOD, count: int = 1) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(count):
            archive.writestr(f"{number or ''}{name}", content)
    return out.getvalue()


def encrypted() -> bytes:
    """Claim a password: bit 0 of the flags, in the local header and in the directory."""
    data = bytearray(packed())
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


def unusual() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("pets.dat", GOOD)
    return out.getvalue()


def changed(old: bytes, new: bytes) -> bytes:
    assert old in GOOD
    return GOOD.replace(old, new, 1)


def zip_sum() -> bytes:
    """Change the checksum in the directory."""
    data = bytearray(packed())
    data[data.index(b"PK\1\2") + 16] ^= 1
    return bytes(data)


OTHER = changed(b"0.5", b"0.6")
SUMS = hashlib.sha256(OTHER).hexdigest()[:12], ENTRY.file.sha256[:12]
AGAIN = "; delete it and load again"

TABLE = [
    ("empty", b"", ": the file has 0 rows instead of 3"),
    ("blank", b"\n \r\n", ": the file has 0 rows instead of 3"),
    ("web page", b"<html>\n<p>", ": the file has 2 rows instead of 3"),
    ("header only", b"@relation pets\n@data\n", ": the file has 0 rows instead of 3"),
    ("row missing", GOOD[:20], ": the file has 2 rows instead of 3"),
    ("row more", GOOD + b"d,1,1,dog\n", ": the file has 4 rows instead of 3"),
    ("too long", GOOD + b" " * 2000, ": the file has more than 2,000 bytes"),
    ("cut", GOOD[:-5], ", line 3: the row has 3 cells instead of 4"),
    ("cell more", changed(b"-2", b"-2,7"), ", line 2: the row has 5 cells instead of 4"),
    ("spaces", GOOD.replace(b",", b" "), ", line 1: the row has 1 cells instead of 4"),
    (
        "line after header",
        b"@data\n\n" + changed(b"-2", b"x"),
        ", line 4, column 1: 'x' is not a finite number",
    ),
    ("not text", changed(b"-2", b"-\xb2"), ", line 2: byte 0xb2 is not ASCII text"),
    ("UTF-16", GOOD.decode().encode("utf-16"), ", line 1: byte 0xff is not ASCII text"),
    ("NUL", changed(b"-2", b"\0"), ", line 2, column 1: '\\x00' is not a finite number"),
    ("word", changed(b"-2", b"two"), ", line 2, column 1: 'two' is not a finite number"),
    ("hole", changed(b"-2", b""), ", line 2, column 1: '' is not a finite number"),
    (
        "missing elsewhere",
        changed(b"-2", b"?"),
        ", line 2, column 1: '?' is not a finite number",
    ),
    ("NaN", changed(b"3e1", b"nan"), ", line 3, column 1: 'nan' is not a finite number"),
    (
        "infinity",
        changed(b"4", b"-inf"),
        ", line 3, column 2: '-inf' is not a finite number",
    ),
    (
        "too large",
        changed(b"4", b"1e39"),
        ", line 3, column 2: '1e39' is not a finite number",
    ),
    (
        "underscore",
        changed(b"3e1", b"3_0"),
        ", line 3, column 1: '3_0' is not a finite number",
    ),
    (
        "long cell",
        changed(b"4", b"4" * 999),
        f", line 3, column 2: '{'4' * 59}… is not a finite number",
    ),
    (
        "class",
        changed(b"dog", b"cow"),
        ", line 2, column 3: 'cow' is not one of the classes cat, dog",
    ),
    (
        "no value known",
        b"a,1,?,cat\nb,2,?,dog\nc,3,?,cat\n",
        ", column 2: no row has a value",
    ),
    ("value", OTHER, f": the content has sha256 {SUMS[0]}… instead of {SUMS[1]}…"),
    ("zip start", b"PK\3\4", ": the zip archive is damaged or has a password"),
    ("zip cut", packed()[:-9], ": the zip archive is damaged or has a password"),
    ("zip sum", zip_sum(), ": the zip archive is damaged or has a password"),
    ("zip password", encrypted(), ": the zip archive is damaged or has a password"),
    ("zip without", packed("readme.txt"), ": the zip archive has 0 .dat files instead of one"),
    ("zip with two", packed(count=2), ": the zip archive has 2 .dat files instead of one"),
    ("zip unusual", unusual(), ": the zip archive is packed in an unusual way"),
    (
        "zip bomb",
        packed(content=bytes(1 << 20)),
        ": the zip archive unpacks to more than 2,000 bytes",
    ),
    ("zip in zip", packed(content=b"PK\3\4"), ": the file has 1 rows instead of 3"),
]


@pytest.mark.parametrize(
    ("content", "problem"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_hostile_table_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "a.data"
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_delimited(file, ENTRY)
    assert str(caught.value) == f"{file}{problem}{AGAIN}"


@pytest.mark.parametrize(
    "content",
    [
        GOOD,
        GOOD[:-1],
        GOOD.replace(b"\n", b"\r\n"),
        GOOD.replace(b"\n", b"\r"),
        GOOD.replace(b",", b" , ").replace(b"\n", b" \n\n"),
        b"@relation pets\n@attribute a real [0, 1]\n@data\n" + GOOD,
        packed(),
        packed("folder/pets.dat"),
    ],
)
def test_spaces_line_ends_headers_and_zip_change_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a").write_bytes(content)
    x, y = read_delimited(tmp_path / "a", ENTRY)
    assert (x.dtype.name, y.dtype.name) == ("float32", "int64")
    assert x.tolist() == [[0.5, 1], [-2, 2.5], [30, 4]]  # the mean of 1 and 4 is filled in
    assert y.tolist() == [0, 1, 0]


def test_rows_without_labels_belong_to_classes_in_turn(tmp_path: Path) -> None:
    file = replace(ENTRY.file, sha256="", shape=(4, 2))
    entry = TableSet(file=file, classes=("up", "down"), source="", labelled=False)
    (tmp_path / "a").write_text("1 2\n3\t4\n 5  6\n7 8 \n")
    x, y = read_delimited(tmp_path / "a", entry)
    assert (x.tolist(), y.tolist()) == ([[1, 2], [3, 4], [5, 6], [7, 8]], [0, 0, 1, 1])
    assert (entry.features, entry.rows) == (2, (4, 0))


@pytest.mark.parametrize(("name", "content"), [("pets.zip", packed()), ("pets.dat", GOOD)])
def test_either_file_is_loaded(
    name: str, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(REGISTRY, "texture", ENTRY)
    (tmp_path / "uci").mkdir()
    (tmp_path / "uci" / name).write_bytes(content)
    data = load("texture", tmp_path)
    assert repr(data) == "Dataset('texture', 3 rows of shape (2,), 2 classes, no test rows)"
    assert (data.classes, data.test, data.source) == (("cat", "dog"), None, "Made on the spot.")


def test_an_unreadable_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_delimited(tmp_path, ENTRY)
    assert str(caught.value) == (
        f"{tmp_path}: the file cannot be read (Is a directory); check its permissions"
    )


@pytest.mark.parametrize("content", [packed(content=bytes(1 << 26))[:], b"1,2\n" * (1 << 24)])
def test_hostile_tables_take_no_memory(tmp_path: Path, content: bytes) -> None:
    file, entry = tmp_path / "a", replace(ENTRY, file=replace(ENTRY.file, most=1 << 17))
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="more than"):
            read_delimited(file, entry)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("good", [GOOD, packed()])
def test_broken_bytes_never_give_another_error(tmp_path: Path, good: bytes) -> None:
    """Cut a good file anywhere, or change a byte: it reads or it raises DataError."""
    file, rng, refused = tmp_path / "a", np.random.default_rng(0), 0
    entry = replace(PLAIN, missing=2)
    for turn in range(1000):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        file.write_bytes(bad)
        try:
            assert read_delimited(file, entry)[0].shape == (3, 2)
        except DataError:
            refused += 1
    assert refused >= 400
