"""Hostile idx files, each with the exact sentence a user reads."""

from __future__ import annotations

import gzip
import hashlib
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ruleout.datasets import DataError
from ruleout.datasets.data_formats import DataFile, read_idx

SHAPE = (6, 2, 2)
VALUES = bytes(range(24))


def header(*sizes: int, zeros: bytes = b"\0\0", kind: int = 8, rank: int | None = None) -> bytes:
    rank = len(sizes) if rank is None else rank
    return zeros + bytes([kind, rank]) + struct.pack(f">{len(sizes)}I", *sizes)


def known(content: bytes, shape: tuple[int, ...]) -> DataFile:
    return DataFile("", "", hashlib.sha256(content).hexdigest(), "", 1 << 16, shape)


GOOD = header(*SHAPE) + VALUES
ENTRY = known(GOOD, SHAPE)
PACKED = gzip.compress(GOOD)
BOMB = gzip.compress(GOOD + bytes(1 << 23), 1)
WRONG_SUM = PACKED[:-8] + bytes(4) + PACKED[-4:]


def sums(content: bytes) -> str:
    """Return what is said of another content; no more of it is read than can be needed."""
    found = hashlib.sha256(content[: len(GOOD) + 1]).hexdigest()
    return f"the content has sha256 {found[:12]}… instead of {ENTRY.sha256[:12]}…"


CONTENTS = {
    "one byte": b"\0",
    "magic cut": GOOD[:3],
    "sizes cut": GOOD[:13],
    "nothing": b"",
    "web page": b"<!DOCTYPE html>",
    "zip": b"PK\3\4",
    "pickle": b"\x80\4.",
    "magic": header(*SHAPE, zeros=b"\0\1") + VALUES,
    "gzip": gzip.compress(GOOD, mtime=0),
    "floats": header(*SHAPE, kind=0x0D) + VALUES * 4,
    "type zero": bytes(40),
    "labels": header(6) + VALUES,
    "rank 255": header(*SHAPE, rank=255) + VALUES,
    "other sizes": header(6, 4, 1) + VALUES,
    "lying sizes": header(*[2**32 - 1] * 3) + VALUES,
    "size zero": header(0, 2, 2),
    "values cut": GOOD[:-1],
    "no values": GOOD[:16],
    "a byte more": GOOD + b"\0",
}

TABLE = [
    *((f"{name}, packed", gzip.compress(one), sums(one)) for name, one in CONTENTS.items()),
    *((n, one, sums(one)) for n, one in CONTENTS.items() if n not in ("nothing", "gzip")),
    ("empty", b"", "the file is empty"),
    ("gzip start only", PACKED[:5], sums(b"")),
    ("gzip checksum cut", PACKED[:-3], "the gzip data stop before their checksum"),
    ("gzip checksum wrong", WRONG_SUM, "the gzip data are damaged"),
    ("gzip nonsense", b"\x1f\x8b" + b"nonsense" * 9, "the gzip data are damaged"),
    ("bytes after gzip", PACKED + b"PK", "bytes follow after the gzip data"),
    ("second member", PACKED + PACKED, "bytes follow after the gzip data"),
    ("bomb", BOMB, sums(GOOD + b"\0")),
]


@pytest.mark.parametrize(
    ("content", "problem"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_hostile_file_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_idx(file, ENTRY)
    assert str(caught.value) == f"{file}: {problem}; delete it and load again"


@pytest.mark.parametrize(
    "content", [GOOD, PACKED, gzip.compress(GOOD, 0)], ids=["plain", "packed", "stored"]
)
def test_content_and_not_the_name_says_how_to_read(tmp_path: Path, content: bytes) -> None:
    for name in ("a.gz", "a"):
        (tmp_path / name).write_bytes(content)
        values = read_idx(tmp_path / name, ENTRY)
        assert values.dtype == np.uint8
        assert np.array_equal(values, np.arange(24).reshape(SHAPE))


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_idx(tmp_path, ENTRY)
    assert str(caught.value) == (
        f"{tmp_path}: the file cannot be read (Is a directory); check its permissions"
    )


@pytest.mark.parametrize(
    "content",
    [BOMB, header(*[2**32 - 1] * 3), gzip.compress(bytes(1 << 23), 1)],
    ids=["bomb", "claims", "zeros"],
)
def test_hostile_files_take_no_memory(tmp_path: Path, content: bytes) -> None:
    """8 MiB of zeros, or a claim of 2^96 values: less than one MiB is ever held."""
    file = tmp_path / "a.gz"
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            read_idx(file, ENTRY)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("good", [GOOD, PACKED], ids=["plain", "packed"])
def test_broken_bytes_never_give_another_error(tmp_path: Path, good: bytes) -> None:
    """Cut a good file anywhere, or change a byte: it reads or it raises DataError."""
    file, rng, refused = tmp_path / "a", np.random.default_rng(0), 0
    for turn in range(400):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        file.write_bytes(bad)
        try:
            assert read_idx(file, ENTRY).shape == SHAPE
        except DataError:
            refused += 1
    assert refused >= 200  # every cut, at least


def test_pieces_join(tmp_path: Path) -> None:
    """A file of many pieces, hard and easy to pack, comes back whole."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 256, (3, 1000, 1000), np.uint8)
    values[1] = 0
    content = header(*values.shape) + values.tobytes()
    for packed in (content, gzip.compress(content, 1)):
        (tmp_path / "a").write_bytes(packed)
        assert np.array_equal(read_idx(tmp_path / "a", known(content, values.shape)), values)
