"""Paired comparisons: t-tests over trials and rows, Holm's correction, and marks."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import stdtr

from ruleout.labels.errors import InputError

#: ``"•"``: ours is significantly better; ``"○"``: significantly worse; else empty.
Mark: TypeAlias = Literal["", "•", "○"]

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
        raise InputError(
            f"the scores to compare have shapes {a.shape} and {b.shape}", "give pairs of numbers"
        )
    if len(a) < 2 or not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.nan
    mean, error = mean_and_error(a - b)
    noise = _ROUNDING * max(np.abs(a).max(), np.abs(b).max())
    if error <= noise:
        return 1.0 if abs(mean) <= noise else 0.0
    return float(2 * stdtr(len(a) - 1, -abs(mean / error)))


def crossed_t_test(ours: ArrayLike, theirs: ArrayLike) -> float:
    r"""Return the two-sided p-value of a t-test in which trials and rows both are a sample.

    Of differences :math:`d_{ti}` in T trials on the same m rows, let :math:`M_T, M_R, M_E` be the
    mean squares of trials, rows and what is left. Then :math:`V / Tm` with
    :math:`V = M_T + \max(M_R - M_E, 0)` is the variance of the mean, known with
    :math:`(T-1) (V / M_T)^2` degrees of freedom: the test of studies where several readers judge
    the same cases (Hillis, 2007). Where rows do not differ it is the paired t-test over trials.
    In V, :math:`M_T` counts as at least :math:`M_E / 4`: trials may be equal by chance.

    Scores are ``[T, m]`` each. A row that is NaN anywhere is left out. For fewer than three trials
    the p-value is NaN: two say too little about chance.

    >>> ours, theirs = [[1, 1, 0], [1, 1, 1], [1, 1, 1]], [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    >>> round(crossed_t_test(ours, theirs), 4)
    0.0414
    """
    d = np.subtract(ours, theirs, dtype=float)
    d = d[:, np.isfinite(d).all(0)]
    count, m = d.shape
    if count < 3 or m < 2:
        return np.nan
    mean, trials, rows = d.mean(), d.mean(1, keepdims=True), d.mean(0)
    of_rows = count * np.square(rows - mean).sum() / (m - 1)
    left = np.square(d - trials - rows + mean).sum() / ((count - 1) * (m - 1))
    of_trials = m * np.square(trials - mean).sum() / (count - 1)
    variance = max(of_trials, left / 4) + max(of_rows - left, 0)
    noise = _ROUNDING * np.abs(d).max()
    if variance <= d.size * noise**2:
        return 1.0 if abs(mean) <= noise else 0.0
    freedom = (count - 1) * (variance / max(of_trials, 1e-6 * variance)) ** 2
    return float(2 * stdtr(freedom, -abs(mean) / np.sqrt(variance / d.size)))


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
) -> list[Significance]:
    """Test ours, ``[n]`` or ``[T, m]``, against each of the others; None is not tested."""
    test = paired_t_test if np.ndim(ours) == 1 else crossed_t_test
    raw = [np.nan if one is None else test(ours, one) for one in others]
    sign = 1 if higher_is_better else -1
    found = []
    for one, p, fair in zip(others, raw, holm(raw).tolist(), strict=True):
        ahead = 0.0 if one is None else sign * float(np.nanmean(np.subtract(ours, one)))
        found.append(Significance(p, fair, mark(ahead, 0, p, level), mark(ahead, 0, fair, level)))
    return found
