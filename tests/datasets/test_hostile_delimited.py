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


AGAIN = "; delete it and load again"

#: What has other cells: no more is said than that, since the remedy is the same.
CHANGED = {
    "empty": b"",
    "blank": b"\n \r\n",
    "web page": b"<html>\n<p>",
    "header only": b"@relation pets\n@data\n",
    "row missing": GOOD[:20],
    "row more": GOOD + b"d,1,1,dog\n",
    "cut": GOOD[:-5],
    "cell more": changed(b"-2", b"-2,7"),
    "spaces": GOOD.replace(b",", b" "),
    "not text": changed(b"-2", b"-\xb2"),
    "UTF-16": GOOD.decode().encode("utf-16"),
    "NUL": changed(b"-2", b"\0"),
    "word": changed(b"-2", b"two"),
    "hole": changed(b"-2", b""),
    "missing elsewhere": changed(b"-2", b"?"),
    "underscore": changed(b"3e1", b"3_0"),
    "class": changed(b"dog", b"cow"),
    "value": changed(b"0.5", b"0.6"),
    "zip in zip": packed(content=b"PK\3\4"),
}


@pytest.mark.parametrize("content", CHANGED.values(), ids=CHANGED.keys())
def test_other_cells_have_another_sum(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "a.data"
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_delimited(file, ENTRY)
    said = str(caught.value)
    assert said.startswith(f"{file}: the content has sha256 ")
    assert said.endswith(f"… instead of {ENTRY.file.sha256[:12]}…{AGAIN}")


def test_commas_do_not_pass_for_spaces(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(GOOD)
    with pytest.raises(DataError, match="separated by commas, not by spaces"):
        read_delimited(tmp_path / "a", replace(ENTRY, comma=False))


TABLE = [
    ("too long", GOOD + b" " * 2000, ": the file has more than 2,000 bytes"),
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
        ": the file has more than 2,000 bytes",
    ),
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
    for turn in range(1000):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        file.write_bytes(bad)
        try:
            assert read_delimited(file, ENTRY)[0].shape == (3, 2)
        except DataError:
            refused += 1
    assert refused >= 400
