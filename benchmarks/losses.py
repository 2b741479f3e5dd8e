"""Throughput of every loss, forward and backward, against PyTorch's cross entropy.

    python benchmarks/losses.py [--record]

B=4096 examples, k=100 classes, float32. The yardstick is `torch.nn.functional.cross_entropy` with
soft targets of the same shape, timed in the same run, in turns with each loss, since the machines
are noisy. `-before` rows rule out one class per row, all others follow the `released` law. PC after
shuffle compares every ruled-out class with every class, k² work per example by definition: it is
listed but has no target.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from common import record
from torch import Tensor
from torch.nn.functional import cross_entropy

import ruleout as ro

B, K, TARGET = 4096, 100, 5.0
Scalar: TypeAlias = Callable[[Tensor], Tensor]


def step(scalar: Scalar, logits: Tensor) -> float:
    """Time one forward and backward pass."""
    at = logits.detach().requires_grad_()
    start = time.perf_counter()
    torch.autograd.grad(scalar(at), at)
    if logits.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start


def in_turns(a: Scalar, b: Scalar, logits: Tensor, repeats: int) -> tuple[float, float]:
    """Return the median times of both, taken in turns."""
    times = [(step(a, logits), step(b, logits)) for _ in range(repeats + 3)][3:]
    return float(np.median([t[0] for t in times])), float(np.median([t[1] for t in times]))


def main() -> None:
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() and "--cuda" in sys.argv else "cpu"
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(B, K, generator=random).to(device)
    target = torch.randn(B, K, generator=random).softmax(-1).to(device)
    y = torch.randint(K, (B,), generator=random).numpy()
    whole, single = (
        torch.from_numpy(ro.draw(y, K, law, seed=0).excluded).to(device) for law in ("released", 1)
    )
    results, slow = {}, []
    print(f"{'approach':24}{'examples/s':>14}{'x cross entropy':>18}")
    for name in ro.approaches():
        row = ro.approach(name)
        excluded = single if row.form == "pairs-before" else whole
        quadratic = name.startswith("pc") and row.form == "pairs-after"
        spent, yardstick = in_turns(
            partial(row.batch_loss, excluded=excluded),
            partial(cross_entropy, target=target),
            logits,
            5 if quadratic else 100,
        )
        ratio = spent / yardstick
        results[name] = {
            "examples_per_s": round(B / spent),
            "cross_entropy_per_s": round(B / yardstick),
            "ratio": round(ratio, 2),
        }
        print(f"{name:24}{B / spent:14,.0f}{ratio:18.2f}")
        if ratio > TARGET and not quadratic:
            slow.append(name)
    print(f"slower than {TARGET:g}x: {', '.join(slow) or 'none'}")
    if "--record" in sys.argv:
        record("losses", "python benchmarks/losses.py --record", results)


if __name__ == "__main__":
    main()
