"""Size laws, and the sets drawn by them: the MCL process, and the labelling of Section 3.2."""

import numbers
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import Classes, ClassName, class_names, encode, to_array
from ruleout.labels.errors import LabelError, brief, nearest
from ruleout.labels.sets import LabelSets, chunks, complement, count, has, pack

Law: TypeAlias = str | int | Sequence[float] | NDArray[Any]
Seed: TypeAlias = int | np.random.Generator | np.random.SeedSequence | None
Vector: TypeAlias = NDArray[np.float64]


def _binomials(n: int) -> Iterator[int]:
    """Yield C(n, 1), C(n, 2), … exactly; ratios of whole numbers round only once, for any k."""
    value = 1
    for s in range(1, n + 1):
        value = value * (n - s + 1) // s
        yield value


LAWS: dict[str, Callable[[int], list[float]]] = {
    "paper": lambda k: [ways / (2 ** (k - 1) - 1) for ways in _binomials(k - 1)],
    "released": lambda k: [ways / (2**k - 2) for ways in islice(_binomials(k), k - 1)],
}


def size_law(law: Law, classes: Classes) -> Vector:
    r"""Return :math:`p(s)` for :math:`s = 1, \dots, k-1`, probabilities that sum to 1.

    - ``"paper"``: :math:`\binom{k-1}{s} / (2^{k-1}-1)`, every set without the true class equally
      likely. The paper prints the denominator :math:`2^k - 2`, which sums to one half.
    - ``"released"``: :math:`\binom{k}{s} / (2^k-2)`, as in the authors' code.
    - ``3`` or ``"fixed:3"``: always three classes; ``"fixed:k-2"``: all but two.
    - a vector of k-1 probabilities.

    >>> size_law("paper", 4)
    array([0.42857143, 0.42857143, 0.14285714])
    >>> size_law("fixed:2", 4)
    array([0., 1., 0.])
    """
    k = len(class_names(classes))
    if isinstance(law, numbers.Integral) and not isinstance(law, bool):
        return _fixed(int(law), k)
    if not isinstance(law, str):
        return _vector(law, k)
    if law in LAWS:
        return np.array(LAWS[law](k))
    if found := re.fullmatch(r"fixed:(k-)?([0-9]{1,9})", law):
        return _fixed(k - int(found[2]) if found[1] else int(found[2]), k)
    say = "use 'paper', 'released', 'fixed:j', a whole number, or a vector of probabilities"
    raise LabelError(f"unknown size law {brief(law)}", nearest(law, [*LAWS, "fixed:1"], say))


def _fixed(size: int, k: int) -> Vector:
    if not 1 <= size <= k - 1:
        problem = f"size {size} is impossible with {k} classes"
        raise LabelError(problem, f"choose a size from 1 to {k - 1}")
    return np.asarray(np.arange(1, k) == size, np.float64)


def _vector(law: Any, k: int) -> Vector:
    try:
        p = to_array(law, "the size law").astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, LabelError):
            raise
        problem = f"size law {brief(law)} is not a list of numbers"
        raise LabelError(problem, f"give {k - 1} probabilities") from None
    if p.shape != (k - 1,):
        remedy = f"with {k} classes give {k - 1} probabilities, for sizes 1 to {k - 1}"
        raise LabelError(f"the size law has shape {p.shape}", remedy)
    if not np.isfinite(p).all() or (p < 0).any():
        place = int(np.argmax(~np.isfinite(p) | (p < 0)))
        problem = f"p(s={place + 1}) is {p[place]:g}"
        raise LabelError(problem, "probabilities are numbers from 0 to 1")
    if abs(p.sum() - 1) > 1e-6:
        raise LabelError(f"the size law sums to {p.sum():g}", "divide it by its sum")
    return np.asarray(p / p.sum())


def kept_law(law: Law, classes: Classes) -> Vector:
    r"""Return the law of the sizes that survive when only "no" answers are kept.

    A proposed set of size s misses the true class with probability :math:`(k-s)/k` (Lemma 1), so
    keeping "no" tilts the law to :math:`p(s)(k-s)/k`, normalised. Theorem 2 is exact for each
    size and leaves this tilt out.

    >>> np.allclose(kept_law("released", 10), size_law("paper", 10))
    True
    """
    p = size_law(law, classes)
    k = len(p) + 1
    tilted = p * (k - np.arange(1, k)) / k
    return np.asarray(tilted / tilted.sum())


