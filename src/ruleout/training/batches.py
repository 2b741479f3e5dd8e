"""Batches: which rows each step of each trial reads, their features, and what was ruled out.

An epoch is a walk over *items*: the rows of a trial, or for ``pairs-before`` its pairs (row,
ruled-out class). The order depends on the seed of the trial, the epoch and the number of items
alone, so approaches share it, and a run that was stopped needs no other random state to go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ruleout.labels import LabelSets
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
        return replace(found, credit=stay_credit(self.sets, 1.0, self.rate), at_error=None)

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
        return replace(
            self,
            sets=LabelSets.from_packed(packed, self.sets.classes, unlabelled=True),
            rows=np.pad(self.rows, (0, more), mode="edge"),
            rate=None if self.rate is None else np.pad(self.rate, (0, more)),
            evidence=self.evidence and self.evidence[np.arange(count).clip(max=len(self.sets) - 1)],
            groups=None if self.groups is None else np.pad(self.groups, (0, more), mode="edge"),
        )


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
    excluded: Tensor  # [A, 1, B, k]
    weight: Tensor | None  # [A, 1, B]
    rate: Tensor | None  # [A, 1, B]


class Shape(NamedTuple):  # steps of one shape can share a CUDA graph
    active: int  # trials at work
    size: int  # items of a batch
    weighted: bool


class BatchSchedule:
    """The items of some trials, and the epochs over them.

    Trials are ordered by their number of items, most first, so that those still at work in the
    last steps of an epoch are always the first ones. Where trials end within a step, missing items
    get the weight 0. A last batch of fewer than `least` items is left out, if it is not the only.
    `graded` puts the costs of the trials' evidence in the place of what was ruled out.
    """

    def __init__(
        self,
        trials: Sequence[Trial],
        form: Form,
        size: int,
        numbers: Numbers,
        least: int = 1,
        graded: bool = False,
    ) -> None:
        self.trials, self.size, self.graded = trials, size, graded
        self.device, self.dtype, _ = numbers
        self.classes = trials[0].sets.shape[1]
        self._pairs = [t.sets.nonzero() for t in trials] if form == "pairs-before" else None
        self.items = [len(trial.sets) for trial in trials]
        if self._pairs is not None:
            self.items = [len(rows) for rows, _ in self._pairs]
        self.items = [n - n % size if n % size < least <= n else n for n in self.items]
        self.steps = [-(-n // size) for n in self.items]
        shares = torch.from_numpy(np.stack([_shares(trial) for trial in trials]))
        self.prior = shares.to(self.device, self.dtype).unsqueeze(1)  # [T, 1, k]
        self._given = any(trial.weight is not None for trial in trials)
        self.weighted = self._given or len(set(self.items)) > 1
        self.rated = trials[0].rate is not None
        self.laid: dict[str, Tensor] = {}
        self._rows_each = max(len(t.sets) for t in trials)
        self._table: Tensor | None = None
        size = self._rows_each * self.classes * len(trials) * self.dtype.itemsize
        if self._pairs is None and size <= 0.1 * room(self.device):
            table = torch.zeros(len(trials), self._rows_each, self.classes, dtype=self.dtype)
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
        for t, (trial, n) in enumerate(zip(self.trials, self.items, strict=True)):
            total = len(trial.sets) if self._pairs is None else len(self._pairs[t][0])
            walk = order(int(trial.seed or 0), number, total)[:n]
            if self._pairs is not None:
                rows_of, classes_of = self._pairs[t]
                walk, both[t, :n, 1] = rows_of[walk], classes_of[walk]
            place[t, :n] = walk
            both[t, :n, 0] = walk if trial.rows is None else trial.rows[walk]
            if self.weighted:
                weight[t, :n] = 1 if trial.weight is None else trial.weight[walk]
            if trial.rate is not None:
                rate[t, :n] = trial.rate[walk]
        if self._table is not None:
            both[..., 1] = place + np.arange(len(place))[:, None] * self._rows_each
        tables = {"rows": both, "weights": weight, "rates": rate}
        return place, {name: self._host(table) for name, table in tables.items() if table.size}

    def _host(self, values: NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(values.reshape(len(values), -1, self.size, *values.shape[2:]))
        return tensor.pin_memory() if self.device.type == "cuda" else tensor

    def batch(self, step: int | Tensor, shape: Shape) -> Batch:
        """Return what step number `step` (from 0) reads; a tensor ``[1]`` inside a CUDA graph."""
        rows, labels = self._at("rows", step, shape).unbind(-1)
        weight = self._at("weights", step, shape).unsqueeze(1) if shape.weighted else None
        rate = self._at("rates", step, shape).unsqueeze(1) if self.rated else None
        if self.resident or isinstance(step, Tensor):
            return Batch(rows, self._excluded(labels), weight, rate)
        return Batch(rows, self._unpack(step, shape), weight, rate)

    def _at(self, name: str, step: int | Tensor, shape: Shape) -> Tensor:
        table = self.laid[name][: shape.active]
        picked = table.index_select(1, step)[:, 0] if isinstance(step, Tensor) else table[:, step]
        return picked[:, : shape.size]

    def _excluded(self, labels: Tensor) -> Tensor:
        """Return ``[A, 1, B, k]`` for labels ``[A, B]``: rows of the table, or classes.

        Like logits it runs along the batch, which is how small numbers of classes are summed fast.
        """
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


_BLOCK = 64 << 20  # bytes looked at in one go
_LINE = 32  # numbers in a cache line of a GPU: weights of whole lines move a sixth faster


class Features:
    """Rows of numbers (as `check_features` gives them), handed out in batches on the device.

    `shape` is that in which a model reads an example; None for flat rows that end in a 1, so that a
    first layer needs no bias of its own (columns are filled up with 0 to a multiple of 8, on a GPU
    to whole cache lines).
    """

    def __init__(self, x: Any, shape: tuple[int, ...] | None, numbers: Numbers) -> None:
        self.x, self.shape, self.numbers = x, shape, numbers
        self.device, self.dtype = numbers.device, numbers.compute
        self.n, self.d = x.shape[0], prod(x.shape[1:])
        fill = _LINE if self.device.type == "cuda" and self.d >= 4 * _LINE else 8
        self.width = self.d if shape else -fill * (-(self.d + 1) // fill)
        self._resident: Tensor | None = None
        if self.n * self.width * self.dtype.itemsize <= 0.5 * room(self.device):
            self._resident = self._load(range(self.n))

    @property
    def resident(self) -> bool:
        return self._resident is not None

    def _load(self, rows: range | NDArray[np.int64]) -> Tensor:
        out = torch.zeros(len(rows), self.width, dtype=self.dtype, device=self.device)
        step = max(1, _BLOCK // (8 * max(1, self.d)))
        kind = np.float64 if self.dtype is torch.float64 else np.float32
        for start in range(0, len(rows), step):
            piece = rows[start : start + step]
            block = self.x[slice(piece.start, piece.stop) if isinstance(piece, range) else piece]
            block = block.toarray() if hasattr(block, "toarray") else block
            flat = torch.from_numpy(np.array(block, kind).reshape(-1, self.d))
            out[start : start + step, : self.d] = flat.to(self.device)
        if not self.shape:
            out[:, self.d] = 1
        return out

    def take(self, rows: Tensor) -> Tensor:
        """Return the examples of `rows` ``[..., B]``: ``[..., B, width]``, or their shape."""
        flat = rows.reshape(-1)
        if self._resident is None:
            batch = self._load(flat.cpu().numpy())
        else:
            batch = self._resident.index_select(0, flat)
        return batch.view(*rows.shape, *(self.shape or (self.width,)))

    def slice(self, piece: slice) -> Tensor:
        rows = range(self.n)[piece]
        batch = self._load(rows) if self._resident is None else self._resident[piece]
        return batch.view(len(batch), *(self.shape or (self.width,)))
