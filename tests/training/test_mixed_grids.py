"""Grids over what cannot be stacked: batch sizes and options of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.selection import search
from ruleout.training import GridFit, Watch, estimate_seconds, fit_grid
from ruleout.training.stack import Stack

MIXED = {"batch_size": [64, 256], "model.hidden": [(5, 4), 7], "learning_rate": [1e-2, 1e-3]}


@pytest.fixture(scope="module")
def digits() -> tuple[Any, Any, list[ro.LabelSets]]:
    x, y = ro.datasets.load("digits").train
    x, y = x[:400], y[:400]
    return x, y, [ro.draw(y, classes=10, seed=seed) for seed in (0, 1)]


@pytest.fixture(scope="module")
def mixed(digits: Any) -> GridFit:
    x, y, sets = digits
    return fit_grid(x, sets, model="mlp", grid=MIXED, epochs=2, watch={"train": Watch(y)})


def test_every_part_is_trained_as_it_would_be_alone(digits: Any, mixed: GridFit) -> None:
    x, y, sets = digits
    assert mixed.shape == (2, 8)
    assert [one["batch_size"] for one in mixed.configurations] == [64] * 4 + [256] * 4
    for place, one in enumerate(mixed.configurations[::2]):
        alone = fit_grid(
            x, sets, model="mlp", model_options={"hidden": one["model.hidden"]},
            batch_size=one["batch_size"], grid={"learning_rate": [1e-2, 1e-3]}, epochs=2,
            watch={"train": Watch(y)},
        )  # fmt: skip
        own = slice(2 * place, 2 * place + 2)
        for name, values in alone.history.items():
            np.testing.assert_array_equal(values, mixed.history[name][:, own])
        for trial in range(2):
            expected = alone.module(trial, 1).state_dict()
            found = mixed.module(trial, 2 * place + 1).state_dict()
            assert all(torch.equal(expected[name], found[name]) for name in expected)
    assert mixed.logits(x[:3]).shape == (2, 8, 3, 10)


def test_the_order_is_that_of_the_grid(digits: Any) -> None:
    x, _, sets = digits
    grid = [{"batch_size": size, "learning_rate": 0.1} for size in (32, 400, 32)]
    fit = fit_grid(x, sets, grid=grid, epochs=2)
    assert [one["batch_size"] for one in fit.configurations] == [32, 400, 32]
    losses = fit.history["loss"][0]
    np.testing.assert_array_equal(losses[0], losses[2])
    assert losses[0, -1] < losses[1, -1]  # more steps
    assert fit.record["batch_size"] == [32, 400]
    assert (len(fit.record["key"]), fit.state) == (64, None)


def test_one_part_can_go_on(digits: Any) -> None:
    x, _, sets = digits
    options: dict[str, Any] = {"grid": {"batch_size": 100, "learning_rate": [0.1, 0.01]}}
    first = fit_grid(x, sets, epochs=1, **options)
    more = fit_grid(x, sets, epochs=1, start=first, **options)
    whole = fit_grid(x, sets, epochs=2, batch_size=100, grid={"learning_rate": [0.1, 0.01]})
    assert torch.equal(more.weights["0.weight"], whole.weights["0.weight"])
    with pytest.raises(ValueError, match="one batch size and one model"):
        fit_grid(x, sets, epochs=1, start=first, grid={"batch_size": [100, 200]})


def test_parts_go_on_from_their_checkpoints(
    digits: Any, mixed: GridFit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y, sets = digits
    options: dict[str, Any] = {
        "model": "mlp",
        "grid": MIXED,
        "epochs": 2,
        "watch": {"train": Watch(y)},
    }
    seen: list[float] = []
    fit_grid(
        x, sets, checkpoint=tmp_path, progress=lambda n, of: seen.append(n / of), **options
    )  # fmt: skip
    assert seen == sorted(seen)
    assert seen[-1] == 1
    monkeypatch.setattr(Stack, "run_epoch", None)
    again = fit_grid(x, sets, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(again.history["loss"], mixed.history["loss"])


@pytest.mark.parametrize("per_trial", [False, True])
def test_a_search_chooses_among_parts(digits: Any, per_trial: bool) -> None:
    x, _, sets = digits
    grid = {"model.hidden": [3, 30], "batch_size": [32, 400], "learning_rate": 0.03}
    found = search(x, sets, model="mlp", grid=grid, epochs=6, per_trial=per_trial)
    assert found.configuration["batch_size"] == 32
    assert found.final is not None
    assert found.final.shape == (2, 1)
    wide = [found.grid.configurations[place]["model.hidden"] for place in found.chosen]
    assert [found.final.module(t)[0].out_features for t in range(2)] == wide  # type: ignore[index]


def test_time_is_estimated_for_all_parts(digits: Any) -> None:
    x, _, sets = digits
    told: dict[str, Any] = {"epochs": 9, "roughly": True, "model": "mlp"}
    two = estimate_seconds(x, sets, grid={"model.hidden": [10, 20]}, **told)
    each = [estimate_seconds(x, sets, model_options={"hidden": h}, **told) for h in (10, 20)]
    assert two == pytest.approx(sum(each))


def test_the_steps_that_are_timed_call_nobody(digits: Any, tmp_path: Path) -> None:
    x, _, sets = digits
    told: dict[str, Any] = dict.fromkeys(("callback", "progress"), pytest.fail)
    told["checkpoint"] = tmp_path / "run"
    assert estimate_seconds(x, sets, grid={"batch_size": [100, 400]}, epochs=2, **told) > 0
    assert not (tmp_path / "run").exists()
