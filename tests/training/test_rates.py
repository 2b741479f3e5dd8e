"""Training from every answer: stacks, watches and choices know the rates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import ruleout as ro
from ruleout.comparison import compare
from ruleout.labels.errors import InputError
from ruleout.selection import search
from ruleout.training import Trial, Watch, fit_grid
from training.plain import plain_loop

K, N, D = 5, 37, 6
GRID = [
    {"learning_rate": rate, "weight_decay": decay} for rate in (3e-2, 1e-3) for decay in (0, 0.1)
]
ABLE = [name for name in ro.approaches() if ro.approach(name).takes_rate]


@pytest.fixture(scope="module")
def data() -> tuple[Any, ro.LabelSets, Any]:
    random = np.random.default_rng(0)
    x, y = random.normal(size=(N, D)), random.integers(0, K, N)
    asked = ro.propose(2 * N, K, seed=1)
    _, sets, rates = ro.answer(asked, y, np.repeat(np.arange(N), 2)).per_item()
    return x, sets, rates


def judged(fit: Any, x: Any, sets: ro.LabelSets, rates: Any, trial: int, model: int) -> float:
    logits = fit.module(trial, model).double()(torch.as_tensor(x))
    found = ro.criterion("accuracy")(logits, sets.excluded, rates)
    return float(found.estimate)


@pytest.mark.parametrize("model", ["linear", "mlp"])
@pytest.mark.parametrize("approach", ABLE)
def test_a_stack_with_rates_equals_single_runs(data: Any, approach: str, model: str) -> None:
    x, sets, rates = data
    weight = np.linspace(0.5, 2, N)
    options: dict[str, Any] = {"hidden": (7,)} if model == "mlp" else {}
    trials = [Trial(sets, rate=rates), Trial(sets[:20], np.arange(20), weight[:20], 5, rates[:20])]
    fit = fit_grid(
        x, trials, approach=approach, model=model, grid=GRID, epochs=3, batch_size=8,
        precision="float64", model_options=options,
    )  # fmt: skip
    common = {"approach": approach, "model": model, "epochs": 3, "batch_size": 8, **options}
    for place, one in enumerate(GRID):
        first = plain_loop(x, sets, configuration=one, rates=rates, **common)[-1]
        some = {"rates": rates[:20], "weight": weight[:20], "seed": 5}
        second = plain_loop(x[:20], sets[:20], configuration=one, **some, **common)[-1]
        for trial, alone in enumerate((first, second)):
            for name, value in alone.items():
                assert torch.allclose(fit.weights[name][trial, place], value, atol=1e-9)


def test_rates_change_what_is_learned_and_the_key(data: Any) -> None:
    x, sets, rates = data
    with_rates, again = (fit_grid(x, [Trial(sets, rate=rates)], epochs=2) for _ in range(2))
    without = fit_grid(x, sets, epochs=2)
    assert with_rates.record["learned_from"] == "every answer"
    assert "learned_from" not in without.record
    assert with_rates.record["key"] == again.record["key"] != without.record["key"]
    for name, value in with_rates.weights.items():
        assert torch.equal(value, again.weights[name])
        assert not torch.equal(value, without.weights[name])


def test_a_watch_measures_with_its_rates(data: Any) -> None:
    x, sets, rates = data
    values = ro.criterion("accuracy").values
    watch = {
        "all": Watch(sets, {"accuracy": values}, rate=rates),
        "own": Watch(
            [sets[:9], sets[9:18]], {"accuracy": values}, rate=[rates[:9], rates[9:18]],
            rows=[np.arange(9), np.arange(9, 18)],
        ),
    }  # fmt: skip
    fit = fit_grid(
        x, [Trial(sets, rate=rates)] * 2, grid=GRID, epochs=2, watch=watch, precision="float64"
    )
    for trial in range(2):
        found = fit.history["all/accuracy"][trial, 1, -1]
        assert found == pytest.approx(judged(fit, x, sets, rates, trial, 1))
        rows = np.arange(9) + 9 * trial
        found = fit.history["own/accuracy"][trial, 0, -1]
        assert found == pytest.approx(judged(fit, x[rows], sets[rows], rates[rows], trial, 0))


def test_the_rows_set_aside_choose_with_their_rates(data: Any) -> None:
    x, sets, rates = data
    found = search(
        x, [Trial(sets, rate=rates, seed=3)], grid=GRID, epochs=3, share=0.3, precision="float64"
    )
    from ruleout.selection import split

    _, aside = split(N, 0.3, seed=3)
    for place in range(len(GRID)):
        wanted = judged(found.grid, x[aside], sets[aside], rates[aside], 0, place)
        assert found.estimates[0, place] == pytest.approx(wanted)


def test_rates_of_some_trials_are_rates_of_all(data: Any) -> None:
    x, sets, rates = data
    with pytest.raises(InputError, match="give rates to all trials or to none"):
        fit_grid(x, [Trial(sets, rate=rates), Trial(sets)], epochs=1)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda r: r[:-1], "the rates have shape .*; give 37, one for each row"),
        (lambda r: r + 1, "the rates are not probabilities below 1"),
        (lambda r: r * np.nan, "the rates are not probabilities below 1"),
    ],
)
def test_bad_rates_are_refused(data: Any, change: Any, sentence: str) -> None:
    x, sets, rates = data
    with pytest.raises(InputError, match=sentence):
        fit_grid(x, [Trial(sets, rate=change(rates))], epochs=1)


def test_an_approach_without_a_place_for_rates_is_refused_at_once(data: Any) -> None:
    x, sets, rates = data
    with pytest.raises(ValueError, match="'ga-after' cannot learn from every answer; use log,"):
        fit_grid(x, [Trial(sets, rate=rates)], approach="ga-after", epochs=10**9)


@pytest.mark.parametrize("judge", [0.3, "folds"])
def test_a_comparison_judges_with_the_rates(data: Any, judge: Any) -> None:
    x, sets, rates = data
    options = {"approaches": ["log", "mae"], "grid": GRID, "epochs": 2, "judge": judge}
    found = compare(x, [Trial(sets, rate=rates)] * 2, **options)
    plain = compare(x, [sets] * 2, **options)
    assert found.rows[0].values.tolist() != plain.rows[0].values.tolist()
