r"""How sets came about: one small object that drawing, losses, criteria and checks read.

An origin says how likely each set of ruled-out classes is when y is true. Four kinds are known:

- :class:`Uniform`: a size by a law, then every set of that size without y is equally likely. With
  probability `error` the row is wrong: every set of that size that holds y is equally likely.
- :class:`Transition`: one class c is ruled out, with probability :math:`Q_{yc}`; a larger set is,
  given its size, as likely as the product of these says.
- :class:`Flips`: every class c is ruled out on its own account, with probability :math:`R_{yc}`.
- :class:`PerRow`: each row has an origin of its own, as where people avoid what looks plausible.

From it follow the likelihood of a set for every class, :math:`P(\bar Y \mid y)`, and the credit of
a prediction: a number whose mean is 1 where the prediction is right and 0 where it is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import itemgetter
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import Classes, class_names, encode, find_name, to_array
from ruleout.labels.dawid_skene import learn_errors
from ruleout.labels.errors import LabelError, brief
from ruleout.labels.laws import Law, Seed, draw, preferred, size_law
from ruleout.labels.sets import LabelSets

Array: TypeAlias = NDArray[np.float64]


class Credit(NamedTuple):
    """What predicting each class earns, ``[n, k]``: on average 1 where right and 0 where wrong.

    Of predictions that were made, :meth:`of`, all three are ``[n]``.
    """

    value: Array
    right: Array  #: its variance where the prediction is right
    wrong: Array  #: its variance where the prediction is wrong

    def of(self, predicted: NDArray[np.intp]) -> Credit:
        """Return what these predictions (positions among the classes) earn."""
        return Credit(*(part[np.arange(len(predicted)), predicted] for part in self))

    @property
    def sure(self) -> bool:
        """Whether right predictions earn 1 for certain: nothing that was said can be wrong."""
        return not self.right.any()

    @property
    def weight(self) -> Array:
        """The inverse variance, if half of the predictions are right."""
        return np.asarray(1 / (0.5 * self.right + 0.5 * self.wrong + 0.25))

    @property
    def row_weight(self) -> Array:
        """How much each row counts in an accuracy: its weight where something may be wrong.

        Where nothing is, all count alike: larger sets say more, but easy rows may have larger ones.
        """
        return (self.weight > 0).astype(float) if self.sure else self.weight


class Origin(Protocol):
    """What every kind of origin can do."""

    def draw(self, y: Any, classes: Classes, seed: Seed = 0) -> LabelSets:
        """Draw a set for each true label."""

    def log_likelihood(self, sets: LabelSets) -> Array:
        r"""Return :math:`\log P(\bar Y_i \mid y)`, ``[n, k]``, up to a constant of each row."""

    def credit(self, sets: LabelSets) -> Credit:
        """Return what predicting each class earns."""


@dataclass(frozen=True, eq=False)
class Uniform:
    """Sets of a size are equally likely, as in the paper; a share of the rows may be wrong.

    `error` is one number, one for each row, or, as ``[1, k]``, one for each true class.
    """

    law: Law = "released"
    error: Any = 0.0

    def draw(self, y: Any, classes: Classes, seed: Seed = 0) -> LabelSets:
        """Draw a size, then a set of it without the true class, or, by mistake, with it."""
        names = class_names(classes)
        codes = encode(y, names, "y")
        rates = np.broadcast_to(self._errors((len(codes), len(names))), (len(codes), len(names)))
        return draw(y, names, self.law, seed, noise=rates[np.arange(len(codes)), codes])

    def _errors(self, shape: tuple[int, int]) -> Array:
        """Return the rates as ``[n or 1, k or 1]``."""
        error = np.asarray(self.error, float)
        fits = error.shape in ((), shape[:1], (1, shape[1]))
        if not fits or not ((error >= 0) & (error < 1)).all():
            told = brief(error.tolist())
            say = "give a rate from 0 to below 1, one for each row, or [1, k] of the classes"
            raise LabelError(f"the error rate is {told}", say)
        return error.reshape((-1, 1)) if error.ndim < 2 else error

    def log_likelihood(self, sets: LabelSets) -> Array:
        """Return log of 1-e for classes that are possible, and of e (k-s) / s for the others.

        Rows that rule out nothing are as likely at any error rate.
        """
        k, s, e = sets.shape[1], sets.sizes[:, None], self._errors(sets.shape)
        with np.errstate(divide="ignore"):
            wrong = np.log(e * (k - s)) - np.log(np.maximum(s, 1))
        return np.where(sets.excluded, wrong, np.log1p(-e) * (s > 0))

    def credit(self, sets: LabelSets) -> Credit:
        """As :func:`stay_credit`: a set that is wrong leaves one more wrong class possible.

        Where classes differ in their errors, as of rates in a matrix, for each size its own.
        """
        k, s, e = sets.shape[1], sets.sizes, self._errors(sets.shape)
        if e.shape[1] == 1:
            return stay_credit(sets, 1 - e[:, 0], 1 - (s - e[:, 0]) / (k - 1))
        return _credit_by_size(sets, lambda size: self._moments(size, e[0]))

    def _moments(self, s: int, e: Array) -> Moments:
        """Return those of what is ruled out in sets of s classes."""
        k, here, e = len(e), np.arange(len(e)), e[:, None]
        mean = np.repeat((s - e) / (k - 1), k, 1)
        pair = ((1 - e) * s * (s - 1) + e * (s - 1) * (s - 2)) / max((k - 1) * (k - 2), 1)
        both = np.repeat(pair[..., None], k, 1).repeat(k, 2)
        both[here, here, :] = both[here, :, here] = e * (s - 1) / (k - 1)
        mean[here, here] = e[:, 0]
        both[:, here, here] = mean
        return mean, _spread_by(both - mean[:, :, None] * mean[:, None, :])

    @staticmethod
    def learnt(chance: Array, sets: LabelSets, last: Uniform | None = None) -> Uniform:
        """Of each class how often it was ruled out by mistake: see `learn_origin`."""
        del last
        return Uniform(error=np.diag(_smooth(chance, sets))[None])


#: Of what is ruled out, by true class: the mean ``[k, k]``, and how far sums of it, with weights in
#: the columns of ``[k, k]``, are spread: ``[k, k]``, their variances.
Moments: TypeAlias = tuple[Array, Callable[[Array], Array]]


def _spread_by(covariance: Array) -> Callable[[Array], Array]:
    return lambda u: np.asarray((u * (covariance @ u)).sum(1))


def stay_credit(sets: LabelSets, a: Any, b: Array) -> Credit:
    """Return (1[possible] - b) / (a - b): a and b are how often right and wrong classes stay."""
    a = np.broadcast_to(a, b.shape)
    says = a > b + 1e-9  # else it is wrong so often that it says nothing
    a, b, scale = (v[:, None] for v in (a, b, np.where(says, a - b, 1)))
    value = np.where(says[:, None], (sets.candidates - b) / scale, 0)
    chances = (np.where(says[:, None], p * (1 - p) / scale**2, np.inf) for p in (a, b))
    return Credit(value, *(np.broadcast_to(one, sets.shape) for one in chances))


class _Matrix:
    """Of kinds whose chances are a matrix ``[k, k]``: row y, how likely each class is ruled out."""

    rates: Array

    def __init__(self, rates: Any) -> None:
        self.rates = to_array(rates, "rates").astype(float)
        if self.rates.ndim != 2 or len(set(self.rates.shape)) != 1:
            raise LabelError(f"rates have shape {self.rates.shape}", "give k rows of k numbers")
        if not ((self.rates >= 0) & (self.rates <= 1)).all():
            wrong = ~((self.rates >= 0) & (self.rates <= 1)).all(1)
            problem = f"row {int(wrong.argmax())} of the rates holds more than probabilities"
            raise LabelError(problem, "give numbers from 0 to 1")

    def _check(self, k: int) -> None:
        if k != len(self.rates):
            told = f"rates of {len(self.rates)} classes, sets of {k}"
            raise LabelError(told, "give equal classes")

    def _moments(self, s: int = 1) -> Moments:
        """Return those of what is ruled out in sets of s classes."""
        raise NotImplementedError

    def must_tell(self, sets: LabelSets) -> None:
        """Raise where sets of no size that occurs tell classes apart."""
        sizes = np.unique(sets.sizes[sets.sizes > 0]).tolist()
        if sizes and not any(_apart(self._moments(size)[0]) for size in sizes):
            raise LabelError(*_ALIKE)


_ALIKE = "the rates do not tell classes apart", "no accuracy follows from them"


def _apart(mean: Array) -> bool:
    return bool(np.linalg.cond(1 - mean) <= 1e6)


def _credit_by_size(sets: LabelSets, moments: Callable[[int], Moments]) -> Credit:
    """Return the credit where each size has moments of its own; one that says nothing earns 0."""
    parts = (np.zeros(sets.shape), np.full(sets.shape, np.inf), np.full(sets.shape, np.inf))
    for size in np.unique(sets.sizes[(sets.sizes > 0) & (sets.sizes < sets.shape[1])]):
        try:
            found = _linear_credit(sets[sets.sizes == size], *moments(int(size)))
        except LabelError:
            continue
        for part, one in zip(parts, found, strict=True):
            part[sets.sizes == size] = one
    if len(sets) and not np.isfinite(parts[1]).any() and sets.sizes.any():
        raise LabelError(*_ALIKE)
    return Credit(*parts)


def _linear_credit(sets: LabelSets, mean: Array, spread_of: Callable[[Array], Array]) -> Credit:
    r"""Return :math:`u_{\hat y}^\top (1 - x)`, on average 1 where c is true and else 0.

    Rows that rule out nothing, about which nobody was asked, say nothing.
    """
    if not _apart(mean):
        raise LabelError(*_ALIKE)
    u = np.asarray(np.linalg.inv(1 - mean), float)  # [j, c]
    spread = spread_of(u)  # given y, predicting c
    own = np.diag(spread)
    rest = (spread.sum(0) - own) / (len(mean) - 1)
    says, unsaid = sets.sizes[:, None] > 0, (0, np.inf, np.inf)
    parts = zip((sets.candidates @ u, own, rest), unsaid, strict=True)
    return Credit(*(np.where(says, part, other) for part, other in parts))


class Flips(_Matrix):
    """Every class is ruled out on its own account, with a probability that the true class decides.

    The diagonal is how often the true class is ruled out by mistake.
    """

    def __init__(self, rates: Any) -> None:
        super().__init__(rates)
        if (self._proper() < 1e-9).any():
            problem = "a row of the rates rules out nothing, or everything"
            raise LabelError(problem, "give rates of which some are above 0 and some below 1")

    @staticmethod
    def learnt(chance: Array, sets: LabelSets, last: Flips | None = None) -> Flips:
        """Of each pair of classes how often the second was ruled out: see `learn_origin`."""
        del last
        rates = mean = _smooth(chance, sets)
        for _ in range(30):  # the mean is of sets that rule out something, and not everything
            rates = mean * Flips(rates)._proper()[:, None] + rates.prod(1, keepdims=True)
        return Flips(rates)

    def draw(self, y: Any, classes: Classes, seed: Seed = 0) -> LabelSets:
        """Draw sets; rows that rule out nothing, or everything, are drawn again."""
        names, random = class_names(classes), np.random.default_rng(seed)
        self._check(len(names))
        chance = self.rates[encode(y, names, "y")]
        out = np.zeros(chance.shape, np.bool_)
        left = np.arange(len(out))
        while len(left):
            out[left] = random.random((len(left), len(names))) < chance[left]
            left = left[np.isin(out[left].sum(1), (0, len(names)))]
        return LabelSets(out, names)

    def log_likelihood(self, sets: LabelSets) -> Array:
        """Return the sum of the log chances of what was and what was not ruled out."""
        self._check(sets.shape[1])
        with np.errstate(divide="ignore", invalid="ignore"):
            out, stay = np.log(self.rates), np.log1p(-self.rates)
        x = sets.excluded.astype(float)
        found = np.zeros(sets.shape) - np.log(self._proper())
        for part, chance in ((x, out), (1 - x, stay)):
            never = np.isneginf(chance)
            found += part @ np.where(never, 0, chance).T
            found[(part @ never.T.astype(float)) > 0] = -np.inf
        found[sets.sizes == 0] = 0
        return found

    def _proper(self) -> Array:
        """Return how likely a first draw rules out something, and not everything, ``[k]``."""
        return np.asarray(1 - self.rates.prod(1) - (1 - self.rates).prod(1))

    def credit(self, sets: LabelSets) -> Credit:
        """Return what predicting each class earns."""
        self._check(sets.shape[1])
        return _linear_credit(sets, *self._moments())

    def _moments(self, s: int = 1) -> Moments:
        """Of the sets that rule out something, and not everything, whatever their size."""
        del s
        every, proper = self.rates.prod(1), self._proper()
        both = self.rates[:, :, None] * self.rates[:, None, :]
        here = np.arange(len(both))
        both[:, here, here] = self.rates
        mean = (self.rates - every[:, None]) / proper[:, None]
        second = (both - every[:, None, None]) / proper[:, None, None]
        return mean, _spread_by(second - mean[:, :, None] * mean[:, None, :])


class Transition(_Matrix):
    r"""Classes are ruled out by a matrix Q whose rows sum to 1; the diagonal holds mistakes.

    A set of one class c has the chance :math:`Q_{yc}`. Of all sets of a size, a set has a chance
    in proportion to :math:`\prod_{c \in \bar Y} Q_{yc}`; the size itself, by `law`, says nothing
    about y. Rows that are even off the diagonal make sets :class:`Uniform`.
    """

    def __init__(self, q: Any, law: Law = 1) -> None:
        super().__init__(q)
        self.law = law
        off = np.abs(self.rates.sum(1) - 1)
        if (off > 1e-6).any():
            row = int(off.argmax())
            problem = f"row {row} of the matrix sums to {self.rates[row].sum():g}, not to 1"
            raise LabelError(problem, "divide each row by its sum")

    @staticmethod
    def learnt(chance: Array, sets: LabelSets, last: Transition | None = None) -> Transition:
        """Bring how often classes are ruled out, given the sizes of sets, to what was seen.

        From the `last` matrix a few steps on the way do.
        """
        (_, k), seen = sets.shape, _smooth(chance, sets)
        sized = chance.T @ np.eye(k + 1)[sets.sizes]  # [y, s]: rows
        sized += 2 * sized.sum(0) / max(sized.sum(), 1e-300)  # as `_smooth` does
        single = not (sets.sizes > 1).any()  # then counts are all
        found = last.rates if last and not single else seen / seen.sum(1, keepdims=True)
        for _ in range(0 if single else _SCALINGS if last is None else 3):
            expected = _expected(found, sized) / sized.sum(1, keepdims=True)
            found, before = found * seen / np.maximum(expected, 1e-300), found
            found /= found.sum(1, keepdims=True)
            if np.abs(found - before).max() < 1e-6:
                break
        return Transition(found)

    def draw(self, y: Any, classes: Classes, seed: Seed = 0) -> LabelSets:
        """Draw a size for each true label, then a set: class after class, in or out."""
        names, random = class_names(classes), np.random.default_rng(seed)
        self._check(len(names))
        return preferred(self.rates, encode(y, names, "y"), names, self.law, random)

    def log_likelihood(self, sets: LabelSets) -> Array:
        """Return the log of the product of chances, over that of all sets of the size."""
        self._check(sets.shape[1])
        with np.errstate(divide="ignore"):
            chance = np.log(self.rates * len(self.rates))
            every = np.log(_sums_by_size(self.rates))
        x, never = sets.excluded.astype(float), np.isneginf(chance)
        found = x @ np.where(never, 0, chance).T - np.maximum(every, -1e300).T[sets.sizes]
        return np.where((x @ never.T.astype(float)) > 0, -np.inf, found)

    def credit(self, sets: LabelSets) -> Credit:
        """Return what predicting each class earns."""
        self._check(sets.shape[1])
        return _credit_by_size(sets, self._moments)

    def _moments(self, s: int = 1) -> Moments:
        k = len(self.rates)
        if not _sums_by_size(self.rates)[:, s].all():
            raise LabelError(f"no set of {s} classes can occur", "give more classes a chance")

        def spread(u: Array) -> Array:
            every, first, second = _sums_over_sets(self.rates, u, s)
            return np.asarray(second / every - (first / every) ** 2)

        return _expected(self.rates, np.eye(k + 1)[[s] * k]), spread


class PerRow:
    """Each row has an origin of its own: how sets come about depends on the instance.

    Examples
    --------
    >>> shy = PerRow.of_weights([[1, 1, 0.1], [1, 1, 1]])  # the last class looks plausible at first
    >>> evidence(LabelSets([[0, 1, 0], [0, 1, 0]], 3), origin=shy).likelihood.round(2)
    array([[ 0. , -inf, -0.6],
           [ 0. , -inf,  0. ]])
    """

    def __init__(self, origins: Sequence[Origin]) -> None:
        self.origins = tuple(origins)

    @staticmethod
    def of_weights(weights: Any, law: Law = 1) -> PerRow:
        """Make it of how readily each class is ruled out where it is wrong, ``[n, k]``.

        Of the sets of a size without the true class, one has a chance in proportion to the product
        of its weights: :class:`Transition` with rows that differ only by the true class.
        """
        told = to_array(weights, "weights").astype(float)
        if told.ndim != 2 or not (np.isfinite(told) & (told > 0)).all():
            raise LabelError(f"weights are {brief(weights)}", "give numbers above 0, [n, k]")
        wrong = 1 - np.eye(told.shape[1])
        return PerRow([Transition(own * wrong / (wrong @ own)[:, None], law) for own in told])

    def _each(self, n: int) -> Iterator[tuple[int, Origin]]:
        if n != len(self.origins):
            raise LabelError(f"origins of {len(self.origins)} rows, sets of {n}", "give one each")
        return enumerate(self.origins)

    def draw(self, y: Any, classes: Classes, seed: Seed = 0) -> LabelSets:
        """Draw a set for each true label, by the origin of its row."""
        names, random = class_names(classes), np.random.default_rng(seed)
        codes = encode(y, names, "y")
        each = self._each(len(codes))
        own = [one.draw(codes[row : row + 1], names, random).excluded for row, one in each]
        return LabelSets(np.concatenate([np.zeros((0, len(names)), np.bool_), *own]), names)

    def log_likelihood(self, sets: LabelSets) -> Array:
        """Return those of the rows."""
        each = self._each(len(sets))
        rows = [one.log_likelihood(sets[row : row + 1]) for row, one in each]
        return np.concatenate([np.zeros((0, sets.shape[1])), *rows])

    def credit(self, sets: LabelSets) -> Credit:
        """Return what predicting each class earns; of rows whose rates tell nothing, nothing."""
        parts = np.zeros((3, *sets.shape))
        parts[1:] = np.inf
        for row, one in self._each(len(sets)):
            with suppress(LabelError):
                parts[:, row] = np.stack(one.credit(sets[row : row + 1]))[:, 0]
        return Credit(*parts)


#: Matrices that have a name: how likely each third of the wrong classes is ruled out, a random
#: third for each true class (Lin and Lin 2023; Gao and Zhang 2021).
BIASES = {"weak": (0.45, 0.30, 0.25), "strong": (0.75, 0.24, 0.01)}


def biased_matrix(name: str, k: int) -> Array:
    """Return the matrix Q of that name, ``[k, k]``: ``"weak"`` or ``"strong"``, always the same.

    >>> np.unique(biased_matrix("strong", 10).round(4)).tolist()
    [0.0, 0.0033, 0.08, 0.25]
    """
    shares, random = find_name("bias", name, BIASES, "biases"), np.random.default_rng([k, 0])
    found = np.zeros((k, k))
    for y in range(k):
        wrong = random.permutation(np.delete(np.arange(k), y))
        for third, share in zip(np.array_split(wrong, len(shares)), shares, strict=True):
            found[y, third] = share / max(len(third), 1)
    return np.asarray(found / found.sum(1, keepdims=True))


def named_origin(text: str, classes: Classes) -> Uniform | Transition:
    """Return the origin that a text names: a size law, with a bias before it or mistakes after it.

    >>> named_origin("released", 10).error, named_origin("released~0.2", 10).error
    (0.0, 0.2)
    >>> named_origin("strong:fixed:1", 10).law
    'fixed:1'
    """
    k = len(class_names(classes))
    bias, colon, law = text.partition(":")
    if bias in BIASES and not colon:
        raise LabelError(f"{brief(text)} names no law", f"write {text}:released or {text}:fixed:1")
    bias, law = (bias, law) if bias in BIASES else ("", text)
    law, mistakes, share = law.partition("~")
    size_law(law, k)  # raises for one that is not known
    if not mistakes:
        return Transition(biased_matrix(bias, k), law) if bias else Uniform(law)
    try:
        error = float(share)
    except ValueError:
        error = -1.0
    if bias or not 0 <= error < 1:
        say = "write a law, as in released~0.2: of a fifth of the rows the true class is in the set"
        raise LabelError(f"{brief(text)} does not say how sets come about", say)
    return Uniform(law, error)


_SCALINGS = 50  # fewer than large sets take: their matrix stays less extreme, and served better


def _expected(q: Array, sized: Array) -> Array:
    """Return how often each class is ruled out, ``[k, k]``, in so many sets of each size.

    `sized` is ``[k, k + 1]``, for each true class by size. One walk over the classes sums up sets,
    and one back tells what each class has of it.
    """
    k, before = len(q), [np.eye(1, len(q) + 1).repeat(len(q), 0)]
    for j in range(k):
        more = before[-1].copy()
        more[:, 1:] += q[:, j, None] * k * before[-1][:, :-1]
        before.append(more)
    last, found = before[-1], np.zeros((k, k))
    share = np.divide(sized, last, out=np.zeros_like(last), where=last > 0)
    for j in range(k - 1, -1, -1):
        w = q[:, j] * k
        found[:, j] = w * (share[:, 1:] * before[j][:, :-1]).sum(1)
        share[:, :-1] += w[:, None] * share[:, 1:]
    return found


def _sums_by_size(q: Array) -> Array:
    """Return by size, ``[k, k + 1]``, sums over sets of the products of their chances times k."""
    k, some = len(q), np.eye(1, len(q) + 1).repeat(len(q), 0)
    for j in range(k):
        some[:, 1:] += q[:, j, None] * k * some[:, :-1]
    return np.asarray(some)


def _sums_over_sets(q: Array, u: Array, s: int) -> tuple[Array, Array, Array]:
    r"""Return the sums over all sets of s classes of :func:`_sums_by_size`, ``[k, 1]``.

    The second and third, ``[k, c]``, have each set's :math:`\sum_{j \in \bar Y} u_{jc}` and its
    square as another factor; u is ``[k, c]``. Classes in a set are counted, or those outside, so
    that few are.
    """
    k, few = len(q), min(s, len(q) - s)
    some, first, second = (np.zeros((few + 1, k, c)) for c in (1, u.shape[1], u.shape[1]))
    some[0] = 1
    for j in range(k):
        w, add = q[:, j, None] * k, u[j]
        parts = some, first, second
        inside = w * some, w * (first + add * some), w * (second + add * (2 * first + add * some))
        stays, counted = (parts, inside) if few == s else (inside, parts)
        for part, more in zip(stays, counted, strict=True):
            part[1:] += more[:-1]
        some, first, second = stays
    return some[few], first[few], second[few]


def _smooth(chance: Array, sets: LabelSets) -> Array:
    """Return how often classes were ruled out by true class, ``[k, k]``, which has `chance`.

    Two rows of the mean of all classes come on top, apart for mistakes and for the rest.
    """
    out, total = chance.T @ sets.excluded.astype(float), chance.sum(0)
    own = np.eye(len(total), dtype=bool)
    mistakes, rest = (out[part].sum() + 1 for part in (own, ~own))
    mean = np.where(own, mistakes, rest / (len(total) - 1)) / (total.sum() + 2)
    return np.asarray((out + 2 * mean) / (total[:, None] + 2))


Kind = TypeVar("Kind", Uniform, Transition, Flips)


def learn_origin(
    kind: type[Kind], sets: LabelSets, known: Any = None, *, items: Any = None
) -> Kind:
    """Learn how sets came about, from what is known of the rows or from several answers about each.

    Parameters
    ----------
    kind
        `Transition` (a matrix Q), `Flips`, or `Uniform`, of which the error rate of each class is
        learnt.
    sets
        What was ruled out. Rows that rule out nothing do not count.
    known
        ``[n]``: the position of each row's class, or -1; or ``[n, k]``: how likely each class is
        before the set is heard, as a model says that did not see the row. By EM what is likely
        after it and the rates are then brought to agree. None: all classes are alike.
    items
        ``[m]``: about which row each of m sets is, where rows were asked about several times. EM
        then also learns from how the answers about a row agree, and needs nothing else: it begins
        with the classes that were ruled out least often (Dawid and Skene 1979, with sets). It takes
        ten steps: a row that is hard is hard for all who answer, of which more make too much.

    Examples
    --------
    >>> sets = Transition([[0, 0.8, 0.2], [0.5, 0, 0.5], [0.1, 0.9, 0]]).draw([0, 1, 2] * 500, 3)
    >>> learn_origin(Transition, sets, [0, 1, 2] * 500).rates.round(1).tolist()
    [[0.0, 0.8, 0.2], [0.5, 0.0, 0.5], [0.1, 0.9, 0.0]]
    """
    (m, k), alone = sets.shape, items is None
    if known is None and alone:
        raise LabelError("nothing is known of the rows", "give known, or items asked about twice")
    places = np.arange(m) if items is None else _places(items, m)
    n = int(places.max(initial=-1)) + 1
    told = np.ones((n, k)) if known is None else _told(known, n, k)
    if not alone:
        told = np.where(told.any(1, keepdims=True), told, 1.0)  # of these the answers tell
    says = sets.sizes[:, None] > 0
    sure = bool(np.isin(told, (0, 1)).all() and (told.sum(1) <= 1).all())
    chance, found = told, None
    if not sure and not alone:
        votes = _per_row(sets.excluded.astype(float), places, n)
        chance = told * (votes == votes.min(1, keepdims=True))
        chance = np.where(chance.any(1, keepdims=True), chance, told)
        chance = chance / np.maximum(chance.sum(1, keepdims=True), 1e-300)
    for _ in range(1 if sure else 100 if alone else _TOGETHER):
        heard, last = np.where(says, chance[places], 0.0), chance
        found = kind.learnt(heard, sets, found if alone else None)
        if not sure:
            after = _per_row(np.maximum(found.log_likelihood(sets), -_FAR), places, n)
            chance = told * np.exp(after - after.max(1, keepdims=True))
            chance /= np.maximum(chance.sum(1, keepdims=True), 1e-300)
        if np.abs(chance - last).max(initial=0) < 1e-4:
            break
    assert found is not None
    return found


_TOGETHER = 10  # steps of EM, where rows have several answers (benchmarks/human_sets.py)


def _told(known: Any, n: int, k: int) -> Array:
    """Return what is known of rows as ``[n, k]``, zero where that is nothing."""
    told = to_array(known, "known")
    if told.shape == (n,) and n and np.isin(told, np.arange(-1, k)).all():
        told = np.eye(k + 1)[told.astype(int)][:, :k]
    numbers = told.shape == (n, k) and told.dtype.kind in "biuf"
    if not numbers or not ((told >= 0) & (told < np.inf)).all():
        raise LabelError(f"known is {brief(known)}", f"give {n} positions, or {n} rows of {k}")
    return np.asarray(told, float)


def _per_row(values: Array, places: NDArray[np.intp], n: int) -> Array:
    """Add up what is about the same row, ``[n, k]``."""
    return np.stack([np.bincount(places, column, n) for column in values.T], 1)


class Interval(NamedTuple):
    """An estimate, and the interval that holds the truth in 95 of 100 cases."""

    estimate: float
    low: float
    high: float

    @property
    def proper(self) -> Interval:
        """The same with the estimate, which by chance may be no share at all, inside."""
        return self._replace(estimate=float(np.clip(self.estimate, self.low, self.high)))


_FAR_OFF = 1.959963984540054**2  # of the normal distribution: 95 % lie within 1.96 errors


def judge(
    credit: Credit,
    times: Any = None,
    groups: Any = None,
    spread: float = 0.0,
    most: float = _FAR_OFF,
) -> Interval:
    r"""Estimate the accuracy from what predictions earned, with Wilson's interval made general.

    With weights :math:`\omega` the estimate is :math:`m = \sum \omega v / \sum \omega`. If the
    accuracy is t, its variance is :math:`\sum \omega^2 (t v_1 + (1-t) v_0 + t(1-t)) / (\sum
    \omega)^2`, with the variances of right and wrong predictions. All t whose distance from m is
    at most 1.96 such standard errors make the interval: the roots of a quadratic equation. It is
    as wide as it must be where nothing was wrong, too. The weights are :attr:`Credit.row_weight`.

    `times`, ``[n]``, is how often each row occurs. Where rows come in `groups` (numbers, ``[n]``),
    the variance is multiplied by how much more sums over groups vary than rows alone would.
    `spread` is a standard error that comes on top; `most` is how many errors, squared, an
    accuracy may be off.
    """
    value, right, wrong = credit
    if not len(value):
        return Interval(np.nan, 0.0, 1.0)
    weight = credit.row_weight
    if not weight.any():
        raise LabelError(
            "the sets are wrong so often that they say nothing", "ask better questions"
        )
    says = weight > 0
    value, right, wrong, weight = value[says], right[says], wrong[says], weight[says]
    times = np.ones(len(value)) if times is None else np.asarray(times, float)[says]
    weight = weight / (times @ weight)
    m, square = float((times * weight) @ value), times * weight**2
    if groups is not None:
        square = square * _design_effect(weight * (value - m), weight, np.asarray(groups)[says])
    level = square @ wrong + spread**2
    return _score(m, level, square @ (right - wrong + 1), square.sum(), most)


def _score(m: float, level: float, slope: float, bend: float, most: float = _FAR_OFF) -> Interval:
    """Return all t with (m - t)² at most `most` (level + slope t - bend t²), inside 0 and 1."""
    a, b, c = 1 + most * bend, 2 * m + most * slope, m**2 - most * level
    root = np.sqrt(max(b**2 - 4 * a * c, 0.0))
    ends = (round((b + sign * root) / (2 * a), 12) for sign in (-1, 1))  # m = 1 is inside
    return Interval(m, *(float(np.clip(end, 0, 1)) for end in ends))


def _design_effect(off: Array, weight: Array, groups: NDArray[np.intp]) -> float:
    """Return how much more the sums of groups vary than rows would, from 1 to as much as they can.

    Few groups tell little of that: Student's t takes the place of the normal distribution. One
    group, or none that is off, tells nothing: as much as they can.
    """
    from scipy.special import stdtrit  # late: only groups need SciPy

    most, found = (
        float(np.square(np.bincount(groups, part)).sum() / max(np.square(part).sum(), 1e-300))
        for part in (weight, off)
    )
    many = len(np.unique(groups[weight > 0]))
    if many < 2 or np.abs(off).max() <= 1e-12:
        return max(most, 1.0)
    few = many / (many - 1) * float(stdtrit(many - 1, 0.975)) ** 2 / _FAR_OFF
    return float(np.clip(few * found, 1.0, max(most, 1.0)))


def wilson(hits: float, n: float) -> Interval:
    """Return a share with Wilson's interval."""
    return _score(hits / n, 0, 1 / n, 1 / n)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all that was said about each row makes of every class, where some of it may be wrong.

    :func:`evidence` makes it; the classifier takes it in the place of label sets.
    """

    sets: LabelSets  #: the classes that were ruled out least often stay possible
    #: ``[n, k]``: the logarithm of how likely all that was said is, for every class; at most 0
    likelihood: Array
    #: makes what predicting each class earns by what was said; a matrix takes long for it
    earns: Callable[[], Credit]
    #: of so many questions with a known answer (second) so many were answered wrongly (first), or
    #: what tells as much; None where the error rates were given
    gold: tuple[int, int] | None = None
    #: the same as it would be at another error rate
    at_error: Callable[[float], Evidence] | None = None
    level: Array | float = 0.0  #: ``[n]``: what was taken off the logarithms to make them at most 0
    errors: Array | None = None  #: ``[people]``: how often each is wrong, where that was learnt
    #: ``[n]``: the position of each row's class where it is known, else -1; None: nobody told
    truth: NDArray[np.intp] | None = None
    corrected: bool = False  #: whether true labels, of these rows and others, correct what sets say

    def __len__(self) -> int:
        return len(self.sets)

    def __getitem__(self, rows: NDArray[np.intp]) -> Evidence:
        made = self.at_error
        return replace(
            self,
            sets=self.sets[rows],
            likelihood=self.likelihood[rows],
            earns=lambda: Credit(*(part[rows] for part in self.unaided)),
            at_error=None if made is None else lambda error: made(error)[rows],
            level=np.broadcast_to(self.level, len(self))[rows],
            truth=None if self.truth is None else self.truth[rows],
        )

    @cached_property
    def unaided(self) -> Credit:
        """What predicting each class earns, before true labels correct it."""
        return self.earns()

    @cached_property
    def credit(self) -> Credit:
        """What predicting each class earns, corrected by the labels of these rows alone."""
        if self.truth is None or not self.corrected:
            return self.unaided
        return _correct(self.unaided, self.truth)

    def cases(self) -> Iterator[tuple[float, Array]]:
        """Yield the likelihood at each error rate that may be true, after its log plausibility.

        Rates were equally likely before the gold questions; without any, the rate is as given.
        """
        made, (wrong, asked) = self.at_error, self.gold or (0, 0)
        if made is None or not asked:
            yield 0.0, self.likelihood
            return
        for rate, width in zip(_RATES, np.gradient(_RATES), strict=True):
            found = made(rate)
            told = wrong * np.log(rate) + (asked - wrong) * np.log1p(-rate) + np.log(width)
            yield float(told), found.likelihood + np.reshape(found.level, (-1, 1))

    @cached_property
    def costs(self) -> Array:
        """``[n, k]``: how much less likely each class is than the likeliest."""
        costs = np.minimum(-self.likelihood, _FAR)
        return np.where(costs > 1e-9, costs, 0.0)  # less is rounding

    def at_rates(self) -> Iterator[tuple[float, Evidence]]:
        """Yield itself; then, where gold questions measured the error rate, as at all it may be.

        Before each is how many standard errors, squared, it is off: from 0 to 1.96².
        """
        yield 0.0, self
        if self.gold is not None and self.at_error is not None:
            wrong, asked = self.gold
            _, low, high = wilson(wrong, asked)
            for rate in np.linspace(max(low, 1e-6), min(high, 1 - 1e-6), _STEPS):
                off = (wrong - asked * rate) ** 2 / (asked * rate * (1 - rate))
                yield min(float(off), _FAR_OFF), self.at_error(float(rate))

    def judge(
        self,
        predicted: NDArray[np.intp],
        shift: float = 0.0,
        groups: Any = None,
        spread: float = 0.0,
    ) -> Interval | None:
        """Estimate the accuracy of predictions (positions among the classes) with an interval.

        `shift` is added to the estimate first; `spread` is a standard error that comes on top. An
        error rate that gold questions measured may be another: the interval holds every accuracy
        that is within 1.96 standard errors at some rate, squares of the distances of the accuracy
        and of the rate added up (a profile over the rate). True labels, if there are enough,
        correct what sets say, however these came about: see :func:`judge_with_labels`. None where
        a rate that cannot be excluded would leave nothing to be learnt from the sets, and where no
        accuracy from 0 to 1 is near enough: the rates are not those of these sets.
        """
        if self.truth is not None and self.corrected:
            if not (self.truth >= 0).any():
                return None
            value, right, _ = self.unaided.of(predicted)
            hits = np.where(self.truth < 0, np.nan, predicted == self.truth)
            said = np.where(np.isfinite(right), value, np.nan)
            return judge_with_labels(said, hits, shift, spread, groups)
        found = []
        for off, one in self.at_rates():
            earned = one.credit.of(predicted)
            earned = earned._replace(value=earned.value + shift)
            try:
                found.append(judge(earned, None, groups, spread, _FAR_OFF - off))
            except LabelError:
                return None
        _, low, high = zip(*found, strict=True)
        fits = min(low) < 1 and max(high) > 0
        return Interval(found[0].estimate, min(low), max(high)) if fits else None


def says(known: LabelSets | Evidence) -> NDArray[np.bool_]:
    """Tell of each row whether anything is known about it, ``[n]``."""
    found = known.sizes if isinstance(known, LabelSets) else np.ptp(known.costs, axis=1)
    return np.asarray(found > 0)


def may_err(said: Evidence | None) -> bool:
    """Tell whether some of what was said may be wrong: a class is unlikely, yet not impossible.

    Or no class is less likely than another, whatever was ruled out: all answers are guesses.
    """
    if said is None:
        return False
    possible = np.isfinite(said.likelihood)
    return bool((possible & (said.costs > 0)).any() or (possible.all() and said.sets.sizes.any()))


_STEPS = 15  # from the lowest to the highest rate that gold questions allow
_RATES = np.array([0.002, 0.01, 0.02, 0.035, 0.05, 0.07, 0.1, 0.13, 0.17, 0.22, 0.28, 0.35])
_FAR = 1e4  # a class that is this much less likely is impossible


def evidence(
    sets: LabelSets,
    error: Any = 0.0,
    *,
    items: Any = None,
    people: Any = None,
    truth: Any = None,
    origin: Origin | None = None,
) -> Evidence:
    r"""Say what sets make of every class, if some of them are wrong.

    Parameters
    ----------
    sets
        What was ruled out: a set for each row, or one for each answer where `items` are given.
    error
        How often a set holds the true class by mistake: a rate, one for each set, or ``[1, k]``,
        one for each true class; or a pair of whole numbers, how many of how many questions with a
        known answer were answered wrongly.
    items
        ``[m]``: about which row each set is, rows being counted from 0. Answers about a row are
        taken as independent, given its class.
    people
        ``[m]``: who gave each answer, counted from 0. How often each person is wrong is then learnt
        from what others say of the same items, if they say enough
        (:func:`~ruleout.labels.dawid_skene.learn_errors`); an `error` above 0 is the mean of all.
    truth
        ``[n]``: the position of each row's class where it is known, else -1. Such rows teach their
        class, and where they are a random part of all, thirty or more, they correct what the sets
        of all rows say: it then does not matter how sets came about.
    origin
        How sets came about where that is known, or learnt (:func:`learn_origin`): a matrix, say.
        It has its own error rates, so neither `error` nor `people` is given then.

    Examples
    --------
    >>> sets = LabelSets([[1, 1, 0], [0, 1, 1]], 3)
    >>> evidence(sets, error=0.1, items=[0, 0]).likelihood.round(2)
    array([[ 0.  , -2.89,  0.  ]])
    """
    if origin is not None and (people is not None or np.any(error)):
        raise LabelError("an origin has its own error rates", "leave error and people out")
    if origin is not None and not hasattr(origin, "log_likelihood"):
        say = "wrap a matrix in ruleout.labels.Transition(...)"
        raise LabelError(f"the origin is {type(origin).__name__}", say)
    if people is not None and items is None:
        raise LabelError("people without items", "say which row each of their answers is about")
    gold = None
    if isinstance(error, tuple):
        gold = _gold(error)
        error = gold[0] / gold[1]
    known = np.asarray(error, float)
    sure = (gold[0] + 1) / (gold[1] + 2) if gold else known  # no answer is beyond doubt
    places, joined = None if items is None else _places(items, len(sets)), sets
    learnt = None
    if people is not None and places is not None:
        who = _places(people, len(sets), "people")
        learnt = learn_errors(sets, places, who)
    if learnt is not None:
        own = learnt.own[who]
        gold = gold if known.any() else learnt.counts
        sure = known = np.minimum(own * (known / own.mean()), 0.99) if known.any() else own

    def at_error(rate: float) -> Evidence:
        mean = float(known.mean())
        own = known * (rate / mean) if known.ndim and mean > 0 else rate
        return evidence(sets, np.minimum(own, 0.99), items=places)

    likelihood = (origin or Uniform(error=sure)).log_likelihood(sets)
    if isinstance(origin, _Matrix):
        origin.must_tell(sets)
    earns = partial((origin or Uniform(error=known)).credit, sets)
    if places is not None:
        n = int(places.max(initial=-1)) + 1
        joined, likelihood = join_answers(sets, likelihood, places, n)
        earns = partial(join_credit, earns, places, n)
    level = likelihood.max(1)
    if np.isneginf(level).any():
        row = int(np.argmax(np.isneginf(level)))
        raise LabelError("the origin cannot make this set", "give every set a chance", row=row)
    told = earns, gold, None if origin else at_error, level, learnt and learnt.own
    found = Evidence(joined, likelihood - level[:, None], *told)
    return found if truth is None else _with_truth(found, truth)


LABELS = 30  # fewer true labels teach, but correct nothing


class RandomPart(NamedTuple):
    """Whether rows of known class are a random part of all: what speaks most against it."""

    p: float
    #: of those that occur among them the others rule out all, or one class is ruled out elsewhere
    classes: NDArray[np.intp]
    others: float  #: in what share of the other rows
    known: float  #: and of those of known class


def random_part(sets: LabelSets, truth: NDArray[np.intp]) -> RandomPart | None:
    """Test whether rows of known class are a random part; None where nothing can be compared.

    However sets came about, the count of a class among m of n rows with a set is then
    hypergeometric. And rows that rule out every class which occurs among those of known class are
    of another one, which a random part hardly lacks where they are many.
    """
    from scipy.stats import hypergeom  # late: only the test needs SciPy

    says, known = sets.sizes > 0, truth >= 0
    if not known.any() or not (says & ~known).any():
        return None
    out, own = sets.excluded, np.unique(truth[known])
    asked, others = out[known & says], out[~known & says]
    least = wilson(lack := int(others[:, own].all(1).sum()), len(others)).low
    found = [RandomPart((1 - least) ** int(known.sum()), own, lack / len(others), 0.0)]
    if len(asked):
        (m, k), few, every = asked.shape, asked.sum(0), out[says].sum(0)
        told = len(asked) + len(others), every, m
        tails = hypergeom.cdf(few, *told), hypergeom.sf(few - 1, *told)
        p = 2 * k * np.minimum(*tails)
        most = int(p.argmin())
        share = float(others[:, most].mean())
        found.append(RandomPart(p[most], np.array([most]), share, few[most] / m))
    worst = min(found, key=itemgetter(0))
    return worst._replace(p=min(1.0, float(worst.p) * len(found)))


_RANDOM = 1e-3  # p-values below this say that they are not


def _with_truth(found: Evidence, truth: Any, corrects: bool | None = None) -> Evidence:
    """Let true labels of some rows teach, and correct the credit of all, if they may be random.

    `corrects` says whether they may, where that has been tested.
    """
    (n, k), places = found.sets.shape, to_array(truth, "truth")
    whole = places.shape == (n,) and places.dtype.kind in "iu"
    if not whole or (n and not -1 <= places.min() <= places.max() < k):
        raise LabelError(f"truth is {brief(truth)}", f"give {n} positions of classes, or -1")
    rows, made = np.flatnonzero(places >= 0), found.at_error
    if corrects is None:
        part = random_part(found.sets, places) if len(rows) >= LABELS else None
        corrects = len(rows) >= LABELS and (part is None or part.p >= _RANDOM)
    out, likelihood = found.sets.excluded, found.likelihood.copy()
    hit = np.eye(k)[places[rows]]
    out[rows], likelihood[rows] = hit == 0, np.where(hit > 0, 0, -np.inf)
    return replace(
        found,
        sets=LabelSets(out, found.sets.classes, unlabelled=True),
        likelihood=likelihood,
        truth=np.asarray(places, np.intp),
        corrected=corrects,
        at_error=None if made is None else lambda rate: _with_truth(made(rate), places, corrects),
    )


def _correct(plain: Credit, truth: NDArray[np.intp]) -> Credit:
    r"""Correct the credit of n rows by m of them whose class is known, L.

    With :math:`s = \lambda v` it becomes :math:`s + 1_L \frac nm (h - s)`, whose mean over all rows
    is :math:`\bar h_L + \bar s - \bar s_L`, as in :func:`judge_with_labels`. Where one of L has no
    set there is nothing to compare: then L earn what is known, and others what their sets say.
    """
    (n, k), rows = plain.value.shape, np.flatnonzero(truth >= 0)
    hit = np.eye(k)[truth[rows]]
    if not len(rows) or np.isinf(plain.right[rows]).any():
        value, right, wrong = (np.array(part) for part in plain)
        value[rows], right[rows], wrong[rows] = hit, 0, 0
        return Credit(value, right, wrong)
    value = 0.25 * plain.weight * plain.value
    value[rows] += n / len(rows) * (hit - value[rows])
    return Credit(value, np.zeros((n, k)), np.zeros((n, k)))


def _gold(pair: tuple[Any, ...]) -> tuple[int, int]:
    whole = len(pair) == 2 and all(isinstance(one, (int, np.integer)) for one in pair)
    if not whole or not 0 <= pair[0] <= pair[1] or pair[1] < 1:
        raise LabelError(f"the error rate is {brief(pair)}", "give (wrong, asked), as in (2, 30)")
    if pair[0] == pair[1]:
        say = "see whether the answers that are known are right"
        raise LabelError(f"all {pair[1]} questions were answered wrongly", say)
    return int(pair[0]), int(pair[1])


def _places(items: Any, m: int, what: str = "items") -> NDArray[np.intp]:
    found = to_array(items, what)
    if found.shape != (m,) or found.dtype.kind not in "iu" or (m and found.min() < 0):
        of = "" if what == "people" else " of rows"
        problem = f"{what} are {brief(items)}"
        raise LabelError(problem, f"give {m} numbers{of}, counted from 0")
    return np.asarray(found, np.intp)


def join_answers(
    sets: LabelSets, likelihood: Array, items: NDArray[np.intp], n: int
) -> tuple[LabelSets, Array]:
    """Join what several sets say about each of n rows: independent, given its class."""
    votes, joined = (_per_row(np.asarray(v, float), items, n) for v in (sets.excluded, likelihood))
    joined[np.isneginf(joined).all(1)] = 0  # though none is wrong, they contradict each other
    out = votes > votes.min(1, keepdims=True)
    return LabelSets(out, sets.classes, unlabelled=True), joined


def join_credit(earns: Callable[[], Credit], items: NDArray[np.intp], n: int) -> Credit:
    """Join the credit of several sets about each of n rows, each by its weight."""
    credit = earns()
    weight = np.broadcast_to(credit.weight, credit.value.shape)
    spread = (weight**2 * np.where(weight > 0, part, 0) for part in credit[1:])
    parts = (weight, weight * credit.value, *spread)
    total, value, right, wrong = (_per_row(part, items, n) for part in parts)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = value / total, right / total**2, wrong / total**2
    whole = (np.where(total == 0, e, v) for v, e in zip(found, (0, np.inf, np.inf), strict=True))
    return Credit(*whole)


def judge_with_labels(
    value: Array, hits: Array, shift: float = 0.0, spread: float = 0.0, groups: Any = None
) -> Interval:
    r"""Estimate the accuracy from some true labels, and from what predictions earned everywhere.

    `value` is the credit of each row, NaN where nothing was said; `hits` is 1 where a prediction is
    right, 0 where it is wrong, NaN where that is not known. Rows with a label must be drawn at
    random; how sets came about then does not matter, since labels correct them (prediction-powered
    inference, Angelopoulos et al. 2023, with their tuned weight :math:`\lambda`):

    .. math:: \bar h_L + \lambda (\bar v - \bar v_L),

    L being the rows with a label. Where sets tell much, the interval is narrower than that of the
    labels alone (a tenth to a seventh in simulations); where they tell nothing, :math:`\lambda` is
    near 0. It is 0, too, with fewer than ten right or ten wrong predictions, which say too little.
    The interval is of Wilson's kind; `shift` is added to the estimate before, and the standard
    error `spread` comes on top. `groups` are as in :func:`judge`.
    """
    known, said = ~np.isnan(hits), ~np.isnan(value)
    h, both, rest = hits[known], known & said, said & ~known
    m, n = len(h), int(rest.sum())
    if not m:
        raise LabelError("no row has a true label", "give some")
    level, times, off = 0.0, 1.0, np.zeros(len(hits))  # off: what each row adds to the error
    off[known] = (h - h.mean()) / m
    if both.sum() == m and n > 1 and min(h.sum(), m - h.sum()) >= 10:
        here, there = value[both], value[rest]
        own, cov = here.var(ddof=1), float(np.cov(h, here)[0, 1])
        weight = float(np.clip(cov / max((1 + m / n) * own, 1e-300), 0, 1))
        shift += weight * float(there.mean() - here.mean())
        level = (weight**2 * own - 2 * weight * cov) / m + weight**2 * there.var(ddof=1) / n
        off[known] -= weight * (here - here.mean()) / m
        off[rest] = weight * (there - there.mean()) / n
    if groups is not None:
        times = _design_effect(off, known / m, np.asarray(groups))
    bend = times / m
    return _score(float(h.mean() + shift), times * level + spread**2, bend, bend).proper
