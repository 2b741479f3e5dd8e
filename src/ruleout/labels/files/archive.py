"""NPZ: the packed bits as they are, without pickles, checked before memory is taken."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from ruleout.labels.classes import Classes
from ruleout.labels.errors import InputError, LabelError
from ruleout.labels.files.rows import find, parse_json, settle
from ruleout.labels.sets import LabelSets

__all__ = ["member", "names_in", "opened", "read_npz", "read_sets", "write_npz"]

_RATIO = 1100  # deflate shrinks at most about 1032 to 1: an archive that claims more is lying
_PIECE = 1 << 24  # bytes read at a time


def read_npz(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read what :func:`write_npz` wrote, or any archive with a 0/1 array named like `column`."""
    with opened(file) as archive:
        return read_sets(archive, wanted, column, unlabelled)


@contextmanager
def opened(file: Path) -> Iterator[zipfile.ZipFile]:
    """Open an archive; whatever is wrong with it becomes one sentence."""
    with open(file, "rb") as stream:  # a missing file stays a FileNotFoundError
        try:
            with zipfile.ZipFile(stream) as archive:
                yield archive
        except InputError:
            raise
        except Exception:  # zip, zlib, lzma, NumPy's header: each breaks in ways of its own
            raise LabelError("this is not a readable NPZ file", "write it again") from None


def names_in(archive: zipfile.ZipFile) -> list[str]:
    """Return the names of the arrays."""
    return [name[:-4] for name in archive.namelist() if name.endswith(".npy")]


def read_sets(
    archive: zipfile.ZipFile, wanted: Classes | None, column: str, unlabelled: bool
) -> LabelSets:
    """Read the packed bits, or a 0/1 array named like `column`, with the class list beside it."""
    names = names_in(archive)
    if {"packed", "meta"} <= set(names):
        meta = parse_json(member(archive, "meta").tobytes())
        inside = meta.get("classes") if isinstance(meta, dict) else meta
        return LabelSets.from_packed(member(archive, "packed"), settle(inside, wanted), unlabelled)
    find(column, names)
    own = member(archive, "classes").tolist() if "classes" in names else None
    classes = wanted if own is None else settle(own, wanted)
    return LabelSets(member(archive, column), classes, unlabelled=unlabelled)


def member(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """Read one array after its header, its size and the archive agree with each other."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        version = npy.read_magic(stream)
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(stream)
        if dtype.hasobject:
            raise LabelError(f"array {name!r} holds Python objects", "save plain numbers or text")
        size = math.prod(shape) * dtype.itemsize
        packed = min(info.compress_size, os.fstat(archive.fp.fileno()).st_size)  # type: ignore[union-attr]  # open
        if size != info.file_size - stream.tell() or size > packed * _RATIO:
            raise LabelError(f"array {name!r} is not of the size it claims", "write it again")
        data, done = np.empty(size, np.uint8), 0
        while piece := stream.read(_PIECE):
            data[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
            done += len(piece)
    if done != size:
        raise EOFError
    data.flags.writeable = False  # then LabelSets need no copy of their own
    return data.view(dtype).reshape(shape, order="F" if fortran else "C")


def write_npz(sets: LabelSets, out: IO[bytes]) -> None:
    """Write ``packed`` (uint8) and ``meta`` (JSON as bytes)."""
    meta = json.dumps({"format": "ruleout.LabelSets", "version": 1, "classes": sets.classes})
    np.savez(out, packed=sets.packed, meta=np.frombuffer(meta.encode(), np.uint8))
