"""A data set of the idx family small enough to be made on the spot."""

from __future__ import annotations

import gzip
import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ruleout.datasets.registry import IDX, DataFile, IdxSet

PIXELS = np.arange(24, dtype=np.uint8).reshape(6, 2, 2) * 11  # up to 253
LABELS = np.array([3, 1, 4, 1, 5, 9], np.uint8)


@dataclass(frozen=True)
class Tiny:
    """What stands in for MNIST: its registry entry, and the bytes of its files."""

    entry: IdxSet
    files: dict[str, bytes]

    def put(self, root: Path) -> Path:
        """Write the files under `root`, as prime does; return their folder."""
        folder = root / "mnist"
        folder.mkdir(parents=True)
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        return folder


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Tiny:
    """Put a small data set in the place of MNIST."""
    parts, files = [], {}
    for name, values in {
        "train-images-idx3-ubyte.gz": PIXELS,
        "train-labels-idx1-ubyte.gz": LABELS,
        "t10k-images-idx3-ubyte.gz": PIXELS[::-1],
        "t10k-labels-idx1-ubyte.gz": LABELS[::-1],
    }.items():
        sizes = struct.pack(f">{values.ndim}I", *values.shape)
        content = bytes([0, 0, 8, values.ndim]) + sizes + values.tobytes()
        files[name] = gzip.compress(content)
        sha256 = hashlib.sha256(content).hexdigest()
        parts.append(DataFile("mnist", name, sha256, f"https://example.org/{name}", values.shape))
    first, second, third, fourth = parts
    entry = IdxSet(first, second, third, fourth, tuple(range(10)), "Made on the spot.")
    monkeypatch.setitem(IDX, "mnist", entry)
    return Tiny(entry, files)
