"""A few true labels beside sets of one class: how much they give, and whether they ever hurt.

    python benchmarks/true_labels.py [--record] [--draws 8] [--data digits,fashion-mnist,…]

Every row rules out one class, drawn at random; of 1 %, and of 5 %, of the rows the true class is
known instead. Linear models and LOG, as by ``ruleout fit --known``, set beside the same without
true labels, of the same rows, sets and seeds, in two ways:

- ``chosen``: each chooses its configuration from the small grid, as `fit` does.
- ``same``: with labels, too, that which was chosen without: what they teach, less the chance that
  is in choosing.

Accuracies are by true labels of rows that took no part, differences in points, with the standard
error over draws.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from common import record
from sklearn.base import clone

import ruleout as ro

ROWS = {"digits": 1300, "fashion-mnist": 2000, "texture": 1500, "yeast": 1000}
SCALED = ("texture", "yeast")  # tables, whose columns differ in size
TEST, SHARES, WAYS = 2000, (0.01, 0.05), ("chosen", "same")


def accuracies(name: str, seed: int, rows: int, **options: Any) -> list[float]:
    """Return the accuracy without true labels, then with each share of them in each way."""
    data = ro.datasets.load(name)
    (x, y), classes = data.train, len(data.classes)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:rows], order[rows : rows + TEST]
    sets = ro.draw(y[train], classes, 1, seed)
    told: dict[str, Any] = {"grid": "small", "random_state": seed, "scale": name in SCALED}
    told["rule"] = "likeliest"  # without true labels, too, so that these alone make a difference
    usual = ro.RuleOutClassifier(**told, **options).fit(x[train], sets)
    found, chosen = [usual.score(x[test], y[test])], usual.configuration_
    same = clone(usual).set_params(grid=None, epochs=usual.n_iter_, **chosen)
    for share in SHARES:
        known = np.where(np.arange(rows) < share * rows, y[train], -1)  # in random order
        said = ro.evidence(sets, truth=known)
        for clf in (clone(usual), same):
            found.append(clf.fit(x[train], said).score(x[test], y[test]))
    return found


def summary(table: Any) -> dict[str, Any]:
    """Return mean accuracies, and what labels add: mean, standard error, worst draw; in points."""
    table = 100 * np.asarray(table)
    told: dict[str, Any] = {"none": round(table[:, 0].mean(), 2)}
    cases = [f"{share:.0%}, {way}" for share in SHARES for way in WAYS]
    for case, own in zip(cases, table.T[1:], strict=True):
        gain = own - table[:, 0]
        spread = gain.std(ddof=1) / np.sqrt(len(gain))
        told[case] = {
            "accuracy": round(own.mean(), 2),
            "gain": [round(gain.mean(), 2), round(spread, 2)],
            "worst": round(gain.min(), 2),
        }
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--data", default=",".join(ROWS))
    asked = parser.parse_args()
    results: dict[str, Any] = {}
    for name in asked.data.split(","):
        table = [accuracies(name, seed, ROWS[name]) for seed in range(asked.draws)]
        results[f"{name}, {ROWS[name]:,} rows"] = summary(table)
        print(name, results[f"{name}, {ROWS[name]:,} rows"], flush=True)
    if asked.record:
        given = f"--draws {asked.draws} --data {asked.data} --record"
        record("true_labels", f"python benchmarks/true_labels.py {given}", results)


if __name__ == "__main__":
    main()
