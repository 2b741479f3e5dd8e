"""idx, the format of MNIST: read piece by piece, checked before memory is taken.

A file is two zero bytes, a type, the number of dimensions, each size as a big-endian 32-bit
number, then the values. It may be packed with gzip.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.content import Content, check_sum, located
from ruleout.datasets.errors import DataError

__all__ = ["check_labels", "read_idx"]

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
    with located(file), open(file, "rb") as stream:
        content = Content(stream)
        if content.start not in (b"\x1f\x8b", b"\0\0", b"\0"):
            raise DataError(f"the file starts with {content.start!r}: it is neither gzip nor idx")
        return _read(content, shape, sha256)


def check_labels(labels: NDArray[np.uint8], k: int, file: Path | None = None) -> None:
    """Raise unless every label is one of the k classes, naming the first row that is not."""
    wrong = labels >= k
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"label {labels[row]} is not one of 0 to {k - 1}", file=file, row=row)


def _read(content: Content, shape: tuple[int, ...], sha256: str | None) -> NDArray[np.uint8]:
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
    if content.some(1):
        raise DataError("bytes follow after the last value")
    content.finish()
    check_sum(sha256, header, values.data)
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


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))
