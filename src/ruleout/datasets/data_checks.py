r"""What ``ruleout check`` finds and says of data, and what sets alone tell of their origin.

The assumption behind every method: given the true class y and a size s, all sets of s classes
without y are equally likely. With unknown class shares :math:`\pi`, a set A of size s then has

.. math:: P(A \mid s) = \Bigl(1 - \sum_{a \in A} \pi_a\Bigr) \Big/ \binom{k-1}{s}.

The shares are unknown, yet three things can be tested.

1. Pairs. With :math:`c = \frac{s(s-1)}{(k-1)(k-2)}`,

   .. math::
      P(a \in A) = \frac{s}{k-1} (1 - \pi_a), \qquad P(a, b \in A) = c\,(1 - \pi_a - \pi_b):

   a share fixes how often its class is ruled out, and two of them how often both are, so that
   pairs follow from single counts. Each class's pairs add up to s-1 times its single count, which
   leaves :math:`\binom k2 - k = k(k-3)/2` degrees of freedom. Three classes at a time could be
   tested alike; preferences show in pairs first.
2. Sizes. All sizes must give the same shares, unless the size depends on the true class:
   :math:`k-1` degrees of freedom for every size but one.
3. Signs. No share is negative: no class is ruled out in more than :math:`s/(k-1)` of the rows.

How often single classes are ruled out says nothing more: any counts that obey 3 fit some shares.
An annotator who favours a class looks like one who rarely meets it. Only if the classes are known
to be balanced can that be told apart (:func:`marginals`), or if true labels are known. Where there
are features, 1 and 3 hold in every row, and tell more. People do not like to rule out what looks
plausible: a model that learnt from other rows ranks the classes of a row, 0 for the most plausible.
For every row, however bad the model is:

4. Ranks. The ranks of the s ruled-out classes sum to at most :math:`s k / 2` on average, and with
   the variance :math:`s (k-1-s) k / 12`: that is Wilcoxon's rank sum where the truth ranks first,
   and a truth that ranks lower makes the sum stochastically smaller.
5. Pairs by rank. The residual of :func:`pairs` has mean zero for every pair of classes, so the sum
   of :math:`d_{ab} / ((1 + r_a) (1 + r_b))` has, too. Plausible classes that are avoided together,
   or beside the truth, raise it. Only sets of several classes have it.
6. Predictions by size. A prediction that is right is never ruled out, one that is wrong in
   :math:`s/(k-1)` of the sets: if sizes do not depend on how hard rows are, large sets rule out
   predictions in proportion more often. Sets that are wrong do it whatever their size, so that
   small ones have too many; so they have where hard rows get small sets. A choice in which rows
   count by what they say is off then, too.

Where all sets are of one size no test sees that some are wrong, unless the truth is ruled out more
often than other classes: those stay equally likely. True labels or gold questions show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import erfc, sqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.tables import Scaling, dense, equal_groups, row_hashes
from ruleout.labels.classes import ClassName, encode, look_alikes, shown
from ruleout.labels.errors import DataError, brief, counted
from ruleout.labels.laws import EXPECTED, LAWS, Test, pearson, size_law
from ruleout.labels.origins import RandomPart, random_part, wilson
from ruleout.labels.row_files import lines_of
from ruleout.labels.sets import LabelSets, chunks, count, has, unpack, width

Level = Literal["fine", "note", "warning"]
Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.float32]

WRONG = 1e-3  # p-values below this are warnings, and are shown as "p < 0.001"
LIKELY = 0.01  # a law fits from here on
MANY = 1000  # classes up to which pairs and sizes are tested
_EXCESS = 3.0902  # standard deviations above what ruled-out classes allow: p < 0.001
_ROWS, _COLUMNS = 20_000, 1000  # at most so many are looked at, to see whether x predicts the sets
_TESTS = {"class shares", "pairs", "true class", "wrong classes", "mistakes"}  # of what is assumed
_TESTS |= {"predictions", "meaning", "plausible classes", "predictions by size"}
MISTAKES = {"true class", "predictions by size"}  # tests that wrong sets fail, too
_PARTS, _STEPS = 4, 60  # of the rows, and of learning from each
_NAMED = 5  # rows that a message names
_WORK = 4e10  # multiplications spent on pairs; more rows than that allows are sampled
_SUMS = 1_000_000  # sums up to which a distribution is written out
_BYTES = 1 << 28  # kept of rows that must lie side by side; of more rows a part is


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    level: Level  #: ``fine``: as it should be; ``note``: worth knowing; ``warning``: worth fixing
    name: str  #: what was looked at
    message: str  #: sentences to read
    #: the same for programs, as plain JSON; rows are counted from 0
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
        return {item.name: item for item in reversed(self.items)}[name]

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that are worth fixing."""
        return tuple(item for item in self.items if item.level == "warning")

    def assumption(self, *, mistakes: bool = False) -> Finding:
        """Say what an accuracy estimated from the sets assumes, and what tests say of it.

        Level ``warning``: there is no such accuracy, since a test rejects that sets are drawn at
        random, or true labels show that some are wrong. ``note``: too little can be tested. With
        `mistakes` the estimate expects wrong sets, at rates that were given or learnt.
        """
        names = _TESTS - MISTAKES if mistakes else _TESTS
        tests = [one for one in self.items if one.name in names and "p" in one.numbers]
        p = {one.name: one.numbers["p"] for one in tests}
        wrong = [one.name for one in tests if one.level == "warning"]
        level: Level = "warning" if wrong else "fine" if len(p) > 1 else "note"
        message = (
            f"No accuracy is estimated: sets drawn at random do not look like this (p < 0.001: "
            f"{', '.join(wrong)}; see ruleout check). Judge by true labels: evaluate --label, or "
            "--known of some rows."
        )
        if not wrong:
            least = min(p.values(), default=1.0)
            tested = f"which {len(p)} tests do not reject (smallest p = {least:.3f})"
            right = "as many are wrong as the error rates say" if mistakes else self._none_wrong()
            message = (
                "An accuracy estimated from sets assumes that they are drawn at random, "
                f"{tested if level == 'fine' else 'which cannot be tested here'}, and that {right}."
            )
        return Finding(level, "assumption", message, {"p": p, "why": wrong})

    def _none_wrong(self) -> str:
        """Say what speaks for it that no set is wrong, and what it costs where some are."""
        if "contradictions" in self:
            return (
                "none is wrong, though equal rows contradict each other: where they are about one "
                "thing, some are"
            )
        said = "none is wrong, which only true labels can show"
        if "true class" in self:
            many = self["true class"].numbers["labels"]
            rows, most = counted(many, "row"), 100 * wilson(0, many).high
            said = f"none is wrong, as in {rows} of known class (up to {most:.2g} % may be)"
        found = self["sizes"].numbers if "sizes" in self else {"histogram": {}}
        sizes = np.array([(int(s), n) for s, n in found["histogram"].items() if int(s)])
        if not len(sizes):
            return said
        scale = (found["classes"] - 1) / sizes[:, 0]
        off = float(np.average(scale, weights=sizes[:, 1]))  # of a number, rows count alike
        return f"{said}: each 1 % of wrong sets takes up to {off:.1f} points off"

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain JSON, one object per finding."""
        return [asdict(item) for item in self.items]


def inspect(
    sets: LabelSets,
    x: Any = None,
    labels: Any = None,
    *,
    features: Sequence[str] = (),
    file: str | Path | None = None,
) -> Findings:
    """Look at label sets, and at features and true labels where there are any.

    Parameters
    ----------
    sets
        What was ruled out.
    x
        The features, ``[n, d]``, an array or a CSR matrix: finds equal rows that contradict each
        other, columns that say nothing, and sets that list what examples are instead of what they
        are not.
    labels
        True labels, one per row: finds rows that rule out the truth.
    features
        The names of the columns of `x`, for the messages.
    file
        The text file whose rows these are: messages then name its lines. Otherwise they name
        rows, counted from 0.

    Returns
    -------
    Findings
        Named ``sizes``, ``size law``, ``class rates``, ``class shares``, ``pairs`` and so on; see
        :mod:`ruleout.datasets.data_checks` for what can be tested, and how.

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
    found = Inspection(sets.classes).add(sets, x, labels)
    return found.findings(features, Path(file) if isinstance(file, str) else file)


