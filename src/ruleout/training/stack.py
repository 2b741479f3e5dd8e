"""One stack: some trials and configurations that train together, step by step."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from math import inf, prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.losses import Loss, Seen
from ruleout.methods import Approach
from ruleout.models import seeded
from ruleout.training import nets
from ruleout.training.batches import Batch, BatchSchedule, Features, Shape, Trial
from ruleout.training.device import Numbers, cache_size, room
from ruleout.training.grid_fit import State, split_errors
from ruleout.training.grids import Configuration, loss_options
from ruleout.training.optimizers import At, Optimizer, Pace, Product, Rates, rates
from ruleout.training.watches import Watch, Watcher


@dataclass(frozen=True)
class Stopping:
    """When to stop a configuration early, and keep its best weights.

    `monitor` is a measure of a watch, such as ``"valid/accuracy"``; `patience` is the number of
    measured epochs without a better value after which to stop.
    """

    monitor: str
    patience: int = 10
    higher_is_better: bool = True


@dataclass
class EpochEnd:
    """Where some models stand at the end of an epoch: what a callback is handed.

    A fit may train its grid in several stacks, one after another, and then calls for each of them.
    """

    approach: str
    trials: list[int]  #: T of them, by number
    configurations: Sequence[Configuration]  #: C of each trial
    epoch: int  #: how many epochs are done
    epochs: int  #: how many there will be at most
    #: as in :class:`GridFit`, each ``[T, C, E]`` of the E epochs kept so far; so are `errors`
    history: dict[str, NDArray[np.float64]]
    errors: dict[str, NDArray[np.float64]]
    stopped: bool = False

    def stop(self) -> None:
        """Train these models no further; they keep these weights, or the best with `stopping`."""
        self.stopped = True


#: Called after every kept epoch of a stack with where it stands.
Callback: TypeAlias = Callable[[EpochEnd], object]


@dataclass(frozen=True)
class Run:
    """What all stacks of a run share."""

    features: Features
    trials: Sequence[Trial]
    approach: Approach
    grid: Sequence[Configuration]
    modules: Sequence[nn.Module]  # one per trial
    optimizer: str
    epochs: int
    size: int
    numbers: Numbers
    watches: Mapping[str, tuple[Watch, Features]]
    recorded: frozenset[int]
    stopping: Stopping | None = None
    start: State | None = None
    moments: bool = True  # keep them for another fit
    least: int = 1  # rows that a batch must have
    drop_last: bool = False  # so that it must be full
    pace: Pace | None = None  # of the learning rate
    clip: float | None = None  # the largest norm of a gradient
    callback: Callback | None = None
    reach: tuple[int, int, int] | None = None  # how images are moved

    @property
    def rows_each(self) -> int:
        """How many rows the largest trial has."""
        return max(len(trial.sets) for trial in self.trials)

    @property
    def graded(self) -> Approach | None:
        """The approach that reads the evidence of the trials; None where it reads their sets."""
        return None if self.trials[0].evidence is None else self.approach.graded


class Trained(NamedTuple):  # what is left of a stack, on the CPU
    weights: dict[str, Tensor]  # [T, C, ...]
    history: dict[str, Tensor]  # [T, C, E]
    diverged: Tensor  # [T, C]
    stopped: Tensor  # [T, C]
    moments: list[dict[str, Tensor]] | None  # to go on from
    steps: NDArray[np.float64]  # [T]
    memory: dict[str, Tensor] | None  # [T, C, ...]: what the approach remembers of rows


class Stack:
    """Where the training of some trials (numbers, most steps first) and configurations stands."""

    def __init__(self, run: Run, trials: Sequence[int], models: slice) -> None:
        self.run, self.trials, self.models = run, list(trials), models
        self.device, self.dtype, _ = run.numbers
        self.grid = run.grid[models]
        own = [run.trials[t] for t in trials]
        least = run.size if run.drop_last else run.least
        form, graded = run.approach.form, run.graded is not None
        self.schedule = BatchSchedule(own, form, run.size, run.numbers, least, graded, run.reach)
        modules, rows = [run.modules[t] for t in trials], run.features.shape or run.features.width
        self.net = nets.build_net(modules, len(self.grid), rows, run.numbers)
        steps, count = run.epochs * max(self.schedule.steps), len(own) * len(self.grid)
        long = steps * (count + 5) >= _LONGER.get(self.device.type, inf)
        if long and isinstance(self.net, nets.Modules):
            self.net.compiled = run.size
        self.optimizer = Optimizer(run.optimizer, self.net.parameters)
        self._speed = [
            torch.tensor([one[name] for one in self.grid], dtype=torch.float64)
            for name in ("learning_rate", "weight_decay")
        ]
        self.shapes = [self.schedule.shape(step) for step in range(max(self.schedule.steps))]
        self.watchers = [
            Watcher(n, w, trials, f, own[0].sets.classes) for n, (w, f) in run.watches.items()
        ]
        shape = (len(own), len(self.grid))
        self.total = torch.zeros(shape, dtype=torch.float64, device=self.device)
        options = loss_options(run.approach, self.grid, self.net.parameters[0])
        approach = run.graded or run.approach.with_options(**options)
        self.memory = None if approach.memory is None else RowMemory(self, approach.source)
        self.loss_gradient = LossGradient(approach, run.epochs * len(self.shapes))
        self.epoch, self.steps_before = 0, np.zeros(len(own))
        self.before = run.start.epochs if run.start else 0  # of the fit that this one goes on from
        self.diverged = torch.zeros(shape, dtype=torch.int64, device=self.device)
        self.history: dict[str, list[Tensor]] = {}
        self._steps = torch.tensor(self.schedule.steps, device=self.device).unsqueeze(1)
        self._laid: tuple[Tensor, Tensor, Tensor] | None = None
        self.best = _Best(self, run.stopping) if run.stopping else None
        self.halted = False  # by a callback
        resident = self.schedule.resident and run.features.resident
        self._graphs = Graphs(self) if resident and self.device.type == "cuda" else None
        self._resume()

    def _resume(self) -> None:
        start = self.run.start
        if start is None:
            return
        stacked = [self.net.parameters, *zip(*self.optimizer.moments, strict=True)]
        for tensors, known in zip(stacked, [start.weights, *start.moments], strict=True):
            for name, view in self._views(list(tensors)).items():
                view.copy_(known[name][self.trials][:, self.models])
        for name, buffer in self.net.buffers.items():
            buffer.copy_(start.weights[name][self.trials][:, self.models])
        if self.memory is not None and start.memory is not None:
            own = {n: kept[self.trials][:, self.models] for n, kept in start.memory.items()}
            self.memory.restore(own)
        self.steps_before = np.asarray(start.steps, float)[self.trials]

    def _views(self, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
        """Return tensors like the weights by name; of tied weights by the first."""
        found = self.net.named(tensors)
        own = self.net.own if isinstance(self.net, nets.Modules) else found
        return {name: found[name] for name in own}

    def run_epoch(self) -> None:
        self.epoch += 1
        self._lay_rates()
        self.schedule.epoch(self.before + self.epoch)
        self.total.zero_()
        with self._seeded():
            if self._graphs is not None:
                self._graphs.epoch()
            else:
                for step, shape in enumerate(self.shapes):
                    self.step(step, shape)
        self.steps_before = self.steps_before + np.asarray(self.schedule.steps)
        if self.memory is not None:
            self.memory.revise(self.before + self.epoch)
        self._note()

    def step(self, step: int | Tensor, shape: Shape) -> None:
        """Take one step; `step` counts from 0, and is a tensor inside a CUDA graph."""
        batch = self.schedule.batch(step, shape)
        by = self._rates(step, shape)

        held: list[tuple[int, At, Tensor]] = []  # where all gradients are needed before a move

        def move(place: int, at: At, grad: Tensor | Product) -> None:
            if self.run.clip is None:
                self.optimizer.move(place, self.net.parameters[place], at, grad, by)
            else:
                whole = grad.value() if isinstance(grad, Product) else grad
                held.append((place, at, whole.view_as(self.net.parameters[place][at])))

        def loss_of(logits: Tensor) -> tuple[Tensor, Tensor]:
            known = {"prior": self.schedule.prior[: shape.active], "weight": batch.weight}
            target = None if self.memory is None else self.memory.recall(batch, logits)
            given = {"rate": batch.rate, "target": target}
            return self.loss_gradient(logits, batch.excluded, **known, **given)

        x = self.run.features.take(batch.rows, batch.moves)
        loss = self.net.step(x, loss_of, move)
        self.total[: shape.active].add_(loss)
        if self.run.clip is not None:
            squares = [g.reshape(*g.shape[:2], -1).square().sum(-1) for _, _, g in held]
            norm = torch.stack(squares).sum(0).sqrt()  # [A, C]
            scale = (self.run.clip / (norm + 1e-6)).clamp(max=1)
            for place, at, grad in held:
                grad.mul_(scale[(...,) + (None,) * (grad.ndim - 2)])
                self.optimizer.move(place, self.net.parameters[place], at, grad, by)
        if self.memory is not None and self.memory.after:
            self.memory.look(batch, self.net.logits(x, training=True))

    def _lay_rates(self) -> None:
        """Put the rates of all steps of this epoch on the device, ``[steps, T, C + 1 (+ C)]``."""
        place, own = np.arange(len(self.shapes))[:, None], np.asarray(self.schedule.steps)
        pace = None
        if self.run.pace is not None:
            done = self.epoch - 1 + np.minimum(place, own) / own
            pace = self.run.pace.factors(done, done + 1 / own)
        steps = torch.from_numpy(1 + place + self.steps_before)
        learning_rate, decay = self._speed
        found = rates(self.run.optimizer, steps, learning_rate, decay, pace)
        extra = [] if pace is None else [found.shrink]
        table = torch.cat([found.size, found.epsilon, *extra], -1).to(self.dtype)
        table = table.pin_memory() if self.device.type == "cuda" else table
        if self._laid is None:
            decay, shrink = (v.to(self.device, self.dtype) for v in found[2:])
            self._laid = (torch.empty_like(table, device=self.device), decay, shrink)
        self._laid[0].copy_(table, non_blocking=True)

    def _rates(self, step: int | Tensor, shape: Shape) -> Rates:
        assert self._laid is not None
        table, decay, shrink = self._laid
        now = table.index_select(0, step)[0] if isinstance(step, Tensor) else table[step]
        count, now = len(self.grid), now[: shape.active]
        if self.run.pace is not None:
            shrink = now[:, count + 1 :]
        return Rates(now[:, :count], now[:, count : count + 1], decay, shrink)

    def _seeded(self) -> AbstractContextManager[None]:
        """Give modules with randomness of their own (dropout) a seed for each trial and epoch."""
        if isinstance(self.net, nets.Dense):
            return nullcontext()
        first, devices = self.schedule.trials[0], [self.device] * (self.device.type == "cuda")
        seed = np.random.SeedSequence([int(first.seed or 0), self.before + self.epoch])
        return seeded(int(seed.generate_state(1)[0]), devices)

    def _note(self) -> None:
        loss = self.total / self._steps
        self.diverged.masked_fill_((self.diverged == 0) & ~loss.isfinite(), self.epoch)
        if self.epoch not in self.run.recorded:
            return
        found = {"loss": loss}
        for watcher in self.watchers:
            for name, (mean, error) in watcher.measure(self.net, self._most()).items():
                found |= {name: mean, f"{name} error": error}
        for name, values in found.items():
            self.history.setdefault(name, []).append(values.clone())
        if self.best is not None:
            self.best.look(self.history)
        self.call()

    def call(self) -> None:
        """Tell the callback of the epoch that was kept."""
        if self.run.callback is None or self.epoch not in self.run.recorded:
            return
        curves = {n: torch.stack(kept, -1).cpu().numpy() for n, kept in self.history.items()}
        told = (self.run.approach.name, self.trials, self.grid, self.epoch, self.run.epochs)
        end = EpochEnd(*told, *split_errors(curves))
        self.run.callback(end)
        self.halted = end.stopped

    def _most(self) -> int:
        """Return how many rows to measure at once: what fits the cache, or a part of the GPU."""
        if not isinstance(self.net, nets.Dense):
            many = self.device.type == "cuda"  # small pieces of images were measured 3 times slower
            return max(64, min(8192, _PIECE // prod(self.net.shape))) if many else 1024
        models = len(self.trials) * len(self.grid)
        widest = max(p.shape[2] for p in self.net.parameters)
        budget = (4 << 30) if self.device.type == "cuda" else (32 << 20)
        return max(16, budget // (models * 4 * (widest + 4 * self.schedule.classes)))

    @property
    def finished(self) -> bool:
        lost = self.best is not None and self.best.lost
        return self.epoch >= self.run.epochs or lost or self.halted

    def tensors(self) -> dict[str, Tensor]:
        """Return all that a checkpoint must hold, by name."""
        found = {f"parameter.{i}": p for i, p in enumerate(self.net.parameters)}
        for i, moments in enumerate(self.optimizer.moments):
            found |= {f"moment.{i}.{j}": m for j, m in enumerate(moments)}
        found |= {f"buffer.{name}": value for name, value in self.net.buffers.items()}
        found |= {f"history.{name}": torch.stack(kept) for name, kept in self.history.items()}
        found |= {"diverged": self.diverged, "steps": torch.from_numpy(self.steps_before)}
        if self.memory is not None:
            found |= {f"memory.{name}": kept for name, kept in self.memory.tensors().items()}
        return found | (self.best.tensors() if self.best else {})

    def restore(self, tensors: Mapping[str, Tensor], epoch: int) -> None:
        """Go back to what :meth:`tensors` returned at the end of an epoch."""
        self.epoch, tensors = epoch, self._joined(tensors)
        for name, kept in tensors.items():
            if name.startswith("history."):
                self.history[name.removeprefix("history.")] = list(kept.to(self.device))
        self.steps_before = tensors["steps"].numpy().copy()
        if self.memory is not None:
            own = {n: v for n, v in tensors.items() if n.startswith("memory.")}
            self.memory.restore({n.removeprefix("memory."): v for n, v in own.items()})
        for name, value in self.tensors().items():
            if not name.startswith(("history.", "memory.")) and name != "steps":
                value.copy_(tensors[name].view_as(value))

    def _joined(self, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """Return a checkpoint of an older ruleout, where weights of modules lay apart, as ours."""
        like = self.net.parameters[0]
        if isinstance(self.net, nets.Dense) or tensors["parameter.0"].shape == like.shape:
            return tensors
        found, moments = dict(tensors), range(len(self.optimizer.moments[0]))
        for name in ("parameter.{}", "best.{}", *(f"moment.{{}}.{i}" for i in moments)):
            if name.format(0) in tensors:
                found[name.format(0)] = whole = torch.zeros_like(like, device="cpu")
                for place, view in enumerate(self._views([whole]).values()):
                    view.copy_(tensors[name.format(place)].view_as(view))
        return found

    def trained(self) -> Trained:
        """Bring what must stay to the CPU, so that the device is free for the next stack."""
        source = self.best.weights if self.best else self.net.parameters
        buffers = self.best.buffers if self.best else self.net.buffers
        ended = torch.full_like(self.diverged, self.epoch)
        moments = zip(*self.optimizer.moments, strict=True)
        return Trained(
            _to_cpu({**self.net.named(source), **buffers}),
            {name: torch.stack(kept, -1).cpu() for name, kept in self.history.items()},
            self.diverged.cpu(),
            (self.best.epoch if self.best else ended).cpu(),
            [_to_cpu(self.net.named(list(one))) for one in moments] if self.run.moments else None,
            self.steps_before,
            _to_cpu(self.memory.tensors()) if self.memory and self.run.moments else None,
        )


def _to_cpu(found: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().clone().cpu() for name, value in found.items()}


class RowMemory:
    """What an approach remembers of the rows of some trials: their last logits, their targets.

    Tables are ``[rows of all trials + 1, C, k]``: rows that only fill up a batch go to the last.
    """

    def __init__(self, stack: Stack, loss: Loss) -> None:
        assert loss.memory is not None
        trials, self.loss, self.after = stack.schedule.trials, loss, loss.memory.after
        self.shape = len(trials), stack.run.rows_each, len(stack.grid)
        excluded = torch.zeros(*self.shape[:2], stack.schedule.classes, dtype=stack.dtype)
        for place, trial in enumerate(trials):
            excluded[place, : len(trial.sets)] = torch.from_numpy(trial.sets.excluded)
        self.excluded = excluded.unsqueeze(1).to(stack.device)  # [T, 1, n, k]
        self.counts = [len(trial.sets) for trial in trials]
        self._each, self._fill = stack.schedule.rows_each, self.shape[0] * self.shape[1]
        size = (self._fill + 1, self.shape[2], stack.schedule.classes)
        self._logits = torch.zeros(size, dtype=stack.dtype, device=stack.device)
        self._target = torch.zeros_like(self._logits)
        self._table(self._target).copy_(loss.start(self.excluded))
        self.kept: list[dict[str, Tensor]] = [{} for _ in self._pieces()]

    def _table(self, rows: Tensor) -> Tensor:
        """Return a table as ``[T, C, n, k]``."""
        trials, n, models = self.shape
        return rows[:-1].view(trials, n, models, -1).transpose(1, 2)

    def _pieces(self) -> list[tuple[slice, int]]:
        """Return trials that can be looked at together, with how many rows they have."""
        if len({*self.counts}) == 1:
            return [(slice(None), self.counts[0])]
        return [(slice(t, t + 1), n) for t, n in enumerate(self.counts)]

    def _places(self, batch: Batch) -> Tensor:
        trial = batch.places.div(self._each, rounding_mode="floor")
        places = batch.places + trial * (self.shape[1] - self._each)
        if batch.weight is not None:
            places = places.where(batch.weight[:, 0] > 0, self._fill)
        return places.flatten()

    def recall(self, batch: Batch, logits: Tensor) -> Tensor:
        """Return the targets of a batch, ``[A, C, B, k]``; remember its logits."""
        found = self._target.index_select(0, self._places(batch))
        if not self.after:
            self.look(batch, logits)
        return found.view(*batch.places.shape, *found.shape[1:]).transpose(1, 2)

    def look(self, batch: Batch, logits: Tensor) -> None:
        rows = logits.detach().transpose(1, 2).flatten(0, 1)
        self._logits.index_copy_(0, self._places(batch), rows.to(self._logits))

    def revise(self, epoch: int) -> None:
        """Make the targets of the next epoch."""
        logits, target = self._table(self._logits), self._table(self._target)
        for (own, n), kept in zip(self._pieces(), self.kept, strict=True):
            parts = (logits[own, :, :n], self.excluded[own, :, :n], target[own, :, :n])
            target[own, :, :n] = self.loss.revise(Seen(*parts, epoch, kept))

    def tensors(self) -> dict[str, Tensor]:
        """Return all of it, ``[T, C, ...]``."""
        found = {"logits": self._table(self._logits), "target": self._table(self._target)}
        for name in self.kept[0]:
            like, n = self.kept[0][name], self.shape[1]
            pad = [kept[name] for kept in self.kept]
            if like.shape[-2] == self.counts[0] > 1:  # a table of rows
                pad = [nn.functional.pad(one, (0, 0, 0, n - one.shape[-2])) for one in pad]
            found[f"kept.{name}"] = torch.cat(pad)
        return found

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Go back to what :meth:`tensors` returned."""
        for name, value in tensors.items():
            now = value.to(self._logits)
            if name == "logits":
                self._table(self._logits).copy_(now)
            elif name == "target":
                self._table(self._target).copy_(now)
            else:
                for (own, n), kept in zip(self._pieces(), self.kept, strict=True):
                    kept[name.removeprefix("kept.")] = now[own, :, :n].clone()


