"""Batch norm of images in bf16 whose channels lie last, its sums in CUDA (`batch_norm.cu`).

What is done number by number is left to the compiler of the module around it, which joins it with
what stands beside; its own sums take five or six kernels for each batch norm, these two.
"""

from __future__ import annotations

from functools import cache
from math import gcd
from typing import Any

import torch
from torch import Tensor, nn

from ruleout.training.gpu_sources import channels_last, compiled

_BLOCKS = 264  # at most, on any GPU, so that sums stay the same
_THREADS = 288  # of a block, at most
_TURN = 32  # numbers that a thread reads in one turn


def _threads(channels: int) -> int:
    """Return how many threads a block has: a power of two times those that meet all channels."""
    span = channels // gcd(channels, 8)
    return span << max(0, (_THREADS // span).bit_length() - 1)


def _blocks(count: int, channels: int) -> int:
    """Return how many blocks add up so many numbers."""
    return min(_BLOCKS, -(-count // (_TURN * _threads(channels))))


def _values(channels: int, **told: float) -> tuple[tuple[str, str], ...]:
    known = {"BACK": 0, "MOMENTUM": 0, "EPSILON": 0} | told
    known |= {"CHANNELS": channels, "THREADS": _threads(channels)}
    return tuple((key, repr(value)) for key, value in known.items())


@cache
def _turn(device: torch.device, stream: int) -> Tensor:
    """Count the blocks that are done; on a stream there is one kernel at a time."""
    del stream
    return torch.zeros(1, dtype=torch.int32, device=device)


def _add_up(
    x: Tensor, slope: Tensor, known: Tensor, running: list[Tensor], **told: float
) -> Tensor:
    channels, count, device = x.shape[1], x.numel(), x.device
    kernel = compiled("batch_norm.cu", "add_up", _values(channels, **told), device)
    assert kernel is not None
    blocks, found = _blocks(count, channels), _known(x)
    parts = found.new_empty(blocks, 2, channels)
    turn = _turn(device, torch.cuda.current_stream(device).cuda_stream)
    given = [x, slope, known, parts, turn, found, *running, count // 8]
    kernel((blocks, 1, 1), (_threads(channels), 1, 1), given)
    return found


def _known(x: Tensor) -> Tensor:
    return x.new_empty(2, x.shape[1], dtype=_wide(x))


def _wide(x: Tensor) -> torch.dtype:
    """Return the kind of numbers in which those of `x` are added up."""
    return torch.promote_types(x.dtype, torch.float32)


@torch.library.custom_op("ruleout::batch_statistics", mutates_args=("mean", "variance", "counted"))
def batch_statistics(
    x: Tensor, mean: Tensor, variance: Tensor, counted: Tensor, momentum: float, epsilon: float
) -> Tensor:
    """Return means and scales, ``[2, channels]``, of images ``[n, channels, height, width]``.

    A scale is one over a standard deviation. The running `mean` and `variance` move by `momentum`,
    and one batch more is `counted`.
    """
    if x.is_cuda:
        x, how = channels_last(x), {"MOMENTUM": momentum, "EPSILON": epsilon}
        return _add_up(x, x, mean, [mean, variance, counted], **how)
    now, middle = torch.var_mean(x.to(_wide(x)), (0, 2, 3), correction=0)  # for tests
    pixels = x.numel() // x.shape[1]
    counted.add_(1)
    mean.lerp_(middle.to(mean.dtype), momentum)
    variance.lerp_((now * (pixels / (pixels - 1))).to(variance.dtype), momentum)
    return torch.stack([middle, (now + epsilon).rsqrt()])


@torch.library.custom_op("ruleout::batch_slopes", mutates_args=())
def batch_slopes(x: Tensor, slope: Tensor, known: Tensor) -> Tensor:
    """Return the slopes of bias and weight, ``[2, channels]``, from those of what they made."""
    if x.is_cuda:
        return _add_up(channels_last(x), channels_last(slope), known, [known] * 3, BACK=1)
    slope = slope.to(_wide(x))
    return torch.stack([slope, slope * _normal(x, known)]).sum((1, 3, 4))


@batch_statistics.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return _known(x)


@batch_slopes.register_fake
def _(x: Tensor, *_: Any) -> Tensor:
    return _known(x)


def _normal(x: Tensor, known: Tensor) -> Tensor:
    mean, scale = known[..., None, None]
    normal: Tensor = (x.to(known.dtype) - mean) * scale
    return normal


class _Normalised(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, known: Tensor) -> Tensor:
        return (_normal(x, known) * weight[:, None, None] + bias[:, None, None]).to(x.dtype)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        del output
        x, weight, _, known = inputs
        ctx.save_for_backward(x, weight, known)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, known = ctx.saved_tensors
        bias, scaled = found = batch_slopes(x, slope, known)
        straight, bent = found[..., None, None] / (x.numel() // x.shape[1])
        back = slope.to(found.dtype) - straight - _normal(x, known) * bent
        return (back * (known[1] * weight)[:, None, None]).to(x.dtype), scaled, bias, None


def normalise(x: Tensor, weight: Tensor, bias: Tensor, known: Tensor) -> Tensor:
    """Return images with mean 0 and variance 1 in each channel, times a weight, plus a bias.

    `known` are their means and scales; the slope is that of images on which these depend.
    """
    out: Tensor = _Normalised.apply(x, weight, bias, known)  # type: ignore[no-untyped-call]
    return out


class BatchNorm(nn.BatchNorm2d):
    """A batch norm that passes these kernels in a compiled module, in the place of one of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what torch's would."""
        learns = self.training and torch.is_grad_enabled() and torch.compiler.is_compiling()
        pixels = x.numel() // x.shape[1]
        served = pixels > 1 and x.numel() % 8 == 0 and x.numel() < 2**31
        if not (learns and served and x.dtype is torch.bfloat16):
            return super().forward(x)
        running: Any = self.running_mean, self.running_var, self.num_batches_tracked
        known = batch_statistics(x.detach(), *running, self.momentum, self.eps)
        return normalise(x, self.weight, self.bias, known)


def serve(module: nn.Module, device: torch.device) -> None:
    """Let the batch norms of a module pass these kernels, where there is a compiler for CUDA."""
    if compiled("batch_norm.cu", "add_up", _values(16), device) is None:
        return
    for part in module.modules():
        if type(part) is not nn.BatchNorm2d or part.momentum is None:
            continue
        if part.track_running_stats and part.affine and _threads(part.num_features) <= _THREADS:
            part.__class__ = BatchNorm
