"""What is in the data, before anything is trained on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.dataset import DataError
from ruleout.datasets.uniformity import (
    Shares,
    count_by_size,
    count_by_truth,
    given_truth,
    marginals,
    pairs,
    same,
    some_rows,
)
from ruleout.labels import bits
from ruleout.labels.chisquare import EXPECTED, Test
from ruleout.labels.classes import encode
from ruleout.labels.errors import brief
from ruleout.labels.laws import LAWS, size_law
from ruleout.labels.sets import LabelSets

__all__ = ["Finding", "Findings", "inspect"]


def inspect(
    sets: LabelSets,
    x: NDArray[Any] | None = None,
    labels: Any = None,
    *,
    features: Sequence[str] = (),
) -> Findings:
    """Look at label sets, and at features and true labels where there are any.

    Parameters
    ----------
    sets
        What was ruled out.
    x
        The features, ``[n, d]``: finds equal rows that contradict each other, columns that say
        nothing, and sets that list what examples are instead of what they are not.
    labels
        True labels, one per row: finds rows that rule out the truth.
    features
        The names of the columns of `x`, for the messages.

    Returns
    -------
    Findings
        Named ``sizes``, ``size law``, ``class rates``, ``class shares``, ``pairs`` and so on; see
        :mod:`ruleout.datasets.uniformity` for what can be tested, and how.

    Examples
    --------
    >>> import numpy as np
    >>> import ruleout as ro
    >>> y = np.random.default_rng(0).integers(5, size=2000)
    >>> found = inspect(ro.draw(y, classes=5, seed=0), labels=y)
    >>> print(found["sizes"].message)
    2,000 rows rule out 2.50 of 5 classes on average, from 1 to 4.
    >>> found.warnings
    ()
    """
    if x is not None and len(x) != len(sets):
        raise DataError(f"x has {len(x)} rows, the sets have {len(sets)}", "give one set per row")
    found = _look_at_sets(sets)
    if labels is not None:
        found += _look_at_truth(sets, labels)
    found += _look_at_columns(sets, x, features)
    return Findings(tuple(found))


Level = Literal["fine", "note", "warning"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Parameters
    ----------
    level
        ``fine``: as it should be; ``note``: worth knowing; ``warning``: worth mending.
    name
        What was looked at.
    message
        Sentences to read.
    numbers
        The same for programs, as plain JSON.
    """

    level: Level
    name: str
    message: str
    numbers: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Findings:
    """All findings, in the order of the inspection.

    Examples
    --------
    >>> found = Findings((Finding("fine", "sizes", "All rule out 2."),))
    >>> found["sizes"].message, len(found), found.warnings
    ('All rule out 2.', 1, ())
    """

    items: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, name: object) -> bool:
        return any(item.name == name for item in self.items)

    def __getitem__(self, name: str) -> Finding:
        for item in self.items:
            if item.name == name:
                return item
        raise KeyError(name)

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are worth mending."""
        return tuple(item for item in self.items if item.level == "warning")

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain JSON, one object per finding."""
        return [
            {
                "level": item.level,
                "name": item.name,
                "message": item.message,
                "numbers": dict(item.numbers),
            }
            for item in self.items
        ]


WRONG = 1e-4  # p-values below this are warnings: one data set in some thousand is unlucky
MANY = 1000  # classes up to which pairs and sizes are tested


def _look_at_sets(sets: LabelSets) -> list[Finding]:
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


_EXCESS = 4.0  # standard deviations above what ruled-out classes allow
_ROWS, _COLUMNS = 20_000, 1000  # at most so many are looked at, to see whether x predicts the sets


def _look_at_columns(
    sets: LabelSets, x: NDArray[Any] | None, features: Sequence[str]
) -> list[Finding]:
    """Return what the features say; without them, only whether sets look like true labels."""
    if x is None or not x.size:
        return list(_single(sets))
    flat = np.asarray(x, np.float32).reshape(len(x), -1)
    return [*_meaning(sets, flat), *_constant(flat, features), *_equal(sets, flat)]


def _single(sets: LabelSets) -> Iterator[Finding]:
    """Warn where one class per row may be the true one."""
    if len(sets) and len(sets.classes) > 2 and (sets.sizes == 1).all():
        message = (
            "Every row lists one class. If that is what the row is, not what it is not, give it "
            "as true labels: --label, or LabelSets.from_labels."
        )
        yield Finding("warning", "meaning", message)


