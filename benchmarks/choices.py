"""What it is worth to know how classes were chosen, or how often wrongly, and to learn it.

    python benchmarks/choices.py [--part biased,noise] [--data mnist,fashion-mnist]
        [--model linear,mlp] [--device cuda] [--out choices.jsonl] [--record]

- biased: one class is ruled out per row, by one of three matrices: weak and strong (thirds of the
  classes with shares 0.45, 0.3, 0.25 and 0.75, 0.24, 0.01), and ordered (the further a class is
  from the true one, around the circle, the likelier it is). LOG takes classes as chosen at random,
  Forward knows the matrix, or has the one that `find_origin` learnt without true labels.
- noise: sets of the law released, in a fifth of which the true class is ruled out. LOG with none
  and with a fifth wrong, `likelihood` with the rate from 30 gold questions, and two that are told
  nothing: PRODEN with conformal cleaning, and `auto` (linear models, or on a GPU). The learning
  rate is 0.001, the decay one of three by what was held out.

Test accuracy in percent. Every line of the file `--out` is made once.
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
from fit_coverage import read
from numpy.typing import NDArray

import ruleout as ro
from ruleout.labels.origins import Transition, biased_matrix, evidence

EPOCHS = 30


def matrix(name: str, k: int) -> NDArray[np.float64]:
    if name != "ordered":
        return biased_matrix(name, k)
    q = np.array([[(c - y) % k for c in range(k)] for y in range(k)], float)
    return np.asarray(q / q.sum(1, keepdims=True))


def accuracy(x: Any, target: Any, test: Any, approach: str, **told: Any) -> float:
    """Train one model, with one setting or the best of several, and measure it."""
    settings: dict[str, Any] = {"learning_rate": 1e-3, "epochs": EPOCHS, "random_state": 0}
    clf = ro.RuleOutClassifier(approach=approach, **settings | told).fit(x, target)
    return round(100 * float(clf.score(*test)), 2)


def biased(data: ro.datasets.Dataset, model: str, name: str, device: Any) -> dict[str, Any]:
    (x, y), k = data.train, len(data.classes)
    q = matrix(name, k)
    sets = Transition(q).draw(y, k, seed=1)
    how = {"model": model, "device": device}
    began = time.perf_counter()
    found = ro.find_origin(x, sets, **how)
    seconds = round(time.perf_counter() - began, 1)
    line: dict[str, Any] = {"log": accuracy(x, sets, data.test, "log", **how)}
    for word, origin in (("known", Transition(q)), ("learnt", found.origin)):
        if origin is not None:
            said = evidence(sets, origin=origin)
            line[word] = accuracy(x, said, data.test, "likelihood", **how)
    if found.origin is not None:
        off = np.abs(found.origin.rates - q)
        line |= {"off": round(float(off.sum(1).mean()), 4), "seconds": seconds}
        if found.spread is not None:
            line["spread"] = round(float(found.spread.mean()), 5)
            line["mean off"] = round(float(off.mean()), 5)
    return line | {"why": found.why}


def noise(data: ro.datasets.Dataset, model: str, _: str, device: Any) -> dict[str, Any]:
    (x, y), k = data.train, len(data.classes)
    clean, wrong = (ro.labels.Uniform("released", e).draw(y, k, seed=1) for e in (0.0, 0.2))
    grid = {"learning_rate": [1e-3], "weight_decay": [1e-5, 1e-3, 1e-2]}
    how: dict[str, Any] = {"model": model, "device": device, "grid": grid}
    said = evidence(wrong, (6, 30))
    auto = ro.RuleOutClassifier(
        approach="auto", model=model, device=device, random_state=0, epochs=EPOCHS
    )
    line = {
        "log, none wrong": accuracy(x, clean, data.test, "log", **how),
        "log": accuracy(x, wrong, data.test, "log", **how),
        "likelihood": accuracy(x, said, data.test, "likelihood", **how),
        "conformal-proden": accuracy(x, wrong, data.test, "conformal-proden", **how),
    }
    if model == "linear" or device:
        line["auto"] = round(100 * float(auto.fit(x, wrong).score(*data.test)), 2)  # type: ignore[misc]
    return line


PARTS = {"biased": (biased, ("weak", "strong", "ordered")), "noise": (noise, ("a fifth wrong",))}


def lines(told: argparse.Namespace) -> Iterator[dict[str, Any]]:
    for part, name, model in product(
        told.part.split(","), told.data.split(","), told.model.split(",")
    ):
        make, kinds = PARTS[part]
        for kind in kinds:
            cell = {"part": part, "data": name, "model": model, "kind": kind}
            done = [one for one in read(told.out) if cell.items() <= one.items()]
            if not done:
                done = [cell | make(ro.datasets.load(name), model, kind, told.device)]
                with told.out.open("a") as file:
                    file.write(json.dumps(done[0]) + "\n")
            print(done[0], flush=True)
            yield done[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--part", default="biased,noise")
    parser.add_argument("--data", default="mnist,fashion-mnist")
    parser.add_argument("--model", default="linear,mlp")
    parser.add_argument("--device")
    parser.add_argument("--out", type=Path, default=Path("choices.jsonl"))
    parser.add_argument("--record", action="store_true")
    told = parser.parse_args()
    found = {}
    for line in lines(told):
        cell = ", ".join(line.pop(name) for name in ("part", "data", "model", "kind"))
        found[cell] = line
    if told.record:
        given = f"--part {told.part} --data {told.data} --model {told.model}"
        record("choices", f"python benchmarks/choices.py {given} --record", found)


if __name__ == "__main__":
    main()
