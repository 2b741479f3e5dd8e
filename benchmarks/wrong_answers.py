"""Learning from wrong answers: their likelihood, against weights, and against trusting them all.

    python benchmarks/wrong_answers.py [--record] [--seeds 3] [--data digits,texture] [--workers 8]

Answers rule out sets drawn at random; a share of them holds the true class by mistake. About each
row one to five people are asked. Three ways to learn from that, all with a linear model and the
small grid, whose configuration is chosen without true labels:

- ``nothing``: LOG on what all answers leave possible, as if none were wrong; rows whose answers
  contradict each other are left out.
- ``weights``: the same, but rows weigh how likely what is left holds the true class.
- ``likelihood``: of all answers about a row, none left out.

The last two know the error rate from 30 gold questions, answered wrongly as often as the others.
Accuracies are by true labels of rows that took no part; the differences are of the same draws, with
the standard error over seeds.
"""

from __future__ import annotations

import argparse
from itertools import islice, product
from typing import Any

import numpy as np
from common import record, side_by_side

import ruleout as ro
from ruleout.labels import LabelSets

ROWS, GOLD, WAYS = 1200, 30, ("nothing", "weights", "likelihood")
ERRORS, ANSWERS = (0.05, 0.1, 0.2), (1, 2, 3, 5)


def accuracies(name: str, error: float, answers: int, seed: int, **options: Any) -> list[float]:
    """Return the accuracy of each way on one draw of rows, answers and gold questions."""
    data, chance = ro.datasets.load(name), np.random.default_rng([seed, answers])
    x, y = data.train
    order, classes = chance.permutation(len(y)), len(data.classes)
    train, test = order[:ROWS], order[ROWS : ROWS + 2000]
    items = np.repeat(np.arange(len(train)), answers)
    sets = ro.draw(y[train][items], classes, seed=seed, noise=error)
    known = ro.evidence(sets, (int(chance.binomial(GOLD, error)), GOLD), items=items)
    out = np.zeros(known.sets.shape, np.bool_)
    np.logical_or.at(out, items, sets.excluded)
    whole = np.flatnonzero(~out.all(1))  # rows whose answers do not contradict each other
    likely = np.exp(known.likelihood)
    weight = (likely * ~out).sum(1) / likely.sum(1)
    left = LabelSets(out[whole], classes)
    told: dict[str, tuple[Any, ...]] = {
        "nothing": (x[train][whole], left),
        "weights": (x[train][whole], left, weight[whole]),
        "likelihood": (x[train], known),
    }
    found = []
    for way in WAYS:
        approach = "likelihood" if way == "likelihood" else "log"
        clf = ro.RuleOutClassifier(approach=approach, grid="small", random_state=seed, **options)
        found.append(clf.fit(*told[way]).score(x[test], y[test]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", default="digits,texture")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=1)
    asked = parser.parse_args()
    cases = list(product(asked.data.split(","), ERRORS, ANSWERS))
    seeds = range(asked.first, asked.first + asked.seeds)
    jobs = ((*case, seed) for case in cases for seed in seeds)
    found = side_by_side(accuracies, jobs, asked.workers)
    results: dict[str, Any] = {}
    for name, error, answers in cases:
        table = 100 * np.array(list(islice(found, asked.seeds)))
        told: dict[str, Any] = dict(zip(WAYS, table.mean(0).round(2).tolist(), strict=True))
        for way, other in zip(WAYS[:2], table.T[:2], strict=True):
            gain = table[:, 2] - other
            spread = gain.std(ddof=1) / np.sqrt(len(gain))
            told[f"gain over {way}"] = [round(gain.mean(), 2), round(spread, 2)]
        results[f"{name}, {100 * error:g} % wrong, {answers} answer(s)"] = told
        print(name, error, answers, told, flush=True)
    if asked.record:
        given = f"--seeds {asked.seeds} --first {asked.first} --data {asked.data} --record"
        record("wrong_answers", f"python benchmarks/wrong_answers.py {given}", results)


if __name__ == "__main__":
    main()