class _Best:
    """The best weights of each model so far, while it has patience."""

    def __init__(self, stack: Stack, stopping: Stopping) -> None:
        self.stack, self.stopping = stack, stopping
        self.weights = [p.clone() for p in stack.net.parameters]
        self.buffers = {name: value.clone() for name, value in stack.net.buffers.items()}
        self.value = torch.full_like(stack.total, -torch.inf)
        self.epoch = torch.zeros_like(stack.diverged)
        self.waited = torch.zeros_like(stack.diverged)

    def look(self, history: Mapping[str, list[Tensor]]) -> None:
        value = history[self.stopping.monitor][-1]
        value = value if self.stopping.higher_is_better else -value
        patient = self.waited < self.stopping.patience
        better = (value > self.value) & patient
        self.waited = torch.where(better, 0, self.waited + 1)
        self.value = torch.where(better, value, self.value)
        self.epoch = torch.where(better, self.stack.epoch, self.epoch)
        for kept, now in zip(self.weights, self.stack.net.parameters, strict=True):
            kept[better] = now[better]
        for name, now in self.stack.net.buffers.items():
            self.buffers[name][better] = now[better]

    @property
    def lost(self) -> bool:
        return bool((self.waited >= self.stopping.patience).all())

    def tensors(self) -> dict[str, Tensor]:
        found = {f"best.{i}": weight for i, weight in enumerate(self.weights)}
        found |= {f"best.{name}": value for name, value in self.buffers.items()}
        return {**found, "value": self.value, "best": self.epoch, "waited": self.waited}


