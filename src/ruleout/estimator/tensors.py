"""Weights on disk: a safetensors file is looked at closely before any memory is taken."""

from __future__ import annotations

import json
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from ruleout.labels.errors import InputError

__all__ = ["read_weights", "weights_bytes"]

_HEADER = 1 << 20  # bytes that a header may take
_KINDS = {
    "F64": torch.float64,
    "F32": torch.float32,
    "I64": torch.int64,
    "I32": torch.int32,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class Entry(NamedTuple):
    """What a header says about one tensor."""

    kind: str
    shape: tuple[int, ...]
    begin: int
    end: int


def weights_bytes(module: nn.Module) -> bytes:
    """Return all weights and buffers of a module as a safetensors file."""
    return save({name: value.cpu().contiguous() for name, value in module.state_dict().items()})


def read_weights(
    file: Path, like: nn.Module, *, floats: torch.dtype, size: int, digest: str
) -> dict[str, Tensor]:
    """Read the weights of a module.

    Parameters
    ----------
    file
        A safetensors file.
    like
        The module they are for; it may lie on the meta device, without memory.
    floats
        The dtype of its weights.
    size, digest
        Bytes and sha256 that the file must have.
    """
    if not file.is_file():
        _refuse(file, "the weights are missing", "copy the whole folder")
    found = file.stat().st_size
    if found != size:
        _refuse(file, f"the file has {found:,} bytes instead of {size:,}", "copy it again")
    with file.open("rb") as stream:
        entries = _header(file, stream, size)
        _compare(file, entries, like, floats)
        stream.seek(0)
        content = stream.read(size)
    if sha256(content).hexdigest() != digest:
        _refuse(file, "the content is not what card.json describes", "copy the whole folder again")
    weights = load(content)
    if not all(bool(torch.isfinite(value).all()) for value in weights.values()):
        _refuse(file, "a weight is not a finite number", "train the model again")
    return weights


def _refuse(file: Path, problem: str, remedy: str) -> NoReturn:
    raise InputError(problem, remedy, file=file)


def _header(file: Path, stream: BinaryIO, size: int) -> dict[str, Entry]:
    """Return what the header says, once it is shown to describe the file to the last byte."""
    start = int.from_bytes(stream.read(8), "little")
    if size < 8 or start > _HEADER or start > size - 8:
        _lies(file, f"it claims {start:,} bytes for itself")
    try:
        told = json.loads(stream.read(start))
        entries = {name: _entry(one) for name, one in told.items() if name != "__metadata__"}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        _lies(file, "it is not a table of tensors")
    place = 0
    for name, one in sorted(entries.items(), key=lambda item: item[1][2:]):
        if one.kind not in _KINDS:
            _lies(file, f"tensor {name[:60]!r} is of an unknown kind")
        wide = prod(one.shape) * _KINDS[one.kind].itemsize
        if one.begin != place or one.end - one.begin != wide or min(one.shape, default=0) < 0:
            _lies(file, f"tensor {name[:60]!r} does not lie where it should")
        place = one.end
    if place != size - 8 - start:
        _lies(file, "its tensors do not fill the file")
    return entries


def _entry(told: Any) -> Entry:
    shape, (begin, end) = tuple(told["shape"]), told["data_offsets"]
    if not all(type(number) is int for number in (*shape, begin, end)):
        raise TypeError
    return Entry(str(told["dtype"]), shape, begin, end)


def _lies(file: Path, problem: str) -> NoReturn:
    _refuse(file, f"the header of the weights is wrong: {problem}", "copy the whole folder again")


def _compare(file: Path, entries: dict[str, Entry], like: nn.Module, floats: torch.dtype) -> None:
    """Raise unless the file holds exactly the tensors of the module."""
    wanted = like.state_dict()
    for name, value in wanted.items():
        kind = _NAMES.get(floats if value.is_floating_point() else value.dtype)
        found = entries.get(name)
        if found is None or found.shape != tuple(value.shape) or found.kind != kind:
            told = "nothing" if found is None else f"{found.kind} {list(found.shape)}"
            _refuse(
                file,
                f"the model needs {kind} {list(value.shape)} as {name!r}, and the file has {told}",
                "card.json and the weights belong to different models",
            )
    for name in entries:
        if name not in wanted:
            _refuse(
                file,
                f"the file holds {name[:60]!r}, which the model does not have",
                "card.json and the weights belong to different models",
            )
