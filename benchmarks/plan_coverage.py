"""How often the range of `label plan` holds the truth, which should be 8 of 10 projects.

    python benchmarks/plan_coverage.py --record [--first 0] [--workers 1]
        [--only digits,blobs,texture,mnist] [--wrong 0,0.05] [--out plan_coverage.jsonl]

Projects of 250 items, one question about each, on digits, Gaussian blobs, Texture and MNIST in
seven by seven pixels, without and with wrong answers, whose share thirty gold questions measure.
Each is planned for the accuracies that such projects reach, on average over trials, with as many
questions, twice and four times as many: the range holds the truth if that number of questions lies
in it. Another `--first` draws other projects. Every setting is one line of the file `--out`; those
in the file already are not made again, so that a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import record, side_by_side

import ruleout as ro
from ruleout.datasets import Table
from ruleout.learning import planning
from ruleout.learning.planning import forecast, measure_curve
from ruleout.learning.training_data import Review
from ruleout.selection import search
from ruleout.training import Trial
from ruleout.training.grid_fit import predict

ITEMS, GOLD, TEST = 250, 30, 390
TIMES = 1, 2, 4  # so many questions as projects have: what they are planned for


@cache
def world(name: str) -> tuple[Any, Any, int]:
    """Return features, true classes, and how many classes there are."""
    x: Any
    y: Any
    if name == "blobs":
        random = np.random.default_rng(0)
        y = random.integers(0, 8, 4000)
        centres = 0.8 * random.normal(size=(8, 12))
        return (centres[y] + random.normal(size=(4000, 12))).astype(np.float32), y, 8
    x, y = (np.asarray(part[:6000]) for part in ro.datasets.load(name).train)
    if name == "mnist":  # means of four by four pixels
        x = x.reshape(-1, 7, 4, 7, 4).mean((2, 4)).reshape(-1, 49)
    if name == "texture":
        x = (x - x.mean(0)) / x.std(0)
    return x.astype(np.float32), y, int(y.max()) + 1


def answered(
    name: str, n: int, wrong: float, seed: int
) -> tuple[Any, ro.Answers, tuple[int, int], Any]:
    """Ask about n items: their rows, answers, gold questions missed and asked, rows to test on."""
    x, y, k = world(name)
    random = np.random.default_rng([seed, n])
    order = random.permutation(len(x))
    some, test = order[:n], order[-TEST:]
    truth = ro.answer(ro.propose(n, k, seed=random), y[some])
    said = ro.Answers(truth.asked, truth.yes ^ (random.random(n) < wrong), truth.items)
    gold = (int(random.binomial(GOLD, wrong)), GOLD) if wrong else (0, 0)
    return some, said, gold, test


def reached(name: str, wrong: float, n: int, seeds: range) -> list[float]:
    """Return test accuracies of projects that have asked n questions, chosen as `fit` does."""
    x, y, _ = world(name)
    asked = [answered(name, n, wrong, seed) for seed in seeds]
    known = [
        planning._evidence(said, said.items, (missed + 0.5) / (gold + 1) if gold else 0.0)
        for _, said, (missed, gold), _ in asked
    ]
    found = search(
        x,
        [Trial(e.sets, rows, evidence=e) for e, (rows, *_) in zip(known, asked, strict=True)],
        grid=planning.GRID,
        approach="likelihood" if wrong else "log",
        epochs=-(-planning.STEPS // -(-n // 256)),
        folds=5,
        per_trial=True,
    )
    assert found.final is not None
    tests = [test for *_, test in asked]
    each = [predict(found.final.module(t), x[test]).argmax(-1) for t, test in enumerate(tests)]
    return [float((p.numpy() == y[test]).mean()) for p, test in zip(each, tests, strict=True)]


def planned(name: str, wrong: float, seed: int) -> list[planning.Point]:
    """Return what a project measures on itself."""
    rows, said, tests, _ = answered(name, ITEMS, wrong, 5000 + seed)
    x = world(name)[0][rows]
    none = ro.LabelSets(np.zeros((ITEMS, said.asked.shape[1]), bool), said.asked.classes,
                        unlabelled=True)  # fmt: skip
    review = Review(
        table=Table(x=x, shape=x.shape[1:], features=(), source=Path(name), sha256=""), sets=none,
        evidence=None, answers=said, said=said, tests=tests, gold=np.full(ITEMS, -1),
        contradictions=(),
    )  # fmt: skip
    return measure_curve(review, seed=seed)


def simulated(
    settings: Sequence[tuple[str, float]], projects: range, trials: int, steps: int, workers: int
) -> Iterator[dict[str, Any]]:
    """Return for each setting what `covered` says; the more questions, the fewer trials vary."""
    parts = [
        (n * ITEMS, range(first, min(first + 5, -(-trials // n))))
        for n in TIMES
        for first in range(0, -(-trials // n), 5)
    ]
    jobs: list[tuple[Any, ...]] = []
    for setting in settings:
        jobs += [(steps, reached, *setting, *part) for part in parts]
        jobs += [(steps, planned, *setting, seed) for seed in projects]
    found = side_by_side(_work, jobs, workers)
    for _ in settings:
        accuracies: dict[int, list[float]] = {}
        for (n, _), values in zip(parts, islice(found, len(parts)), strict=True):
            accuracies.setdefault(n, []).extend(values)
        yield covered(accuracies, dict(zip(projects, islice(found, len(projects)), strict=True)))


def _work(steps: int, work: Callable[..., Any], *job: Any) -> Any:
    planning.STEPS = steps
    return work(*job)


def covered(
    accuracies: dict[int, list[float]], projects: dict[int, list[planning.Point]]
) -> dict[str, Any]:
    """Return how often ranges held the truth, how many were open above, and how wide they were.

    Three numbers each, for as many questions, twice and four times as many: the share of ranges
    that held, lay above the truth or below, or were open above, the medians of high / low and of
    told / true, None: infinite. Projects are the units of the standard error.
    """
    sizes, targets = np.array([*accuracies]), [float(np.mean(a)) for a in accuracies.values()]
    told = np.empty((len(projects), len(sizes), 3))
    for place, (seed, found) in enumerate(projects.items()):
        every = [forecast(found, target, seed=seed) for target in targets]
        told[place] = [(one.low, one.questions, one.high) for one in every]
    low, middle, high = np.moveaxis(told, 2, 0)
    held = (low <= sizes) & (sizes <= high)
    each = {
        "accuracy": targets,
        "held": held.mean(0),
        "above": (low > sizes).mean(0),
        "below": (high < sizes).mean(0),
        "open": np.isinf(high).mean(0),
        "width": np.median(high / np.minimum(low, 1e9), 0),
        "told": np.median(middle, 0) / sizes,
    }
    rounded = {
        what: [round(float(v), 3) if np.isfinite(v) else None for v in values]
        for what, values in each.items()
    }
    error = float(held.mean(1).std() / np.sqrt(len(held)))
    whole = {"covered": round(float(held.mean()), 4), "error": round(error, 4)}
    return whole | {"forecasts": held.size} | rounded


def together(results: dict[str, Any]) -> dict[str, Any]:
    """Return the share of all forecasts that held, with and without wrong answers."""
    found: dict[str, Any] = {}
    for what in dict.fromkeys(setting.split(", ")[1] for setting in results):
        some = [one for setting, one in results.items() if setting.endswith(f", {what}")]
        count = sum(one["forecasts"] for one in some)
        share = sum(one["covered"] * one["forecasts"] for one in some) / count
        error = np.sqrt(sum((one["error"] * one["forecasts"]) ** 2 for one in some)) / count
        found[f"together, {what}"] = {
            "covered": round(share, 4), "error": round(float(error), 4), "forecasts": count,
        }  # fmt: skip
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projects", type=int, default=40)
    parser.add_argument("--first", type=int, default=0, help="seed of the first project")
    parser.add_argument("--trials", type=int, default=40, help="whose mean is the truth")
    parser.add_argument("--steps", type=int, default=400, help="of every fit")
    parser.add_argument("--only", default="digits,blobs,texture,mnist", metavar="WORLDS")
    parser.add_argument("--wrong", default="0,0.05", metavar="SHARES")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("plan_coverage.jsonl"))
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    results: dict[str, Any] = {}
    if told.out.exists():
        results = dict(json.loads(line) for line in told.out.read_text().splitlines())
    shares = [float(share) for share in told.wrong.split(",")]
    every = [(name, share) for name in told.only.split(",") for share in shares]
    left = [(name, share) for name, share in every if f"{name}, {share:.0%} wrong" not in results]
    seeds = range(told.first, told.first + told.projects)
    made = simulated(left, seeds, told.trials, told.steps, told.workers)
    for (name, share), found in zip(left, made, strict=True):
        setting = f"{name}, {share:.0%} wrong"
        results[setting] = found
        with told.out.open("a") as file:
            file.write(json.dumps([setting, found]) + "\n")
        print(f"{setting}: {found}", flush=True)
    results |= together(results)
    for setting in list(results)[len(every) :]:
        print(f"{setting}: {results[setting]}")
    if told.record:
        given = f"--projects {told.projects} --first {told.first} --trials {told.trials}"
        given += f" --steps {told.steps} --only {told.only} --record"
        record("plan_coverage", f"python benchmarks/plan_coverage.py {given}", results)


if __name__ == "__main__":
    main()
