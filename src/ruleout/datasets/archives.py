"""Files that may be packed, and tar archives: read as a stream within limits.

Nothing is written to the disk, and memory grows with what is there, never with what a header
claims.
"""

import hashlib
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from ruleout.datasets.dataset import DataError, reporting
from ruleout.labels.errors import brief

_PIECE = 1 << 20  # bytes unpacked at a time, at most
_PACKED = 1 << 16  # bytes read at a time, where they are packed
_XZ_MEMORY = 1 << 27  # what xz may take for its dictionary


def check_sum(expected: str | None, *parts: bytes | bytearray | memoryview) -> None:
    """Raise unless the parts, one after the other, have this sha256; None checks nothing."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    if expected is not None and found.hexdigest() != expected:
        raise DataError(
            f"the content has sha256 {found.hexdigest()[:12]}… instead of {expected[:12]}…"
        )


class _Gzip:
    """zlib's decompressor with the face of lzma's."""

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(31)

    eof = property(lambda self: self._engine.eof)
    needs_input = property(lambda self: not self._engine.unconsumed_tail)
    unused_data = property(lambda self: self._engine.unused_data)

    def decompress(self, packed: bytes, most: int) -> bytes:
        return self._engine.decompress(self._engine.unconsumed_tail or packed, most)


class Content:
    """What a stream holds, unpacked if it starts as gzip or xz do."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.start = stream.read(2)
        stream.seek(0)
        if not self.start:
            raise DataError("the file is empty")
        self._stream = stream
        self._engine: Any = None
        if self.start == b"\x1f\x8b":
            self._engine = _Gzip()
        elif self.start == b"\xfd7":
            self._engine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    def fill(self, out: memoryview) -> int:
        """Fill `out` as far as the content reaches; return how far that is."""
        done = 0
        while done < len(out) and (piece := self.some(len(out) - done)):
            out[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def some(self, most: int) -> bytes:
        """Return the next bytes: one at least, `most` at most; none where the content ends."""
        most = min(most, _PIECE)
        if self._engine is None:
            return self._stream.read(most)
        data = b""
        while not data and not self._engine.eof:
            packed = self._stream.read(_PACKED) if self._engine.needs_input else b""
            if self._engine.needs_input and not packed:
                break
            try:
                data = self._engine.decompress(packed, most)
            except zlib.error:
                raise DataError("the gzip data are damaged") from None
            except lzma.LZMAError:
                raise DataError("the xz data are damaged, or want too much memory") from None
        return data

    def finish(self) -> None:
        """Raise unless what is packed ends here, and the file with it."""
        if self._engine is None:
            return
        name = "gzip" if isinstance(self._engine, _Gzip) else "xz"
        if not self._engine.eof:
            raise DataError(f"the {name} data stop before their checksum")
        if self._engine.unused_data or self._stream.read(1):
            raise DataError(f"bytes follow after the {name} data")


_NOTES = (tarfile.XHDTYPE, tarfile.XGLTYPE)  # dates and owners
_REFUSED = {
    tarfile.LNKTYPE: "a hard link",
    tarfile.SYMTYPE: "a link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}


class Limits(NamedTuple):
    """What an archive may hold at most: members, bytes in one of them, bytes in all."""

    members: int
    member: int
    total: int


def read_tar(
    file: Path, limits: Limits, wanted: Callable[[str], bool] = lambda _: True
) -> Iterator[tuple[str, bytes]]:
    """Read the wanted files in an archive, plain or packed, as their names and contents.

    Links, devices, sparse files and long names have no place in data sets and are refused; so is
    an archive that stops before its end, which :mod:`tarfile` would not notice. Beyond the limits
    nothing is unpacked.
    """
    with reporting(file), open(file, "rb") as stream:
        tape, seen = _Tape(Content(stream), limits.total), set[str]()
        for count, member in enumerate(tape.members(limits.member)):
            if count == limits.members:
                raise DataError(f"the archive has more than {limits.members:,} members")
            if member.type in _NOTES:
                notes = tape.content(member)
                if b" path=" in notes or b" size=" in notes:
                    raise DataError("the archive has a name or size too long for its form")
                continue
            if member.name in seen:
                raise DataError(f"the archive has two members {brief(member.name)}")
            seen.add(member.name)
            take = member.isreg() and wanted(member.name)
            content = tape.content(member, keep=take)
            if take:
                yield member.name, bytes(content)


class _Tape:
    """Blocks of 512 bytes one after the other, of no more than `left` bytes."""

    def __init__(self, content: Content, left: int) -> None:
        self._content, self._left = content, left

    def members(self, most: int) -> Iterator[tarfile.TarInfo]:
        """Give what the headers say up to the end; a reader takes the content after each."""
        problem = "this is not a tar archive"
        while any(header := bytes(self._take(tarfile.BLOCKSIZE, "a header"))):
            try:
                member = tarfile.TarInfo.frombuf(header, "latin-1", "strict")
            except tarfile.HeaderError:
                raise DataError(problem) from None
            problem = "a header is damaged"
            yield _checked(member, most)
        while self._some(1 << 16):
            pass  # zeros, or nothing of interest
        self._content.finish()

    def content(self, member: tarfile.TarInfo, *, keep: bool = True) -> bytearray:
        """Return the content of the member whose header was given last, or pass over it."""
        where = f"member {brief(member.name)}"
        data = self._take(member.size, where, keep=keep)
        self._take(-member.size % tarfile.BLOCKSIZE, where, keep=False)
        return data

    def _take(self, size: int, where: str, *, keep: bool = True) -> bytearray:
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


def _checked(member: tarfile.TarInfo, most: int) -> tarfile.TarInfo:
    """Return a member that may be read: a file, a folder or notes, inside the archive."""
    name = member.name
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        raise DataError(f"member {brief(name)} lies outside the archive")
    member.name = name.removeprefix("./")
    if not (member.isdir() or member.type in (*_NOTES, tarfile.REGTYPE, tarfile.AREGTYPE)):
        kind = _REFUSED.get(member.type, "of an unknown kind")
        raise DataError(f"member {brief(member.name)} is {kind}, not a file")
    if member.isreg() and not name:
        raise DataError("a member has no name")
    most = 0 if member.isdir() else most
    if not 0 <= member.size <= most:
        raise DataError(
            f"member {brief(member.name)} has a size of {member.size:,} instead of at most {most:,}"
        )
    return member
