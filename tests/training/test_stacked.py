"""The engine's first test: a stack equals the models trained one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import ruleout as ro
from ruleout.methods import approaches
from ruleout.training import OPTIMIZERS, GridFit, Trial, fit_grid, register_optimizer
from training import plain
from training.plain import plain_loop

K, N, D = 5, 37, 6
EIGHT = [
    {"learning_rate": rate, "weight_decay": decay}
    for rate in (3e-2, 1e-3)
    for decay in (0.0, 1e-4, 1e-2, 0.3)
]


@pytest.fixture(scope="module")
def data() -> tuple[Any, ro.LabelSets]:
    random = np.random.default_rng(0)
    x = random.normal(size=(N, D))
    return x, ro.draw(random.integers(0, K, N), classes=K, law="released", seed=1)


def largest_difference(fit: GridFit, singles: list[dict[str, Any]], trial: int = 0) -> float:
    return max(
        float((fit.weights[name][trial, place] - value).abs().max())
        for place, single in enumerate(singles)
        for name, value in single.items()
    )


def compare(data: Any, approach: str, model: str, grid: Any, **options: Any) -> float:
    """Return the largest difference between a stack and plain loops, over all steps."""
    x, sets = data
    sizes = {"hidden": (7,)} if model == "mlp" else {}
    plain_options = {**options, **sizes}
    singles = [
        plain_loop(x, sets, approach=approach, model=model, configuration=one, **plain_options)
        for one in grid
    ]
    epochs = options.pop("epochs")
    per_epoch = len(singles[0]) // epochs
    dtype = options.pop("dtype", torch.float64)
    options |= {"approach": approach, "model": model, "grid": grid, "model_options": sizes}
    options |= {"precision": str(dtype).removeprefix("torch."), "epochs": 1}
    worst, state = 0.0, None
    for epoch in range(1, epochs + 1):
        fit = fit_grid(x, sets, start=state, **options)
        now = [single[epoch * per_epoch - 1] for single in singles]
        worst, state = max(worst, largest_difference(fit, now)), fit.state
    return worst


@pytest.mark.parametrize("approach", [n for n in approaches() if not ro.approach(n).memory])
def test_eight_stacked_models_equal_eight_single_runs_step_by_step(
    data: Any, approach: str
) -> None:
    assert compare(data, approach, "linear", EIGHT, epochs=4, batch_size=1000) < 1e-9


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("approach", ["log", "cce", "nn-before", "ga-after", "clpl"])
def test_they_also_do_so_in_batches_with_a_short_last_one(
    data: Any, approach: str, model: str
) -> None:
    assert compare(data, approach, model, EIGHT, epochs=3, batch_size=8) < 1e-9


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "sgd-momentum"])
def test_every_optimizer_is_that_of_torch(data: Any, optimizer: str) -> None:
    options = {"epochs": 3, "batch_size": 16, "optimizer": optimizer}
    assert compare(data, "log", "mlp", EIGHT, **options) < 1e-9


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "sgd-momentum"])
def test_schedules_warm_up_clipping_and_full_batches_equal_single_runs(
    data: Any, optimizer: str, model: str
) -> None:
    x, sets = data
    rows = [np.arange(N), np.arange(20)]
    trials = [Trial(sets[own], own, seed=3) for own in rows]
    sizes: dict[str, Any] = {"hidden": (7,)} if model == "mlp" else {}
    same: dict[str, Any] = {"model": model, "epochs": 3, "batch_size": 8, "optimizer": optimizer}
    same |= {"clip": 0.3, "drop_last": True}
    ours: dict[str, Any] = {"model_options": sizes, "precision": "float64"}
    fit = fit_grid(x, trials, grid=EIGHT, schedule="cosine", warmup=1.5, **same, **ours)
    assert fit.state is not None
    assert fit.state.steps.tolist() == [12, 6]

    def pace(done: float, ended: float) -> float:
        return min(1.0, ended / 1.5) * (1 + math.cos(math.pi * done / 3)) / 2

    for place, own in enumerate(rows):
        more: dict[str, Any] = {"approach": "log", "seed": 3, "pace": pace, **same, **sizes}
        singles = [plain_loop(x[own], sets[own], configuration=c, **more)[-1] for c in EIGHT]
        assert largest_difference(fit, singles, place) < 1e-9
    plain = fit_grid(x, trials, grid=EIGHT, **{**same, "clip": None}, **ours)
    assert plain.record["key"] != fit.record["key"]
    assert largest_difference(plain, singles, 1) > 1e-4


class SignSGD(torch.optim.Optimizer):
    """What a user would write for single models."""

    def __init__(self, parameters: Any, lr: float, weight_decay: float) -> None:
        super().__init__(parameters, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, _closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for p in group["params"]:
                g = p.grad + group["weight_decay"] * p
                mean = self.state[p].get("mean", 0) * 0.5 + g
                self.state[p]["mean"] = mean
                p -= group["lr"] * mean.sign()


@pytest.fixture
def sign_sgd(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    def step(weights: Tensor, gradient: Tensor, moments: list[Tensor], by: Any) -> None:
        moments[0].mul_(0.5).add_(gradient.addcmul_(weights, by.decay))
        weights.addcmul_(moments[0].sign(), by.size, value=-1)

    register_optimizer("sign-sgd", moments=1)(step)
    monkeypatch.setitem(plain.OPTIMIZERS, "sign-sgd", SignSGD)
    yield "sign-sgd"
    del OPTIMIZERS["sign-sgd"]


def test_an_optimizer_of_a_user_runs_as_it_is_written(data: Any, sign_sgd: str) -> None:
    options: dict[str, Any] = {"epochs": 3, "batch_size": 16, "optimizer": sign_sgd}
    assert compare(data, "log", "mlp", EIGHT, **options) < 1e-9


def test_it_does_so_for_large_models_that_have_fused_forms_of_others(sign_sgd: str) -> None:
    random = np.random.default_rng(0)
    x, sets = random.normal(size=(8, 700)), ro.draw(random.integers(0, K, 8), classes=K, seed=1)
    sizes: dict[str, Any] = {"hidden": (100,)}
    options: dict[str, Any] = {"approach": "log", "model": "mlp", "epochs": 2, "batch_size": 8}
    options["optimizer"] = sign_sgd
    fit = fit_grid(x, sets, grid=EIGHT[:2], model_options=sizes, precision="float64", **options)
    singles = [plain_loop(x, sets, configuration=c, **options, **sizes)[-1] for c in EIGHT[:2]]
    assert largest_difference(fit, singles) < 1e-9


def test_names_of_optimizers_are_taken_once() -> None:
    with pytest.raises(ValueError, match="an optimizer named 'adam' is registered already"):
        register_optimizer("adam")


def test_the_comparison_sees_a_changed_weight_decay(data: Any) -> None:
    x, sets = data
    fit = fit_grid(x, sets, grid=EIGHT, epochs=4, precision="float64")
    changed = [{**one, "weight_decay": one["weight_decay"] * 1.01} for one in EIGHT]
    options: dict[str, Any] = {"approach": "log", "model": "linear", "epochs": 4}
    options["batch_size"] = 256
    for place, (same, other) in enumerate(zip(EIGHT, changed, strict=True)):
        one, two = (plain_loop(x, sets, configuration=c, **options)[-1] for c in (same, other))
        kept = {name: value[:, place : place + 1] for name, value in fit.weights.items()}
        single = GridFit(**{**fit.__dict__, "weights": kept})
        assert largest_difference(single, [one]) < 1e-9
        assert largest_difference(single, [two]) > 1e-9 or same["weight_decay"] == 0


@pytest.mark.parametrize("approach", ["log", "gce", "ga-before", "forward-after"])
def test_in_float32_they_agree_to_a_hundred_thousandth(data: Any, approach: str) -> None:
    gentle = [{**one, "learning_rate": one["learning_rate"] / 10} for one in EIGHT]
    options = {"epochs": 4, "batch_size": 16, "dtype": torch.float32}
    assert compare(data, approach, "mlp", gentle, **options) < 1e-5


def test_options_of_the_loss_can_differ_between_stacked_models(data: Any) -> None:
    grid = [{**EIGHT[0], "q": q} for q in (0.3, 0.7, 1.0)]
    assert compare(data, "gce", "linear", grid, epochs=3, batch_size=16) < 1e-9


@pytest.mark.parametrize("approach", ["log", "nn-before", "pc-after", "free-before"])
def test_trials_of_different_length_weights_and_rows_equal_single_runs(
    data: Any, approach: str
) -> None:
    x, sets = data
    random = np.random.default_rng(2)
    trials = []
    for count in (37, 20, 9):
        rows = random.permutation(N)[:count]
        trials.append(Trial(sets[rows], rows, random.uniform(0, 2, count)))
    options: dict[str, Any] = {
        "approach": approach,
        "model": "linear",
        "epochs": 3,
        "batch_size": 8,
    }
    fit = fit_grid(x, trials, grid=EIGHT[:2], precision="float64", seed=5, **options)
    for place, trial in enumerate(trials):
        singles = [
            plain_loop(
                x[trial.rows],
                trial.sets,
                configuration=one,
                weight=trial.weight,
                seed=5 + place,
                **options,
            )[-1]
            for one in EIGHT[:2]
        ]
        assert largest_difference(fit, singles, place) < 1e-9


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_stacks_of_any_size_give_the_same_weights(data: Any, model: str) -> None:
    x, sets = data
    options: dict[str, Any] = {"model": model, "grid": EIGHT, "epochs": 3, "batch_size": 8}
    whole = fit_grid(x, [sets, sets], precision="float64", **options)
    for stack in (1, 3, 8):
        cut = fit_grid(x, [sets, sets], precision="float64", stack=stack, **options)
        assert cut.record["stack"] == [2 if stack == 8 else 1, stack]
        for name, value in whole.weights.items():
            assert torch.allclose(value, cut.weights[name], rtol=0, atol=1e-11)


def test_hidden_layers_of_any_number_and_size(data: Any) -> None:
    x, sets = data
    options: dict[str, Any] = {"approach": "log", "model": "mlp", "epochs": 3, "batch_size": 8}
    fit = fit_grid(
        x, sets, grid=EIGHT, precision="float64", model_options={"hidden": (9, 4, 6)}, **options
    )
    singles = [
        plain_loop(x, sets, configuration=one, hidden=(9, 4, 6), **options)[-1] for one in EIGHT
    ]
    assert largest_difference(fit, singles) < 1e-9
