"""Fits of small data against the loop people write and scikit-learn: ratios from one run.

    python benchmarks/small_fit.py [--record]

First one configuration on digits: the loop trains LOG on the same sets, in batches of the same
size, for as many epochs; scikit-learn's MLPClassifier trains the same MLP on true labels.

Then what `ruleout fit` does when nothing is said, on three small tasks: digits, a folder of 226
images, a labelling project of 300 items. Beside it the paper's grid, which was the default before;
a loop that trains the same configurations, one after another, for as many steps; and scikit-learn's
logistic regression on true labels. Test accuracies are means over seeds, which draw other rows and
other sets.

All take turns, and the shortest time of each counts.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import record
from numpy.typing import NDArray
from PIL import Image
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from typer.testing import CliRunner

import ruleout as ro
from ruleout.cli import app
from ruleout.datasets import read_table
from ruleout.learning.training_data import read_lesson
from ruleout.models import build
from ruleout.training import SMALL_GRID, configurations
from ruleout.web import Reply
from ruleout.web.project import Project

BATCH, EPOCHS, K, WIDTH = 256, 100, 10, 500
IMAGES, ITEMS, QUESTIONS, TEST = 226, 300, 2, 2000


def plain(x: Any, sets: ro.LabelSets, model: str, epochs: int = EPOCHS, **config: float) -> None:
    """Train one model by LOG as a user would write it."""
    rows, excluded = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(sets.excluded)
    net = build(model, x.shape[1], K, seed=0)
    rate, decay = config.get("learning_rate", 1e-3), config.get("weight_decay", 1e-5)
    adam = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=decay)
    for _ in range(epochs):
        order = torch.randperm(len(rows))
        for start in range(0, len(rows), BATCH):
            batch = order[start : start + BATCH]
            out = excluded[batch]
            adam.zero_grad()
            left = net(rows[batch]).log_softmax(-1).masked_fill(out, -torch.inf).logsumexp(-1)
            ((K - 1) / out.sum(-1) * -left).mean().backward()
            adam.step()


def ours(x: Any, sets: ro.LabelSets, model: str) -> None:
    ro.RuleOutClassifier(model=model, epochs=EPOCHS, random_state=0).fit(x, sets)


def sklearns(x: Any, y: Any) -> None:
    told = {"batch_size": BATCH, "max_iter": EPOCHS, "n_iter_no_change": EPOCHS, "alpha": 1e-5}
    MLPClassifier((WIDTH,), random_state=0, **told).fit(x, y)


def best_of(turns: int, jobs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the shortest time of each job in seconds; they take turns, after one to warm up."""
    found = {name: float("inf") for name in jobs}
    for turn in range(turns + 1):
        for name, job in jobs.items():
            began = time.perf_counter()
            job()
            if turn:
                found[name] = min(found[name], time.perf_counter() - began)
    return found


def one_configuration(turns: int) -> dict[str, Any]:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=K, seed=0)
    found: dict[str, Any] = {"rows": len(y), "epochs": EPOCHS}
    for model in ("linear", "mlp"):
        jobs = {"ruleout": partial(ours, x, sets, model), "loop": partial(plain, x, sets, model)}
        if model == "mlp":
            jobs["scikit-learn"] = partial(sklearns, x, y)
        times = best_of(turns, jobs)
        ratios = {f"ruleout / {n}": times["ruleout"] / times[n] for n in jobs if n != "ruleout"}
        found[f"digits {model}"] = {"seconds": times, "ratios": ratios}
        for name, ratio in ratios.items():
            print(f"digits {model}: {name} {ratio:.2f}")
    return found


Task = tuple[NDArray[Any], ro.LabelSets, NDArray[Any], NDArray[Any], NDArray[Any]]


def digits(seed: int) -> Task:
    x, y = ro.datasets.load("digits").train
    rows = np.random.default_rng([seed, 7]).permutation(len(y))
    some, test = rows[:1300], rows[1300:]
    return x[some], ro.draw(y[some], classes=K, seed=seed), y[some], x[test], y[test]


def pictures(name: str, count: int, seed: int, folder: Path) -> tuple[Any, Any, Any]:
    """Write images of a data set to a folder; return their labels, and rows to test on."""
    data = ro.datasets.load(name)
    assert data.test is not None
    (x, y), (more, true), random = data.train, data.test, np.random.default_rng([seed, 7])
    rows, test = random.permutation(len(y))[:count], random.permutation(len(true))[:TEST]
    folder.mkdir()
    for place, row in enumerate(rows):
        pixels = (np.asarray(x[row]).reshape(28, 28) * 255).round().astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{place:03d}.png")
    return y[rows], np.asarray(more[test]).reshape(len(test), -1), true[test]


