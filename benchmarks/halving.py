"""What successive halving costs in accuracy, where the whole grid was searched, too.

    python benchmarks/halving.py                    # the paper's UCI table, linear models
    python benchmarks/halving.py --datasets kmnist,fashion-mnist --model mlp --device cuda

Every configuration trains for a quarter of the epochs, all trials at once. What halving would have
chosen follows from its accuracy without true labels, epoch by epoch; the accuracies on the test
rows, of that choice and of the whole search's, are those after all epochs in `results/ledger`.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import record
from numpy.typing import NDArray

from ruleout.experiments import Record, gather
from ruleout.experiments.runner import _options, prepare
from ruleout.experiments.specs import HALVING
from ruleout.selection import search

LEDGER = Path(__file__).parents[1] / "results" / "ledger"
UCI = ("yeast", "texture", "dermatology", "synthetic-control")


def curves(of: Record, device: str) -> NDArray[Any]:
    """Return the criterion on the rows set aside, ``[configurations, epochs]``."""
    spec = replace(of.spec, epochs=-(-of.spec.epochs // HALVING[-1]))
    data = prepare(spec)
    trials = data.trials[: spec.searching]
    found = search(
        data.x, trials, grid="paper", criterion=spec.criterion, share=spec.share, every=1,
        refit=False, **_options(spec, data, device),
    )  # fmt: skip
    assert found.grid.configurations == of.configurations
    held = found.grid.history[f"held out/{spec.criterion}"].mean(0)
    return np.asarray(np.nan_to_num(held, nan=-np.inf))


def scores(held: NDArray[Any], epochs: int, average: int) -> NDArray[Any]:
    last = min(average, -(-epochs // 3))
    return np.asarray(held[:, epochs - last : epochs].mean(1))


def halved(held: NDArray[Any], of: Record) -> int:
    """Return which configuration `--grid halving` would have chosen."""
    left = np.arange(len(held))
    for part in HALVING:
        epochs = -(-of.spec.epochs // part)
        own = scores(held, epochs, of.spec.average)[left]
        most = 1 if part == HALVING[-1] else len(left) // 3
        left = np.sort(left[np.argsort(-own, kind="stable")[:most]])
    return int(left[0])


def lost(of: Record, device: str) -> dict[str, float]:
    """Return by how many points choices are below that of the whole search."""
    held, tests = curves(of, device), 100 * of.tests.mean(0)
    quarter = scores(held, held.shape[1], of.spec.average)
    whole = tests[of.chosen[0]]
    return {
        "halving": float(whole - tests[halved(held, of)]),
        "a quarter of the epochs for all": float(whole - tests[int(quarter.argmax())]),
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--datasets", default=",".join(UCI))
    parser.add_argument("--model", default="linear")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    wanted = [
        one
        for one in gather(LEDGER).records
        if one.spec.dataset in given.datasets.split(",")
        and (one.spec.model, one.spec.grid) == (given.model, "paper")
        and one.spec.features == "raw"
        and not one.spec.law.startswith("fixed")
    ]
    rows: list[dict[str, Any]] = []
    every: dict[str, list[dict[str, float]]] = {}
    for one in wanted:
        every.setdefault(one.spec.dataset, []).append(lost(one, given.device))
    for name, cells in {**every, "all": [one for own in every.values() for one in own]}.items():
        row: dict[str, Any] = {"data set": name, "cells": len(cells)}
        for way in cells[0]:
            values = np.array([one[way] for one in cells])
            row[f"{way}: points lost"] = round(float(values.mean()), 2)
            row[f"{way}: standard error"] = round(float(values.std(ddof=1) / len(cells) ** 0.5), 2)
            row[f"{way}: most"] = round(float(values.max()), 1)
        print(row, flush=True)
        rows.append(row)
    if given.record:
        record("halving", f"python benchmarks/halving.py {' '.join(sys.argv[1:])}", {"rows": rows})


if __name__ == "__main__":
    main()
