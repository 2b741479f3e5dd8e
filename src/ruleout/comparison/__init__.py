"""Comparison: approaches side by side, each chosen without true labels, tested in pairs."""

from ruleout.comparison.asked import SMALL_GRID
from ruleout.comparison.comparing import compare
from ruleout.comparison.method import Method
from ruleout.comparison.result import Comparison
from ruleout.comparison.rows import Row
from ruleout.comparison.running import Progress
from ruleout.comparison.statistics import holm, mark, paired_t_test

__all__ = [
    "SMALL_GRID",
    "Comparison",
    "Method",
    "Progress",
    "Row",
    "compare",
    "holm",
    "mark",
    "paired_t_test",
]
