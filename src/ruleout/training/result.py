"""What a trained grid is: weights, histories, and the record of how it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ruleout.training.grids import Configuration

__all__ = ["GridFit", "predict"]


@dataclass(frozen=True, eq=False, repr=False)
class GridFit:
    """A grid that was trained: T trials of C configurations each.

    Attributes
    ----------
    configurations
        What each of the C configurations is.
    weights
        By name as in the module's ``state_dict``, each ``[T, C, ...]``, on the CPU.
    epochs
        ``[E]``: the epochs (from 1) of which histories were kept.
    history
        By name, each ``[T, C, E]``: ``"loss"`` (mean over the steps of the epoch) and
        ``"watch/measure"`` for every watch.
    errors
        The standard errors of the measures, under the same names.
    diverged
        ``[T, C]``: the first epoch whose loss was not finite, 0 for none.
    stopped
        ``[T, C]``: the epoch whose weights were kept: the last, or the best with `patience`.
    record
        How it was trained: approach, model, optimizer, seeds, device, precision, versions, time.
    """

    configurations: list[Configuration]
    weights: Mapping[str, Tensor]
    epochs: NDArray[np.intp]
    history: Mapping[str, NDArray[np.float64]]
    errors: Mapping[str, NDArray[np.float64]]
    diverged: NDArray[np.intp]
    stopped: NDArray[np.intp]
    record: dict[str, Any]
    fresh: Callable[[int], nn.Module] = field(repr=False)
    state: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        """``(T, C)``."""
        trials, models = self.diverged.shape
        return trials, models

    def module(self, trial: int = 0, configuration: int = 0) -> nn.Module:
        """Return one trained model, in evaluation mode, on the CPU."""
        dtype = next(w.dtype for w in self.weights.values() if w.is_floating_point())
        module = self.fresh(trial).to(dtype)
        module.load_state_dict({name: w[trial, configuration] for name, w in self.weights.items()})
        return module.eval()

    def logits(self, x: Any, most: int = 4096) -> Tensor:
        """Return ``[T, C, n, k]`` for rows ``[n, ...]``, on the CPU.

        Use :meth:`module` for one model of a large grid: this holds all logits at once.
        """
        trials, models = self.shape
        found = [
            torch.stack([predict(self.module(t, c), x, most) for c in range(models)])
            for t in range(trials)
        ]
        return torch.stack(found)

    def pick(self, chosen: Any) -> GridFit:
        """Return the grid with one configuration left for each trial, ``[T, 1]``."""
        places = np.asarray(chosen)

        def own(values: Any) -> Any:
            return values[range(len(places)), places.tolist()][:, None]

        kept = self.state.get("tensors", ())  # nothing where moments were not kept
        tensors = [{n: own(v) for n, v in found.items()} for found in kept]
        return replace(
            self,
            configurations=[self.configurations[int(places[0])]],
            weights={name: own(value) for name, value in self.weights.items()},
            history={name: own(value) for name, value in self.history.items()},
            errors={name: own(value) for name, value in self.errors.items()},
            diverged=own(self.diverged),
            stopped=own(self.stopped),
            state={**self.state, "tensors": tensors} if tensors else {},
        )

    def __repr__(self) -> str:
        trials, models = self.shape
        bad = int((self.diverged > 0).sum())
        lost = f", {bad} diverged" if bad else ""
        what = f"{self.record['approach']}, {self.record['model']}"
        sizes = f"{_count(trials, 'trial')} × {_count(models, 'configuration')}"
        return f"GridFit({what}: {sizes}{lost})"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def predict(module: nn.Module, x: Any, most: int = 4096) -> Tensor:
    """Return the logits ``[n, k]`` of one model, block by block, on the CPU."""
    where = next(module.parameters())
    shape = getattr(module, "example_shape", None)
    out = []
    with torch.no_grad():
        for start in range(0, max(x.shape[0], 1), most):  # of no rows, too, the width is k
            block = x[start : start + most]
            block = block.toarray() if hasattr(block, "toarray") else np.asarray(block)
            rows = torch.from_numpy(np.ascontiguousarray(block)).to(where)
            out.append(module(rows if shape is None else rows.view(-1, *shape)).cpu())
    return torch.cat(out)