class Block(NamedTuple):
    """Models that train together: some trials, and configurations from `start` to `stop`."""

    trials: tuple[int, ...]
    start: int
    stop: int

    @property
    def models(self) -> slice:
        return slice(self.start, self.stop)


class Plan(NamedTuple):
    size: tuple[int, int]  # trials and configurations of a block, at most
    blocks: list[Block]  # all of the run


def plan(run: Run, stack: int | None, random: bool) -> Plan:
    """Cut a run into blocks.

    On a CPU a block should stay in the last-level cache: weights, gradients and moments of a
    larger one would come from memory in every step. On a GPU a block fills the memory. Modules
    that draw `random` numbers, and on a CPU those that do not pay to stack, train by themselves.
    """
    trials, models, module = len(run.trials), len(run.grid), run.modules[0]
    dense = nets.dense_layers(module) is not None
    stacks = dense or (not random and nets.pays_to_stack(module))
    beside = 1 if random else nets.SIDE_BY_SIDE.get(run.numbers.device.type, 1)
    most = _fitting(run) if stacks else beside
    if not stacks and beside == 1:
        size = (1, 1)
    elif stack is not None:
        size = (trials if stack >= models else 1, min(stack, models))
    elif most >= models:  # whole grids may share a block
        size = (min(trials, most // models), models)
    else:  # models are spread evenly over blocks
        size = (1, -(-models // -(-models // most)))
    pairs = run.approach.form == "pairs-before"
    items = [int(t.sets.sizes.sum()) if pairs else len(t.sets) for t in run.trials]
    order = sorted(range(trials), key=lambda t: -items[t])
    # Batch norm and the like would see the rows that fill up shorter trials: only equal ones share
    # a block, but of perceptrons, where each row stands alone.
    alike = [list(same) for _, same in groupby(order, lambda t: dense or items[t])]
    rows = [tuple(own[i : i + size[0]]) for own in alike for i in range(0, len(own), size[0])]
    cuts = [(i, min(i + size[1], models)) for i in range(0, models, size[1])]
    return Plan(size, [Block(row, *cut) for row in rows for cut in cuts])


def _fitting(run: Run) -> int:
    """Return how many models fit the cache, or the memory of a GPU."""
    module = run.modules[0]
    weights = sum(p.numel() for p in module.parameters())
    widths = sum(p.shape[0] for p in module.parameters() if p.ndim > 1)
    bytes_each = run.numbers.dtype.itemsize * (5 * weights + 6 * run.size * widths)
    free, cuda = room(run.numbers.device), run.numbers.device.type == "cuda"
    return max(1, (int(0.7 * free) if cuda else min(cache_size(), free)) // bytes_each)


def halves(block: Block) -> list[Block]:
    """Cut a block in two; an empty list when it holds one model."""
    if block.stop - block.start > 1:
        middle = (block.start + block.stop) // 2
        return [block._replace(stop=middle), block._replace(start=middle)]
    middle = len(block.trials) // 2
    parts = (block.trials[:middle], block.trials[middle:]) if middle else ()
    return [block._replace(trials=part) for part in parts]


def out_of_memory(error: BaseException) -> bool:
    known = isinstance(error, (torch.OutOfMemoryError, MemoryError))
    return known or "DefaultCPUAllocator" in str(error)


_PIECE = 8192 * 3072  # numbers in the rows that a module is measured on at once, on a GPU
_WARM = 3  # steps before a capture, as PyTorch asks for


@contextmanager
def _uncollected() -> Iterator[None]:
    """Keep Python from freeing graphs of earlier runs just now: a capture does not allow it."""
    working = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if working:
            gc.enable()


class Graphs:
    """Steps are captured once for each shape of batch, then replayed; the device counts them."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.place = torch.zeros(1, dtype=torch.int64, device=stack.run.numbers.device)
        self.captured: dict[Shape, Callable[[], None]] = {}

    def epoch(self) -> None:
        self.place.zero_()
        for shape in self.stack.shapes:
            if shape not in self.captured:
                self.captured[shape] = self._capture(shape)
            self.captured[shape]()

    def _step(self, shape: Shape) -> None:
        self.stack.step(self.place, shape)
        self.place += 1

    def _capture(self, shape: Shape) -> Callable[[], None]:
        """Capture a step. The steps before it, which PyTorch asks for, leave no trace.

        A module that does what no graph can hold, such as looking at a number, goes step by step.
        """
        held = [self.place, self.stack.total, *self.stack.net.parameters]
        held += self.stack.net.buffers.values()
        held += [] if self.stack.memory is None else [self.stack.memory._logits]
        held += [moment for moments in self.stack.optimizer.moments for moment in moments]
        copies = [tensor.clone() for tensor in held]
        drawn = torch.cuda.get_rng_state(self.place.device)
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM):
                self._step(shape)
                self.place.copy_(copies[0])
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        run: Callable[[], None] = graph.replay
        try:
            # The thread that lays out the next epoch may take pinned memory meanwhile.
            with (
                _uncollected(),
                torch.cuda.stream(torch.cuda.current_stream()),
                torch.cuda.graph(graph, capture_error_mode="thread_local"),
            ):
                self._step(shape)
        except RuntimeError as error:
            if out_of_memory(error) or isinstance(self.stack.net, nets.Dense):
                raise
            run = partial(self._step, shape)
        for tensor, copy in zip(held, copies, strict=True):
            tensor.copy_(copy)
        torch.cuda.set_rng_state(drawn, self.place.device)
        return run


_LONG = 5_000  # steps from which compiling a loss pays
#: From how many steps, times five more than there are models, compiling a module pays: of a ResNet
#: a step gains 1.0 ms, of eight 2.2 (benchmarks/results/convolution-kernels.txt).
_LONGER = {"cuda": 80_000}
Slope: TypeAlias = Callable[..., tuple[Tensor, Tensor]]
_COMPILED: dict[Any, Slope] = {}


class LossGradient:
    """From logits to the losses ``[A, C]`` and the slopes of their sum, for a run of some steps."""

    def __init__(self, approach: Approach, steps: int) -> None:
        self.approach = approach
        options = approach.options
        self.fixed = not any(isinstance(value, Tensor) for value in options.values())
        self.long = steps >= _LONG
        self._key = (approach.name, approach.source.function, repr(sorted(options.items())))

    def __call__(
        self, logits: Tensor, excluded: Tensor, **extra: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        known = {name: tensor for name, tensor in extra.items() if tensor is not None}
        names, given = tuple(known), (logits, excluded, *known.values())
        if not (logits.is_cuda and self.long and self.fixed):
            return self._eager(names, *given)
        key = (self._key, names, *((t.shape, t.stride(), t.dtype, t.device) for t in given))
        if key not in _COMPILED:
            _COMPILED[key] = self._compile(partial(self._eager, names), *given)
        return _COMPILED[key](*given)

    def _eager(
        self, names: tuple[str, ...], logits: Tensor, excluded: Tensor, *extra: Tensor
    ) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf = logits.detach().requires_grad_()
            given = dict(zip(names, extra, strict=True))
            loss = self.approach.trusted_loss(leaf, excluded, **given)
            (slope,) = torch.autograd.grad(loss, leaf, torch.ones_like(loss))
        return loss.detach(), slope

    def _compile(self, eager: Slope, *given: Tensor) -> Slope:
        from torch.fx.experimental.proxy_tensor import make_fx

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                graph = make_fx(eager)(*given)
                graph = make_fx(torch.func.functionalize(graph))(*given)  # nothing in place
                fused = torch.compile(graph, dynamic=False, fullgraph=True)

                def quiet(*given: Tensor) -> tuple[Tensor, Tensor]:
                    with torch.no_grad():
                        found: tuple[Tensor, Tensor] = fused(*given)
                    return found

                quiet(*given)
        except Exception:  # no compiler on this machine, or an operation it does not know
            return eager
        return quiet
