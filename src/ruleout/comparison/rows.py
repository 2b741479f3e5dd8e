"""What a comparison found about one approach."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.comparison.statistics import Mark

__all__ = ["Curve", "Row"]


@dataclass(frozen=True, eq=False)
class Curve:
    """How the score grew: ``epochs [E]`` and ``values [T, E]``, of the final training."""

    epochs: NDArray[np.intp]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Row:
    """One line of the table.

    Attributes
    ----------
    approach, label, family, form
        As in :class:`ruleout.methods.Approach`.
    score
        The mean over trials; NaN for an approach that diverged.
    spread
        Its standard deviation over trials, or its standard error over rows: the comparison says.
    trials
        The score of every trial.
    configuration
        What was chosen, by most trials if each chose for itself.
    configurations
        What each trial chose.
    estimate, error
        The criterion on the rows that chose, and its standard error. They chose it, so it is a
        little too good.
    p_value, p_holm
        Of the paired t-test against the reference, and the same after Holm's correction; NaN
        where nothing was tested.
    mark
        ``"•"``: the reference is significantly better than this row, ``"○"``: worse.
    seconds
        How long it took, choosing and training.
    diverged, models
        How many of how many models of the grid diverged.
    baseline
        A line for comparison only, which is never the best and carries no mark.
    curve
        How the score grew with the epochs.
    values
        The score of every judging row, mean over trials.
    """

    approach: str
    label: str
    family: str
    form: str
    score: float = np.nan
    spread: float = np.nan
    trials: tuple[float, ...] = ()
    configuration: Mapping[str, Any] = field(default_factory=dict)
    configurations: tuple[Mapping[str, Any], ...] = ()
    estimate: float = np.nan
    error: float = np.nan
    p_value: float = np.nan
    p_holm: float = np.nan
    mark: Mark = ""
    seconds: float = 0.0
    diverged: int = 0
    models: int = 0
    baseline: bool = False
    curve: Curve | None = field(default=None, repr=False)
    values: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), repr=False)

    @property
    def failed(self) -> bool:
        """Whether every configuration diverged, or the chosen one when trained on everything."""
        return not isfinite(self.score)

    @property
    def note(self) -> str:
        """What is special about the row, in a word or two."""
        if self.failed:
            return "diverged"
        return f"{self.diverged} of {self.models} models diverged" if self.diverged else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, lists and text, ready for JSON; NaN becomes None."""
        names = (
            "approach label family form score spread estimate error p_value p_holm mark seconds "
            "diverged models baseline"
        )
        found: dict[str, Any] = {name: plain(getattr(self, name)) for name in names.split()}
        found["trials"] = [plain(value) for value in self.trials]
        found["configuration"] = dict(self.configuration)
        found["configurations"] = [dict(one) for one in self.configurations]
        if self.curve is not None:
            kept = [[plain(v) for v in one] for one in self.curve.values.tolist()]
            found["curve"] = {"epochs": self.curve.epochs.tolist(), "values": kept}
        return found


def plain(value: Any) -> Any:
    """Return a number that JSON has; None for NaN and infinities."""
    return None if isinstance(value, float) and not isfinite(value) else value
