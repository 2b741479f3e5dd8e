"""The record of a run: how it was trained, and the key of all that decides the result."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ruleout.labels import LabelSets
from ruleout.training.features import fingerprint
from ruleout.training.planning import Plan
from ruleout.training.stack import Run
from ruleout.version import __version__

__all__ = ["record"]


def record(
    run: Run, model: Any, precision: str, planned: Plan, x: Any, seed: int
) -> dict[str, Any]:
    """Write down how the grid is trained; `key` is the hash of all that decides the result."""
    data = fingerprint(x, [trial.sets for trial in run.trials])
    told: dict[str, Any] = {
        "approach": run.approach.name,
        "approach_options": dict(getattr(run.approach.source, "options", {})),
        "model": model if isinstance(model, str) else getattr(model, "__name__", str(model)),
        "parameters": sum(p.numel() for p in run.modules[0].parameters()),
        "configurations": [dict(one) for one in run.grid],
        "optimizer": run.optimizer,
        "epochs": run.epochs,
        "batch_size": run.size,
        "seed": int(seed),
        "seeds": list(run.seeds),
        "precision": precision,
        "device": run.device.type,
        "data": data,
    }
    hidden = sha256(json.dumps(told, sort_keys=True, default=str).encode())
    for trial in run.trials:
        for extra in (trial.rows, trial.weight):
            hidden.update(b"-" if extra is None else extra.tobytes())
        if trial.rate is not None:
            hidden.update(b"rate" + trial.rate.tobytes())
    for module in run.modules:
        for value in module.state_dict().values():
            hidden.update(value.detach().cpu().contiguous().numpy().tobytes())
        hidden.update(repr(module).encode())
    hidden.update(repr((sorted(run.recorded), run.stopping)).encode())
    for name, (watch, features) in run.watches.items():
        hidden.update(repr((name, list(watch.measures or ()))).encode())
        _digest(hidden, [watch.target, watch.rows, None if watch.x is None else features.print()])
        if watch.rate is not None:
            _digest(hidden, ["rate", watch.rate])
    _digest(hidden, run.start)
    told["key"] = hidden.hexdigest()
    if run.trials[0].rate is not None:
        told["learned_from"] = "every answer"
    name = torch.cuda.get_device_name(run.device) if run.device.type == "cuda" else _processor()
    told |= {"stack": list(planned.size), "device_name": name, "threads": torch.get_num_threads()}
    told |= {"resident": run.features.resident}
    told["versions"] = {
        "ruleout": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    return told


def _digest(hidden: Any, value: Any) -> None:
    """Add anything that a run is given: arrays, label sets, tensors, and lists of them."""
    if isinstance(value, LabelSets):
        hidden.update(value.packed.tobytes())
    elif isinstance(value, Mapping):
        _digest(hidden, [*value.keys(), *value.values()])
    elif isinstance(value, (list, tuple)):
        for one in value:
            _digest(hidden, one)
    elif value is None or isinstance(value, (str, int, float)):
        hidden.update(repr(value).encode())
    else:
        array = value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
        hidden.update(repr((array.shape, str(array.dtype))).encode() + array.tobytes())


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
