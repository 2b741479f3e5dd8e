"""Convolutions of few channels in bf16, in Triton, for images whose channels lie last.

cuDNN's kernels are made for more channels: with 16 of them, as in a ResNet for CIFAR-10, they take
several times as long as reading and writing the images does. Weights and their gradients are
float32; a product of two bf16 numbers is added up in float32, always in the same order.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

_MOST = 64  # channels
_TILE, _PARTS = 128, 128  # pixels of a program; parts in which a gradient is added up
_NUMBERS = 2**31  # that 32 bits tell apart
_SHARED = 128 << 10  # bytes that a program may share with itself, as A100 and H100 let it


@triton.jit
def _patch(X, p, r, j, N, HEIGHT, WIDTH, IN: tl.constexpr, SIZE: tl.constexpr):
    """What pixels read of row `r` of their neighbours: ``[pixels, columns · channels]``."""
    row, half = p // WIDTH % HEIGHT + r - SIZE // 2, SIZE // 2
    column = (p % WIDTH)[:, None] + (j // IN)[None, :] - half
    there = ((p < N) & (row >= 0) & (row < HEIGHT))[:, None] & (j < SIZE * IN)[None, :]
    there = there & (column >= 0) & (column < WIDTH)
    at = (p + (r - half) * WIDTH - half)[:, None] * IN + j[None, :]
    return tl.load(X + at, there, 0.0)


@triton.jit
def _convolve(
    X,
    W,
    OUT,
    N,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    IN: tl.constexpr,
    MADE: tl.constexpr,
    SIZE: tl.constexpr,
    TURNED: tl.constexpr,
    INNER: tl.constexpr,
    OUTER: tl.constexpr,
    PIXELS: tl.constexpr,
):
    p = tl.program_id(0) * PIXELS + tl.arange(0, PIXELS)
    o = tl.arange(0, OUTER)
    out = tl.zeros((PIXELS, OUTER), tl.float32)
    for r in tl.static_range(SIZE):
        for start in tl.static_range(0, SIZE * IN, INNER):
            j = start + tl.arange(0, INNER)
            if TURNED:  # the same weights from the other side: [in, turned rows and columns, made]
                w = ((j % IN * SIZE + SIZE - 1 - r) * SIZE + SIZE - 1 - j // IN) * MADE
                at = w[:, None] + o[None, :]
            else:
                at = ((o * SIZE + r) * SIZE * IN)[None, :] + j[:, None]
            known = (j < SIZE * IN)[:, None] & (o < MADE)[None, :]
            weight = tl.load(W + at, known, 0.0).to(X.dtype.element_ty)
            out = tl.dot(_patch(X, p, r, j, N, HEIGHT, WIDTH, IN, SIZE), weight, out)
    there = (p < N)[:, None] & (o < MADE)[None, :]
    tl.store(OUT + p[:, None] * MADE + o[None, :], out.to(OUT.dtype.element_ty), there)


@triton.jit
def _correlate(
    X,
    SLOPE,
    OUT,
    N,
    PART: tl.constexpr,
    HEIGHT: tl.constexpr,
    WIDTH: tl.constexpr,
    IN: tl.constexpr,
    MADE: tl.constexpr,
    SIZE: tl.constexpr,
    INNER: tl.constexpr,
    OUTER: tl.constexpr,
    PIXELS: tl.constexpr,
):
    r = tl.program_id(1)
    o, j = tl.arange(0, OUTER), tl.arange(0, INNER)
    out = tl.zeros((OUTER, INNER), tl.float32)
    for start in range(0, PART, PIXELS):
        p = tl.program_id(0) * PART + start + tl.arange(0, PIXELS)
        there = (p < N)[:, None] & (o < MADE)[None, :]
        slope = tl.load(SLOPE + p[:, None] * MADE + o[None, :], there, 0.0)
        out = tl.dot(tl.trans(slope), _patch(X, p, r, j, N, HEIGHT, WIDTH, IN, SIZE), out)
    at = ((tl.program_id(0) * MADE + o[:, None]) * SIZE + r) * SIZE * IN + j[None, :]
    tl.store(OUT + at, out, (o < MADE)[:, None] & (j < SIZE * IN)[None, :])


def _power(least: int) -> int:
    return max(16, int(triton.next_power_of_2(least)))


def _channels_last(x: Tensor) -> Tensor:
    return x.contiguous(memory_format=torch.channels_last)


def _images(like: Tensor, made: int) -> Tensor:
    shape, last = (len(like), made, *like.shape[2:]), torch.channels_last
    return torch.empty(shape, dtype=like.dtype, device=like.device, memory_format=last)


@torch.library.custom_op("ruleout::convolve", mutates_args=())
def convolve(x: Tensor, weight: Tensor, turned: bool = False) -> Tensor:
    """Return images ``[n, channels, height, width]`` after weights ``[made, channels, s, s]``.

    With as many zeros around them that they keep their size. `turned`: from the slope of that to
    the slope of the images.
    """
    x, weight = _channels_last(x), _channels_last(weight)
    (rows, channels, *sides), size = x.shape, weight.shape[-1]
    made = weight.shape[1 if turned else 0]
    out = _images(x, made)
    count, inner, outer = rows * sides[0] * sides[1], _power(channels), _power(made)
    _convolve[(triton.cdiv(count, _TILE),)](
        x, weight, out, count, *sides, channels, made, size, turned, inner, outer, _TILE,
        num_warps=8 if inner * outer == _MOST**2 else 4,
    )  # fmt: skip
    return out


@torch.library.custom_op("ruleout::correlate", mutates_args=())
def correlate(x: Tensor, slope: Tensor, size: int) -> Tensor:
    """Return the gradient of the weights, float32, from the slope of what they made."""
    x, slope = _channels_last(x), _channels_last(slope)
    (rows, channels, *sides), made = x.shape, slope.shape[1]
    count, inner = rows * sides[0] * sides[1], _power(size * channels)
    pixels = _TILE if inner <= _MOST else _TILE // 2
    part = triton.cdiv(triton.cdiv(count, _PARTS), pixels) * pixels
    parts = triton.cdiv(count, part)
    out = x.new_empty(parts, made, size, size, channels, dtype=torch.float32)
    _correlate[(parts, size)](
        x, slope, out, count, part, *sides, channels, made, size, inner, _power(made), pixels
    )
    return out.sum(0).movedim(-1, 1)


@convolve.register_fake
def _(x: Tensor, weight: Tensor, turned: bool = False) -> Tensor:
    return _images(x, weight.shape[1 if turned else 0])


@correlate.register_fake
def _(x: Tensor, slope: Tensor, size: int) -> Tensor:
    shape = (slope.shape[1], size, size, x.shape[1])
    return torch.empty(shape, dtype=torch.float32, device=x.device).movedim(-1, 1)


def _remember(ctx, inputs, output) -> None:
    del output
    ctx.save_for_backward(*inputs[:2])


def _back(ctx, slope):
    x, weight = ctx.saved_tensors
    along = convolve(slope, weight, True) if ctx.needs_input_grad[0] else None
    return along, correlate(x, slope, weight.shape[-1]), None


convolve.register_autograd(_back, setup_context=_remember)


class Convolution(nn.Conv2d):
    """A convolution that these kernels serve, in the place of one of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what torch's would, in bf16."""
        if len(x) * x.shape[-1] * x.shape[-2] * _MOST >= _NUMBERS:
            return super().forward(x)
        out: Tensor = convolve(x.to(torch.bfloat16), self.weight)
        return out if self.bias is None else out + self.bias.to(out.dtype)[:, None, None]


def serve(module: nn.Module, device: torch.device) -> None:
    """Let the convolutions of a module that these kernels serve pass through them."""
    about = torch.cuda.get_device_properties(device)
    if getattr(about, "shared_memory_per_block_optin", 0) < _SHARED:  # not in torch's types
        return
    for part in module.modules():
        if type(part) is not nn.Conv2d or part.padding_mode != "zeros" or part.groups > 1:
            continue
        size, around = part.kernel_size[0], part.padding
        kept = part.kernel_size in ((1, 1), (3, 3)) and around in ("same", (size // 2, size // 2))
        alone = part.stride == part.dilation == (1, 1)
        if kept and alone and max(part.in_channels, part.out_channels) <= _MOST:
            part.__class__ = Convolution
