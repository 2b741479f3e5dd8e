"""Kernels for NVIDIA GPUs, in Triton and (`mlp_backward.cu`, `fused_adam.cu`) in CUDA.

- `update`, Triton: the optimizer's step reads and writes weights and two moments and reads the
  gradient: 28 bytes per parameter in float32. Single operations would move several times as much.
- `up`, Triton, and `down`, CUDA: a perceptron from its hidden layer to the logits and back, each
  in one pass over the hidden layer.
- `move`, CUDA, for Hopper GPUs: the gradient of the first layer and the step by it in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import triton
import triton.language as tl
from torch import Tensor

from ruleout.training.device import tf32
from ruleout.training.gpu_sources import Kernel, compiled
from ruleout.training.optimizers import BETA1, BETA2, Product, Rates

CLASSES = 16  # the most that `up` serves: what a tensor core takes at least


@triton.jit
def _step(
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
        p, _, _ = _step(p, g, g, g, size, epsilon, decay, shrink, B1, B2, KIND)
    else:
        m, v = tl.load(M + at, keep), tl.load(V + at, keep)
        p, m, v = _step(p, g, m, v, size, epsilon, decay, shrink, B1, B2, KIND)
        tl.store(M + at, m, keep)
        tl.store(V + at, v, keep)
    tl.store(P + at, p, keep)


def update(kind: str, p: Tensor, g: Tensor, moments: Sequence[Tensor], by: Rates) -> None:
    """Move a parameter ``[T, C, ...]`` by its gradient, the first ``A`` trials."""
    active, models = by.size.shape
    n = p[0, 0].numel()
    m, v = moments if moments else (p, p)
    block = 1024
    grid = (triton.cdiv(n, block) * active * models,)
    _update[grid](p, g, m, v, *by, by.size.stride(0), n, models, BETA1, BETA2, kind, block)


@triton.jit
def _tf32(x):
    return tl.inline_asm_elementwise(
        "cvt.rna.tf32.f32 $0, $1;", "=r,r", [x], dtype=tl.float32, is_pure=True, pack=1
    )


@triton.jit
def _up(
    X,
    W,
    BIAS,
    OUT,
    N,
    K,
    SIZE,
    KP: tl.constexpr,
    HIDDEN: tl.constexpr,
    BATCH: tl.constexpr,
    PRECISION: tl.constexpr,
):
    blocks = tl.cdiv(SIZE, BATCH)
    place = tl.num_programs(0) - 1 - tl.program_id(0)  # `down` finds the last in the cache
    model = (place // blocks).to(tl.int64)
    k = tl.arange(0, KP)[:, None]
    b = place % blocks * BATCH + tl.arange(0, BATCH)
    out = tl.zeros((KP, BATCH), tl.float32)
    for start in range(0, N, HIDDEN):
        h = start + tl.arange(0, HIDDEN)
        rows = h[:, None]
        x = tl.load(X + (model * N + rows) * SIZE + b, (rows < N) & (b < SIZE), 0.0)
        w = tl.load(W + (model * K + k) * N + h, (k < K) & (h < N), 0.0)
        out = tl.dot(w, tl.where(x <= 0, 0.0, x), out, input_precision=PRECISION)
    out += tl.load(BIAS + model * K + k, k < K, 0.0)
    tl.store(OUT + (model * K + k) * SIZE + b, out, (k < K) & (b < SIZE))


def up(hidden: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return logits ``[A, C, k, B]`` from a hidden layer ``[A, C, h, B]`` before its ReLU."""
    *lead, n, size = hidden.shape
    k, block = weight.shape[2], 128
    out = hidden.new_empty(*lead, k, size)
    grid = (triton.cdiv(size, block) * lead[0] * lead[1],)
    made = "tf32" if tf32() else "tf32x3"  # which is as exact as float32
    _up[grid](hidden, weight, bias, out, n, k, size, CLASSES, 32, block, made, num_stages=3)
    return out


