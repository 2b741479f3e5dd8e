"""What a trained grid is: weights, histories, and the record of how it was made."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.labels import LabelSets
from ruleout.training.grids import Configuration, plain
from ruleout.training.validation import check_features, check_shape
from ruleout.version import __version__

if TYPE_CHECKING:
    from ruleout.training.stack import Plan, Run


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Where training stands, so that another fit can go on: ``fit_grid(start=state)``."""

    weights: Mapping[str, Tensor]  #: by name as in the module's ``state_dict``: ``[T, C, ...]``
    moments: Sequence[Mapping[str, Tensor]]  #: what the optimizer remembers: two such for Adam
    steps: NDArray[np.float64]  #: how many steps each trial has taken, ``[T]``
    epochs: int = 0  #: how many epochs, after which the order of the rows goes on
    #: what the approach remembers of the rows, ``[T, C, ...]``; None: nothing, or of other rows
    memory: Mapping[str, Tensor] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(T, C)``."""
        trials, models = next(iter(self.weights.values())).shape[:2]
        return trials, models

    def of(self, models: Sequence[int]) -> State:
        """Return where some of the configurations stand."""

        def own(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: value[:, list(models)] for name, value in values.items()}

        memory = None if self.memory is None else own(self.memory)
        moments = [own(one) for one in self.moments]
        return replace(self, weights=own(self.weights), moments=moments, memory=memory)


@dataclass(frozen=True, eq=False, repr=False)
class GridFit:
    """A grid that was trained: T trials of C configurations each."""

    configurations: list[Configuration]  #: what each of the C configurations is
    #: by name as in the module's ``state_dict``, each ``[T, C, ...]``, on the CPU
    weights: Mapping[str, Tensor]
    epochs: NDArray[np.intp]  #: ``[E]``: the epochs (from 1) of which histories were kept
    #: by name, each ``[T, C, E]``: ``"loss"`` (mean over the steps of the epoch) and
    #: ``"watch/measure"`` for every watch
    history: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, NDArray[np.float64]]  #: the standard errors of the measures
    diverged: NDArray[np.intp]  #: ``[T, C]``: the first epoch whose loss was not finite, else 0
    #: ``[T, C]``: the epoch whose weights were kept: the last, or the best with `patience`
    stopped: NDArray[np.intp]
    #: how it was trained: approach, model, optimizer, seeds, device, precision, versions, time
    record: dict[str, Any]
    fresh: Callable[[int], nn.Module]
    #: what another fit needs to go on from this one; None with `stopping` or ``moments=False``,
    #: and where models differ in their batch size or options
    state: State | None = None
    #: ``[T, C]``: what makes each model, where they differ so; then `weights` is empty
    apart: NDArray[np.object_] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """``(T, C)``."""
        trials, models = self.diverged.shape
        return trials, models

    def module(self, trial: int = 0, configuration: int = 0) -> nn.Module:
        """Return one trained model, in evaluation mode, on the CPU."""
        if self.apart is not None:
            made: nn.Module = self.apart[trial, configuration]()
            return made
        dtype = next(w.dtype for w in self.weights.values() if w.is_floating_point())
        module = self.fresh(trial).to(dtype)
        module.load_state_dict({name: w[trial, configuration] for name, w in self.weights.items()})
        return module.eval()

    def logits(self, x: Any, most: int = 4096) -> Tensor:
        """Return ``[T, C, n, k]`` for rows ``[n, ...]``, on the CPU.

        Use :meth:`module` for one model of a large grid: this holds all logits at once.
        """
        trials, models = self.shape
        x = check_features(x)
        every = [predict(self.module(t, c), x, most) for t in range(trials) for c in range(models)]
        return torch.stack(every).view(trials, models, *every[0].shape)

    def pick(self, chosen: Any) -> GridFit:
        """Return the grid with one configuration left for each trial, ``[T, 1]``."""
        places = np.asarray(chosen)

        def own(values: Any) -> Any:
            if isinstance(values, Mapping):
                return {name: own(one) for name, one in values.items()}
            return None if values is None else values[range(len(places)), places.tolist()][:, None]

        names = ("weights", "history", "errors", "diverged", "stopped", "apart")
        told = {name: own(getattr(self, name)) for name in names}
        if (state := self.state) is not None:
            moments = [own(one) for one in state.moments]
            own_memory = None if state.memory is None else own(state.memory)
            state = replace(state, weights=told["weights"], moments=moments, memory=own_memory)
        left = [self.configurations[int(places[0])]]
        return replace(self, configurations=left, state=state, **told)

    def __repr__(self) -> str:
        trials, models = self.shape
        bad = int((self.diverged > 0).sum())
        lost = f", {bad} diverged" if bad else ""
        what = f"{self.record['approach']}, {self.record['model']}"
        sizes = f"{trials} trial{'s' * (trials != 1)} × {models} configuration{'s' * (models != 1)}"
        return f"GridFit({what}: {sizes}{lost})"


def merge(grid: list[Configuration], parts: Sequence[tuple[list[int], GridFit]]) -> GridFit:
    """Make one grid of those that were trained apart, each with its places in the whole."""
    places, fits = [place for own, _ in parts for place in own], [fit for _, fit in parts]
    order, first = np.argsort(places), fits[0]
    names_told = dict.fromkeys(name for fit in fits for name in fit.record)
    told: dict[str, list[Any]] = {
        name: [fit.record.get(name) for fit in fits] for name in names_told
    }
    record = {n: v[0] if all(one == v[0] for one in v) else v for n, v in told.items()}
    record |= {"configurations": grid, "seconds": sum(told["seconds"])}
    if len(fits) == 1:
        return replace(first, configurations=grid, record=record)
    record["key"] = sha256("".join(told["key"]).encode()).hexdigest()

    def whole(name: str) -> Any:
        values = [getattr(fit, name) for fit in fits]
        if isinstance(values[0], Mapping):
            return {n: np.concatenate([one[n] for one in values], 1)[:, order] for n in values[0]}
        return np.concatenate(values, 1)[:, order]

    apart = np.empty((first.shape[0], len(grid)), object)
    for own, fit in parts:
        for (trial, here), _ in np.ndenumerate(fit.diverged):
            apart[trial, own[here]] = partial(fit.module, trial, here)
    names = ("history", "errors", "diverged", "stopped")
    return replace(
        first, configurations=grid, weights={}, record=record, state=None, apart=apart,
        **{name: whole(name) for name in names},
    )  # fmt: skip


def split_errors(curves: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return histories by name, and the standard errors, which are named ``"… error"``."""
    found = {n.removesuffix(" error"): v for n, v in curves.items() if n.endswith(" error")}
    return {n: v for n, v in curves.items() if not n.endswith(" error")}, found


