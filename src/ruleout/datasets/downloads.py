"""Where data files lie, and how an absent one gets there: whole and checked, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypeVar

from ruleout.datasets.errors import DataError
from ruleout.datasets.registry import DataFile
from ruleout.labels.atomic import atomic_write

__all__ = ["data_root", "obtain", "present"]

T = TypeVar("T")


def data_root() -> Path:
    """Return the folder of the data: ``$RULEOUT_DATA``, else ``ruleout`` in the user's cache.

    Examples
    --------
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, RULEOUT_DATA="/srv/data"):
    ...     print(data_root().as_posix())
    /srv/data
    """
    if chosen := os.environ.get("RULEOUT_DATA"):
        return Path(chosen).expanduser()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not cache.is_absolute():  # the XDG rules: a relative path is to be ignored
        cache = Path.home() / ".cache"
    return cache / "ruleout"


def present(entry: DataFile, root: Path) -> Path | None:
    """Return where a file lies under `root`, None if it is absent; its content is not looked at."""
    for name in (entry.name, *entry.also):
        path = root / entry.folder / name
        if os.path.isfile(path):  # False also where looking is not allowed
            return path
    return None


def obtain(entry: DataFile, root: Path, read: Callable[[Path], T]) -> T:
    """Read a file under `root`, by whichever of its names; download it first if it is absent.

    `read` raises DataError for a file that is not what it should be; such a download is thrown
    away.
    """
    if (there := present(entry, root)) is not None:
        return read(there)
    file = root / entry.folder / entry.name
    try:
        return _download(entry, file, read)
    except ImportError:
        raise _missing(entry, file, "pooch is not installed", "pip install pooch, or ") from None
    except DataError as error:
        raise _missing(entry, file, f"what arrived is wrong: {error.problem}") from None
    except Exception as error:  # the network, the disk: each breaks in ways of its own
        text = " ".join(f"{type(error).__name__}: {error}".split())
        raise _missing(entry, file, text if len(text) <= 80 else f"{text[:80]}…") from None


def _download(entry: DataFile, file: Path, read: Callable[[Path], T]) -> T:
    """Download under another name, read, and only then give the file its own name."""
    pooch = import_module("pooch")  # not an import statement: it may be absent
    fetch = pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None)
    file.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(file) as out:
        fetch(entry.url, _Capped(out, entry.most), None)
        out.flush()
        return read(Path(out.name))


def _missing(entry: DataFile, file: Path, why: str, first: str = "") -> DataError:
    problem = f"the file is missing and cannot be downloaded ({why})"
    return DataError(problem, f"{first}save {entry.url} in the folder {file.parent}", file=file)


class _Capped:
    """A file that refuses more bytes than it can need, so that no server fills the disk."""

    def __init__(self, out: IO[bytes], most: int) -> None:
        self._out, self._left = out, most

    def write(self, data: bytes) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise DataError("it is too long")
        return self._out.write(data)

    def flush(self) -> None:
        self._out.flush()
