"""Losses over what was ruled out: pure functions of any leading shape, in log space."""

from ruleout.losses.base import zero_one
from ruleout.losses.registry import Loss, forget, get, names, register, unbiased

from ruleout.losses.whole import answered  # isort: skip  # the order of registration is the table's
from ruleout.losses import single  # noqa: F401  # registers its losses

__all__ = ["Loss", "answered", "forget", "get", "names", "register", "unbiased", "zero_one"]