def images(seed: int) -> Task:
    """A folder of images of digits, with a label file."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "images")
        y, x_test, y_test = pictures("mnist", IMAGES, seed, folder)
        sets = ro.draw(y, classes=K, seed=seed)
        with (folder / "labels.csv").open("w", newline="") as out:
            lines = [[f"{i:03d}.png", "|".join(map(str, sets[i]))] for i in range(IMAGES)]
            csv.writer(out).writerows([["file", "not"], *lines])
        table = read_table(folder, excluded="not", classes=[str(name) for name in range(K)])
    assert table.sets is not None
    return table.x.reshape(IMAGES, -1), table.sets, y, x_test, y_test


def project(seed: int) -> Task:
    """A labelling project of Kuzushiji images, of which each was asked about twice."""
    with tempfile.TemporaryDirectory() as place:
        y, x_test, y_test = pictures("kmnist", ITEMS, seed, Path(place, "images"))
        words = ["label", "init", f"{place}/project", "--items", f"{place}/images"]
        words += ["--classes", ",".join(map(str, range(K))), "--lead", "Lea", "--seed", str(seed)]
        made = CliRunner().invoke(app, [*words, "--rounds", str(QUESTIONS)])
        assert made.exit_code == 0, made.output
        with Project.open(Path(place, "project")) as labelled:
            store = labelled.store
            names = {number: int(Path(item.name).stem) for number, item in store.items()}
            for turn in range(QUESTIONS):
                user = store.add_user(f"Ann {turn}")
                while asked := store.next(user, 1):
                    (question,) = asked
                    right = int(y[names[question.item]]) in question.proposed
                    kind: Any = "yes" if right else "no"
                    name = f"{turn}-{question.id}"
                    store.answer(user, Reply(id=name, kind=kind, question=question.id))
            lesson = read_lesson(labelled)
    assert isinstance(lesson.target, ro.LabelSets)
    rows = [int(Path(name).stem) for name in lesson.table.row_names or ()]
    return lesson.table.x.reshape(len(rows), -1), lesson.target, y[rows], x_test, y_test


def fitted(x: Any, sets: Any, grid: str, seed: int) -> ro.RuleOutClassifier:
    return ro.RuleOutClassifier(grid=grid, random_state=seed).fit(x, sets)


def loops(x: Any, sets: ro.LabelSets) -> None:
    """Train the configurations of the default one after another, then one of them on all rows."""
    epochs = ro.RuleOutClassifier(grid="small")._epochs(len(x))
    kept, _ = ro.selection.split(len(x), seed=0)
    for one in configurations(SMALL_GRID):
        plain(x[kept], sets[kept], "linear", epochs, **one)
    plain(x, sets, "linear", epochs)


def default_fit(task: Callable[[int], Task], seeds: int) -> dict[str, Any]:
    """Let all take turns, one for each seed; the shortest time of each counts."""
    accuracy: dict[str, list[float]] = {"default": [], "paper": [], "scikit-learn": []}
    times = {name: float("inf") for name in (*accuracy, "loop")}
    for seed in range(seeds):
        x, sets, y, x_test, y_test = task(seed)
        jobs: dict[str, Callable[[], Any]] = {
            "default": partial(fitted, x, sets, "small", seed),
            "paper": partial(fitted, x, sets, "paper", seed),
            "scikit-learn": partial(LogisticRegression(max_iter=1000).fit, x, y),
            "loop": partial(loops, x, sets),
        }
        for name, job in jobs.items():
            began = time.perf_counter()
            clf = job()
            times[name] = min(times[name], time.perf_counter() - began)
            if name in accuracy:
                right = clf.predict(x_test).astype(int) == y_test
                accuracy[name].append(float(right.mean()))
    differ = np.subtract(accuracy["default"], accuracy["paper"])
    return {
        "rows": len(x),
        "features": x.shape[1],
        "epochs": ro.RuleOutClassifier(grid="small")._epochs(len(x)),
        "seeds": seeds,
        "seconds": times,
        "ratios": {f"default / {n}": times["default"] / times[n] for n in times if n != "default"},
        "accuracy": {name: float(np.mean(values)) for name, values in accuracy.items()},
        "default - paper": {
            "mean": float(differ.mean()),
            "standard error": float(differ.std(ddof=1) / np.sqrt(seeds)),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    torch.set_num_threads(1)
    found = one_configuration(given.turns) | {"threads": 1}
    tasks = {"digits": digits, f"{IMAGES} images": images, f"project of {ITEMS} items": project}
    for name, task in tasks.items():
        found[f"default fit: {name}"] = told = default_fit(task, given.seeds)
        seconds = ", ".join(f"{n} {t:.2f} s" for n, t in told["seconds"].items())
        print(f"default fit: {name}: {seconds}; {told['accuracy']}", flush=True)
    if given.record:
        record("small_fit", "python benchmarks/small_fit.py --record", found)


if __name__ == "__main__":
    main()
