"""Convolutions of few channels in bf16, in CUDA (`convolutions.cu`), where channels lie last.

cuDNN's kernels are made for more channels: with 16 of them, as in a ResNet for CIFAR-10, they take
several times as long as reading and writing the images does. Weights and their gradients are
float32; a product of two bf16 numbers is added up in float32, always in the same order.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ruleout.training.gpu_kernels import Kernel, compiled

_MOST = 64  # channels
_NUMBERS = 2**31  # that 32 bits tell apart
_SHARED = 160 << 10  # bytes that a block may share, as A100 and H100 let it
_HALF = 112 << 10  # bytes of which two blocks find room in a processor
_PROCESSORS = 132  # among which pixels are divided, on any GPU, so that sums stay the same


class _Plan(NamedTuple):
    values: tuple[tuple[str, str], ...]  #: what the source leaves open
    blocks: tuple[int, int, int]
    threads: int
    shared: int  #: bytes that a block shares
    part: int = 0  #: pixels of a block


def _padded(channels: int) -> int:
    return -(-channels // 16) * 16  # what a tensor core takes


def _pitch(channels: int) -> int:
    return 2 * _padded(channels) + 16  # bytes from row to row: neighbours start in different banks


def _named(
    sides: tuple[int, int], channels: int, made: int, size: int, stride: int, turned: bool, tile: int
) -> tuple[dict[str, int], int]:
    """Return what both kernels are told of their work, and the pixels that a tile reads."""
    (height, width), half = sides, size // 2
    breadth = width // stride if turned else width * stride
    if turned and stride > 1:
        lines = ((tile + width - 2) // width + 1) // stride + 1
        rows = (lines + half) * breadth + half
    else:
        skipped = (stride**2 - stride) * (width - 1)
        rows = stride**2 * (tile - 1) + 1 + skipped + 2 * half * (breadth + 1)
    told = {"HEIGHT": height, "WIDTH": width, "IN": channels, "MADE": made, "SIZE": size}
    return told | {"STRIDE": stride, "TURNED": int(turned), "ROWS": rows}, rows


@cache
def _plan(
    images: int, sides: tuple[int, int], channels: int, made: int, size: int, stride: int, turned: bool
) -> _Plan:
    """Plan `convolve`, which makes images of these sides."""
    inside, outside, keys = _padded(channels), _padded(made), size * size * _padded(channels)
    across = outside if outside <= 48 else 32
    along, bands = (4 if inside == outside == 16 else 2), outside // across
    warps = 4 if inside * outside <= 256 else 8
    tile = warps // bands * along * 16
    tiles, blocks = -(-images * sides[0] * sides[1] // tile), _PROCESSORS * 16 // warps
    told, rows = _named(sides, channels, made, size, stride, turned, tile)
    buffers = 1 if tiles <= blocks else 2
    weights = keys * _pitch(made) if turned else outside * (2 * keys + 16)
    told |= {"ACROSS": across, "ALONG": along, "BUFFERS": buffers, "WARPS": warps}
    values = tuple((key, str(value)) for key, value in told.items())
    shared = (1 + buffers * rows) * _pitch(channels) + weights
    return _Plan(values, (min(tiles, blocks), 1, 1), 32 * warps, shared)


@cache
def _plan_back(
    images: int, sides: tuple[int, int], channels: int, made: int, size: int, stride: int
) -> _Plan:
    """Plan `correlate`, for the slope of images of these sides."""
    inside, outside = _padded(channels), _padded(made)
    *_, down, across = max(
        (down * across, min(down, across), down, across)
        for down in range(16, outside + 1, 16)
        for across in range(16, inside + 1, 16)
        if outside % down == inside % across == 0 and size * down * across <= 3072  # registers
    )
    lines = size if down == across == 16 else 1
    shares, copies = (8, 4) if lines == size else (4, 2)
    areas, sums = outside // down * (inside // across), size * size * down * (across + 8)
    for steps in (4, 2, 1):  # of 16 pixels, which a warp adds up of a tile
        tile = shares * steps * 16
        told, rows = _named(sides, channels, made, size, stride, False, tile)
        buffer = rows * _pitch(across) + tile * _pitch(down)
        shared = max(_pitch(max(down, across)) + 2 * buffer, 4 * copies * sums)
        if shared <= _HALF:
            break
    told |= {"DOWN": down, "ACROSS": across, "LINES": lines, "STEPS": steps}
    told |= {"COPIES": copies, "WARPS": shares * size // lines}
    values = tuple((key, str(value)) for key, value in told.items())
    blocks = _PROCESSORS * (2 if lines > 1 else 1) // areas
    part = -(-images * sides[0] * sides[1] // (blocks * tile)) * tile
    count = -(-images * sides[0] * sides[1] // part)
    return _Plan(values, (count, areas, 1), 32 * told["WARPS"], shared, part)


def _launch(name: str, plan: _Plan, *given: Tensor | int) -> None:
    assert isinstance(given[0], Tensor)
    device = given[0].device
    kernel = compiled("convolutions.cu", name, plan.values, device, None, plan.shared)
    assert kernel is not None
    kernel(plan.blocks, (plan.threads, 1, 1), list(given), plan.shared)


def _sum(device: torch.device) -> Kernel | None:
    return compiled("convolutions.cu", "add_up", (), device)


def _channels_last(x: Tensor) -> Tensor:
    x = x.contiguous(memory_format=torch.channels_last)
    return x.clone() if x.data_ptr() % 16 else x  # which a copy of 16 bytes asks for


def _images(x: Tensor, weight: Tensor, stride: int, turned: bool) -> Tensor:
    sides = [side * stride if turned else side // stride for side in x.shape[2:]]
    shape, last = (len(x), weight.shape[1 if turned else 0], *sides), torch.channels_last
    return torch.empty(shape, dtype=x.dtype, device=x.device, memory_format=last)


@torch.library.custom_op("ruleout::convolve", mutates_args=())
def convolve(x: Tensor, weight: Tensor, stride: int = 1, turned: bool = False) -> Tensor:
    """Return images ``[n, channels, height, width]`` after weights ``[made, channels, s, s]``.

    With as many zeros around them that they keep their size, or, by a stride of 2, half of it.
    `turned`: from the slope of that to the slope of the images.
    """
    x, weight = _channels_last(x), _channels_last(weight)
    out = _images(x, weight, stride, turned)
    images, made, *sides = out.shape
    size, ways = weight.shape[-1], (x.shape[1], made)
    plan = _plan(images, (sides[0], sides[1]), *ways, size, stride, turned)
    _launch("convolve", plan, x, weight, out, images * sides[0] * sides[1])
    return out


@torch.library.custom_op("ruleout::correlate", mutates_args=())
def correlate(x: Tensor, slope: Tensor, size: int) -> Tensor:
    """Return the gradient of the weights, float32, from the slope of what they made."""
    x, slope = _channels_last(x), _channels_last(slope)
    (images, made, *sides), channels = slope.shape, x.shape[1]
    stride = x.shape[-1] // sides[1]
    plan = _plan_back(images, (sides[0], sides[1]), channels, made, size, stride)
    parts = plan.blocks[0]
    out = x.new_empty(parts, made, size, size, channels, dtype=torch.float32)
    _launch("correlate", plan, x, slope, out, images * sides[0] * sides[1], plan.part)
    add_up, found = _sum(x.device), torch.empty_like(out[0])
    assert add_up is not None
    add_up((-(-found.numel() // 32), 1, 1), (256, 1, 1), [out, found, parts, found.numel()])
    return found.movedim(-1, 1)


@convolve.register_fake
def _(x: Tensor, weight: Tensor, stride: int = 1, turned: bool = False) -> Tensor:
    return _images(x, weight, stride, turned)


@correlate.register_fake
def _(x: Tensor, slope: Tensor, size: int) -> Tensor:
    shape = (slope.shape[1], size, size, x.shape[1])
    return torch.empty(shape, dtype=torch.float32, device=x.device).movedim(-1, 1)


def _remember(ctx, inputs, output) -> None:
    del output
    *saved, ctx.stride, _ = inputs
    ctx.save_for_backward(*saved)


def _back(ctx, slope):
    x, weight = ctx.saved_tensors
    along = convolve(slope, weight, ctx.stride, True) if ctx.needs_input_grad[0] else None
    return along, correlate(x, slope, weight.shape[-1]), None, None


convolve.register_autograd(_back, setup_context=_remember)


@torch.compiler.assume_constant_result
def _served(
    images: int, height: int, width: int, channels: int, made: int, size: int, stride: int
) -> bool:
    """Say whether images of this size pass the kernels, there and back."""
    if height % stride or width % stride or images * height * width * _MOST >= _NUMBERS:
        return False
    small = height // stride, width // stride
    plans = (
        _plan(images, small, channels, made, size, stride, False),
        _plan(images, (height, width), made, channels, size, stride, True),
        _plan_back(images, small, channels, made, size, stride),
    )
    return max(plan.shared for plan in plans) <= _SHARED


class Convolution(nn.Conv2d):
    """A convolution that these kernels serve, in the place of one of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what torch's would, in bf16."""
        images, channels, height, width = x.shape
        size, stride = self.kernel_size[0], self.stride[0]
        if not _served(images, height, width, channels, self.out_channels, size, stride):
            return super().forward(x)
        out: Tensor = convolve(x.to(torch.bfloat16), self.weight, stride)
        return out if self.bias is None else out + self.bias.to(out.dtype)[:, None, None]


def serve(module: nn.Module, device: torch.device) -> None:
    """Let the convolutions of a module that these kernels serve pass through them."""
    about = torch.cuda.get_device_properties(device)
    if getattr(about, "shared_memory_per_block_optin", 0) < _SHARED:  # not in torch's types
        return
    if _sum(device) is None:  # no compiler
        return
    for part in module.modules():
        if type(part) is not nn.Conv2d or part.padding_mode != "zeros" or part.groups > 1:
            continue
        size, around = part.kernel_size[0], part.padding
        kept = part.kernel_size in ((1, 1), (3, 3)) and around in ("same", (size // 2, size // 2))
        alone = part.dilation == (1, 1) and part.stride in ((1, 1), (2, 2))
        if kept and alone and max(part.in_channels, part.out_channels) <= _MOST:
            part.__class__ = Convolution