class Inspection:
    """What :func:`inspect` finds, of rows that come in batches: the same as of all at once.

    Sizes, classes, labels and columns are summed up. Pairs of classes and equal rows, which are
    told by hashes of 64 bits, need rows side by side: as many as fit into 256 MiB each, about 15
    million rows of ten classes. Of more rows a random part is looked at, equal rows together.
    """

    def __init__(self, classes: tuple[ClassName, ...]) -> None:
        k, most = len(classes), _BYTES // (16 + width(len(classes)))
        self.classes, self._sizes = classes, np.zeros(k, np.intp)
        self._rng, self._equal = np.random.default_rng(0), _Kept(most)
        self._some = _Kept(min(most, int(_WORK / k**2)) if k <= MANY else most)
        wide = k if k <= MANY else 0
        self._counts = np.zeros((wide, wide))  # of each size, how often each class
        self._truth = np.zeros((wide + 3, wide))  # the same of each true class, and its rows
        self._predicted = np.zeros((2, k))  # rows of each size, and those that rule it out
        self._wrong: list[int] | None = None  # the first rows that rule out their true class
        self._mistakes = np.zeros((2, k))  # of each true class: how many, and of how many rows
        self._known: RandomPart | None = None  # rows of known class come in one batch
        self._features: _Features | None = None

    def add(
        self,
        sets: LabelSets,
        x: Any = None,
        labels: Any = None,
        predicted: NDArray[np.intp] | None = None,
        truth: NDArray[np.intp] | None = None,
    ) -> Inspection:
        """Take in a batch of rows; all batches have features, true labels, predictions, or none.

        `truth` are positions of classes in the place of labels, -1 where they are not known.
        """
        (n, k), start = sets.shape, int(self._sizes.sum())
        x = x if x is None or hasattr(x, "indptr") else np.asarray(x, np.float32)
        if x is not None and x.shape[0] != n:
            raise DataError(f"x has {x.shape[0]} rows, the sets have {n}", "give one set per row")
        self._sizes += np.bincount(sets.sizes, minlength=k)
        for one in count_by_size(sets) if k <= MANY else ():
            self._counts[one.size] += one.classes
        if labels is not None:
            truth = encode(labels, sets.classes, "labels")
            if len(truth) != n:
                raise DataError(f"{len(truth)} labels for {n} sets", "give one label per row")
        if truth is not None:
            self._known = random_part(sets, truth)
        if truth is not None and len(known := np.flatnonzero((truth >= 0) & (sets.sizes > 0))):
            true = truth[known]
            wrong = has(sets.packed[known], true)
            first = (start + known[wrong]).tolist()
            self._wrong = [*(self._wrong or ()), *first][: _NAMED + 1]
            self._mistakes += [np.bincount(one, minlength=k) for one in (true[wrong], true)]
            if k <= MANY:
                self._truth += count_by_truth(sets[known[~wrong]], true[~wrong])
        if predicted is not None:
            out = sets.sizes[has(sets.packed, predicted)]
            self._predicted += [np.bincount(one, minlength=k) for one in (sets.sizes, out)]
        keys = self._rng.integers(1 << 32, size=n, dtype=np.uint32)
        self._some.add(keys, sets.packed)
        if x is not None:
            flat: Any = x if x.ndim == 2 else x.reshape(n, -1)
            self._features = self._features or _Features(flat.shape[1])
            self._features.add(flat, sets, keys)
            rows = np.arange(start, start + n, dtype=np.uint32)
            self._equal.add(row_hashes(flat), sets.packed, rows)
        return self

    def findings(self, features: Sequence[str] = (), file: Path | None = None) -> Findings:
        """Return what was found; `features` and `file` as for :func:`inspect`."""
        some = LabelSets._trusted(self._some.columns()[1], self.classes)
        n, seen = int(self._sizes.sum()), self._features
        found = [*_sets(some, self._sizes, self._counts)]
        if self._wrong is not None:
            found += _truth(self._truth, self._mistakes, self._wrong, file)
            found += _mistakes(self._mistakes, self.classes)
        found += [] if self._known is None else [_known(self._known, self.classes)]
        found += _predictions(self._predicted)
        if seen is not None and len(seen.low) and n:
            _, x, packed = seen.some.columns()
            _, once = np.unique(row_hashes(np.hstack([x, packed])), return_index=True)
            once.sort()  # copies of a row tell nothing more
            told = self._predicted if self._predicted.any() else None
            found += _meaning(x[once], unpack(packed[once], len(self.classes)), self._sizes, told)
            found += _constant(seen, n, features)
            names = [features[place] for place in seen.columns] if features else []
            found += _truth_among(x, unpack(packed, len(self.classes)), self.classes, names)
            if names and (problem := Scaling.of(x).problem(names)):
                message = f"{problem}: scale them, as fit and compare do unless told otherwise."
                found.append(Finding("note", "column sizes", message))
            found += _equal(self._equal, len(self.classes), file)
        else:
            found += _single(self._sizes)
            if seen is not None and n:
                message = "There are no features: sets can be checked, but nothing can be trained."
                found.append(Finding("warning", "features", message, {"columns": 0}))
        return Findings(tuple(found))


