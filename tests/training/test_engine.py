"""What `fit_grid` promises beside equality with single runs."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import torch
from torch import nn

import ruleout as ro
from ruleout.training import (
    PAPER_GRID,
    EpochEnd,
    Stopping,
    Trial,
    Watch,
    configurations,
    fit_grid,
)
from ruleout.training.batches import order
from ruleout.training.stack import Block

GRID = {"learning_rate": [1e-2, 1e-3], "weight_decay": [1e-5, 1e-2]}


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, ro.LabelSets]:
    x, y = ro.datasets.load("digits").train
    x, y = x[:600], y[:600]
    return x, y, ro.draw(y, classes=10, seed=0)


def same(one: Any, two: Any) -> bool:
    return all(torch.equal(value, two.weights[name]) for name, value in one.weights.items())


def close(one: Any, two: Any, atol: float = 1e-6) -> bool:
    pairs = [(value, two.weights[name]) for name, value in one.weights.items()]
    return all(torch.allclose(a, b, rtol=0, atol=atol) for a, b in pairs)


def test_a_grid_is_every_combination() -> None:
    assert len(configurations("paper")) == 36
    assert configurations("paper")[7] == {"learning_rate": 1e-5, "weight_decay": 1e-5}
    assert configurations(None) == [{"learning_rate": 1e-3, "weight_decay": 1e-5}]
    rates = [
        c["learning_rate"] for c in configurations({"learning_rate": PAPER_GRID["learning_rate"]})
    ]
    assert rates == [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1]


def test_training_learns(digits: Any) -> None:
    x, y, sets = digits
    fit = fit_grid(x, sets, grid=GRID, epochs=20, watch={"train": Watch(y)})
    assert fit.history["train/accuracy"][0, 0, -1] > 0.85


def test_a_seed_decides_everything(digits: Any) -> None:
    x, _, sets = digits
    for model in ("linear", "mlp"):
        options: dict[str, Any] = {"model": model, "grid": GRID, "epochs": 2}
        assert same(fit_grid(x, sets, **options), fit_grid(x, sets, **options))
        assert not close(fit_grid(x, sets, **options), fit_grid(x, sets, seed=1, **options))


def test_trial_t_is_a_single_run_with_seed_plus_t(digits: Any) -> None:
    x, _, sets = digits
    three = fit_grid(x, [sets] * 3, grid=GRID, epochs=2, precision="float64")
    one = fit_grid(x, sets, grid=GRID, epochs=2, seed=2, precision="float64")
    for name, value in three.weights.items():
        assert torch.allclose(value[2], one.weights[name][0], rtol=0, atol=1e-10)


def test_the_batch_order_depends_on_seed_epoch_and_length_alone() -> None:
    assert np.array_equal(order(3, 1, 50), order(3, 1, 50))
    assert not np.array_equal(order(3, 1, 50), order(3, 2, 50))
    assert sorted(order(3, 1, 50)) == list(range(50))


def test_the_global_random_state_is_left_alone(digits: Any) -> None:
    x, _, sets = digits
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    fit_grid(x, sets, grid=GRID, epochs=1)
    assert torch.equal(torch.rand(3), expected)


def test_a_configuration_that_diverges_is_recorded_and_harms_nobody(digits: Any) -> None:
    x, y, sets = digits
    good = [
        {"learning_rate": 1e-2, "weight_decay": 0.0},
        {"learning_rate": 1e-3, "weight_decay": 0.0},
    ]
    bad = {"learning_rate": 100.0, "weight_decay": 1e300}
    options: dict[str, Any] = {"epochs": 4, "precision": "float64", "optimizer": "sgd"}
    options["watch"] = {"train": Watch(y)}
    alone = fit_grid(x, sets, grid=good, **options)
    beside = fit_grid(x, sets, grid=[good[0], bad, good[1]], **options)
    assert beside.diverged.tolist() == [[0, beside.diverged[0, 1], 0]]
    assert beside.diverged[0, 1] > 0
    assert "1 diverged" in repr(beside)
    for name, value in alone.weights.items():
        assert torch.allclose(beside.weights[name][:, [0, 2]], value, rtol=0, atol=1e-12)
    assert np.isfinite(beside.history["train/accuracy"][:, [0, 2]]).all()


def test_histories_can_be_thinned(digits: Any) -> None:
    x, y, sets = digits
    fit = fit_grid(x, sets, grid=GRID, epochs=11, every=4, tail=2, watch={"a": Watch(y)})
    assert fit.epochs.tolist() == [4, 8, 10, 11]
    assert fit.history["a/accuracy"].shape == fit.history["loss"].shape == (1, 4, 4)


def test_an_approach_keeps_its_options_beside_those_of_the_grid(digits: Any) -> None:
    x, _, sets = digits
    plain = {"learning_rate": [1e-2]}
    one = fit_grid(x, sets, approach=ro.approach("gce", q=0.3), grid=plain, epochs=2)
    two = fit_grid(x, sets, approach="gce", grid={**plain, "q": [0.3]}, epochs=2)
    other = fit_grid(x, sets, approach="gce", grid=plain, epochs=2)
    assert same(one, two)
    assert not close(one, other)
    assert one.record["approach_options"] == {"q": 0.3}


def test_watches_measure_what_the_final_models_predict(digits: Any) -> None:
    x, y, sets = digits
    criterion = ro.criterion("accuracy")
    trials = [Trial(sets[np.arange(t, 500)], np.arange(t, 500)) for t in (0, 3)]
    fit = fit_grid(
        x,
        trials,
        grid=GRID,
        epochs=2,
        watch={
            "test": Watch(y[500:], x=x[500:]),
            "rows": Watch([y[:40], y[9:49]], rows=[np.arange(40), np.arange(9, 49)]),
            "held": Watch(sets[500:], {"accuracy": criterion.values}, x=x[500:]),
        },
    )
    logits = fit.logits(x)
    right = (logits.argmax(-1) == torch.from_numpy(y)).double()
    assert np.allclose(fit.history["test/accuracy"][..., -1], right[..., 500:].mean(-1))
    assert np.allclose(fit.history["rows/accuracy"][1, :, -1], right[1, :, 9:49].mean(-1))
    found = criterion(logits[:, :, 500:], sets[500:])
    assert np.allclose(fit.history["held/accuracy"][..., -1], found.estimate, atol=1e-6)
    assert np.allclose(fit.errors["held/accuracy"][..., -1], found.standard_error, atol=1e-6)


@pytest.mark.parametrize("approach", ["log", "ga-before"])
def test_a_batch_larger_than_all_rows_holds_all_rows(digits: Any, approach: str) -> None:
    """And no room for more: a batch of a billion rows ended the process for want of memory."""
    x, _, sets = digits
    options: dict[str, Any] = {"approach": approach, "epochs": 2, "precision": "float64"}
    count = len(sets) if approach == "log" else int(sets.sizes.sum())
    fits = [fit_grid(x, sets, batch_size=size, **options) for size in (count, 10**9)]
    for name, weight in fits[0].weights.items():
        assert torch.allclose(weight, fits[1].weights[name], rtol=0, atol=1e-12)


def test_the_kept_loss_is_the_mean_over_the_steps_of_the_epoch(digits: Any) -> None:
    x, _, sets = digits
    config = {"learning_rate": 0.0, "weight_decay": 0.0}
    fit = fit_grid(x, sets, grid=[config], epochs=1, batch_size=300, precision="float64")
    loss = ro.losses.get("log")(fit.logits(x)[0, 0].double(), sets).mean()
    assert fit.history["loss"][0, 0, 0] == pytest.approx(float(loss), abs=1e-6)


def test_early_stopping_keeps_the_best_weights_of_each_configuration(digits: Any) -> None:
    x, y, sets = digits
    watch = {"held": Watch(y[400:], x=x[400:])}
    stop = Stopping("held/accuracy", patience=2)
    grid = {"learning_rate": [3e-1, 1e-2, 1e-4]}
    options: dict[str, Any] = {"grid": grid, "epochs": 40, "watch": watch, "precision": "float64"}
    fit = fit_grid(x[:400], sets[:400], stopping=stop, **options)
    curve = fit.history["held/accuracy"][0]
    for place in range(3):
        values = curve[place][np.isfinite(curve[place])]
        best, waited = 0, 0
        for epoch, value in enumerate(values):
            best, waited = (epoch, 0) if value > values[best] or epoch == 0 else (best, waited + 1)
            if waited == 2:
                break
        assert fit.stopped[0, place] == best + 1
        right = fit.logits(x[400:])[0, place].argmax(-1) == torch.from_numpy(y[400:])
        assert float(right.double().mean()) == pytest.approx(values[best])


def test_a_fit_can_go_on_from_another(digits: Any) -> None:
    x, _, sets = digits
    first = fit_grid(x, sets, grid=GRID, epochs=2)
    more = fit_grid(x, sets, grid=GRID, epochs=1, start=first)
    last = fit_grid(x, sets, grid=GRID, epochs=2, start=more.state)
    assert more.state is not None
    assert more.state.steps.tolist() == [9.0]
    assert same(last, fit_grid(x, sets, grid=GRID, epochs=5))


def test_float64_weights_stay_float64(digits: Any) -> None:
    x, _, sets = digits
    fit = fit_grid(x, sets, epochs=1, precision="float64")
    assert torch.equal(fit.module().state_dict()["0.weight"], fit.weights["0.weight"][0, 0])


# ---------------------------------------------------------------------- other forms of x


def test_sparse_features_and_memory_maps_equal_arrays(digits: Any, tmp_path: Path) -> None:
    x, _, sets = digits
    np.save(tmp_path / "x.npy", x)
    options: dict[str, Any] = {"grid": GRID, "epochs": 2}
    dense = fit_grid(x, sets, **options)
    assert same(dense, fit_grid(scipy.sparse.csr_matrix(x), sets, **options))
    assert same(dense, fit_grid(scipy.sparse.coo_array(x), sets, **options))
    assert same(dense, fit_grid(np.load(tmp_path / "x.npy", mmap_mode="r"), sets, **options))
    assert same(dense, fit_grid(torch.from_numpy(x), sets, **options))


@pytest.mark.parametrize("approach", ["log", "nn-before"])
def test_what_does_not_fit_is_read_batch_by_batch(
    digits: Any, approach: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, sets = digits
    options: dict[str, Any] = {"approach": approach, "grid": GRID, "epochs": 2}
    watch = {"train": Watch(y)}
    held = fit_grid(x, [sets, sets], watch=watch, **options)
    monkeypatch.setattr("ruleout.training.batches.room", lambda _: 1)
    streamed = fit_grid(x, [sets, sets], watch=watch, **options)
    assert (held.record["resident"], streamed.record["resident"]) == (True, False)
    assert same(held, streamed)
    assert np.array_equal(held.history["train/accuracy"], streamed.history["train/accuracy"])


def test_a_stack_too_large_for_the_memory_is_cut_and_says_so(
    digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, _, sets = digits
    whole = fit_grid(x, [sets, sets], grid=GRID, epochs=2, precision="float64")
    build = Block.models.fget  # type: ignore[attr-defined]

    def short(block: Any) -> Any:
        if len(block.trials) * (block.stop - block.start) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return build(block)

    monkeypatch.setattr(Block, "models", property(short))
    with pytest.warns(RuntimeWarning) as seen:
        cut = fit_grid(x, [sets, sets], grid=GRID, epochs=2, precision="float64")
    first = "8 models do not fit the memory of cpu; training them in two parts"
    assert str(seen[0].message) == first
    assert close(whole, cut, 1e-10)


def test_a_single_model_that_does_not_fit_is_an_error(
    digits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(_: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(Block, "models", property(never))
    x, _, sets = digits
    with pytest.raises(torch.OutOfMemoryError):
        fit_grid(x, sets, epochs=1)


# ---------------------------------------------------------------------- other models


class Gate(nn.Module):
    """A module of its own: two layers and a learnt scale."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.one, self.two = nn.Linear(shape[0], 8), nn.Linear(8, classes)
        self.scale = nn.Parameter(torch.ones(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.two(torch.tanh(self.one(x)) * self.scale)
        return out


def test_any_module_stacks_through_vmap_and_equals_single_runs(digits: Any) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": Gate, "grid": GRID, "epochs": 2, "precision": "float64"}
    stacked = fit_grid(x, [sets, sets], **options)
    single = fit_grid(x, [sets, sets], stack=1, **options)
    assert (stacked.record["stack"], single.record["stack"]) == ([2, 4], [1, 1])
    assert close(stacked, single, 1e-10)


def small_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(shape[0], 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
        nn.Dropout(0.5), nn.Linear(4 * 36, classes),
    )  # fmt: skip


def test_modules_with_buffers_and_dropout_train_one_after_another(digits: Any) -> None:
    x, y, sets = digits
    options: dict[str, Any] = {"model": small_cnn, "grid": GRID, "shape": (1, 8, 8), "epochs": 3}
    fit = fit_grid(x, [sets, sets], watch={"train": Watch(y)}, **options)
    assert fit.record["stack"] == [1, 1]
    assert fit.weights["1.running_mean"].shape == (2, 4, 4)
    assert same(fit, fit_grid(x, [sets, sets], **options))
    logits = fit.logits(x)
    right = (logits.argmax(-1) == torch.from_numpy(y)).double().mean(-1)
    assert np.allclose(fit.history["train/accuracy"][..., -1], right)


def test_a_fit_goes_on_with_its_buffers_and_stops_with_the_best_ones(digits: Any) -> None:
    x, y, sets = digits

    def normed(shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(shape[0]), nn.Linear(shape[0], classes))

    options: dict[str, Any] = {"model": normed, "grid": {"learning_rate": [3e-2]}}
    first = fit_grid(x, sets, epochs=2, **options)
    assert same(
        fit_grid(x, sets, epochs=1, start=first, **options), fit_grid(x, sets, epochs=3, **options)
    )
    watch = {"held": Watch(y[400:], x=x[400:])}
    stop = Stopping("held/accuracy", patience=1)
    fit = fit_grid(x[:400], sets[:400], epochs=40, watch=watch, stopping=stop, **options)
    right = fit.logits(x[400:])[0, 0].argmax(-1) == torch.from_numpy(y[400:])
    best = fit.history["held/accuracy"][0, 0, fit.stopped[0, 0] - 1]
    assert float(right.double().mean()) == pytest.approx(best)


def test_models_with_buffers_do_not_share_them(digits: Any) -> None:
    x, _, sets = digits

    def normed(shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Linear(shape[0], 8), nn.BatchNorm1d(8), nn.Linear(8, classes))

    grid = [{"learning_rate": rate} for rate in (1e-1, 1e-3)]
    both = fit_grid(x, sets, model=normed, grid=grid, epochs=3)
    for place, one in enumerate(grid):
        alone = fit_grid(x, sets, model=normed, grid=[one], epochs=3)
        for name, value in alone.weights.items():
            assert torch.equal(both.weights[name][:, place], value[:, 0]), name


def test_a_module_is_copied_for_every_model(digits: Any) -> None:
    x, _, sets = digits
    for own in (nn.Linear(64, 10), nn.Sequential(nn.Linear(64, 10), nn.Tanh())):
        before = [p.clone() for p in own.parameters()]
        one = fit_grid(x, [sets, sets], model=own, grid=GRID, epochs=2)
        made: Any = lambda *_, own=own: deepcopy(own)  # noqa: E731
        two = fit_grid(x, [sets, sets], model=made, grid=GRID, epochs=2)
        assert same(one, two)
        assert one.record["model"] == type(own).__name__
        assert all(torch.equal(a, b) for a, b in zip(before, own.parameters(), strict=True))


def test_a_last_batch_of_one_row_is_left_out_where_batch_norm_needs_two(digits: Any) -> None:
    x, _, sets = digits

    def normed(shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(shape[0]), nn.Linear(shape[0], classes))

    options: dict[str, Any] = {"model": normed, "batch_size": 32, "epochs": 1}
    fit = fit_grid(x[:65], sets[:65], **options)
    assert fit.state is not None
    assert fit.state.steps.tolist() == [2]
    assert np.isfinite(fit.history["loss"]).all()
    assert fit_grid(x[:66], sets[:66], **options).state.steps.tolist() == [3]  # type: ignore[union-attr]
    plain = fit_grid(x[:65], sets[:65], batch_size=32, epochs=1)
    assert plain.state.steps.tolist() == [3]  # type: ignore[union-attr]


class Noisy(Gate):
    """Draws random numbers without a module that says so."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(nn.functional.dropout(x, 0.3, self.training))


def test_a_module_that_draws_random_numbers_trains_alone_and_by_its_seed(digits: Any) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"model": Noisy, "epochs": 2, "batch_size": 100}
    both = fit_grid(x, sets, grid=GRID, **options)
    assert both.record["stack"] == [1, 1]
    alone = fit_grid(x, sets, grid=[both.configurations[2]], **options)
    for name, value in alone.weights.items():
        assert torch.equal(both.weights[name][:, 2:3], value)


def test_a_learning_rate_that_trains_nothing_is_warned_of(digits: Any) -> None:
    x, _, sets = digits
    with pytest.warns(UserWarning, match=r"a learning rate of 1e\+09 will hardly train"):
        fit_grid(x, sets, grid={"learning_rate": 1e9}, epochs=1)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor, np.ndarray.tolist])
@pytest.mark.parametrize("approach", ["forward-before", "forward-after"])
def test_an_option_can_be_a_matrix(digits: Any, approach: str, kind: Any) -> None:
    x, _, sets = digits
    even = kind((1 - np.eye(10)) / 9)
    options: dict[str, Any] = {"epochs": 2, "precision": "float64"}
    plain = fit_grid(x, sets, approach=approach, grid=GRID, **options)
    given = fit_grid(x, sets, approach=ro.approach(approach, transition=even), grid=GRID, **options)
    listed = [{**one, "transition": even} for one in configurations(GRID)]
    for found in (given, fit_grid(x, sets, approach=approach, grid=listed, **options)):
        assert close(plain, found, 1e-10)
        json.dumps(found.record)


class Scaled(nn.Module):
    """A module with a parameter that is a single number."""

    def __init__(self, shape: tuple[int, ...], classes: int) -> None:
        super().__init__()
        self.layer, self.scale = nn.Linear(shape[0], classes), nn.Parameter(torch.tensor(1.0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.scale * self.layer(x)
        return out


def test_a_parameter_can_be_a_single_number(digits: Any) -> None:
    x, y, sets = digits
    fit = fit_grid(x, sets, model=Scaled, grid=GRID, epochs=2, watch={"train": Watch(y)})
    assert fit.weights["scale"].shape == (1, 4)


@pytest.mark.parametrize("kind", [np.float16, ">f4", ">f8", np.uint8, np.int16, np.int64, bool])
def test_numbers_of_every_kind_are_taken(digits: Any, kind: Any) -> None:
    x, _, sets = digits
    whole = (16 * x).round() if kind is not bool else x > 0.5
    plain = fit_grid(whole.astype(np.float32), sets, epochs=2)
    assert same(plain, fit_grid(whole.astype(kind), sets, epochs=2))
    assert same(plain, fit_grid(np.asfortranarray(whole.astype(kind)), sets, epochs=2))


def test_frozen_weights_stay_as_they_are(digits: Any) -> None:
    x, _, sets = digits

    def frozen(shape: tuple[int, ...], classes: int) -> nn.Module:
        net = Gate(shape, classes)
        net.one.requires_grad_(False)
        return net

    fit = fit_grid(x, sets, model=frozen, grid=GRID, epochs=2)
    start = ro.models.build(frozen, x.shape[1], 10, seed=0).state_dict()
    assert torch.equal(fit.weights["one.weight"][0, 1], start["one.weight"])
    assert not torch.equal(fit.weights["two.weight"][0, 1], start["two.weight"])


def test_bf16_products_train_as_well(digits: Any) -> None:
    x, y, sets = digits
    for model in ("linear", "mlp", Gate):
        options: dict[str, Any] = {"model": model, "epochs": 10, "watch": {"train": Watch(y)}}
        fit = fit_grid(x, sets, grid=GRID, precision="bf16", **options)
        assert fit.record["precision"] == "bf16"
        assert fit.history["train/accuracy"][0, 0, -1] > 0.4


def test_one_row_two_classes_and_a_thousand() -> None:
    one = fit_grid(np.ones((1, 3)), ro.LabelSets([[1, 0]]), epochs=2)
    assert np.isfinite(one.history["loss"]).all()
    random = np.random.default_rng(0)
    sets = ro.draw(random.integers(0, 1000, 50), classes=1000, law=[0.5, 0.5] + [0] * 997)
    for approach in ("log", "ga-before", "forward-after", "gce"):
        many = fit_grid(random.normal(size=(50, 4)), sets, approach=approach, grid=GRID, epochs=2)
        assert np.isfinite(many.history["loss"]).all()


def test_constant_columns_do_no_harm(digits: Any) -> None:
    x, y, sets = digits
    constant = np.concatenate([x, np.full((len(x), 2), 7.0, np.float32)], 1)
    fit = fit_grid(
        constant, sets, grid={"learning_rate": 1e-2}, epochs=20, watch={"train": Watch(y)}
    )
    assert fit.history["train/accuracy"][0, 0, -1] > 0.8


def test_progress_counts_to_its_end(digits: Any) -> None:
    x, _, sets = digits
    seen: list[tuple[int, int]] = []
    fit_grid(x, sets, grid=GRID, epochs=3, stack=2, progress=lambda *at: seen.append(at))
    assert seen == [(1, 6), (2, 6), (3, 6), (4, 6), (5, 6), (6, 6)]


def test_the_record_names_device_precision_and_versions(digits: Any) -> None:
    x, _, sets = digits
    record = fit_grid(x, sets, epochs=1).record
    assert (record["device"], record["precision"], record["stack"]) == ("cpu", "float32", [1, 1])
    assert set(record["versions"]) == {"ruleout", "torch", "python"}
    assert record["seconds"] > 0


def test_a_callback_sees_every_kept_epoch_of_every_stack(digits: Any) -> None:
    x, y, sets = digits
    seen: list[EpochEnd] = []
    watch = {"train": Watch(y)}
    fit = fit_grid(
        x, sets, grid=GRID, epochs=5, every=2, stack=2, watch=watch, callback=seen.append
    )
    assert same(fit, fit_grid(x, sets, grid=GRID, epochs=5, every=2, stack=2, watch=watch))
    assert [end.epoch for end in seen] == [2, 4, 5] * 2
    assert [end.configurations for end in (seen[0], seen[-1])] == [
        fit.configurations[:2],
        fit.configurations[2:],
    ]
    for name, values in fit.history.items():
        np.testing.assert_array_equal(seen[1].history[name], values[:, :2, :2])
    error = fit.errors["train/accuracy"]
    np.testing.assert_array_equal(seen[-1].errors["train/accuracy"], error[:, 2:])


def test_a_callback_can_stop_a_stack(digits: Any, tmp_path: Path) -> None:
    x, _, sets = digits

    def enough(end: EpochEnd) -> None:
        if end.epoch == 3 and end.configurations[0]["learning_rate"] == 1e-2:
            end.stop()

    options: dict[str, Any] = {"grid": GRID, "stack": 2, "checkpoint": tmp_path / "run"}
    for _ in range(2):  # the second time from a checkpoint, which holds no callback
        fit = fit_grid(x, sets, epochs=5, callback=enough, **options)
        assert fit.stopped.tolist() == [[3, 3, 5, 5]]
        assert np.isnan(fit.history["loss"][0, :2, 3:]).all()
        assert (fit.state, fit.record["stopped_by"]) == (None, "callback")
    short = fit_grid(x, sets, grid=GRID, stack=2, epochs=3)
    for name, value in short.weights.items():
        assert torch.equal(value[:, :2], fit.weights[name][:, :2])
    whole = fit_grid(x, sets, epochs=5, **options)  # without it the run goes on
    assert same(whole, fit_grid(x, sets, grid=GRID, stack=2, epochs=5))


def test_the_likelihood_starts_slowly_where_something_may_be_wrong(digits: Any) -> None:
    x, _, sets = digits
    trial = Trial(sets, evidence=ro.evidence(sets, 0.1))
    told: dict[str, Any] = {"epochs": 5, "grid": GRID}
    own = fit_grid(x, [trial], approach="likelihood", **told)
    assert own.record["warmup"] == 1
    assert same(own, fit_grid(x, [trial], approach="likelihood", warmup=1, **told))
    for approach, known in (("log", trial), ("likelihood", sets)):
        other = fit_grid(x, [known], approach=approach, **told)
        assert "warmup" not in other.record
    more = fit_grid(x, [trial], approach="likelihood", start=own, **told)
    assert "warmup" not in more.record


def test_a_slow_start_gives_no_class_up() -> None:
    """Large first steps do, and the likelihood has no gradient there that leads back."""
    rng, k, n = np.random.default_rng(7), 10, 400
    middle, mix = 2 * rng.normal(size=(k, 6)), rng.normal(size=(6, 100)) / np.sqrt(6)
    y = rng.integers(k, size=n + 1000)
    x = ((middle[y] + rng.normal(size=(len(y), 6))) @ mix + 1).astype(np.float32)
    known = [ro.evidence(ro.draw(y[:n], k, seed=s, noise=0.1), 0.1) for s in range(4)]
    trials = [Trial(one.sets, np.arange(n), seed=s, evidence=one) for s, one in enumerate(known)]
    told: dict[str, Any] = {"approach": "likelihood", "grid": {"learning_rate": [0.1]}}
    told |= {"epochs": 100, "every": 100, "watch": {"test": Watch(y[n:], x=x[n:])}}
    slow, fast = (
        fit_grid(x, trials, warmup=pace, **told).history["test/accuracy"].ravel()
        for pace in (None, 0.0)
    )
    assert slow.mean() > 0.75
    assert (slow > fast + 0.05).all()
