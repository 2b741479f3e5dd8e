"""A folder of images; what a file is, its first bytes say, not its name."""

from __future__ import annotations

import hashlib
import os
import stat
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from ruleout.labels.errors import InputError
from ruleout.web.items.names import check_name, unique
from ruleout.web.records import Item

__all__ = ["image_type", "read_folder"]

_STARTS = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
_BITMAP_HEADERS = (12, 40, 52, 56, 64, 108, 124)  # sizes that BMP's second header may have
_PIECE = 1 << 20  # bytes read at a time


def image_type(head: bytes) -> str | None:
    r"""Return the media type of an image from its first 32 bytes, or None.

    PNG, JPEG, GIF, WebP and BMP are known. SVG and HTML are not images here: they can hold
    programs.

    >>> image_type(b"\x89PNG\r\n\x1a\n"), image_type(b"<svg xmlns='http://www.w3.org'>")
    ('image/png', None)
    """
    for start, kind in _STARTS.items():
        if head.startswith(start):
            return kind
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    header = int.from_bytes(head[14:18], "little")
    if head[:2] == b"BM" and head[6:10] == bytes(4) and header in _BITMAP_HEADERS:
        return "image/bmp"
    return None


def read_folder(folder: str | Path, *, most: int, largest: int) -> tuple[list[Item], list[str]]:
    """Read the images below a folder, sorted by name, and notes on what was left out.

    Hidden files are left out without a note. A link is followed where it leads to a file inside
    the folder.

    Parameters
    ----------
    most
        How many images there may be.
    largest
        How many bytes an image may have.

    Raises
    ------
    InputError
        If a link leads out of the folder, a name would mislead a reader, or a limit is passed.
    """
    root = Path(folder).resolve()
    items: list[Item] = []
    left_out: Counter[str] = Counter()
    meet = unique("name", "rename one of the files", root)
    for name in sorted(_files(root, left_out), key=os.fsencode):
        found = _image(root, name, largest)
        if isinstance(found, str):
            left_out[found] += 1
            continue
        check_name(name, "name", "rename the file", file=root)
        meet(name)
        items.append(found)
        if len(items) > most:
            raise InputError(f"there are more than {most:,} images", "split them", file=root)
    return items, [f"{count} left out: {reason}." for reason, count in sorted(left_out.items())]


def _files(root: Path, left_out: Counter[str]) -> Iterator[str]:
    """Yield the names of files below the folder; links to folders are not followed."""
    for place, folders, files in os.walk(root, onerror=_unreadable):
        for name in [*folders, *files]:
            path = Path(place, name)
            if path.is_symlink() and not name.startswith("."):
                _check_link(path, root)
        linked = [name for name in folders if Path(place, name).is_symlink()]
        left_out.update(["links to folders"] * len(linked))
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (
            Path(place, name).relative_to(root).as_posix()
            for name in files
            if not name.startswith(".")
        )


def _unreadable(error: OSError) -> None:
    raise InputError(
        "the folder cannot be read", "give its path and the right to read it", file=error.filename
    )


def _check_link(path: Path, root: Path) -> None:
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):
        return  # leads nowhere: left out with a note, like any other file that is no image
    if not target.is_relative_to(root):
        raise InputError(
            f"the link {path.relative_to(root).as_posix()!a} leads out of the folder",
            "copy what it leads to into the folder",
            file=root,
        )


def _image(root: Path, name: str, largest: int) -> Item | str:
    """Return the image, or why the file is none."""
    path = root / name
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # opening a pipe would wait for ever
            return "not plain files"
        with open(path, "rb") as stream:
            head = stream.read(32)
            if image_type(head) is None:
                return "not PNG, JPEG, GIF, WebP or BMP images"
            if status.st_size > largest:
                raise InputError(
                    f"the image {name!a} has {status.st_size:,} bytes, more than {largest:,}",
                    "make it smaller",
                    file=root,
                )
            whole = hashlib.sha256(head)
            while piece := stream.read(_PIECE):
                whole.update(piece)
    except OSError:
        return "files that cannot be read"
    return Item(name=name, kind="image", path=name, sha256=whole.hexdigest())
