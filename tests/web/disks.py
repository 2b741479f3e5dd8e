"""Disks that are full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """Mount a disk of so many megabytes."""
    folder.mkdir(exist_ok=True)
    size = f"size={megabytes}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", size, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def may_mount(folder: Path) -> bool:
    """Tell whether disks can be mounted here."""
    try:
        with small_disk(folder, 1):
            return True
    except (OSError, subprocess.CalledProcessError):
        return False


def fill(folder: Path, leave: int = 0) -> Path:
    """Write a file until the disk is full, then give back `leave` bytes."""
    file = folder / "filler"
    written = 0
    with file.open("wb", buffering=0) as stream:
        for size in (1 << 16, 1 << 10, 1):
            try:
                while count := stream.write(bytes(size)):
                    written += count
            except OSError:
                continue
        stream.truncate(max(0, written - leave))
    return file
