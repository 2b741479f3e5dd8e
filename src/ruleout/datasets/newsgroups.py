"""20 newsgroups: an archive of documents, as rows of tf-idf features that are kept beside it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.archives import Limits, located, read_tar
from ruleout.datasets.data_files import DataFile
from ruleout.datasets.data_formats import Entry
from ruleout.datasets.dataset import DataError, Dataset
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import ClassName
from ruleout.labels.errors import brief

_LIMITS = Limits(members=20_000, member=1 << 20, total=1 << 27)


@dataclass(frozen=True, kw_only=True)
class NewsSet(Entry):
    """An archive of documents in folders ``part/class/name``.

    `parts` maps the folder of a part to its number of documents, and documents are brought to
    `dimensions` features.
    """

    archive: DataFile
    parts: dict[str, int]
    dimensions: int
    classes: tuple[ClassName, ...]
    source: str

    @property
    def files(self) -> tuple[DataFile, ...]:
        return (self.archive,)

    @property
    def rows(self) -> tuple[int, int]:
        return sum(self.parts.values()), 0  # the paper splits all documents at random

    @property
    def features(self) -> int:
        return self.dimensions

    def load(self, name: str, root: Path) -> Dataset:
        documents = self._documents(root)
        recipe = Recipe(self.dimensions)
        place = {label: number for number, label in enumerate(self.classes)}
        folder = root / self.archive.folder
        x = cached_features(documents.texts, documents.sha256, recipe, folder)
        y = np.array([place[label] for label in documents.labels], np.int64)
        source = f"{self.source}; {len(x):,} documents of sha256 {documents.sha256[:12]}…."
        return replace(self._made(name, (x, y), x.shape[1:]), source=source)

    def fetch(self, root: Path) -> None:
        self._documents(root)  # without making their features, which takes a minute

    def _documents(self, root: Path) -> Documents:
        return self.archive.obtain(root, lambda file: read_documents(file, self))


@dataclass(frozen=True)
class Documents:
    """Texts and the names of their classes, in the order of their paths.

    `sha256` is of what was read: each path, size and content, in order. How the archive is
    packed, and dates and owners in it, change nothing.
    """

    texts: list[str]
    labels: list[str]
    sha256: str


def read_documents(file: Path, entry: NewsSet) -> Documents:
    """Read an archive of documents, in whatever order it holds them.

    The content of copies differs in line breaks, so it is checked by its structure: how many
    documents each part has, in which classes.
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
        sha256=_content_sum(found),
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


def _content_sum(found: Mapping[tuple[str, ...], bytes]) -> str:
    sha256 = hashlib.sha256()
    for path in sorted(found):
        sha256.update(f"{'/'.join(path)} {len(found[path])}\n".encode())
        sha256.update(found[path])
    return sha256.hexdigest()


# ---------------------------------------------------------------------- features


@dataclass(frozen=True)
class Recipe:
    """How features are made: scikit-learn's TfidfVectorizer as it comes, then TruncatedSVD."""

    dimensions: int
    iterations: int = 5
    seed: int = 0
    method: str = "tf-idf, randomised SVD in float32"  # to be changed with the code below

    @property
    def file(self) -> str:
        return f"tfidf-svd-{self.dimensions}.safetensors"

    def key(self, documents: str) -> str:
        """Say in one line what features depend on; `documents` is the sha256 of the texts."""
        parts = asdict(self) | {"documents": documents, "scikit-learn": version("scikit-learn")}
        return json.dumps(parts, sort_keys=True)


def make_features(texts: Sequence[str], recipe: Recipe) -> NDArray[np.float32]:
    """Make features, float32 ``[n, dimensions]``, fitted on all texts."""
    from sklearn.decomposition import TruncatedSVD  # late: it takes a second
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer().fit_transform(texts)
    svd = TruncatedSVD(recipe.dimensions, n_iter=recipe.iterations, random_state=recipe.seed)
    rows: NDArray[Any] = svd.fit_transform(counts.astype(np.float32))  # half the time and memory
    return np.ascontiguousarray(rows, dtype=np.float32)


def cached_features(
    texts: Sequence[str], documents: str, recipe: Recipe, folder: Path
) -> NDArray[np.float32]:
    """Return the features kept in a folder if they are whole and of these texts, else make them.

    Where the folder cannot be written to, they are made each time.
    """
    file, key = folder / recipe.file, recipe.key(documents)
    kept = _read(file, key, (len(texts), recipe.dimensions))
    if kept is not None:
        return kept
    rows = make_features(texts, recipe)
    with suppress(OSError):
        _write(file, key, rows)
    return rows


def _read(file: Path, key: str, shape: tuple[int, int]) -> NDArray[np.float32] | None:
    """Return what is kept, None unless it is exactly what was written for this key."""
    try:
        if file.stat().st_size > 4 * shape[0] * shape[1] + (1 << 16):
            return None
        from safetensors import safe_open

        with safe_open(file, framework="numpy") as stored:
            about = stored.metadata() or {}
            if about.get("key") != key:
                return None
            rows: NDArray[Any] = stored.get_tensor("rows")
    except Exception:  # damaged in any way: it is made again
        return None
    whole = rows.shape == shape and rows.dtype == np.float32 and about.get("sha256") == _sum(rows)
    return rows if whole else None


def _write(file: Path, key: str, rows: NDArray[np.float32]) -> None:
    from safetensors.numpy import save

    packed = save({"rows": rows}, metadata={"key": key, "sha256": _sum(rows)})
    with atomic_write(file) as out:
        out.write(packed)


def _sum(rows: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()
