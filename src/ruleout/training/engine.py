"""`fit_grid` trains a whole grid and goes on where it was killed; `estimate_seconds`: how long."""

from __future__ import annotations

import gc
import json
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ruleout.labels import LabelSets
from ruleout.labels.atomic import atomic_write, write_text
from ruleout.labels.errors import InputError, brief
from ruleout.methods import Approach
from ruleout.methods import approach as find_approach
from ruleout.models import build
from ruleout.training import grids, validation
from ruleout.training import stack as stacks
from ruleout.training.batches import Features, Trial, find_reach
from ruleout.training.device import PRECISIONS, Numbers, find_device, matmul, threads
from ruleout.training.grid_fit import (
    GridFit,
    State,
    fingerprint,
    merge,
    run_record,
    split_errors,
)
from ruleout.training.nets import SIDE_BY_SIDE, dense_layers, try_module
from ruleout.training.optimizers import check_optimizer, find_pace
from ruleout.training.watches import Watch, features_of

#: Called after every epoch with (epochs done, epochs in all), summed over the stacks of a fit.
Progress: TypeAlias = Callable[[int, int], None]

_Done: TypeAlias = list[tuple[stacks.Block, stacks.Trained]]


def fit_grid(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    approach: str | Approach = "log",
    model: str | nn.Module | Callable[..., nn.Module] = "linear",
    grid: grids.Grid | None = None,
    epochs: int = 250,
    batch_size: int = 256,
    optimizer: str = "adam",
    schedule: str | Callable[[float], float] | None = None,
    warmup: float | None = None,
    clip: float | None = None,
    drop_last: bool = False,
    augment: Sequence[str] = (),
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
    model_options: Mapping[str, Any] | None = None,
    watch: Mapping[str, Watch] | None = None,
    every: int = 1,
    tail: int = 0,
    stopping: stacks.Stopping | None = None,
    device: str | torch.device | None = None,
    precision: str = "float32",
    stack: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_seconds: float = 30.0,
    start: GridFit | State | None = None,
    moments: bool = True,
    progress: Progress | None = None,
    callback: stacks.Callback | None = None,
) -> GridFit:
    """Train a grid of configurations for several trials, all models stacked in one program.

    Parameters
    ----------
    x
        ``[n, ...]``: an array, a memory map of a file too large for memory, a SciPy sparse matrix.
    sets
        What was ruled out for each row. A list makes several trials, which differ in their seed;
        a :class:`~ruleout.training.Trial` can also choose its rows, weights and seed, and bring
        the rates with which every answer is learned from.
    approach
        A name of :func:`ruleout.approaches`, or an approach.
    model
        A name of :data:`ruleout.models.MODELS`, a function ``(shape, classes) → nn.Module``, or a
        module. Linear models and ReLU perceptrons are stacked natively, other modules through
        `torch.func` where that pays, else side by side on a GPU and one after another on a CPU. A
        last batch of a single row is left out where the model has batch norm.
    grid
        ``"paper"``, or values for ``learning_rate``, ``weight_decay``, ``batch_size``,
        ``approach``, ``schedule``, options of the model (``model.hidden``) and of the loss: see
        :func:`~ruleout.training.configurations`. What cannot be stacked, such as batch sizes and
        models, trains one after another.
    epochs, batch_size, optimizer
        The paper: 250, 256, ``"adam"`` (weight decay inside the gradient); also ``"adamw"``,
        ``"sgd"``, ``"sgd-momentum"`` (0.9), and those of
        :func:`~ruleout.training.register_optimizer`.
    schedule, warmup
        How the learning rate changes: ``"cosine"`` and ``"linear"`` bring it to zero,
        ``"one-cycle"`` lets it grow for three tenths of the epochs, then cosine; a function
        makes a factor of the share of this training that is done, 0 to 1. During the first `warmup`
        epochs (1.5, say) it grows to its full size. None: 0, or a fifth of the epochs where the
        likelihood reads evidence. Its gradient vanishes in rows whose classes seem impossible, and
        large first steps give up whole classes for good (benchmarks/wrong_answers.py).
    clip
        The largest norm of a model's gradient; a larger one is scaled down to it.
    drop_last
        Leave out the last batch of an epoch if it is short, as long as there is another.
    augment
        How images change whenever they are read, by the seed of the trial: ``"flip"`` left to right
        half of the time, ``"crop"``: move by up to an eighth of their size, over zeros.
    seed
        Trial t starts from seed + t: first weights and batch order.
    shape, model_options
        The shape of one example where x is flat but the model is not, such as ``(3, 32, 32)``; and
        options of the model, such as ``{"hidden": (300, 100)}``.
    watch
        Rows to measure after each epoch, by name.
    every, tail
        Keep histories of every so many epochs and of the last `tail`; the last is always kept.
    stopping
        Stop a configuration early and keep its best weights.
    device
        None: the CPU. ``"cuda"`` trains with one captured CUDA graph per step.
    precision
        ``"float32"``, ``"float64"``, ``"tf32"`` (float32 with TF32 products, CUDA only) or
        ``"bf16"`` (float32 weights, bfloat16 matrix products and convolutions).
    stack
        How many configurations train at once; None: chosen from memory and cache.
    checkpoint, checkpoint_seconds
        A folder. Started again with the same arguments after a crash, the run goes on from there.
    start, moments
        A fit, or its state, to go on from: weights, moments, the order of the epochs that would
        have followed, and what the same approach remembers of the same rows. `moments` keeps what
        another fit needs for that; never with `stopping`.
    progress
        Called after every epoch with (epochs done, epochs in all), summed over stacks.
    callback
        Called after every kept epoch of every stack with an :class:`~ruleout.training.EpochEnd`:
        the histories so far, and a way to stop.

    Examples
    --------
    >>> import ruleout as ro
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
    told = dict(locals())
    began = time.perf_counter()
    configs = grids.configurations(grid)
    if any(map(grids.set_apart, configs[0])):
        return _fit_parts(configs, told)
    x = validation.check_features(x)
    trials = validation.as_trials(sets, x.shape[0], seed)
    row = find_approach(approach)
    if trials[0].rate is not None:
        row.check_rate()
    found = find_device(device, precision)
    dtype, compute, tf32 = PRECISIONS[precision]
    numbers = Numbers(found, dtype, compute)
    grids.check_names(row, configs[0])
    for one in configs:  # raises for values that the loss cannot take
        row.with_options(**grids.loss_options(row, [one], torch.zeros(0)))
    grids.loss_options(row, configs, torch.zeros(0))
    validation.check_counts(epochs=epochs, batch_size=batch_size, every=every)
    validation.check_counts(stack=1 if stack is None else stack)
    validation.check_monitor(stopping, watch or {})
    if warmup is None:
        stuck = start is None and trials[0].evidence is not None and row.graded is not None
        warmup = epochs / 5 if stuck else 0.0
    pace = find_pace(schedule, warmup, epochs)
    if clip is not None and not (isinstance(clip, Real) and clip > 0):
        raise ValueError(f"clip must be a number above zero, not {brief(clip)}")
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function of an EpochEnd, not {brief(callback)}")
    classes = len(trials[0].sets.classes)
    shape = tuple(x.shape[1:]) if shape is None else validation.as_shape(shape)
    validation.check_shape(x.shape[1:], shape)

    def fresh(trial: int) -> nn.Module:
        own = int(trials[trial].seed or 0)
        made = build(model, shape, classes, seed=own, **(model_options or {}))
        made.example_shape = shape  # type: ignore[assignment]
        return made

    modules = [fresh(trial) for trial in range(len(trials))]
    native = dense_layers(modules[0]) is not None
    random, least = try_module(modules[0], classes)
    if least > 1 and min(batch_size, *(len(trial.sets) for trial in trials)) == 1:
        raise InputError("the model cannot train on a batch of one row", "give larger batches")
    with matmul(tf32), threads(numbers.device, modules[0], len(configs) * len(trials), batch_size):
        features = Features(x, None if native else shape, numbers)
        watches = {n: (w, features_of(n, w, features)) for n, w in (watch or {}).items()}
        last = range(max(1, epochs - max(tail, 1) + 1), epochs + 1)
        own = start.state if isinstance(start, GridFit) else start
        if isinstance(start, GridFit) and own is not None and own.memory is not None:
            data = fingerprint(x, [trial.sets for trial in trials])
            if (start.record["approach"], start.record["data"]) != (row.name, data):
                own = replace(own, memory=None)  # of other rows, or of other targets
        run = stacks.Run(
            features, trials, row, configs, modules, check_optimizer(optimizer), epochs,
            batch_size, numbers, watches,
            frozenset([*range(every, epochs + 1, every), *last]), stopping,
            own, moments and stopping is None,
            least, drop_last, pace, clip, callback, find_reach(augment, features.shape),
        )  # fmt: skip
        if start is not None:
            validation.check_start(run)
        planned = stacks.plan(run, stack, random)
        record = run_record(run, model, precision, planned, x, seed)
        saved = None
        if checkpoint is not None:
            saved = Checkpoint(Path(checkpoint), record["key"], checkpoint_seconds)
            planned = saved.plan(planned)
            record["stack"] = list(planned.size)
        done = _train(run, planned, saved, progress)
    record["seconds"] = round(time.perf_counter() - began, 3)
    return _collect(run, done, record, fresh)


def _fit_parts(grid: list[grids.Configuration], told: Mapping[str, Any]) -> GridFit:
    """Train what cannot be stacked one after another; `told` is all that `fit_grid` was."""
    parts = grids.split_grid(grid, told["batch_size"], told["model_options"])
    found, tell = [], told["progress"]
    if len(parts) > 1 and told["start"] is not None:
        raise ValueError("start goes on with one batch size and one model; the grid asks for more")
    shape = validation.as_shape(told["shape"] or validation.check_features(told["x"]).shape[1:])
    for _, own in parts:  # raises for options that the model cannot take
        build(told["model"], shape, 2, seed=0, **own["model_options"])
    for place, (places, own) in enumerate(parts):
        if told["checkpoint"] is not None:
            own["checkpoint"] = Path(told["checkpoint"]) / f"part-{place}"
        if tell is not None:
            own["progress"] = lambda n, of, past=place: tell(past * of + n, len(parts) * of)
        found.append((places, fit_grid(**{**told, **own})))
    return merge(grid, found)


def _train(
    run: stacks.Run, planned: stacks.Plan, saved: Checkpoint | None, progress: Progress | None
) -> _Done:
    """Train block after block; one that does not fit the memory is cut in two."""
    todo = list(planned.blocks)
    done: _Done = []

    def train(block: stacks.Block) -> stacks.Trained:
        stack = stacks.Stack(run, block.trials, block.models)
        if saved is not None:
            saved.restore(block, stack)
            stack.call()  # which is no part of a checkpoint, and may have stopped it there
        while not stack.finished:
            stack.run_epoch()
            if saved is not None:
                saved.save(block, stack, now=stack.finished)
            if progress is not None:
                past, blocks = len(done) * run.epochs, len(done) + len(todo)
                progress(past + stack.epoch, blocks * run.epochs)
        return stack.trained()

    while todo:
        try:
            trained = train(todo[0])
            done.append((todo.pop(0), trained))
            continue
        except (RuntimeError, MemoryError) as error:
            if not stacks.out_of_memory(error) or not stacks.halves(todo[0]):
                raise
        # Here the error no longer holds on to the memory.
        device, count = run.numbers.device, len(todo[0].trials) * (todo[0].stop - todo[0].start)
        say = f"{count} models do not fit the memory of {device}; training them in two parts"
        warnings.warn(say, RuntimeWarning, stacklevel=3)
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
        todo[:1] = stacks.halves(todo[0])
        if saved is not None:
            saved.note(planned._replace(blocks=[block for block, _ in done] + todo))
    return done


def _collect(run: stacks.Run, done: _Done, record: dict[str, Any], fresh: Any) -> GridFit:
    shape, epochs = (len(run.trials), len(run.grid)), np.array(sorted(run.recorded))

    def whole(parts: list[Tensor]) -> Tensor:
        out = parts[0].new_zeros((*shape, *parts[0].shape[2:]))
        for (block, _), part in zip(done, parts, strict=True):
            out[list(block.trials), block.models] = part
        return out

    trained = [one for _, one in done]
    first = trained[0]
    curves = {name: np.full((*shape, len(epochs)), np.nan) for name in first.history}
    steps = np.zeros(len(run.trials))
    for block, one in done:
        steps[list(block.trials)] = one.steps
        for name, values in one.history.items():  # shorter where all lost their patience
            curves[name][list(block.trials), block.models, : values.shape[-1]] = values.numpy()
    weights = {name: whole([one.weights[name] for one in trained]) for name in first.weights}
    state = None
    stopped = whole([one.stopped for one in trained]).numpy()
    if run.stopping is None and (stopped < run.epochs).any():
        record["stopped_by"] = "callback"
    elif first.moments is not None:
        moments = [
            {name: whole([(one.moments or [])[place][name] for one in trained]) for name in found}
            for place, found in enumerate(first.moments)
        ]
        memory = first.memory and {
            name: whole([(one.memory or {})[name] for one in trained]) for name in first.memory
        }
        past = run.start.epochs if run.start else 0
        state = State(weights, moments, steps, run.epochs + past, memory)
    diverged, grid = whole([one.diverged for one in trained]).numpy(), [*map(dict, run.grid)]
    known = (*split_errors(curves), diverged, stopped)
    return GridFit(grid, weights, epochs, *known, record, fresh, state)


_STEPS = 20  # that are timed, where they are quick
_QUICK = 1.0  # seconds below which a fit of a few steps is mostly its own start
_SHORT = 3e10  # multiplications that take less than a minute; not worth a probe
_RATE = 1e9  # multiplications in a second, roughly, for those


def estimate_seconds(
    x: Any,
    sets: LabelSets | Sequence[LabelSets | Trial],
    *,
    model: str | Callable[..., nn.Module] = "linear",
    grid: grids.Grid | None = None,
    epochs: int = 250,
    batch_size: int = 256,
    seed: int = 0,
    shape: tuple[int, ...] | None = None,
    model_options: Mapping[str, Any] | None = None,
    roughly: bool = False,
    **options: Any,
) -> float:
    """Estimate how many seconds :func:`ruleout.fit_grid` takes with the same arguments.

    A few steps are timed, of linear models and perceptrons with the whole grid at once; of other
    models on a GPU with those that train side by side, on a CPU, where they gain little from
    stacking, with one. `roughly` does without where the count of multiplications shows that the
    fit is short.

    >>> import ruleout as ro
    >>> x, y = ro.datasets.load("digits").train
    >>> sets = ro.draw(y, classes=10, seed=0)
    >>> estimate_seconds(x, sets, epochs=100, roughly=True) < 10
    True
    """
    for name in ("callback", "checkpoint", "progress", "warmup"):  # of the fit, not what is timed
        options.pop(name, None)
    configs = grids.configurations(grid)
    if any(map(grids.set_apart, configs[0])):
        same = {"model": model, "epochs": epochs, "seed": seed, "shape": shape, "roughly": roughly}
        parts = [own for _, own in grids.split_grid(configs, batch_size, model_options)]
        return sum(estimate_seconds(x, sets, **{**same, **options, **own}) for own in parts)
    x = validation.check_features(x)
    trials = validation.as_trials(sets, x.shape[0], seed)
    rows = max(len(trial.sets) for trial in trials)
    shape = tuple(x.shape[1:]) if shape is None else validation.as_shape(shape)
    classes = len(trials[0].sets.classes)
    net = build(model, shape, classes, seed=seed, **(model_options or {}))
    models, dense = len(configs) * len(trials), dense_layers(net) is not None
    kind = find_device(options.get("device"), options.get("precision", "float32")).type
    if dense:
        weights = sum(part.numel() for part in net.parameters())
        step = 3.0 * weights * models * batch_size  # forward, and backward twice
        work = step / batch_size * rows * epochs
        if roughly and work < _SHORT:
            return work / _RATE
        some = min(rows, batch_size * min(_STEPS, max(1, int(_RATE / step))))
    else:
        some = min(rows, 32 if kind == "cpu" else batch_size * _STEPS)
        trials, configs = trials[:1], configs[: SIDE_BY_SIDE.get(kind, 1)]

    def seconds(count: int, times: int) -> float:
        began = time.perf_counter()
        fit_grid(
            x, [trial.part(np.arange(min(count, len(trial.sets)))) for trial in trials],
            model=model, grid=configs, epochs=times, batch_size=min(batch_size, count), shape=shape,
            model_options=model_options, **options,
        )  # fmt: skip
        return time.perf_counter() - began

    seconds(min(some, 32), 1)  # the first run also loads what others find loaded
    epoch = seconds(some, 1)
    if epoch < _QUICK or kind == "cuda":  # which captures its steps in the first one
        epoch = max(seconds(some, 3) - epoch, 0.0) / 2 or epoch
    return epoch * epochs * rows / some * models / (len(trials) * len(configs))


_SCHEMA = 1


class Checkpoint:
    """A run that was killed goes on from the end of an epoch, bit for bit on a CPU.

    Its random state is its seeds and the number of the epoch, so the end of an epoch holds all of
    it. The folder is made if absent; one whose key (of the record) differs is refused.
    """

    def __init__(self, folder: Path, key: str, seconds: float) -> None:
        self.folder, self.key, self.seconds = folder, key, seconds
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError) as error:
            raise InputError("a checkpoint is a folder", "name another", file=folder) from error
        self._last = time.monotonic()

    def plan(self, planned: stacks.Plan) -> stacks.Plan:
        """Return the plan of the run that was killed, or note the one given."""
        file = self.folder / "run.json"
        if not file.exists():
            self.note(planned)
            return planned
        try:
            known = json.loads(file.read_text())
            blocks = [stacks.Block(tuple(t), a, b) for t, a, b in known["blocks"]]
            size, key, schema = tuple(known["size"]), known["key"], known["schema"]
        except (ValueError, KeyError, TypeError) as error:
            raise self._refused("cannot be read", "remove it to start anew") from error
        if schema > _SCHEMA:
            raise self._refused("was written by a newer ruleout", "update ruleout, or remove it")
        if key != self.key:
            other = "belongs to a run with other data or settings"
            raise self._refused(other, "choose another folder")
        return stacks.Plan(size, blocks)

    def _refused(self, problem: str, remedy: str) -> InputError:
        return InputError(f"this checkpoint {problem}", remedy, file=self.folder)

    def note(self, planned: stacks.Plan) -> None:
        """Write down which models train together: other stacks would round differently."""
        known = {"schema": _SCHEMA, "key": self.key, **planned._asdict()}
        write_text(self.folder / "run.json", json.dumps(known, indent=1))

    def _file(self, block: stacks.Block) -> Path:
        trials = "-".join(map(str, block.trials))
        return self.folder / f"trials-{trials}_models-{block.start}-{block.stop}.safetensors"

    def save(self, block: stacks.Block, stack: stacks.Stack, *, now: bool = False) -> None:
        """Write the state of a stack, if it is time or must be done now."""
        if not now and time.monotonic() - self._last < self.seconds:
            return
        tensors = {name: value.cpu().contiguous() for name, value in stack.tensors().items()}
        facts = {"key": self.key, "epoch": str(stack.epoch)}
        with atomic_write(self._file(block)) as out:
            out.write(save(tensors, facts))
        self._last = time.monotonic()

    def restore(self, block: stacks.Block, stack: stacks.Stack) -> None:
        """Bring a stack to where its last checkpoint was, if there is one."""
        file = self._file(block)
        if not file.exists():
            return
        try:
            with safe_open(file, "pt") as held:
                facts: dict[str, Any] = held.metadata() or {}
                tensors = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
            if facts.get("key") != self.key:
                raise self._refused("holds the file of another run", "choose another folder")
            stack.restore(tensors, int(facts["epoch"]))
        except (SafetensorError, KeyError, RuntimeError) as error:
            remedy = "remove it to start anew"
            raise InputError("this checkpoint is damaged", remedy, file=file) from error
