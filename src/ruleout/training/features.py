"""The examples: resident on the device when they fit, else read from disk batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ruleout.labels.errors import InputError
from ruleout.training.memory import room

__all__ = ["Features", "check_features", "fingerprint"]

_BLOCK = 64 << 20  # bytes looked at in one go
_LINE = 32  # numbers in a cache line of a GPU: weights of whole lines move a sixth faster


def check_features(x: Any, what: str = "x") -> Any:
    """Return `x` as something that can be indexed by rows, all numbers finite.

    A float array, an ``np.memmap`` or a SciPy sparse matrix stays as it is.
    """
    if hasattr(x, "tocsr"):
        sparse = x.tocsr()
        if not np.isfinite(sparse.data).all():
            raise InputError(f"{what} holds a value that is not finite", _MEND)
        return sparse
    if isinstance(x, Tensor):
        x = (x.float() if x.dtype is torch.bfloat16 else x).detach().cpu().numpy()
    array: NDArray[Any] = x if isinstance(x, np.ndarray) else np.asarray(x)
    if array.dtype == object and hasattr(x, "to_numpy"):  # a DataFrame of pandas' own integers
        array = _numbers(x, array)
    if array.ndim < 2 or 0 in array.shape[1:]:
        raise InputError(f"{what} has shape {array.shape}", "give rows × features")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has dtype {array.dtype}", "give numbers")
    if array.dtype.kind == "f":
        _check_finite(array, what)
    return array


def _numbers(frame: Any, otherwise: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.asarray(frame.to_numpy(dtype=float, na_value=np.nan))
    except (TypeError, ValueError):
        return otherwise


_MEND = "fill in or leave out missing values first"


def _check_finite(array: NDArray[Any], what: str) -> None:
    rows = max(1, _BLOCK // max(1, array[:1].nbytes))
    for start in range(0, len(array), rows):
        block = array[start : start + rows].reshape(len(array[start : start + rows]), -1)
        bad = ~np.isfinite(block)
        if bad.any():
            row, column = np.argwhere(bad)[0]
            value = float(block[row, column])
            raise InputError(
                f"{what} holds {value}", _MEND, row=start + int(row), column=int(column)
            )


class Features:
    """Rows of numbers, handed out in batches on the device.

    Parameters
    ----------
    x
        ``[n, ...]``: an array, a memory map or a sparse matrix, as :func:`check_features` gives it.
    shape
        The shape in which a model reads an example; None for flat rows that end in a 1, so that a
        first layer needs no bias of its own (columns are filled up with 0 to a multiple of 8, on a
        GPU to whole cache lines).
    dtype, device
        Of the batches.
    """

    def __init__(
        self, x: Any, shape: tuple[int, ...] | None, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.n, self.d = x.shape[0], prod(x.shape[1:])
        self.shape = shape
        fill = _LINE if device.type == "cuda" and self.d >= 4 * _LINE else 8
        self.width = self.d if shape else -fill * (-(self.d + 1) // fill)
        self.dtype, self.device = dtype, device
        self._x = x
        self._numbers = np.float64 if dtype is torch.float64 else np.float32
        self._resident: Tensor | None = None
        if self.n * self.width * dtype.itemsize <= 0.5 * room(device):
            self._resident = self._load(slice(None))

    @property
    def resident(self) -> bool:
        """Whether all rows are held on the device."""
        return self._resident is not None

    @property
    def tensor(self) -> Tensor:
        """All rows, ``[n, width]``; only when they are resident."""
        assert self._resident is not None
        return self._resident

    def _load(self, rows: Any) -> Tensor:
        """Read rows, given by a range or by number, onto the device."""
        count = len(range(*rows.indices(self.n))) if isinstance(rows, slice) else len(rows)
        out = torch.zeros(count, self.width, dtype=self.dtype, device=self.device)
        step = max(1, _BLOCK // (8 * max(1, self.d)))
        for start in range(0, count, step):
            if isinstance(rows, slice):
                first = (rows.start or 0) + start
                piece: Any = slice(first, min(first + step, (rows.start or 0) + count))
            else:
                piece = rows[start : start + step]
            block = self._x[piece]
            block = block.toarray() if hasattr(block, "toarray") else block
            flat = torch.from_numpy(np.array(block, self._numbers).reshape(-1, self.d))
            out[start : start + step, : self.d] = flat.to(self.device)
        if not self.shape:
            out[:, self.d] = 1
        return out

    def take(self, rows: Tensor) -> Tensor:
        """Return the examples of `rows` ``[..., B]``: ``[..., B, width]``, or their shape."""
        flat = rows.reshape(-1)
        if self._resident is None:
            batch = self._load(flat.cpu().numpy())
        else:
            batch = self._resident.index_select(0, flat)
        return batch.view(*rows.shape, *(self.shape or (self.width,)))

    def print(self) -> str:
        """Return the fingerprint of all rows."""
        return fingerprint(self._x)

    def slice(self, piece: slice) -> Tensor:
        """Return the examples of a range of rows."""
        batch = self._load(piece) if self._resident is None else self._resident[piece]
        return batch.view(len(batch), *(self.shape or (self.width,)))


def fingerprint(x: Any, sets: Any = ()) -> str:
    """Return a sha256 over features and label sets: what a model was trained on.

    Of more than 1 GiB, evenly spaced rows are read.
    """
    digest = sha256(repr((x.shape, str(x.dtype))).encode())
    csr = hasattr(x, "indptr")
    row = 1 if csr else max(1, int(x[:1].nbytes)) * _EVERY
    for block in (x.data, x.indices, x.indptr) if csr else _spaced(x, max(1, (_MOST // row))):
        digest.update(np.ascontiguousarray(block).tobytes())
    for one in sets:
        digest.update(one.packed.tobytes())
        digest.update(repr(one.classes).encode())
    return digest.hexdigest()


_MOST, _EVERY = 1 << 30, 256  # bytes, rows


def _spaced(x: NDArray[Any], most: int) -> Iterator[NDArray[Any]]:
    """Walk over blocks of 256 rows, at most `most` of them, evenly spaced."""
    blocks = -(-len(x) // _EVERY)
    for block in range(0, blocks, max(1, -(-blocks // most))):
        yield x[block * _EVERY : (block + 1) * _EVERY]
