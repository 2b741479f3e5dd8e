"""Contract suites that ship: run them on your own losses, too."""

from ruleout.testing.approach_checks import APPROACH_CHECKS, check_approach
from ruleout.testing.loss_checks import LOSS_CHECKS, check_loss

__all__ = ["APPROACH_CHECKS", "LOSS_CHECKS", "check_approach", "check_loss"]
