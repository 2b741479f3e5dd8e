"""The cost model of experiments.md, checked against results/ledger: tasks, seconds, bytes.

python docs/cost_model.py      # prints its tables
"""

from __future__ import annotations

import heapq
import pickle
import random
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from statistics import median

from ruleout.datasets.registry import find
from ruleout.experiments import Record, Spec, cost, gather, plan

RESULTS = Path(__file__).parent.parent / "results" / "ledger"
#: What results/README.md says of whole runs: cells, workers on one H200, seconds from start to end.
MEASURED = [
    ("linear, MNIST", {"dataset": "mnist", "model": "linear"}, "released", 4, 217),
    ("linear, Kuzushiji", {"dataset": "kmnist", "model": "linear"}, "released", 5, 169),
    ("linear, Fashion", {"dataset": "fashion-mnist", "model": "linear"}, "released", 5, 173),
    ("linear, 20Newsgroups", {"dataset": "20newsgroups", "model": "linear"}, "released", 5, 169),
    ("fixed sizes, linear, Kuzushiji", {"dataset": "kmnist", "model": "linear"}, "fixed", 7, 1080),
]


def finished(seconds: Iterable[float], places: int) -> float:
    """Return when the last task is over: the longest first, each to the first free place."""
    free = [0.0] * places
    for length in sorted(seconds, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + length)
    return max(free)


def kind(spec: Spec) -> tuple[object, ...]:
    """What a rate holds for: `estimate` does not tell searching trials apart, cells here do."""
    return spec.dataset, spec.model, spec.epochs, spec.search_trials


def main() -> None:
    on_gpu = [one for one in gather(RESULTS).records if one.about["device"] == "cuda"]
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for one in on_gpu:
        groups[kind(one.spec)].append(one)

    costs = {one.spec: cost(one.spec) for one in on_gpu}
    print("| data set, model | cells | measured, s | predicted from three, s (10 to 90 %) |")
    print("|---|---|---|---|")
    dice = random.Random(0)
    for name, records in sorted(groups.items(), key=str):
        told, total_cost = [], sum(costs[one.spec] for one in records)
        for _ in range(1000):
            some = dice.sample(records, 3)
            rate = median(one.seconds / costs[one.spec] for one in some)
            told.append(rate * total_cost)
        told.sort()
        total = sum(one.seconds for one in records)
        searched = f", {name[3]} searching" if name[3] else ""
        print(f"| {name[0]}, {name[1]}{searched} | {len(records)} | {total:.0f} | "
              f"{told[500]:.0f} ({told[100]:.0f} to {told[900]:.0f}) |")  # fmt: skip

    print("\n| run | cells | workers | predicted, s | measured, s |\n|---|---|---|---|---|")
    for title, wanted, law, workers, wall in MEASURED:
        seconds = [
            one.seconds
            for one in on_gpu
            if all(getattr(one.spec, key) == value for key, value in wanted.items())
            and one.spec.law.startswith(law)
            and not one.spec.search_trials
        ]
        predicted = finished(seconds, workers)
        print(f"| {title} | {len(seconds)} | {workers} | {predicted:.0f} | {wall} |")

    rates = {
        name: median(one.seconds / costs[one.spec] for one in of) for name, of in groups.items()
    }
    cells: list[float] = []
    missing = 0
    for table in ("uci", "linear", "deep", "fixed-linear", "fixed-mlp"):
        for spec in plan(table):
            searching = 1 if spec.model == "mlp" else 0
            cell = replace(spec, search_trials=searching)
            if kind(cell) in rates:
                cells.append(rates[kind(cell)] * cost(cell))
            else:
                missing += 1
    print(
        f"\n{len(cells)} cells, {sum(cells) / 3600:.1f} hours of workers; {missing} without a rate"
    )
    print("\n| GPUs, six workers each | predicted |\n|---|---|")
    for gpus in (1, 2, 4, 8, 16, 32):
        print(f"| {gpus} | {finished(cells, 6 * gpus) / 60:.0f} min |")

    sizes = [len(pickle.dumps(one)) for one in on_gpu]
    names = dict.fromkeys(one.spec.dataset for one in on_gpu)
    shipped = {name: sum(find(name).rows) * find(name).features * 4 for name in names}
    print(f"\nrecord: median {median(sizes) / 1e3:.0f} kB, all {sum(sizes) / 1e6:.1f} MB")
    print("data, MB: " + ", ".join(f"{n} {size / 1e6:.1f}" for n, size in shipped.items()))
    print(f"all of them once to a node: {sum(shipped.values()) / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
