"""Real boards through the command line: every accuracy that is printed, beside the true one.

    python benchmarks/real_boards.py FOLDER [--only lost,BirdSong,italian,cifar10s] [--record]

FOLDER holds lost.mat, BirdSong.mat, italian.mat (MATLAB v5: `data`, `partial_target`, `target`) and
cifar10s-even.csv (item, annotator, excluded), whose images are CIFAR-10's test batch under
RULEOUT_DATA. Seven tenths of the rows train, by their candidates or by what people ruled out; the
true labels of the others say how good the model is. A number is off where its interval does not
hold the truth, and silent where no sentence beside it says why. With the true labels of 100 test
rows (--known) there is a number again.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from common import record
from pyarrow import csv

LABELS = 100  # of the test rows, for --known
BOARDS = ("lost", "BirdSong", "italian", "cifar10s")


def ruleout(*words: str) -> tuple[str, str]:
    """Run a command as a user would; return what it prints and its notes."""
    done = subprocess.run(
        [sys.executable, "-m", "ruleout", *words], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"ruleout {' '.join(words)}\n{done.stdout}{done.stderr}")
    return done.stdout, done.stderr


def partial(path: Path, folder: Path, seed: int) -> tuple[Path, Path, Path, list[str]]:
    """Write the rows of a partial-label set as two tables; the second has the labels, too."""
    from scipy.io import loadmat

    found = {name: value for name, value in loadmat(path).items() if not name.startswith("__")}
    x, some, true = (
        np.asarray(part.todense() if hasattr(part, "todense") else part, float)
        for part in (found["data"], found["partial_target"].T, found["target"].T)
    )
    y = true.argmax(1)
    order = np.random.default_rng(seed).permutation(len(x))
    cut, places = int(0.7 * len(x)), []
    for name, rows in (("train", order[:cut]), ("test", order[cut:])):
        if x.shape[1] > 200:
            place = folder / f"{name}.npz"
            told: dict[str, Any] = {
                "x": x[rows].astype(np.float32),
                "candidates": some[rows].astype(np.uint8),
            }
            np.savez(place, **told, label=y[rows], classes=np.arange(some.shape[1]))
        else:
            place = folder / f"{name}.csv"
            columns = {f"f{at}": x[rows, at] for at in range(x.shape[1])}
            lists = ["|".join(f"c{c}" for c in np.flatnonzero(row)) for row in some[rows]]
            label = [f"c{c}" for c in y[rows]]
            known = [one if at < LABELS else "" for at, one in enumerate(label)]
            table = {**columns, "candidates": lists, "label": label, "known": known}
            csv.write_csv(pa.table(table), place)
        places.append(place)
    return places[0], places[1], places[1], ["--candidates", "candidates"]


def people(path: Path, folder: Path, seed: int) -> tuple[Path, Path, Path, list[str]]:
    """Write what people ruled out about images as two tables, with pixels in a third."""
    names = ["airplane", "automobile", "bird", "cat", "deer"]
    names += ["dog", "frog", "horse", "ship", "truck"]
    raw = np.fromfile(Path(os.environ["RULEOUT_DATA"], "cifar10", "test_batch.bin"), np.uint8)
    images = raw.reshape(-1, 3073)
    rows = csv.read_csv(path).to_pydict()
    items = np.unique(rows["item"])
    order = np.random.default_rng(seed).permutation(items)
    train = set(order[: int(0.7 * len(items))].tolist())
    small = images[items, 1:].reshape(-1, 3, 8, 4, 8, 4).mean((3, 5)).reshape(len(items), -1) / 255
    features = {f"p{at}": small[:, at] for at in range(small.shape[1])}
    csv.write_csv(pa.table({"item": items, **features}), folder / "pixels.csv")
    for name, some in (("train", train), ("test", set(items.tolist()) - train)):
        kept = [at for at, (i, out) in enumerate(zip(rows["item"], rows["excluded"], strict=True))
                if i in some and out]  # fmt: skip
        table = {n: [rows[n][at] for at in kept] for n in ("item", "annotator", "excluded")}
        csv.write_csv(pa.table(table), folder / f"{name}.csv")
    test = sorted(set(items.tolist()) - train)
    truth = {"item": test, "label": [names[images[i, 0]] for i in test]}
    csv.write_csv(pa.table(truth), folder / "truth.csv")
    told = ["--excluded", "excluded", "--annotator", "annotator", "--item", "item"]
    told.append("--skip-bad-rows")  # of people who ruled out everything
    told += ["--features-from", str(folder / "pixels.csv"), "--classes", "|".join(names)]
    return folder / "train.csv", folder / "test.csv", folder / "truth.csv", told


def told(text: str, key: str) -> Any:
    return json.loads(text).get(key)


def measure(source: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Check, fit and evaluate; return every accuracy that was printed, and the true one."""
    train, test, labels, sets = (partial if source.suffix == ".mat" else people)(
        source, folder, seed
    )
    board = source.suffix == ".mat" and train.suffix == ".csv"
    apart, drop = (
        (["--ignore", "label,known"], ["--ignore", "candidates,known"]) if board else ([], [])
    )
    column, from_file = "label", [] if source.suffix == ".mat" else sets[-4:-2]
    findings = told(ruleout("check", str(train), *sets, *apart, "--json")[0], "findings")
    model = folder / "model"
    said, notes = ruleout("fit", str(train), *sets, *apart, "--out", str(model))
    drop += from_file
    out, _ = ruleout("evaluate", str(model), str(labels), "--label", column, *drop, "--json")
    truth = told(out, "labels")["accuracy"]["estimate"]
    known = sets[:-2] if from_file else sets  # the model knows its classes
    out, also = ruleout("evaluate", str(model), str(test), *known, *apart, "--json")
    aided: dict[str, Any] = {}
    if board:
        more = ("--known", "known", "--ignore", "label", "--json")
        found = told(ruleout("evaluate", str(model), str(test), *sets, *more)[0], "sets")
        aided["evaluate --known says"] = found["accuracy"]
    return aided | {
        "warnings": [one["name"] for one in findings if one["level"] == "warning"],
        "fit says": [line for line in (said + notes).splitlines() if "ccuracy" in line],
        "evaluate says": told(out, "sets"),
        "notes": also.strip(),
        "true": truth,
    }


