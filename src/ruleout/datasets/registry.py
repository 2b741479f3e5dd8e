"""Which files make up a data set, where they come from, and what they must hold."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ruleout.labels.classes import ClassName

__all__ = ["IDX", "DataFile", "IdxSet"]


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
        Of the content, after decompression: packing a file again changes nothing.
    url
        The canonical address.
    shape
        What the idx header must say.

    Examples
    --------
    >>> IDX["mnist"].train_images.url
    'https://ossci-datasets.s3.amazonaws.com/mnist/train-images-idx3-ubyte.gz'
    """

    folder: str
    name: str
    sha256: str
    url: str
    shape: tuple[int, ...]

    @property
    def most(self) -> int:
        """Bytes that the file can take at most: packing adds less than this to its content."""
        return math.prod(self.shape) * 101 // 100 + (1 << 16)


@dataclass(frozen=True)
class IdxSet:
    """Four idx files: images and labels, to train and to test."""

    train_images: DataFile
    train_labels: DataFile
    test_images: DataFile
    test_labels: DataFile
    classes: tuple[ClassName, ...]
    source: str


def _files(folder: str, address: str, *sums: str) -> tuple[DataFile, DataFile, DataFile, DataFile]:
    """The four files of the idx family, in the order of :class:`IdxSet`."""

    def one(name: str, sha256: str, *shape: int) -> DataFile:
        return DataFile(folder, name, sha256, address + name, shape)

    return (
        one("train-images-idx3-ubyte.gz", sums[0], 60_000, 28, 28),
        one("train-labels-idx1-ubyte.gz", sums[1], 60_000),
        one("t10k-images-idx3-ubyte.gz", sums[2], 10_000, 28, 28),
        one("t10k-labels-idx1-ubyte.gz", sums[3], 10_000),
    )


_FASHION = "T-shirt/top|Trouser|Pullover|Dress|Coat|Sandal|Shirt|Sneaker|Bag|Ankle boot"

IDX = {
    "mnist": IdxSet(
        *_files(
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
        *_files(
            "fashion-mnist",
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
        ),
        classes=tuple(_FASHION.split("|")),
        source="Fashion-MNIST (Xiao, Rasul and Vollgraf 2017), the four idx files of Zalando.",
    ),
    "kmnist": IdxSet(
        *_files(
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
