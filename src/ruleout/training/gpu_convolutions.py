"""Convolutions of few channels in bf16, in CUDA (`convolutions.cu`), where channels lie last.

cuDNN's kernels are made for more channels: with 16 of them, as in a ResNet for CIFAR-10, they take
several times as long as reading and writing the images does. Weights and their gradients are
float32; a product of two bf16 numbers is added up in float32, always in the same order.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ruleout.training.gpu_sources import Kernel, channels_last, compiled

_MOST = 64  # channels
_NUMBERS = 2**31  # that 32 bits tell apart
_SHARED = 160 << 10  # bytes that a block may share, as A100 and H100 let it
_HALF = 112 << 10  # bytes of which two blocks find room in a processor
_PROCESSORS = 132  # among which pixels are divided, on any GPU, so that sums stay the same


class Work(NamedTuple):
    """What a kernel is asked of images of `height` and `width`, made or with a slope.

    They come from images `stride` times as large, or, `turned`, as small.
    """

    images: int
    height: int
    width: int
    channels: int  #: of the images that are read
    made: int  #: channels of these
    size: int  #: of the weights, 1 or 3
    stride: int = 1
    turned: bool = False

    @property
    def pixels(self) -> int:
        return self.images * self.height * self.width

    @property
    def padded(self) -> tuple[int, int]:
        """Channels read and made, as many as a tensor core takes."""
        return -(-self.channels // 16) * 16, -(-self.made // 16) * 16

    def rows(self, tile: int) -> int:
        """Return how many pixels a tile of so many reads at most, those between them included."""
        half, stride = self.size // 2, self.stride
        if self.turned and stride > 1:
            lines = ((tile + self.width - 2) // self.width + 1) // stride + 1
            return (lines + half) * (self.width // stride) + half
        skipped = (stride**2 - stride) * (self.width - 1)
        breadth = self.width if self.turned else self.width * stride
        return stride**2 * (tile - 1) + 1 + skipped + 2 * half * (breadth + 1)

    def told(self, tile: int, **values: int) -> tuple[tuple[str, str], ...]:
        """Return what the source leaves open."""
        known = {"HEIGHT": self.height, "WIDTH": self.width, "IN": self.channels, "MADE": self.made}
        known |= {"SIZE": self.size, "STRIDE": self.stride, "TURNED": int(self.turned)}
        known |= {"ROWS": self.rows(tile)}
        return tuple((key, str(value)) for key, value in (known | values).items())


class Plan(NamedTuple):
    """How a kernel is compiled and started."""

    values: tuple[tuple[str, str], ...]  #: what the source leaves open
    blocks: tuple[int, int, int]
    threads: int
    shared: int  #: bytes that a block shares
    part: int = 0  #: pixels of a block


def _pitch(channels: int) -> int:
    return 2 * channels + 16  # bytes from row to row: neighbours start in different banks


@cache
def plan(work: Work) -> Plan:
    """Plan `convolve`."""
    inside, outside = work.padded
    across = outside if outside <= 48 else 32
    along, bands = (4 if inside == outside == 16 else 2), outside // across
    warps = 4 if inside * outside <= 256 else 8
    tile = warps // bands * along * 16
    tiles, blocks = -(-work.pixels // tile), _PROCESSORS * 16 // warps
    buffers = 1 if tiles <= blocks else 2
    told = work.told(tile, ACROSS=across, ALONG=along, BUFFERS=buffers, WARPS=warps)
    keys = work.size**2 * inside
    weights = keys * _pitch(outside) if work.turned else outside * _pitch(keys)
    shared = (1 + buffers * work.rows(tile)) * _pitch(inside) + weights
    return Plan(told, (min(tiles, blocks), 1, 1), 32 * warps, shared)


@cache
def plan_back(work: Work) -> Plan:
    """Plan `correlate`."""
    inside, outside = work.padded
    *_, down, across = max(
        (down * across, min(down, across), down, across)
        for down in range(16, outside + 1, 16)
        for across in range(16, inside + 1, 16)
        if outside % down == inside % across == 0 and work.size * down * across <= 3072  # registers
    )
    lines = work.size if down == across == 16 else 1
    shares, copies = (8, 4) if lines == work.size else (4, 2)
    warps = shares * work.size // lines
    sums = 4 * copies * work.size**2 * down * (across + 8)
    for steps in (4, 2, 1):  # of 16 pixels, which a warp adds up of a tile
        tile = shares * steps * 16
        buffer = work.rows(tile) * _pitch(across) + tile * _pitch(down)
        shared = max(_pitch(max(down, across)) + 2 * buffer, sums)
        if shared <= _HALF:
            break
    told = work.told(
        tile, DOWN=down, ACROSS=across, LINES=lines, STEPS=steps, COPIES=copies, WARPS=warps
    )
    areas = outside // down * (inside // across)
    blocks = _PROCESSORS * (2 if lines > 1 else 1) // areas
    part = -(-work.pixels // (blocks * tile)) * tile
    return Plan(told, (-(-work.pixels // part), areas, 1), 32 * warps, shared, part)


def _start(name: str, how: Plan, x: Tensor, *given: Tensor | int) -> None:
    kernel = compiled("convolutions.cu", name, how.values, x.device, None, how.shared)
    assert kernel is not None
    kernel(how.blocks, (how.threads, 1, 1), [x, *given], how.shared)


def _sum(device: torch.device) -> Kernel | None:
    return compiled("convolutions.cu", "add_up", (), device)


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
    x, weight = channels_last(x), channels_last(weight)
    out = _images(x, weight, stride, turned)
    images, made, height, width = out.shape
    work = Work(images, height, width, x.shape[1], made, weight.shape[-1], stride, turned)
    _start("convolve", plan(work), x, weight, out, work.pixels)
    return out


@torch.library.custom_op("ruleout::correlate", mutates_args=())
def correlate(x: Tensor, slope: Tensor, size: int) -> Tensor:
    """Return the gradient of the weights, float32, from the slope of what they made."""
    x, slope = channels_last(x), channels_last(slope)
    (images, made, height, width), channels = slope.shape, x.shape[1]
    work = Work(images, height, width, channels, made, size, x.shape[-1] // width)
    how = plan_back(work)
    parts = x.new_empty(how.blocks[0], made, size, size, channels, dtype=torch.float32)
    _start("correlate", how, x, slope, parts, work.pixels, how.part)
    add_up, found = _sum(x.device), torch.empty_like(parts[0])
    assert add_up is not None
    count = found.numel()
    add_up((-(-count // 32), 1, 1), (256, 1, 1), [parts, found, len(parts), count])
    return found.movedim(-1, 1)


@convolve.register_fake
def _(x: Tensor, weight: Tensor, stride: int = 1, turned: bool = False) -> Tensor:
    return _images(x, weight, stride, turned)


@correlate.register_fake
def _(x: Tensor, slope: Tensor, size: int) -> Tensor:
    shape = (slope.shape[1], size, size, x.shape[1])
    return torch.empty(shape, dtype=torch.float32, device=x.device).movedim(-1, 1)


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    del output
    x, weight, ctx.stride, _ = inputs
    ctx.save_for_backward(x, weight)


def _back(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
    x, weight = ctx.saved_tensors
    along = convolve(slope, weight, ctx.stride, True) if ctx.needs_input_grad[0] else None
    return along, correlate(x, slope, weight.shape[-1]), None, None


convolve.register_autograd(_back, setup_context=_remember)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _serves(shape: tuple[int, ...], made: int, size: int, stride: int) -> bool:
    """Say whether images of a shape pass the kernels, there and back."""
    images, channels, height, width = shape
    if height % stride or width % stride or images * height * width * _MOST >= _NUMBERS:
        return False
    there = Work(images, height // stride, width // stride, channels, made, size, stride)
    back = Work(images, height, width, made, channels, size, stride, True)
    most = max(how.shared for how in (plan(there), plan(back), plan_back(there)))
    return most <= _SHARED


class Convolution(nn.Conv2d):
    """A convolution that these kernels serve, in the place of one of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what torch's would, in bf16."""
        stride = self.stride[0]
        if not _serves(tuple(x.shape), self.out_channels, self.kernel_size[0], stride):
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