def wrong_class_rate(sizes: Any, classes: Classes) -> Vector:
    r"""Return how likely a wrong class stays possible after one answered question.

    For a proposed set of size s, whatever the answer,
    :math:`q_s = \frac{s(s-1) + (k-s)(k-s-1)}{k(k-1)}`. Several independent questions about one
    item multiply.

    >>> wrong_class_rate([1, 5, 9], 10)
    array([0.8       , 0.44444444, 0.8       ])
    """
    k = len(class_names(classes))
    s = to_array(sizes, "sizes").astype(np.float64)
    if not ((s >= 1) & (s <= k - 1)).all():
        raise LabelError("a size is impossible", f"with {k} classes, sizes go from 1 to {k - 1}")
    return np.asarray((s * (s - 1) + (k - s) * (k - s - 1)) / (k * (k - 1)))


def draw(
    y: Any,
    classes: Classes,
    law: Law = "released",
    seed: Seed = 0,
    *,
    transition: Any = None,
    noise: Any = 0.0,
) -> LabelSets:
    """Draw a set of ruled-out classes for each true label: Equation 4 of the paper.

    A size s comes from `law`; then s of the k-1 wrong classes are ruled out, every such set being
    equally likely. `y` holds true labels, one per row: class names, or positions.

    Parameters
    ----------
    transition
        ``[k, k]``: whoever rules out has preferences, row y for the true class y. Of all sets of a
        size, one has a chance in proportion to the product of what stands there for its classes.
        Or ``[n, k]``, of each row its own; or an origin, such as :class:`~ruleout.labels.Flips`,
        which has a law of its own.
    noise
        How often a set is wrong: the true class is in it in the place of another. One number, or
        one for each class, ``[k]``, or for each row, ``[n]``.

    Examples
    --------
    >>> sets = draw([0, 1, 2], classes=4, law=2, seed=0)
    >>> sets.sizes
    array([2, 2, 2])
    >>> draw([0, 0], classes=3, law=1, transition=[[0, 1, 0], [1, 0, 0], [1, 0, 0]]).to_lists()
    [[1], [1]]
    """
    names, random = class_names(classes), np.random.default_rng(seed)
    true = encode(y, names, "y")
    if transition is None:
        sets = _drawn(len(true), names, law, random, without=true)
    elif hasattr(transition, "draw"):
        sets = transition.draw(y, names, random)
    else:
        sets = preferred(*_chances(transition, true, len(names)), names, law, random)
    if not np.any(noise):
        return sets
    wrong = random.random(len(true)) < _noise(noise, true, len(names))
    return _mistaken(sets, true, np.flatnonzero(wrong), random)


def _chances(transition: Any, true: NDArray[np.intp], k: int) -> tuple[Vector, NDArray[np.intp]]:
    """Return chances, ``[m, k]``, and which of them are those of each row, ``[n]``."""
    found = to_array(transition, "transition").astype(float)
    own = true if found.shape == (k, k) else np.arange(len(true))
    fits = found.shape in ((k, k), (len(true), k))
    if not fits or not (np.isfinite(found) & (found >= 0)).all():
        problem = f"transition has shape {found.shape}, or a chance below zero"
        raise LabelError(problem, f"give {k} rows of {k} chances, or one row for each label")
    return found / np.maximum(found.sum(1, keepdims=True), 1e-300), own


def _noise(noise: Any, true: NDArray[np.intp], k: int) -> Vector:
    rate = np.asarray(noise, float)
    if rate.shape not in ((), (k,), true.shape) or not ((rate >= 0) & (rate < 1)).all():
        problem = f"noise is {brief(noise)}"
        raise LabelError(problem, "give rates below 1: one, or one for each class or each row")
    return np.asarray(rate[true] if rate.shape == (k,) else rate)


