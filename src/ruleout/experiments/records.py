"""Records: what came of a spec. Plain numbers; tables, marks and pages are made from them alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.experiments.specs import Spec

__all__ = ["Record"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Record:
    """The result of one cell.

    Attributes
    ----------
    spec
        What was run.
    configurations
        The grid, C settings.
    chosen
        ``[T]``: the number of each trial's configuration.
    estimates, errors
        ``[T, C]``: the criterion on the rows set aside, and its standard errors; NaN where
        training diverged.
    tests
        ``[T, C]``: the accuracy on the test rows of what was trained to choose from. It chose
        nothing; it shows what a choice by true labels would have given.
    accuracy
        ``[T]``: the accuracy on the test rows of what was chosen, the mean of the last epochs.
        The number that tables report.
    epochs
        ``[E]``: the epochs of the curves.
    curves
        ``[T, E]`` by name: ``test`` and ``train`` accuracy (with true labels), and ``loss``.
    about
        How it was computed: device, versions, seconds, hash of the data.
    """

    spec: Spec
    configurations: list[dict[str, Any]]
    chosen: NDArray[np.intp]
    estimates: NDArray[np.float64]
    errors: NDArray[np.float64]
    tests: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    epochs: NDArray[np.intp]
    curves: Mapping[str, NDArray[np.float32]]
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def mean(self) -> float:
        """The mean accuracy over trials."""
        return float(self.accuracy.mean())

    @property
    def std(self) -> float:
        """The standard deviation over trials (n-1); NaN for one trial."""
        return float(self.accuracy.std(ddof=1)) if len(self.accuracy) > 1 else float("nan")

    @property
    def configuration(self) -> dict[str, Any]:
        """The chosen configuration, that of the first trial where they differ."""
        return self.configurations[int(self.chosen[0])]

    @property
    def estimate(self) -> float:
        """The criterion of what was chosen, mean over trials."""
        return float(self.estimates[np.arange(len(self.chosen)), self.chosen].mean())

    @property
    def oracle(self) -> tuple[float, dict[str, Any]]:
        """The best mean test accuracy that any one configuration had before choosing, and which.

        True labels decide here, so it is an upper end for judging the choice, never a result.
        """
        means = np.where(np.isfinite(self.estimates.mean(0)), self.tests.mean(0), -np.inf)
        best = int(np.argmax(means))
        return float(means[best]), self.configurations[best]

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.about.get("seconds", float("nan")))

    def __repr__(self) -> str:
        return f"Record({self.spec}: {100 * self.mean:.2f} ± {100 * self.std:.2f})"
