"""Where data files lie, and how an absent one gets there: whole and checked, or not at all."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TypeVar

from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import DataError

T = TypeVar("T")


def data_root() -> Path:
    """Return the folder of the data: ``$RULEOUT_DATA``, else ``ruleout`` in the user's cache.

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

    `sha256` is of the unpacked content; of a text table it is of the cells, so that spaces, line
    ends and KEEL's header change nothing. It is empty where the content is checked otherwise.
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
        """Read the file under `root`; download it if absent, kept only if `read` accepts it."""
        if (there := self.present(root)) is not None:
            return read(there)
        file = root / self.folder / self.name
        try:
            pooch = import_module("pooch")  # not an import statement: it may be absent
            fetch = pooch.HTTPDownloader(progressbar=find_spec("tqdm") is not None)
            file.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(file) as out:  # under another name, until it was read
                fetch(self.url, _Capped(out, self.most), None)
                out.flush()
                return read(Path(out.name))
        except ImportError:
            why, first = "pooch is not installed", "pip install pooch, or "
        except DataError as error:
            why, first = f"what arrived is wrong: {error.problem}", ""
        except Exception as error:  # the network, the disk: each breaks in ways of its own
            text = " ".join(f"{type(error).__name__}: {error}".split())
            why, first = text if len(text) <= 80 else f"{text[:80]}…", ""
        problem = f"the file is missing and cannot be downloaded ({why})"
        raise DataError(problem, f"{first}save {self.url} in the folder {file.parent}", file=file)


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