class _Kept:
    """Rows with the smallest keys, at most so many: the same whatever batches they come in."""

    def __init__(self, most: int) -> None:
        self.most, self.limit = most, 1 << 64  # keys from the limit on are left out
        self._parts: list[list[NDArray[Any]]] = []  # of the keys, and of each column

    def add(self, *columns: NDArray[Any]) -> None:
        """Take in the keys of rows, and columns beside them."""
        self._parts = self._parts or [[] for _ in columns]
        self._limit_to(columns[0])
        few = columns[0] < self.limit
        for parts, column in zip(self._parts, columns, strict=True):
            parts.append(column[few])
        if sum(map(len, self._parts[0])) > self.most * 5 // 4:
            self.columns()

    def _limit_to(self, keys: NDArray[Any]) -> None:
        if len(keys) > self.most:
            self.limit = min(self.limit, int(np.partition(keys, self.most)[self.most]))

    def columns(self) -> list[NDArray[Any]]:
        """Return the keys and columns of the rows that are kept, in the order they came in."""
        for parts in self._parts:
            parts[:] = [np.concatenate(parts)]  # one column after the other, to save memory
        self._limit_to(self._parts[0][0])
        few = self._parts[0][0] < self.limit
        for parts in self._parts if not few.all() else ():
            parts[:] = [parts[0][few]]
        return [parts[0] for parts in self._parts]


class _Features:
    """What is summed up of columns: their ranges, which count the rows, and some rows."""

    def __init__(self, d: int) -> None:
        self.low, self.high = np.full((2, d), [[np.inf], [-np.inf]], np.float32)
        self.counting, self._last = np.ones(d, np.bool_), np.empty((0, d), np.float32)
        self.columns = np.sort(np.random.default_rng(0).permutation(d)[:_COLUMNS])
        self.some = _Kept(_ROWS)  # to learn from

    def add(self, x: Any, sets: LabelSets, keys: NDArray[np.uint32]) -> None:
        for piece in chunks(*x.shape):
            block = dense(x[piece])
            self.low = np.minimum(self.low, block.min(0))
            self.high = np.maximum(self.high, block.max(0))
            here = np.flatnonzero(self.counting)
            both = np.concatenate([self._last[:, here], block[:, here]])
            self.counting[here] = (np.diff(both, axis=0) == 1).all(0)
            self._last = block[-1:]
        last = np.where(sets.sizes > 0, keys, ~np.uint32(0))  # rows without a set, if any
        some = x if x.shape[1] <= _COLUMNS else x[:, self.columns]
        self.some.add(last, dense(some), sets.packed)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _below(z: float) -> float:
    """Return how likely a standard normal number is below z."""
    return erfc(-z / sqrt(2)) / 2


def _shown_p(p: float) -> str:
    return f"p = {p:.3f}" if p >= WRONG else "p < 0.001"


def _tested(name: str, test: Test | dict[str, Any], fine: str, wrong: str) -> Finding:
    """Say what a test found; ``{p}`` in the sentences is its p-value."""
    numbers = {"p": test.p, **asdict(test)} if isinstance(test, Test) else test
    good = numbers["p"] >= WRONG
    message = (fine if good else wrong).format(p=_shown_p(numbers["p"]))
    return Finding("fine" if good else "warning", name, message, numbers)


def _rows(rows: Sequence[int] | NDArray[np.intp], file: Path | None) -> str:
    """Name the first few rows, by their lines where a text file has them."""
    some = [int(row) for row in rows[:_NAMED]]
    lines = [] if file is None else lines_of(file, some)
    what, places = ("line", lines) if len(lines) == len(some) else ("row", some)
    more = ", …" if len(rows) > _NAMED else ""
    return f"{what}{'s' if len(rows) > 1 else ''} {', '.join(map(str, places))}{more}"


def _names(which: NDArray[np.bool_], sets: LabelSets) -> str:
    """Name the first few classes, with the verb that follows."""
    places = np.flatnonzero(which)
    names = ", ".join(brief(sets.classes[place]) for place in places[:3])
    if len(places) > 3:
        names += f" and {len(places) - 3} more"
    return f"{names} {'is' if len(places) == 1 else 'are'}"


def _sets(sets: LabelSets, sizes: NDArray[np.intp], table: Matrix) -> Iterator[Finding]:
    """Say what all sizes and classes tell, and what pairs in some of the sets do."""
    yield from _sizes(sizes)
    if notes := look_alikes(sets.classes):
        yield Finding("warning", "class names", " ".join(notes))
    if not sizes[1:].any():
        return
    found = np.flatnonzero(sizes[1:]) + 1
    counts = [Counts(int(s), int(sizes[s]), table[s], None) for s in found if table.size]
    shares, balanced = marginals(counts or count_by_size(sets), len(sizes))
    yield _rates(shares, balanced, sets)
    yield _shares(shares, sets)
    if not counts:
        return
    yield _pairs(sets, shares)
    if (test := same(counts, shares)) is not None:
        yield _tested(
            "sizes and classes",
            test,
            "Small and large sets tell of the same class shares ({p}).",
            "Small and large sets tell of different class shares ({p}): how much is ruled out "
            "depends on the class, or preferences depend on the size.",
        )


def _sizes(counts: NDArray[np.intp]) -> Iterator[Finding]:
    k, n, found = len(counts), int(counts.sum()), np.flatnonzero(counts).tolist()
    numbers = {
        "rows": n,
        "classes": k,
        "mean": float(counts @ np.arange(k) / max(n, 1)),
        "histogram": {str(size): int(counts[size]) for size in found},
    }
    low, high = (found[0], found[-1]) if n else (0, 0)
    message = f"{counted(n, 'row rules', 'rows rule')} out {numbers['mean']:.2f} of {k} classes"
    alike = " on average, all of them as many." if n > 1 else "."
    message += f" on average, from {low} to {high}." if low < high else alike
    if low == high == k - 1:
        message += " One class is left in every row: these are ordinary labels."
    yield Finding("note" if low == high == k - 1 else "fine", "sizes", message, numbers)
    useful = n - int(counts[0])
    if 0 < useful < max(10, 2 * k):
        message = (
            f"{counted(useful, 'row')} with sets for {k} classes: too few to "
            "choose a model by, or to judge one. Collect more."
        )
        yield Finding("warning", "few rows", message, {"rows": useful})
    if counts[0]:
        message = f"{counts[0]:,} of {counted(n, 'row')} rule nothing out: they teach nothing."
        yield Finding("note", "empty rows", message, {"rows": int(counts[0])})
    if low < high and counts[1:].any():
        yield _law(counts[1:])


