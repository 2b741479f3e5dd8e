"""The same grid on a GPU: captured steps, fused updates, compiled losses."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import ruleout as ro
from ruleout.methods import approaches
from ruleout.training import Stopping, Trial, Watch, fit_grid, stack
from ruleout.training.optimizers import OPTIMIZERS

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
GRID = {"learning_rate": [3e-2, 1e-3], "weight_decay": [0.0, 1e-2]}


@pytest.fixture(scope="module")
def data() -> tuple[Any, Any, ro.LabelSets]:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(70, 6)), random.integers(0, 5, 70)
    return x, y, ro.draw(y, classes=5, law="released", seed=1)


def difference(one: Any, two: Any) -> float:
    return max(float((w - two.weights[name]).abs().max()) for name, w in one.weights.items())


def both(x: Any, sets: Any, **options: Any) -> tuple[Any, Any]:
    given: dict[str, Any] = {"grid": GRID, "epochs": 3, "batch_size": 16, "precision": "float64"}
    given |= options
    return fit_grid(x, sets, **given), fit_grid(x, sets, device="cuda", **given)


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("approach", approaches())
def test_a_gpu_trains_the_same_models(data: Any, approach: str, model: str) -> None:
    x, _, sets = data
    cpu, gpu = both(x, [sets, sets], approach=approach, model=model)
    assert difference(cpu, gpu) < 1e-9


@pytest.mark.parametrize("optimizer", list(OPTIMIZERS))
def test_the_fused_update_is_the_optimizer(data: Any, optimizer: str) -> None:
    x, _, sets = data
    cpu, gpu = both(x, sets, optimizer=optimizer, model="mlp")
    assert difference(cpu, gpu) < 1e-9


@pytest.mark.parametrize("approach", ["log", "nn-before", "ga-after"])
def test_trials_of_different_length_share_their_graphs(data: Any, approach: str) -> None:
    x, _, sets = data
    rows = [np.arange(70), np.arange(33), np.arange(9, 20)]
    trials = [Trial(sets[r], r, np.linspace(0.5, 2, len(r))) for r in rows]
    cpu, gpu = both(x, trials, approach=approach, model="mlp")
    assert difference(cpu, gpu) < 1e-9


@pytest.mark.parametrize("long", [0, 5_000])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_gpu_learns_from_evidence_alike(
    data: Any, model: str, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _, sets = data
    monkeypatch.setattr(stack, "_LONG", long)
    trial = Trial(sets, evidence=ro.evidence(sets, 0.1))
    cpu, gpu = both(x, [trial, trial], approach="likelihood", model=model)
    assert difference(cpu, gpu) < 1e-9


@pytest.mark.parametrize("approach", ["log", "exp", "gce", "nn-before", "ga-after", "pc-before"])
def test_compiled_losses_train_the_same_models(
    data: Any, approach: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _, sets = data
    monkeypatch.setattr(stack, "_LONG", 0)
    cpu, gpu = both(x, sets, approach=approach)
    assert any(key[0][0] == approach for key in stack._COMPILED)
    assert difference(cpu, gpu) < 1e-9


def test_watches_stopping_and_histories_are_the_same(data: Any) -> None:
    x, y, sets = data
    watch = {
        "held": Watch(y, x=x),
        "sets": Watch(sets, {"accuracy": ro.criterion("accuracy").values}),
    }
    stop = Stopping("held/accuracy", patience=2)
    cpu, gpu = both(x, [sets, sets], watch=watch, stopping=stop, epochs=8)
    assert np.array_equal(cpu.stopped, gpu.stopped)
    for name, values in cpu.history.items():
        assert np.allclose(values, gpu.history[name], atol=1e-9, equal_nan=True)
    assert difference(cpu, gpu) < 1e-9


def test_the_same_seed_gives_the_same_bits(data: Any) -> None:
    x, _, sets = data
    for precision in ("float32", "tf32", "bf16"):
        options: dict[str, Any] = {"model": "mlp", "device": "cuda", "precision": precision}
        one, two = (fit_grid(x, sets, grid=GRID, epochs=3, **options) for _ in range(2))
        assert difference(one, two) == 0
        assert one.record["device_name"] == torch.cuda.get_device_name()


def test_data_that_does_not_fit_the_gpu_is_streamed(
    data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _, sets = data
    for approach in ("log", "nn-before"):
        held = fit_grid(x, sets, approach=approach, epochs=3, device="cuda", precision="float64")
        with monkeypatch.context() as patch:
            patch.setattr("ruleout.training.batches.room", lambda _: 1)
            streamed = fit_grid(
                x, sets, approach=approach, epochs=3, device="cuda", precision="float64"
            )
        assert not streamed.record["resident"]
        assert difference(held, streamed) < 1e-12


def test_checkpoints_go_on_from_a_gpu(data: Any, tmp_path: Any) -> None:
    x, _, sets = data
    options: dict[str, Any] = {"grid": GRID, "device": "cuda", "epochs": 4, "checkpoint": tmp_path}
    one = fit_grid(x, sets, checkpoint_seconds=0.0, **options)
    assert difference(one, fit_grid(x, sets, checkpoint_seconds=0.0, **options)) == 0


def test_other_modules_train_on_a_gpu() -> None:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=10, seed=0)
    options: dict[str, Any] = {"model": "resnet32", "shape": (1, 8, 8), "device": "cuda"}
    fit = fit_grid(
        x, sets, grid={"learning_rate": [1e-2]}, epochs=10, watch={"train": Watch(y)}, **options
    )
    assert fit.history["train/accuracy"][0, 0, -1] > 0.3  # a guess: 0.1


def cnn(shape: tuple[int, ...], classes: int, *middle: nn.Module) -> nn.Module:
    layers = [nn.Conv2d(shape[0], 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, *middle, nn.Linear(5 * 36, classes))


class Looks(nn.Module):
    """Does what no CUDA graph can hold: it looks at a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum().item() > 1e9 else 2 * x


