"""How often the 95 % interval that `fit` prints holds the truth, after its own choice.

    python benchmarks/fit_coverage.py [--record] [--runs 400] [--model linear,mlp] [--rows 200,1000]
        [--error 0,0.05,0.1] [--device cuda] [--together 25] [--out fit_coverage.jsonl]
    python benchmarks/fit_coverage.py --record --name fit_coverage_share --model linear --rows 6000
        --error 0,0.05 --runs 160 --together 5 --out share.jsonl

Each run draws rows of ten overlapping classes, sets by the released law of which a share is wrong,
and 30 gold questions that measure this share (none where nothing is wrong). Then it does what
`RuleOutClassifier(grid="small")` does: eight configurations on five folds (of more than 5,000 rows
on a share held out), a choice without true labels, a number, and a training on all rows. The truth
is that model's accuracy on 20,000 rows.

Runs are trials of one stack, `--together` at a time, which a GPU likes; every run is one line of
the file `--out`, written as it is done, and runs that are in the file already are not made again.
So a run that was cut off goes on, and files can be joined. On a GPU, cells side by side:

    python benchmarks/fit_coverage.py --model mlp --rows 200 --error 0 --device cuda --out a.jsonl &
    python benchmarks/fit_coverage.py --model mlp --rows 200 --error 0.1 --device cuda --out b.jsonl

One constant of the interval, 0.225 in `ruleout.selection`, was set by seeds from 5,000 on: 190 runs
of each linear cell, where 0.19 fits best, and 130 of MLPs, where 0.26 does.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from common import record
from numpy.typing import NDArray

from ruleout.estimator import RuleOutClassifier
from ruleout.labels.origins import Uniform, evidence
from ruleout.selection import search
from ruleout.training import Trial
from ruleout.training.grid_fit import predict

K, D, GOLD, TEST, SPREAD = 10, 20, 30, 20_000, 0.75
MEANS = np.random.default_rng(0).normal(size=(K, D)) * SPREAD


def mixture(n: int, chance: np.random.Generator) -> tuple[NDArray[np.float32], NDArray[np.intp]]:
    """Draw rows of ten classes around their means."""
    y = chance.integers(K, size=n)
    return (MEANS[y] + chance.normal(size=(n, D))).astype(np.float32), y


def trial(seed: int, n: int, error: float) -> tuple[NDArray[np.float32], Trial]:
    """Draw the rows of a run, and what was said about them."""
    chance = np.random.default_rng([seed, n, round(1000 * error)])
    x, y = mixture(n, chance)
    sets = Uniform("released", error).draw(y, K, chance)
    wrong = int(chance.binomial(GOLD, error))
    said = evidence(sets, (wrong, GOLD)) if error else None
    return x, Trial(sets if said is None else said.sets, seed=seed, evidence=said)


def runs(
    seeds: list[int], n: int, error: float, model: str, device: str | None
) -> Iterator[dict[str, Any]]:
    """Make some runs as trials of one stack, each with rows of its own."""
    drawn = [trial(seed, n, error) for seed in seeds]
    x = np.concatenate([rows for rows, _ in drawn])
    places = np.arange(len(x)).reshape(len(seeds), n)
    trials = [
        Trial(one.sets, rows=rows, seed=one.seed, evidence=one.evidence)
        for (_, one), rows in zip(drawn, places, strict=True)
    ]
    approach = "likelihood" if error else "log"
    clf = RuleOutClassifier(approach=approach, model=model, grid="small")
    choosing, epochs = clf._choosing(n) or {}, clf._epochs(n)
    told: dict[str, Any] = {"model": model, "device": device, "approach": approach}
    found = search(
        x, trials, per_trial=True, honest=True, grid="small", epochs=epochs, every=epochs,
        **choosing, **told,
    )  # fmt: skip
    assert found.final is not None
    tested, labels = mixture(TEST, np.random.default_rng(12345))
    for place, seed in enumerate(seeds):
        number = found.numbers[place]
        module = found.final.module(place).to(device)
        truth = float((predict(module, tested).argmax(-1).numpy() == labels).mean())
        plain = float(found.estimates[place, found.chosen[place]])
        line = {"model": model, "rows": n, "error": error, "seed": seed, "truth": truth}
        ends = dict(zip(("estimate", "low", "high"), number or [None] * 3, strict=True))
        yield line | ends | {"plain": plain}


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """Say how often the truth lay inside, and how far off the estimate was."""
    told = [one for one in lines if one["estimate"] is not None]
    if not told:
        return {"runs": len(lines), "no number": len(lines)}
    truth, estimate, low, high, plain = (
        np.array([one[name] for one in told])
        for name in ("truth", "estimate", "low", "high", "plain")
    )
    inside = (low <= truth) & (truth <= high)
    return {
        "runs": len(lines),
        "no number": len(lines) - len(told),
        "held": round(float(np.mean(inside)), 4),
        "below": round(float(np.mean(truth < low)), 4),
        "above": round(float(np.mean(truth > high)), 4),
        "width": round(float(np.mean(high - low)), 4),
        "bias": round(float(np.mean(estimate - truth)), 4),
        "bias before": round(float(np.mean(plain - truth)), 4),
        "truth": round(float(np.mean(truth)), 4),
    }


def read(file: Path) -> list[dict[str, Any]]:
    """Return the lines of a file; one that was cut off does not count."""
    found = []
    for line in file.read_text().splitlines() if file.exists() else []:
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--model", default="linear,mlp")
    parser.add_argument("--rows", default="200,1000")
    parser.add_argument("--error", default="0,0.05,0.1")
    parser.add_argument("--device")
    parser.add_argument("--name", default="fit_coverage", help="of the result")
    parser.add_argument("--together", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("fit_coverage.jsonl"))
    told = parser.parse_args()
    rows, errors = (t.split(",") for t in (told.rows, told.error))
    results = {}
    for model, n, error in product(told.model.split(","), map(int, rows), map(float, errors)):
        cell = {"model": model, "rows": n, "error": error}

        def own(cell: dict[str, Any] = cell) -> list[dict[str, Any]]:
            return [one for one in read(told.out) if cell.items() <= one.items()]

        began, done = time.perf_counter(), {one["seed"] for one in own()}
        seeds = range(told.first, told.first + told.runs)
        left = [seed for seed in seeds if seed not in done]
        for start in range(0, len(left), told.together):
            with told.out.open("a") as file:
                for line in runs(left[start : start + told.together], n, error, model, told.device):
                    file.write(json.dumps(line) + "\n")
        name = f"{model}, {n} rows, {error:g} wrong"
        results[name] = summary([one for one in own() if one["seed"] in seeds])
        print(name, results[name], f"{time.perf_counter() - began:.0f} s", flush=True)
    if told.record:
        given = f"--model {told.model} --rows {told.rows} --error {told.error} --runs {told.runs}"
        command = f"python benchmarks/fit_coverage.py --record --name {told.name} {given}"
        record(told.name, command, results)


if __name__ == "__main__":
    main()
