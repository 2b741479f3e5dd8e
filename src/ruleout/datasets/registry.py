"""The registry: every data set by name, those that ship and a user's own.

Of those that ship it says which files make them up, where they come from and what they must hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ruleout.datasets.data_files import DataFile, data_root
from ruleout.datasets.data_formats import CifarSet, Entry, IdxSet, NewsSet, Rows, TableSet
from ruleout.datasets.dataset import DataError, Dataset
from ruleout.labels.classes import ClassName, encode
from ruleout.labels.errors import brief, check_known


def names() -> list[str]:
    """Return the names of the data sets, those that :func:`register` added last.

    >>> names()
    ['digits', 'mnist', 'fashion-mnist', 'kmnist', 'cifar10', '20newsgroups', 'yeast', 'texture',
     'dermatology', 'synthetic-control']
    """
    return list(REGISTRY)


def find(name: str) -> Entry:
    """Return what the registry says about a data set, or raise with the nearest name."""
    check_known("data set", name, REGISTRY)
    return REGISTRY[name]


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
    return data_root() if root is None else Path(root).expanduser()


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

    files = property(lambda _: ())
    where = property(lambda self: self.origin)

    @cached_property
    def _counted(self) -> tuple[tuple[int, int], int, tuple[ClassName, ...]]:
        if self.known is not None:
            return self.known
        data = self.load("", Path())
        test = 0 if data.y_test is None else len(data.y_test)
        return (len(data.y_train), test), data.x_train.shape[1], data.classes

    rows = property(lambda self: self._counted[0])
    features = property(lambda self: self._counted[1])
    classes = property(lambda self: self._counted[2])

    def load(self, name: str, root: Path) -> Dataset:  # noqa: ARG002  # it has no files
        found = self.loader()
        if isinstance(found, Dataset):
            return replace(found, name=name)
        if not isinstance(found, tuple) or len(found) not in (2, 4):
            raise DataError(
                f"the loader of data set {brief(name)} gave {type(found).__name__}",
                "let it return a Dataset, (x, y), or (x, y, x_test, y_test)",
            )
        classes = tuple(np.unique(np.asarray(found[1])).tolist())
        test = _flat(found[2], found[3], classes) if len(found) == 4 else None
        train = _flat(found[0], found[1], classes)
        return self._made(name, train, np.shape(found[0])[1:], test, classes)


def _flat(x: Any, y: Any, classes: tuple[ClassName, ...]) -> Rows:
    rows = np.asarray(x, np.float32)
    if rows.ndim < 2 or len(rows) != len(y):
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
    REGISTRY[name] = LoadedSet(loader=loader, source=source, origin=origin)


# ---------------------------------------------------------------------- those that ship


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split("|"))


def _digits() -> tuple[Any, Any]:
    from sklearn.datasets import load_digits  # late: it takes a second

    pixels, labels = load_digits(return_X_y=True)  # whole numbers from 0 to 16
    return pixels / 16, labels


def _idx(folder: str, address: str, *sums: str) -> dict[str, DataFile]:
    """Return the four files of the idx family, as :class:`IdxSet` names them."""

    def one(name: str, sha256: str, *shape: int) -> DataFile:
        most = math.prod(shape) * 101 // 100 + (1 << 16)  # packing adds less than this
        return DataFile(folder, name + ".gz", sha256, f"{address}{name}.gz", most, shape, (name,))

    return {
        "train_images": one("train-images-idx3-ubyte", sums[0], 60_000, 28, 28),
        "train_labels": one("train-labels-idx1-ubyte", sums[1], 60_000),
        "test_images": one("t10k-images-idx3-ubyte", sums[2], 10_000, 28, 28),
        "test_labels": one("t10k-labels-idx1-ubyte", sums[3], 10_000),
    }


_IMAGES = {
    "mnist": IdxSet(
        **_idx(
            "mnist",
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
        classes=tuple(range(10)),
        source="MNIST (LeCun, Cortes and Burges 1998), the four idx files as PyTorch mirrors them.",
    ),
    "fashion-mnist": IdxSet(
        **_idx(
            "fashion-mnist",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        classes=_words(
            "T-shirt/top|Trouser|Pullover|Dress|Coat|Sandal|Shirt|Sneaker|Bag|Ankle boot"
        ),
        source="Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), the four idx files of Zalando.",
    ),
    "kmnist": IdxSet(
        **_idx(
            "kmnist",
            "http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
            "7112ba9ec422d98de4885262d4a4dff14cc4fefb81c11ace8bf563a8255df5c3",
            "2a16eeae62da984b8bd24fa32e31d47291f01dac3fe84d5594f304f71e7d374b",
            "76fbd229ce87db80dd281af5e6670de4ad0e42fb30a7bd643972994c47c1f42e",
            "a11dc742be8e781a40a92f53d6a4957e7b7d36df2faa097659131ebfd8fd60c6",
        ),
        classes=("o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"),
        source="Kuzushiji-MNIST (Clanuwat et al. 2018), the four idx files of CODH.",
    ),
}

_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_BATCHES = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

_CIFAR10 = CifarSet(
    archive=DataFile("cifar10", "cifar-10-binary.tar.gz", "", _CIFAR, 1 << 28),
    batches=tuple(
        DataFile("cifar10", f"{name}.bin", sha256, _CIFAR, 30_730_000, (10_000, 3073))
        for name, sha256 in _BATCHES.items()
    ),
    inside="cifar-10-batches-bin",
    classes=_words("airplane|automobile|bird|cat|deer|dog|frog|horse|ship|truck"),
    source="CIFAR-10 (Krizhevsky 2009), binary version; each channel less its mean (0.4914, "
    "0.4822, 0.4465), divided by its standard deviation (0.247, 0.243, 0.261).",
)


def _uci(place: str, most: int, shape: tuple[int, int], sha256: str) -> DataFile:
    url = f"https://archive.ics.uci.edu/ml/machine-learning-databases/{place}"
    return DataFile("uci", place.split("/")[1], sha256, url, most, shape)


_TABLES = {
    "yeast": TableSet(
        file=_uci(
            "yeast/yeast.data",
            1 << 18,
            (1484, 10),
            "9e05d6ffade2900ebc71ad7ab25ffca17315b5add8eddb584bc38d6a9aa1156a",
        ),
        classes=("CYT", "ERL", "EXC", "ME1", "ME2", "ME3", "MIT", "NUC", "POX", "VAC"),
        source="Yeast (Nakai 1996), the UCI file; eight features as they stand there.",
        first=1,
    ),
    "texture": TableSet(
        file=DataFile(
            "uci",
            "texture.zip",
            "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
            "https://sci2s.ugr.es/keel/dataset/data/classification/texture.zip",
            1 << 21,
            (5500, 41),
            ("texture.dat",),
        ),
        classes=(2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14),
        source="Texture (Guérin-Dugué et al. 1995, ELENA), the KEEL file; 40 features as they "
        "stand there.",
        comma=True,
    ),
    "dermatology": TableSet(
        file=_uci(
            "dermatology/dermatology.data",
            1 << 17,
            (366, 35),
            "455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742",
        ),
        classes=(1, 2, 3, 4, 5, 6),
        source="Dermatology (Ilter and Guvenir 1998), the UCI file; 34 features as they stand "
        "there, the 8 missing ages filled with the mean of the others.",
        comma=True,
        missing=33,
    ),
    "synthetic-control": TableSet(
        file=_uci(
            "synthetic_control-mld/synthetic_control.data",
            1 << 20,
            (600, 60),
            "97e1cbbd6a6da230f8c5da645174b67257e47668cd0c2041cd1f61209e507ed5",
        ),
        classes=_words(
            "normal|cyclic|increasing trend|decreasing trend|upward shift|downward shift"
        ),
        source="Synthetic Control (Alcock and Manolopoulos 1999), the UCI file; 60 points in time "
        "as they stand there.",
        labelled=False,
    ),
}

_NEWS = NewsSet(
    archive=DataFile(
        "20newsgroups",
        "20news-bydate.tar.gz",
        "",  # checked by its structure: copies differ in line breaks
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        1 << 26,
        also=("20news-bydate.tar.xz", "20news-bydate.tar"),
    ),
    parts={"20news-bydate-test": 7532, "20news-bydate-train": 11314},
    dimensions=1000,
    classes=_words(
        "alt.atheism|comp.graphics|comp.os.ms-windows.misc|comp.sys.ibm.pc.hardware|"
        "comp.sys.mac.hardware|comp.windows.x|misc.forsale|rec.autos|rec.motorcycles|"
        "rec.sport.baseball|rec.sport.hockey|sci.crypt|sci.electronics|sci.med|sci.space|"
        "soc.religion.christian|talk.politics.guns|talk.politics.mideast|talk.politics.misc|"
        "talk.religion.misc"
    ),
    source="20 Newsgroups (Lang 1995), the version sorted by date: all documents with their "
    "headers, tf-idf and TruncatedSVD to 1000 dimensions fitted on all of them",
)

REGISTRY: dict[str, Entry] = {
    "digits": LoadedSet(
        loader=_digits,
        source="The test part of the UCI optical digits (Alpaydin and Kaynak 1998), as "
        "scikit-learn ships it.",
        origin="in scikit-learn",
        known=((1797, 0), 64, tuple(range(10))),
    ),
    **_IMAGES,
    "cifar10": _CIFAR10,
    "20newsgroups": _NEWS,
    **_TABLES,
}
