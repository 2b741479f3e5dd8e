"""What X may be: an array, a DataFrame, a sparse matrix, or images."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted, validate_data

from ruleout.estimator.targets import check_rows, holds_sets, per_row
from ruleout.labels.errors import InputError

__all__ = ["check_x", "check_x_y"]

_BLOCK = 1 << 24  # cells looked at in one go


def check_x(classifier: Any, X: Any) -> Any:
    """Check rows to predict: as many features, under the same names, as those trained on."""
    check_is_fitted(classifier, "module_")
    return _checked(classifier, X, reset=False)


def check_x_y(classifier: Any, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any, Any]:
    """Check rows and what is known about them; y stays as it is where it holds sets.

    Answers become sets, one for each row, and their rates come third.
    """
    if y is None or not holds_sets(y):
        if hasattr(X, "shape") and hasattr(y, "__len__"):
            check_rows(X.shape[0], y, "label")
        x, labels = _checked(classifier, X, y, reset=reset)
        return x, labels, None
    x = _checked(classifier, X, reset=reset)
    y, rate = per_row(y, x.shape[0])
    check_rows(x.shape[0], y)
    return x, y, rate


def _checked(classifier: Any, X: Any, *y: Any, reset: bool) -> Any:
    """Bring X to the dtype of the training, as rows; say which of its numbers is none."""
    if isinstance(X, np.ndarray) and X.ndim > 2:
        X = X.reshape(len(X), -1)
    kind = np.float64 if classifier.precision == "float64" else np.float32
    rules = {"accept_sparse": "csr", "dtype": kind, "ensure_all_finite": False}
    with np.errstate(over="ignore", invalid="ignore"):
        found = validate_data(classifier, X, *y, reset=reset, **rules)
    _check_finite(classifier, found[0] if y else found)
    return found


def _check_finite(classifier: Any, x: Any) -> None:
    values = x.data if hasattr(x, "indptr") else x
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    step = max(1, _BLOCK // max(1, values[:1].size))
    for start in range(0, len(values), step):
        bad = np.argwhere(~np.isfinite(values[start : start + step]))
        if len(bad) and hasattr(x, "indptr"):
            cell = start + int(bad[0, 0])
            row = int(np.searchsorted(x.indptr, cell, side="right")) - 1
            _refuse(classifier, values[cell], row, int(x.indices[cell]))
        elif len(bad):
            row, column = start + int(bad[0, 0]), int(bad[0, 1])
            _refuse(classifier, values[row, column], row, column)


def _refuse(classifier: Any, value: Any, row: int, column: int) -> NoReturn:
    names = getattr(classifier, "feature_names_in_", None)
    where = column if names is None else str(names[column])
    if np.isnan(value):
        raise InputError("X holds NaN", "fill in or drop missing values", row=row, column=where)
    remedy = "mend it, scale the features, or use precision='float64'"
    if classifier.precision == "float64":
        remedy = "mend it, or drop the row"
    raise InputError(
        "X holds infinity (inf) or a number beyond its precision", remedy, row=row, column=where
    )
