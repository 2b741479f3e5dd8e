"""What every loader returns."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import ClassName


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Rows with their true labels, in memory.

    >>> from ruleout.datasets import load
    >>> load("digits")
    Dataset('digits', 1797 rows of shape (64,), 10 classes, no test rows)
    """

    name: str  #: as :func:`~ruleout.datasets.load` knows it
    #: ``[n, d]``, one flattened row per example. Pixels lie in [0, 1], those of CIFAR-10 are
    #: normalised per channel; features of tables are as the file has them
    x_train: NDArray[np.float32]
    y_train: NDArray[np.int64]  #: ``[n]``, positions among `classes`
    x_test: NDArray[np.float32] | None = None  #: the official test rows; None: nothing split off
    y_test: NDArray[np.int64] | None = None  #: their labels, None without them
    classes: tuple[ClassName, ...]  #: the class names
    shape: tuple[int, ...]  #: of a row before it is flat: ``(channels, height, width)`` or ``(d,)``
    source: str  #: one sentence: where the files come from

    @property
    def train(self) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """``(x_train, y_train)``."""
        return self.x_train, self.y_train

    @property
    def test(self) -> tuple[NDArray[np.float32], NDArray[np.int64]] | None:
        """``(x_test, y_test)``, or None for a data set without an official split."""
        return None if self.x_test is None or self.y_test is None else (self.x_test, self.y_test)

    def __repr__(self) -> str:
        test = "no test rows" if self.y_test is None else f"{len(self.y_test)} test rows"
        rows = f"{len(self.y_train)} rows of shape {self.shape}"
        return f"Dataset({self.name!r}, {rows}, {len(self.classes)} classes, {test})"