def _law(counts: NDArray[np.intp]) -> Finding:
    tests = {name: pearson(counts, size_law(name, len(counts) + 1) * counts.sum()) for name in LAWS}
    known = {name: test.p for name, test in tests.items() if test is not None}
    fits = [f"{name!r} ({_shown_p(p)})" for name, p in known.items() if p >= LIKELY]
    if not known:
        message = "There are too few rows to compare the sizes with a law."
    elif fits:
        message = f"The sizes fit the law {' and '.join(fits)}."
    else:
        names = " nor ".join(f"{name!r} ({_shown_p(p)})" for name, p in known.items())
        message = f"The sizes follow neither {names}; no approach needs them to."
    return Finding("fine", "size law", message, {"p": {name: known.get(name) for name in tests}})


def _rates(shares: Shares, balanced: Test | None, sets: LabelSets) -> Finding:
    rates, names = shares.rates, sets.classes
    low, high = int(np.argmin(rates)), int(np.argmax(rates))
    by_name = dict(zip(map(str, names), rates.tolist(), strict=True))
    numbers = {"rates": by_name, "p": None if balanced is None else balanced.p}
    level: Level = "fine"
    message = (
        f"Ruled out least often: {brief(names[low])} ({_percent(rates[low])} of the rows), "
        f"most often: {brief(names[high])} ({_percent(rates[high])})."
    )
    if rates[low] == 0:
        level = "warning"
        message += f" {_names(rates == 0, sets)} never ruled out: no row says what is not of it."
    elif rates[high] == 1:
        level = "warning"
        message += f" {_names(rates == 1, sets)} ruled out in every row: no row can be of it."
    elif balanced is not None and balanced.p >= WRONG:
        message += f" Balanced classes would look like this ({_shown_p(balanced.p)})."
    elif balanced is not None:
        level = "note"
        message += (
            f" Balanced classes would not look like this ({_shown_p(balanced.p)}): the classes are "
            "unbalanced, or some are preferred when ruling out. Sets alone cannot tell which."
        )
    return Finding(level, "class rates", message, numbers)


def _shares(found: Shares, sets: LabelSets) -> Finding:
    k, order = len(sets.classes), np.argsort(-found.shares, kind="stable")
    parts, names = {"shares": found.shares, "errors": found.errors}, [*map(str, sets.classes)]
    held = {name: dict(zip(names, part.tolist(), strict=True)) for name, part in parts.items()}
    largest = ", ".join(
        f"{brief(sets.classes[a])} {_percent(found.shares[a])} ± {100 * found.errors[a]:.1f}"
        for a in order[:3]
    )
    message = f"Estimated from the sets alone: {largest}{', …' if k > 3 else ''}"
    numbers = {**held, "p": (p := found.signs(int((sets.sizes > 0).sum())))}
    if p >= WRONG:
        return Finding("fine", "class shares", f"{message}.", numbers)
    worst = int(np.argmax(found.rates))
    message += (
        f". {brief(sets.classes[worst])} is ruled out in {_percent(found.rates[worst])} of the "
        "rows, more often than sets chosen at random among the wrong classes would have it: its "
        f"share would be {_percent(found.shares[worst])}. Is it listed where it is the answer?"
    )
    return Finding("warning", "class shares", message, numbers)


def _pairs(sets: LabelSets, shares: Shares) -> Finding:
    test = pairs(count_by_size(sets, pairs=True), shares)
    if test is None:
        message = (
            "Whether sets are chosen at random cannot be tested: that needs at least 4 classes, "
            "sizes from 2 to k-2, and enough rows to expect every pair 5 times."
        )
        return Finding("note", "pairs", message)
    a, b = (brief(sets.classes[place]).replace("{", "{{").replace("}", "}}") for place in test.pair)
    found = _tested(
        "pairs",
        test.pooled,
        "Two classes are ruled out together as often as sets chosen at random would have it "
        f"({{p}}, {test.pooled.freedom} degrees of freedom).",
        f"{a} and {b} are ruled out together {test.ratio:.2f} times as often as sets chosen at "
        "random would have it ({p} over all pairs): whoever rules out has preferences, which every "
        "approach here assumes away.",
    )
    numbers = {
        "rows": int(np.count_nonzero(sets.sizes)),
        "by_size": {str(size): one.p for size, one in test.by_size.items()},
        "pair": [str(sets.classes[place]) for place in test.pair],
        "ratio": test.ratio,
        "z": test.z,
    }
    return replace(found, numbers={**found.numbers, **numbers})


def _truth(
    table: Matrix, mistakes: Matrix, first: list[int], file: Path | None
) -> Iterator[Finding]:
    """Name the rows that rule out the truth; test the choice among the wrong classes."""
    many, n = mistakes.sum(1).astype(int).tolist()
    numbers = {"rows": many, "rate": many / n, "first": first[:_NAMED], "labels": n}
    if not many:
        yield Finding("fine", "true class", "No row rules out its true class.", numbers)
    else:
        message = (
            f"{many:,} of {counted(n, 'row')} ({_percent(many / n)}) rule out their true class: "
        )
        message += f"{_rows(first, file)}."
        yield Finding("warning", "true class", message, {**numbers, "p": 0.0})
    if (test := given_truth(table)) is not None:
        yield _tested(
            "wrong classes",
            test,
            "Given the truth, all wrong classes are ruled out alike ({p}).",
            "Given the truth, some wrong classes are ruled out more often than others ({p}): "
            "approaches assume that they are not.",
        )


def _known(part: RandomPart, names: tuple[ClassName, ...]) -> Finding:
    """Say whether rows of known class may be a random part of all."""
    p, own = _shown_p(part.p), [names[place] for place in part.classes]
    message = (
        f"Rows of known class rule out what other rows do ({p}): they may be a random part of all."
    )
    if part.p < WRONG:
        message = (
            f"Rows of known class are not a random part of all ({p}): {shown(own)} "
            f"{'are all' if len(own) > 1 else 'is'} ruled out in {_percent(part.known)} of them, "
            f"in {_percent(part.others)} of the others."
        )
    return Finding("warning" if part.p < WRONG else "fine", "known rows", message, {"p": part.p})


