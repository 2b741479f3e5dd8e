"""From a name to a data set."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.base import Dataset
from ruleout.datasets.cifar import load_cifar
from ruleout.datasets.delimited import load_table
from ruleout.datasets.downloads import data_root, obtain
from ruleout.datasets.idx import check_labels, read_idx
from ruleout.datasets.news import load_news
from ruleout.datasets.registry import (
    REGISTRY,
    CifarSet,
    DataFile,
    Entry,
    IdxSet,
    NewsSet,
    ShippedSet,
    TableSet,
)
from ruleout.labels.errors import brief, nearest

__all__ = ["find", "load", "names"]


def names() -> list[str]:
    """Return the names of the data sets.

    Examples
    --------
    >>> names()
    ['digits', 'mnist', 'fashion-mnist', 'kmnist', 'cifar10', '20newsgroups', 'yeast', 'texture',
     'dermatology', 'synthetic-control']
    """
    return list(REGISTRY)


def find(name: str) -> Entry:
    """Return what the registry says about a data set, or raise with the nearest name."""
    if name not in names():
        say = nearest(name, names(), f"the data sets are {', '.join(names())}")
        raise ValueError(f"unknown data set {brief(name)}; {say}")
    return REGISTRY[name]


def load(name: str, root: str | Path | None = None) -> Dataset:
    """Load a data set; files that are absent are downloaded if pooch and a network are there.

    Parameters
    ----------
    name
        One of :func:`names`.
    root
        The folder of the data, else :func:`data_root`. ``digits`` ships with scikit-learn and
        needs none.

    Raises
    ------
    DataError
        A ValueError, for files that are missing or damaged; it says how to get them.

    Examples
    --------
    >>> digits = load("digits")
    >>> digits.x_train.shape, digits.test  # its publishers split nothing off
    ((1797, 64), None)
    >>> load("mnits")
    Traceback (most recent call last):
    ValueError: unknown data set 'mnits'; did you mean 'mnist'?
    """
    entry = find(name)
    folder = data_root() if root is None else Path(root).expanduser()
    match entry:
        case ShippedSet():
            return _digits(name, entry)
        case IdxSet():
            return _idx(name, entry, folder)
        case CifarSet():
            return load_cifar(name, entry, folder)
        case TableSet():
            return load_table(name, entry, folder)
        case NewsSet():
            return load_news(name, entry, folder)


def _digits(name: str, entry: ShippedSet) -> Dataset:
    from sklearn.datasets import load_digits  # late: it takes a second

    pixels, labels = load_digits(return_X_y=True)  # whole numbers from 0 to 16
    return Dataset(
        name=name,
        x_train=(pixels / 16).astype(np.float32),
        y_train=labels.astype(np.int64),
        classes=entry.classes,
        shape=(entry.features,),
        source=entry.source,
    )


def _idx(name: str, entry: IdxSet, root: Path) -> Dataset:
    k = len(entry.classes)
    y_train = _labels(entry.train_labels, root, k)  # the small files first: they fail sooner
    y_test = _labels(entry.test_labels, root, k)
    return Dataset(
        name=name,
        x_train=_images(entry.train_images, root),
        y_train=y_train,
        x_test=_images(entry.test_images, root),
        y_test=y_test,
        classes=entry.classes,
        shape=(1, *entry.train_images.shape[1:]),
        source=entry.source,
    )


def _images(entry: DataFile, root: Path) -> NDArray[np.float32]:
    read = partial(read_idx, shape=entry.shape, sha256=entry.sha256)
    pixels = obtain(entry, root, read).reshape(entry.shape[0], -1)
    return np.divide(pixels, np.float32(255), dtype=np.float32)


def _labels(entry: DataFile, root: Path, k: int) -> NDArray[np.int64]:
    def read(file: Path) -> NDArray[np.uint8]:
        labels = read_idx(file, entry.shape, entry.sha256)
        check_labels(labels, k, file)
        return labels

    return obtain(entry, root, read).astype(np.int64)
