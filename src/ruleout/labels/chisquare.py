"""The chi-square test, for whoever asks whether sets were drawn as they should be."""

from dataclasses import dataclass

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
