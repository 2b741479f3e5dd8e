"""CIFAR-10 in its binary version: records of a label byte and three planes of 1024 bytes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.base import Dataset
from ruleout.datasets.content import check_sum, located
from ruleout.datasets.downloads import obtain
from ruleout.datasets.errors import DataError
from ruleout.datasets.idx import check_labels
from ruleout.datasets.registry import CifarSet, DataFile
from ruleout.datasets.tar import Limits, read_tar

__all__ = ["load_cifar", "read_batch"]

_MEAN = (0.4914, 0.4822, 0.4465)  # of each channel over the training images, as in the paper
_STD = (0.247, 0.243, 0.261)

Records = NDArray[np.uint8]


def load_cifar(name: str, entry: CifarSet, root: Path) -> Dataset:
    """Load the batches, from their own files if all are there, else from the archive."""
    folder, k = root / entry.archive.folder, len(entry.classes)
    files = [folder / batch.name for batch in entry.batches]
    if all(os.path.isfile(file) for file in files):
        batches = [read_batch(*pair, k) for pair in zip(files, entry.batches, strict=True)]
    else:
        batches = obtain(entry.archive, root, lambda file: _read_archive(file, entry))
    (x_train, y_train), (x_test, y_test) = _split(batches[:-1]), _split(batches[-1:])
    side = round((entry.features // 3) ** 0.5)
    return Dataset(
        name=name,
        x_train=x_train,
        y_train=y_train,
        x_test=x_test,
        y_test=y_test,
        classes=entry.classes,
        shape=(3, side, side),
        source=entry.source,
    )


def read_batch(file: Path, entry: DataFile, k: int) -> Records:
    """Read one file of records, ``[n, 1 + values]``, and no byte more than they take.

    Raises
    ------
    DataError
        Naming the file, for anything that is not exactly as described.
    """
    expected = entry.shape[0] * entry.shape[1]
    with located(file), open(file, "rb") as stream:
        size = os.fstat(stream.fileno()).st_size
        if size != expected:
            raise DataError(f"the file has {size:,} bytes instead of {expected:,}")
        return _records(stream.read(expected), entry, k)


def _records(data: bytes, entry: DataFile, k: int) -> Records:
    expected = entry.shape[0] * entry.shape[1]
    if len(data) != expected:
        raise DataError(f"the file has {len(data):,} bytes instead of {expected:,}")
    records = np.frombuffer(data, np.uint8).reshape(entry.shape)
    check_labels(records[:, 0], k)
    check_sum(entry.sha256, data)
    return records


def _read_archive(file: Path, entry: CifarSet) -> list[Records]:
    wanted = {f"{entry.inside}/{batch.name}": batch for batch in entry.batches}
    size = max(batch.shape[0] * batch.shape[1] for batch in entry.batches)
    limits = Limits(members=100, member=size, total=(len(wanted) + 1) * size + (1 << 20))
    found: dict[str, Records] = {}
    with located(file):
        for name, data in read_tar(file, limits, wanted.__contains__):
            with located(file / name):
                found[name] = _records(data, wanted[name], len(entry.classes))
        return _all(found, wanted)


def _all(found: Mapping[str, Records], wanted: Mapping[str, DataFile]) -> list[Records]:
    for name in wanted:
        if name not in found:
            raise DataError(f"the archive has no member {name}")
    return [found[name] for name in wanted]


def _split(batches: list[Records]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return normalised pixels and labels of batches that follow one another."""
    count, values = sum(map(len, batches)), batches[0].shape[1] - 1
    x, done = np.empty((count, 3, values // 3), np.float32), 0
    for batch in batches:
        planes = batch[:, 1:].reshape(len(batch), 3, -1)
        for channel, table in enumerate(_normalised()):
            x[done : done + len(batch), channel] = table[planes[:, channel]]
        done += len(batch)
    labels = np.concatenate([batch[:, 0] for batch in batches])
    return x.reshape(count, values), labels.astype(np.int64)


def _normalised() -> NDArray[np.float32]:
    """Return what each of the 256 bytes becomes in each channel, ``[3, 256]``."""
    values = np.arange(256) / 255 - np.array(_MEAN)[:, None]
    table: NDArray[np.float64] = values / np.array(_STD)[:, None]
    return table.astype(np.float32)
