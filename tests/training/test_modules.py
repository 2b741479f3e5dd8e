"""Modules that train side by side, images as bytes, and images that move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import ruleout as ro
from ruleout.labels.errors import InputError
from ruleout.training import Stopping, Trial, Watch, fit_grid, nets, stack
from ruleout.training.batches import Features, move_images
from ruleout.training.device import Numbers

GRID = [
    {"learning_rate": 1e-2, "weight_decay": 1e-5},
    {"learning_rate": 1e-3, "weight_decay": 1e-2},
]
CPU = Numbers(torch.device("cpu"), torch.float32, torch.float32)


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, ro.LabelSets]:
    x, y = ro.datasets.load("digits").train
    x, y = x[:100], y[:100]
    return x, y, ro.draw(y, classes=10, seed=0)


@pytest.fixture
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stack on a CPU what is stacked on a GPU."""
    with monkeypatch.context() as patch:
        patch.setitem(nets.SIDE_BY_SIDE, "cpu", 8)
        yield


def normed(shape: tuple[int, ...], classes: int) -> nn.Module:
    layers = [nn.Conv2d(shape[0], 5, 3, bias=False), nn.BatchNorm2d(5), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(5 * 36, classes))


def both(digits: Any, **more: Any) -> tuple[Any, Any]:
    """Return the same grid stacked, and model after model."""
    x, y, sets = digits
    other = Trial(sets, weight=np.linspace(0.5, 2, len(sets)))
    short = Trial(sets[:60], np.arange(60))  # in a block of its own
    trials = [sets, other, short]
    options: dict[str, Any] = {"model": normed, "grid": GRID, "epochs": 2, "shape": (1, 8, 8)}
    options |= {"precision": "float64", "batch_size": 32, "watch": {"train": Watch(y)}, **more}
    stacked = fit_grid(x, trials, **options)
    assert min(stacked.record["stack"]) > 1
    single = fit_grid(x, trials, **options, stack=1)
    assert single.record["stack"] == [1, 1]
    return stacked, single


def assert_close(one: Any, two: Any, atol: float = 1e-12) -> None:
    for name, value in one.weights.items():
        torch.testing.assert_close(value, two.weights[name], rtol=0, atol=atol, equal_nan=True)
    for name, values in one.history.items():
        assert np.allclose(values, two.history[name], atol=atol, equal_nan=True)


@pytest.mark.parametrize("more", [{}, {"clip": 0.5, "optimizer": "adamw", "schedule": "cosine"}])
@pytest.mark.usefixtures("side_by_side")
def test_modules_side_by_side_are_those_one_after_another(
    digits: Any, more: dict[str, Any]
) -> None:
    assert_close(*both(digits, **more))


@pytest.mark.usefixtures("side_by_side")
def test_a_neighbour_that_diverges_harms_nobody(digits: Any) -> None:
    grid = {"learning_rate": [1e-3, 1e250, 1e-2]}
    with pytest.warns(UserWarning, match="will hardly train"):
        stacked, single = both(digits, grid=grid, optimizer="sgd")
    assert (stacked.diverged > 0).tolist() == [[False, True, False]] * 3
    assert_close(stacked, single)


@pytest.mark.usefixtures("side_by_side")
def test_each_model_keeps_the_buffers_of_its_best_epoch(digits: Any) -> None:
    stop = Stopping("train/accuracy", patience=1)
    stacked, single = both(digits, stopping=stop, epochs=4, grid={"learning_rate": [0.3, 0.01]})
    assert len(set(stacked.stopped.flat)) > 1
    for name, value in stacked.weights.items():
        torch.testing.assert_close(value, single.weights[name], rtol=0, atol=1e-12)


@pytest.mark.usefixtures("side_by_side")
def test_stacks_of_modules_go_on_from_a_fit_and_from_a_checkpoint(
    digits: Any, tmp_path: Any
) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": normed, "grid": GRID, "shape": (1, 8, 8)}
    whole = fit_grid(x, sets, epochs=3, **options)
    first = fit_grid(x, sets, epochs=2, checkpoint=tmp_path, checkpoint_seconds=0.0, **options)
    again = fit_grid(x, sets, epochs=2, checkpoint=tmp_path, **options)
    assert_close(first, again, 0)
    gone = fit_grid(x, sets, epochs=1, start=first, **options)
    assert all(torch.equal(value, gone.weights[name]) for name, value in whole.weights.items())


