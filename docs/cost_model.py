"""The cost model of experiments.md, checked against results/ledger: tasks, seconds, bytes.

python docs/cost_model.py      # prints its tables
"""

from __future__ import annotations

import heapq
import pickle
import random
from collections import defaultdict
from collections.abc import Iterable
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


def grouped(records: Iterable[Record]) -> dict[tuple[object, ...], list[Record]]:
    """Return what a GPU has timed, by kind."""
    groups: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for one in records:
        if one.about["device"] == "cuda":
            groups[kind(one.spec)].append(one)
    return groups


def from_three(records: list[Record], draws: int = 1000) -> list[float]:
    """Return the time of all records, predicted from three of them, for so many draws of three."""
    dice, costs = random.Random(0), {one.spec.key: cost(one.spec) for one in records}
    rates = [one.seconds / costs[one.spec.key] for one in records]
    total = sum(costs.values())
    return [median(dice.sample(rates, min(3, len(rates)))) * total for _ in range(draws)]


def middle(told: Iterable[float]) -> tuple[float, float, float]:
    """Return the median, and between what eight of ten lie."""
    found = sorted(told)
    return found[len(found) // 2], found[len(found) // 10], found[9 * len(found) // 10]


def whole(groups: dict[tuple[object, ...], list[Record]]) -> list[float]:
    """Predict the seconds of each cell of ``ruleout paper linear-mlp --search-trials 1``."""
    rates = {
        name: median(one.seconds / cost(one.spec) for one in of) for name, of in groups.items()
    }
    return [rates[kind(one)] * cost(one) for one in plan("linear-mlp", search_trials=1)]


def main() -> None:
    records = gather(RESULTS).records
    groups = grouped(records)
    on_gpu = [one for of in groups.values() for one in of]
    print("| data set, model | cells | measured, s | predicted from three, s (10 to 90 %) |")
    print("|---|---|---|---|")
    for name, of in sorted(groups.items(), key=str):
        total = sum(one.seconds for one in of)
        searched = f", {name[3]} searching" if name[3] else ""
        told = "{:.0f} ({:.0f} to {:.0f})".format(*middle(from_three(of)))
        print(f"| {name[0]}, {name[1]}{searched} | {len(of)} | {total:.0f} | {told} |")

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

    cells = whole(groups)
    print(f"\n{len(cells)} cells, {sum(cells) / 3600:.1f} hours of workers")
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
