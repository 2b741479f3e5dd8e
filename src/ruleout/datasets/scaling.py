"""Columns of very different sizes: how far they are apart, and what brings them together."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import brief

APART = 100  # times as large, from where on raw columns lose


class Scaling(NamedTuple):
    """What brings columns together: less their mean, over their spread, ``[d]`` each.

    The spread is the standard deviation; a constant column is not divided. A column that is zero
    in most rows, as a word is, or in a sparse matrix, keeps its zeros: it is divided by the root
    mean square of its other values.
    """

    mean: NDArray[np.float32]
    spread: NDArray[np.float32]

    @classmethod
    def of(cls, x: Any) -> Self:
        """Look at rows ``[n, ...]``: an array, or a CSR matrix."""
        n, sparse = x.shape[0], hasattr(x, "indptr")
        if sparse:
            counted = (x.data != 0, x.data, x.data**2.0)
            filled, total, squares = (np.bincount(x.indices, v, x.shape[1]) for v in counted)
        else:
            flat = x.reshape(n, -1)
            filled, total = np.count_nonzero(flat, 0), flat.sum(0, dtype=np.float64)
            squares = np.einsum("nd,nd->d", flat, flat, dtype=np.float64)
        size, keeps = np.sqrt(squares / np.maximum(filled, 1)), (2 * filled < n) | sparse
        mean = np.where(keeps, 0, total / n)
        spread = np.where(keeps, size, np.sqrt(np.maximum(squares / n - mean**2, 0)))
        return cls(mean.astype("f"), np.where(spread > 1e-7 * size, spread, 1).astype("f"))

    def __call__(self, x: Any) -> Any:
        """Return rows scaled."""
        if hasattr(x, "indptr"):
            return type(x)((x.data / self.spread[x.indices], x.indices, x.indptr), x.shape)
        return ((x.reshape(len(x), -1) - self.mean) / self.spread).reshape(x.shape)

    def problem(self, features: Sequence[str]) -> str | None:
        """Say that columns are too far apart, or from 1, naming the worst; None: they are not."""
        size = np.hypot(self.mean, self.spread)
        large, small = int(size.argmax()), int(self.spread.argmin())
        if not max(size[large], 1) > APART * min(self.spread[small], 1):
            return None
        most, least = (float(f"{one:.2g}") for one in (size[large], self.spread[small]))
        return (
            f"Columns differ in size, from each other or from 1: {brief(features[large])} holds "
            f"values of about {most:g}, and {brief(features[small])} varies by about {least:g}"
        )