def _meaning(sets: LabelSets, x: NDArray[np.float32]) -> Iterator[Finding]:
    r"""Ask whether the features point to what is listed.

    Sets chosen at random among the wrong classes hold any class that a rule picks from x with
    probability at most :math:`s/(k-1)`. A rule that does better on unseen rows shows that the sets
    list what examples are, or may be. The rule here: the nearest mean.
    """
    found = _agreement(sets, x)
    if found is None:
        yield from _single(sets)
        return
    rate, most, z = found
    message = (
        f"The features point to a class that is listed in {percent(rate)} of unseen rows; "
        f"sets of ruled-out classes chosen at random allow up to {percent(most)}."
    )
    if z >= _EXCESS:
        message += _suspicion(sets, surely=rate > (1 + most) / 2)
    level: Level = "warning" if z >= _EXCESS else "fine"
    yield Finding(level, "meaning", message, {"rate": rate, "most": most, "z": z})


def _suspicion(sets: LabelSets, surely: bool) -> str:
    if not surely:
        return (
            " Either the sets list what examples may be, or whoever rules out prefers some "
            "classes by what they see."
        )
    if (sets.sizes == 1).all():
        return (
            " They seem to list what examples are: give true labels as such, with --label or "
            "LabelSets.from_labels."
        )
    return " They seem to list what examples may be: use LabelSets.from_candidates."


def _agreement(sets: LabelSets, x: NDArray[np.float32]) -> tuple[float, float, float] | None:
    """Return how often the nearest mean is listed, the most allowed, and the excess in errors."""
    rng, k = np.random.default_rng(0), len(sets.classes)
    rows = rng.permutation(np.flatnonzero(sets.sizes))[:_ROWS]
    if len(rows) < 40 or k < 3:
        return None
    columns = np.sort(rng.permutation(x.shape[1])[:_COLUMNS])
    some, mask = x[rows][:, columns], sets[rows].excluded
    half = len(rows) // 2
    spread = some[:half].std(0)
    some = (some - some[:half].mean(0)) / np.where(spread > 0, spread, 1)
    times = mask[:half].sum(0)
    means = mask[:half].T.astype(np.float32) @ some[:half] / np.maximum(times, 1)[:, None]
    far = (means**2).sum(1) - 2 * some[half:] @ means.T
    picked = np.where(times > 0, far, np.inf).argmin(1)
    hit = mask[half:][np.arange(len(picked)), picked]
    bound = mask[half:].sum(1) / (k - 1)
    variance = float((bound * (1 - bound)).sum())
    if variance == 0:
        return None
    return (
        float(hit.mean()),
        float(bound.mean()),
        float((hit.sum() - bound.sum()) / np.sqrt(variance)),
    )


def _constant(x: NDArray[np.float32], features: Sequence[str]) -> Iterator[Finding]:
    """Name columns that never change, and columns that count the rows."""
    if len(x) < 2:
        return
    same = np.flatnonzero(x.min(0) == x.max(0))
    if len(same):
        message = f"{_named(same, features, x.shape[1])} the same value in every row."
        yield Finding("note", "constant columns", message, {"columns": same.tolist()})
    steps = np.flatnonzero(x[1] - x[0] == 1)
    counting = steps[(np.diff(x[:, steps], axis=0) == 1).all(0)] if len(x) > 9 else steps[:0]
    if len(counting):
        message = f"{_named(counting, features, x.shape[1])} the number of the row: ignore it."
        yield Finding("warning", "row numbers", message, {"columns": counting.tolist()})


def _named(places: NDArray[np.intp], features: Sequence[str], d: int) -> str:
    if len(places) > 5 or not features:
        return f"{len(places):,} of {d:,} columns hold"
    names = ", ".join(repr(features[place]) for place in places)
    return f"{'Column' if len(places) == 1 else 'Columns'} {names} hold" + (
        "s" if len(places) == 1 else ""
    )


def _equal(sets: LabelSets, x: NDArray[np.float32]) -> Iterator[Finding]:
    """Count equal rows, and find those whose sets leave no class together."""
    order, starts = equal_rows(x)
    if not len(starts):
        yield Finding("fine", "equal rows", "No two rows have the same features.", {"rows": 0})
        return
    extra = len(order) - len(starts)
    message = f"{extra:,} rows have the same features as an earlier row."
    yield Finding("note", "equal rows", message, {"rows": extra})
    joined = np.bitwise_or.reduceat(sets.packed[order], starts, axis=0)
    bad = np.flatnonzero(bits.count(joined) == len(sets.classes))
    if len(bad):
        first = bad[np.argmin(order[starts[bad]])]
        group = np.sort(np.split(order, starts[1:])[first])
        message = (
            f"{len(bad):,} group(s) of rows with the same features rule out every class together, "
            f"such as rows {', '.join(map(str, group[:3].tolist()))}"
            f"{', …' if len(group) > 3 else ''}: some of them are wrong."
        )
        yield Finding(
            "warning", "contradictions", message, {"groups": len(bad), "first": group[:9].tolist()}
        )