class Tied(nn.Module):
    """A weight that appears twice, one that is frozen, and one of no dimension."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(64, 64), nn.Linear(64, 64)
        self.two.weight = self.one.weight
        self.two.bias.requires_grad_(False)
        self.size, self.out = nn.Parameter(torch.tensor(1.0)), nn.Linear(shape[0], classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.out(self.two(self.one(x).tanh()).tanh() * self.size)
        return found


class Centred(nn.Module):
    """Keeps a running mean the way most people write it: a new tensor in every step."""

    mean: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.last = nn.Parameter(torch.ones(1)), nn.Linear(64, 10)
        self.register_buffer("mean", torch.zeros(64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.flatten(1)
        if self.training:
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0)
        logits: torch.Tensor = self.last((x - self.mean) * self.scale)
        return logits


def test_a_buffer_that_a_module_replaces_is_kept(digits: Any) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": Centred(), "shape": (1, 8, 8), "batch_size": 100}
    whole = fit_grid(x, sets, epochs=3, **options)
    start = fit_grid(x, sets, epochs=1, **options)
    rest = fit_grid(x, sets, epochs=2, start=start, **options)
    assert all(torch.equal(value, rest.weights[name]) for name, value in whole.weights.items())
    expected = (1 - 0.9**3) * x.mean(0).reshape(-1)
    assert np.allclose(whole.weights["mean"][0, 0], expected, atol=1e-5)


@pytest.mark.parametrize("model", [lambda *_: Centred(), normed])
def test_checkpoints_with_a_tensor_for_each_weight_go_on(
    digits: Any, tmp_path: Path, model: Any
) -> None:
    """As ruleout wrote them before weights of a module shared one tensor."""
    x, y, sets = digits
    options: dict[str, Any] = {"model": model, "shape": (1, 8, 8), "epochs": 3, "batch_size": 32}
    options |= {"watch": {"train": Watch(y)}, "stopping": Stopping("train/accuracy", patience=2)}

    def stop(done: int, _: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    whole = fit_grid(x, sets, **options)
    options |= {"checkpoint": tmp_path, "checkpoint_seconds": 0}
    with pytest.raises(KeyboardInterrupt):
        fit_grid(x, sets, progress=stop, **options)
    (file,) = tmp_path.glob("*.safetensors")
    shapes = [p.shape for p in model((1, 8, 8), 10).parameters()]
    with safe_open(file, "pt") as held:
        facts, found = held.metadata(), {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    for name in ("parameter.{}", "best.{}", "moment.{}.0", "moment.{}.1"):
        flat, place = found.pop(name.format(0))[0, 0], 0
        for i, shape in enumerate(shapes):
            found[name.format(i)] = flat[place : place + shape.numel()].view(1, 1, *shape).clone()
            place += -4 * (-shape.numel() // 4)
    buffers = [n for n in found if n.startswith("buffer.")]
    found |= {n: found[n][0, 0].clone() for n in buffers}
    save_file(found, file, facts)
    assert_close(whole, fit_grid(x, sets, **options), atol=0)


def test_a_state_knows_tied_weights_by_their_first_name(digits: Any) -> None:
    """As states were when the second name kept the weights that training began with."""
    x, _, sets = digits
    layers = nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.Linear(64, 10)
    model: Any = nn.Sequential(*layers)
    model[2].weight = model[0].weight
    whole, start = (fit_grid(x, sets, model=model, epochs=epochs) for epochs in (2, 1))
    assert start.state is not None
    weights = {**start.state.weights, "2.weight": torch.zeros(1, 1, 64, 64)}
    moments = [{n: v for n, v in one.items() if n != "2.weight"} for one in start.state.moments]
    state = replace(start.state, weights=weights, moments=moments)
    rest = fit_grid(x, sets, model=model, epochs=1, start=state)
    assert all(torch.equal(value, rest.weights[name]) for name, value in whole.weights.items())


@pytest.mark.usefixtures("side_by_side")
def test_tied_and_frozen_weights_stay_so(digits: Any) -> None:
    stacked, single = both(digits, model=Tied, shape=None)
    assert_close(stacked, single)
    assert torch.equal(stacked.weights["one.weight"], stacked.weights["two.weight"])
    start, end = stacked.fresh(0), stacked.module(0, 1)
    assert torch.equal(start.two.bias.double(), end.two.bias)
    assert not torch.equal(start.size.double(), end.size)
    assert end.one.weight is end.two.weight


def test_perceptrons_may_have_frozen_and_shared_layers(digits: Any) -> None:
    x, _, sets = digits
    same = nn.Linear(64, 64)
    relu = nn.ReLU()
    model: Any = nn.Sequential(nn.Linear(64, 64), relu, same, relu, same, relu, nn.Linear(64, 10))
    model[0].requires_grad_(False)
    trained: Any = fit_grid(x, sets, model=model, epochs=1).module()
    assert torch.equal(trained[0].weight, model[0].weight)
    assert torch.equal(trained[2].weight, trained[4].weight)
    assert not torch.equal(trained[2].weight, same.weight)


def test_batch_norm_sees_no_rows_that_fill_up_shorter_trials(digits: Any) -> None:
    x, _, sets = digits
    norm = nn.BatchNorm1d(64, track_running_stats=False)  # which has no buffers
    options: dict[str, Any] = {"model": nn.Sequential(norm, nn.Linear(64, 10)), "epochs": 1}
    short = Trial(sets[:60], np.arange(60), seed=0)
    together = fit_grid(x, [Trial(sets, seed=0), short], **options)
    alone = fit_grid(x, [short], **options)
    assert torch.equal(together.weights["1.weight"][1], alone.weights["1.weight"][0])


@pytest.mark.slow
@pytest.mark.usefixtures("side_by_side")
def test_compiled_modules_are_the_same_models(digits: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": normed, "grid": GRID, "epochs": 2, "batch_size": 32}
    options |= {"shape": (1, 8, 8), "precision": "float64"}
    plain = fit_grid(x, sets, **options)
    seen: list[int] = []
    made = torch.compile(nets._call, backend="aot_eager", dynamic=False, fullgraph=True)

    def compiled(module: nn.Module, rows: torch.Tensor) -> Any:
        seen.append(len(rows))
        return made(module, rows)

    monkeypatch.setitem(stack._LONGER, "cpu", 0)
    monkeypatch.setattr(nets, "_compiled", lambda: compiled)
    assert_close(plain, fit_grid(x, sets, **options))
    assert seen == [32] * 3 * 2 * 2  # not the last batch, of 4 rows
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.usefixtures("side_by_side")
def test_a_module_that_cannot_be_compiled_trains_as_it_is(
    digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": normed, "grid": GRID, "epochs": 1, "batch_size": 32}
    plain = fit_grid(x, sets, shape=(1, 8, 8), **options)

    def compiled(*_: Any) -> torch.Tensor:
        raise RuntimeError("no compiler")

    monkeypatch.setitem(stack._LONGER, "cpu", 0)
    monkeypatch.setattr(nets, "_compiled", lambda: compiled)
    fit = fit_grid(x, sets, shape=(1, 8, 8), **options)
    assert_close(plain, fit, 0)


@pytest.mark.parametrize("kind", [np.uint8, np.float32, np.float64])
def test_images_of_few_values_stay_as_bytes_and_come_back_whole(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(0)
    x = random.integers(0, 256, (40, 3, 4, 5)).astype(kind)
    x = x if kind is np.uint8 else (x / kind(255) - kind(0.5)) / kind(0.3)
    monkeypatch.setattr("ruleout.training.batches._AS_BYTES", ("cpu",))
    monkeypatch.setattr("ruleout.training.batches._BLOCK", 8 * 60 * 7)  # blocks of 7 rows
    rows = torch.tensor([[3, 39], [0, 3]])
    for numbers in (CPU, CPU._replace(dtype=torch.float64, compute=torch.float64)):
        found = Features(x, (3, 4, 5), numbers)
        assert found._resident is not None
        assert found._resident.dtype is torch.uint8
        wanted = torch.from_numpy(x).to(torch.float32 if kind == np.float32 else torch.float64)
        wanted = wanted.to(numbers.dtype)
        assert torch.equal(found.take(rows), wanted[rows])
        assert torch.equal(found.slice(slice(5, 9)), wanted[5:9])
    other = Features(random.normal(size=(40, 3, 4, 5)), (3, 4, 5), CPU)
    assert other._resident is not None
    assert other._resident.dtype is torch.float32


def test_images_move_as_a_plain_loop_moves_them() -> None:
    random = np.random.default_rng(0)
    x = random.normal(size=(6, 2, 4, 5)).astype(np.float32)
    moves = np.stack(
        [random.integers(0, 2, 6), random.integers(-2, 3, 6), random.integers(-2, 3, 6)], 1
    )
    wanted = np.zeros_like(x)
    for n, (flip, down, right) in enumerate(moves):
        image = x[n, :, :, ::-1] if flip else x[n]
        for i in range(4):
            for j in range(5):
                if 0 <= i + down < 4 and 0 <= j + right < 5:
                    wanted[n, :, i + down, j + right] = image[:, i, j]
    assert np.array_equal(move_images(torch.from_numpy(x), torch.from_numpy(moves)), wanted)


@pytest.mark.usefixtures("side_by_side")
def test_augmented_images_follow_the_seed_and_differ_by_epoch(digits: Any) -> None:
    stacked, single = both(digits, augment=["flip", "crop"])
    assert_close(stacked, single)
    assert stacked.record["augment"] == (1, 1, 1)
    x, _, sets = digits
    plain = fit_grid(x, sets, model=normed, grid=GRID, epochs=2, shape=(1, 8, 8), batch_size=32)
    assert "augment" not in plain.record
    assert not np.allclose(plain.history["loss"][0], stacked.history["loss"][0])


@pytest.mark.parametrize(
    ("augment", "model", "say"),
    [
        (["turn"], normed, 'list "flip", "crop", or both'),
        ("flip", normed, 'list "flip", "crop", or both'),
        (["flip"], "mlp", "augment is for images"),
    ],
)
def test_augment_says_what_it_takes(digits: Any, augment: Any, model: Any, say: str) -> None:
    x, _, sets = digits
    with pytest.raises(InputError, match=say):
        fit_grid(x, sets, model=model, shape=(1, 8, 8), augment=augment, epochs=1)
