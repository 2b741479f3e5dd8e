"""Rows that are equal, found by a hash and then compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ruleout.labels import bits

__all__ = ["equal_rows"]


def equal_rows(x: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group the rows that occur more than once.

    Returns
    -------
    order, starts
        The rows that have an equal, group by group, and where each group starts among them.

    Examples
    --------
    >>> equal_rows(np.array([[1, 2], [0, 0], [1, 2], [3, 4]], np.float32))
    (array([0, 2]), array([0]))
    """
    codes = _hashes(x)
    order = np.argsort(codes, kind="stable")
    twin = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    for piece in bits.chunks(len(twin), x.shape[1]):  # the hash may lie
        here = twin[piece]
        equal = (x[order[here]] == x[order[here + 1]]).all(1)
        twin[piece] = np.where(equal, here, -1)
    twin = twin[twin >= 0]
    member = np.zeros(len(x), np.bool_)
    member[twin] = member[twin + 1] = True
    follows = np.zeros(len(x), np.bool_)
    follows[twin + 1] = True
    return order[member], np.flatnonzero(~follows[member])


def _hashes(x: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Hash each row: a random combination of its bits, modulo 2^64."""
    factors = np.random.default_rng(0).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * 2 + 1
    codes = np.empty(len(x), np.uint64)
    for piece in bits.chunks(*x.shape):
        words = (x[piece] + np.float32(0)).view(np.uint32)  # -0 becomes 0
        codes[piece] = (words * factors).sum(1, dtype=np.uint64)
    return codes
