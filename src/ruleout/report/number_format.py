"""How numbers, shares, durations and p-values are spelt everywhere; an unknown one is a dash."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

MISSING = "–"
_HUGE = 1e100  # beyond it a value is a failure, not a number to draw


def known(value: object) -> TypeGuard[float]:
    if isinstance(value, float | np.integer | np.floating):
        return abs(float(value)) < _HUGE
    return isinstance(value, int) and abs(value) < _HUGE


def values(source: Iterable[object]) -> NDArray[np.float64]:
    """Return numbers as float64; what is not known becomes NaN."""
    if isinstance(source, np.ndarray):
        if source.ndim == 1 and source.dtype.kind in "biuf":
            found = source.astype(np.float64)
            return np.where(np.abs(found) < _HUGE, found, np.nan)
        source = source.tolist()
    return np.array([float(v) if known(v) else np.nan for v in source])


def percent(value: object, digits: int = 1) -> str:
    """Show a share with its sign."""
    shown = points(value, digits)
    return shown if shown == MISSING else f"{shown} %"


def points(value: object, digits: int = 2) -> str:
    """Show a share in percent without the sign, for columns that carry it."""
    return _signed(f"{100 * float(value):.{digits}f}") if known(value) else MISSING


def value(mean: object, std: object, show: Callable[[object], str] = points) -> str:
    """Show a mean with its standard deviation, in percent unless told otherwise."""
    shown = show(mean)
    return shown if shown == MISSING or not known(std) else f"{shown} ± {show(std)}"


def signed(difference: float | None, digits: int = 2) -> str:
    """Show a difference of shares in percentage points, with its sign."""
    shown = points(difference, digits)
    return f"+{shown}" if shown.strip("0.") and shown[0] not in f"−{MISSING}" else shown


def number(value: object) -> str:
    if not known(value):
        return MISSING
    size = abs(float(value))
    if size and (size < 1e-3 or size >= 1e9):
        return _scientific(float(value))
    return _signed(f"{float(value):,.0f}" if size >= 9999.5 else f"{float(value):.4g}")


def numbers(column: Sequence[object]) -> list[str]:
    """Show a column the same way throughout: one tiny number turns all to powers of ten."""
    whole = all(one is None or known(one) for one in column)
    tiny = whole and any(known(one) and 0 < abs(one) < 1e-3 for one in column)
    return [_scientific(float(v)) if tiny and known(v) and v else text(v) for v in column]


def labels(ticks: Sequence[float], unit: str = "number") -> list[str]:
    """Label an axis with as many digits as its ticks need."""
    shown = [100 * tick if unit == "percent" else tick for tick in ticks]
    sign = " %" if unit == "percent" else ""
    slack = 1e-6 * max([abs(b - a) for a, b in pairwise(shown)] or [1.0])
    for digits in range(5):
        if all(abs(round(tick, digits) - tick) <= slack and abs(tick) < 1e9 for tick in shown):
            return [_signed(f"{tick:,.{digits}f}") + sign for tick in shown]
    return [number(tick) + sign for tick in shown]


def count(value: object) -> str:
    if not known(value):
        return MISSING
    whole = float(value).is_integer() and abs(float(value)) < 1e15
    return _signed(f"{int(value):,}") if whole else number(value)


def compact(value: object) -> str:
    """Show how many in at most four characters or so."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if known(value) and max(1e4, size) <= abs(value) < 1e12:
            share = float(value) / size
            return f"{share:.0f}{letter}" if abs(share) >= 9.95 else f"{share:.1f}{letter}"
    return number(value)


def duration(seconds: object) -> str:
    if not known(seconds) or float(seconds) < 0:
        return MISSING
    time = float(seconds)
    if time < 59.95:
        return f"{time:.2f} s" if time < 1 else f"{time:.1f} s"
    whole = round(time)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600:,} h {whole % 3600 // 60:02d} min"


def p_value(value: object) -> str:
    if not known(value):
        return MISSING
    return "<0.001" if float(value) < 0.001 else f"{float(value):.3f}"


def text(value: object) -> str:
    if value is None:
        return MISSING
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return count(value)
    return number(value) if isinstance(value, float | np.floating) else str(value)


def _scientific(value: float) -> str:
    digits, power = f"{value:.2e}".split("e")
    return _signed(f"{digits.rstrip('0').rstrip('.')}e{power}")


def _signed(shown: str) -> str:
    """Give a negative number a real minus, and zero none."""
    if not shown.startswith("-"):
        return shown
    return f"−{shown[1:]}" if shown.strip("-0.,") else shown[1:]
