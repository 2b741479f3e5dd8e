"""Losses over what was ruled out: pure functions of any leading shape, in log space."""

from ruleout.losses.functions import answered, zero_one
from ruleout.losses.loss_registry import (
    Loss,
    Memory,
    Seen,
    forget,
    get,
    names,
    register,
    unbiased,
)
from ruleout.losses.progressive import conformal_candidates

__all__ = ["Loss", "Memory", "Seen", "answered", "conformal_candidates", "forget", "get", "names"]
__all__ += ["register", "unbiased", "zero_one"]
