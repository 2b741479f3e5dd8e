"""20 newsgroups: documents from an archive of folders ``part/class/name``."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ruleout.datasets.base import Dataset
from ruleout.datasets.content import located
from ruleout.datasets.downloads import obtain
from ruleout.datasets.errors import DataError
from ruleout.datasets.features import Recipe, cached_features
from ruleout.datasets.registry import NewsSet
from ruleout.datasets.tar import Limits, read_tar
from ruleout.labels.errors import brief

__all__ = ["Documents", "load_news", "read_documents"]

_LIMITS = Limits(members=20_000, member=1 << 20, total=1 << 27)


@dataclass(frozen=True)
class Documents:
    """Texts and the names of their classes, in the order of their paths.

    `sha256` is of what was read: each path, size and content, in order. How the archive is
    packed, and dates and owners in it, change nothing.
    """

    texts: list[str]
    labels: list[str]
    sha256: str


def load_news(name: str, entry: NewsSet, root: Path) -> Dataset:
    """Load the documents as rows of features; these are kept beside the archive."""
    documents = obtain(entry.archive, root, lambda file: read_documents(file, entry))
    recipe = Recipe(dimensions=entry.features)
    folder = root / entry.archive.folder
    place = {label: number for number, label in enumerate(entry.classes)}
    x = cached_features(documents.texts, documents.sha256, recipe, folder)
    return Dataset(
        name=name,
        x_train=x,
        y_train=np.array([place[label] for label in documents.labels], np.int64),
        classes=entry.classes,
        shape=x.shape[1:],
        source=f"{entry.source}; {len(x):,} documents of sha256 {documents.sha256[:12]}….",
    )


def read_documents(file: Path, entry: NewsSet) -> Documents:
    """Read an archive of documents, in whatever order it holds them.

    The content of copies differs in line breaks, so it is checked by its structure: how many
    documents each part has, in which classes.

    Raises
    ------
    DataError
        Naming the file, for anything that is not as described.
    """
    found: dict[tuple[str, ...], bytes] = {}
    with located(file):
        for name, content in read_tar(file, _LIMITS):
            found[_path(name, entry)] = content
        _check_counts(found, entry)
    paths = sorted(found)
    return Documents(
        texts=[found[path].decode("latin-1") for path in paths],
        labels=[path[1] for path in paths],
        sha256=_sum(found),
    )


def _path(name: str, entry: NewsSet) -> tuple[str, ...]:
    path = tuple(name.split("/"))
    if len(path) != 3 or path[0] not in entry.parts or path[1] not in entry.classes:
        raise DataError(f"member {brief(name)} is not part/newsgroup/document")
    return path


def _check_counts(found: Mapping[tuple[str, ...], bytes], entry: NewsSet) -> None:
    counts = Counter(path[0] for path in found)
    for part, expected in entry.parts.items():
        if counts[part] != expected:
            raise DataError(f"{part} has {counts[part]:,} documents instead of {expected:,}")
        if missing := set(entry.classes) - {path[1] for path in found if path[0] == part}:
            raise DataError(f"{part} has no documents of {min(map(str, missing))}")


def _sum(found: Mapping[tuple[str, ...], bytes]) -> str:
    sha256 = hashlib.sha256()
    for path in sorted(found):
        sha256.update(f"{'/'.join(path)} {len(found[path])}\n".encode())
        sha256.update(found[path])
    return sha256.hexdigest()