def _mistakes(counts: Matrix, names: tuple[ClassName, ...]) -> Iterator[Finding]:
    """Test whether rows of all classes are wrong equally often."""
    wrong, rows = counts
    rate = wrong.sum() / max(rows.sum(), 1)
    use = np.flatnonzero(rows * min(rate, 1 - rate) >= EXPECTED)
    if len(use) < 2:
        return
    expected = rows[use] * wrong[use].sum() / rows[use].sum()
    variance = expected * (1 - expected / rows[use])
    rates = wrong[use] / rows[use]
    most = int(np.argmax(rates))
    name = brief(names[use[most]]).replace("{", "{{").replace("}", "}}")
    yield _tested(
        "mistakes",
        Test(float(((wrong[use] - expected) ** 2 / variance).sum()), len(use) - 1),
        "Rows of all classes rule out their true class about as often ({p}).",
        f"Mistakes depend on the class ({{p}}): of the rows of {name}, {_percent(rates[most])} "
        "rule it out.",
    )


def _single(sizes: NDArray[np.intp]) -> Iterator[Finding]:
    """Warn where one class per row may be the true one."""
    if len(sizes) > 2 and 0 < sizes[1] == sizes.sum():
        message = (
            "Every row lists one class. If that is what the row is, not what it is not, give it "
            "as true labels: --label, or LabelSets.from_labels."
        )
        yield Finding("warning", "meaning", message)


def _predictions(counts: Matrix) -> Iterator[Finding]:
    """Ask whether predictions earn less than nothing, as even the worst do only by chance."""
    k = counts.shape[1]
    rows, out = counts[:, 1:]
    scale = (k - 1) / np.arange(1, k)
    weight = 1 / (0.5 * (scale - 1) + 0.25)
    spread = float(weight**2 * (scale - 1) @ rows)  # if all are wrong
    if spread:  # else nothing was predicted, or all sets are ordinary labels
        yield _tested(
            "predictions",
            {"p": _below(float(weight @ (rows - scale * out)) / sqrt(spread))},
            "Predictions are ruled out no more often than sets chosen at random allow ({p}).",
            "Predictions are ruled out more often than if all of them were wrong ({p}).",
        )


def by_size(counts: Matrix) -> tuple[float, float] | None:
    """Test whether small and large sets rule out predictions alike, for their sizes: 6 above.

    `counts`, ``[2, k]``, are of the sets of each size all, and those that rule the prediction out.
    Of the latter each is of size s with a chance in proportion to s times the former, so the sum of
    their sizes has a known distribution (few are ruled out; if many are, it is narrower). Returns
    its p-value, two-sided, and how much larger the sum is than expected, as a share of it.
    """
    size = np.arange(counts.shape[1])
    chance, many = counts[0] * size, int(counts[1].sum())
    if many == 0 or np.count_nonzero(chance) < 2:
        return None
    chance /= chance.sum()
    total, mean = int(counts[1] @ size), many * float(chance @ size)
    if (length := many * (len(size) - 1) + 1) > _SUMS:
        spread = many * float(chance @ size**2) - mean**2 / many
        tail = _below(-abs(total - mean) / sqrt(spread))
    else:
        each = np.fft.irfft(np.fft.rfft(chance, length) ** many, length)
        tail = float(min(each[: total + 1].sum(), each[total:].sum()))
    return min(1.0, 2 * max(tail, 0.0)), total / mean - 1


def _by_size(counts: Matrix) -> Iterator[Finding]:
    if (found := by_size(counts)) is None:
        return
    many, few = ("Small", "large") if found[1] < 0 else ("Large", "small")
    mistakes = "some sets are wrong, or " * (many == "Small")
    yield _tested(
        "predictions by size",
        {"p": found[0], "excess": found[1]},
        "Small and large sets rule out predictions alike, for their sizes ({p}).",
        f"{many} sets rule out predictions too often beside {few} ones ({{p}}): {mistakes}rows "
        f"that are hard have {many.lower()} sets.",
    )


def _meaning(
    x: Rows, mask: Mask, sizes: NDArray[np.intp], predicted: Matrix | None
) -> Iterator[Finding]:
    r"""Ask whether the features point to what is listed.

    Sets chosen at random among the wrong classes hold any class that a rule picks from x with
    probability at most :math:`s/(k-1)`. A rule that does better on unseen rows shows that the sets
    list what examples are, or may be. The rule here: a model that takes them for candidates.
    """
    listed, spared = by_rank(x, mask, ~mask), by_rank(x, mask, mask)
    bound = np.zeros(0) if listed is None else listed.sum(1) / (len(sizes) - 1)
    variance = float((bound * (1 - bound)).sum())
    if listed is None or spared is None or variance == 0:
        yield from _single(sizes)
        return
    rate, most, rows = float(listed[:, 0].mean()), float(bound.mean()), len(bound)
    z = rows * (rate - most) / float(np.sqrt(variance))
    level: Level = "warning" if z >= _EXCESS else "fine"
    single = bool(sizes[1] == sizes.sum())
    bad = single or spared[:, 0].mean() >= most / 2  # they do not rule out well
    sure = z >= _EXCESS and rate > (1 + most) / 2 and bad
    message = (
        f"The features point to a class that is listed in {_percent(rate)} of {rows:,} unseen "
        f"rows; sets of ruled-out classes chosen at random allow up to {_percent(most)}"
    )
    if z < _EXCESS:
        message += "; the difference may be chance." if rate > most else "."
    elif not sure:
        message += (
            ". Either the sets list what examples may be, or whoever rules out prefers some "
            "classes by what they see."
        )
    elif single:
        message += (
            ". They seem to list what examples are: give true labels as such, with --label or "
            "LabelSets.from_labels."
        )
    else:
        message += ". They seem to list what examples may be: use LabelSets.from_candidates."
    numbers = {"rate": rate, "most": most, "z": z, "p": _below(-z)}
    yield Finding(level, "meaning", message, numbers)
    if not sure and (found := avoidance(spared)) is not None:
        yield _plausible(found, len(sizes))
    if not sure:
        s = spared.sum(1)
        every = (np.bincount(one, minlength=len(sizes)) for one in (s, s[spared[:, 0]]))
        yield from _by_size(np.array([*every], float) if predicted is None else predicted)


