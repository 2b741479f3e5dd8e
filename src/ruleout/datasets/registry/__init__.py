"""The one table: which files make up a data set, where they come from, what they must hold."""

from ruleout.datasets.registry.images import CIFAR10, IDX
from ruleout.datasets.registry.kinds import (
    CifarSet,
    DataFile,
    Entry,
    IdxSet,
    NewsSet,
    ShippedSet,
    TableSet,
)
from ruleout.datasets.registry.texts import NEWS, TABLES

__all__ = [
    "REGISTRY",
    "CifarSet",
    "DataFile",
    "Entry",
    "IdxSet",
    "NewsSet",
    "ShippedSet",
    "TableSet",
]

REGISTRY: dict[str, Entry] = {
    "digits": ShippedSet(
        rows=(1797, 0),
        features=64,
        classes=tuple(range(10)),
        source="The test part of the UCI optical digits (Alpaydin and Kaynak 1998), as "
        "scikit-learn ships it.",
    ),
    **IDX,
    "cifar10": CIFAR10,
    "20newsgroups": NEWS,
    **TABLES,
}
