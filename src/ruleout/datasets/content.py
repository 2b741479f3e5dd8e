"""The content of a file that may be packed, never more of it than is asked for."""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ruleout.datasets.errors import DataError

__all__ = ["Content", "check_sum", "located"]

_PIECE = 1 << 20  # bytes unpacked at a time, at most
_PACKED = 1 << 16  # bytes read at a time, where they are packed
_XZ_MEMORY = 1 << 27  # what xz may take for its dictionary
_GZIP, _XZ = b"\x1f\x8b", b"\xfd7"


class Content:
    """What a stream holds, unpacked if it starts as gzip or xz do.

    Examples
    --------
    >>> import gzip, io
    >>> content = Content(io.BytesIO(gzip.compress(b"what is packed")))
    >>> content.some(4)
    b'what'
    """

    def __init__(self, stream: IO[bytes]) -> None:
        self.start = stream.read(2)
        stream.seek(0)
        if not self.start:
            raise DataError("the file is empty")
        self._stream = stream
        self._engine: _Gzip | _Xz | None = None
        if self.start in (_GZIP, _XZ):
            self._engine = _Gzip() if self.start == _GZIP else _Xz()

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
            packed = self._stream.read(_PACKED) if self._engine.hungry else b""
            if self._engine.hungry and not packed:
                break
            data = self._engine.unpack(packed, most)
        return data

    def finish(self) -> None:
        """Raise unless what is packed ends here, and the file with it."""
        if self._engine is None:
            return
        if not self._engine.eof:
            raise DataError(f"the {self._engine.name} data stop before their checksum")
        if self._engine.rest or self._stream.read(1):
            raise DataError(f"bytes follow after the {self._engine.name} data")


class _Gzip:
    name = "gzip"

    def __init__(self) -> None:
        self._engine = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def hungry(self) -> bool:
        return not self._engine.unconsumed_tail

    @property
    def rest(self) -> bytes:
        return self._engine.unused_data

    def unpack(self, packed: bytes, most: int) -> bytes:
        try:
            return self._engine.decompress(self._engine.unconsumed_tail or packed, most)
        except zlib.error:
            raise DataError("the gzip data are damaged") from None


class _Xz:
    name = "xz"

    def __init__(self) -> None:
        self._engine = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)

    @property
    def eof(self) -> bool:
        return self._engine.eof

    @property
    def hungry(self) -> bool:
        return self._engine.needs_input

    @property
    def rest(self) -> bytes:
        return self._engine.unused_data

    def unpack(self, packed: bytes, most: int) -> bytes:
        try:
            return self._engine.decompress(packed, most)
        except lzma.LZMAError:
            raise DataError("the xz data are damaged, or want too much memory") from None


@contextmanager
def located(file: Path) -> Iterator[None]:
    """Put the name of the file into errors that lack it, and turn the system's into DataError.

    Examples
    --------
    >>> with located(Path("a.gz")):
    ...     raise DataError("the file is empty")
    Traceback (most recent call last):
    ruleout.datasets.errors.DataError: a.gz: the file is empty; delete it and load again
    """
    try:
        yield
    except DataError as error:
        error.file = error.file or file
        raise
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror})", "check its permissions", file=file
        ) from None


def check_sum(expected: str | None, *parts: bytes | bytearray | memoryview) -> None:
    """Raise unless the parts, one after the other, have this sha256; None checks nothing.

    >>> try:
    ...     check_sum("ab" * 32, b"another ", b"content")
    ... except DataError as error:
    ...     print(error.problem)
    the content has sha256 6292c8b17c54… instead of abababababab…
    """
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    if expected is not None and found.hexdigest() != expected:
        raise DataError(
            f"the content has sha256 {found.hexdigest()[:12]}… instead of {expected[:12]}…"
        )
