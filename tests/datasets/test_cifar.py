"""CIFAR-10: from six files or from their archive, normalised as in the paper."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from ruleout.datasets import DataError, load
from ruleout.datasets.data_formats import read_batch
from ruleout.datasets.registry import REGISTRY

if TYPE_CHECKING:
    from datasets.conftest import Serve, TinyCifar

ARCHIVE = "cifar-10-binary.tar.gz"


def put(root: Path, files: dict[str, bytes]) -> Path:
    folder = root / "cifar10"
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def test_planes_are_normalised_per_channel(cifar: TinyCifar, tmp_path: Path) -> None:
    put(tmp_path, cifar.batches)
    data = load("cifar10", tmp_path)
    assert repr(data) == "Dataset('cifar10', 10 rows of shape (3, 2, 2), 10 classes, 2 test rows)"
    assert data.test is not None
    raw = np.frombuffer(b"".join(cifar.batches.values()), np.uint8).reshape(12, 13)
    mean, std = np.array([0.4914, 0.4822, 0.4465]), np.array([0.247, 0.243, 0.261])
    pixels = (raw[:, 1:].reshape(12, 3, 4) / 255 - mean[:, None]) / std[:, None]
    for (x, y), rows in ((data.train, slice(10)), (data.test, slice(10, 12))):
        assert (x.dtype.name, y.dtype.name) == ("float32", "int64")
        assert np.allclose(x, pixels[rows].reshape(-1, 12), rtol=1e-6, atol=1e-6)
        assert y.tolist() == raw[rows, 0].tolist()
    assert data.classes[3] == "cat"


def test_the_archive_gives_the_same(cifar: TinyCifar, tmp_path: Path) -> None:
    one, two = tmp_path / "files", tmp_path / "archive"
    for root, files in ((one, cifar.batches), (two, {ARCHIVE: cifar.archive})):
        root.mkdir()
        put(root, files)
    assert np.array_equal(load("cifar10", one).x_train, load("cifar10", two).x_train)
    assert [path.name for path in (two / "cifar10").iterdir()] == [ARCHIVE]


def test_absent_files_come_from_the_archive(cifar: TinyCifar, tmp_path: Path, serve: Serve) -> None:
    """One file is not enough to do without it."""
    put(tmp_path, {"test_batch.bin": cifar.batches["test_batch.bin"]})
    server = serve(lambda _: cifar.archive)
    for _ in range(2):
        assert len(load("cifar10", tmp_path).y_train) == 10
    assert server.asked == [f"https://example.org/{ARCHIVE}"]


def test_a_wrong_download_leaves_nothing(cifar: TinyCifar, tmp_path: Path, serve: Serve) -> None:
    serve(lambda _: cifar.archive[:-9])
    with pytest.raises(DataError) as caught:
        load("cifar10", tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'cifar10' / ARCHIVE}: the file is missing and cannot be downloaded "
        "(what arrived is wrong: the gzip data stop before their checksum); "
        f"save https://example.org/{ARCHIVE} in the folder {tmp_path / 'cifar10'}"
    )
    assert list((tmp_path / "cifar10").iterdir()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:0],
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: gzip.compress(data, 0),
        lambda data: b"\x0b" + data[1:],
    ],
)
def test_a_hostile_batch_is_named(
    cifar: TinyCifar, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    name = "data_batch_2.bin"
    folder = put(tmp_path, cifar.batches | {name: change(cifar.batches[name])})
    with pytest.raises(DataError) as caught:
        load("cifar10", tmp_path)
    assert str(caught.value).startswith(f"{folder / name}: the content has sha256 ")


def test_another_content_is_refused(cifar: TinyCifar, tmp_path: Path) -> None:
    names = list(cifar.batches)
    folder = put(tmp_path, cifar.batches | {names[0]: cifar.batches[names[1]]})
    one, two = (batch.sha256[:12] for batch in cifar.entry.batches[:2])
    with pytest.raises(DataError) as caught:
        load("cifar10", tmp_path)
    assert str(caught.value) == (
        f"{folder / names[0]}: the content has sha256 {two}… instead of {one}…; "
        "delete it and load again"
    )


def test_archives_without_their_batches_are_named(
    cifar: TinyCifar, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that is missing, one of another content."""
    folder = put(tmp_path, {ARCHIVE: cifar.archive})
    inside, entry = cifar.entry.inside, cifar.entry
    last = entry.batches[-1]
    for batch, problem in {
        replace(last, name="more.bin"): f": the archive has no member {inside}/more.bin",
        replace(last, sha256="ab" * 32): f"/{inside}/{last.name}: the content has sha256 "
        f"{last.sha256[:12]}… instead of abababababab…",
    }.items():
        changed = replace(entry, batches=(*entry.batches[:-1], batch))
        monkeypatch.setitem(REGISTRY, "cifar10", changed)
        with pytest.raises(DataError) as caught:
            load("cifar10", tmp_path)
        assert str(caught.value) == f"{folder / ARCHIVE}{problem}; delete it and load again"


def test_a_sparse_file_of_gigabytes_is_not_read(cifar: TinyCifar, tmp_path: Path) -> None:
    file = tmp_path / "a.bin"
    with open(file, "wb") as out:
        out.truncate(1 << 40)
    with pytest.raises(DataError, match="the content has sha256"):
        read_batch(file, cifar.entry.batches[0])


def test_broken_bytes_never_give_another_error(cifar: TinyCifar, tmp_path: Path) -> None:
    """Cut the archive anywhere, or change a byte: it reads or it raises DataError."""
    folder = put(tmp_path, {})
    rng, refused = np.random.default_rng(0), 0
    for turn in range(200):
        bad = bytearray(cifar.archive)
        if turn % 2:
            del bad[rng.integers(len(bad)) :]
        else:
            bad[rng.integers(len(bad))] ^= rng.integers(1, 256)
        (folder / ARCHIVE).write_bytes(bad)
        try:
            assert len(load("cifar10", tmp_path).y_train) == 10
        except DataError:
            refused += 1
    assert refused >= 100
