"""`fit_grid`: one call trains a whole grid."""

from __future__ import annotations

import json
import platform
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.methods import Approach
from ruleout.methods import approach as find_approach
from ruleout.models import build
from ruleout.training.batches import Trial
from ruleout.training.checkpoints import Checkpoint
from ruleout.training.features import Features, check_features, fingerprint
from ruleout.training.grids import Grid, configurations, loss_options, with_options
from ruleout.training.nets import dense_layers, pays_to_stack
from ruleout.training.optimizers import check_optimizer
from ruleout.training.planning import Block, Plan, halves, out_of_memory, plan
from ruleout.training.result import GridFit
from ruleout.training.stack import Run, Stack, Stopping, Trained
from ruleout.training.watches import Watch, features_of
from ruleout.version import __version__

__all__ = ["PRECISIONS", "fit_grid"]

#: name: (dtype of the weights, dtype of the matrix products, whether TF32 is allowed)
PRECISIONS = {
    "float32": (torch.float32, torch.float32, False),
    "float64": (torch.float64, torch.float64, False),
    "tf32": (torch.float32, torch.float32, True),
    "bf16": (torch.float32, torch.bfloat16, False),
}


def fit_grid(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    approach: str | Approach = "log",
    model: str | Callable[..., nn.Module] = "linear",
    grid: Grid | None = None,
    epochs: int = 250,
    batch_size: int = 256,
    optimizer: str = "adam",
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
    model_options: Mapping[str, Any] | None = None,
    watch: Mapping[str, Watch] | None = None,
    every: int = 1,
    tail: int = 0,
    stopping: Stopping | None = None,
    device: str | torch.device | None = None,
    precision: str = "float32",
    stack: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    start: GridFit | None = None,
    moments: bool = True,
    progress: Callable[[int, int], None] | None = None,
) -> GridFit:
    """Train a grid of configurations for several trials, all models stacked in one program.

    Parameters
    ----------
    x
        ``[n, ...]``: an array, a memory map of a file too large for memory, a SciPy sparse matrix.
    sets
        What was ruled out for each row. A list makes several trials, which differ in their seed;
        a :class:`~ruleout.training.Trial` can also choose its rows, weights and seed.
    approach
        A name of :func:`ruleout.approaches`, or an approach.
    model
        A name of :data:`ruleout.models.MODELS`, or a function ``(shape, classes) → nn.Module``.
        Linear models and ReLU perceptrons are stacked natively, other modules through
        `torch.func` where that pays, else trained one after another.
    grid
        ``"paper"``, or values for ``learning_rate``, ``weight_decay`` and options of the loss: see
        :func:`~ruleout.training.configurations`.
    epochs, batch_size, optimizer
        The paper: 250, 256, ``"adam"`` (weight decay inside the gradient); also ``"adamw"``,
        ``"sgd"``.
    seed
        Trial t starts from seed + t: first weights and batch order.
    shape
        The shape of one example where x is flat but the model is not, such as ``(3, 32, 32)``.
    model_options
        For the model, such as ``{"hidden": (300, 100)}``.
    watch
        Rows to measure after each epoch, by name.
    every, tail
        Keep histories of every so many epochs and of the last `tail`; the last is always kept.
    stopping
        Stop a configuration early and keep its best weights.
    device
        None: the CPU. ``"cuda"`` trains with one captured CUDA graph per step.
    precision
        ``"float32"``, ``"float64"``, ``"tf32"`` (float32 with TF32 matrix products, CUDA only) or
        ``"bf16"`` (float32 weights, bfloat16 matrix products).
    stack
        How many configurations train at once; None: chosen from memory and cache.
    checkpoint, checkpoint_seconds
        A folder. Started again with the same arguments after a crash, the run goes on from there.
    start
        A fit to go on from: weights, moments, and the order of the epochs that would have followed.
    moments
        Keep what another fit needs to go on from this one.
    progress
        Called with (epochs done, epochs in all), summed over stacks.

    Returns
    -------
    GridFit

    Examples
    --------
    >>> import numpy as np, ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> test = ro.training.Watch(y, x=x)
    >>> grid = {"learning_rate": [1e-2, 1e-5]}
    >>> fit = fit_grid(x, sets, grid=grid, epochs=3, watch={"test": test})
    >>> fit
    GridFit(log, linear: 1 trial × 2 configurations)
    >>> fit.history["test/accuracy"].shape
    (1, 2, 3)
    """
    began = time.perf_counter()
    x = check_features(x)
    trials, seeds = _trials(sets, x.shape[0], seed)
    row = approach if isinstance(approach, Approach) else find_approach(approach)
    configs = configurations(grid)
    dtype, compute, tf32 = _precision(precision)
    where = _device(device, precision)
    with_options(row, loss_options(configs, torch.zeros(0)))  # raises for options it does not have
    _check_counts(epochs=epochs, batch_size=batch_size, every=every)
    _check_monitor(stopping, watch or {})
    classes = len(trials[0].sets.classes)
    shape = tuple(x.shape[1:]) if shape is None else tuple(shape)
    if int(np.prod(shape)) != int(np.prod(x.shape[1:])):
        raise InputError(f"x has rows of {x.shape[1:]}", f"shape={shape} must hold as many numbers")

    def fresh(trial: int) -> nn.Module:
        made = build(model, shape, classes, seed=seeds[trial], **(model_options or {}))
        made.example_shape = shape  # type: ignore[assignment]
        return made

    modules = [fresh(trial) for trial in range(len(trials))]
    native = dense_layers(modules[0]) is not None
    with _matmul(tf32), _threads(where, modules[0], len(configs) * len(trials), batch_size):
        features = Features(x, None if native else shape, compute, where)
        watches = {n: (w, features_of(n, w, features)) for n, w in (watch or {}).items()}
        last = range(max(1, epochs - max(tail, 1) + 1), epochs + 1)
        run = Run(
            features, trials, seeds, row, configs, modules, check_optimizer(optimizer), epochs,
            batch_size, dtype, compute, where, watches,
            frozenset([*range(every, epochs + 1, every), *last]), stopping,
            start.state if start is not None else {}, moments,
        )  # fmt: skip
        if start is not None and start.shape != (len(trials), len(configs)):
            raise ValueError(
                f"start holds {start.shape[0]} × {start.shape[1]} models, this fit asks for "
                f"{len(trials)} × {len(configs)}; go on with the same trials and grid"
            )
        together = native or pays_to_stack(modules[0])
        planned = plan(run, stack if together else 1, together)
        record = _record(run, model, precision, planned, x, seed)
        saved = (
            None
            if checkpoint is None
            else Checkpoint(Path(checkpoint), record["key"], checkpoint_seconds)
        )
        if saved is not None:
            planned = saved.plan(planned)
            record["stack"] = list(planned.size)
        done = _train(run, planned, saved, progress)
    record["seconds"] = round(time.perf_counter() - began, 3)
    return _collect(run, done, record, fresh)


