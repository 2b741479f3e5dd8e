"""Hostile archives, each with the exact sentence a user reads."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from ruleout.datasets import DataError
from ruleout.datasets.data_formats import Limits, read_tar

LIMITS = Limits(members=4, member=2000, total=1 << 14)
END = bytes(1024)


def header(name: str, size: int | bytes = 0, kind: bytes = b"0", link: str = "") -> bytes:
    """Return a header in ustar's form; `size` may be any bytes."""
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    start = name.encode().ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + field
    middle = kind + link.encode().ljust(100, b"\0") + b"ustar\x0000"
    whole = start + b"00000000000\0" + b" " * 8 + middle.ljust(100 + 256, b"\0")
    whole = whole.ljust(512, b"\0")
    return whole[:148] + b"%06o\0 " % sum(whole) + whole[156:]


def member(name: str, content: bytes = b"text", kind: bytes = b"0") -> bytes:
    return header(name, len(content), kind) + content + bytes(-len(content) % 512)


GOOD = member("a/b") + member("a/c", b"x" * 600) + END
BOMB = member("a") + END + bytes(1 << 23)
GZIP_BOMB, XZ_BOMB = gzip.compress(BOMB, 1), lzma.compress(BOMB, preset=0)
XZ_DICTIONARY = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]

TABLE = [
    ("empty", b"", "the file is empty"),
    ("short", b"<html>", "the archive stops inside a header"),
    ("web page", b"<!DOCTYPE html>" * 99, "this is not a tar archive"),
    ("zip", b"PK\3\4" + bytes(600), "this is not a tar archive"),
    ("bzip2", bz2.compress(np.random.default_rng(0).bytes(999)), "this is not a tar archive"),
    ("sum", GOOD[:148] + b"0000000\0" + GOOD[156:], "this is not a tar archive"),
    ("sum no number", GOOD[:148] + b"abcdefg\0" + GOOD[156:], "this is not a tar archive"),
    ("second header", GOOD[:1024] + b"A" + GOOD[1025:], "a header is damaged"),
    ("header cut", GOOD[:1300], "the archive stops inside a header"),
    ("content cut", GOOD[:514], "the archive stops inside member 'a/b'"),
    ("padding cut", GOOD[:520], "the archive stops inside member 'a/b'"),
    ("end cut", GOOD[:-1024], "the archive stops inside a header"),
    ("gzip cut", gzip.compress(GOOD)[:-20], "the archive stops inside a header"),
    (
        "gzip checksum cut",
        gzip.compress(GOOD, mtime=0)[:-3],
        "the gzip data stop before their checksum",
    ),
    ("gzip nonsense", b"\x1f\x8b" + b"nonsense" * 9, "the gzip data are damaged"),
    ("after gzip", gzip.compress(GOOD) + b"PK", "bytes follow after the gzip data"),
    ("xz cut", lzma.compress(GOOD)[:-2], "the xz data stop before their checksum"),
    ("after xz", lzma.compress(GOOD) + b"PK", "bytes follow after the xz data"),
    ("xz nonsense", b"\xfd7" + b"zXZ" * 99, "the xz data are damaged, or want too much memory"),
    (
        "xz dictionary",
        lzma.compress(GOOD, filters=XZ_DICTIONARY),
        "the xz data are damaged, or want too much memory",
    ),
    ("packed twice", gzip.compress(gzip.compress(GOOD)), "the archive stops inside a header"),
    (
        "link",
        header("a", kind=b"2", link="/etc/passwd"),
        "member 'a' is neither a file nor a folder",
    ),
    ("hard link", header("a", kind=b"1", link="b"), "member 'a' is neither a file nor a folder"),
    ("character device", header("a", kind=b"3"), "member 'a' is neither a file nor a folder"),
    ("block device", header("a", kind=b"4"), "member 'a' is neither a file nor a folder"),
    ("pipe", header("a", kind=b"6"), "member 'a' is neither a file nor a folder"),
    ("sparse", header("a", 9, kind=b"S"), "member 'a' is neither a file nor a folder"),
    (
        "long name",
        member("././@LongLink", b"a" * 200, b"L"),
        "member './@LongLink' is neither a file nor a folder",
    ),
    ("absolute", member("/etc/passwd"), "member '/etc/passwd' lies outside the archive"),
    ("up", member("a/../../b"), "member 'a/../../b' lies outside the archive"),
    ("up alone", member(".."), "member '..' lies outside the archive"),
    ("backslash", member("a\\..\\b"), r"member 'a\\..\\b' lies outside the archive"),
    ("no name", member(""), "a member has no name"),
    (
        "notes that rename",
        member("a", b"21 path=../etc/passwd\n", b"x") + member("a") + END,
        "the archive has a name or size too long for its form",
    ),
    (
        "notes that resize",
        member("a", b"17 size=99999999\n", b"x") + member("a") + END,
        "the archive has a name or size too long for its form",
    ),
    (
        "huge",
        header("a", 8**11 - 1),
        "member 'a' has a size of 8,589,934,591 instead of at most 2,000",
    ),
    (
        "huge in binary",
        header("a", b"\x80" + b"\xff" * 11),
        "member 'a' has a size of 309,485,009,821,345,068,724,781,055 instead of at most 2,000",
    ),
    (
        "negative size",
        header("a", b"-0000000001\0"),
        "member 'a' has a size of -1 instead of at most 2,000",
    ),
    (
        "huge notes",
        header("a", 1 << 30, b"x"),
        "member 'a' has a size of 1,073,741,824 instead of at most 2,000",
    ),
    (
        "folder with content",
        member("a/", kind=b"5"),
        "member 'a' has a size of 4 instead of at most 0",
    ),
    ("two", member("a") + member("b") + member("a") + END, "the archive has two members 'a'"),
    ("two spellings", member("a") + member("./a") + END, "the archive has two members 'a'"),
    (
        "file and folder",
        member("a") + header("a/", 0, b"5") + END,
        "the archive has two members 'a'",
    ),
    (
        "too many",
        b"".join(member(str(count)) for count in range(5)) + END,
        "the archive has more than 4 members",
    ),
    (
        "too many notes",
        member("a", kind=b"g") * 5 + END,
        "the archive has more than 4 members",
    ),
    ("too long", BOMB, "the archive unpacks to more bytes than it can need"),
    ("gzip bomb", GZIP_BOMB, "the archive unpacks to more bytes than it can need"),
    ("xz bomb", XZ_BOMB, "the archive unpacks to more bytes than it can need"),
]