def preferred(
    chance: Vector,
    own: NDArray[np.intp],
    names: tuple[ClassName, ...],
    law: Law,
    random: np.random.Generator,
) -> LabelSets:
    """Draw sets in proportion to the product of chances: class after class, in or out.

    `chance` is ``[m, k]``, its rows sum to 1; `own`, ``[n]``, says which of them is that of a row.
    """
    k, n = len(names), len(own)
    wanted = random.choice(np.arange(1, k), size=n, p=size_law(law, k))
    few = (chance > 0).sum(1)[own] < wanted
    if few.any():
        problem = f"{wanted[np.argmax(few)]} classes are to be ruled out, but fewer have a chance"
        remedy = "give more classes a chance, or a law of smaller sets"
        raise LabelError(problem, remedy, row=int(np.argmax(few)))
    luck, out = random.random((k, n)), np.zeros((n, k), np.bool_)
    for piece in chunks(n, (k + 1) ** 2):
        kinds, row = np.unique(own[piece], return_inverse=True)
        each, left = k * chance[kinds], wanted[piece]
        rest = np.zeros((k + 1, len(kinds), k + 1))  # over sets of the classes from c on, by size
        rest[k, :, 0] = 1
        for c in range(k - 1, -1, -1):
            rest[c] = rest[c + 1]
            rest[c, :, 1:] += each[:, c, None] * rest[c + 1, :, :-1]
        for c in range(k):
            taken = each[row, c] * rest[c + 1, row, left - 1]
            out[piece, c] = (luck[c, piece] * rest[c, row, left] < taken) & (left > 0)
            left = left - out[piece, c]
    return LabelSets(out, names)


def _mistaken(
    sets: LabelSets, true: NDArray[np.intp], wrong: NDArray[np.intp], random: np.random.Generator
) -> LabelSets:
    """Put the true class into some sets, in the place of another where it is not there yet."""
    out = sets.excluded
    wrong = wrong[~out[wrong, true[wrong]]]
    given = np.where(out[wrong], random.random((len(wrong), out.shape[1])), -1)
    out[wrong, given.argmax(1)] = False
    out[wrong, true[wrong]] = True
    return LabelSets(out, sets.classes)


def propose(n: int, classes: Classes, law: Law = "released", seed: Seed = 0) -> LabelSets:
    """Propose n sets to ask about: "is the true class among these?" (Section 3.2).

    The size comes from `law`; then every set of that size, the true class included or not, is
    equally likely.

    >>> propose(3, classes=5, law=2, seed=0).sizes
    array([2, 2, 2])
    """
    if n < 0:
        raise LabelError(f"{n} sets asked for", "ask for zero or more")
    return _drawn(n, class_names(classes), law, seed, without=None)


def _drawn(
    n: int, names: tuple[ClassName, ...], law: Law, seed: Seed, without: NDArray[np.intp] | None
) -> LabelSets:
    """Draw n sets, `without[i]` never among them, every set of a size equally likely.

    Selection sampling (Fan, Muller and Rezucha 1962): walk the classes once and take each with
    probability (still wanted) / (still left), all rows side by side.
    """
    rng, k = np.random.default_rng(seed), len(names)
    sizes = rng.choice(np.arange(1, k), size=n, p=size_law(law, k))

    def rows(piece: slice) -> NDArray[np.bool_]:
        wanted = sizes[piece].astype(np.float64)
        left = np.full(len(wanted), float(k if without is None else k - 1))
        chosen = np.empty((k, len(wanted)), np.bool_)
        for code in range(k):
            free = True if without is None else without[piece] != code
            chosen[code] = (rng.random(len(wanted)) * left < wanted) & free
            left -= free
            wanted -= chosen[code]
        return chosen.T

    return LabelSets._trusted(pack(rows, n, k), names)


