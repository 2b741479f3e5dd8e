"""Approaches: rows of a table, each a batch form and a loss.

The room is called `methods` because ``ruleout.approaches`` is the function that lists them.
"""

from ruleout.methods.approach_table import (
    PAPER,
    Approach,
    Rule,
    approach,
    approaches,
    forget_rule,
    register_rule,
)

__all__ = ["PAPER", "Approach", "Rule", "approach", "approaches", "forget_rule", "register_rule"]