def _plausible(found: Avoidance, k: int) -> Finding:
    """Say whether what the features make plausible is avoided."""
    seen = (
        f"Ruled-out classes rank {found.mean:.2f} of {k} on average by how plausible the features "
        f"make them; sets chosen at random allow up to {k / 2 + 1:.2f} ({{p}})"
    )
    fine = f"{seen}."
    if found.pairs > found.ranks:
        seen = "What looks plausible is spared together more often than chance has it ({p})"
    wrong = f"{seen}: people avoid ruling it out, which every approach here assumes away."
    return _tested("plausible classes", found._asdict(), fine, wrong)


def _constant(seen: _Features, n: int, features: Sequence[str]) -> Iterator[Finding]:
    if n < 2:
        return
    steady = np.flatnonzero(seen.low == seen.high)
    if len(steady):
        message = f"{_named(steady, features, len(seen.low))} the same value in every row."
        yield Finding("note", "constant columns", message, {"columns": steady.tolist()})
    counting = np.flatnonzero(seen.counting)
    if n > 9 and len(counting):
        message = f"{_named(counting, features, len(seen.low))} the number of the row: ignore it."
        yield Finding("warning", "row numbers", message, {"columns": counting.tolist()})


def _named(places: NDArray[np.intp], features: Sequence[str], d: int) -> str:
    if len(places) > 5 or not features:
        return f"{len(places):,} of {d:,} columns hold"
    names = ", ".join(repr(features[place]) for place in places)
    return f"Column {names} holds" if len(places) == 1 else f"Columns {names} hold"


def _truth_among(
    x: Rows, out: Mask, classes: tuple[ClassName, ...], names: Sequence[str]
) -> Iterator[Finding]:
    """Warn of columns that hold class names, and never one that is ruled out in its row."""
    if not names or isinstance(classes[0], str) or out.mean(1).sum() < _SAID:
        return
    order = np.argsort(np.array(classes))
    numbers, rows = np.array(classes)[order], np.arange(len(x))
    for column in np.flatnonzero(np.isin(x[0], numbers)).tolist():
        values = x[:, column]
        places = order[np.searchsorted(numbers, values).clip(max=len(numbers) - 1)]
        if np.isin(values, numbers).all() and not out[rows, places].any():
            name = brief(names[column])
            message = (
                f"Column {name} holds classes, and never one that is ruled out in its row: it may "
                "be the true class. Name it with --label, or leave it out with --ignore."
            )
            yield Finding("warning", _AMONG, message, {"column": names[column]})


_AMONG = "true class among features"
_SAID = 10  # rows, of which each would be ruled out by chance


def _equal(kept: _Kept, k: int, file: Path | None) -> Iterator[Finding]:
    """Count equal rows, and find those whose sets leave no class together."""
    codes, packed, rows = kept.columns()
    order, starts = equal_groups(codes)
    if not len(starts):
        yield Finding("fine", "equal rows", "No two rows have the same features.", {"rows": 0})
        return
    extra, part = len(order) - len(starts), kept.limit / 2**64
    many = round(extra / part)
    about = "About " * (part < 1) + counted(many, "row has", "rows have")
    message = f"{about} the same features as an earlier row."
    yield Finding("note", "equal rows", message, {"rows": many})
    joined = np.bitwise_or.reduceat(packed[order], starts, axis=0)
    bad = np.flatnonzero(count(joined) == k)
    if len(bad):
        first = bad[np.argmin(rows[order[starts[bad]]])]
        group = rows[order[starts[first] : [*starts, len(order)][first + 1]]].tolist()
        message = (
            f"{len(bad):,} group(s) of rows with the same features rule out every class together, "
            f"such as {_rows(group, file)}: some of them are wrong."
        )
        numbers = {"groups": len(bad), "first": group[:9]}
        yield Finding("warning", "contradictions", message, numbers)


# ---------------------------------------------------------------------- what sets alone can say


class Counts(NamedTuple):
    """The rows that rule out `size` classes: how many, each class, and each pair of classes."""

    size: int
    rows: int
    classes: Vector  # [k]
    pairs: Matrix | None  # [k, k], symmetric; its diagonal is `classes`


def count_by_size(sets: LabelSets, *, pairs: bool = False) -> Iterator[Counts]:
    """Yield the counts of each size that occurs, sizes rising; size 0 is left out."""
    k = len(sets.classes)
    sizes = sets.sizes.astype(np.min_scalar_type(k))
    order = np.argsort(sizes, kind="stable")
    found = np.unique(sizes)
    starts = np.searchsorted(sizes[order], found[1:])
    for size, rows in zip(found.tolist(), np.split(order, starts), strict=False):
        if size == 0:
            continue
        each, joint = np.zeros(k), np.zeros((k, k)) if pairs else None
        for piece in chunks(len(rows), k):
            mask = unpack(sets.packed[rows[piece]], k)
            each += mask.sum(0)
            if joint is not None:  # float32 holds counts of a block exactly
                numbers = mask.astype(np.float32)
                joint += numbers.T @ numbers
        yield Counts(size, len(rows), each, joint)


def count_by_truth(sets: LabelSets, truth: NDArray[np.intp]) -> Matrix:
    """Count, for each true class (row), how often each class is ruled out (column).

    Three rows below tell the number of rows of each true class, the sum of their sizes, and that
    of the squares.
    """
    k, sizes = len(sets.classes), sets.sizes
    table = np.zeros(k * k)
    for piece in chunks(len(sets), k):
        row, code = np.nonzero(unpack(sets.packed[piece], k))
        table += np.bincount(truth[piece][row] * k + code, minlength=k * k)
    sums = [np.bincount(truth, sizes**power, k) for power in (0, 1, 2)]
    return np.concatenate([table.reshape(k, k), sums])


@dataclass(frozen=True)
class Shares:
    """Class shares estimated from sets alone, unbiased, so an estimate may be negative."""

    shares: Vector  # [k], sums to 1
    errors: Vector  # [k], standard errors
    rates: Vector  # [k], in which part of the rows each class is ruled out

    @property
    def clipped(self) -> Vector:
        positive = np.maximum(self.shares, 0)
        return np.asarray(positive / positive.sum())

    def signs(self, rows: int) -> float:
        """Return the p-value of 3 above, exact for few rows, too.

        A class of share 0 is in each set with the chance s/(k-1). With chances of one mean, counts
        vary most where all are equal (Hoeffding 1956): the binomial tail is an upper bound.
        """
        from scipy.special import bdtrc  # late: only the test needs SciPy

        k, most = len(self.rates), round(rows * float(self.rates.max()))
        chance = min(1.0, float(self.rates.sum()) / (k - 1))
        return min(1.0, k * float(bdtrc(most - 1, rows, chance)))