@dataclass(frozen=True, eq=False)
class Answers:
    """Questions asked and the answers given, both kept."""

    asked: LabelSets  #: the proposed sets, one question per row
    yes: NDArray[np.bool_]  #: whether the true class was among the proposed ones, (n,)
    items: NDArray[np.intp]  #: which example each question was about, (n,)

    def __len__(self) -> int:
        return len(self.yes)

    @property
    def no(self) -> LabelSets:
        """The proposed sets answered with "no", which the paper keeps; of ``items[~yes]``."""
        return self.asked[~self.yes]

    @property
    def ruled_out(self) -> LabelSets:
        """What each answer rules out, the proposed set after "no" and all others after "yes"."""
        packed = self.asked.packed.copy()
        packed[self.yes] = complement(packed[self.yes], len(self.asked.classes))
        return LabelSets._trusted(packed, self.asked.classes)

    @property
    def rates(self) -> NDArray[np.float64]:
        """How likely a wrong class stays possible after each answer, :func:`wrong_class_rate`."""
        return wrong_class_rate(self.asked.sizes, self.asked.classes)

    def per_item(self) -> tuple[NDArray[np.intp], LabelSets, NDArray[np.float64]]:
        """Combine all answers about the same item.

        Return each item once, in rising order; what its answers rule out together; and the product
        of their rates, for :func:`ruleout.losses.answered`. Raise a :class:`~ruleout.LabelError`
        where they contradict each other: nothing would be left.
        """
        items, place = np.unique(self.items, return_inverse=True)
        packed = np.zeros((len(items), self.asked.packed.shape[1]), np.uint8)
        np.bitwise_or.at(packed, place, self.ruled_out.packed)
        rates = np.ones(len(items))
        np.multiply.at(rates, place, self.rates)
        full = count(packed) == len(self.asked.classes)
        if full.any():
            problem = f"the answers about item {items[np.argmax(full)]} rule out every class"
            raise LabelError(problem, "ask about it again, or leave the item out")
        return items, LabelSets._trusted(packed, self.asked.classes), rates


def answer(asked: LabelSets, y: Any, items: Any = None) -> Answers:
    """Answer truthfully, for each proposed set, whether the true class is among these.

    `asked` are sets from :func:`propose`, `y` is the true label of each item, and `items` says
    which item each question is about; by default question i is about item i.

    >>> asked = LabelSets([[1, 1, 0], [1, 0, 0]])
    >>> answer(asked, y=[1, 1]).yes
    array([ True, False])
    """
    if not isinstance(asked, LabelSets):
        raise LabelError(f"asked is {brief(asked)}", "give LabelSets, as propose(...) makes them")
    true = encode(y, asked.classes, "y")
    about = np.arange(len(asked)) if items is None else to_array(items, "items")
    about = about.astype(np.intp) if about.size == 0 else about
    if about.shape != (len(asked),) or about.dtype.kind not in "iu":
        problem = f"items has shape {about.shape} and type {about.dtype}"
        raise LabelError(problem, f"give one item number for each of the {len(asked)} questions")
    if items is None and len(true) != len(asked):
        remedy = "give one label per question, or say with items= which item each is about"
        raise LabelError(f"{len(asked)} questions but {len(true)} labels", remedy)
    if len(about) and (about.min() < 0 or about.max() >= len(true)):
        row = int(np.argmax((about < 0) | (about >= len(true))))
        problem = f"item {about[row]} has no label"
        raise LabelError(problem, f"there are {len(true)} labels", row=row)
    answers = Answers(asked, has(asked.packed, true[about]), about.astype(np.intp))
    answers.yes.flags.writeable = answers.items.flags.writeable = False
    return answers


EXPECTED = 5.0  # counts that a chi-square test needs to expect


@dataclass(frozen=True)
class Test:
    """A chi-square statistic, its degrees of freedom, and how likely a larger one is."""

    statistic: float
    freedom: int

    @property
    def p(self) -> float:
        from scipy.special import chdtrc  # late: only the test needs SciPy

        return float(chdtrc(self.freedom, self.statistic))


def pearson(observed: NDArray[np.intp], expected: NDArray[np.float64]) -> Test | None:
    """Compare counts with what is expected, neighbours together until five are; None: too few."""
    cells = [[0.0, 0.0]]
    for seen, mean in zip(observed.tolist(), expected.tolist(), strict=True):
        if cells[-1][1] >= EXPECTED:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += mean
    if len(cells) > 1 and cells[-1][1] < EXPECTED:  # the rest joins the last
        cells[-2:] = [[a + b for a, b in zip(*cells[-2:], strict=True)]]
    if len(cells) < 2:
        return None
    return Test(sum((seen - mean) ** 2 / mean for seen, mean in cells), len(cells) - 1)