def predict(module: nn.Module, x: Any, most: int = 4096) -> Tensor:
    """Return the logits ``[n, k]`` of one model, block by block, on the CPU."""
    where = next(module.parameters())
    shape = getattr(module, "example_shape", x.shape[1:])
    check_shape(x.shape[1:], shape)
    out = []
    with torch.no_grad():
        for start in range(0, max(x.shape[0], 1), most):  # of no rows, too, the width is k
            block = x[start : start + most]
            block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
            rows = torch.from_numpy(np.array(block)).to(where)  # a copy: a module may write to it
            out.append(module(rows.view(len(rows), *shape)).cpu())
    return torch.cat(out)


def run_record(
    run: Run, model: Any, precision: str, planned: Plan, x: Any, seed: int
) -> dict[str, Any]:
    """Write down how the grid is trained; `key` is the hash of all that decides the result."""
    made = type(model) if isinstance(model, nn.Module) else model
    told: dict[str, Any] = {
        "approach": run.approach.name,
        "approach_options": {name: plain(value) for name, value in run.approach.options.items()},
        "model": made if isinstance(made, str) else getattr(made, "__name__", str(made)),
        "parameters": sum(p.numel() for p in run.modules[0].parameters()),
        "configurations": [dict(one) for one in run.grid],
        "optimizer": run.optimizer,
        "epochs": run.epochs,
        "batch_size": run.size,
        "seed": int(seed),
        "seeds": [trial.seed for trial in run.trials],
        "precision": precision,
        "device": run.numbers.device.type,
        "data": fingerprint(x, [trial.sets for trial in run.trials]),
    }
    if (code := run.approach.source.code) is not None:
        told["code"] = code
    if run.pace is not None:
        at = [run.pace.schedule(i / 10) for i in range(11)] if run.pace.schedule else None
        told |= {"schedule": at, "warmup": run.pace.warmup}
    if run.clip is not None:
        told["clip"] = run.clip
    if run.drop_last:
        told["drop_last"] = True
    if run.reach is not None:
        told["augment"] = run.reach
    hidden = sha256(json.dumps(told, sort_keys=True, default=str).encode())
    hidden.update(repr(run.features.shape).encode())
    if run.pace is not None and run.pace.schedule:
        hidden.update(repr([run.pace.schedule(i / 1000) for i in range(1001)]).encode())
    for trial in run.trials:
        for extra in (trial.rows, trial.weight):
            hidden.update(b"-" if extra is None else extra.tobytes())
        if trial.rate is not None:
            hidden.update(b"rate" + trial.rate.tobytes())
        if trial.evidence is not None:
            hidden.update(b"evidence" + trial.evidence.likelihood.tobytes())
    for module in run.modules:
        for value in module.state_dict().values():
            hidden.update(value.detach().cpu().reshape(-1).view(torch.uint8).numpy().tobytes())
        hidden.update(repr(module).encode())
        for part in module.modules():
            plain_ones = {n: v for n, v in vars(part).items() if isinstance(v, _PLAIN)}
            hidden.update(repr(sorted(plain_ones.items())).encode())
    hidden.update(repr((sorted(run.recorded), run.stopping)).encode())
    for name, (watch, features) in run.watches.items():
        hidden.update(repr((name, list(watch.measures or ()))).encode())
        rows = None if watch.x is None else fingerprint(features.x)
        _digest(hidden, [watch.target, watch.rows, rows])
        for named in ("rate", "weight", "groups"):
            if getattr(watch, named) is not None:
                _digest(hidden, [named, getattr(watch, named)])
    if run.start is not None:
        tensors = [run.start.weights, *run.start.moments]
        _digest(hidden, ["tensors", "steps", "epochs", tensors, run.start.steps, run.start.epochs])
        _digest(hidden, [] if run.start.memory is None else run.start.memory)
    told["key"] = hidden.hexdigest()
    if run.trials[0].rate is not None:
        told["learned_from"] = "every answer"
    device, python = run.numbers.device, platform.python_version()
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _processor()
    told |= {"stack": list(planned.size), "device_name": name, "threads": torch.get_num_threads()}
    told |= {"resident": run.features.resident}
    told["versions"] = {"ruleout": __version__, "torch": torch.__version__, "python": python}
    return told


_PLAIN = (bool, int, float, str)  # what a module may have as settings


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


def fingerprint(x: Any, sets: Any = ()) -> str:
    """Return a sha256 over features and label sets: what a model was trained on.

    Of more than 1 GiB, evenly spaced rows are read.
    """
    digest = sha256(repr((x.shape, str(x.dtype))).encode())
    csr = hasattr(x, "indptr")
    row = 1 if csr else max(1, int(x[:1].nbytes)) * _EVERY
    for block in (x.data, x.indices, x.indptr) if csr else _spaced(x, max(1, (_MOST // row))):
        digest.update(np.ascontiguousarray(block).tobytes())
    for one in sets:
        digest.update(one.packed.tobytes())
        digest.update(repr(one.classes).encode())
    return digest.hexdigest()


_MOST, _EVERY = 1 << 30, 256  # bytes, rows


def _spaced(x: NDArray[Any], most: int) -> Iterator[NDArray[Any]]:
    """Walk over blocks of 256 rows, at most `most` of them, evenly spaced."""
    blocks = -(-len(x) // _EVERY)
    for block in range(0, blocks, max(1, -(-blocks // most))):
        yield x[block * _EVERY : (block + 1) * _EVERY]
