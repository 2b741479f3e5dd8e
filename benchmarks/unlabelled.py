"""Rows about which nothing is known: whether they help, and whether folds can tell when.

    python benchmarks/unlabelled.py [--record] [--draws 6] [--cells digits,texture,…]

Some rows rule classes out, most say nothing. LOG leaves those out; ``log-unlabelled`` teaches them
what the model says of them. Each way chooses between learning rates of 0.01 and 0.001 in five
folds, as `fit` does, and trains for as many steps:

- ``log``: the rows that rule something out;
- ``always``: ``log-unlabelled``;
- ``chosen``: the folds also choose between its strengths of 0 and 0.1.

Accuracies are by true labels of rows that took no part, gains over ``log`` in points, with the
standard error over draws; ``taken`` is how often a strength above 0 was chosen.
"""

from __future__ import annotations

import argparse
import json
from typing import Any, NamedTuple

import numpy as np
from common import RESULTS, record
from numpy.typing import NDArray

import ruleout as ro
from ruleout.datasets.tables import Scaling
from ruleout.selection import search
from ruleout.training.grid_fit import predict


class Cell(NamedTuple):
    data: str
    told: int
    silent: int
    law: str | int
    model: str
    steps: int = 600


CELLS = {
    "digits": Cell("digits", 200, 1100, "released", "linear"),
    "digits-mlp": Cell("digits", 200, 1100, "released", "mlp"),
    "digits-single": Cell("digits", 700, 600, 1, "linear"),
    "texture": Cell("texture", 200, 2000, "released", "linear"),
    "texture-mlp": Cell("texture", 200, 2000, "released", "mlp"),
    "yeast": Cell("yeast", 200, 800, "released", "linear"),
    "fashion": Cell("fashion-mnist", 2000, 10_000, "released", "linear", 1000),
    "fashion-single": Cell("fashion-mnist", 2000, 10_000, 1, "linear", 1000),
}
TEST, RATES = 2000, [1e-2, 1e-3]


def accuracies(cell: Cell, seed: int) -> tuple[list[float], float]:
    """Return the accuracy of each way, and the strength that was chosen."""
    data = ro.datasets.load(cell.data)
    (x, y), k, n = data.train, len(data.classes), cell.told + cell.silent
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:n], order[n : n + TEST]
    scaled = Scaling.of(x[train]) if cell.data in ("texture", "yeast") else None
    own, other = (x[rows] if scaled is None else scaled(x[rows]) for rows in (train, test))
    out = ro.draw(y[train], k, cell.law, seed).excluded
    out[cell.told :] = False
    sets = ro.LabelSets(out, k, unlabelled=True)

    def best(rows: int, approach: str, **grid: Any) -> tuple[float, dict[str, Any]]:
        epochs = -(-cell.steps * 256 // max(rows, 256))
        told: dict[str, Any] = {"epochs": epochs, "every": epochs, "seed": seed, "folds": 5}
        told |= {"model": cell.model, "model_options": {"hidden": (100,)}}
        if cell.model == "linear":
            del told["model_options"]
        tried = {"learning_rate": RATES, "weight_decay": 1e-3} | grid
        found = search(
            own[:rows], sets[:rows], approach=approach, grid=tried, rule="likeliest", **told
        )
        assert found.final is not None
        right: NDArray[Any] = predict(found.final.module(0), other).argmax(-1).numpy() == y[test]
        return float(right.mean()), found.configuration

    plain, _ = best(cell.told, "log")
    always, _ = best(n, "log-unlabelled", strength=0.1)
    chosen, how = best(n, "log-unlabelled", strength=[0.0, 0.1])
    return [plain, always, chosen], how["strength"]


def summary(found: list[tuple[list[float], float]]) -> dict[str, Any]:
    """Return mean accuracies, gains with standard error and worst draw, and what was chosen."""
    table = 100 * np.array([own for own, _ in found])
    told: dict[str, Any] = {"draws": len(table), "log": round(float(table[:, 0].mean()), 2)}
    for way, own in zip(("always", "chosen"), table.T[1:], strict=True):
        gain = own - table[:, 0]
        spread = gain.std(ddof=1) / np.sqrt(len(gain))
        told[way] = {
            "accuracy": round(float(own.mean()), 2),
            "gain": [round(float(gain.mean()), 2), round(float(spread), 2)],
            "worst": round(float(gain.min()), 2),
        }
    return told | {"taken": float(np.mean([strength > 0 for _, strength in found]))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--cells", default=",".join(CELLS))
    asked = parser.parse_args()
    file = RESULTS / "unlabelled.json"  # cells that are there already stay
    results: dict[str, Any] = json.loads(file.read_text())["results"] if file.exists() else {}
    for name in asked.cells.split(","):
        results[name] = summary([accuracies(CELLS[name], seed) for seed in range(asked.draws)])
        print(name, results[name], flush=True)
        if asked.record:
            command = "python benchmarks/unlabelled.py --record --draws DRAWS --cells CELLS"
            record("unlabelled", command, results)


if __name__ == "__main__":
    main()
