"""What was asked of a fit, checked before any training starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.training.batches import Trial, check_rate
from ruleout.training.optimizers import OPTIMIZERS
from ruleout.training.result import GridFit
from ruleout.training.stack import Run, Stopping
from ruleout.training.watches import Watch

__all__ = [
    "PRECISIONS",
    "check_counts",
    "check_monitor",
    "check_seed",
    "check_start",
    "device",
    "precision",
    "trials",
]

#: name: (dtype of the weights, dtype of the matrix products, whether TF32 is allowed)
PRECISIONS = {
    "float32": (torch.float32, torch.float32, False),
    "float64": (torch.float64, torch.float64, False),
    "tf32": (torch.float32, torch.float32, True),
    "bf16": (torch.float32, torch.bfloat16, False),
}


def trials(sets: Any, n: int, seed: int) -> tuple[list[Trial], list[int]]:
    """Return the trials, with rows and weights checked, and their seeds."""
    if isinstance(sets, LabelSets):
        sets = [sets]
    if not isinstance(sets, Sequence) or not sets:
        raise InputError(
            f"sets is a {type(sets).__name__}", "give LabelSets, or a list of them for trials"
        )
    trials = [one if isinstance(one, Trial) else Trial(one) for one in sets]
    for number, trial in enumerate(trials):
        _check_trial(trial, n, "" if len(trials) == 1 else f" of trial {number}")
        if trial.sets.classes != trials[0].sets.classes:
            raise InputError(
                f"the classes of trial {number} are not those of trial 0",
                "give all trials the same classes in the same order",
            )
        if (trial.rate is None) != (trials[0].rate is None):
            raise InputError(
                "some trials have rates and some have none", "give rates to all trials or to none"
            )
    seeds = [seed + t if one.seed is None else one.seed for t, one in enumerate(trials)]
    for one in seeds:
        check_seed(one)
    seeds = [int(one) for one in seeds]
    return [_as_arrays(trial) for trial in trials], seeds


def _as_arrays(trial: Trial) -> Trial:
    rows = None if trial.rows is None else np.asarray(trial.rows, np.intp)
    weight = None if trial.weight is None else np.asarray(trial.weight, float)
    rate = None if trial.rate is None else np.asarray(trial.rate, float)
    return replace(trial, rows=rows, weight=weight, rate=rate)


def _check_trial(trial: Trial, n: int, which: str) -> None:
    if not isinstance(trial.sets, LabelSets):
        raise InputError(
            f"the label sets{which} are a {type(trial.sets).__name__}",
            "make them with ro.LabelSets(excluded, classes)",
        )
    count = n if trial.rows is None else len(trial.rows)
    if len(trial.sets) != count:
        raise InputError(
            f"x has {count} rows but the label sets{which} have {len(trial.sets)}",
            "give one set for each row",
        )
    if count == 0:
        raise InputError(f"there are no rows{which} to train on", "give at least one")
    if not trial.sets.sizes.any():
        raise InputError(f"the label sets{which} rule nothing out", "give at least one class")
    if trial.rows is not None and np.asarray(trial.rows).dtype.kind not in "iu":
        raise InputError(
            f"the rows{which} are not whole numbers", f"give numbers from 0 to {n - 1}"
        )
    if trial.rows is not None and not (np.min(trial.rows) >= 0 and np.max(trial.rows) < n):
        raise InputError(f"the rows{which} go beyond x", f"give numbers from 0 to {n - 1}")
    if trial.weight is not None:
        _check_weight(np.asarray(trial.weight, float), count, which)
    if trial.rate is not None:
        check_rate(trial.rate, count, which)


def _check_weight(weight: Any, count: int, which: str) -> None:
    if weight.shape != (count,):
        raise InputError(
            f"the weights{which} have shape {weight.shape}", f"give {count}, one for each row"
        )
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError(
            f"the weights{which} are negative, not finite or all zero", "give numbers above zero"
        )


def precision(name: str) -> tuple[torch.dtype, torch.dtype, bool]:
    """Return what a precision means."""
    if name not in PRECISIONS:
        say = nearest(name, PRECISIONS, f"the precisions are {', '.join(PRECISIONS)}")
        raise ValueError(f"unknown precision {brief(name)}; {say}")
    return PRECISIONS[name]


def device(device: str | torch.device | None, precision: str) -> torch.device:
    """Return the device, if this machine has it and it can be so precise."""
    try:
        found = torch.device("cpu" if device is None else device)
    except RuntimeError:
        raise ValueError(f"unknown device {brief(device)}; say 'cpu' or 'cuda'") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("this machine has no CUDA device that torch can use; say device='cpu'")
    if precision == "tf32" and found.type != "cuda":
        raise ValueError("tf32 needs a CUDA device; use precision='float32' on a CPU")
    return found


def check_seed(seed: Any) -> None:
    """Raise where a seed is not a whole number that torch can take."""
    whole = isinstance(seed, (int, np.integer)) and not isinstance(seed, bool)
    if not whole or not 0 <= seed < 1 << 63:
        raise ValueError(f"a seed must be a whole number, zero or above, not {brief(seed)}")


def check_start(start: GridFit, run: Run) -> None:
    """Raise where a fit cannot go on from another."""
    trials, models = len(run.trials), len(run.grid)
    if not start.state:
        raise ValueError(
            "start kept nothing to go on from; fit with moments=True, without stopping"
        )
    if start.shape != (trials, models):
        raise ValueError(
            f"start holds {start.shape[0]} × {start.shape[1]} models, this fit asks for "
            f"{trials} × {models}; go on with the same trials and grid"
        )
    known = {name: tuple(value.shape[2:]) for name, value in start.state["tensors"][0].items()}
    wanted = {name: tuple(value.shape) for name, value in run.modules[0].state_dict().items()}
    if known != wanted or len(start.state["tensors"]) != 1 + OPTIMIZERS[run.optimizer].moments:
        raise ValueError("start is of another model or optimizer; go on with the same")


def check_monitor(stopping: Stopping | None, watch: Mapping[str, Watch]) -> None:
    """Raise where early stopping looks at what is not measured."""
    if stopping is not None:
        check_counts(patience=stopping.patience)
    names = [f"{name}/{m}" for name, one in watch.items() for m in one.measures or ("accuracy",)]
    if stopping is not None and stopping.monitor not in names:
        say = f"the watches measure {', '.join(names)}" if names else "give a watch"
        say = nearest(stopping.monitor, names, say)
        raise ValueError(f"stopping asks for {stopping.monitor!r}, which is not measured; {say}")


def check_counts(**counts: int) -> None:
    """Raise where a count is not a whole number of at least 1."""
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {brief(value)}")
