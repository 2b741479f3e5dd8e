"""How often a comparison marks a difference: where there is none, and where there is one.

    python benchmarks/null_marks.py --record [--workers 8]

Data are drawn anew for each comparison: Gaussian blobs, linear models. Where there is no
difference, either LOG competes with itself under other seeds (*seeds*), or LOG on one half of the
features with LOG on the other half, which is as good on average over data (*halves*).

Comparisons are planned, chosen, judged and marked as `ruleout.compare` does it, but many of them
train in one stack.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from common import record, side_by_side
from numpy.typing import NDArray

import ruleout as ro
from ruleout.comparison import Method, Row
from ruleout.comparison.comparing import _Runner, with_marks
from ruleout.comparison.judging import Judging, plan
from ruleout.training import Trial, Watch, configurations

DESIGNS = ("folds", "kept", "labels")
NULLS = ("seeds", "halves")
K, WIDE, ROWS, TOGETHER = 4, 8, 300, 50
GRID = {"learning_rate": [1e-1, 1e-2], "weight_decay": [1e-3, 1e-5]}


@dataclass(frozen=True, eq=False)
class Stacked(Judging):
    """Many comparisons, each on rows of its own."""

    def watch(self) -> Watch:
        return Watch(self.targets, {self.name: self.values}, rows=list(self.rows))


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


def given(seed: int, side: int, case: str, design: str, trials: int) -> tuple[Any, ...]:
    """Return rows and trials of one side, and what else `compare` is told."""
    (x, y), (x_test, y_test) = blobs(np.random.default_rng([seed, 3]))
    half = slice(WIDE) if case != "halves" or side == 0 else slice(WIDE, None)
    sets = ro.draw(y, classes=K, seed=seed)
    first = 100_000 * (seed + 1) + (1_000 * side if case == "seeds" else 0)
    each = [Trial(sets, seed=first + place) for place in range(trials)]
    told: dict[str, Any] = {"judge": "folds" if design == "folds" else 0.2, "seed": seed}
    told["test"] = (x_test[:, half], y_test) if design == "labels" else None
    return x[:, half], each, told


def run(
    sides: list[tuple[int, int]], case: str, design: str, approach: str, trials: int, epochs: int
) -> list[Row]:
    """Train all sides in one stack, and return the row of each."""
    tables, parts = [], []
    for place, (seed, side) in enumerate(sides):
        x, each, told = given(seed, side, case, design, trials)
        one = plan(x, each, trials=None, score=ro.criterion("accuracy"), **told)
        first = place * (2 if told["test"] else 1) * ROWS
        tables += [x] if told["test"] is None else [x, told["test"][0]]
        own = [np.arange(ROWS) if t.rows is None else np.asarray(t.rows) for t in one.trials]
        moved = [replace(t, rows=r + first) for t, r in zip(one.trials, own, strict=True)]
        judged = one.rows + first + (ROWS if told["test"] else 0)
        parts.append(replace(one, trials=moved, rows=judged))
    table, one = np.concatenate(tables), parts[0]
    every: Any = [[item for part in parts for item in part.trials]]
    every += [table, np.concatenate([part.rows for part in parts])]
    every += [[item for part in parts for item in part.targets], one.name, one.values]
    choosing = {"criterion": ro.criterion("accuracy"), "share": 0.1, "rule": "best"}
    choosing |= {"grid": configurations(GRID), "average": 1, "refit": False}
    choosing |= {"per_trial": True, "every": epochs}
    how = {"model": "linear", "epochs": epochs, "seed": 0, "device": "cpu", "precision": "float32"}
    how["tail"] = 1
    stack = Stacked(one.kind, *every)
    runner = _Runner(table, stack, epochs, None, choosing, how)
    row, _ = runner._run(ro.approach(approach))
    cells = row.cells.reshape(len(sides), trials, -1)
    cuts = np.split(np.array(row.trials), len(sides))
    return [
        replace(row, score=float(cut.mean()), trials=tuple(cut.tolist()), cells=own)
        for cut, own in zip(cuts, cells, strict=True)
    ]


def marks(
    seeds: range, case: str, design: str, rival: str = "log", trials: int = 5, epochs: int = 20
) -> list[bool]:
    """Return of each comparison of LOG with its rival whether a difference is marked."""
    told = (case, design)
    ours = run([(seed, 0) for seed in seeds], *told, "log", trials, epochs)
    theirs = run([(seed, 1) for seed in seeds], *told, rival, trials, epochs)
    kind: Any = design
    method = Method(kind=kind, rows=ROWS, trials=trials, over="both")
    pairs = [[a, replace(b, approach="rival")] for a, b in zip(ours, theirs, strict=True)]
    return [bool(with_marks(pair, method, ["log"])[0][1].mark) for pair in pairs]


def parts(count: int, first: int = 0) -> list[range]:
    """Cut so many seeds into those that train together."""
    return [
        range(first + low, first + min(low + TOGETHER, count)) for low in range(0, count, TOGETHER)
    ]


def share(count: int, *told: Any) -> float:
    """Return how many of so many comparisons are marked."""
    return float(np.mean([one for part in parts(count) for one in marks(part, *told)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=400, help="null comparisons of each design")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--design", choices=DESIGNS, action="append", help="default: all")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    cases: dict[str, tuple[Any, ...]] = {}
    for design in asked.design or DESIGNS:
        cases |= {f"{design}, none: {case}": (asked.count, case, design) for case in NULLS}
        for rival in ("cce", "ga-after"):
            cases[f"{design}, log against {rival}"] = (asked.count // 4, "same", design, rival)
    each = [(name, part) for name, told in cases.items() for part in parts(told[0], asked.first)]
    jobs = ((part, *cases[name][1:]) for name, part in each)
    found: dict[str, list[bool]] = {}
    for (name, _), marked in zip(each, side_by_side(marks, jobs, asked.workers), strict=True):
        found.setdefault(name, []).extend(marked)
        if len(found[name]) == cases[name][0]:
            print(f"{name:36}{np.mean(found[name]):g}", flush=True)
    results: dict[str, Any] = {"comparisons": asked.count, "trials": 5}
    results |= {name: float(np.mean(marked)) for name, marked in found.items()}
    if asked.record:
        told = f"--count {asked.count} --first {asked.first} --record"
        record("null_marks", f"python benchmarks/null_marks.py {told}", results)


if __name__ == "__main__":
    main()
