"""How often the range of `label plan` holds the truth, which should be 8 of 10 projects.

    python benchmarks/plan_coverage.py --projects 40 --record

Projects of 250 items, one question about each, on digits and on Gaussian blobs, without and with
wrong answers, whose share thirty gold questions measure. Each is planned for the accuracies that
such projects reach, on average over trials, with as many questions, twice and four times as many:
the range holds the truth if that number of questions lies in it.
"""

from __future__ import annotations

import argparse
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from common import record

import ruleout as ro
from ruleout.datasets import Table
from ruleout.learning import planning
from ruleout.learning.planning import forecast, measure_curve
from ruleout.learning.training_data import Review

ITEMS, GOLD, TEST = 250, 30, 390


@cache
def world(name: str) -> tuple[Any, Any, int]:
    """Return features, true classes, and how many classes there are."""
    if name == "digits":
        x, y = ro.datasets.load("digits").train
        return x, np.asarray(y), 10
    random = np.random.default_rng(0)
    y = random.integers(0, 8, 4000)
    centres = 0.8 * random.normal(size=(8, 12))
    return (centres[y] + random.normal(size=(4000, 12))).astype(np.float32), y, 8


def answered(name: str, n: int, wrong: float, seed: int) -> tuple[Any, Any, ro.Answers, Any, int]:
    """Ask about n items: rows, classes, answers, rows to test on, gold answers missed."""
    x, y, k = world(name)
    random = np.random.default_rng([seed, n])
    order = random.permutation(len(x))
    some, test = order[:n], order[-TEST:]
    truth = ro.answer(ro.propose(n, k, seed=random), y[some])
    said = ro.Answers(truth.asked, truth.yes ^ (random.random(n) < wrong), truth.items)
    return x[some], y[some], said, (x[test], y[test]), int(random.binomial(GOLD, wrong))


def reached(name: str, n: int, wrong: float, seed: int, steps: int) -> float:
    """Return the test accuracy of a project that has asked n questions."""
    x, _, said, test, missed = answered(name, n, wrong, seed)
    rate = (missed + 0.5) / (GOLD + 1) if wrong else 0.0
    clf = ro.RuleOutClassifier(
        approach="likelihood" if wrong else "log", grid=planning.GRID, random_state=seed,
        epochs=-(-steps // -(-n // 256)),
    )  # fmt: skip
    return float(clf.fit(x, planning._evidence(said, said.items, rate)).score(*test))


def planned(name: str, wrong: float, seed: int) -> list[planning.Point]:
    """Return what a project measures on itself."""
    x, _, said, _, missed = answered(name, ITEMS, wrong, 1000 + seed)
    none = ro.LabelSets(np.zeros((ITEMS, said.asked.shape[1]), bool), said.asked.classes,
                        unlabelled=True)  # fmt: skip
    review = Review(
        table=Table(x=x, shape=x.shape[1:], features=(), source=Path(name), sha256=""), sets=none,
        evidence=None, answers=said, said=said, tests=(missed, GOLD if wrong else 0),
        gold=np.full(ITEMS, -1), contradictions=(),
    )  # fmt: skip
    return measure_curve(review, seed=seed)


def covered(name: str, wrong: float, projects: int, trials: int) -> dict[str, Any]:
    """Return how often the range held the truth, and how often it was open above."""
    sizes = [times * ITEMS for times in (1, 2, 4)]
    steps = planning.STEPS
    targets = [np.mean([reached(name, n, wrong, t, steps) for t in range(trials)]) for n in sizes]
    held, opened = [], []
    for seed in range(projects):
        found = planned(name, wrong, seed)
        for questions, target in zip(sizes, targets, strict=True):
            told = forecast(found, float(target), seed=seed)
            held.append(told.low <= questions <= told.high)
            opened.append(bool(np.isinf(told.high)))
    at = dict(zip(map(str, sizes), np.round(targets, 4).tolist(), strict=True))
    return {"covered": float(np.mean(held)), "open": float(np.mean(opened)), "accuracy": at}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projects", type=int, default=40)
    parser.add_argument("--trials", type=int, default=20, help="whose mean is the truth")
    parser.add_argument("--steps", type=int, default=planning.STEPS, help="of every fit")
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    planning.STEPS = told.steps
    results: dict[str, Any] = {}
    for name in ("digits", "blobs"):
        for wrong in (0.0, 0.05):
            found = covered(name, wrong, told.projects, told.trials)
            results[f"{name}, {wrong:.0%} wrong"] = found
            print(f"{name}, {wrong:.0%} wrong: {found}", flush=True)
    if told.record:
        given = f"--projects {told.projects} --trials {told.trials} --steps {told.steps}"
        record("plan_coverage", f"python benchmarks/plan_coverage.py {given}", results)


if __name__ == "__main__":
    main()