@pytest.mark.parametrize(
    ("content", "problem"), [case[1:] for case in TABLE], ids=[case[0] for case in TABLE]
)
def test_hostile_archive_is_named(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "a.tar.gz"
    file.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(read_tar(file, LIMITS))
    assert str(caught.value) == f"{file}: {problem}; delete it and load again"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_archives_of_other_programs(tmp_path: Path, form: int, pack: type[bytes]) -> None:
    """Folders, dates with fractions (which pax writes as notes) and long paths are no trouble."""
    out, long = io.BytesIO(), f"{'f' * 60}/{'g' * 60}" if form == tarfile.USTAR_FORMAT else "f/g"
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, content in {"a": None, "./a/b": b"text", long: b""}.items():
            info = tarfile.TarInfo(name)
            info.mtime = 1.5 if form == tarfile.PAX_FORMAT else 1
            info.type = tarfile.REGTYPE if content is not None else tarfile.DIRTYPE
            info.size = len(content or b"")
            archive.addfile(info, io.BytesIO(content or b""))
    (tmp_path / "a").write_bytes(pack(out.getvalue()))
    found = list(read_tar(tmp_path / "a", Limits(10, 2000, 1 << 15)))
    assert found == [("a/b", b"text"), (long, b"")]


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(GOOD)
    assert list(read_tar(tmp_path / "a", LIMITS, "a/c".__eq__)) == [("a/c", b"x" * 600)]


def test_an_unreadable_archive_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        list(read_tar(tmp_path, LIMITS))
    assert str(caught.value) == (
        f"{tmp_path}: the file cannot be read (Is a directory); check its permissions"
    )


@pytest.mark.parametrize(
    "content",
    [
        GZIP_BOMB,
        XZ_BOMB,
        header("a", 8**11 - 1),
        gzip.compress(header("a", 1 << 30) + bytes(1 << 23), 1),
        gzip.compress(header("a", 1 << 30, b"x") + bytes(1 << 23), 1),
        lzma.compress(GOOD, filters=XZ_DICTIONARY),
    ],
)
def test_hostile_archives_take_no_memory(tmp_path: Path, content: bytes) -> None:
    """8 MiB of zeros, or a claim of gigabytes: less than one MiB is ever held."""
    file = tmp_path / "a"
    file.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(DataError):
            list(read_tar(file, LIMITS))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_memory_grows_with_what_is_there_not_with_what_is_claimed(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(header("a", 1 << 30) + bytes(999))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match="stops inside member 'a'"):
            list(read_tar(file, Limits(4, 1 << 30, 1 << 31)))
        assert tracemalloc.get_traced_memory()[1] < 1 << 21
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("good", [GOOD, gzip.compress(GOOD), lzma.compress(GOOD)])
def test_broken_bytes_never_give_another_error(tmp_path: Path, good: bytes) -> None:
    """Cut a good archive anywhere, or change a byte: it reads or it raises DataError."""
    file, rng, refused = tmp_path / "a", np.random.default_rng(0), 0
    for turn in range(400):
        bad = bytearray(good)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        file.write_bytes(bad)
        try:
            assert len(list(read_tar(file, LIMITS))) <= 2
        except DataError:
            refused += 1
    assert refused >= 100
