"""The registry: every data set by name, those that ship and a user's own.

Which files make up those that ship, where they come from and what they must hold is written in
``sources.toml``.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from tomllib import loads
from typing import Any

import numpy as np

from ruleout.datasets.data_formats import (
    KINDS,
    BoardSet,
    DataFile,
    Dataset,
    Entry,
    Rows,
    data_root,
)
from ruleout.labels.classes import ClassName, encode, find_name
from ruleout.labels.errors import DataError, InputError, brief


def names() -> list[str]:
    """Return the names of the data sets, those that :func:`register` added last.

    >>> names()
    ['digits', 'mnist', 'fashion-mnist', 'kmnist', 'cifar10', '20newsgroups', 'yeast', 'texture',
     'dermatology', 'synthetic-control', 'lost', 'birdsong', 'italian', 'msrcv2', 'soccer-player',
     'yahoo-news']
    """
    return list(REGISTRY)


def find(name: str) -> Entry:
    """Return what the registry says about a data set, or raise with the nearest name."""
    return find_name("data set", name, REGISTRY)


def load(name: str, root: str | Path | None = None) -> Dataset:
    """Load a data set; files that are absent are downloaded if pooch and a network are there.

    `root` is the folder of the data, else :func:`data_root`; ``digits`` ships with scikit-learn and
    needs none. Files that are missing or damaged raise a :class:`DataError`, which says how to get
    them.

    >>> digits = load("digits")
    >>> digits.x_train.shape, digits.test  # its publishers split nothing off
    ((1797, 64), None)
    """
    return find(name).load(name, _folder(root))


def _folder(root: str | Path | None) -> Path:
    return data_root() if root is None else Path(os.path.expanduser(root))


@dataclass(frozen=True)
class Stock:
    """A data set as the data folder has it.

    >>> mnist = survey("/no/such/folder")[1]
    >>> mnist.name, mnist.rows, mnist.present, mnist.folder.as_posix()
    ('mnist', (60000, 10000), False, '/no/such/folder/mnist')
    """

    name: str  #: as :func:`~ruleout.datasets.load` knows it
    rows: tuple[int, int]  #: how many to train and to test
    features: int  #: how many
    classes: int  #: how many
    folder: Path | None  #: where its files belong; None: it has none, as ``digits`` and one's own
    files: tuple[Path, ...]  #: those that are there; their content was not looked at
    wanted: int  #: how many files make it whole
    where: str  #: the folder, or what it comes with, in words

    @property
    def present(self) -> bool:
        """Whether all files are there."""
        return len(self.files) == self.wanted


def survey(root: str | Path | None = None) -> list[Stock]:
    """Say of all data sets which of their files are under `root`, else under :func:`data_root`.

    No file is opened; data sets that were registered are loaded once, to be counted.
    """
    return [_stock(name, _folder(root)) for name in names()]


def fetch(name: str, root: str | Path | None = None) -> Stock:
    """Download the files of a data set that are absent, and check the content of all.

    Files that are damaged or cannot be had raise a :class:`DataError`, which says what to do.

    >>> fetch("digits").files  # ships with scikit-learn
    ()
    """
    find(name).fetch(_folder(root))
    return _stock(name, _folder(root))


def board_file(name: str) -> Path | None:
    """Return the file of a real board, downloaded if absent; None of any other name."""
    return fetch(name).files[0] if isinstance(REGISTRY.get(name), BoardSet) else None


def _stock(name: str, root: Path) -> Stock:
    entry = find(name)
    folder = root / entry.files[0].folder if entry.files else None
    counts = entry.rows, entry.features, len(entry.classes)
    return Stock(name, *counts, folder, *entry.present(root), entry.where)


@dataclass(frozen=True, kw_only=True)
class LoadedSet(Entry):
    """Rows that a function gives; `known` spares loading them in order to count them."""

    loader: Callable[[], Any]
    source: str
    origin: str
    known: tuple[tuple[int, int], int, tuple[ClassName, ...]] | None = None
    name: str = ""  # by which errors call it

    files = property(lambda _: ())
    where = property(lambda self: self.origin)

    @cached_property
    def _counted(self) -> tuple[tuple[int, int], int, tuple[ClassName, ...]]:
        if self.known is not None:
            return self.known
        data = self.load(self.name, Path())
        test = 0 if data.y_test is None else len(data.y_test)
        return (len(data.y_train), test), data.x_train.shape[1], data.classes

    rows = property(lambda self: self._counted[0])
    features = property(lambda self: self._counted[1])
    classes = property(lambda self: self._counted[2])

    def load(self, name: str, root: Path) -> Dataset:  # noqa: ARG002  # it has no files
        found = self.loader()
        if isinstance(found, Dataset):
            return replace(found, name=name)
        problem = f"the loader of data set {brief(name)} gave "
        if not isinstance(found, tuple) or len(found) not in (2, 4):
            say = "let it return a Dataset, (x, y), or (x, y, x_test, y_test)"
            raise DataError(problem + type(found).__name__, say)
        try:
            classes = tuple(np.unique(np.asarray(found[1])).tolist())
            train, *more = (
                _flat(x, y, classes) for x, y in zip(found[::2], found[1::2], strict=True)
            )
        except InputError:
            raise
        except (TypeError, ValueError) as error:  # of NumPy: text, rows of several lengths, None
            say = "let x be numbers, rows of one length, and y a class for each"
            raise DataError(f"{problem}what is no table ({error})", say) from None
        if any(one[0].shape[1:] != train[0].shape[1:] for one in more):
            raise DataError(f"{problem}test rows of another size", "give them as many features")
        test = more[0] if more else None
        return self._made(name, train, np.shape(found[0])[1:], test, classes)


def _flat(x: Any, y: Any, classes: tuple[ClassName, ...]) -> Rows:
    rows = np.asarray(x, np.float32)
    if rows.ndim < 2 or len(rows) != len(y) or not rows.size:
        raise DataError(f"x has shape {rows.shape} for {len(y)} labels", "give one row per label")
    return rows.reshape(len(rows), -1), encode(y, classes, "labels").astype(np.int64)


def register(name: str, loader: Callable[[], Any], *, source: str = "") -> None:
    """Add a data set of your own, to be found by its name like those that ship.

    :func:`load`, ``ruleout data list`` and :class:`ruleout.experiments.Spec` know it from then on.
    The loader returns a :class:`Dataset`, or arrays: ``(x, y)``, or ``(x, y, x_test, y_test)``
    where test rows are set apart. Rows of x are examples of any shape, and y names their true
    classes. `source` says in a sentence where the data come from.

    >>> import numpy as np
    >>> register("coins", lambda: (np.eye(4), ["head", "tail", "head", "tail"]))
    >>> load("coins")
    Dataset('coins', 4 rows of shape (4,), 2 classes, no test rows)
    >>> del REGISTRY["coins"]
    """
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"a data set cannot be named {brief(name)}; give a word")
    if name in REGISTRY:
        raise ValueError(f"data set {brief(name)} is registered already; choose another name")
    origin = f"registered by {loader.__module__}"
    REGISTRY[name] = LoadedSet(loader=loader, source=source, origin=origin, name=name)


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits  # late: it takes a second

    pixels, labels = load_digits(return_X_y=True)  # whole numbers from 0 to 16
    return pixels / 16, labels


def _shipped() -> dict[str, Entry]:
    """Read what ``sources.toml`` says of the data sets that ship."""
    kinds: Any = {**KINDS, "digits": partial(LoadedSet, loader=_digits)}

    def value(told: Any) -> Any:
        if isinstance(told, list):
            return tuple(map(value, told))
        if not isinstance(told, dict):
            return told
        made = {name: value(one) for name, one in told.items()}
        return DataFile(**made) if "url" in told else made

    text = files("ruleout.datasets").joinpath("sources.toml").read_text("utf-8")
    return {name: kinds[one.pop("kind")](**value(one)) for name, one in loads(text).items()}


REGISTRY = _shipped()