def looking(shape: tuple[int, ...], classes: int) -> nn.Module:
    return cnn(shape, classes, Looks())


def tanh(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), 7), nn.Tanh(), nn.Linear(7, classes))


def images(**more: Any) -> tuple[Any, Any]:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=10, seed=0)[:100]
    short = Trial(sets[:60], np.arange(60))
    options: dict[str, Any] = {"model": cnn, "shape": (1, 8, 8), "batch_size": 32, **more}
    return both(x[:100], [sets, sets, short], watch={"all": Watch(y[:100])}, **options)


@pytest.mark.parametrize(
    "more",
    [{}, {"model": tanh}, {"model": looking}, {"augment": ["flip", "crop"]}, {"clip": 0.5}],
    ids=["convolutions", "vmap", "uncaptured", "augmented", "clipped"],
)
def test_any_module_trains_the_same_models_on_a_gpu(more: dict[str, Any]) -> None:
    cpu, gpu = images(**more)
    assert gpu.record["stack"] == [2 if "model" not in more or more["model"] is looking else 3, 4]
    assert difference(cpu, gpu) < 1e-9
    for name, values in cpu.history.items():
        assert np.allclose(values, gpu.history[name], atol=1e-9)


def test_compiled_modules_train_the_same_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(stack._LONGER, "cuda", 0)
    assert difference(*images()) < 1e-9


def test_a_neighbour_that_diverges_harms_nobody_on_a_gpu() -> None:
    with pytest.warns(UserWarning, match="will hardly train"):
        cpu, gpu = images(grid={"learning_rate": [1e-3, 1e250, 1e-2]}, optimizer="sgd")
    assert (gpu.diverged > 0).tolist() == [[False, True, False]] * 3
    assert difference(cpu.pick([2, 2, 0]), gpu.pick([2, 2, 0])) < 1e-9


