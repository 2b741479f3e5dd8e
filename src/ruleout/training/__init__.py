"""One engine that trains a whole grid as stacked parameters."""

from ruleout.training.batches import Trial
from ruleout.training.device import PRECISIONS
from ruleout.training.engine import fit_grid
from ruleout.training.grid_fit import GridFit, fingerprint
from ruleout.training.grids import PAPER_GRID, configurations
from ruleout.training.stack import Stopping
from ruleout.training.watches import Watch, hits

__all__ = [
    "PAPER_GRID",
    "PRECISIONS",
    "GridFit",
    "Stopping",
    "Trial",
    "Watch",
    "configurations",
    "fingerprint",
    "fit_grid",
    "hits",
]
