"""Approaches that remember rows: trained as a plain loop does, stacked, stopped and gone on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.losses import Seen
from ruleout.models import build
from ruleout.training import Trial, fit_grid
from ruleout.training.stack import Stack

REMEMBER = [name for name in ro.approaches() if ro.approach(name).memory]
RATES = [1e-1, 1e-2]
GRID = {"learning_rate": RATES, "weight_decay": 1e-4}


def data(n: int = 120) -> tuple[Any, ro.LabelSets]:
    x, y = ro.datasets.load("digits").train
    return x[:n].astype(np.float64), ro.draw(y[:n], classes=10, law=6, seed=0)


def plain(
    name: str, x: Any, sets: ro.LabelSets, rate: float, epochs: int, size: int, norm: bool = False
) -> Any:
    """Train one model with torch's own Adam; every row has its target."""
    loss = ro.losses.get(name)
    assert loss.memory is not None
    excluded = torch.from_numpy(sets.excluded).double()
    net = build("mlp", x.shape[1:], 10, seed=0, hidden=20, norm=norm).double()
    adam = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=1e-4)
    target, kept, rows = loss.memory.start(excluded), dict[str, Any](), torch.from_numpy(x)
    for epoch in range(1, epochs + 1):
        order = torch.from_numpy(np.random.default_rng([0, epoch]).permutation(len(x)))
        seen = torch.zeros_like(excluded)
        for own in order.split(size):  # type: ignore[no-untyped-call]
            logits = net(rows[own])
            adam.zero_grad()
            value = loss.per_example(logits, excluded[own], target=target[own]).mean()
            value.backward()  # type: ignore[no-untyped-call]
            adam.step()
            seen[own] = net(rows[own]).detach() if loss.memory.after else logits.detach()
        target = loss.revise(Seen(seen, excluded, target, epoch, kept))
    return net.state_dict()


@pytest.mark.parametrize("name", REMEMBER)
def test_training_is_that_of_a_plain_loop(name: str) -> None:
    x, sets = data()
    told: dict[str, Any] = {"model": "mlp", "model_options": {"hidden": 20}, "precision": "float64"}
    fit = fit_grid(x, sets, approach=name, grid=GRID, epochs=23, batch_size=50, **told)
    for place, rate in enumerate(RATES):
        for key, value in plain(name, x, sets, rate, 23, 50).items():
            assert torch.allclose(fit.weights[key][0, place], value, atol=1e-6), (name, key)


@pytest.mark.parametrize("name", ["rc", "proden"])
def test_what_is_looked_at_after_the_step_has_passed_batch_norm_as_in_it(name: str) -> None:
    """By its running means, which lag behind, RC lost 23 points on Lost."""
    x, sets = data()
    told: dict[str, Any] = {"model": "mlp", "model_options": {"hidden": 20, "norm": True}}
    told |= {"precision": "float64", "epochs": 8, "batch_size": 30}
    fit = fit_grid(x, sets, approach=name, grid=GRID, **told)
    for key, value in plain(name, x, sets, RATES[1], 8, 30, norm=True).items():
        if "num_batches" not in key and key in fit.weights:
            assert torch.allclose(fit.weights[key][0, 1], value, atol=1e-6), (name, key)
    module = fit.module(0, 1)
    if name == "rc":
        assert int(module.state_dict()["2.num_batches_tracked"]) == 2 * 8 * 4


@pytest.mark.parametrize("model", ["linear", "vmapped", "normed"])
@pytest.mark.parametrize("name", ["rc", "pop", "conformal-crosel"])
def test_trials_of_other_sizes_do_not_disturb_each_other(name: str, model: str) -> None:
    """Rows that fill up a batch leave no trace in what is remembered."""
    x, sets = data(130)
    kinds: dict[str, Any] = {"linear": "linear", "vmapped": gelu, "normed": normed}
    trials = [Trial(sets[:101], rows=np.arange(101)), Trial(sets[101:], rows=np.arange(101, 130))]
    told: dict[str, Any] = {"approach": name, "grid": GRID, "epochs": 22, "batch_size": 16}
    told |= {"model": kinds[model], "precision": "float64"}
    both = fit_grid(x, trials, **told)
    for place, trial in enumerate(trials):
        alone = fit_grid(x, [trial], seed=place, **told)
        for key, value in alone.weights.items():
            assert torch.allclose(both.weights[key][place].double(), value[0].double(), atol=1e-7)


def gelu(shape: Any, classes: int) -> torch.nn.Module:
    hidden = torch.nn.Linear(int(np.prod(shape)), 8)
    return torch.nn.Sequential(hidden, torch.nn.GELU(), torch.nn.Linear(8, classes))


def normed(shape: Any, classes: int) -> torch.nn.Module:
    hidden = torch.nn.Linear(int(np.prod(shape)), 8)
    return torch.nn.Sequential(hidden, torch.nn.BatchNorm1d(8), torch.nn.Linear(8, classes))


@pytest.mark.parametrize("name", REMEMBER)
def test_what_was_stopped_goes_on_with_its_targets(name: str) -> None:
    x, sets = data()
    told: dict[str, Any] = {"approach": name, "grid": GRID, "batch_size": 32}
    whole = fit_grid(x, sets, epochs=30, **told)
    half = fit_grid(x, sets, epochs=22, **told)
    rest = fit_grid(x, sets, epochs=8, start=half, **told)
    for key, value in whole.weights.items():
        assert torch.equal(rest.weights[key], value)


class KilledError(Exception):
    """Stands in for a power cut."""


@pytest.mark.parametrize("after", [3, 12, 21, 24])
@pytest.mark.parametrize("name", REMEMBER)
def test_a_killed_run_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    x, sets = data(70)
    trials = [Trial(sets[:40], rows=np.arange(40)), Trial(sets[40:], rows=np.arange(40, 70))]
    told: dict[str, Any] = {"approach": name, "grid": GRID, "epochs": 26, "batch_size": 16}
    whole = fit_grid(x, trials, **told)
    step = Stack.run_epoch

    def cut(self: Stack) -> None:
        if self.epoch == after:
            raise KilledError
        step(self)

    told |= {"checkpoint": tmp_path, "checkpoint_seconds": 0.0}
    with monkeypatch.context() as patched:
        patched.setattr(Stack, "run_epoch", cut)
        with pytest.raises(KilledError):
            fit_grid(x, trials, **told)
    again = fit_grid(x, trials, **told)
    for key, value in whole.weights.items():
        assert torch.equal(again.weights[key], value)