def test_dropout_follows_the_seed_whether_captured_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, classes=10, seed=0)[:100]
    dropping: Any = lambda shape, classes: cnn(shape, classes, nn.Dropout(0.5))  # noqa: E731
    options: dict[str, Any] = {"model": dropping, "shape": (1, 8, 8), "batch_size": 32, "epochs": 3}
    options |= {"device": "cuda", "precision": "float64", "grid": GRID}
    one, two = (fit_grid(x[:100], sets, **options) for _ in range(2))
    assert difference(one, two) < 1e-12
    assert one.record["stack"] == [1, 1]
    eager: Any = lambda graphs, shape: partial(graphs._step, shape)  # noqa: E731
    monkeypatch.setattr(stack.Graphs, "_capture", eager)
    assert difference(one, fit_grid(x[:100], sets, **options)) < 1e-9


def test_bf16_convolutions_run_in_bf16_and_weights_stay_float32() -> None:
    seen: set[torch.dtype] = set()

    class Sees(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            seen.add(x.dtype)
            return x

    x, y = ro.datasets.load("digits").train
    sets, seeing = ro.draw(y, classes=10, seed=0), Sees()
    fit = fit_grid(
        x, sets, model=lambda shape, classes: cnn(shape, classes, seeing), shape=(1, 8, 8),
        device="cuda", precision="bf16", epochs=5, watch={"train": Watch(y)},
    )  # fmt: skip
    assert torch.bfloat16 in seen
    assert {w.dtype for n, w in fit.weights.items() if "tracked" not in n} == {torch.float32}
    assert fit.history["train/accuracy"][0, 0, -1] > 0.3


def test_a_grid_too_large_for_the_gpu_is_cut_and_says_so(data: Any) -> None:
    x, _, sets = data
    limit = 2e9 / torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit)
    try:
        with pytest.warns(RuntimeWarning, match="do not fit the memory of cuda"):
            fit = fit_grid(
                x, sets, model="mlp", model_options={"hidden": (200_000,)}, device="cuda",
                grid={"learning_rate": list(np.geomspace(1e-6, 1e-2, 64))}, epochs=1, stack=64,
            )  # fmt: skip
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert np.isfinite(fit.history["loss"]).all()


@pytest.mark.parametrize("long", [0, 5_000])
@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize(
    "approach", [name for name in approaches() if ro.approach(name).takes_rate]
)
def test_rates_are_learned_from_on_a_gpu(
    data: Any, approach: str, model: str, long: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, _ = data
    monkeypatch.setattr(stack, "_LONG", long)
    asked = ro.propose(140, classes=5, seed=1)
    _, sets, rates = ro.answer(asked, y, np.repeat(np.arange(70), 2)).per_item()
    weight = np.linspace(0.5, 2, 33)
    short = Trial(sets[:33], np.arange(33), weight, rate=rates[:33])
    watch = {"all": Watch(sets, {"accuracy": ro.criterion("accuracy").values}, rate=rates)}
    trials = [Trial(sets, rate=rates), short]
    cpu, gpu = both(x, trials, approach=approach, model=model, watch=watch)
    assert difference(cpu, gpu) < 1e-9
    assert np.allclose(cpu.history["all/accuracy"], gpu.history["all/accuracy"])


@pytest.mark.parametrize("approach", [name for name in approaches() if ro.approach(name).memory])
def test_what_is_remembered_is_the_same_on_a_gpu(data: Any, approach: str) -> None:
    """Steps that are captured write to and read from the targets; shorter trials fill up."""
    x, _, sets = data
    trials = [Trial(sets[:45], rows=np.arange(45)), Trial(sets[45:], rows=np.arange(45, 70))]
    cpu, gpu = both(x, trials, approach=approach, model="mlp", epochs=23)
    assert difference(cpu, gpu) < 1e-5
    cpu, gpu = both(x, trials, approach=approach, epochs=23)
    assert difference(cpu, gpu) < 1e-6
    assert all(
        torch.allclose(gpu.state.memory[n], v, atol=1e-5) for n, v in cpu.state.memory.items()
    )
