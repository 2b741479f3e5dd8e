"""One engine that trains a whole grid as stacked parameters."""

from ruleout.training.batches import Trial
from ruleout.training.device import PRECISIONS
from ruleout.training.engine import Progress, estimate_seconds, fit_grid
from ruleout.training.grid_fit import GridFit, State, fingerprint
from ruleout.training.grids import PAPER_GRID, QUICK_GRID, SMALL_GRID, configurations
from ruleout.training.optimizers import OPTIMIZERS, SCHEDULES, OptimizerKind, register_optimizer
from ruleout.training.stack import Callback, EpochEnd, Stopping
from ruleout.training.watches import Watch, hits

__all__ = [
    "OPTIMIZERS",
    "PAPER_GRID",
    "PRECISIONS",
    "QUICK_GRID",
    "SCHEDULES",
    "SMALL_GRID",
    "Callback",
    "EpochEnd",
    "GridFit",
    "OptimizerKind",
    "Progress",
    "State",
    "Stopping",
    "Trial",
    "Watch",
    "configurations",
    "estimate_seconds",
    "fingerprint",
    "fit_grid",
    "hits",
    "register_optimizer",
]