def marginals(counts: Iterable[Counts], k: int) -> tuple[Shares, Test | None]:
    r"""Estimate the class shares, and test whether all classes are ruled out equally often.

    A row of size s gives the unbiased estimate :math:`1 - \frac{k-1}{s} [a \in A]` of each share;
    rows are weighted by :math:`s/(k-s)`, their inverse variance under balanced classes.

    Under balanced classes :math:`\sum_a (N_a - \bar N)^2`, over its mean per degree of freedom
    :math:`\sum_i s_i (k - s_i) / (k (k-1))`, is chi-square with k-1 degrees.
    """
    sums, tables = np.zeros(4), np.zeros((4, k))
    for one in counts:
        s, weight, scale = one.size, one.size / (k - one.size), (k - 1) / (k - one.size)
        sums += one.rows * np.array([1, weight, weight**2, s * (k - s) / (k * (k - 1))])
        tables += np.outer([1, scale, weight * scale, scale**2], one.classes)
    (rows, total, squares, spread), (seen, first, cross, second) = sums, tables
    left = first / total  # 1 - share
    variance = second - 2 * left * cross + left**2 * squares
    shares = Shares(1 - left, np.sqrt(np.maximum(variance, 0)) / total, seen / rows)
    statistic = float(((seen - seen.mean()) ** 2).sum())
    return shares, Test(statistic / spread, k - 1) if spread >= EXPECTED else None


def same(counts: Iterable[Counts], shares: Shares) -> Test | None:
    """Test whether all sizes give the same shares: 2 above."""
    pi, k = shares.clipped, len(shares.shares)
    if k < 3:
        return None
    parts = []
    for one in counts:
        p = one.size / (k - 1) * (1 - pi)
        if one.rows * min(p.min(), (1 - p).min()) < EXPECTED:
            continue
        cover = both(k, one.size) * (1 - pi[:, None] - pi) - np.outer(p, p)
        np.fill_diagonal(cover, p * (1 - p))
        scale = (k - 1) / one.size
        cover += cover.trace() / k**2  # sums are known, not random: this makes it invertible
        inverse = np.linalg.inv(cover) * one.rows / scale**2
        parts.append((1 - scale * one.classes / one.rows, inverse))
    if len(parts) < 2:
        return None
    weight = np.sum([inverse for _, inverse in parts], axis=0)
    middle = np.linalg.solve(weight, np.sum([inverse @ found for found, inverse in parts], axis=0))
    statistic = sum((found - middle) @ inverse @ (found - middle) for found, inverse in parts)
    return Test(float(statistic), (len(parts) - 1) * (k - 1))


def both(k: int, s: int) -> float:
    """Return how likely two classes that are not the true one are both in a set of size s."""
    return s * (s - 1) / ((k - 1) * (k - 2))


def given_truth(counts: Matrix) -> Test | None:
    r"""Test, with true labels known, whether all wrong classes are ruled out equally often.

    For one true class, the counts of the k-1 others (its row of `counts`, which
    :func:`count_by_truth` returns) scatter with
    :math:`\sum_i s_i (k-1-s_i) / ((k-1)(k-2))` per degree of freedom, of which there are k-2;
    :math:`s_i` are the sizes of its sets.
    """
    k = counts.shape[1]
    if k < 3:
        return None
    table, (rows, sums, squares) = counts[:k], counts[k:]
    spread = (sums * (k - 1) - squares) / ((k - 1) * (k - 2))
    expected = np.minimum(sums, rows * (k - 1) - sums) / (k - 1)
    use = np.flatnonzero(expected >= EXPECTED)
    if not len(use):
        return None
    wrong = table[use] - (sums[use] / (k - 1))[:, None]
    wrong[np.arange(len(use)), use] = 0  # the truth itself
    return Test(float(((wrong**2).sum(1) / spread[use]).sum()), len(use) * (k - 2))


class PairTest(NamedTuple):
    """The test of pairs: over all sizes, for each size, and the pair that stands out most."""

    pooled: Test
    by_size: dict[int, Test]
    pair: tuple[int, int]
    ratio: float  # of how often that pair is ruled out to what is expected
    z: float  # the same in standard deviations


def pairs(counts: Iterable[Counts], shares: Shares) -> PairTest | None:
    r"""Test how often two classes are ruled out together, whatever the class shares are.

    The residual of a row, :math:`d_{ab} = [a, b \in A] - t\,([a \in A] + [b \in A]) + c` with
    :math:`t = (s-1)/(k-2)`, has mean zero whatever the shares are, and its rows sum to zero: it
    lies in the space of dimension :math:`k(k-3)/2` that is orthogonal to single counts. Its
    covariance there is :math:`\lambda_2 I + (\lambda_1 - \lambda_2) \sum_y \pi_y \Pi_y`, where
    :math:`\Pi_y` projects on what row y determines, so the Wald statistic
    :math:`R^\top C^{-1} R` of the summed residuals takes a few products with k × k matrices.
    """
    pi, k = shares.clipped, len(shares.shares)
    if k < 4:
        return None
    sums, scales, tests = np.zeros((4, k, k)), np.zeros(2), {}
    for one in counts:
        if one.pairs is None or not 2 <= one.size <= k - 2:
            continue
        mine, (joint, neither, spread) = _residual(one, k), _moments(one, pi)
        if _enough(joint, neither):
            tests[one.size] = _wald(mine, one.rows * _spreads(k, one.size), pi)
        for whole, part in zip(sums, (mine, joint, neither, spread), strict=True):
            whole += part
        scales += one.rows * _spreads(k, one.size)
    residual, expected, apart, variance = sums
    if not _enough(expected, apart):
        return None
    above = np.triu_indices(k, 1)
    z = residual[above] / np.sqrt(variance[above])
    most = int(np.argmax(np.abs(z)))
    a, b = int(above[0][most]), int(above[1][most])
    ratio = float(1 + residual[a, b] / expected[a, b])
    return PairTest(_wald(residual, scales, pi), tests, (a, b), ratio, float(z[most]))


