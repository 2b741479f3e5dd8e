"""Data sets small enough to be made on the spot, and a server that stands in for the network."""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import IO

import numpy as np
import pytest

from ruleout.datasets.data_formats import CifarSet, DataFile, IdxSet, NewsSet
from ruleout.datasets.registry import REGISTRY

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
        url, plain = f"https://example.org/{name}", (name.removesuffix(".gz"),)
        parts.append(DataFile("mnist", name, sha256, url, 1 << 16, values.shape, plain))
    kinds = ("train_images", "train_labels", "test_images", "test_labels")
    named = dict(zip(kinds, parts, strict=True))
    entry = IdxSet(**named, classes=tuple(range(10)), source="Made on the spot.")
    monkeypatch.setitem(REGISTRY, "mnist", entry)
    return Tiny(entry, files)


def tar(files: dict[str, bytes]) -> bytes:
    """Return a tar archive of these files."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return out.getvalue()


@dataclass(frozen=True)
class TinyCifar:
    """What stands in for CIFAR-10: two records of 2 × 2 pixels per batch."""

    entry: CifarSet
    batches: dict[str, bytes]
    archive: bytes


@pytest.fixture
def cifar(monkeypatch: pytest.MonkeyPatch) -> TinyCifar:
    """Put a small data set in the place of CIFAR-10."""
    real, rng = REGISTRY["cifar10"], np.random.default_rng(0)
    assert isinstance(real, CifarSet)
    batches, entries = {}, []
    for batch in real.batches:
        records = rng.integers(0, 256, (2, 13), np.uint8)
        records[:, 0] %= 10
        batches[batch.name] = records.tobytes()
        sha256 = hashlib.sha256(records.tobytes()).hexdigest()
        entries.append(replace(batch, sha256=sha256, shape=(2, 13)))
    archive = replace(real.file, url="https://example.org/cifar-10-binary.tar.gz")
    entry = replace(real, file=archive, batches=tuple(entries))
    monkeypatch.setitem(REGISTRY, "cifar10", entry)
    inside = {f"{real.inside}/{name}": content for name, content in batches.items()}
    packed = gzip.compress(tar({f"{real.inside}/readme.html": b"<html>", **inside}))
    return TinyCifar(entry, batches, packed)


@dataclass(frozen=True)
class TinyNews:
    """What stands in for 20 newsgroups: its registry entry and its documents by path."""

    entry: NewsSet
    documents: dict[str, bytes]

    def put(self, root: Path, documents: dict[str, bytes] | None = None) -> Path:
        """Write an archive of these documents, else its own; return it."""
        file = root / "20newsgroups" / "20news-bydate.tar.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        content = tar(self.documents if documents is None else documents)
        file.write_bytes(gzip.compress(content))
        return file


@pytest.fixture
def news(monkeypatch: pytest.MonkeyPatch) -> TinyNews:
    """Put six documents in two classes and two dimensions in the place of 20 newsgroups."""
    real = REGISTRY["20newsgroups"]
    assert isinstance(real, NewsSet)
    texts = {
        "late/cats/10": b"From: a\n\nthe cat sat on the mat",
        "late/dogs/9": b"From: b\n\nthe dog ran to the park",
        "early/dogs/2": b"a dog and a dog in the park \xe9",
        "early/cats/1": b"a cat and a mat",
        "early/cats/11": b"a cat on the mat",
        "early/dogs/12": b"a dog ran",
    }
    entry = replace(
        real,
        file=replace(real.file, url="https://example.org/20news-bydate.tar.gz"),
        parts={"early": 4, "late": 2},
        dimensions=2,
        classes=("cats", "dogs"),
    )
    monkeypatch.setitem(REGISTRY, "20newsgroups", entry)
    return TinyNews(entry, texts)


class Server:
    """Stands in for pooch: what it serves, and what was asked of it."""

    def __init__(self, answer: Callable[[str], bytes]) -> None:
        self.answer = answer
        self.asked: list[str] = []

    def HTTPDownloader(self, progressbar: bool) -> Callable[[str, IO[bytes], None], None]:
        """Return a downloader with the signature of pooch's, that writes in small chunks."""
        assert isinstance(progressbar, bool)

        def download(url: str, output_file: IO[bytes], pooch: None) -> None:
            assert pooch is None
            self.asked.append(url)
            content = self.answer(url.rsplit("/", 1)[1])
            for start in range(0, len(content), 1024):
                output_file.write(content[start : start + 1024])
                output_file.flush()

        return download


Serve = Callable[[Callable[[str], bytes]], Server]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    def start(answer: Callable[[str], bytes]) -> Server:
        server = Server(answer)
        fake = SimpleNamespace(HTTPDownloader=server.HTTPDownloader)
        monkeypatch.setitem(sys.modules, "pooch", fake)
        return server

    return start
