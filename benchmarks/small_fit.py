"""One fit of a small table against the loop people write and scikit-learn: ratios from one run.

    python benchmarks/small_fit.py

The three take turns, and the best of several turns counts. The loop trains LOG on the same sets,
in batches of the same size, for as many epochs; scikit-learn's MLPClassifier trains the same MLP on
true labels.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from common import record
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

import ruleout as ro
from ruleout.models import build

BATCH, EPOCHS, K, WIDTH = 256, 100, 10, 500


def plain(x: Any, sets: ro.LabelSets, model: str) -> None:
    """Train one model by LOG as a user would write it."""
    rows, excluded = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(sets.excluded)
    net = build(model, x.shape[1], K, seed=0)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, weight_decay=1e-5)
    for _ in range(EPOCHS):
        order = torch.randperm(len(rows))
        for start in range(0, len(rows), BATCH):
            batch = order[start : start + BATCH]
            out = excluded[batch]
            adam.zero_grad()
            left = net(rows[batch]).log_softmax(-1).masked_fill(out, -torch.inf).logsumexp(-1)
            ((K - 1) / out.sum(-1) * -left).mean().backward()
            adam.step()


def ours(x: Any, sets: ro.LabelSets, model: str) -> None:
    ro.RuleOutClassifier(model=model, epochs=EPOCHS, random_state=0).fit(x, sets)


def sklearns(x: Any, y: Any) -> None:
    told = {"batch_size": BATCH, "max_iter": EPOCHS, "n_iter_no_change": EPOCHS, "alpha": 1e-5}
    MLPClassifier((WIDTH,), random_state=0, **told).fit(x, y)


def best_of(turns: int, jobs: Mapping[str, Callable[[], None]]) -> dict[str, float]:
    """Return the shortest time of each job in seconds; they take turns, after one to warm up."""
    found = {name: float("inf") for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            if turn:
                found[name] = min(found[name], time.perf_counter() - began)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    torch.set_num_threads(1)
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=K, seed=0)
    found: dict[str, Any] = {"rows": len(y), "epochs": EPOCHS, "threads": 1}
    for model in ("linear", "mlp"):
        jobs = {"ruleout": partial(ours, x, sets, model), "loop": partial(plain, x, sets, model)}
        if model == "mlp":
            jobs["scikit-learn"] = partial(sklearns, x, y)
        times = best_of(given.turns, jobs)
        ratios = {f"ruleout / {n}": times["ruleout"] / times[n] for n in jobs if n != "ruleout"}
        found[f"digits {model}"] = {"seconds": times, "ratios": ratios}
        for name, ratio in ratios.items():
            print(f"digits {model}: {name} {ratio:.2f}")
    record("small_fit", "python benchmarks/small_fit.py", found)


if __name__ == "__main__":
    main()
