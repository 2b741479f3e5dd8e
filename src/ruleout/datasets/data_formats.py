"""The files of the data sets that ship: idx, CIFAR's batches, text tables of UCI and KEEL.

Each kind is a class: it knows which files make up a data set and reads them, checked against what
they must hold before memory is taken.
"""

from __future__ import annotations

import math
import os
import zipfile
import zlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.archives import Content, Limits, check_sum, located, read_tar
from ruleout.datasets.data_files import DataFile
from ruleout.datasets.dataset import DataError, Dataset
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import brief

Rows: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]


class Entry(ABC):
    """What the registry says about a data set.

    `files` are what is downloaded, `where` says where they lie, `rows` how many to train and to
    test, `features` how many numbers make up a row.
    """

    classes: tuple[ClassName, ...]
    source: str

    @property
    @abstractmethod
    def files(self) -> tuple[DataFile, ...]: ...

    @property
    def where(self) -> str:
        return f"{self.files[0].folder}/"

    @property
    @abstractmethod
    def rows(self) -> tuple[int, int]: ...

    @property
    @abstractmethod
    def features(self) -> int: ...

    @abstractmethod
    def load(self, name: str, root: Path) -> Dataset:
        """Read the files under `root`; those that are absent are downloaded."""

    def _made(
        self,
        name: str,
        train: Rows,
        shape: tuple[int, ...],
        test: Rows | None = None,
        classes: tuple[ClassName, ...] = (),
    ) -> Dataset:
        x_test, y_test = test or (None, None)
        return Dataset(
            name=name,
            x_train=train[0],
            y_train=train[1],
            x_test=x_test,
            y_test=y_test,
            classes=classes or self.classes,
            shape=shape,
            source=self.source,
        )

    def fetch(self, root: Path) -> None:
        """Download what is absent, and check all."""
        self.load("", root)

    def present(self, root: Path) -> tuple[tuple[Path, ...], int]:
        """Return the files that are under `root`, and how many there should be."""
        found = [file.present(root) for file in self.files]
        return tuple(file for file in found if file is not None), len(found)


# ---------------------------------------------------------------------- idx


@dataclass(frozen=True, kw_only=True)
class IdxSet(Entry):
    """Four idx files: images and labels, to train and to test."""

    train_images: DataFile
    train_labels: DataFile
    test_images: DataFile
    test_labels: DataFile
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        return self.train_labels, self.test_labels, self.train_images, self.test_images

    @property
    def rows(self) -> tuple[int, int]:
        return self.train_labels.shape[0], self.test_labels.shape[0]

    @property
    def features(self) -> int:
        return math.prod(self.train_images.shape[1:])

    def load(self, name: str, root: Path) -> Dataset:
        y_train = self._labels(self.train_labels, root)  # the small files first: they fail sooner
        y_test = self._labels(self.test_labels, root)
        train, test = _pixels(self.train_images, root), _pixels(self.test_images, root)
        shape = (1, *self.train_images.shape[1:])
        return self._made(name, (train, y_train), shape, (test, y_test))

    def _labels(self, entry: DataFile, root: Path) -> NDArray[np.int64]:
        def read(file: Path) -> NDArray[np.uint8]:
            labels = read_idx(file, entry.shape, entry.sha256)
            check_labels(labels, len(self.classes), file)
            return labels

        return entry.obtain(root, read).astype(np.int64)


def _pixels(entry: DataFile, root: Path) -> NDArray[np.float32]:
    read = partial(read_idx, shape=entry.shape, sha256=entry.sha256)
    pixels = entry.obtain(root, read).reshape(entry.shape[0], -1)
    return np.divide(pixels, np.float32(255), dtype=np.float32)


def read_idx(file: Path, shape: tuple[int, ...], sha256: str | None = None) -> NDArray[np.uint8]:
    """Read an idx file of bytes whose sizes are known, packed with gzip or plain.

    A file is two zero bytes, a type, the number of dimensions, each size as a big-endian 32-bit
    number, then the values. `sha256` is of the content, header included; None checks nothing.
    """
    with located(file), open(file, "rb") as stream:
        content = Content(stream)
        if content.start not in (b"\x1f\x8b", b"\0\0", b"\0"):
            raise DataError(f"the file starts with {content.start!r}: it is neither gzip nor idx")
        return _values(content, shape, sha256)


