"""Selection: criteria that need no true labels, and choosing by them."""

from ruleout.selection.criteria import Criterion, Estimate, criterion
from ruleout.selection.grid_search import (
    DivergedError,
    Search,
    choose,
    refit_chosen,
    search,
    set_aside,
    split,
)

__all__ = [
    "Criterion",
    "DivergedError",
    "Estimate",
    "Search",
    "choose",
    "criterion",
    "refit_chosen",
    "search",
    "set_aside",
    "split",
]
