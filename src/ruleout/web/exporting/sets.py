"""Label sets on disk with the names of their items, readable by ``LabelSets.read``."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa

from ruleout.labels import LabelSets
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError
from ruleout.labels.files.rows import COLUMN
from ruleout.web.exporting.cells import FORMULA, write_rows

__all__ = ["write_sets"]


def write_sets(
    sets: LabelSets,
    items: Sequence[str],
    path: str | Path,
    *,
    weights: Sequence[float] | np.ndarray[Any, Any] | None = None,
    column: str = "item",
) -> None:
    """Write label sets with a column of item names, and one of weights if given.

    The suffix says how: ``.csv``, ``.jsonl``, ``.parquet`` or ``.npz``. The file appears whole or
    not at all, and ``LabelSets.read`` reads it.

    Parameters
    ----------
    sets, items
        From :func:`known`.
    weights
        From :func:`weights`, into the column ``weight``.
    column
        What the column of names is called (an array of an NPZ file is always ``item``). ``file``
        makes it the label file of a folder of images, as ``ruleout fit FOLDER --labels-file FILE``
        takes it.
    """
    if len(items) != len(sets) or (weights is not None and len(weights) != len(sets)):
        raise InputError(f"{len(sets)} rows but {len(items)} items", "give one name per row")
    trust = None if weights is None else [float(weight) for weight in weights]
    file = Path(os.path.realpath(path))
    if file.suffix.lower() == ".npz":
        _npz(sets, items, file, trust)
        return
    safe = column == "file" and file.suffix.lower() == ".csv"
    names = [_path(item) if safe else item for item in items]
    fields = [(column, pa.string()), (COLUMN, pa.list_(pa.string()))]
    columns: list[Sequence[Any]] = [names, [list(map(str, row)) for row in sets]]
    if trust is not None:
        fields.append(("weight", pa.float64()))
        columns.append(trust)
    rows = list(zip(*columns, strict=True))
    write_rows(file, pa.schema(fields), rows, [str(name) for name in sets.classes])


def _path(name: str) -> str:
    """Write a path so that it is no formula and still a path: ``./=1+1.png``."""
    return f"./{PurePosixPath(name)}" if name.startswith(FORMULA) else name


def _npz(sets: LabelSets, items: Sequence[str], file: Path, weights: list[float] | None) -> None:
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    arrays: dict[str, Any] = {"item": np.array(list(items), np.str_)}
    if weights is not None:
        arrays["weight"] = np.array(weights)
    arrays |= {"packed": sets.packed, "meta": np.frombuffer(meta.encode(), np.uint8)}
    with atomic_write(file) as out:
        np.savez(out, **arrays)
