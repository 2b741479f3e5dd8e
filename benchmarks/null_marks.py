"""How often a comparison marks a difference: where there is none, and where there is one.

    python benchmarks/null_marks.py --record

Data are drawn anew for each comparison: Gaussian blobs, linear models. Where there is no
difference, either LOG competes with itself under other seeds (*seeds*), or LOG on one half of the
features with LOG on the other half, which is as good on average over data (*halves*).
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
from common import record
from numpy.typing import NDArray

import ruleout as ro
from ruleout.comparison import Comparison, compare
from ruleout.comparison.comparing import with_marks
from ruleout.training import Trial

DESIGNS = ("folds", "kept", "labels")
NULLS = ("seeds", "halves")
K, WIDE, ROWS = 4, 8, 300
GRID = {"learning_rate": [1e-1, 1e-2], "weight_decay": [1e-3, 1e-5]}


def blobs(random: np.random.Generator) -> list[tuple[NDArray[np.float32], NDArray[np.intp]]]:
    """Return training and test rows; both halves of the features are drawn alike."""
    centres = 0.9 * random.normal(size=(K, WIDE))
    both = np.concatenate([centres, centres[:, random.permutation(WIDE)]], 1)
    found = []
    for _ in range(2):
        y = random.integers(K, size=ROWS)
        noise = random.normal(size=(ROWS, 2 * WIDE))
        found.append(((both[y] + noise).astype(np.float32), y))
    return found


def one_side(
    seed: int, side: int, case: str, design: str, approach: str, trials: int, epochs: int
) -> Comparison:
    """Run one approach; the rows that judge are the same on both sides."""
    (x, y), (x_test, y_test) = blobs(np.random.default_rng([seed, 3]))
    half = slice(WIDE) if case != "halves" or side == 0 else slice(WIDE, None)
    sets = ro.draw(y, classes=K, seed=seed)
    first = 100_000 * (seed + 1) + (1_000 * side if case == "seeds" else 0)
    told: dict[str, Any] = {"grid": GRID, "epochs": epochs, "every": epochs, "seed": seed}
    if design == "labels":
        told["test"] = (x_test[:, half], y_test)
    elif design == "folds":
        told["judge"] = "folds"
    each = [Trial(sets, seed=first + place) for place in range(trials)]
    return compare(x[:, half], each, approaches=[approach], **told)


def marked(
    seed: int, case: str, design: str, rival: str = "log", *, trials: int = 5, epochs: int = 20
) -> bool:
    """Return whether a comparison of LOG and its rival marks a difference."""
    ours = one_side(seed, 0, case, design, "log", trials, epochs)
    theirs = one_side(seed, 1, case, design, rival, trials, epochs)
    rows = [ours.rows[0], replace(theirs.rows[0], approach="rival")]
    return bool(with_marks(rows, ours.method, ["log"])[0][1].mark)


def share(count: int, *told: Any, **more: Any) -> float:
    return float(np.mean([marked(seed, *told, **more) for seed in range(count)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="null comparisons of each design")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    results: dict[str, Any] = {"comparisons": asked.count, "trials": 5}
    for design in DESIGNS:
        for case in NULLS:
            results[f"{design}, none: {case}"] = share(asked.count, case, design)
        for rival in ("cce", "ga-after"):
            results[f"{design}, log against {rival}"] = share(
                asked.count // 8, "same", design, rival
            )
    for name, value in results.items():
        print(f"{name:36}{value:g}")
    if asked.record:
        record("null_marks", "python benchmarks/null_marks.py --record", results)


if __name__ == "__main__":
    main()
