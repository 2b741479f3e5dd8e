"""Losses over what was ruled out: pure functions of any leading shape, in log space."""

from ruleout.losses.functions import answered, zero_one
from ruleout.losses.loss_registry import Loss, forget, get, names, register, unbiased

__all__ = ["Loss", "answered", "forget", "get", "names", "register", "unbiased", "zero_one"]
