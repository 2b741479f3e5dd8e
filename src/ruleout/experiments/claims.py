"""Claims: a task is worked on by one process at a time, and a killed process claims nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: one driver at a time
    fcntl = None  # type: ignore[assignment]

__all__ = ["claim", "claimed"]


@contextmanager
def claim(folder: Path, key: str) -> Iterator[bool]:
    """Claim a task while the block runs; False where another process has it.

    The claim is a lock on a file, which the kernel lets go when its process ends, however it ends.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place, claim(Path(place), "a") as first:
    ...     with claim(Path(place), "a") as second:
    ...         print(first, second)
    True False
    """
    if fcntl is None:
        yield True
        return
    handle = _locked(folder / key)
    if handle is None:
        yield False
        return
    try:
        yield True
    finally:
        (folder / key).unlink(missing_ok=True)  # while the lock is held: see _locked
        os.close(handle)
        with suppress(OSError):  # others have claims there
            folder.rmdir()


def claimed(folder: Path) -> set[str]:
    """Return the keys that some process has claimed just now."""
    if fcntl is None:
        return set()
    try:
        names = os.listdir(folder)
    except FileNotFoundError:  # the folder goes with the last claim
        return set()
    return {name for name in names if not _free(folder / name)}


def _free(file: Path) -> bool:
    try:
        handle = os.open(file, os.O_RDWR)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def _locked(file: Path) -> int | None:
    """Return a handle that holds the lock, None where another has it.

    A file that was removed between opening and locking is nobody's; then a new one is made.
    """
    while True:
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:  # the folder was removed meanwhile
            continue
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.stat(file).st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)
