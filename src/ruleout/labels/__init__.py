"""What was ruled out: sets, size laws, drawing, files. NumPy and PyArrow only, no torch."""

from ruleout.labels.classes import Classes, ClassName
from ruleout.labels.errors import LabelError
from ruleout.labels.laws import (
    Answers,
    Law,
    Seed,
    answer,
    draw,
    kept_law,
    propose,
    size_law,
    wrong_class_rate,
)
from ruleout.labels.origins import (
    Evidence,
    Flips,
    PerRow,
    Transition,
    Uniform,
    evidence,
    learn_origin,
)
from ruleout.labels.sets import LabelSets

__all__ = ["ClassName", "Classes", "LabelError", "LabelSets", "Law", "Seed"]
__all__ += ["Evidence", "Flips", "PerRow", "Transition", "Uniform", "evidence", "learn_origin"]
__all__ += ["Answers", "answer", "draw", "kept_law", "propose", "size_law", "wrong_class_rate"]