@triton.jit
def _turn(X, OUT, W, SIZE, PARTS: tl.constexpr, WIDE: tl.constexpr, BATCH: tl.constexpr):
    t = tl.program_id(2).to(tl.int64)
    w = (tl.program_id(0) * WIDE + tl.arange(0, WIDE))[:, None]
    b = tl.program_id(1) * BATCH + tl.arange(0, BATCH)
    there = (w < W) & (b < SIZE)
    x = tl.load(X + (t * SIZE + b) * W + w, there, 0.0)
    high = _tf32(x)
    to = OUT + (t * PARTS * W + w) * SIZE + b
    tl.store(to, high, there)
    if PARTS == 2:
        tl.store(to + W * SIZE, _tf32(x - high), there)


def turned(x: Tensor, exact: bool) -> Tensor:
    """Return ``[A, parts, width, B]`` of a batch ``[A, B, width]``: TF32 and, if exact, a rest."""
    trials, size, width = x.shape
    out = x.new_empty(trials, 1 + exact, width, size)
    _turn[(triton.cdiv(width, 32), triton.cdiv(size, 64), trials)](
        x, out, width, size, 1 + exact, 32, 64
    )
    return out


_HOPPER = 9  # whose instructions `fused_adam.cu` needs
_ROWS, _COLUMNS = 64, {False: 160, True: 80}  # of a tile; exact products need more registers
_STAGES, _BATCH, _THREADS = 2, 32, 128


def ready(device: torch.device) -> bool:
    """Say whether `down` can be compiled for a device."""
    return _down(device) is not None


def _down(device: torch.device) -> Kernel | None:
    return compiled("mlp_backward.cu", "down", (("EXACT", str(int(not tf32()))),), device)


def down(hidden: Tensor, weight: Tensor, slope: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of weight and bias, from the slope ``[A, C, k, B]`` of the logits.

    `hidden` ``[A, C, h, B]`` is overwritten by its own slope, rounded to TF32 where products are.
    """
    kernel = _down(hidden.device)
    assert kernel is not None
    trials, models, n, batch = hidden.shape
    grads = torch.empty_like(weight), hidden.new_empty(trials, models, weight.shape[2], 1)
    given = [hidden, weight, slope, *grads, n, weight.shape[2], batch]
    kernel((trials * models * -(-n // _ROWS), 1, 1), (_THREADS, 1, 1), given)
    return grads


def move(
    weights: Tensor, grad: Product, moments: Sequence[Tensor], by: Rates, decoupled: bool
) -> bool:
    """Move ``[A, C, out, width]`` by Adam, AdamW if `decoupled`; False: not served."""
    slope, x = grad
    (trials, rows, batch), columns, exact = slope.shape, x.shape[-1], not tf32()
    if batch % 4 or columns % 4:
        return False
    kernel = _adam_kernel(exact, decoupled, weights.device)
    if kernel is None:
        return False
    tiles = -(-rows // _ROWS) * -(-columns // _COLUMNS[exact])
    tensors = [slope, turned(x, exact), weights, *moments, *by]
    sizes = [rows, columns, batch, by.size.shape[1], by.size.stride(0)]
    kernel((tiles, trials, 1), (_THREADS, 1, 1), [*tensors, *sizes], _shared(exact))
    return True


def _shared(exact: bool) -> int:
    return 4 * _STAGES * _BATCH * (_ROWS + (1 + exact) * _COLUMNS[exact])


def _adam_kernel(exact: bool, decoupled: bool, device: torch.device) -> Kernel | None:
    if torch.cuda.get_device_capability(device)[0] != _HOPPER:
        return None
    columns = _COLUMNS[exact]
    count = columns // 2  # numbers that a thread adds up
    values = {
        "ROWS": _ROWS,
        "COLUMNS": columns,
        "BATCH": _BATCH,
        "STAGES": _STAGES,
        "THREADS": _THREADS,
        "EXACT": int(exact),
        "ADAMW": int(decoupled),
        "BETA1": BETA1,
        "BETA2": BETA2,
        "WGMMA": f'"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 "',
        "REGISTERS": '"' + ", ".join(f"%{i}" for i in range(count)) + '"',
        "OUTPUTS": ", ".join(f'"+f"(d[{i}])' for i in range(count)),
        **{f"IN{i}": f'"%{count + i}"' for i in range(6)},
    }
    given = tuple((key, str(value)) for key, value in values.items())
    return compiled("fused_adam.cu", "move", given, device, "90a", _shared(exact))
