"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["atomic_write"]


@contextmanager
def atomic_write(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file to write bytes to; it takes its name only when the block ends well.

    What is written lies in a hidden folder beside it until then, and goes when the block raises.
    A link stays a link, and a file that was there keeps its permissions.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder, "a.txt")) as out:
    ...         _ = out.write(b"whole")
    ...     Path(folder, "a.txt").read_text()
    'whole'
    """
    file = Path(os.path.realpath(path))
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
