"""Selection: criteria that need no true labels, and choosing by them."""

from ruleout.selection.grid_search import (
    Criterion,
    DivergedError,
    Estimate,
    Search,
    choose,
    criterion,
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
