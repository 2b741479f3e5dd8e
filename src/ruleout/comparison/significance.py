"""Paired comparisons: t-tests over trials and rows, Holm's correction, and marks."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from ruleout.labels.errors import InputError
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
        ahead = 0.0 if one is None else sign * float(np.nanmean(np.subtract(ours, one)))
        found.append(Significance(p, fair, mark(ahead, 0, p, level), mark(ahead, 0, fair, level)))
    return found
