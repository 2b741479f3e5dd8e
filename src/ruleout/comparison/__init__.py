"""Comparison: approaches side by side, each chosen without true labels, tested in pairs."""

from ruleout.comparison.comparing import Progress, compare
from ruleout.comparison.comparison_result import Comparison, Method, Row
from ruleout.comparison.significance import Ranking, holm, mark, paired_t_test, rank_approaches
from ruleout.training import SMALL_GRID

__all__ = ["SMALL_GRID", "Comparison", "Method", "Progress", "Row", "compare"]
__all__ += ["Ranking", "holm", "mark", "paired_t_test", "rank_approaches"]
