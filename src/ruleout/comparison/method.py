"""How scores came about, in words: every table and page says what its numbers mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ruleout.comparison.judging import Kind

__all__ = ["Method", "Over"]

Over: TypeAlias = Literal["trials", "rows"]

_LABELS = {"accuracy": "Estimated accuracy", "consistency": "Consistency", "risk": "Risk"}


@dataclass(frozen=True, kw_only=True)
class Method:
    """How approaches were chosen, judged and compared.

    Attributes
    ----------
    kind
        What judged: ``"labels"`` (true labels of test rows), ``"sets"`` (label sets of test rows),
        ``"kept"`` (rows kept back), ``"folds"`` (every row, by the trial that did not see it).
    rows, trials
        How many rows judged, how many trials there were.
    measure, higher_is_better
        What the score is, and which end is good.
    criterion, criterion_up
        What chose the configurations, and which end of it is good.
    over, level, holm
        The paired t-test: over trials or rows, at which level, whether marks are corrected.
    average
        How many of the last kept epochs the score of true labels is averaged over.
    reference
        The approach that the others are tested against; empty for none.
    """

    kind: Kind
    rows: int
    trials: int
    measure: str = "accuracy"
    higher_is_better: bool = True
    criterion: str = "accuracy"
    criterion_up: bool = True
    over: Over = "trials"
    level: float = 0.05
    holm: bool = False
    average: int = 1
    reference: str = ""

    @property
    def score_label(self) -> str:
        """What the score is called."""
        if self.kind == "labels":
            return "Test accuracy"
        return _LABELS.get(self.measure, self.measure.capitalize())

    @property
    def spread_label(self) -> str:
        """What stands behind ±."""
        return "standard deviation" if self.kind == "labels" else "standard error"

    @property
    def percent(self) -> bool:
        """Whether scores are shares."""
        return self.kind == "labels" or self.measure != "risk"

    @property
    def criterion_percent(self) -> bool:
        """Whether the criterion is a share."""
        return self.criterion != "risk"

    @property
    def test(self) -> str:
        """The test behind the marks."""
        holm = ", corrected after Holm" if self.holm else ""
        return f"paired t-test over the {self.over}, two-sided, {100 * self.level:g} % level{holm}"

    def sentences(self) -> list[str]:
        """Return what a reader must know to read the table right."""
        return [*self.about_scores(), *([self._marks()] if self.reference else [])]

    def about_scores(self) -> list[str]:
        """Return what the scores are, and what they are not."""
        chose = f"Held-out {self.criterion}: on the rows that chose, whose choice flatters it."
        return [self._score(), chose, *([] if self.kind == "labels" else [self._honesty()])]

    def _score(self) -> str:
        trials = "1 trial" if self.trials == 1 else f"{self.trials} trials"
        what, rows = self.score_label, f"{self.rows:,}"
        if self.kind == "labels":
            last = f", averaged over the last {self.average} epochs" if self.average > 1 else ""
            spread = f"mean ± {self.spread_label} of {trials}" if self.trials > 1 else trials
            return f"{what}: true labels of {rows} test rows{last}; {spread}."
        source = {
            "sets": f"{rows} test rows",
            "kept": f"{rows} rows kept back, which neither trained nor chose",
            "folds": f"{rows} rows, each judged by the trial that neither trained nor chose on it",
        }[self.kind]
        mean = "" if self.kind == "folds" else f", mean of {trials}"
        return (
            f"{what}: from what was ruled out for {source}{mean}; ± standard error over the rows."
        )

    def _honesty(self) -> str:
        say = ""
        if self.measure == "accuracy":
            say = "Unbiased if every wrong class was equally likely to be ruled out. "
        say += "Errors cover the rows that judge, not other training rows. "
        if self.kind == "folds":
            say += "Trials share training rows, so errors are a little too small. "
        return say + "The best of several scores is partly luck."

    def _marks(self) -> str:
        return f"• {self.reference} is better than this row, ○ worse: {self.test}."
