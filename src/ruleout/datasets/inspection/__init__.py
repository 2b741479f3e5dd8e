"""What is in the data, before anything is trained on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from ruleout.datasets.errors import DataError
from ruleout.datasets.inspection.findings import Finding, Findings
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
        :mod:`ruleout.datasets.inspection.uniformity` for what can be tested, and how.

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
    from ruleout.datasets.inspection.columns import look_at_columns
    from ruleout.datasets.inspection.listing import look_at_sets
    from ruleout.datasets.inspection.truth import look_at_truth

    if x is not None and len(x) != len(sets):
        raise DataError(f"x has {len(x)} rows, the sets have {len(sets)}", "give one set per row")
    found = look_at_sets(sets)
    if labels is not None:
        found += look_at_truth(sets, labels)
    found += look_at_columns(sets, x, features)
    return Findings(tuple(found))
