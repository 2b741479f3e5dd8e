"""What the registry says about a file, and about each kind of data set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from ruleout.labels.classes import ClassName

__all__ = ["CifarSet", "DataFile", "Entry", "IdxSet", "NewsSet", "ShippedSet", "TableSet"]


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    Parameters
    ----------
    folder
        Where it lies under the data root.
    name
        Its name, there and at its source.
    sha256
        Of the content, after decompression: packing a file again changes nothing. Of a text
        table: of its cells, one line per row with commas between them, so that spaces, line ends
        and KEEL's header change nothing. Empty where the content is checked by other means.
    url
        The canonical address.
    most
        Bytes that the file can take at most, as it is downloaded.
    shape
        What the content must be: the sizes of an idx header, the rows and bytes of a CIFAR batch,
        the rows and columns of a text table.
    also
        Other names under which it may lie there.

    Examples
    --------
    >>> from ruleout.datasets.registry import REGISTRY
    >>> REGISTRY["yeast"].files[0].url
    'https://archive.ics.uci.edu/ml/machine-learning-databases/yeast/yeast.data'
    """

    folder: str
    name: str
    sha256: str
    url: str
    most: int
    shape: tuple[int, ...] = ()
    also: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ShippedSet:
    """Rows that come with a package, without files: how many to train and to test."""

    rows: tuple[int, int]
    features: int
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        """None."""
        return ()


@dataclass(frozen=True)
class IdxSet:
    """Four idx files: images and labels, to train and to test."""

    train_images: DataFile
    train_labels: DataFile
    test_images: DataFile
    test_labels: DataFile
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        """All of them, the small ones first: they fail sooner."""
        return self.train_labels, self.test_labels, self.train_images, self.test_images

    @property
    def rows(self) -> tuple[int, int]:
        """How many to train and to test."""
        return self.train_labels.shape[0], self.test_labels.shape[0]

    @property
    def features(self) -> int:
        """Pixels of an image."""
        return math.prod(self.train_images.shape[1:])


@dataclass(frozen=True, kw_only=True)
class CifarSet:
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
        """What is downloaded: the archive."""
        return (self.archive,)

    @property
    def rows(self) -> tuple[int, int]:
        """How many to train and to test."""
        counts = [batch.shape[0] for batch in self.batches]
        return sum(counts[:-1]), counts[-1]

    @property
    def features(self) -> int:
        """Values of an image: a record less its label."""
        return self.batches[0].shape[1] - 1


@dataclass(frozen=True, kw_only=True)
class TableSet:
    """One text table whose rows all belong together.

    Parameters
    ----------
    file
        Its shape counts all columns.
    comma
        Whether cells are separated by commas, else by white space.
    first
        The first column that is a feature; names stand before it.
    labelled
        Whether the last column is the class; else the rows of each class follow one another.
    missing
        The one column, counted from 0, in which ``?`` stands for a value that is not known.
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
        """The one."""
        return (self.file,)

    @property
    def rows(self) -> tuple[int, int]:
        """All to train: the publishers split nothing off."""
        return self.file.shape[0], 0

    @property
    def features(self) -> int:
        """Columns without names and class."""
        return self.file.shape[1] - self.first - self.labelled


@dataclass(frozen=True, kw_only=True)
class NewsSet:
    """An archive of documents in folders ``part/class/name``.

    `parts` maps the folder of a part to its number of documents, and `features` is the number of
    dimensions that the documents are brought to.
    """

    archive: DataFile
    parts: dict[str, int]
    features: int
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The archive."""
        return (self.archive,)

    @property
    def rows(self) -> tuple[int, int]:
        """All to train: the paper splits all documents at random."""
        return sum(self.parts.values()), 0


Entry: TypeAlias = ShippedSet | IdxSet | CifarSet | TableSet | NewsSet
