"""Batches: which rows each step of each trial reads, their features, and what was ruled out.

An epoch is a walk over *items*: the rows of a trial, or for ``pairs-before`` its pairs (row,
ruled-out class). The order depends on the seed of the trial, the epoch and the number of items
alone, so approaches share it, and a run that was stopped needs no other random state to go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.labels import LabelSets
from ruleout.labels.errors import InputError, brief
from ruleout.labels.origins import Evidence, evidence, stay_credit
from ruleout.methods import Form
from ruleout.training.device import Numbers, room

_NUMPY = {torch.float32: np.float32, torch.float64: np.float64}


@dataclass(frozen=True, eq=False)
class Trial:
    """What one trial trains on."""

    sets: LabelSets  #: what was ruled out
    rows: NDArray[np.intp] | None = None  #: in which rows of x; None means all, in order
    weight: NDArray[np.float64] | None = None  #: of each row, zero or above; None: all count alike
    #: of the first weights and of the batch order; None means the seed of the run plus the number
    #: of the trial
    seed: int | None = None
    #: how likely a wrong class stays possible in each row, where answers made the sets
    #: (:meth:`ruleout.Answers.per_item`); None means as in sets drawn at random
    rate: NDArray[np.float64] | None = None
    #: what each row belongs to: rows of one group train together or are set aside together. None
    #: means that every row stands alone
    groups: NDArray[Any] | None = None
    #: what was said about each row, where some of it may be wrong; approaches that have no place
    #: for it read the sets alone
    evidence: Evidence | None = None

    @property
    def said(self) -> Evidence:
        """What was said about each row; where there is no evidence, as if nothing were wrong."""
        if self.evidence is not None:
            return self.evidence
        found = evidence(self.sets)
        if self.rate is None:
            return found
        earns = partial(stay_credit, self.sets, 1.0, self.rate)
        return replace(found, earns=earns, at_error=None)

    def part(self, chosen: NDArray[np.intp]) -> Trial:
        given = {name: getattr(self, name) for name in ("weight", "rate", "groups")}
        own: Any = {n: np.asarray(v)[chosen] for n, v in given.items() if v is not None}
        if self.evidence is not None:
            own["evidence"] = self.evidence[chosen]
        rows = chosen if self.rows is None else np.asarray(self.rows)[chosen]
        return replace(self, sets=self.sets[chosen], rows=rows, **own)

    def padded(self, count: int) -> Trial:
        """Return as many rows to measure on; those added rule nothing out, and count nowhere."""
        more = count - len(self.sets)
        if not more or self.rows is None:
            return self
        packed = np.pad(self.sets.packed, ((0, more), (0, 0)))
        sets = LabelSets.from_packed(packed, self.sets.classes, unlabelled=True)
        rate = None if self.rate is None else np.pad(self.rate, (0, more))
        filled = self.part(np.arange(count).clip(max=len(self.sets) - 1))
        return replace(filled, sets=sets, rate=rate)


def _shares(trial: Trial) -> NDArray[np.float64]:
    """Return the shares of the ruled-out classes; a weight of 2 counts as the row twice."""
    if trial.weight is None:
        return trial.sets.shares
    rows, classes = trial.sets.nonzero()
    counts = np.bincount(classes, trial.weight[rows], trial.sets.shape[1])
    return np.asarray(counts / counts.sum())


def order(seed: int, epoch: int, items: int) -> NDArray[np.intp]:
    return np.random.default_rng([seed, epoch]).permutation(items)


class Batch(NamedTuple):  # of A trials that are still at work
    rows: Tensor  # [A, B]: rows of x
    moves: Tensor | None  # [A, B, 3]: whether to flip, and how far to go down and right
    excluded: Tensor  # [A, 1, B, k]
    weight: Tensor | None  # [A, 1, B]
    rate: Tensor | None  # [A, 1, B]
    places: Tensor  # [A, B]: of each row among those of all trials; of pairs their classes


class Shape(NamedTuple):  # steps of one shape can share a CUDA graph
    active: int  # trials at work
    size: int  # items of a batch
    weighted: bool


class BatchSchedule:
    """The items of some trials, and the epochs over them.

    Trials are ordered by their number of items, most first, so that those still at work in the
    last steps of an epoch are always the first ones. Where trials end within a step, missing items
    get the weight 0. A last batch of fewer than `least` items is left out, if it is not the only.
    `graded` puts the costs of evidence in the place of what was ruled out; `reach`: `find_reach`.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        form: Form,
        size: int,
        numbers: Numbers,
        least: int = 1,
        graded: bool = False,
        reach: tuple[int, int, int] | None = None,
    ) -> None:
        self.trials, self.graded, self.reach = trials, graded, reach
        self.device, self.dtype, _ = numbers
        self.classes = trials[0].sets.shape[1]
        self._pairs = [t.sets.nonzero() for t in trials] if form == "pairs-before" else None
        self.items = [len(trial.sets) for trial in trials]
        if self._pairs is not None:
            self.items = [len(rows) for rows, _ in self._pairs]
        self.size = size = min(size, max(self.items))  # tables have a place for every item
        self.items = [n - n % size if n % size < least <= n else n for n in self.items]
        self.steps = [-(-n // size) for n in self.items]
        shares = torch.from_numpy(np.stack([_shares(trial) for trial in trials]))
        self.prior = shares.to(self.device, self.dtype).unsqueeze(1)  # [T, 1, k]
        self._given = any(trial.weight is not None for trial in trials)
        self.weighted = self._given or len(set(self.items)) > 1
        self.rated = trials[0].rate is not None
        self.laid: dict[str, Tensor] = {}
        self.rows_each = max(len(t.sets) for t in trials)
        self._table: Tensor | None = None
        size = self.rows_each * self.classes * len(trials) * self.dtype.itemsize
        if self._pairs is None and size <= 0.1 * room(self.device):
            table = torch.zeros(len(trials), self.rows_each, self.classes, dtype=self.dtype)
            for place, trial in enumerate(trials):
                table[place, : len(trial.sets)] = torch.from_numpy(self._known(trial))
            self._table = table.flatten(0, 1).to(self.device)
        self._ahead = ThreadPoolExecutor(1) if self.device.type == "cuda" else None
        self._next: dict[int, Future[Any]] = {}
        self._place: NDArray[np.int64]

    def _known(self, trial: Trial, rows: Any = slice(None)) -> NDArray[Any]:
        if self.graded and trial.evidence is not None:
            return np.asarray(trial.evidence.costs[rows])
        return np.asarray(trial.sets[rows].excluded)

    def shape(self, step: int) -> Shape:
        active = sum(step < steps for steps in self.steps)
        left = [min(n - step * self.size, self.size) for n in self.items[:active]]
        return Shape(active, max(left), self._given or min(left) < max(left))

    def epoch(self, number: int) -> None:
        """Lay out an epoch on the device; while a GPU works, the order of the next one is made."""
        ahead = self._next.pop(number, None)
        self._place, tables = self._arrange(number) if ahead is None else ahead.result()
        for name, table in tables.items():
            if name not in self.laid:
                self.laid[name] = torch.empty_like(table, device=self.device)
            self.laid[name].copy_(table, non_blocking=True)
        if self._ahead is not None:
            self._next = {number + 1: self._ahead.submit(self._arrange, number + 1)}

    def _arrange(self, number: int) -> tuple[NDArray[np.int64], dict[str, Tensor]]:
        """Return the places of all items among their trial's rows, and tables ``[T, steps, B]``."""
        wide = max(self.steps) * self.size
        place = np.zeros((len(self.trials), wide), np.int64)
        both = np.zeros((len(self.trials), wide, 2), np.int64)  # rows of x, and labels
        weight = np.zeros(place.shape if self.weighted else 0, _NUMPY[self.dtype])
        rate = np.zeros(place.shape if self.rated else 0, _NUMPY[self.dtype])
        moves = np.zeros((*place.shape, 3) if self.reach else 0, np.int64)
        for t, (trial, n) in enumerate(zip(self.trials, self.items, strict=True)):
            total = len(trial.sets) if self._pairs is None else len(self._pairs[t][0])
            walk = order(int(trial.seed or 0), number, total)[:n]
            if self._pairs is not None:
                rows_of, classes_of = self._pairs[t]
                walk, both[t, :n, 1] = rows_of[walk], classes_of[walk]
            if self.reach is not None:
                random, far = np.random.default_rng([int(trial.seed or 0), number, 1]), self.reach
                moves[t, :n] = random.integers([0, -far[1], -far[2]], far, (n, 3), endpoint=True)
            place[t, :n] = walk
            both[t, :n, 0] = walk if trial.rows is None else trial.rows[walk]
            if self.weighted:
                weight[t, :n] = 1 if trial.weight is None else trial.weight[walk]
            if trial.rate is not None:
                rate[t, :n] = trial.rate[walk]
        if self._pairs is None:
            both[..., 1] = place + np.arange(len(place))[:, None] * self.rows_each
        tables = {"rows": both, "weights": weight, "rates": rate, "moves": moves}
        return place, {name: self._host(table) for name, table in tables.items() if table.size}

    def _host(self, values: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(values.reshape(len(values), -1, self.size, *values.shape[2:]))
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def batch(self, step: int | Tensor, shape: Shape) -> Batch:
        """Return what step number `step` (from 0) reads; a tensor ``[1]`` inside a CUDA graph."""
        rows, labels = self._at("rows", step, shape).unbind(-1)
        weight = self._at("weights", step, shape).unsqueeze(1) if shape.weighted else None
        rate = self._at("rates", step, shape).unsqueeze(1) if self.rated else None
        moves = self._at("moves", step, shape) if self.reach else None
        if self.resident or isinstance(step, Tensor):
            return Batch(rows, moves, self._excluded(labels), weight, rate, labels)
        return Batch(rows, moves, self._unpack(step, shape), weight, rate, labels)

    def _at(self, name: str, step: int | Tensor, shape: Shape) -> Tensor:
        table = self.laid[name][: shape.active]
        picked = table.index_select(1, step)[:, 0] if isinstance(step, Tensor) else table[:, step]
        return picked[:, : shape.size]

    def _excluded(self, labels: Tensor) -> Tensor:
        """Return ``[A, 1, B, k]`` that runs along the batch: so few classes are summed fast."""
        if self._table is None:
            every = torch.arange(self.classes, device=labels.device).view(-1, 1)
            found = (labels.unsqueeze(1) == every).to(self.dtype)  # [A, k, B]
        else:
            picked = self._table.index_select(0, labels.reshape(-1)).view(*labels.shape, -1)
            found = picked.transpose(1, 2).contiguous()
        return found.unsqueeze(1).transpose(2, 3)

    @property
    def resident(self) -> bool:  # on the device, so that a step can be captured
        return self._pairs is not None or self._table is not None

    def _unpack(self, step: int, shape: Shape) -> Tensor:
        piece = slice(step * self.size, step * self.size + shape.size)
        active = enumerate(self.trials[: shape.active])
        parts = [self._known(trial, self._place[t, piece]) for t, trial in active]
        return torch.from_numpy(np.stack(parts)).unsqueeze(1).to(self.device, self.dtype)


def find_reach(augment: Sequence[str], shape: Sequence[int] | None) -> tuple[int, int, int] | None:
    """Return whether images may be flipped and how far they may move; None: they stay."""
    listed = isinstance(augment, (list, tuple))
    if not listed or any(one not in ("flip", "crop") for one in augment):
        raise InputError(f"augment is {brief(augment)}", 'list "flip", "crop", or both')
    if not augment:
        return None
    if shape is None or len(shape) != 3:
        problem = "augment is for images, and this model reads rows of numbers"
        raise InputError(problem, "take a convolutional model, and shape=(channels, height, width)")
    part = 8 if "crop" in augment else max(shape) + 1
    if "crop" in augment and max(shape[1:]) < part:
        problem = f"images of {shape[1]} × {shape[2]} pixels are too small to be moved by an eighth"
        raise InputError(problem, "leave crop out")
    return int("flip" in augment), shape[1] // part, shape[2] // part


def move_images(x: Tensor, moves: Tensor) -> Tensor:
    """Flip images ``[N, channels, height, width]`` left to right, then move them over zeros.

    `moves` ``[N, 3]``: whether to flip, how far to go down, how far to go right.
    """
    (height, width), flip = x.shape[2:], moves[:, :1, None]  # [N, 1, 1]
    place = torch.arange(max(len(x), height, width), device=x.device)
    down = place[:height, None] - moves[:, 1:2, None]  # [N, height, 1]: where a pixel comes from
    right = place[:width] - moves[:, 2:, None]  # [N, 1, width]
    inside = (down >= 0) & (down < height) & (right >= 0) & (right < width)
    right = torch.where(flip == 1, width - 1 - right, right).clamp(0, width - 1)
    found = x[place[: len(x), None, None], :, down.clamp(0, height - 1), right]  # channels last
    return found.mul_(inside.unsqueeze(-1)).movedim(-1, 1)


_BLOCK = 64 << 20  # bytes looked at in one go
_AS_BYTES = ("cuda",)  # where images stay as bytes
_LINE = 32  # numbers in a cache line of a GPU: weights of whole lines move a sixth faster


class Features:
    """Rows of numbers (as `check_features` gives them), handed out in batches on the device.

    `shape` is that in which a model reads an example; None for flat rows that end in a 1, the bias
    of a first layer (then 0 up to a multiple of 8, on a GPU to whole cache lines). Images that stay
    on the device stay there as bytes where every channel has at most 256 different values.
    """

    def __init__(self, x: Any, shape: tuple[int, ...] | None, numbers: Numbers) -> None:
        self.x, self.shape, self.numbers = x, shape, numbers
        self.device, self.dtype = numbers.device, numbers.compute
        self.n, self.d = x.shape[0], prod(x.shape[1:])
        fill = _LINE if self.device.type == "cuda" and self.d >= 4 * _LINE else 8
        self.width = self.d if shape else -fill * (-(self.d + 1) // fill)
        self._resident: Tensor | None = None
        self._levels: Tensor | None = None
        size, free = self.n * self.width, 0.5 * room(self.device)
        if self.device.type in _AS_BYTES and shape and len(shape) == 3 and size <= free:
            self._levels = self._find_levels(shape[0])
        if size * (self.dtype.itemsize if self._levels is None else 1) <= free:
            self._resident = self._load(range(self.n), self._levels)

    @property
    def resident(self) -> bool:
        return self._resident is not None

    def _blocks(self, rows: range | NDArray[np.int64]) -> Iterator[tuple[slice, Tensor]]:
        """Walk over rows of x, flat and on the device; each block with its place among them."""
        step = max(1, _BLOCK // (8 * max(1, self.d)))
        kind = np.float64 if self.dtype is torch.float64 else np.float32
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            block = self.x[slice(piece.start, piece.stop) if isinstance(piece, range) else piece]
            block = block.toarray() if hasattr(block, "toarray") else block
            flat = torch.from_numpy(np.array(block, kind).reshape(-1, self.d))
            yield slice(start, start + step), flat.to(self.device)

    def _load(self, rows: range | NDArray[np.int64], levels: Tensor | None = None) -> Tensor:
        kind = self.dtype if levels is None else torch.uint8
        out = torch.zeros(len(rows), self.width, dtype=kind, device=self.device)
        for place, flat in self._blocks(rows):
            out[place, : self.d] = flat if levels is None else self._codes(flat, levels)
        if not self.shape:
            out[:, self.d] = 1
        return out

    def _find_levels(self, channels: int) -> Tensor | None:
        """Return the values of each channel, ``[channels, 256]`` up to infinity; None: too many."""
        levels = [torch.empty(0, device=self.device)] * channels
        for _, flat in self._blocks(range(self.n)):
            both = zip(levels, flat.view(len(flat), channels, -1).unbind(1), strict=True)
            levels = [torch.unique(torch.cat([old, new.flatten()])) for old, new in both]
            if max(map(len, levels)) > 256:
                return None
        pad = nn.functional.pad
        return torch.stack([pad(one, (0, 256 - len(one)), value=torch.inf) for one in levels])

    def _codes(self, flat: Tensor, levels: Tensor) -> Tensor:
        values = flat.view(len(flat), len(levels), -1).transpose(0, 1).flatten(1)
        found = torch.searchsorted(levels, values).view(len(levels), len(flat), -1)
        return found.transpose(0, 1).flatten(1)

    def _floats(self, batch: Tensor) -> Tensor:
        if self._levels is None or batch.dtype is not torch.uint8:
            return batch
        first = 256 * torch.arange(len(self._levels), device=self.device).unsqueeze(1)
        places = batch.view(len(batch), len(self._levels), -1) + first
        return self._levels.to(self.dtype).take(places)

    def take(self, rows: Tensor, moves: Tensor | None = None) -> Tensor:
        """Return the examples of `rows` ``[..., B]``, where `moves` are given by `move_images`."""
        flat, shape = rows.reshape(-1), self.shape or (self.width,)
        if self._resident is None:
            batch = self._load(flat.cpu().numpy())
        else:
            batch = self._floats(self._resident.index_select(0, flat))
        if moves is not None:
            batch = move_images(batch.view(-1, *shape), moves.reshape(-1, 3))
        return batch.view(*rows.shape, *shape)

    def slice(self, piece: slice) -> Tensor:
        rows = range(self.n)[piece]
        batch = self._load(rows) if self._resident is None else self._floats(self._resident[piece])
        return batch.view(len(batch), *(self.shape or (self.width,)))
