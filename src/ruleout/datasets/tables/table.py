"""What reading a user's data gives."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import ClassName
from ruleout.labels.sets import LabelSets

__all__ = ["Table"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows of a user's data, in memory.

    Parameters
    ----------
    x
        float32 ``[n, d]``, one flattened row per example, every value finite.
    shape
        What a row is before flattening: ``(d,)``, or ``(channels, height, width)``.
    features
        The name of each column of `x`; empty for images.
    sets
        What was ruled out; None where nobody asked.
    labels
        The true label of each row, as class names; None where nobody asked.
    classes
        The class names; None without sets and labels.
    row_names
        The file name of each image, or what the column of names holds, else None.
    source
        The file or folder.
    sha256
        Of the bytes read.
    reading
        How it was read, as plain JSON: ``read_table(other, reading=...)`` does the same again.
    notes
        Sentences that a user should see once.
    """

    x: NDArray[np.float32]
    shape: tuple[int, ...]
    features: tuple[str, ...]
    sets: LabelSets | None = None
    labels: NDArray[Any] | None = None
    classes: tuple[ClassName, ...] | None = None
    row_names: tuple[str, ...] | None = None
    source: Path
    sha256: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        parts = [f"{len(self)} rows of shape {self.shape}"]
        if self.classes is not None:
            parts.append(f"{len(self.classes)} classes")
        if self.sets is not None:
            parts.append("label sets")
        if self.labels is not None:
            parts.append("true labels")
        return f"Table({self.source.name!r}, {', '.join(parts)})"
