"""Paired comparisons: t-tests over trials and rows, Holm's correction, marks, average ranks."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from ruleout.labels.errors import InputError, counted
from ruleout.report.parts import Mark

_ROUNDING = 8 * np.finfo(np.float64).eps


def mean_and_error(values: ArrayLike) -> tuple[float, float]:
    """Return the mean of independent values and its standard error, NaN for fewer than two."""
    found = np.asarray(values, float)
    mean = float(found.mean()) if len(found) else np.nan
    if len(found) < 2:
        return mean, np.nan
    return mean, float(found.std(ddof=1) / np.sqrt(len(found)))


def paired_t_test(ours: ArrayLike, theirs: ArrayLike) -> float:
    r"""Return the two-sided p-value of Student's paired t-test.

    With differences :math:`d_i`, :math:`t = \bar d \sqrt n / s_d` has n-1 degrees of freedom when
    the two do not differ.

    Scores are ``[n]`` each, of the same trials or the same rows. The p-value is NaN for fewer than
    two pairs, or where a value is not finite. Pairs that all differ by the same amount leave
    nothing to chance: 1 if that is zero (up to rounding), else 0.

    >>> round(paired_t_test([0.91, 0.93, 0.92], [0.88, 0.91, 0.90]), 4)
    0.0198
    >>> paired_t_test([0.5, 0.5], [0.5, 0.5])
    1.0
    """
    a, b = np.asarray(ours, float), np.asarray(theirs, float)
    if a.shape != b.shape or a.ndim != 1:
        problem = f"the scores to compare have shapes {a.shape} and {b.shape}"
        raise InputError(problem, "give pairs of numbers")
    if len(a) < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.nan
    mean, error = mean_and_error(a - b)
    noise = _ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    if error <= noise:
        return 1.0 if abs(mean) <= noise else 0.0
    return float(2 * stdtr(len(a) - 1, -abs(mean / error)))


def crossed_t_test(ours: ArrayLike, theirs: ArrayLike, *, shared: bool = True) -> float:
    r"""Return the two-sided p-value of a t-test in which trials and rows both are a sample.

    Some trials hardly differ, others, that chose differently, do: a plain t-test over trials then
    marks too little. Rows tell which do. With the sum :math:`S_t` and the sum of squares
    :math:`Q_t` of the differences in trial t, :math:`S_t / \sqrt{Q_t}` would have the variance 1 if
    rows were all that is left to chance. It has :math:`\phi`, estimated over the trials that differ
    (as many, less one, are the degrees of freedom) and at least 1/4, since trials may be equal by
    chance. So :math:`\sum S_t / n_t` has the variance :math:`V = \phi \sum Q_t / n_t^2`.

    Where trials are judged on `shared` rows, these add :math:`T / m \max(M_R - M_E, 0)`, with the
    mean squares of rows and of what is left, and multiply the degrees of freedom by the square of
    the growth, as in studies where several readers judge the same cases (Hillis, 2007).

    Scores are ``[T, m]`` each. A shared row that is NaN anywhere is left out. For fewer than three
    trials the p-value is NaN: two say too little about chance.

    >>> ours, theirs = [[1, 1, 1], [1, 1, 0], [1, 1, 1]], [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    >>> round(crossed_t_test(ours, theirs, shared=False), 4)
    0.0392
    """
    d = np.subtract(ours, theirs, dtype=float)
    d = d[:, np.isfinite(d).all(0)] if shared else d
    n, total, squares = np.isfinite(d).sum(1), np.nansum(d, 1), np.nansum(d * d, 1)
    count, m = d.shape
    if (n > shared).sum() < 3:
        return np.nan
    apart = squares > 0
    if apart.sum() < 2:
        return 1.0
    n, total, squares = n[apart], total[apart], squares[apart]
    spread = max((total / np.sqrt(squares)).var(ddof=1), 0.25)
    own = variance = spread * (squares / n**2).sum()
    if shared:
        rows = d.mean(0) - d.mean()
        left = np.square(d - d.mean(1, keepdims=True) - rows).sum() / ((count - 1) * (m - 1))
        variance += count / m * max(count * np.square(rows).sum() / (m - 1) - left, 0)
    freedom = (len(n) - 1) * (variance / own) ** 2
    return float(2 * stdtr(freedom, -abs((total / n).sum()) / np.sqrt(variance)))


def holm(p_values: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values corrected for their number, after Holm (1979).

    Of m sorted p-values the i-th (from 0) is multiplied by m - i and raised to those before it.
    Marks at 5 % then err in one table of twenty, not in one row of twenty. NaN is no test: it
    stays and does not count.

    >>> holm([0.01, 0.04, 0.03])
    array([0.03, 0.06, 0.06])
    """
    given = np.asarray(p_values, float)
    out = np.full(given.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(given[order] * factors), 1)
    return out


def mark(ours: float, theirs: float, p_value: float, level: float = 0.05) -> Mark:
    """Return the mark of a row: whether ours is significantly better, or worse, than theirs.

    Scores are the higher the better. NaN as p-value means no test, so no mark.

    >>> mark(0.93, 0.90, 0.01), mark(0.93, 0.95, 0.01), mark(0.93, 0.90, 0.3)
    ('•', '○', '')
    """
    if not p_value < level or ours == theirs:
        return ""
    return "•" if ours > theirs else "○"


class Significance(NamedTuple):
    """What a paired test says about ours against one other."""

    p_value: float  #: NaN where nothing was tested
    p_holm: float  #: the same after Holm's correction for all that were tested
    mark: Mark
    mark_holm: Mark


def significance(
    ours: ArrayLike,
    others: Sequence[ArrayLike | None],
    *,
    level: float = 0.05,
    higher_is_better: bool = True,
    test: Callable[[ArrayLike, ArrayLike], float] = paired_t_test,
) -> list[Significance]:
    """Test ours against each of the others, in pairs; None among them is not tested."""
    raw = [np.nan if one is None else test(ours, one) for one in others]
    sign = 1 if higher_is_better else -1
    found = []
    for one, p, fair in zip(others, raw, holm(raw).tolist(), strict=True):
        more = np.zeros(1) if one is None else np.subtract(ours, one)
        ahead = sign * float(np.nanmean(more)) if np.isfinite(more).any() else 0.0
        found.append(Significance(p, fair, mark(ahead, 0, p, level), mark(ahead, 0, fair, level)))
    return found


_FEWEST, _LEVEL = 5, 0.05  # blocks that say something of average ranks; of their tests


class Ranking(NamedTuple):
    """Approaches over several blocks, such as data sets: who is ahead, who cannot be told apart."""

    names: list[str]  #: the approaches, the best first
    ranks: list[float]  #: of each the average over the blocks; 1 is the best
    blocks: list[Any]  #: those in which all of them have a score
    left_out: list[str]  #: approaches without a score in some of these
    chi_square: float  #: Friedman's statistic
    f: float  #: the same as Iman and Davenport's F, with k-1 and (k-1)(n-1) degrees of freedom
    p_value: float  #: of `f`: are all approaches alike?
    p_holm: NDArray[np.float64]  #: ``[k, k]``: Wilcoxon's test of each pair, after Holm
    groups: list[tuple[int, int]]  #: first and last of neighbours of which no pair is told apart

    @property
    def enough(self) -> int:
        """From how many blocks on one of so many pairs could be told apart at all."""
        return math.floor(1 + math.log2(math.comb(len(self.names), 2) / _LEVEL)) + 1


def rank_approaches(scores: Mapping[Any, Mapping[str, float]]) -> Ranking:
    r"""Rank approaches in each block and test whether they differ (Demsar, 2006).

    Friedman's test asks whether all are alike: with average ranks :math:`R_j` of k approaches in n
    blocks, :math:`\chi^2 = \frac{12n}{k(k+1)} (\sum R_j^2 - k(k+1)^2/4)` and
    :math:`F = (n-1)\chi^2 / (n(k-1) - \chi^2)`. Pairs are told apart by Wilcoxon's signed-rank
    test with Holm's correction, as Benavoli et al. (2016) advise: Nemenyi's critical difference
    of ranks would let the other approaches decide whether two of them differ.

    `scores` holds a score (the higher the better) for each block and approach. Of what is missing,
    or not finite, the approaches with the fewest scores are left out first, so that there are five
    blocks or more, and approaches times blocks is largest.

    >>> one = {"log": 0.9, "mae": 0.8, "cce": 0.7}
    >>> found = rank_approaches({block: one for block in range(8)})
    >>> found.names, found.ranks, found.groups
    (['log', 'mae', 'cce'], [1.0, 2.0, 3.0], [])
    """
    from scipy.stats import f as f_distribution  # late: it takes a second
    from scipy.stats import rankdata

    names, blocks = _whole_table(scores)
    n, k = len(blocks), len(names)
    if k < 2 or n < _FEWEST:
        problem = f"all {k} approaches have scores in {counted(n, 'data set')}"
        raise InputError(problem, f"average ranks need {_FEWEST} data sets and two approaches")
    table = np.array([[scores[block][name] for name in names] for block in blocks])
    ranks = rankdata(-table, axis=1).mean(0)
    order = np.lexsort((names, ranks))  # of equal ranks the first by name
    chi_square = float(12 * n / (k * (k + 1)) * (np.square(ranks).sum() - k * (k + 1) ** 2 / 4))
    left = n * (k - 1) - chi_square
    f = (n - 1) * chi_square / left if left > 1e-9 else math.inf
    p_holm = _pairs(table[:, order])
    return Ranking(
        [names[place] for place in order],
        ranks[order].tolist(),
        blocks,
        sorted({name for block in scores.values() for name in block} - set(names)),
        chi_square,
        f,
        float(f_distribution.sf(f, k - 1, (k - 1) * (n - 1))),
        p_holm,
        _groups(p_holm),
    )


def _whole_table(scores: Mapping[Any, Mapping[str, float]]) -> tuple[list[str], list[Any]]:
    """Return the approaches and blocks of the largest table without gaps."""
    there = {
        block: [name for name, score in found.items() if math.isfinite(score)]
        for block, found in scores.items()
    }
    counts = Counter(name for names in there.values() for name in names)
    order = sorted(counts, key=lambda name: -counts[name])
    tables = [
        (order[:size], [block for block in there if set(order[:size]) <= set(there[block])])
        for size in range(min(2, len(order)), len(order) + 1)
    ]
    return max(tables, key=lambda one: (len(one[1]) >= _FEWEST, len(one[0]) * len(one[1])))


def _pairs(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values of all pairs of columns ``[k, k]``, corrected for their number."""
    from scipy.stats import wilcoxon

    k = table.shape[1]
    pairs = list(combinations(range(k), 2))
    gaps = [table[:, a] - table[:, b] for a, b in pairs]
    found = np.ones((k, k))
    fair = holm([float(wilcoxon(gap).pvalue) if gap.any() else 1 for gap in gaps])
    for (a, b), p in zip(pairs, fair.tolist(), strict=True):
        found[a, b] = found[b, a] = p
    return found


def _groups(p_values: NDArray[np.float64]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for first in range(len(p_values)):
        last = first
        while last + 1 < len(p_values) and (p_values[first : last + 1, last + 1] >= _LEVEL).all():
            last += 1
        if last > first and last > max([0, *(end for _, end in found)]):
            found.append((first, last))
    return found
