"""Findings about the sets themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.inspection.counting import count_by_size, some_rows
from ruleout.datasets.inspection.findings import Finding
from ruleout.datasets.inspection.pairing import pairs
from ruleout.datasets.inspection.uniformity import Shares, marginals, same
from ruleout.labels.chisquare import EXPECTED, Test
from ruleout.labels.errors import brief
from ruleout.labels.laws import LAWS, size_law
from ruleout.labels.sets import LabelSets

__all__ = ["MANY", "WRONG", "look_at_sets", "percent", "shown_p"]

WRONG = 1e-4  # p-values below this are warnings: one data set in some thousand is unlucky
MANY = 1000  # classes up to which pairs and sizes are tested


def look_at_sets(sets: LabelSets) -> list[Finding]:
    """Return what can be said without features and true labels."""
    sizes, k = sets.sizes, len(sets.classes)
    found = list(_sizes(sizes, k))
    if not sizes.any():
        return found
    counts = list(count_by_size(sets)) if k <= MANY else count_by_size(sets)
    shares, balanced = marginals(counts, k)
    found += [_rates(shares, balanced, sets), _shares(shares, sets)]
    if k <= MANY:
        found += [_pairs(sets, shares), *_same(same(counts, shares))]
    return found


def percent(part: float, digits: int = 1) -> str:
    """Write a part of one the way tables do.

    >>> percent(0.1234)
    '12.3 %'
    """
    return f"{100 * part:.{digits}f} %"


def shown_p(p: float) -> str:
    """Write a p-value.

    >>> shown_p(0.4321), shown_p(1e-9)
    ('p = 0.432', 'p < 0.001')
    """
    return f"p = {p:.3f}" if p >= 1e-3 else "p < 0.001"


def _sizes(sizes: NDArray[np.intp], k: int) -> Iterator[Finding]:
    """Describe how many classes are ruled out, and the law that fits."""
    counts = np.bincount(sizes, minlength=k)
    numbers = {
        "rows": len(sizes),
        "classes": k,
        "mean": float(sizes.mean()) if len(sizes) else 0.0,
        "histogram": {str(size): int(counts[size]) for size in np.flatnonzero(counts)},
    }
    low, high = (int(sizes.min()), int(sizes.max())) if len(sizes) else (0, 0)
    message = f"{len(sizes):,} rows rule out {numbers['mean']:.2f} of {k} classes on average"
    message += f", from {low} to {high}." if low < high else ", all of them as many."
    if low == high == k - 1:
        message += " One class is left in every row: these are ordinary labels."
    yield Finding("note" if low == high == k - 1 else "fine", "sizes", message, numbers)
    if counts[0]:
        rows = f"{counts[0]:,} of {len(sizes):,} rows rule nothing out: they teach nothing."
        yield Finding("note", "empty rows", rows, {"rows": int(counts[0])})
    if low < high and counts[1:].any():
        yield _law(counts[1:])


def _law(counts: NDArray[np.intp]) -> Finding:
    """Compare the sizes with the laws that have names."""
    k = len(counts) + 1
    tests = {name: _fit(counts, size_law(name, k)) for name in LAWS}
    numbers = {name: None if test is None else test.p for name, test in tests.items()}
    fits = [name for name, test in tests.items() if test is not None and test.p >= WRONG]
    if all(test is None for test in tests.values()):
        message = "There are too few rows to compare the sizes with a law."
    elif fits:
        words = " and ".join(f"{name!r} ({shown_p(numbers[name] or 0.0)})" for name in fits)
        message = f"The sizes fit the law {words}."
    else:
        names = " nor ".join(repr(name) for name in tests)
        message = f"The sizes follow neither {names}; no approach needs them to."
    return Finding("fine", "size law", message, {"p": numbers})


def _fit(counts: NDArray[np.intp], law: NDArray[np.float64]) -> Test | None:
    """Chi-square after joining sizes until each cell expects five rows."""
    cells: list[list[float]] = []
    for seen, expected in zip(counts, law * counts.sum(), strict=True):
        if not cells or cells[-1][1] >= EXPECTED:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += expected
    if len(cells) > 1 and cells[-1][1] < EXPECTED:
        seen, expected = cells.pop()
        cells[-1][0] += seen
        cells[-1][1] += expected
    if len(cells) < 2:
        return None
    return Test(sum((seen - e) ** 2 / e for seen, e in cells), len(cells) - 1)


def _rates(shares: Shares, balanced: Test | None, sets: LabelSets) -> Finding:
    """Describe how often each class is ruled out."""
    rates, names = shares.rates, sets.classes
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    numbers = {
        "rates": {str(name): float(rate) for name, rate in zip(names, rates, strict=True)},
        "p": None if balanced is None else balanced.p,
    }
    message = (
        f"Ruled out least often: {brief(names[low])} ({percent(rates[low])} of the rows), "
        f"most often: {brief(names[high])} ({percent(rates[high])})."
    )
    if rates[low] == 0:
        message += f" {_first(rates == 0, sets)} never ruled out: no row says what is not of it."
        return Finding("warning", "class rates", message, numbers)
    if rates[high] == 1:
        message += f" {_first(rates == 1, sets)} ruled out in every row: no row can be of it."
        return Finding("warning", "class rates", message, numbers)
    if balanced is None:
        return Finding("fine", "class rates", message, numbers)
    if balanced.p >= WRONG:
        message += f" Balanced classes would look like this ({shown_p(balanced.p)})."
        return Finding("fine", "class rates", message, numbers)
    message += (
        f" Balanced classes would not look like this ({shown_p(balanced.p)}): the classes are "
        "unbalanced, or some are preferred when ruling out. Sets alone cannot tell which."
    )
    return Finding("note", "class rates", message, numbers)


def _first(which: NDArray[np.bool_], sets: LabelSets) -> str:
    """Name the first few classes, with the verb that follows."""
    places = np.flatnonzero(which)
    names = ", ".join(brief(sets.classes[place]) for place in places[:3])
    if len(places) > 3:
        names += f" and {len(places) - 3} more"
    return f"{names} {'is' if len(places) == 1 else 'are'}"


def _shares(found: Shares, sets: LabelSets) -> Finding:
    """Describe the class shares; none may be far below zero."""
    from scipy.special import ndtri

    k, order = len(sets.classes), np.argsort(-found.shares, kind="stable")
    numbers = {
        "shares": {str(n): float(v) for n, v in zip(sets.classes, found.shares, strict=True)},
        "errors": {str(n): float(v) for n, v in zip(sets.classes, found.errors, strict=True)},
    }
    largest = ", ".join(
        f"{brief(sets.classes[a])} {percent(found.shares[a])} ± {100 * found.errors[a]:.1f}"
        for a in order[:3]
    )
    message = f"Estimated from the sets alone: {largest}{', …' if k > 3 else ''}"
    below = found.shares < ndtri(WRONG / k) * np.maximum(found.errors, 1e-12)
    if not below.any():
        return Finding("fine", "class shares", f"{message}.", numbers)
    worst = int(np.argmin(found.shares))
    message += (
        f". {brief(sets.classes[worst])} is ruled out in {percent(found.rates[worst])} of the "
        "rows, more often than sets chosen at random among the wrong classes would have it: its "
        f"share would be {percent(found.shares[worst])}. Is it listed where it is the answer?"
    )
    return Finding("warning", "class shares", message, numbers)


def _pairs(sets: LabelSets, shares: Shares) -> Finding:
    """Test how often two classes are ruled out together."""
    part = sets[some_rows(sets)]
    test = pairs(count_by_size(part, pairs=True), shares)
    if test is None:
        message = (
            "Whether sets are chosen at random cannot be tested: that needs at least 4 classes, "
            "sizes from 2 to k-2, and enough rows to expect every pair 5 times."
        )
        return Finding("note", "pairs", message)
    numbers = {
        "p": test.pooled.p,
        "statistic": test.pooled.statistic,
        "freedom": test.pooled.freedom,
        "rows": int(np.count_nonzero(part.sizes)),
        "by_size": {str(size): one.p for size, one in test.by_size.items()},
        "pair": [str(sets.classes[place]) for place in test.pair],
        "ratio": test.ratio,
        "z": test.z,
    }
    if test.pooled.p >= WRONG:
        message = (
            "Two classes are ruled out together as often as sets chosen at random would have it "
            f"({shown_p(test.pooled.p)}, {test.pooled.freedom} degrees of freedom)."
        )
        return Finding("fine", "pairs", message, numbers)
    a, b = (brief(sets.classes[place]) for place in test.pair)
    message = (
        f"{a} and {b} are ruled out together {test.ratio:.2f} times as often as sets chosen at "
        f"random would have it ({shown_p(test.pooled.p)} over all pairs): whoever rules out has "
        "preferences, which every approach here assumes away."
    )
    return Finding("warning", "pairs", message, numbers)


def _same(test: Test | None) -> Iterator[Finding]:
    """Test whether the size depends on the class."""
    if test is None:
        return
    numbers = {"p": test.p, "statistic": test.statistic, "freedom": test.freedom}
    if test.p >= WRONG:
        message = f"Small and large sets tell of the same class shares ({shown_p(test.p)})."
        yield Finding("fine", "sizes and classes", message, numbers)
    else:
        message = (
            f"Small and large sets tell of different class shares ({shown_p(test.p)}): how much "
            "is ruled out depends on the class, or preferences depend on the size."
        )
        yield Finding("warning", "sizes and classes", message, numbers)