def cost_of_choice(source: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Compare approaches by sets alone, then by true labels: what the first row costs in points."""
    train, test, _, sets = partial(source, folder, seed)
    both = folder / "both.csv"
    csv.write_csv(pa.concat_tables([csv.read_csv(train), csv.read_csv(test)]), both)
    apart = [
        ("sets", train, ["--ignore", "label,known"]),
        ("labels", both, ["--label", "label", "--judge", "0.3", "--ignore", "known"]),
    ]
    scores = []
    for name, table, more in apart:
        told = [*sets, "--seed", str(seed), *more, "--out", str(folder / name)]
        ruleout("compare", str(table), *told)
        rows = json.loads((folder / name / "results.json").read_text())["rows"]
        scores.append({row["approach"]: row["score"] for row in rows if not row["baseline"]})
    by_sets, truth = scores
    first, best = (sorted(one, key=one.__getitem__)[-1] for one in (by_sets, truth))
    return {
        "first by sets": first,
        "best by labels": best,
        "costs": round(100 * (truth[best] - truth[first]), 2),
        "by labels": {name: round(100 * score, 2) for name, score in truth.items()},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default=",".join(BOARDS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--compare", action="store_true", help="what compare's choice costs")
    parser.add_argument("--record", action="store_true")
    asked = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    results: dict[str, Any] = {}
    for name in asked.only.split(","):
        for seed in range(asked.first, asked.first + asked.seeds):
            with tempfile.TemporaryDirectory() as made:
                file = "cifar10s-even.csv" if name == "cifar10s" else f"{name}.mat"
                work = cost_of_choice if asked.compare else measure
                found = work(asked.folder / file, Path(made), seed)
            results[f"{name}, seed {seed}"] = found
            print(name, json.dumps(found, indent=1), flush=True)
    if asked.record:
        name, more = ("board_choices", " --compare") if asked.compare else ("real_boards", "")
        record(name, f"python benchmarks/real_boards.py FOLDER{more} --record", results)


if __name__ == "__main__":
    main()
