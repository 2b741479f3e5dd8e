"""The update as one Triton kernel, for CUDA.

It reads and writes weights and two moments and reads the gradient: 28 bytes per parameter in
float32. Written as single operations it moves several times as much.
"""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl
from torch import Tensor

from ruleout.training.optimizers import BETA1, BETA2, Rates

__all__ = ["update"]


@triton.jit
def _move(
    p, g, m, v, size, epsilon, decay, shrink, B1: tl.constexpr, B2: tl.constexpr, KIND: tl.constexpr
):
    if KIND == "adamw":
        p = p * shrink
    else:
        g = g + decay * p
    if KIND == "sgd":
        return p - size * g, m, v
    m = m + (1 - B1) * (g - m)
    v = B2 * v + (1 - B2) * g * g
    return p - size * m / (tl.sqrt(v) + epsilon), m, v


@triton.jit
def _update(
    P,
    G,
    M,
    V,
    SIZE,
    EPSILON,
    DECAY,
    SHRINK,
    STRIDE,
    N,
    C,
    B1: tl.constexpr,
    B2: tl.constexpr,
    KIND: tl.constexpr,
    BLOCK: tl.constexpr,
):
    blocks = tl.cdiv(N, BLOCK)  # of each model
    model = (tl.program_id(0) // blocks).to(tl.int64)
    inside = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    keep = inside < N
    at = model * N + inside
    c = model % C
    t = model // C
    size, epsilon = tl.load(SIZE + t * STRIDE + c), tl.load(EPSILON + t * STRIDE)
    decay, shrink = tl.load(DECAY + c), tl.load(SHRINK + c)
    p, g = tl.load(P + at, keep), tl.load(G + at, keep)
    if KIND == "sgd":
        p, _, _ = _move(p, g, g, g, size, epsilon, decay, shrink, B1, B2, KIND)
    else:
        m, v = tl.load(M + at, keep), tl.load(V + at, keep)
        p, m, v = _move(p, g, m, v, size, epsilon, decay, shrink, B1, B2, KIND)
        tl.store(M + at, m, keep)
        tl.store(V + at, v, keep)
    tl.store(P + at, p, keep)


def update(name: str, p: Tensor, g: Tensor, moments: Sequence[Tensor], by: Rates) -> None:
    """Move a parameter ``[T, C, ...]`` by its gradient, the first ``A`` trials."""
    active, models = by.size.shape
    n = p[0, 0].numel()
    m, v = moments if moments else (p, p)
    block = 1024
    grid = (triton.cdiv(n, block) * active * models,)
    _update[grid](p, g, m, v, *by, by.size.stride(0), n, models, BETA1, BETA2, name, block)
