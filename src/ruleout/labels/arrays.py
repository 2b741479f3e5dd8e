"""Whatever users hand in, as NumPy arrays and plain Python values."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.errors import LabelError, brief

__all__ = ["is_missing", "plain", "to_array"]


def to_array(source: Any, what: str, *, keep_types: bool = False) -> NDArray[Any]:
    """Return an array, or say in our words what NumPy, torch or pandas would say in theirs.

    With `keep_types`, the items of a list keep their types: NumPy would turn ``["cat", 1]`` into
    two texts.
    """
    if np.ma.is_masked(source):
        raise LabelError(f"{what} has masked values", "fill them in or drop their rows")
    try:
        if keep_types and isinstance(source, (list, tuple)):
            return np.fromiter(source, object, len(source))
        return np.asarray(source)
    except Exception as error:
        reason = str(error).split("\n")[0]
        raise LabelError(
            f"{what} cannot be read as an array ({brief(reason)})", "give a NumPy array or a list"
        ) from None


def plain(value: Any) -> Any:
    """Unwrap scalars of NumPy, torch and Arrow; leave everything else as it is."""
    if isinstance(value, np.generic) or getattr(value, "shape", None) == ():
        return value.item()
    return value.as_py() if hasattr(value, "as_py") else value


def is_missing(value: Any) -> bool:
    """Tell None, NaN, NaT and pandas' NA, whose comparisons cannot be trusted."""
    return (
        value is None
        or (isinstance(value, float) and value != value)
        or (type(value).__name__ in ("NAType", "NaTType"))
    )
