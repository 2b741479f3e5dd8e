"""Files and folders that appear whole or not at all."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import IO


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes to; it takes its name only when the block ends well.

    What is written lies in a hidden folder beside it until then, and goes when the block raises.
    A link stays a link, and a file that was there keeps its permissions.
    """
    file = Path(os.path.realpath(os.path.expanduser(path)))
    if not file.parent.is_dir():
        raise FileNotFoundError(f"the folder {file.parent} does not exist; make it first")
    if file.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give the name of a file")
    try:
        hidden = tempfile.TemporaryDirectory(dir=file.parent, prefix=".ruleout-")
    except OSError as error:
        error.filename = str(file.parent)  # the hidden name would puzzle
        raise
    with hidden as folder:
        part = Path(folder, file.name)
        with open(part, "wb") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        if file.exists():
            shutil.copymode(file, part)
        os.replace(part, file)


def write_text(path: str | Path, content: str) -> Path:
    """Write a file that appears whole or not at all; return where it is."""
    with atomic_write(path) as out:
        out.write(content.encode())
    return Path(path)


@contextmanager
def atomic_folder(
    target: Path, move: Callable[[Path, Path], object] = Path.rename
) -> Iterator[Path]:
    """Yield a hidden folder to fill; `move` gives it its name only when the block ends well."""
    part = target.parent / f".ruleout-{token_hex(8)}"
    try:
        part.mkdir()
        yield part
        _sync(part)
        move(part, target)
    except OSError as error:
        if str(part) in str(error.filename or part):
            error.filename, error.filename2 = str(target), None  # the hidden name would puzzle
        raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
    _sync(target.parent)


def _sync(folder: Path) -> None:
    """Bring the names in a folder to disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
