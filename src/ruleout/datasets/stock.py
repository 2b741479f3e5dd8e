"""What lies in the data folder, and how the rest gets there."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ruleout.datasets.downloads import data_root, obtain, present
from ruleout.datasets.loading import find, load, names
from ruleout.datasets.news import read_documents
from ruleout.datasets.registry import CifarSet, Entry, NewsSet

__all__ = ["Stock", "fetch", "survey"]


@dataclass(frozen=True)
class Stock:
    """A data set as the data folder has it.

    Parameters
    ----------
    name
        As :func:`~ruleout.datasets.load` knows it.
    rows
        How many to train and to test.
    features, classes
        How many.
    folder
        Where its files belong; None for a data set that ships with scikit-learn.
    files
        Those that are there; their content was not looked at.
    wanted
        How many files make it whole.

    Examples
    --------
    >>> mnist = survey("/no/such/folder")[1]
    >>> mnist.name, mnist.rows, mnist.present, mnist.folder.as_posix()
    ('mnist', (60000, 10000), False, '/no/such/folder/mnist')
    """

    name: str
    rows: tuple[int, int]
    features: int
    classes: int
    folder: Path | None
    files: tuple[Path, ...]
    wanted: int

    @property
    def present(self) -> bool:
        """Whether all files are there."""
        return len(self.files) == self.wanted


def survey(root: str | Path | None = None) -> list[Stock]:
    """Say of all data sets which of their files are there; no file is opened.

    Parameters
    ----------
    root
        The folder of the data, else :func:`~ruleout.datasets.data_root`.
    """
    folder = data_root() if root is None else Path(root).expanduser()
    return [_one(name, folder) for name in names()]


def fetch(name: str, root: str | Path | None = None) -> Stock:
    """Download the files of a data set that are absent, and check the content of all.

    Raises
    ------
    DataError
        A ValueError, for files that are damaged or cannot be had; it says what to do.

    Examples
    --------
    >>> fetch("digits").files  # ships with scikit-learn
    ()
    """
    entry = find(name)
    folder = data_root() if root is None else Path(root).expanduser()
    if isinstance(entry, NewsSet):  # without making its features, which takes a minute
        obtain(entry.archive, folder, lambda file: read_documents(file, entry))
    else:
        load(name, folder)
    return _one(name, folder)


def _one(name: str, root: Path) -> Stock:
    entry = find(name)
    files, wanted = _files(entry, root)
    return Stock(
        name=name,
        rows=entry.rows,
        features=entry.features,
        classes=len(entry.classes),
        folder=root / entry.files[0].folder if entry.files else None,
        files=files,
        wanted=wanted,
    )


def _files(entry: Entry, root: Path) -> tuple[tuple[Path, ...], int]:
    """Return the files that are there, and how many there should be."""
    if isinstance(entry, CifarSet):  # unpacked, or else in their archive
        batches = [root / batch.folder / batch.name for batch in entry.batches]
        if all(os.path.isfile(file) for file in batches):
            return tuple(batches), len(batches)
    found = [present(file, root) for file in entry.files]
    return tuple(file for file in found if file is not None), len(found)
