"""Is `resolve` right as often as it says? Rows are those that trained the model.

    python benchmarks/resolve_calibration.py --trials 10 --record

Rule-out answers about digits and about Gaussian blobs, of which a share is wrong; thirty questions
with a known answer measure the share. The classifier learns from all answers by the likelihood, its
settings chosen without true labels, and resolves the same rows. Rows are sorted by the probability
that `resolve` gives and cut into five bins of equal counts: what it said on average is put beside
how often it was right. Beside its accuracy are those of the two it combines: of the model's own
predictions on these rows, and of answers alone, ties counting in parts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from common import record
from numpy.typing import NDArray

import ruleout as ro

Array = NDArray[np.float64]
GOLD = 30


class Trial(NamedTuple):
    said: Array  # [n]: the probability of the class named
    right: Array  # [n]: 1 where that is the true class
    predicted: float  # the accuracy of the model's own predictions on these rows
    answers: float  # that of answers alone


def rows(name: str, n: int, seed: int) -> tuple[Any, Any, int]:
    """Return features, true classes, and how many classes there are."""
    random = np.random.default_rng([seed, n])
    if name == "digits":
        x, y = ro.datasets.load("digits").train
        some = random.permutation(len(x))[:n]
        return x[some], np.asarray(y)[some], 10
    y = random.integers(0, 6, n)
    centres = 1.4 * random.normal(size=(6, 8))
    return (centres[y] + random.normal(size=(n, 8))).astype(np.float32), y, 6


def simulate(name: str, n: int, wrong: float, answers: int, seed: int, **options: Any) -> Trial:
    """Fit and resolve once."""
    x, y, k = rows(name, n, seed)
    items = np.tile(np.arange(n), answers)
    sets = ro.draw(y[items], classes=k, seed=np.random.default_rng([seed, 1]), noise=wrong)
    missed = int(np.random.default_rng([seed, 2]).binomial(GOLD, wrong))
    known = ro.evidence(sets, error=(missed, GOLD), items=items)
    given = {"approach": "likelihood", "grid": "small", "random_state": seed, **options}
    clf = ro.RuleOutClassifier(**given).fit(x, known)
    found = clf.resolve(x, known)
    likely = known.likelihood == known.likelihood.max(1, keepdims=True)
    alone = float((likely[np.arange(n), y] / likely.sum(1)).mean())
    right = (found.labels == y).astype(float)
    return Trial(found.probability, right, clf.score(x, y), alone)


def bins(trials: Sequence[Trial], count: int = 5) -> list[tuple[float, float]]:
    """Return what was said and what was right in bins of equal counts."""
    said, right = (np.concatenate([getattr(t, name) for t in trials]) for name in ("said", "right"))
    parts = np.array_split(np.argsort(said, kind="stable"), count)
    return [(float(said[part].mean()), float(right[part].mean())) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    results: dict[str, Any] = {}
    for n in (200, 1000):
        for answers in (1, 3):
            for wrong in (0.0, 0.05, 0.1, 0.2):
                names = ("digits", "blobs")
                every = [
                    simulate(name, n, wrong, answers, seed)
                    for name in names
                    for seed in range(told.trials)
                ]
                found = bins(every)
                means = {
                    "resolve": float(np.mean([one.right.mean() for one in every])),
                    "predict": float(np.mean([one.predicted for one in every])),
                    "answers": float(np.mean([one.answers for one in every])),
                }
                gaps = " ".join(f"{100 * (said - right):+5.1f}" for said, right in found)
                accuracy = ", ".join(f"{name} {value:.3f}" for name, value in means.items())
                case = f"{n} rows, {answers} answers, {wrong:.0%} wrong"
                print(f"{case}: said - right {gaps}; {accuracy}", flush=True)
                results[case] = {"bins": found, **means}
    if told.record:
        record(
            "resolve_calibration",
            f"python benchmarks/resolve_calibration.py --trials {told.trials}",
            results,
        )


if __name__ == "__main__":
    main()
