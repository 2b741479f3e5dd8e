"""Selection: criteria that need no true labels."""

from ruleout.selection.criteria import Criterion, Estimate, criterion

__all__ = ["Criterion", "Estimate", "criterion"]
