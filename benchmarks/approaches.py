"""Time of an epoch of every approach, beside LOG's: what the table in the docs shows.

    python benchmarks/approaches.py [--record]

2,000 rows of 784 features, 10 classes, sets of the law `released`, batches of 256; a linear model
and the MLP of the paper. One thread, and the time of the processor: machines are noisy, so each
approach also takes turns with LOG, and a ratio is that of the medians. Before shuffle an epoch has
a row for each ruled-out class, here five times as many. Approaches that remember rows are timed
from epoch 12 on, when conformal cleaning and CroSel's selection are at work.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import torch
from common import record

import ruleout as ro

ROWS, FEATURES, CLASSES, EPOCHS, LATE, TURNS = 2000, 784, 10, 4, 14, 3


def epochs(x: np.ndarray, sets: ro.LabelSets, approach: str, model: str) -> list[float]:
    """Return the times of the last three epochs."""
    ends: list[float] = []
    ro.fit_grid(
        x, sets, approach=approach, model=model,
        epochs=LATE if ro.approach(approach).memory else EPOCHS,
        progress=lambda *_: ends.append(time.process_time()),
    )  # fmt: skip
    return [float(each) for each in np.diff(ends)[1 - EPOCHS :]]


def ratio(x: np.ndarray, sets: ro.LabelSets, approach: str, model: str) -> float:
    spent: dict[str, list[float]] = {"log": [], approach: []}
    for _ in range(TURNS):
        for name in spent:
            spent[name] += epochs(x, sets, name, model)
    return float(np.median(spent[approach]) / np.median(spent["log"]))


def main() -> None:
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, FEATURES)).astype(np.float32)
    sets = ro.draw(rng.integers(CLASSES, size=ROWS), CLASSES, seed=0)
    results = {}
    print(f"{'approach':24}{'linear':>10}{'mlp':>10}   times LOG")
    for name in ro.approaches():
        found = {model: round(ratio(x, sets, name, model), 2) for model in ("linear", "mlp")}
        results[name] = found
        print(f"{name:24}{found['linear']:10.2f}{found['mlp']:10.2f}", flush=True)
    if "--record" in sys.argv:
        record("approaches", "python benchmarks/approaches.py --record", results)


if __name__ == "__main__":
    main()
