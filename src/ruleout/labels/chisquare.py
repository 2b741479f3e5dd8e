"""The chi-square test, for whoever asks whether sets were drawn as they should be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

EXPECTED = 5.0  # counts that a chi-square test needs to expect


@dataclass(frozen=True)
class Test:
    """A chi-square statistic, its degrees of freedom, and how likely a larger one is."""

    statistic: float
    freedom: int

    @property
    def p(self) -> float:
        from scipy.special import chdtrc  # late: only the test needs SciPy

        return float(chdtrc(self.freedom, self.statistic))


def pearson(observed: NDArray[np.intp], expected: NDArray[np.float64]) -> Test | None:
    """Compare counts with what is expected, neighbours together until five are; None: too few."""
    cells = [[0.0, 0.0]]
    for seen, mean in zip(observed.tolist(), expected.tolist(), strict=True):
        if cells[-1][1] >= EXPECTED:
            cells.append([0.0, 0.0])
        cells[-1][0] += seen
        cells[-1][1] += mean
    if len(cells) > 1 and cells[-1][1] < EXPECTED:  # the rest joins the last
        cells[-2:] = [[a + b for a, b in zip(*cells[-2:], strict=True)]]
    if len(cells) < 2:
        return None
    return Test(sum((seen - mean) ** 2 / mean for seen, mean in cells), len(cells) - 1)
