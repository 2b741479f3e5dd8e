"""Beside the road: bounds, purity, and exact enumeration of small cases."""

from ruleout.theory.bounds import (
    ErrorBound,
    bound,
    error_bound,
    linear_complexity,
    lipschitz,
    purity,
)
from ruleout.theory.enumeration import (
    Outcomes,
    answer_outcomes,
    every_set,
    proposals,
    set_distribution,
)

__all__ = [
    "ErrorBound",
    "Outcomes",
    "answer_outcomes",
    "bound",
    "error_bound",
    "every_set",
    "linear_complexity",
    "lipschitz",
    "proposals",
    "purity",
    "set_distribution",
]
