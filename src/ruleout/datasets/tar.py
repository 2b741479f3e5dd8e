"""tar archives, packed or plain: read as a stream within limits, never written to the disk.

A member is a header of 512 bytes with its name, size, kind and a checksum, then its content, filled
up to a multiple of 512; a header of zeros is the end. Links, devices, sparse files, names of more
than 255 letters and the like have no place in data sets and are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ruleout.datasets.content import Content, located
from ruleout.datasets.errors import DataError
from ruleout.labels.errors import brief

__all__ = ["Limits", "read_tar"]

_BLOCK = 512
_KINDS = {
    b"0": "file",
    b"\0": "file",
    b"1": "a hard link",
    b"2": "a link",
    b"3": "a device",
    b"4": "a device",
    b"5": "folder",
    b"6": "a pipe",
    b"x": "notes",  # dates and owners
    b"g": "notes",
}


@dataclass(frozen=True)
class Limits:
    """What an archive may hold at most: members, bytes in one of them, bytes in all."""

    members: int
    member: int
    total: int


def read_tar(
    file: Path, limits: Limits, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, bytes]]:
    """Read the files in an archive one by one, as their names and contents.

    Parameters
    ----------
    file
        What the file holds decides how it is read, not its name: tar, or tar packed with gzip
        or xz.
    limits
        Beyond them nothing is unpacked.
    wanted
        Says by its name whether a file is read; others are passed over.

    Raises
    ------
    DataError
        Naming the file and the member, for anything that is not as it should be.

    Examples
    --------
    >>> import tarfile, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text, archive = Path(folder, "a.txt"), Path(folder, "a.tar.gz")
    ...     _ = text.write_text("What it holds.")
    ...     with tarfile.open(archive, "w:gz") as out:
    ...         out.add(text, "texts/a.txt")
    ...     list(read_tar(archive, Limits(members=10, member=1000, total=20_000)))
    [('texts/a.txt', b'What it holds.')]
    """
    with located(file), open(file, "rb") as stream:
        tape, seen = _Tape(Content(stream), limits.total), set[str]()
        for member in _members(tape, limits):
            if member.name in seen:
                raise DataError(f"the archive has two members {brief(member.name)}")
            seen.add(member.name)
            take = member.kind == "file" and wanted(member.name)
            content = tape.content(member, keep=take)
            if take:
                yield member.name, bytes(content)


@dataclass(frozen=True)
class _Member:
    name: str
    size: int
    kind: str


def _members(tape: _Tape, limits: Limits) -> Iterator[_Member]:
    """Give files and folders; a reader takes the content of each."""
    for count, header in enumerate(tape.headers()):
        if count == limits.members:
            raise DataError(f"the archive has more than {limits.members:,} members")
        member = _member(header, limits.member)
        if member.kind != "notes":
            yield member
            continue
        notes = tape.content(member)
        if b" path=" in notes or b" size=" in notes:
            raise DataError("the archive has a name or size too long for its form")


def _member(header: bytes, most: int) -> _Member:
    """Read a header; `most` limits the size."""
    name, size = _name(header), _number(header[124:136])
    kind = _KINDS.get(header[156:157], "of an unknown kind")
    if kind == "file" and name.endswith("/"):
        kind = "folder"  # as they were written before there were kinds
    if kind not in ("file", "folder", "notes"):
        raise DataError(f"member {brief(name)} is {kind}, not a file")
    if kind == "file" and not name:
        raise DataError("a member has no name")
    most = 0 if kind == "folder" else most
    if size is None or size > most:
        found = "no number" if size is None else f"{size:,}"
        raise DataError(f"member {brief(name)} has a size of {found} instead of at most {most:,}")
    return _Member(name.rstrip("/"), size, kind)


def _name(header: bytes) -> str:
    """Return the name of a member, which must lie inside the archive."""
    parts = [header[:100]]
    if header[257:263] == b"ustar\0":  # GNU's form keeps other things there
        parts.insert(0, header[345:500])
    texts = [part.split(b"\0")[0].decode("latin-1") for part in parts]
    name = "/".join(text for text in texts if text)
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        raise DataError(f"member {brief(name)} lies outside the archive")
    return name.removeprefix("./")


def _number(field: bytes) -> int | None:
    """Read an octal number; None for anything else."""
    digits = field.strip(b" \0")
    return int(digits or b"0", 8) if set(digits) <= set(b"01234567") else None


class _Tape:
    """Blocks one after the other, of no more than `left` bytes."""

    def __init__(self, content: Content, left: int) -> None:
        self._content, self._left = content, left

    def headers(self) -> Iterator[bytes]:
        """Give the headers up to the end; a reader takes the content after each."""
        first = True
        while any(header := bytes(self._take(_BLOCK, "a header"))):
            unsigned = sum(header) - sum(header[148:156]) + 8 * ord(" ")
            if _number(header[148:156]) != unsigned:
                what = "this is not a tar archive" if first else "a header is damaged"
                raise DataError(what)
            first = False
            yield header
        while self._some(1 << 16):
            pass  # zeros, or nothing of interest
        self._content.finish()

    def content(self, member: _Member, *, keep: bool = True) -> bytearray:
        """Return the content of the member whose header was given last, or pass over it."""
        where = f"member {brief(member.name)}"
        data = self._take(member.size, where, keep=keep)
        self._take(-member.size % _BLOCK, where, keep=False)
        return data

    def _take(self, size: int, where: str, *, keep: bool = True) -> bytearray:
        """Take so many bytes: memory grows with what is there, not with what is claimed."""
        data, left = bytearray(), size
        while left:
            piece = self._some(left)
            if not piece:
                raise DataError(f"the archive stops inside {where}")
            left -= len(piece)
            if keep:
                data += piece
        return data

    def _some(self, most: int) -> bytes:
        piece = self._content.some(most)
        self._left -= len(piece)
        if self._left < 0:
            raise DataError("the archive unpacks to more bytes than it can need")
        return piece
