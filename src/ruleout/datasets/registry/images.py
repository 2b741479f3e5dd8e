"""Images: the idx family, and CIFAR-10 in its binary version."""

from __future__ import annotations

import math

from ruleout.datasets.registry.kinds import CifarSet, DataFile, IdxSet

__all__ = ["CIFAR10", "IDX"]


def _files(folder: str, address: str, *sums: str) -> tuple[DataFile, DataFile, DataFile, DataFile]:
    """The four files of the idx family, in the order of :class:`IdxSet`."""

    def one(name: str, sha256: str, *shape: int) -> DataFile:
        most = math.prod(shape) * 101 // 100 + (1 << 16)  # packing adds less than this
        return DataFile(folder, name + ".gz", sha256, f"{address}{name}.gz", most, shape, (name,))

    return (
        one("train-images-idx3-ubyte", sums[0], 60_000, 28, 28),
        one("train-labels-idx1-ubyte", sums[1], 60_000),
        one("t10k-images-idx3-ubyte", sums[2], 10_000, 28, 28),
        one("t10k-labels-idx1-ubyte", sums[3], 10_000),
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

_CIFAR = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
_BATCHES = {
    "data_batch_1": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}

CIFAR10 = CifarSet(
    archive=DataFile("cifar10", "cifar-10-binary.tar.gz", "", _CIFAR, 1 << 28),
    batches=tuple(
        DataFile("cifar10", f"{name}.bin", sha256, _CIFAR, 30_730_000, (10_000, 3073))
        for name, sha256 in _BATCHES.items()
    ),
    inside="cifar-10-batches-bin",
    classes=(
        *("airplane", "automobile", "bird", "cat", "deer"),
        *("dog", "frog", "horse", "ship", "truck"),
    ),
    source="CIFAR-10 (Krizhevsky 2009), binary version; each channel less its mean (0.4914, "
    "0.4822, 0.4465), divided by its standard deviation (0.247, 0.243, 0.261).",
)
