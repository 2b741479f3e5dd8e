"""Batch norm of images in bf16 whose channels lie last, its sums in CUDA (`batch_norm.cu`).

What is done number by number is left to the compiler of the module around it, which joins it with
what stands beside; that compiler's own sums over pixels take several times as long as reading does.
"""

from __future__ import annotations

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


def _values(channels: int, paired: bool) -> tuple[tuple[str, str], ...]:
    known = {"CHANNELS": channels, "PAIRED": int(paired), "THREADS": _threads(channels)}
    return tuple((key, str(value)) for key, value in known.items())


def _blocks(count: int, channels: int) -> int:
    """Return how many blocks add up so many numbers."""
    return min(_BLOCKS, -(-count // (_TURN * _threads(channels))))


def _serves(x: Tensor) -> bool:
    return x.numel() % 8 == 0 and x.numel() < 2**31 and _threads(x.shape[1]) <= _THREADS


@torch.library.custom_op("ruleout::channel_sums", mutates_args=())
def channel_sums(x: Tensor, slope: Tensor | None, centre: Tensor | None) -> Tensor:
    """Add up over the pixels of images ``[n, channels, height, width]``, in parts.

    From every number of `x` that of its channel in `centre` is taken. Returns, ``[2, channels,
    parts]``, sums of `slope`, and of `slope` times what is left. Without both, the first pixel is
    the centre, and what is left stands for the slope, too.
    """
    if not x.is_cuda:  # as plain sums, for tests
        left = x.to(_wide(x)) - (x[0, :, 0, 0] if centre is None else centre)[:, None, None]
        factor = left if slope is None else slope.to(left.dtype)
        return torch.stack([factor, factor * left]).sum((1, 3, 4)).unsqueeze(-1)
    given = [channels_last(one) for one in (x, x if slope is None else slope)]
    channels, count = x.shape[1], x.numel()
    out = x.new_empty(2, channels, _blocks(count, channels), dtype=torch.float32)
    values = _values(channels, slope is not None)
    kernel = compiled("batch_norm.cu", "sums", values, x.device)
    assert kernel is not None
    about = [*given, out if centre is None else centre, out, count // 8]
    kernel((out.shape[2], 1, 1), (_threads(channels), 1, 1), about)
    return out


@channel_sums.register_fake
def _(x: Tensor, slope: Tensor | None, centre: Tensor | None) -> Tensor:
    parts = _blocks(x.numel(), x.shape[1]) if x.is_cuda else 1
    return x.new_empty(2, x.shape[1], parts, dtype=_wide(x))


def _wide(x: Tensor) -> torch.dtype:
    """Return the kind of numbers in which those of `x` are added up."""
    return torch.promote_types(x.dtype, torch.float32)


class _Normalised(torch.autograd.Function):
    """Images with mean 0 and variance 1 in each channel, times a weight, plus a bias."""

    @staticmethod
    def forward(x: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, ...]:
        # Around one of its own numbers a channel's squares are small: none of their digits are lost.
        mean, square = channel_sums(x, None, None).sum(-1) / (x.numel() // x.shape[1])
        variance = (square - mean.square()).clamp_min(0)
        mean, scale = x[0, :, 0, 0] + mean, (variance + eps).rsqrt()
        left = (x.to(weight.dtype) - mean[:, None, None]) * (scale * weight)[:, None, None]
        return (left + bias[:, None, None]).to(x.dtype), mean, variance, scale

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, weight, _, _ = inputs
        _, mean, variance, scale = output
        ctx.mark_non_differentiable(mean, variance, scale)
        ctx.save_for_backward(x, weight, mean, scale)

    @staticmethod
    def backward(ctx: Any, slope: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, scale = ctx.saved_tensors
        along, across = channel_sums(x, slope, mean).sum(-1)
        count = x.numel() // x.shape[1]
        left = (x.to(weight.dtype) - mean[:, None, None]) * (scale.square() * across / count)[
            :, None, None
        ]
        straight = slope.to(weight.dtype) - (along / count)[:, None, None]
        back = (straight - left) * (scale * weight)[:, None, None]
        return back.to(x.dtype), scale * across, along, None


class BatchNorm(nn.BatchNorm2d):
    """A batch norm that is served so while a compiled module trains, in the place of one of torch."""

    def forward(self, x: Tensor) -> Tensor:
        """Return what torch's would."""
        learns = self.training and torch.is_grad_enabled() and torch.compiler.is_compiling()
        if not (learns and x.dtype is torch.bfloat16 and _serves(x)):
            return super().forward(x)
        out, mean, variance, _ = _Normalised.apply(x, self.weight, self.bias, self.eps)
        with torch.no_grad():
            count = x.numel() // x.shape[1]
            self.running_mean.lerp_(mean, self.momentum)
            self.running_var.lerp_(variance * (count / max(1, count - 1)), self.momentum)
            self.num_batches_tracked.add_(1)
        return out


def serve(module: nn.Module, device: torch.device) -> None:
    """Let the batch norms of a module pass through this, where there is a compiler for CUDA."""
    if compiled("batch_norm.cu", "sums", _values(16, paired=True), device) is None:
        return
    for part in module.modules():
        kept = type(part) is nn.BatchNorm2d and part.track_running_stats
        if kept and part.affine and part.momentum is not None:
            part.__class__ = BatchNorm
