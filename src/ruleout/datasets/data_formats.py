"""The files of the data sets that ship: where they lie, how absent ones get there, what they hold.

Each kind (idx, CIFAR's batches, text tables, 20 newsgroups, boards) is a class: it knows which
files make up a data set and reads them, checked against what they must hold before memory is taken.
Files that are packed and tar archives are read as a stream within limits: nothing is written to the
disk, and memory grows with what is there, never with what a header claims.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import math
import os
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save

from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import DataError, brief
from ruleout.labels.row_files import reporting
from ruleout.labels.sets import LabelSets

T = TypeVar("T")
Rows: TypeAlias = tuple[NDArray[np.float32], NDArray[np.int64]]

_PIECE = 1 << 20  # bytes unpacked at a time, at most
_PACKED = 1 << 16  # bytes read at a time, where they are packed
_XZ_MEMORY = 1 << 27  # what xz may take for its dictionary


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Rows with their true labels, in memory; a real board also has what was ruled out.

    >>> from ruleout.datasets import load
    >>> load("digits")
    Dataset('digits', 1797 rows of shape (64,), 10 classes, no test rows)
    """

    name: str  #: as :func:`~ruleout.datasets.load` knows it
    #: ``[n, d]``, one flattened row per example. Pixels lie in [0, 1], those of CIFAR-10 are
    #: normalised per channel; features of tables are as the file has them
    x_train: NDArray[np.float32]
    y_train: NDArray[np.int64]  #: ``[n]``, positions among `classes`
    x_test: NDArray[np.float32] | None = None  #: the official test rows; None: nothing split off
    y_test: NDArray[np.int64] | None = None  #: their labels, None without them
    #: what was ruled out of the training rows, where the data come with it; None: labels alone
    sets: LabelSets | None = None
    classes: tuple[ClassName, ...]  #: the class names
    shape: tuple[int, ...]  #: of a row before it is flat: ``(channels, height, width)`` or ``(d,)``
    source: str  #: one sentence: where the files come from

    @property
    def train(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """``(x_train, y_train)``."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """``(x_test, y_test)``, or None for a data set without an official split."""
        return None if self.x_test is None or self.y_test is None else (self.x_test, self.y_test)

    def __repr__(self) -> str:
        test = "no test rows" if self.y_test is None else f"{len(self.y_test)} test rows"
        rows = f"{len(self.y_train)} rows of shape {self.shape}"
        known = f"{len(self.classes)} classes{'' if self.sets is None else ', label sets'}"
        return f"Dataset({self.name!r}, {rows}, {known}, {test})"


def data_root() -> Path:
    """Return the folder of the data: ``$RULEOUT_DATA``, else ``ruleout`` in the user's cache.

    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, RULEOUT_DATA="/srv/data"):
    ...     print(data_root().as_posix())
    /srv/data
    """
    if chosen := os.environ.get("RULEOUT_DATA"):
        return Path(os.path.expanduser(chosen))
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # the XDG rules: a relative path is to be ignored
        cache = Path.home() / ".cache"
    return cache / "ruleout"


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    `sha256` is of the unpacked content; of a text table it is of the cells, so that spaces, line
    ends and KEEL's header change nothing. It is empty where the content is checked otherwise.
    """

    folder: str  # under the data root
    name: str  # there and at its source
    sha256: str
    url: str
    most: int  # bytes that it can take, as it is downloaded
    shape: tuple[int, ...] = ()  # sizes of an idx header; else rows, and bytes or columns of each
    also: tuple[str, ...] = ()  # other names under which it may lie there

    @property
    def by_hand(self) -> bool:
        """Whether a person must unpack it."""
        return self.url.endswith(".rar")

    def present(self, root: Path) -> Path | None:
        """Return where it lies under `root`, None if it is absent; its content is not looked at."""
        for name in (self.name, *self.also):
            path = root / self.folder / name
            if os.path.isfile(path):  # False also where looking is not allowed
                return path
        return None

    def obtain(self, root: Path, read: Callable[[Path], T]) -> T:
        """Read the file under `root`; download it if absent, kept only if `read` accepts it."""
        if (there := self.present(root)) is not None:
            return read(there)
        file = root / self.folder / self.name
        if self.by_hand:
            remedy = f"unpack {self.url} into the folder {file.parent}"
            raise DataError("the file is missing, and ruleout cannot unpack RAR", remedy, file=file)
        try:
            pooch = import_module("pooch")  # not an import statement: it may be absent
            fetch = pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None)
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as out:  # under another name, until it was read
                fetch(self.url, _Capped(out, self.most), None)
                out.flush()
                return read(Path(out.name))
        except ImportError:
            why, first = "pooch is not installed", "pip install pooch, or "
        except DataError as error:
            why, first = f"what arrived is wrong: {error.problem}", ""
        except Exception as error:  # the network, the disk: each breaks in ways of its own
            text = " ".join(f"{type(error).__name__}: {error}".split())
            why, first = text if len(text) <= 80 else f"{text[:80]}…", ""
        problem = f"the file is missing and cannot be downloaded ({why})"
        raise DataError(problem, f"{first}save {self.url} in the folder {file.parent}", file=file)


