"""Folders that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ruleout.labels.atomic import atomic_folder
from ruleout.labels.errors import InputError

__all__ = ["whole_folder"]


@contextmanager
def whole_folder(path: str | Path) -> Iterator[Path]:
    """Yield a hidden folder to fill; it takes its name only when the block ends well.

    The name must be free, or that of an empty folder: nothing is ever written over.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     with whole_folder(Path(place, "new")) as part:
    ...         _ = (part / "a.txt").write_text("whole")
    ...     [file.name for file in Path(place, "new").iterdir()]
    ['a.txt']
    """
    with atomic_folder(_free(path), _take) as part:
        yield part


def _take(part: Path, target: Path) -> None:
    if target.exists():
        target.rmdir()  # empty, or this raises
    part.rename(target)


def _free(path: str | Path) -> Path:
    target = Path(os.path.realpath(Path(path).expanduser()))
    if not target.parent.is_dir():
        raise InputError("the folder does not exist", "make it first", file=target.parent)
    if target.exists() and not target.is_dir():
        raise InputError("this is a file", "give the name of a new folder", file=target)
    if target.is_dir() and any(target.iterdir()):
        raise InputError("the folder is not empty", "give the name of a new one", file=target)
    return target