# ---------------------------------------------------------------------- what was asked


def _trials(sets: Any, n: int, seed: int) -> tuple[list[Trial], list[int]]:
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
    seeds = [int(seed) + t if one.seed is None else int(one.seed) for t, one in enumerate(trials)]
    if min(seeds) < 0:
        raise ValueError(f"a seed must be a whole number, zero or above, not {min(seeds)}")
    return [_as_arrays(trial) for trial in trials], seeds


def _as_arrays(trial: Trial) -> Trial:
    rows = None if trial.rows is None else np.asarray(trial.rows, np.intp)
    weight = None if trial.weight is None else np.asarray(trial.weight, float)
    return replace(trial, rows=rows, weight=weight)


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
    if trial.rows is not None and not (np.min(trial.rows) >= 0 and np.max(trial.rows) < n):
        raise InputError(f"the rows{which} go beyond x", f"give numbers from 0 to {n - 1}")
    if trial.weight is not None:
        _check_weight(np.asarray(trial.weight, float), count, which)


def _check_weight(weight: Any, count: int, which: str) -> None:
    if weight.shape != (count,):
        raise InputError(
            f"the weights{which} have shape {weight.shape}", f"give {count}, one for each row"
        )
    if not np.isfinite(weight).all() or (weight < 0).any() or not weight.any():
        raise InputError(
            f"the weights{which} are negative, not finite or all zero", "give numbers above zero"
        )


def _precision(name: str) -> tuple[torch.dtype, torch.dtype, bool]:
    if name not in PRECISIONS:
        say = nearest(name, PRECISIONS, f"the precisions are {', '.join(PRECISIONS)}")
        raise ValueError(f"unknown precision {brief(name)}; {say}")
    return PRECISIONS[name]


def _device(device: str | torch.device | None, precision: str) -> torch.device:
    try:
        found = torch.device("cpu" if device is None else device)
    except RuntimeError:
        raise ValueError(f"unknown device {brief(device)}; say 'cpu' or 'cuda'") from None
    if found.type == "cuda" and not torch.cuda.is_available():
        raise ValueError("this machine has no CUDA device that torch can use; say device='cpu'")
    if precision == "tf32" and found.type != "cuda":
        raise ValueError("tf32 needs a CUDA device; use precision='float32' on a CPU")
    return found


def _check_monitor(stopping: Stopping | None, watch: Mapping[str, Watch]) -> None:
    names = [f"{name}/{m}" for name, one in watch.items() for m in one.measures or ("accuracy",)]
    if stopping is not None and stopping.monitor not in names:
        say = f"the watches measure {', '.join(names)}" if names else "give a watch"
        say = nearest(stopping.monitor, names, say)
        raise ValueError(f"stopping asks for {stopping.monitor!r}, which is not measured; {say}")


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1, not {brief(value)}")