class _Capped:
    """A file that refuses more bytes than it can need, so that no server fills the disk."""

    def __init__(self, out: IO[bytes], most: int) -> None:
        self._out, self._left = out, most
        self.flush = out.flush

    def write(self, data: bytes) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise DataError("it is too long")
        return self._out.write(data)


def check_sum(expected: str, *parts: bytes | bytearray | memoryview) -> None:
    """Raise unless the parts, one after the other, have this sha256, where one is known."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    if expected and found.hexdigest() != expected:
        wanted = f"instead of {expected[:12]}…"
        raise DataError(f"the content has sha256 {found.hexdigest()[:12]}… {wanted}")


class Content:
    """What a stream holds, unpacked if it starts as gzip or xz do: at most so many bytes."""

    def __init__(self, stream: IO[bytes], most: float = math.inf) -> None:
        start = stream.read(2)
        stream.seek(0)
        if not start:
            raise DataError("the file is empty")
        self._stream, self._left = stream, most
        self._engine: Any = None
        if start == b"\x1f\x8b":
            self._name, self._engine = "gzip", zlib.decompressobj(31)
        elif start == b"\xfd7":
            packed = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_XZ_MEMORY)
            self._name, self._engine = "xz", packed

    def take(self, size: int) -> bytearray:
        """Return the next bytes; fewer than `size` only where the content ends."""
        data = bytearray()
        while len(data) < size and (piece := self.some(size - len(data))):
            data += piece
        return data

    def some(self, most: int) -> bytes:
        """Return the next bytes: one at least, `most` at most; none where the content ends."""
        data, most = b"", min(most, _PIECE)
        if self._engine is None:
            data = self._stream.read(most)
        while not data and self._engine is not None and not self._engine.eof:
            packed = getattr(self._engine, "unconsumed_tail", b"")  # zlib's; lzma keeps its own
            if getattr(self._engine, "needs_input", not packed):
                packed = self._stream.read(_PACKED)
                if not packed:
                    break
            try:
                data = self._engine.decompress(packed, most)
            except zlib.error:
                raise DataError("the gzip data are damaged") from None
            except lzma.LZMAError:
                raise DataError("the xz data are damaged, or want too much memory") from None
        self._left -= len(data)
        if self._left < 0:
            raise DataError("the archive unpacks to more bytes than it can need")
        return data

    def finish(self) -> None:
        """Raise unless what is packed ends here, and the file with it."""
        if self._engine is None:
            return
        if not self._engine.eof:
            raise DataError(f"the {self._name} data stop before their checksum")
        if self._engine.unused_data or self._stream.read(1):
            raise DataError(f"bytes follow after the {self._name} data")


_NOTES = (tarfile.XHDTYPE, tarfile.XGLTYPE)  # dates and owners


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
        seen, members = set[str](), _members(Content(stream, limits.total), limits.member)
        for count, (member, data) in enumerate(members):
            if count == limits.members:
                raise DataError(f"the archive has more than {limits.members:,} members")
            if member.type in _NOTES:
                if b" path=" in data or b" size=" in data:
                    raise DataError("the archive has a name or size too long for its form")
                continue
            if member.name in seen:
                raise DataError(f"the archive has two members {brief(member.name)}")
            seen.add(member.name)
            if member.isreg() and wanted(member.name):
                yield member.name, data


def _members(content: Content, most: int) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    """Give what the headers say up to the end, and what follows each."""

    def take(size: int, where: str) -> bytes:
        data = content.take(size)
        if len(data) < size:
            raise DataError(f"the archive stops inside {where}")
        return bytes(data)

    problem = "this is not a tar archive"
    while any(header := take(tarfile.BLOCKSIZE, "a header")):
        try:
            member = tarfile.TarInfo.frombuf(header, "latin-1", "strict")
        except tarfile.HeaderError:
            raise DataError(problem) from None
        problem = "a header is damaged"
        where = f"member {brief(_checked(member, most).name)}"
        data = take(member.size, where)
        take(-member.size % tarfile.BLOCKSIZE, where)
        yield member, data
    while content.some(1 << 16):
        pass  # zeros, or nothing of interest
    content.finish()


def _checked(member: tarfile.TarInfo, most: int) -> tarfile.TarInfo:
    """Return a member that may be read: a file, a folder or notes, inside the archive."""
    name = member.name
    if name.startswith("/") or ".." in name.split("/") or "\\" in name:
        raise DataError(f"member {brief(name)} lies outside the archive")
    member.name = name.removeprefix("./")
    if not (member.isdir() or member.type in (*_NOTES, tarfile.REGTYPE, tarfile.AREGTYPE)):
        raise DataError(f"member {brief(member.name)} is neither a file nor a folder")
    if member.isreg() and not name:
        raise DataError("a member has no name")
    most = 0 if member.isdir() else most
    if not 0 <= member.size <= most:
        wanted = f"instead of at most {most:,}"
        raise DataError(f"member {brief(member.name)} has a size of {member.size:,} {wanted}")
    return member


class Entry(ABC):
    """What the registry says about a data set.

    `files`, most often one, are downloaded, `where` they lie; `rows` to train and to test have
    `features` numbers.
    """

    classes: tuple[ClassName, ...]
    source: str
    rows: tuple[int, int]
    features: int
    files = property(lambda self: (self.file,))
    where = property(lambda self: f"{self.files[0].folder}/")

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
        told: Any = {"classes": classes or self.classes, "shape": shape, "source": self.source}
        if test is not None:
            told |= {"x_test": test[0], "y_test": test[1]}
        return Dataset(name=name, x_train=train[0], y_train=train[1], **told)

    def fetch(self, root: Path) -> None:
        """Download what is absent, and check all."""
        self.load("", root)

    def present(self, root: Path) -> tuple[tuple[Path, ...], int]:
        """Return the files that are under `root`, and how many there should be."""
        found = [file.present(root) for file in self.files]
        return tuple(file for file in found if file is not None), len(found)


@dataclass(frozen=True, kw_only=True)
class IdxSet(Entry):
    """Four idx files: images and labels, to train and to test."""

    train_images: DataFile
    train_labels: DataFile
    test_images: DataFile
    test_labels: DataFile
    classes: tuple[ClassName, ...]
    source: str

    files = property(  # the small ones first: they fail sooner
        lambda self: (self.train_labels, self.test_labels, self.train_images, self.test_images)
    )
    rows = property(lambda self: (self.train_labels.shape[0], self.test_labels.shape[0]))
    features = property(lambda self: math.prod(self.train_images.shape[1:]))

    def load(self, name: str, root: Path) -> Dataset:
        values = (one.obtain(root, partial(read_idx, entry=one)) for one in self.files)
        y_train, y_test, *images = values
        train, test = (np.divide(x.reshape(len(x), -1), 255, dtype=np.float32) for x in images)
        shape = (1, *self.train_images.shape[1:])
        known = (train, y_train.astype(np.int64)), shape, (test, y_test.astype(np.int64))
        return self._made(name, *known)


def read_idx(file: Path, entry: DataFile) -> NDArray[np.uint8]:
    """Read an idx file of bytes, packed or plain: what its checksum says is all there is to know.

    The values come after four bytes that say what they are, and four for each size.
    """
    start, size = 4 + 4 * len(entry.shape), math.prod(entry.shape)
    with reporting(file), open(file, "rb") as stream:
        content = Content(stream)
        data = content.take(start + size + 1)  # one more than there may be
        check_sum(entry.sha256, data)
        content.finish()
    return np.frombuffer(data, np.uint8, offset=start).reshape(entry.shape)


_MEAN = (0.4914, 0.4822, 0.4465)  # of each channel over the training images, as in the paper
_STD = (0.247, 0.243, 0.261)

Records = NDArray[np.uint8]  # of a label byte and three planes of 1024 bytes


@dataclass(frozen=True, kw_only=True)
class CifarSet(Entry):
    """Batches in CIFAR's binary form, and the archive that holds them all.

    `batches` are in order, the last of them to test; `inside` is their folder in the archive.
    """

    file: DataFile
    batches: tuple[DataFile, ...]
    inside: str
    classes: tuple[ClassName, ...]
    source: str

    features = property(lambda self: self.batches[0].shape[1] - 1)  # a record less its label

    rows = property(
        lambda self: (sum(one.shape[0] for one in self.batches[:-1]), self.batches[-1].shape[0])
    )

    def load(self, name: str, root: Path) -> Dataset:
        if files := self._unpacked(root):
            pairs = zip(files, self.batches, strict=True)
            batches = [read_batch(*pair) for pair in pairs]
        else:
            batches = self.file.obtain(root, self._read_archive)
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
        with reporting(file):
            for name, data in read_tar(file, limits, wanted.__contains__):
                with reporting(file / name):
                    found[name] = _records(data, wanted[name])
            for name in wanted:
                if name not in found:
                    raise DataError(f"the archive has no member {name}")
        return [found[name] for name in wanted]


def read_batch(file: Path, entry: DataFile) -> Records:
    """Read one file of records, ``[n, 1 + values]``, and hardly a byte more than they take."""
    with reporting(file), open(file, "rb") as stream:
        return _records(stream.read(math.prod(entry.shape) + 1), entry)


def _records(data: bytes, entry: DataFile) -> Records:
    check_sum(entry.sha256, data)
    return np.frombuffer(data, np.uint8).reshape(entry.shape)


def _split(batches: list[Records]) -> Rows:
    count, values = sum(map(len, batches)), batches[0].shape[1] - 1
    scaled = (np.arange(256) / 255 - np.array(_MEAN)[:, None]) / np.array(_STD)[:, None]
    tables = scaled.astype(np.float32)  # of each channel, what the 256 bytes become
    x, done = np.empty((count, 3, values // 3), np.float32), 0
    for batch in batches:
        planes = batch[:, 1:].reshape(len(batch), 3, -1)
        for channel, table in enumerate(tables):
            x[done : done + len(batch), channel] = table[planes[:, channel]]
        done += len(batch)
    labels = np.concatenate([batch[:, 0] for batch in batches])
    return x.reshape(count, values), labels.astype(np.int64)


@dataclass(frozen=True, kw_only=True)
class TableSet(Entry):
    """One text table whose rows all belong together, as the UCI and KEEL repositories keep them."""

    file: DataFile  # its shape counts all columns
    classes: tuple[ClassName, ...]
    source: str
    comma: bool = False  # between cells, else white space
    first: int = 0  # column that is a feature; names come before it
    labelled: bool = True  # by the last column; else the rows of each class follow one another
    missing: int | None = None  # the one column in which ``?`` means a value that is not known

    rows = property(lambda self: (self.file.shape[0], 0))
    features = property(lambda self: self.file.shape[1] - self.first - self.labelled)

    def load(self, name: str, root: Path) -> Dataset:
        x, y = self.file.obtain(root, lambda file: read_delimited(file, self))
        return self._made(name, (x, y), x.shape[1:])


def read_delimited(file: Path, entry: TableSet) -> Rows:
    """Read features and labels from a text table, or from a zip archive with one in it.

    Blank lines and KEEL's header, whose lines start with ``@``, are left out. The cells are those
    of the checksum, so nothing else can be wrong with them. Where one is missing, it gets the mean
    of the known values.
    """
    with reporting(file):
        lines = map(str.strip, _text(file, entry.file.most).splitlines())
        mark = "," if entry.comma else None
        split = (line.split(mark) for line in lines if line and not line.startswith("@"))
        rows = [[cell.strip() for cell in cells] for cells in split]
        check_sum(entry.file.sha256, "".join(",".join(cells) + "\n" for cells in rows).encode())
        if {*map(len, rows)} != {entry.file.shape[1]}:
            raise DataError("its cells are separated by commas, not by spaces")
    end = entry.first + entry.features
    x = np.array([["nan" if one == "?" else one for one in row[entry.first : end]] for row in rows])
    x = x.astype(np.float64)
    if entry.missing is not None:
        known = x[:, entry.missing - entry.first]
        missing = np.isnan(known)
        known[missing] = known[~missing].mean()
    names = list(map(str, entry.classes))
    y = np.repeat(np.arange(len(names)), len(rows) // len(names))
    if entry.labelled:
        y = np.array([names.index(row[-1]) for row in rows])
    return x.astype(np.float32), y.astype(np.int64)


def _text(file: Path, most: int) -> str:
    with open(file, "rb") as stream:
        data = stream.read(most + 1)
    data = _unzip(file, most) if data[:2] == b"PK" else data
    if len(data) > most:
        raise DataError(f"the file has more than {most:,} bytes")
    return data.decode("latin-1")


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
                return member.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the zip archive is damaged or has a password") from None


_LIMITS = Limits(members=20_000, member=1 << 20, total=1 << 27)


@dataclass(frozen=True, kw_only=True)
class NewsSet(Entry):
    """An archive of documents in folders ``part/class/name``, as rows of tf-idf features."""

    file: DataFile
    parts: dict[str, int]  # the number of documents in each
    dimensions: int
    classes: tuple[ClassName, ...]
    source: str

    rows = property(lambda self: (sum(self.parts.values()), 0))  # the paper splits them at random
    features = property(lambda self: self.dimensions)

    def load(self, name: str, root: Path) -> Dataset:
        documents = self._documents(root)
        x = cached_features(documents, self.dimensions, root / self.file.folder)
        y = np.array([self.classes.index(label) for label in documents.labels], np.int64)
        source = f"{self.source}; {len(x):,} documents of sha256 {documents.sha256[:12]}…."
        return replace(self._made(name, (x, y), x.shape[1:]), source=source)

    def fetch(self, root: Path) -> None:
        self._documents(root)  # without making their features, which takes a minute

    def _documents(self, root: Path) -> Documents:
        return self.file.obtain(root, lambda file: read_documents(file, self))


@dataclass(frozen=True, kw_only=True)
class BoardSet(Entry):
    """A real board of partial-label learning: a .mat file with candidates and true classes."""

    file: DataFile  # its shape counts rows and features
    many: int  # classes
    source: str

    rows = property(lambda self: (self.file.shape[0], 0))
    features = property(lambda self: self.file.shape[1])
    classes = property(lambda self: tuple(range(self.many)))
    where = property(
        lambda self: (
            f"{self.file.folder}/, for academic use"
            + ("" if self.file.sha256 else "; no checksum is known")
        )
    )

    def load(self, name: str, root: Path) -> Dataset:
        x, sets, labels = self.file.obtain(root, self._read)
        made = self._made(name, (x, labels.astype(np.int64)), x.shape[1:])
        return replace(made, sets=sets)

    def _read(self, file: Path) -> tuple[Any, LabelSets, NDArray[Any]]:
        from ruleout.datasets.archives import read_archive  # late: it loads pyarrow and scipy
        from ruleout.datasets.tables import BOARD, Request, dense

        with reporting(file):
            if file.stat().st_size > self.file.most:
                raise DataError(f"the file has more than {self.file.most:,} bytes")
            ask = Request(candidates=BOARD, label="target", unlabelled=True)
            table = read_archive(file, ask, ".mat")  # while it is downloaded it has another name
            check_sum(self.file.sha256, file.read_bytes())
            assert table.sets is not None  # asked for
            found = (*table.x.shape, len(table.sets.classes))
            if found != (wanted := (*self.file.shape, self.many)):
                claimed, known = (" × ".join(map(str, some)) for some in (found, wanted))
                raise DataError(f"rows, features and classes are {claimed} instead of {known}")
        return dense(table.x), table.sets, np.asarray(table.labels)


KINDS = {"idx": IdxSet, "cifar": CifarSet, "news": NewsSet, "table": TableSet, "board": BoardSet}


class Documents(NamedTuple):
    """Texts and the names of their classes, in the order of their paths."""

    texts: list[str]
    labels: list[str]
    sha256: str  # of each path, size and content: how the archive is packed changes nothing


def read_documents(file: Path, entry: NewsSet) -> Documents:
    """Read an archive of documents, in whatever order it holds them.

    The content of copies differs in line breaks, so it is checked by its structure: how many
    documents each part has, in which classes.
    """
    found: dict[tuple[str, ...], bytes] = {}
    with reporting(file):
        for name, content in read_tar(file, _LIMITS):
            path = tuple(name.split("/"))
            if len(path) != 3 or path[0] not in entry.parts or path[1] not in entry.classes:
                raise DataError(f"member {brief(name)} is not part/newsgroup/document")
            found[path] = content
        counts = Counter(path[0] for path in found)
        for part, expected in entry.parts.items():
            if counts[part] != expected:
                raise DataError(f"{part} has {counts[part]:,} documents instead of {expected:,}")
            if missing := set(entry.classes) - {path[1] for path in found if path[0] == part}:
                raise DataError(f"{part} has no documents of {min(map(str, missing))}")
    paths, sha256 = sorted(found), hashlib.sha256()
    for path in paths:
        sha256.update(f"{'/'.join(path)} {len(found[path])}\n".encode())
        sha256.update(found[path])
    texts = [found[path].decode("latin-1") for path in paths]
    return Documents(texts, [path[1] for path in paths], sha256.hexdigest())


#: How features are made: scikit-learn's TfidfVectorizer as it comes, then TruncatedSVD.
RECIPE = {"iterations": 5, "seed": 0, "method": "tf-idf, randomised SVD in float32"}


def make_features(texts: list[str], dimensions: int) -> NDArray[np.float32]:
    """Make features, float32 ``[n, dimensions]``, fitted on all texts."""
    from sklearn.decomposition import TruncatedSVD  # late: it takes a second
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer().fit_transform(texts)
    told = {"n_iter": RECIPE["iterations"], "random_state": RECIPE["seed"]}
    rows: NDArray[Any] = TruncatedSVD(dimensions, **told).fit_transform(
        counts.astype(np.float32)  # half the time and memory
    )
    return np.ascontiguousarray(rows, dtype=np.float32)


def cached_features(documents: Documents, dimensions: int, folder: Path) -> NDArray[np.float32]:
    """Return the features kept in a folder if they are whole and of these texts, else make them.

    Where the folder cannot be written to, they are made each time.
    """
    made_of = {"documents": documents.sha256, "scikit-learn": version("scikit-learn")}
    key = json.dumps(RECIPE | made_of | {"dimensions": dimensions}, sort_keys=True)
    file = folder / f"tfidf-svd-{dimensions}.safetensors"
    rows = _kept(file, key, (len(documents.texts), dimensions))
    if rows is None:
        rows = make_features(documents.texts, dimensions)
        packed = save({"rows": rows}, metadata={"key": key, "sha256": _sum(rows)})
        with suppress(OSError), atomic_write(file) as out:
            out.write(packed)
    return rows


def _kept(file: Path, key: str, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """Return what is kept, None unless it is exactly what was written for this key."""
    try:
        if file.stat().st_size > 4 * shape[0] * shape[1] + (1 << 16):
            return None
        with safe_open(file, framework="numpy") as stored:
            about = stored.metadata() or {}
            rows: NDArray[Any] = stored.get_tensor("rows")
    except Exception:  # damaged in any way: it is made again
        return None
    same = about.get("key") == key and about.get("sha256") == _sum(rows)
    return rows if same and rows.shape == shape and rows.dtype == np.float32 else None


def _sum(rows: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
