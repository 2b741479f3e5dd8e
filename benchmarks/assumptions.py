"""How often ``check`` notices what is wrong with sets, and how often it errs.

Sets are drawn at random, but the two wrong classes that look most plausible are ruled out only
`factor` times as often as others (a factor of 1 is honest); or a share of the sets is wrong; or the
half of the rows that is hardest has sets of 1 to 4 classes, the other half of 5 to 9. Told for each
test is the share of tables that it rejects at p < 0.001, and of honest ones those with p < 0.05,
too. Bad models learn from features that say nothing.
"""

from __future__ import annotations

import argparse
from functools import cache, partial
from typing import Any

import numpy as np
from common import record
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import ruleout as ro

Points = tuple[NDArray[np.float32], NDArray[np.intp], NDArray[Any]]
TESTS = ("class shares", "pairs", "meaning", "plausible classes", "predictions by size")
SIZES = {"1": 1, "3": 3, "1 to 9": None}
LAWS: dict[str, Any] = {"1 to 9": np.full(9, 1 / 9), "released": "released"}


def blobs(n: int, rng: np.random.Generator) -> Points:
    """Ten classes around centres; plausible is what is near."""
    centres = 0.7 * rng.normal(size=(10, 20))
    y = rng.integers(10, size=n)
    x = centres[y] + rng.normal(size=(n, 20))
    return x.astype(np.float32), y, -((x[:, None] - centres) ** 2).sum(2)


@cache
def looks() -> Points:
    """Read the pictures once."""
    x, y = ro.datasets.load("digits").train
    near = LogisticRegression(C=0.01, max_iter=500).fit(x, y).decision_function(x)
    return x, np.asarray(y), near


def digits(n: int, rng: np.random.Generator) -> Points:
    """Pictures of digits; plausible is what a model of all of them that saw the truth says."""
    x, y, near = looks()
    rows = rng.permutation(len(x))[:n]
    return x[rows], y[rows], near[rows]


def avoiding(
    y: NDArray[np.intp], near: NDArray[Any], rng: Any, size: int | None, factor: float
) -> ro.LabelSets:
    """Draw sets of a size, or of any, the two nearest wrong classes `factor` times as often."""
    (n, k), every = near.shape, np.arange(len(y))
    wrong, weight = near.copy(), np.ones((n, k))
    wrong[every, y] = -np.inf
    np.put_along_axis(weight, np.argsort(-wrong, 1)[:, :2], factor, 1)
    clock = rng.exponential(size=(n, k)) / weight
    clock[every, y] = np.inf
    sizes = rng.integers(1, k, size=n) if size is None else np.full(n, size)
    return ro.LabelSets(clock.argsort(1).argsort(1) < sizes[:, None])


def mistaken(
    y: NDArray[np.intp], near: NDArray[Any], rng: Any, law: Any, wrong: float
) -> ro.LabelSets:
    """Draw sets at random of which a share is wrong."""
    del near
    return ro.draw(y, 10, law, rng, noise=wrong)


def small_if_hard(y: NDArray[np.intp], near: NDArray[Any], rng: Any) -> ro.LabelSets:
    """Draw sets at random, small ones of rows whose class is hardly nearer than another."""
    own, rest = near[np.arange(len(y)), y], near.copy()
    rest[np.arange(len(y)), y] = -np.inf
    hard = own - rest.max(1) < np.median(own - rest.max(1))
    small, large = (ro.draw(y, 10, np.repeat(part, (4, 5)), rng)
                    for part in ((0.25, 0), (0, 0.2)))  # fmt: skip
    return ro.LabelSets(np.where(hard[:, None], small.excluded, large.excluded))


def rejected(data: Any, n: int, drawn: Any, turns: int, honest: bool = False, bad: bool = False
             ) -> dict[str, float]:  # fmt: skip
    """Return the share of tables that each test rejects, and that any does.

    `drawn` makes sets of classes, how near each class is, and a generator.
    """
    found: dict[str, list[bool]] = {}
    for turn in range(turns):
        rng = np.random.default_rng(turn)
        x, y, near = data(n, rng)
        sets = drawn(y, near, rng)
        if bad:
            x = rng.normal(size=x.shape).astype(np.float32)
        seen = ro.datasets.inspect(sets, x)
        for name in TESTS:
            p = seen[name].numbers.get("p", 1.0) if name in seen else 1.0
            found.setdefault(name, []).append(p < 1e-3)
            if honest:
                found.setdefault(f"{name}, p < 0.05", []).append(p < 0.05)
        found.setdefault("any", []).append(seen.assumption().level == "warning")
    return {name: float(np.mean(values)) for name, values in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=50, help="of tables that avoid")
    parser.add_argument("--honest", type=int, default=400, help="honest tables")
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    found: dict[str, Any] = {"turns": given.turns, "honest turns": given.honest}

    def tell(name: str, shares: dict[str, float]) -> None:
        found[name] = shares
        print(name, {key: round(share, 3) for key, share in shares.items()}, flush=True)

    for data in (blobs, digits):
        for shown, size in SIZES.items():
            for bad in (False, True):
                name = f"{data.__name__}, 1,000 rows, size {shown}, honest"
                name += ", bad model" if bad else ""
                how = partial(avoiding, size=size, factor=1.0)
                tell(name, rejected(data, 1000, how, given.honest, True, bad))
            for factor in (0.8, 0.7, 0.5):
                for n in (1000, 5000) if data is blobs else (1000,):
                    name = f"{data.__name__}, {n:,} rows, size {shown}, factor {factor}"
                    how = partial(avoiding, size=size, factor=factor)
                    tell(name, rejected(data, n, how, given.turns))
        for n in (1000, 5000) if data is blobs else (1000, 1797):
            for shown, law in LAWS.items():
                for wrong in (0.05, 0.1, 0.2):
                    how = partial(mistaken, law=law, wrong=wrong)
                    name = f"{data.__name__}, {n:,} rows, size {shown}, {wrong:.0%} wrong"
                    tell(name, rejected(data, n, how, given.turns))
            name = f"{data.__name__}, {n:,} rows, small sets of hard rows"
            tell(name, rejected(data, n, small_if_hard, given.turns))
    if given.record:
        record("assumptions", "python benchmarks/assumptions.py --record", found)


if __name__ == "__main__":
    main()
