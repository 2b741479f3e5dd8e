"""How often `resolve` is right beside what it says: rows that trained the model, and fresh ones.

    python benchmarks/resolve_calibration.py [--record] [--projects 40] [--first 0]
        [--only 200,1,0.1] [--device cuda] [--jobs 15] [--out resolve_calibration.jsonl]

Rule-out answers about digits, about Gaussian blobs, and about classes of two blobs each, which no
linear model can tell apart well. A share of the answers is wrong; thirty questions with a known
answer measure the share. A model learns from all answers by the likelihood, its settings chosen
without true labels, and the same rows are resolved; so are 400 fresh rows of the same world, with
as many answers each, as a table of their own. Rows of all projects of a setting are sorted by the
probability that `resolve` gives and cut into five bins of equal counts: what it said on average is
put beside how often it was right. Rows of a project err together, so standard errors are those of
sums over projects. Beside its accuracy are those of the two it combines: of the model's own
predictions on these rows, and of answers alone, ties counting in parts.

Projects are trials of one stack, which a GPU likes; a test holds them against the classifier. Every
project is two lines of the file `--out`; those that are in it are not made again, so a run that was
cut off goes on, files can be joined, and `--projects 0` only says what the file holds. `--only` is
rows, answers and the share that is wrong. On a GPU, settings side by side:

    python benchmarks/resolve_calibration.py --device cuda --jobs 15

How doubt follows from models that differ (`_mean` in the classifier) was set on seeds 1,000 to
1,029 of digits, of these blobs and of two kinds more, and on Texture, Kuzushiji-MNIST and yeast;
how classes are made equal, and what is known of powers beforehand, on seeds 5,000 to 5,031 of the
worlds here. Recorded seeds start at 0.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from common import record
from fit_coverage import read
from numpy.typing import NDArray

import ruleout as ro
from ruleout.estimator import classifier
from ruleout.labels.origins import Evidence
from ruleout.selection import folds, search
from ruleout.training import Trial, fit_grid
from ruleout.training.grid_fit import predict

Array = NDArray[np.float64]
GOLD, FRESH = 30, 400
WORLDS = ("digits", "blobs", "pairs")


class Project(NamedTuple):
    said: Array  # [n]: the probability of the class named
    right: Array  # [n]: 1 where that is the true class
    predicted: float  # the accuracy of the model's own predictions on these rows
    answers: float  # that of answers alone


class Drawn(NamedTuple):
    x: NDArray[np.float32]
    y: NDArray[np.intp]
    known: Evidence


def rows(name: str, n: int, seed: int) -> list[tuple[Any, Any, int]]:
    """Return features, true classes, and how many classes there are; the same of fresh rows."""
    random = np.random.default_rng([seed, n])
    if name == "digits":
        x, y = ro.datasets.load("digits").train
        some = random.permutation(len(x))
        return [(x[i], np.asarray(y)[i], 10) for i in (some[:n], some[n : n + FRESH])]
    found, means = [], np.empty(0)
    for count in (n, FRESH):
        y = random.integers(0, 6, count)
        if not means.size:
            means = 1.4 * random.normal(size=(2, 6, 8) if name == "pairs" else (1, 6, 8))
        own = means[random.integers(0, 2, count) if name == "pairs" else 0, y]
        found.append(((own + random.normal(size=(count, 8))).astype(np.float32), y, 6))
    return found


def drawn(name: str, n: int, answers: int, wrong: float, seed: int) -> tuple[Drawn, Drawn]:
    """Draw the rows of a project, and fresh ones, and what was said about them."""
    chance = np.random.default_rng([seed, 1])
    missed = int(np.random.default_rng([seed, 2]).binomial(GOLD, wrong))
    found = []
    for x, y, k in rows(name, n, seed):
        items = np.tile(np.arange(len(x)), answers)
        sets = ro.draw(y[items], classes=k, seed=chance, noise=wrong)
        found.append(Drawn(x, y, ro.evidence(sets, error=(missed, GOLD), items=items)))
    return found[0], found[1]


def combined(one: Drawn, each: Array, own: NDArray[np.intp]) -> Project:
    """Resolve rows by models that did not see them, ``[m, n, k]`` logits, as the classifier."""
    tensors = torch.from_numpy(each)
    told = classifier._mean(tensors.shape[1:], [np.arange(len(one.y))] * len(each), tensors)
    cases = [(weight, torch.from_numpy(table)) for weight, table in one.known.cases()]
    said, _ = classifier._posterior(*told, cases)
    best, places = (part.numpy() for part in said.max(-1))
    likely = one.known.likelihood == one.known.likelihood.max(1, keepdims=True)
    alone = float((likely[np.arange(len(one.y)), one.y] / likely.sum(1)).mean())
    right = (places == one.y).astype(float)
    return Project(best, right, float(np.mean(own == one.y)), alone)


def simulate(
    name: str, n: int, answers: int, wrong: float, seeds: Sequence[int], **options: Any
) -> list[tuple[Project, Project]]:
    """Fit some projects as trials of one stack, and resolve their rows and fresh ones."""
    every, fresh = zip(*(drawn(name, n, answers, wrong, seed) for seed in seeds), strict=True)
    x, places = np.concatenate([one.x for one in every]), np.arange(n * len(every)).reshape(-1, n)
    trials = [
        Trial(one.known.sets, rows=own, seed=seed, evidence=one.known)
        for one, own, seed in zip(every, places, seeds, strict=True)
    ]
    epochs = ro.RuleOutClassifier(approach="likelihood", grid="small")._epochs(n)
    how: dict[str, Any] = {"approach": "likelihood", "epochs": epochs, "every": epochs} | options
    found = search(x, trials, folds=5, per_trial=True, **({"grid": "small"} | how))
    assert found.final is not None
    device, k = how.get("device"), every[0].known.sets.shape[1]
    cuts = int(np.clip(4000 // n, 4, 16))
    each = np.zeros((len(every), cuts, n, k))
    for c in {*found.chosen.tolist()}:
        kept, left = [], []
        for t in np.flatnonzero(found.chosen == c).tolist():
            chance = np.random.default_rng(seeds[t])
            parts = [part for _ in range(cuts) for part in folds(n, 5, np.arange(n), chance)]
            for place, part in enumerate(parts):
                rest = trials[t].part(np.setdiff1d(np.arange(n), part))
                kept.append(replace(rest, seed=seeds[t] + place))
                left.append((t, place // 5, part))
        fit = fit_grid(x, kept, **how | {"grid": [found.grid.configurations[c]]}, moments=False)
        for model, (t, i, part) in enumerate(left):
            each[t, i, part] = predict(fit.module(model).to(device), every[t].x[part]).numpy()
    pairs = []
    for t, (own, new) in enumerate(zip(every, fresh, strict=True)):
        five = [
            predict(found.grid.module(5 * t + i, int(found.chosen[t])), new.x) for i in range(5)
        ]
        named = [predict(found.final.module(t), one.x).argmax(-1).numpy() for one in (own, new)]
        folded = torch.stack(five).double().numpy()
        pairs.append((combined(own, each[t], named[0]), combined(new, folded, named[1])))
    return pairs


def bins(projects: Sequence[Project], count: int = 5) -> list[tuple[float, float, float]]:
    """Return what was said, what was right, and the standard error of the gap, in equal bins."""
    said, right = (np.concatenate([one[part] for one in projects]) for part in (0, 1))
    owner = np.repeat(np.arange(len(projects)), [len(one.said) for one in projects])
    found = []
    for part in np.array_split(np.argsort(said, kind="stable"), count):
        off = said[part] - right[part]
        sums = np.bincount(owner[part], off - off.mean(), len(projects))
        error = float(np.sqrt(np.square(sums).sum()) / len(part))
        found.append((float(said[part].mean()), float(right[part].mean()), error))
    return found


def summary(projects: Sequence[Project]) -> dict[str, Any]:
    """Say what was said and right, and how its accuracy compares with those of its two sources."""
    n = len(projects[0].said)
    own = np.array([[one.right.mean(), one.predicted, one.answers] for one in projects])
    means, worst = own.mean(0).round(4).tolist(), own[:, 1:].min(1)
    noise = 2 * np.sqrt(worst * (1 - worst) / n)
    return {
        "projects": len(projects),
        "bins": [[round(v, 4) for v in one] for one in bins(projects)],
        **dict(zip(("resolve", "predict", "answers"), means, strict=True)),
        "worse than both": int((own[:, 0] < worst - noise).sum()),
        "worse than predict": int((own[:, 0] < own[:, 1] - noise).sum()),
    }


def line(cell: dict[str, Any], seed: int, one: Project) -> str:
    """Return the rows of a project, or its fresh ones, as one line."""
    said, right = np.rint(1e4 * one.said).astype(int), one.right.astype(int)
    told = {"seed": seed, "predicted": one.predicted, "answers alone": one.answers}
    return json.dumps({**cell, **told, "said": said.tolist(), "right": right.tolist()}) + "\n"


def job(told: tuple[dict[str, Any], list[int], str | None]) -> list[str]:
    cell, seeds, device = told
    torch.set_num_threads(1)
    name, n, answers, wrong = cell.values()
    found = simulate(name, n, answers, wrong, seeds, device=device)
    kinds: tuple[dict[str, Any], ...] = ({}, {"fresh": True})
    pairs = zip(seeds, found, strict=True)
    return [
        line(cell | k, seed, p) for seed, both in pairs for k, p in zip(kinds, both, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--projects", type=int, default=40, help="of each world and setting")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", help="rows,answers,wrong")
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--together", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("resolve_calibration.jsonl"))
    told = parser.parse_args()
    settings = list(product((200, 1000), (1, 3), (0.0, 0.05, 0.1, 0.2)))
    if told.only:
        n, answers, wrong = told.only.split(",")
        settings = [(int(n), int(answers), float(wrong))]
    names = ("rows", "answers", "wrong")
    jobs: list[tuple[dict[str, Any], list[int], str | None]] = []
    done = {(one["world"], *(one[name] for name in names), one["seed"]) for one in read(told.out)}
    for start in range(0, told.projects, told.together):  # a run that is cut off has some of each
        for setting, world in product(settings, WORLDS):
            some = range(start, min(start + told.together, told.projects))
            seeds = [told.first + place for place in some]
            left = [seed for seed in seeds if (world, *setting, seed) not in done]
            cell = {"world": world, **dict(zip(names, setting, strict=True))}
            jobs += [(cell, left, told.device)] if left else []
    with multiprocessing.get_context("spawn").Pool(told.jobs) as pool, told.out.open("a") as file:
        for made in pool.imap_unordered(job, jobs):
            file.writelines(made)
            file.flush()
    results = {}
    for n, answers, wrong in settings:
        cell = dict(zip(names, (n, answers, wrong), strict=True))
        lines = [one for one in read(told.out) if cell.items() <= one.items()]
        name = f"{n} rows, {answers} answers, {wrong:.0%} wrong"
        for world, fresh in product((*WORLDS, "all"), (False, True)):
            here = [one for one in lines if world in (one["world"], "all")]
            own = [_project(one) for one in here if one.get("fresh", False) == fresh]
            if not own:
                continue
            told_of = f"{name}, {world}{', fresh rows' if fresh else ''}"
            results[told_of] = found = summary(own)
            gaps = " ".join(f"{100 * (s - r):+5.1f} ({100 * e:.1f})" for s, r, e in found["bins"])
            rest = ", ".join(f"{key} {value}" for key, value in found.items() if key != "bins")
            print(f"{told_of}: said - right {gaps}; {rest}", flush=True)
    if told.record:
        command = "python benchmarks/resolve_calibration.py --record"  # 'projects' says how many
        record("resolve_calibration", command, results)


def _project(one: dict[str, Any]) -> Project:
    said, right = np.array(one["said"]) / 1e4, np.array(one["right"], float)
    return Project(said, right, one["predicted"], one["answers alone"])


if __name__ == "__main__":
    main()
