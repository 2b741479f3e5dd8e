"""Where data files lie, and how an absent one gets there: whole and checked, or not at all."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypeVar

from ruleout.datasets.dataset import DataError
from ruleout.labels.atomic import atomic_write

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


@dataclass(frozen=True)
class DataFile:
    """One file of a data set.

    `sha256` is of the content after decompression: packing a file again changes nothing. Of a text
    table it is of the cells, one line per row with commas between them, so that spaces, line ends
    and KEEL's header change nothing. It is empty where the content is checked by other means.
    """

    folder: str  # under the data root
    name: str  # there and at its source
    sha256: str
    url: str
    most: int  # bytes that it can take, as it is downloaded
    shape: tuple[int, ...] = ()  # sizes of an idx header; else rows, and bytes or columns of each
    also: tuple[str, ...] = ()  # other names under which it may lie there

    def present(self, root: Path) -> Path | None:
        """Return where it lies under `root`, None if it is absent; its content is not looked at."""
        for name in (self.name, *self.also):
            path = root / self.folder / name
            if os.path.isfile(path):  # False also where looking is not allowed
                return path
        return None

    def obtain(self, root: Path, read: Callable[[Path], T]) -> T:
        """Read the file under `root`, by whichever of its names; download it first if absent.

        `read` raises DataError for a file that is not what it should be; such a download is
        thrown away.
        """
        if (there := self.present(root)) is not None:
            return read(there)
        file = root / self.folder / self.name
        try:
            return self._download(file, read)
        except ImportError:
            raise self._missing(file, "pooch is not installed", "pip install pooch, or ") from None
        except DataError as error:
            raise self._missing(file, f"what arrived is wrong: {error.problem}") from None
        except Exception as error:  # the network, the disk: each breaks in ways of its own
            text = " ".join(f"{type(error).__name__}: {error}".split())
            raise self._missing(file, text if len(text) <= 80 else f"{text[:80]}…") from None

    def _download(self, file: Path, read: Callable[[Path], T]) -> T:
        """Download under another name, read, and only then give the file its own name."""
        pooch = import_module("pooch")  # not an import statement: it may be absent
        fetch = pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None)
        file.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(file) as out:
            fetch(self.url, _Capped(out, self.most), None)
            out.flush()
            return read(Path(out.name))

    def _missing(self, file: Path, why: str, first: str = "") -> DataError:
        problem = f"the file is missing and cannot be downloaded ({why})"
        return DataError(problem, f"{first}save {self.url} in the folder {file.parent}", file=file)


class _Capped:
    """A file that refuses more bytes than it can need, so that no server fills the disk."""

    def __init__(self, out: IO[bytes], most: int) -> None:
        self._out, self._left = out, most
        self.flush = out.flush

    def write(self, data: bytes) -> int:
        self._left -= len(data)
        if self._left < 0:
            raise DataError("it is too long")
        return self._out.write(data)