def check_labels(labels: NDArray[np.uint8], k: int, file: Path | None = None) -> None:
    wrong = labels >= k
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(f"label {labels[row]} is not one of 0 to {k - 1}", file=file, row=row)


def _values(content: Content, shape: tuple[int, ...], sha256: str | None) -> NDArray[np.uint8]:
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
    if start[2] != 0x08:
        raise DataError(f"the values are of type 0x{start[2]:02x} instead of 0x08, bytes")
    if start[3] != dimensions:
        raise DataError(f"the header claims {start[3]} dimension(s) instead of {dimensions}")


def _times(sizes: tuple[int, ...]) -> str:
    return " × ".join(map(str, sizes))


# ---------------------------------------------------------------------- CIFAR-10

_MEAN = (0.4914, 0.4822, 0.4465)  # of each channel over the training images, as in the paper
_STD = (0.247, 0.243, 0.261)

Records = NDArray[np.uint8]  # of a label byte and three planes of 1024 bytes


@dataclass(frozen=True, kw_only=True)
class CifarSet(Entry):
    """Batches in CIFAR's binary form, and the archive that holds them all.

    `batches` are in order, the last of them to test; `inside` is their folder in the archive.
    """

    archive: DataFile
    batches: tuple[DataFile, ...]
    inside: str
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        return (self.archive,)

    @property
    def rows(self) -> tuple[int, int]:
        counts = [batch.shape[0] for batch in self.batches]
        return sum(counts[:-1]), counts[-1]

    @property
    def features(self) -> int:
        return self.batches[0].shape[1] - 1  # a record less its label

    def load(self, name: str, root: Path) -> Dataset:
        if files := self._unpacked(root):
            pairs = zip(files, self.batches, strict=True)
            batches = [read_batch(*pair, len(self.classes)) for pair in pairs]
        else:
            batches = self.archive.obtain(root, self._read_archive)
        side = round((self.features // 3) ** 0.5)
        return self._made(name, _split(batches[:-1]), (3, side, side), _split(batches[-1:]))

    def present(self, root: Path) -> tuple[tuple[Path, ...], int]:
        files = self._unpacked(root)
        return (files, len(files)) if files else super().present(root)

    def _unpacked(self, root: Path) -> tuple[Path, ...]:
        """Return the batches as files of their own; none unless all are there."""
        files = tuple(root / batch.folder / batch.name for batch in self.batches)
        return files if all(os.path.isfile(file) for file in files) else ()

    def _read_archive(self, file: Path) -> list[Records]:
        wanted = {f"{self.inside}/{batch.name}": batch for batch in self.batches}
        size = max(batch.shape[0] * batch.shape[1] for batch in self.batches)
        limits = Limits(members=100, member=size, total=(len(wanted) + 1) * size + (1 << 20))
        found: dict[str, Records] = {}
        with located(file):
            for name, data in read_tar(file, limits, wanted.__contains__):
                with located(file / name):
                    found[name] = _records(data, wanted[name], len(self.classes))
            for name in wanted:
                if name not in found:
                    raise DataError(f"the archive has no member {name}")
        return [found[name] for name in wanted]


def read_batch(file: Path, entry: DataFile, k: int) -> Records:
    """Read one file of records, ``[n, 1 + values]``, and no byte more than they take."""
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


def _split(batches: list[Records]) -> Rows:
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
    """Return what each of the 256 bytes becomes, ``[3, 256]``."""
    values = np.arange(256) / 255 - np.array(_MEAN)[:, None]
    table: NDArray[np.float64] = values / np.array(_STD)[:, None]
    return table.astype(np.float32)


# ---------------------------------------------------------------------- text tables

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, kw_only=True)
class TableSet(Entry):
    """One text table whose rows all belong together, as the UCI and KEEL repositories keep them.

    Parameters
    ----------
    file
        Its shape counts all columns.
    comma
        Whether cells are separated by commas, else by white space.
    first
        The first column that is a feature; names come before it.
    labelled
        Whether the last column is the class; else the rows of each class follow one another.
    missing
        The one column, counted from 0, in which ``?`` means a value that is not known.
    """

    file: DataFile
    classes: tuple[ClassName, ...]
    source: str
    comma: bool = False
    first: int = 0
    labelled: bool = True
    missing: int | None = None

    @property
    def files(self) -> tuple[DataFile, ...]:
        return (self.file,)

    @property
    def rows(self) -> tuple[int, int]:
        return self.file.shape[0], 0

    @property
    def features(self) -> int:
        return self.file.shape[1] - self.first - self.labelled

    def load(self, name: str, root: Path) -> Dataset:
        x, y = self.file.obtain(root, lambda file: read_delimited(file, self))
        return self._made(name, (x, y), x.shape[1:])


class _Row(NamedTuple):
    line: int  # counted from 1, as editors do
    cells: list[str]


def read_delimited(file: Path, entry: TableSet) -> Rows:
    """Read features and labels from a text table, or from a zip archive with one in it.

    Blank lines and KEEL's header, whose lines start with ``@``, are left out.
    """
    with located(file):
        rows = _rows(_text(file, entry.file.most), entry)
        y = _labels(rows, entry)
        x = _numbers(rows, entry)
        _fill(x, entry)
        text = "".join(",".join(row.cells) + "\n" for row in rows)
        check_sum(entry.file.sha256 or None, text.encode())
    return x.astype(np.float32), y


def _text(file: Path, most: int) -> str:
    with open(file, "rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise DataError(f"the file has more than {most:,} bytes")
    if data[:2] == b"PK":
        data = _unzip(file, most)
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"byte 0x{data[error.start]:02x} is not ASCII text", line=line) from None


def _unzip(file: Path, most: int) -> bytes:
    """Return the one .dat file in a zip archive; what it says about sizes is not believed."""
    try:
        with zipfile.ZipFile(file) as archive:
            found = [info for info in archive.infolist() if info.filename.endswith(".dat")]
            if len(found) != 1:
                raise DataError(f"the zip archive has {len(found)} .dat files instead of one")
            if found[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError("the zip archive is packed in an unusual way")
            with archive.open(found[0]) as member:
                data = member.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the zip archive is damaged or has a password") from None
    if len(data) > most:
        raise DataError(f"the zip archive unpacks to more than {most:,} bytes")
    return data


def _rows(text: str, entry: TableSet) -> list[_Row]:
    wanted, columns = entry.file.shape
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("@")]
    if len(lines) != wanted:
        raise DataError(f"the file has {len(lines):,} rows instead of {wanted:,}")
    rows: list[_Row] = []
    for number, line in lines:
        cells = line.split("," if entry.comma else None)
        if len(cells) != columns:
            problem = f"the row has {len(cells)} cells instead of {columns}"
            raise DataError(problem, row=len(rows), line=number)
        rows.append(_Row(number, [cell.strip() for cell in cells]))
    return rows


def _labels(rows: list[_Row], entry: TableSet) -> NDArray[np.int64]:
    if not entry.labelled:
        each = len(rows) // len(entry.classes)
        return np.repeat(np.arange(len(entry.classes)), each)
    place = {str(name): number for number, name in enumerate(entry.classes)}
    for number, row in enumerate(rows):
        if row.cells[-1] not in place:
            problem = f"{brief(row.cells[-1])} is not one of the classes {', '.join(place)}"
            raise DataError(problem, row=number, line=row.line, column=len(row.cells) - 1)
    return np.array([place[row.cells[-1]] for row in rows], np.int64)


def _numbers(rows: list[_Row], entry: TableSet) -> NDArray[np.float64]:
    """Return the features, NaN where one is missing."""
    x = np.empty((len(rows), entry.features))
    for number, row in enumerate(rows):
        for place, cell in enumerate(row.cells[entry.first : entry.first + entry.features]):
            column = entry.first + place
            try:
                x[number, place] = _number(cell, column == entry.missing)
            except ValueError:
                problem = f"{brief(cell)} is not a finite number"
                raise DataError(problem, row=number, line=row.line, column=column) from None
    return x


def _number(cell: str, missing: bool) -> float:
    if missing and cell == "?":
        return np.nan
    value = float(cell)
    if not abs(value) <= _LARGEST or "_" in cell:  # Python reads 1_0 as 10
        raise ValueError
    return value


def _fill(x: NDArray[np.float64], entry: TableSet) -> None:
    """Put the mean of the known values in the place of missing ones."""
    if entry.missing is None:
        return
    column = x[:, entry.missing - entry.first]
    unknown = np.isnan(column)
    if unknown.all():
        raise DataError("no row has a value", column=entry.missing)
    column[unknown] = column[~unknown].mean()
