"""Paired comparisons: Student's t-test, Holm's correction, and the marks of the paper's tables."""

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
    """Test ours against each of the others, in pairs; None among them is not tested."""
    raw = [np.nan if one is None else paired_t_test(ours, one) for one in others]
    sign = 1 if higher_is_better else -1
    found = []
    for one, p, fair in zip(others, raw, holm(raw).tolist(), strict=True):
        ahead = 0.0 if one is None else sign * float(np.mean(np.subtract(ours, one)))
        found.append(Significance(p, fair, mark(ahead, 0, p, level), mark(ahead, 0, fair, level)))
    return found
