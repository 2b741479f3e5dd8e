"""One engine that trains a whole grid as stacked parameters."""

from ruleout.training.batches import Trial
from ruleout.training.device import PRECISIONS
from ruleout.training.engine import Progress, estimate_seconds, fit_grid
from ruleout.training.grid_fit import GridFit, State, fingerprint
from ruleout.training.grids import PAPER_GRID, SMALL_GRID, configurations
from ruleout.training.optimizers import OPTIMIZERS, SCHEDULES, OptimizerKind, register_optimizer
from ruleout.training.stack import Callback, EpochEnd, Stopping
from ruleout.training.watches import Watch, hits

__all__ = ["GridFit", "State", "Trial", "Watch", "estimate_seconds", "fingerprint", "fit_grid"]
__all__ += ["Callback", "EpochEnd", "Progress", "Stopping", "hits"]
__all__ += ["PAPER_GRID", "PRECISIONS", "SMALL_GRID", "configurations"]
__all__ += ["OPTIMIZERS", "SCHEDULES", "OptimizerKind", "register_optimizer"]
