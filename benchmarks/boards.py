"""Every approach, and `auto`, on the real boards of partial-label learning, beside published rows.

    python benchmarks/boards.py FOLDER [--boards lost,BirdSong] [--rows auto,cc,proden]
        [--seeds 0,1,2,3,4] [--device cuda] [--jobs 7] [--out boards.jsonl] [--record]

FOLDER holds the boards as MATLAB files. Splits, classes and min-max features are those of Fuchs and
Kalinke 2025 (their data.py): seeds 0 to 4, 80 % train, classes that cover 99 % of the rows. Their
network, too: three hidden layers of 300 with batch norm, Adam at 0.01 in one cycle of 200 epochs,
decay 1e-4, batches of 16; on BirdSong here 64, and 100 epochs. `auto` chooses its settings itself,
without true labels; all others have these, one model each, as the published rows have.

What `auto` tries was settled by hand while true accuracies of these two boards were looked at, on
these splits: its numbers here are those of a method that knows the field, not of one that never saw
these boards.

Every row and seed is one line of the file `--out`; what is in it already is not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import record, side_by_side
from fit_coverage import read
from numpy.typing import NDArray
from scipy.io import loadmat

import ruleout as ro
from ruleout.training import Trial, fit_grid
from ruleout.training.grid_fit import predict

#: Mean and standard deviation over five seeds, in percent; source as above, results/.
PUBLISHED = {
    "PRODEN": {"lost": (78.9, 3.0), "BirdSong": (75.6, 1.1)},
    "CC": {"lost": (78.2, 2.1), "BirdSong": (74.5, 1.6)},
    "CAVL": {"lost": (72.1, 1.1), "BirdSong": (69.8, 3.0)},
    "PiCO": {"lost": (76.2, 2.3), "BirdSong": (77.2, 1.8)},
    "POP": {"lost": (77.8, 2.1), "BirdSong": (75.2, 1.0)},
    "CroSel": {"lost": (81.2, 3.7), "BirdSong": (75.1, 1.8)},
    "conformal CroSel": {"lost": (81.2, 2.6), "BirdSong": (77.8, 0.5)},
}
COVER, HOW = 0.99, {"lost": (16, 200)}  # batches, epochs
Array = NDArray[Any]


def board(file: Path) -> tuple[Array, ro.LabelSets, Array]:
    """Read features, brought to between 0 and 1, what was ruled out, and the true classes."""
    held = loadmat(file)
    x, candidates, truth = (
        held[name].toarray() if hasattr(held[name], "toarray") else held[name]
        for name in ("data", "partial_target", "target")
    )
    candidates, y = candidates.T > 0, truth.argmax(0)
    often = np.sort((truth > 0).sum(1))[::-1]
    count = min(int(np.argmax(np.cumsum(often / len(y)) > COVER)) + 1, candidates.shape[1])
    used = np.sort(np.argsort(candidates.sum(0))[-count:])
    rows = np.isin(y, used)
    x, candidates, y = x[rows].astype(float), candidates[rows][:, used], y[rows]
    x = (x - x.min(0)) / np.where(np.ptp(x, 0) < 1e-10, 1, np.ptp(x, 0))
    sets = ro.LabelSets(~candidates, len(used))
    return x[:, x.std(0) > 1e-10].astype(np.float32), sets, np.searchsorted(used, y)


def split(n: int, seed: int) -> tuple[Array, Array]:
    """Return the rows that train and those that test."""
    count = int(0.8 * n)
    chance = np.random.Generator(np.random.PCG64(seed))
    train = chance.choice(n, count - count % 16, replace=False, shuffle=False)
    return train, np.setdiff1d(np.arange(n), train)


def named(name: str) -> list[str]:
    """Return rows by name: approaches that read sets, of decomposed ones those after shuffle."""
    every = [row for row in ro.approaches() if ro.approach(row).form != "pairs-before"]
    return ["auto", *every] if name == "all" else name.split(",")


def run(file: Path, row: str, seeds: list[int], device: str | None) -> list[dict[str, Any]]:
    """Train a row on the splits of some seeds; what decides anything has seen no true label."""
    torch.set_num_threads(1)
    began, (x, sets, y) = time.perf_counter(), board(file)
    cuts = [split(len(x), seed) for seed in seeds]
    found: list[tuple[Array, dict[str, Any]]] = []
    if row == "auto":
        for seed, (train, test) in zip(seeds, cuts, strict=True):
            clf = ro.RuleOutClassifier(
                approach="auto", model="mlp", random_state=seed, device=device
            ).fit(x[train], sets[train])
            said = {"chosen": clf.record_["approach"], "configuration": clf.configuration_}
            found.append((clf.predict(x[test]), said | {"why": clf.auto_}))
    else:
        trials = [
            Trial(sets[train], rows=train, seed=seed)
            for seed, (train, _) in zip(seeds, cuts, strict=True)
        ]
        size, epochs = HOW.get(file.stem, (64, 100))
        fit = fit_grid(
            x, trials, approach=row, model="mlp", device=device, epochs=epochs, every=epochs,
            model_options={"norm": True, "hidden": (300, 300, 300)}, schedule="one-cycle",
            grid={"learning_rate": 0.01, "weight_decay": 1e-4}, moments=False,
            batch_size=size,
        )  # fmt: skip
        for place, (_, test) in enumerate(cuts):
            found.append((predict(fit.module(place), x[test]).argmax(-1).numpy(), {}))
    seconds = round((time.perf_counter() - began) / len(seeds), 1)
    return [
        {"board": file.stem, "row": row, "seed": seed, "seconds": seconds, **told}
        | {"accuracy": float(np.mean(guess == y[test]))}
        for seed, (guess, told), (_, test) in zip(seeds, found, cuts, strict=True)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--boards", default="lost,BirdSong")
    parser.add_argument("--rows", default="all")
    parser.add_argument("--seeds", default="0,1,2,3,4")
    parser.add_argument("--device")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("boards.jsonl"))
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    seeds = [int(seed) for seed in told.seeds.split(",")]
    done = {(one["board"], one["row"], one["seed"]) for one in read(told.out)}
    jobs: list[tuple[Any, ...]] = []
    for row in named(told.rows):
        for name in told.boards.split(","):
            left = [seed for seed in seeds if (name, row, seed) not in done]
            parts = [[seed] for seed in left] if row == "auto" else [left] if left else []
            jobs += [(told.folder / f"{name}.mat", row, part, told.device) for part in parts]
    for made in side_by_side(run, jobs, told.jobs):
        with told.out.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in made)
        print(made[0]["board"], made[0]["row"], [round(100 * o["accuracy"], 1) for o in made],
              made[0].get("chosen", ""), f"{made[0]['seconds']} s a seed", flush=True)  # fmt: skip
    results: dict[str, Any] = {"published": PUBLISHED}
    for one in read(told.out):
        own = results.setdefault(one["board"], {}).setdefault(one["row"], {})
        own[str(one["seed"])] = round(one["accuracy"], 4)
        if "chosen" in one:
            own.setdefault("chosen", {})[str(one["seed"])] = one["chosen"]
    for name in told.boards.split(","):
        for row, own in results.get(name, {}).items():
            values = 100 * np.array([v for key, v in own.items() if key != "chosen"])
            own |= {"mean": round(float(values.mean()), 2), "std": round(float(values.std()), 2)}
            print(f"{name} {row}: {own['mean']:.1f} ± {own['std']:.1f} ({len(values)} seeds)")
    if told.record:
        record("boards", "python benchmarks/boards.py FOLDER --record", results)


if __name__ == "__main__":
    main()
