"""Selection: criteria that need no true labels, and choosing by them."""

from ruleout.selection.choosing import DivergedError, choose, split
from ruleout.selection.criteria import Criterion, Estimate, criterion
from ruleout.selection.searching import Search, refit_chosen, search, set_aside

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
