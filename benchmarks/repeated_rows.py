"""Items that stand in several rows: what is said of held-out rows, and what is true.

    python benchmarks/repeated_rows.py [--record] [--runs 24]

Each of 200 digits, beside which 64 columns of noise tell it from all others, stands in six rows
with a random set each. A search chooses on three tenths of the rows and says how good its choice
is there: with every row on its own, as before, and with equal rows together. True is the accuracy
of the model that was judged on the digits that nobody labelled.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import record

import ruleout as ro
from ruleout.selection import search
from ruleout.training import Trial

ITEMS, TIMES, NOISE = 200, 6, 64


def board(seed: int) -> tuple[Any, ro.LabelSets, Any, Any]:
    """Return labelled rows with their sets, and rows with true labels that nobody labelled."""
    rng = np.random.default_rng(seed)
    x, y = ro.datasets.load("digits").train
    x = np.concatenate([x, rng.normal(0, 0.5, (len(x), NOISE)).astype(np.float32)], 1)
    order = rng.permutation(len(x))
    rows, rest = np.repeat(order[:ITEMS], TIMES), order[ITEMS:]
    return x[rows], ro.draw(y[rows], classes=10, seed=seed), x[rest], y[rest]


def judged(seed: int, model: str, together: bool) -> list[float]:
    """Return what is said, its standard error, and what is true."""
    x, sets, others, labels = board(seed)
    told: Any = sets if together else [Trial(sets)]
    found = search(x, told, model=model, grid="small", epochs=60, share=0.3, seed=seed, refit=False)
    logits = found.grid.module(0, int(found.chosen[0]))
    right = ro.training.grid_fit.predict(logits, others).argmax(-1).numpy() == labels
    return [*found.estimate, float(right.mean())]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--record", action="store_true")
    asked.add_argument("--runs", type=int, default=24)
    given = asked.parse_args()
    results: dict[str, Any] = {"runs": given.runs}
    for model in ("linear", "mlp"):
        for together in (False, True):
            every = [judged(seed, model, together) for seed in range(given.runs)]
            said, error, true = np.array(every).T
            name = f"{model}, {'equal rows together' if together else 'every row on its own'}"
            results[name] = {
                "said": round(float(said.mean()), 4),
                "standard error": round(float(error.mean()), 4),
                "true": round(float(true.mean()), 4),
                "scatter of said - true": round(float((said - true).std(ddof=1)), 4),
                "within 1.96 standard errors": round(
                    float((abs(said - true) <= 1.96 * error).mean()), 3
                ),
            }
            print(name, results[name], flush=True)
    if given.record:
        record("repeated_rows", "python benchmarks/repeated_rows.py --record", results)


if __name__ == "__main__":
    main()
