"""The two CUDA kernels of a perceptron's way down: `downs.cu`, then `moves.cu`.

`down` goes from the slopes of the logits to the hidden layer. `move` makes the gradient of the
first layer and moves the layer by it in one pass, on Hopper GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ruleout.training.kernels import turned
from ruleout.training.optimizers import BETA1, BETA2, Product, Rates
from ruleout.training.settings import tf32
from ruleout.training.sources import Kernel, compiled

__all__ = ["down", "move", "ready"]

_HOPPER = 9  # whose instructions `moves.cu` needs
_ROWS, _COLUMNS = 64, {False: 160, True: 80}  # of a tile; exact products need more registers
_STAGES, _BATCH, _THREADS = 2, 32, 128


def ready(device: torch.device) -> bool:
    """Say whether `down` can be compiled for a device."""
    return _down(device) is not None


def _down(device: torch.device) -> Kernel | None:
    return compiled("down", (("EXACT", str(int(not tf32()))),), device)


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


def move(name: str, weights: Tensor, grad: Product, moments: Sequence[Tensor], by: Rates) -> bool:
    """Move ``[A, C, out, width]`` by a gradient that is never written down; False: not served."""
    slope, x = grad
    (trials, rows, batch), columns, exact = slope.shape, x.shape[-1], not tf32()
    if name == "sgd" or batch % 4 or columns % 4:
        return False
    kernel = _move(exact, name == "adamw", weights.device)
    if kernel is None:
        return False
    tiles = -(-rows // _ROWS) * -(-columns // _COLUMNS[exact])
    tensors = [slope, turned(x, exact), weights, *moments, *by]
    sizes = [rows, columns, batch, by.size.shape[1], by.size.stride(0)]
    kernel((tiles, trials, 1), (_THREADS, 1, 1), [*tensors, *sizes], _shared(exact))
    return True


def _shared(exact: bool) -> int:
    """Return the bytes that a block shares."""
    return 4 * _STAGES * _BATCH * (_ROWS + (1 + exact) * _COLUMNS[exact])


def _move(exact: bool, adamw: bool, device: torch.device) -> Kernel | None:
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
        "ADAMW": int(adamw),
        "BETA1": BETA1,
        "BETA2": BETA2,
        "WGMMA": f'"wgmma.mma_async.sync.aligned.m64n{columns}k8.f32.tf32.tf32 "',
        "REGISTERS": '"' + ", ".join(f"%{i}" for i in range(count)) + '"',
        "OUTPUTS": ", ".join(f'"+f"(d[{i}])' for i in range(count)),
        **{f"IN{i}": f'"%{count + i}"' for i in range(6)},
    }
    given = tuple((key, str(value)) for key, value in values.items())
    return compiled("move", given, device, "90a", _shared(exact))
