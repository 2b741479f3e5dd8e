"""idx, the format of MNIST: read piece by piece, checked before memory is taken.

A file is two zero bytes, a type, the number of dimensions, each size as a big-endian 32-bit
number, then the values. It may be packed with gzip.
"""

from __future__ import annotations

import hashlib
import math
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.errors import DataError

__all__ = ["check_labels", "read_idx"]

_PIECE = 1 << 20  # bytes read or unpacked at a time
_BYTE = 0x08  # the type code of uint8


def read_idx(file: Path, shape: tuple[int, ...], sha256: str | None = None) -> NDArray[np.uint8]:
    """Read an idx file of bytes whose sizes are known, packed with gzip or plain.

    Parameters
    ----------
    file
        What the file holds decides how it is read, not its name.
    shape
        The sizes its header must give; nothing beyond them is ever unpacked.
    sha256
        Of the content, header included; None checks nothing.

    Raises
    ------
    DataError
        Naming the file, for anything that is not exactly as described.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "labels-idx1-ubyte")
    ...     _ = file.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
    ...     read_idx(file, (3,))
    array([7, 2, 1], dtype=uint8)
    """
    try:
        with open(file, "rb") as stream:
            return _read(_Content(stream), shape, sha256)
    except DataError as error:
        error.file = file
        raise
    except OSError as error:
        raise DataError(
            f"the file cannot be read ({error.strerror})", "check its permissions", file=file
        ) from None


def check_labels(labels: NDArray[np.uint8], k: int, file: Path) -> None:
    """Raise unless every label is one of the k classes, naming the first row that is not."""
    wrong = labels >= k
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"label {labels[row]} is not one of 0 to {k - 1}", file=file, row=row)


class _Content:
    """The content of a file, unpacked if it is gzip, never more of it than is asked for."""

    def __init__(self, stream: IO[bytes]) -> None:
        start = stream.read(2)
        stream.seek(0)
        if not start:
            raise DataError("the file is empty")
        if start not in (b"\x1f\x8b", b"\0\0", b"\0"):
            raise DataError(f"the file starts with {start!r}: it is neither gzip nor idx")
        self._stream = stream
        self._engine = zlib.decompressobj(31) if start == b"\x1f\x8b" else None

    def fill(self, out: memoryview) -> int:
        """Fill `out` as far as the content reaches; return how far that is."""
        done = 0
        while done < len(out) and (piece := self._some(min(_PIECE, len(out) - done))):
            out[done : done + len(piece)] = piece
            done += len(piece)
        return done

    def finish(self) -> None:
        """Raise unless the content ends here, and the file with it."""
        if self._some(1):
            raise DataError("bytes follow after the last value")
        if self._engine is None:
            return
        if not self._engine.eof:
            raise DataError("the gzip data stop before their checksum")
        if self._engine.unused_data or self._stream.read(1):
            raise DataError("bytes follow after the gzip data")

    def _some(self, most: int) -> bytes:
        if self._engine is None:
            return self._stream.read(most)
        data = b""
        while not data and not self._engine.eof:
            packed = self._engine.unconsumed_tail or self._stream.read(_PIECE >> 4)
            if not packed:
                break
            try:
                data = self._engine.decompress(packed, most)
            except zlib.error:
                raise DataError("the gzip data are damaged") from None
        return data


def _read(content: _Content, shape: tuple[int, ...], sha256: str | None) -> NDArray[np.uint8]:
    header = bytearray(4 + 4 * len(shape))
    _check_start(header[: content.fill(memoryview(header)[:4])], len(shape))
    found = 4 + content.fill(memoryview(header)[4:])
    if found < len(header):
        raise DataError(f"the header stops after {found} of {len(header)} bytes")
    sizes = tuple(np.frombuffer(header, ">u4", offset=4).tolist())
    if sizes != shape:
        raise DataError(f"the header claims {_times(sizes)} values instead of {_times(shape)}")
    values = np.empty(math.prod(shape), np.uint8)
    found = content.fill(values.data)
    if found < len(values):
        raise DataError(f"the values stop after {found:,} of {len(values):,}")
    content.finish()
    _check_sum(header, values, sha256)
    return values.reshape(shape)


def _check_start(start: bytearray, dimensions: int) -> None:
    if len(start) < 4:
        raise DataError(f"the header stops after {len(start)} of {4 + 4 * dimensions} bytes")
    if start[:2] != b"\0\0":
        raise DataError(f"the content starts with 0x{start.hex()}: this is not idx")
    if start[2] != _BYTE:
        raise DataError(f"the values are of type 0x{start[2]:02x} instead of 0x08, bytes")
    if start[3] != dimensions:
        raise DataError(f"the header claims {start[3]} dimension(s) instead of {dimensions}")


def _check_sum(header: bytearray, values: NDArray[np.uint8], expected: str | None) -> None:
    if expected is None:
        return
    found = hashlib.sha256(header)
    found.update(values.data)
    if found.hexdigest() != expected:
        raise DataError(
            f"the content has sha256 {found.hexdigest()[:12]}… instead of {expected[:12]}…"
        )


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))
