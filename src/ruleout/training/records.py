"""The record of a run: how it was trained, and the key of all that decides the result."""

from __future__ import annotations

import json
import platform
from hashlib import sha256
from typing import Any

import torch

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
        "seed": seed,
        "seeds": list(run.seeds),
        "precision": precision,
        "device": run.device.type,
        "data": data,
    }
    hidden = sha256(json.dumps(told, sort_keys=True, default=str).encode())
    for trial in run.trials:
        for extra in (trial.rows, trial.weight):
            hidden.update(b"-" if extra is None else extra.tobytes())
    for module in run.modules:
        for value in module.state_dict().values():
            hidden.update(value.detach().cpu().contiguous().numpy().tobytes())
    hidden.update(repr((sorted(run.recorded), run.stopping, list(run.watches))).encode())
    told["key"] = hidden.hexdigest()
    name = torch.cuda.get_device_name(run.device) if run.device.type == "cuda" else _processor()
    told |= {"stack": list(planned.size), "device_name": name, "threads": torch.get_num_threads()}
    told |= {"resident": run.features.resident}
    told["versions"] = {
        "ruleout": __version__,
        "torch": torch.__version__,
        "python": platform.python_version(),
    }
    return told


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