def _moments(one: Counts, pi: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """Return how often both and neither of two classes are expected, and the variance."""
    k, s = len(pi), one.size
    c, t = both(k, s), (s - 1) / (k - 2)
    joint = c * (1 - pi[:, None] - pi) * one.rows
    rate = s / (k - 1) * (1 - pi) * one.rows
    single = rate[:, None] + rate - 2 * joint
    neither = one.rows - single - joint
    spread = joint * (1 - 2 * t + c) ** 2 + single * (c - t) ** 2 + neither * c**2
    return joint, neither, spread


def _enough(expected: Matrix, apart: Matrix) -> bool:
    upper = np.triu_indices(len(expected), 1)
    return bool(min(expected[upper].min(), apart[upper].min()) >= EXPECTED)


def _residual(one: Counts, k: int) -> Matrix:
    assert one.pairs is not None
    t = (one.size - 1) / (k - 2)
    mine = one.pairs - t * (one.classes[:, None] + one.classes) + both(k, one.size) * one.rows
    np.fill_diagonal(mine, 0)
    return np.asarray(mine)


def _spreads(k: int, s: int) -> Vector:
    r"""Return :math:`\lambda_1, \lambda_2`: the variance of a row in each part of the space.

    Given y, the space splits into what the k-1 pairs with y determine (dimension k-2) and the rest
    (dimension (k-1)(k-4)/2); the symmetry among the other classes allows one variance for each.
    """
    c, t = both(k, s), (s - 1) / (k - 2)
    whole = (
        s * (s - 1) / 2 * (1 - 2 * t + c) ** 2
        + s * (k - s) * (c - t) ** 2
        + (k - s) * (k - s - 1) / 2 * c**2
    )
    row = (s * (c - t) ** 2 + (k - 1 - s) * c**2) / (k - 3)
    rest = (k - 1) * (k - 4) / 2
    return np.array([row, (whole - (k - 2) * row) / rest if rest else row])


def _wald(residual: Matrix, scales: Vector, pi: Vector) -> Test:
    from scipy.sparse.linalg import LinearOperator, cg  # late: it takes a while

    k = len(pi)
    cover = LinearOperator(
        (k * k, k * k), lambda flat: _cover(flat.reshape(k, k), scales, pi).ravel(), dtype=float
    )  # close to a multiple of the identity: a few steps are enough
    solved, _ = cg(cover, residual.ravel(), rtol=1e-10, maxiter=100)
    return Test(float(residual.ravel() @ solved / 2), k * (k - 3) // 2)


def _cover(matrix: Matrix, scales: Vector, pi: Vector) -> Matrix:
    """Multiply by the covariance: `matrix` is symmetric and its rows sum to zero."""
    k = len(pi)
    row = pi @ matrix
    shared = (pi[:, None] + pi) * matrix * (k - 2) / (k - 3) - (row[:, None] + row) / (k - 3)
    np.fill_diagonal(shared, 0)
    return np.asarray(scales[1] * matrix + (scales[0] - scales[1]) * shared)


# ---------------------------------------------------------------------- what features say of sets


def by_rank(x: Rows, mask: Mask, taught: Mask, work: float = _WORK / 2) -> Mask | None:
    """Return what `mask` lists, the most plausible class of each row first, ``[m, k]``.

    Rows come in four parts. Those of a part are ranked by their `x`, ``[n, d]``, and a model that
    learnt from what `taught` rules out in all parts before, so it knows no set that it ranks. As
    many rows are used as `work`, a number of multiplications, allows; None where they are too few.
    """
    k = mask.shape[1]
    rows = np.random.default_rng(0).permutation(np.flatnonzero(mask.any(1)))
    rows = rows[: int(work / (2 * _PARTS * _STEPS * k * (x.shape[1] + 1)))]
    if len(rows) < 40 or k < 3:
        return None
    parts, listed = np.array_split(rows, _PARTS), []
    for place in range(1, _PARTS):
        past, new = np.concatenate(parts[:place]), parts[place]
        order = np.argsort(-_plausibility(x[past], taught[past], x[new]), 1, kind="stable")
        listed.append(np.take_along_axis(mask[new], order, 1))
    return np.concatenate(listed)


class Avoidance(NamedTuple):
    """What ranks tell."""

    p: float  #: of both tests together: how likely random sets are to look like this, at most
    ranks: float  #: the first, in standard deviations above what is allowed
    pairs: float  #: the second
    mean: float  #: the mean rank of ruled-out classes, the most plausible class being 1


def avoidance(listed: Mask) -> Avoidance | None:
    """Test whether plausible classes are avoided; None where every set is an ordinary label."""
    k = listed.shape[1]
    ranks, s = np.arange(k), listed.sum(1)
    spread = float((s * (k - 1 - s)).sum() * k / 12)
    if not spread:
        return None
    z = float((listed @ ranks - s * k / 2).sum() / np.sqrt(spread))
    near = 1 / (1 + ranks)
    one, two, both = listed @ near, listed @ near**2, near.sum() ** 2 - near @ near
    t, c = (s - 1) / (k - 2), s * (s - 1) / ((k - 1) * (k - 2))
    residual = (one**2 - two) / 2 - t * (one * near.sum() - two) + c * both / 2
    residual[np.isin(s, (1, k - 1))] = 0  # exactly: they say nothing of pairs
    pairs = float(residual.sum() / max(np.sqrt(residual @ residual), 1e-12))
    p = min(1.0, 2 * _below(-max(z, pairs)))
    mean = 1 + float((listed @ ranks).sum() / s.sum())
    return Avoidance(p, z, pairs, mean)


def _plausibility(x: Rows, mask: Mask, new: Rows) -> Rows:
    r"""Learn from rows, and return the scores of new ones: a linear model with the loss LOG.

    Accelerated gradient steps on :math:`-\sum \log(1 - \sum_{\bar y \in \bar Y} p_{\bar y})`, with
    a weight decay of one row, on features scaled as the rows are.
    """
    centre, width = (v(0, dtype=np.float64).astype(np.float32) for v in (x.mean, x.std))
    width[width == 0] = 1
    x, new = (
        np.pad((part - centre) / width, ((0, 0), (0, 1)), constant_values=1) for part in (x, new)
    )
    weights = ahead = np.zeros((x.shape[1], mask.shape[1]), np.float32)
    step, speed = 1 / (np.linalg.norm(x.T @ x, 2) / 2 + 1), 1.0
    for _ in range(_STEPS):
        p = x @ ahead
        p = np.exp(p - p.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        left = np.where(mask, 0, p)
        left /= np.maximum(left.sum(1, keepdims=True), 1e-9)
        last, weights = weights, ahead - step * (x.T @ (p - left) + ahead)
        faster = (1 + np.sqrt(1 + 4 * speed**2)) / 2
        ahead, speed = weights + np.float32((speed - 1) / faster) * (weights - last), faster
    return np.asarray(new @ weights)
