"""PRODEN with and without balanced shares, beside CC and CAVL, where sets are biased.

    python benchmarks/shares.py [--record]

Linear models on 2,500 rows at most, four fifths of which train: five splits and draws of sets in
which some wrong classes are favoured (`strong:…`), and of random ones. Learning rate 0.01, decay
1e-3, 60 epochs; 0.1 was looked at, too. Test accuracy by true labels, in percent.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from common import record

import ruleout as ro
from ruleout.labels.origins import named_origin
from ruleout.selection import split
from ruleout.training import Trial, Watch, fit_grid

DATA, ROWS, SEEDS = ("digits", "texture", "yeast"), 2500, range(5)
LAWS = ("released", "fixed:1", "strong:released", "strong:fixed:1")
APPROACHES = ("cc", "proden", "balanced-proden", "cavl")
SETTINGS: dict[str, Any] = {"grid": {"learning_rate": 1e-2, "weight_decay": 1e-3}, "epochs": 60}


def rows(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows, and their classes."""
    x, y = ro.datasets.load(name).train
    some = np.random.default_rng(0).permutation(len(y))[:ROWS]
    x = np.asarray(x, np.float32)[some]
    return (x - x.mean(0)) / np.maximum(x.std(0), 1e-8), y[some]


def accuracies(x: np.ndarray, y: np.ndarray, law: str) -> dict[str, list[float]]:
    """Return the mean over seeds and its standard deviation, of every approach."""
    k, cuts = int(y.max()) + 1, [split(len(y), 0.2, seed=seed) for seed in SEEDS]
    origin = named_origin(law, k) if law.startswith("strong") else None
    trials, found = [], {}
    for seed, (train, _) in zip(SEEDS, cuts, strict=True):
        own = y[train]
        sets = origin.draw(own, k, seed=seed) if origin else ro.draw(own, k, law, seed=seed)
        trials.append(Trial(sets, rows=train, seed=seed))
    test = Watch([y[own] for _, own in cuts], rows=[own for _, own in cuts])
    for name in APPROACHES:
        fit = fit_grid(x, trials, approach=name, watch={"test": test}, every=60, **SETTINGS)
        each = 100 * fit.history["test/accuracy"][:, 0, -1]
        found[name] = [round(float(each.mean()), 1), round(float(each.std()), 1)]
    return found


def main() -> None:
    torch.set_num_threads(1)
    results = {}
    for name in DATA:
        x, y = rows(name)
        for law in LAWS:
            results[f"{name} {law}"] = found = accuracies(x, y, law)
            print(f"{name:10}{law:18}", *(f"{a} {m} ± {s}" for a, (m, s) in found.items()))
    if "--record" in sys.argv:
        record("shares", "python benchmarks/shares.py --record", results)


if __name__ == "__main__":
    main()
