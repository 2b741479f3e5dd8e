"""From texts to rows of numbers: tf-idf, brought to few dimensions, and kept for the next time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.atomic import atomic_write

__all__ = ["Recipe", "cached_features", "make_features"]


@dataclass(frozen=True)
class Recipe:
    """How features are made: scikit-learn's TfidfVectorizer as it comes, then TruncatedSVD.

    Examples
    --------
    >>> Recipe(dimensions=100).file
    'tfidf-svd-100.safetensors'
    """

    dimensions: int
    iterations: int = 5
    seed: int = 0
    method: str = "tf-idf, randomised SVD in float32"  # to be changed with the code below

    @property
    def file(self) -> str:
        """The name under which features are kept."""
        return f"tfidf-svd-{self.dimensions}.safetensors"

    def key(self, documents: str) -> str:
        """Say in one line what features depend on; `documents` is the sha256 of the texts."""
        parts = asdict(self) | {"documents": documents, "scikit-learn": version("scikit-learn")}
        return json.dumps(parts, sort_keys=True)


def make_features(texts: Sequence[str], recipe: Recipe) -> NDArray[np.float32]:
    """Make features, float32 ``[n, dimensions]``, fitted on all texts.

    Examples
    --------
    >>> texts = ["a cat sat", "the cat ran", "a dog ran", "the dog sat"]
    >>> make_features(texts, Recipe(dimensions=2)).shape
    (4, 2)
    """
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