def _look_at_truth(sets: LabelSets, labels: Any) -> list[Finding]:
    """Count the rows that rule out the truth; test the choice among the wrong classes."""
    truth = encode(labels, sets.classes, "labels")
    if len(truth) != len(sets):
        raise DataError(f"{len(truth)} labels for {len(sets)} sets", "give one label per row")
    wrong = sets.packed[np.arange(len(sets)), truth // 8] >> (truth % 8).astype(np.uint8) & 1 == 1
    return [_errors(wrong), *_choice(sets, truth, wrong)]


def _errors(wrong: NDArray[np.bool_]) -> Finding:
    count, n = int(wrong.sum()), len(wrong)
    numbers = {"rows": count, "rate": count / max(n, 1)}
    if not count:
        return Finding("fine", "true class", "No row rules out its true class.", numbers)
    message = (
        f"{count:,} of {n:,} rows ({percent(count / n)}) rule out their true class, the first of "
        f"them is row {int(np.argmax(wrong))}."
    )
    return Finding("warning", "true class", message, numbers)


def _choice(sets: LabelSets, truth: NDArray[np.intp], wrong: NDArray[np.bool_]) -> list[Finding]:
    """Test whether all wrong classes are ruled out equally often, among the rows that can be."""
    k = len(sets.classes)
    if k > MANY:
        return []
    good = np.flatnonzero(~wrong & (sets.sizes > 0))
    good = good[some_rows(sets[good])]
    part, code = sets[good], truth[good]
    rows, sums, squares = (_sums(code, part.sizes**power, k) for power in (0, 1, 2))
    test = given_truth(count_by_truth(part, code), rows, sums, squares)
    if test is None:
        return []
    numbers = {"p": test.p, "statistic": test.statistic, "freedom": test.freedom}
    if test.p >= WRONG:
        message = f"Given the truth, all wrong classes are ruled out alike ({shown_p(test.p)})."
        return [Finding("fine", "wrong classes", message, numbers)]
    message = (
        f"Given the truth, some wrong classes are ruled out more often than others "
        f"({shown_p(test.p)}): approaches assume that they are not."
    )
    return [Finding("warning", "wrong classes", message, numbers)]


def _sums(code: NDArray[np.intp], values: NDArray[np.intp], k: int) -> NDArray[np.float64]:
    """Add up the values of the rows of each true class."""
    return np.asarray(np.bincount(code, values, k), np.float64)


def equal_rows(x: NDArray[np.float32]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Group the rows that occur more than once.

    Returns
    -------
    order, starts
        The rows that have an equal, group by group, and where each group starts among them.

    Examples
    --------
    >>> equal_rows(np.array([[1, 2], [0, 0], [1, 2], [3, 4]], np.float32))
    (array([0, 2]), array([0]))
    """
    codes = _hashes(x)
    order = np.argsort(codes, kind="stable")
    twin = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    for piece in bits.chunks(len(twin), x.shape[1]):  # the hash may lie
        here = twin[piece]
        equal = (x[order[here]] == x[order[here + 1]]).all(1)
        twin[piece] = np.where(equal, here, -1)
    twin = twin[twin >= 0]
    member = np.zeros(len(x), np.bool_)
    member[twin] = member[twin + 1] = True
    follows = np.zeros(len(x), np.bool_)
    follows[twin + 1] = True
    return order[member], np.flatnonzero(~follows[member])


def _hashes(x: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Hash each row: a random combination of its bits, modulo 2^64."""
    factors = np.random.default_rng(0).integers(1 << 63, size=x.shape[1], dtype=np.uint64) * 2 + 1
    codes = np.empty(len(x), np.uint64)
    for piece in bits.chunks(*x.shape):
        words = (x[piece] + np.float32(0)).view(np.uint32)  # -0 becomes 0
        codes[piece] = (words * factors).sum(1, dtype=np.uint64)
    return codes
