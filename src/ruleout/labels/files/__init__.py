"""Label sets on disk: CSV, JSONL, Parquet and NPZ, by suffix.

Every format carries the class list, so that a class nobody ever ruled out is not lost. Files that
other programs wrote carry none; then `classes=` says what the classes are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO, TypeAlias

from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import Classes
from ruleout.labels.errors import LabelError
from ruleout.labels.files.archive import read_npz, write_npz
from ruleout.labels.files.parquet import read_parquet, write_parquet
from ruleout.labels.files.text import read_csv, read_jsonl, write_csv, write_jsonl
from ruleout.labels.sets import LabelSets

__all__ = ["SUFFIXES", "read", "write"]

Reader: TypeAlias = Callable[[Path, Classes | None, str, bool], LabelSets]
Writer: TypeAlias = Callable[[LabelSets, IO[bytes]], None]

SUFFIXES: dict[str, tuple[Reader, Writer]] = {
    ".csv": (read_csv, write_csv),
    ".jsonl": (read_jsonl, write_jsonl),
    ".parquet": (read_parquet, write_parquet),
    ".npz": (read_npz, write_npz),
}


def read(
    path: str | Path,
    *,
    classes: Classes | None = None,
    column: str = "excluded",
    unlabelled: bool = False,
) -> LabelSets:
    """Read label sets; the suffix says how."""
    file = Path(path)
    reader, _ = _by_suffix(file)
    try:
        return reader(file, classes, column, unlabelled)
    except LabelError as error:
        error.file = file
        raise


def write(sets: LabelSets, path: str | Path) -> None:
    """Write label sets; the suffix says how. The file appears whole or not at all."""
    _, writer = _by_suffix(Path(os.path.realpath(path)))  # of what a link leads to
    with atomic_write(path) as out:
        writer(sets, out)


def _by_suffix(file: Path) -> tuple[Reader, Writer]:
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise LabelError(
            f"unknown file type {suffix!r}", f"use one of {', '.join(SUFFIXES)}", file=file
        )
    return SUFFIXES[suffix]
