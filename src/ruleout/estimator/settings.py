"""A classifier's parameters as the engine reads them, checked before anything is trained."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import nn

from ruleout.estimator.fitting import Held
from ruleout.labels.errors import InputError, brief
from ruleout.methods import approach
from ruleout.models import MODELS, build
from ruleout.training import PAPER_GRID, configurations
from ruleout.training.nets import dense_layers
from ruleout.training.optimizers import check_optimizer

__all__ = [
    "base_of",
    "check_model",
    "engine_options",
    "epochs_of",
    "grid_of",
    "held_of",
    "model_options",
    "seed_of",
]

_EPOCHS, _STEPS = 100, 2000


def epochs_of(clf: Any, n: int) -> int:
    """Return the number of epochs: 100, or more where rows are few.

    Adam moves a weight by at most about the learning rate in a step, so a small table needs many
    epochs to get anywhere: with the default rate of 1e-3, scikit-learn's checks (30 to 300 rows)
    are learned in 2,000 steps and not in 500, and iris from one ruled-out class per row has a test
    accuracy of 0.75 after 500 steps, 0.83 after 1,000 and 0.91 after 2,000 (means of 4 splits).
    """
    if clf.epochs is not None:
        return int(_whole("epochs", clf.epochs))
    per_epoch = -(-n // int(_whole("batch_size", clf.batch_size)))
    return max(_EPOCHS, -(-_STEPS // per_epoch))


def seed_of(random_state: Any) -> int:
    """Return the seed: a whole number as it is, else one drawn from the random state."""
    if isinstance(random_state, Integral):
        check_random_state(random_state)  # raises for a negative one
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def base_of(clf: Any) -> dict[str, Any]:
    """Return the configuration that the parameters themselves make."""
    options = {} if clf.approach_options is None else clf.approach_options
    if not isinstance(options, Mapping):
        raise InputError(f"approach_options is {brief(options)}", "give a dictionary or None")
    base = {"learning_rate": clf.learning_rate, "weight_decay": clf.weight_decay}
    return configurations([base | dict(options)])[0]


def grid_of(clf: Any) -> list[dict[str, Any]]:
    """Return the configurations; what a grid does not name is as the classifier says."""
    base, grid = base_of(clf), clf.grid
    if grid is None:
        return [base]
    if isinstance(grid, str) and grid == "paper":
        return configurations({**base, **PAPER_GRID})
    if isinstance(grid, Mapping):
        return configurations({**base, **grid})
    if isinstance(grid, (list, tuple)) and all(isinstance(one, Mapping) for one in grid):
        return configurations([{**base, **one} for one in grid])
    raise InputError(f"grid is {brief(grid)}", "say 'paper', or give a dictionary of lists")


def held_of(clf: Any) -> Held | None:
    """Return how rows held out choose, or None where there is nothing to choose."""
    if clf.grid is None and not clf.early_stopping:
        return None
    share = clf.validation_fraction
    if not isinstance(share, (int, float)) or not 0 < share < 1:
        raise InputError(f"validation_fraction is {brief(share)}", "give a share between 0 and 1")
    if clf.rule not in ("best", "one-standard-error"):
        raise InputError(f"unknown rule {brief(clf.rule)}", "say 'best' or 'one-standard-error'")
    patience = int(_whole("patience", clf.patience)) if clf.early_stopping else None
    return Held(clf.criterion, float(share), clf.rule, patience)


def engine_options(clf: Any) -> dict[str, Any]:
    """Return what :func:`ruleout.fit_grid` is told besides data, grid, epochs and seed."""
    if not isinstance(clf.model, str) and not callable(clf.model):
        say = f"name one of {', '.join(MODELS)}, or give a function (shape, classes) → nn.Module"
        raise InputError(f"model is {brief(clf.model)}", say)
    if not isinstance(clf.approach, str):
        raise InputError(f"approach is {brief(clf.approach)}", "name one of ro.approaches()")
    return {
        "approach": approach(clf.approach),
        "model": clf.model,
        "batch_size": int(_whole("batch_size", clf.batch_size)),
        "optimizer": check_optimizer(clf.optimizer),
        "shape": None if clf.shape is None else tuple(clf.shape),
        "model_options": model_options(clf),
        "device": clf.device,
        "precision": clf.precision,
    }


def _whole(name: str, value: Any) -> Integral:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise InputError(f"{name} is {brief(value)}", "give a whole number of at least 1")
    return value


def model_options(clf: Any) -> dict[str, Any]:
    """Return the options of the model, where it is one of ours those that it has."""
    options = dict(clf.model_options or {})
    if clf.hidden is not None:
        options["hidden"] = tuple(int(_whole("hidden", width)) for width in np.ravel(clf.hidden))
    if isinstance(clf.model, str) and clf.model in MODELS:
        known = list(inspect.signature(MODELS[clf.model]).parameters)[2:]
        for name in options:
            if name not in known:
                say = f"its options are {', '.join(known)}" if known else "it has none"
                if name == "hidden":
                    say = "hidden layers belong to model='mlp'"
                raise InputError(f"model {clf.model!r} has no option {brief(name)}", say)
    return options


def check_model(options: Mapping[str, Any], shape: tuple[int, ...], k: int) -> None:
    """Build the model once, to say early what a user's own gets wrong, and what CLPL loses."""
    convex = options["approach"].name == "clpl"
    if isinstance(options["model"], str) and not convex:
        return
    module = build(options["model"], shape, k, seed=0, **options["model_options"])
    if not isinstance(options["model"], str):
        _check_own(module, shape, k)
    layers = dense_layers(module)
    if convex and (layers is None or len(layers) > 1):
        warnings.warn(
            "CLPL is convex in a linear model only; with this one its guarantee is gone",
            UserWarning,
            stacklevel=2,
        )


def _check_own(module: Any, shape: tuple[int, ...], k: int) -> None:
    if not isinstance(module, nn.Module):
        raise InputError(
            f"the model function returned a {type(module).__name__}", "return an nn.Module"
        )
    if not any(True for _ in module.parameters()):
        raise InputError("the model has no parameters", "return an nn.Module with some")
    with torch.no_grad():
        out = module.eval()(torch.zeros(2, *shape))
    if not isinstance(out, torch.Tensor) or out.shape != (2, k):
        found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        raise InputError(
            f"the model turns (2, {', '.join(map(str, shape))}) into {found}",
            f"return one logit per class, (2, {k})",
        )