@contextmanager
def _matmul(tf32: bool) -> Iterator[None]:
    """Allow TF32 for this run alone."""
    settings = torch.backends.cuda.matmul
    before = settings.fp32_precision
    settings.fp32_precision = "tf32" if tf32 else "ieee"
    try:
        yield
    finally:
        settings.fp32_precision = before


_SMALL = 200e6  # operations of a step below which one thread does not wait for another


@contextmanager
def _threads(device: torch.device, module: nn.Module, models: int, size: int) -> Iterator[None]:
    """Let one thread take small steps.

    A second thread saves little there, and where another program needs the second core, both
    threads wait for each other: such runs were seen to take twenty times as long.
    """
    weights = sum(p.numel() for p in module.parameters())
    before = torch.get_num_threads()
    small = device.type == "cpu" and 6 * weights * size * models < _SMALL
    try:
        if small and before > 1:
            torch.set_num_threads(1)
        yield
    finally:
        if torch.get_num_threads() != before:
            torch.set_num_threads(before)


# ---------------------------------------------------------------------- training


def _train(
    run: Run,
    planned: Plan,
    saved: Checkpoint | None,
    progress: Callable[[int, int], None] | None,
) -> list[tuple[Block, Trained]]:
    """Train block after block; one that does not fit the memory is cut in two."""
    todo = list(planned.blocks)
    done: list[tuple[Block, Trained]] = []
    while todo:
        before, every = len(done) * run.epochs, (len(done) + len(todo)) * run.epochs
        try:
            trained = _train_block(run, todo[0], saved, before, every, progress)
        except (RuntimeError, MemoryError) as error:
            if not out_of_memory(error) or not halves(todo[0]):
                raise
            todo[:1] = _cut(run, todo[0])
            if saved is not None:
                saved.note(planned._replace(blocks=[block for block, _ in done] + todo))
            continue
        done.append((todo.pop(0), trained))
    return done


def _cut(run: Run, block: Block) -> list[Block]:
    count = len(block.trials) * (block.stop - block.start)
    say = f"{count} models do not fit the memory of {run.device}; training them in two parts"
    warnings.warn(say, RuntimeWarning, stacklevel=4)
    if run.device.type == "cuda":
        torch.cuda.empty_cache()
    return halves(block)


def _train_block(
    run: Run,
    block: Block,
    saved: Checkpoint | None,
    before: int,
    every: int,
    progress: Callable[[int, int], None] | None,
) -> Trained:
    stack = Stack(run, block.trials, block.models)
    if saved is not None:
        saved.restore(block, stack)
    while not stack.finished:
        stack.run_epoch()
        if saved is not None:
            saved.save(block, stack, now=stack.finished)
        if progress is not None:
            progress(before + stack.epoch, every)
    return stack.trained()


# ---------------------------------------------------------------------- what comes out


def _collect(
    run: Run, done: list[tuple[Block, Trained]], record: dict[str, Any], fresh: Any
) -> GridFit:
    """Put the blocks together again."""
    shape, epochs = (len(run.trials), len(run.grid)), np.array(sorted(run.recorded))

    def whole(parts: list[Tensor]) -> Tensor:
        out = parts[0].new_zeros((*shape, *parts[0].shape[2:]))
        for (block, _), part in zip(done, parts, strict=True):
            out[list(block.trials), block.models] = part
        return out

    before = int(run.start.get("epochs", 0))
    trained = [one for _, one in done]
    first = trained[0]
    curves = {name: np.full((*shape, len(epochs)), np.nan) for name in first.history}
    steps = np.zeros(len(run.trials))
    for block, one in done:
        steps[list(block.trials)] = one.steps
        for name, values in one.history.items():  # shorter where all lost their patience
            curves[name][list(block.trials), block.models, : values.shape[-1]] = values.numpy()
    tensors = [
        {name: whole([one.tensors[place][name] for one in trained]) for name in found}
        for place, found in enumerate(first.tensors)
    ]
    return GridFit(
        configurations=[dict(one) for one in run.grid],
        weights={name: whole([one.weights[name] for one in trained]) for name in first.weights},
        epochs=epochs,
        history={n: v for n, v in curves.items() if not n.endswith(" error")},
        errors={n.removesuffix(" error"): v for n, v in curves.items() if n.endswith(" error")},
        diverged=whole([one.diverged for one in trained]).numpy(),
        stopped=whole([one.stopped for one in trained]).numpy(),
        record=record,
        fresh=fresh,
        state={"tensors": tensors, "steps": steps, "epochs": before + run.epochs},
    )


def _record(
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
