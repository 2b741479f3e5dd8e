"""Running a cell, against the whole protocol in plain loops: one model, one step at a time."""

from __future__ import annotations

import importlib
import json
import linecache
import math
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from experiments.made import held, same, spec
from torch import Tensor

import ruleout as ro
from ruleout import losses
from ruleout.experiments import Ledger, Record, Spec, estimate, paper_tables, run, runner
from ruleout.experiments.specs import NAMES
from ruleout.labels.errors import InputError
from ruleout.models import build
from ruleout.selection import split
from ruleout.training import configurations
from ruleout.training.batches import order

ROWS = 250
RATES, DECAYS = (0.05, 1e-3), (0.1, 1e-4)
QUICK: dict[str, Any] = {
    "dataset": "digits",
    "trials": 2,
    "epochs": 5,
    "average": 3,
    "batch_size": 100,
    "precision": "float64",
    "grid": json.dumps({"learning_rate": RATES, "weight_decay": DECAYS}),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The first rows of digits, and one thread: steps are small."""
    whole = ro.datasets.load("digits")
    data = replace(whole, x_train=whole.x_train[:ROWS], y_train=whole.y_train[:ROWS])
    monkeypatch.setattr(runner, "_loaded", lambda _: data)
    runner._prepared.cache_clear()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    runner._prepared.cache_clear()


# ---------------------------------------------------------------------- the losses


def log_loss(p: Tensor, excluded: list[list[int]], prior: Any, factor: float = 1.0) -> Tensor:
    """(k-1)/s · (−log z), mean over rows."""
    del prior
    k = p.shape[1]
    left = torch.tensor([[float(c not in out) for c in range(k)] for out in excluded])
    scale = torch.tensor([factor * (k - 1) / len(out) for out in excluded], dtype=p.dtype)
    return -(scale * torch.log((p * left).sum(1))).mean()


def log_text_loss(p: Tensor, excluded: list[list[int]], prior: Any) -> Tensor:
    return log_loss(p, excluded, prior, factor=2.0)


def forward_loss(p: Tensor, excluded: list[list[int]], prior: Any) -> Tensor:
    """−log (pᵀQ)_ȳ, Q uniform off the diagonal."""
    del prior
    ruled = torch.tensor([out[0] for out in excluded])
    wrong = (p.sum(1) - p[torch.arange(len(p)), ruled]) / (p.shape[1] - 1)
    return -torch.log(wrong).mean()


def ga_2019_loss(p: Tensor, excluded: list[list[int]], prior: Any) -> Tensor:
    """Where some n_j L_j is below zero, ascend those; L_j as released in 2019."""
    k, costs = p.shape[1], -torch.log(p)
    ruled = torch.tensor([out[0] for out in excluded])
    means = [
        costs[ruled == c].mean(0) if (ruled == c).any() else torch.zeros(k, dtype=p.dtype)
        for c in range(k)
    ]
    every = torch.stack(
        [
            prior[j] * sum(means[c][j] for c in range(k)) - (k - 1) * prior[j] * means[j][j]
            for j in range(k)
        ]
    )
    counts = torch.bincount(ruled, minlength=k)
    if (counts * every).min() < 0:
        return -torch.clamp(counts * every, max=0).sum()
    return every.sum()


LOSSES = {
    ("log", "released"): log_loss,
    ("log", "text"): log_text_loss,
    ("forward-before", "released"): forward_loss,
    ("forward-before", "text"): forward_loss,
    ("ga-before", "released"): ga_2019_loss,
}


# ---------------------------------------------------------------------- the protocol


@dataclass
class Plain:
    """What the plain loops found."""

    estimates: dict[tuple[int, int], float] = field(default_factory=dict)
    errors: dict[tuple[int, int], float] = field(default_factory=dict)
    tests: dict[tuple[int, int], float] = field(default_factory=dict)
    chosen: list[int] = field(default_factory=list)
    accuracy: list[float] = field(default_factory=list)
    curves: list[list[float]] = field(default_factory=list)


def seed_for(of: Spec, trial: int, purpose: int) -> int:
    return int(np.random.SeedSequence([of.seed, trial, purpose]).generate_state(1)[0])


def train(of: Spec, x: Tensor, sets: ro.LabelSets, seed: int, rate: float, decay: float) -> Any:
    """Yield the model after every epoch."""
    excluded = [[int(c) for c in np.flatnonzero(row)] for row in sets.excluded]
    items = [(i, out) for i, out in enumerate(excluded)]
    if of.approach.endswith("-before"):
        items = [(i, [c]) for i, out in items for c in out]
    every = [c for out in excluded for c in out]
    prior = [every.count(c) / len(every) for c in range(10)]
    net = build("linear", (64,), 10, seed=seed).double()
    adam = torch.optim.Adam(net.parameters(), lr=rate, weight_decay=decay)
    loss = LOSSES[of.approach, of.protocol]
    for epoch in range(1, of.epochs + 1):
        walk = [items[int(j)] for j in order(seed, epoch, len(items))]
        for start in range(0, len(walk), of.batch_size):
            batch = walk[start : start + of.batch_size]
            p = torch.softmax(net(x[[i for i, _ in batch]]), 1)
            adam.zero_grad()
            loss(p, [out for _, out in batch], prior).backward()  # type: ignore[no-untyped-call]
            adam.step()
        yield net


def accuracy(net: Any, x: Tensor, y: Any) -> float:
    with torch.no_grad():
        found = net(x).argmax(1).tolist()
    return sum(int(a == b) for a, b in zip(found, y, strict=True)) / len(y)


def criterion(net: Any, x: Tensor, sets: ro.LabelSets) -> tuple[float, float]:
    """1 − mean[(k−1)/s · 1(ŷ∈Ȳ)], and the standard error of that mean."""
    with torch.no_grad():
        found = net(x).argmax(1).tolist()
    values = [
        1 - (9 / int(out.sum()) if out[a] else 0.0)
        for a, out in zip(found, sets.excluded, strict=True)
    ]
    mean = sum(values) / len(values)
    spread = sum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(spread / len(values))


def plainly(of: Spec) -> Plain:
    features, labels = (part[:ROWS] for part in ro.datasets.load("digits").train)
    found = Plain()
    parts = []
    for t in range(of.trials):
        rows, aside = split(len(labels), 0.1, seed=seed_for(of, t, 1))
        sets = ro.draw(labels[rows], classes=10, law=of.law, seed=seed_for(of, t, 2))
        x, away = (torch.as_tensor(features[r], dtype=torch.float64) for r in (rows, aside))
        own = seed_for(of, t, 0)
        kept, held = split(len(rows), of.share, seed=own)
        parts.append((x, sets, away, labels[aside], own, kept, held))
    settings = [(rate, decay) for rate in RATES for decay in DECAYS]
    for t, (x, sets, away, truth, own, kept, held) in enumerate(parts):
        for c, (rate, decay) in enumerate(settings):
            judged, tested = [], []
            for net in train(of, x[kept], sets[kept], own, rate, decay):
                judged.append(criterion(net, x[held], sets[held]))
                tested.append(accuracy(net, away, truth))
            last = judged[-of.average :]
            found.estimates[t, c] = sum(one for one, _ in last) / of.average
            found.errors[t, c] = sum(one for _, one in last) / of.average
            found.tests[t, c] = sum(tested[-of.average :]) / of.average
    means = [
        sum(found.estimates[t, c] for t in range(of.searching)) / of.searching
        for c in range(len(settings))
    ]
    for t, (x, sets, away, truth, own, kept, _) in enumerate(parts):
        mine = [found.estimates[t, c] for c in range(len(settings))]
        scores = mine if of.per_trial else means
        found.chosen.append(scores.index(max(scores)))
        on = kept if of.protocol == "text" else np.arange(len(sets))
        nets = train(of, x[on], sets[on], own, *settings[found.chosen[t]])
        curve = [accuracy(net, away, truth) for net in nets]
        found.curves.append(curve)
        found.accuracy.append(sum(curve[-of.average :]) / of.average)
    return found


def table(values: dict[tuple[int, int], float]) -> list[list[float]]:
    return [[values[t, c] for c in range(4)] for t in range(2)]


def check(found: Record, expected: Plain) -> None:
    tight: dict[str, Any] = {"rtol": 0, "atol": 1e-9}
    np.testing.assert_allclose(found.estimates, table(expected.estimates), **tight)
    np.testing.assert_allclose(found.errors, table(expected.errors), **tight)
    np.testing.assert_allclose(found.tests, table(expected.tests), **tight)
    assert found.chosen.tolist() == expected.chosen
    np.testing.assert_allclose(found.curves["test"], expected.curves, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.accuracy, expected.accuracy, **tight)


@pytest.mark.parametrize(
    ("approach", "protocol"), list(LOSSES), ids=[" ".join(one) for one in LOSSES]
)
def test_a_cell_is_what_plain_loops_give(approach: str, protocol: str) -> None:
    """The choice, the criterion, the refit and the mean of the last epochs, in both protocols."""
    law = {"released": "released", "text": "paper"}[protocol]
    of = spec(approach, protocol=protocol, law=law, **QUICK)
    check(run(of), plainly(of))


def test_trials_that_choose_for_themselves_are_what_plain_loops_give() -> None:
    of = spec("log", per_trial=True, seed=3, **QUICK)
    expected = plainly(of)
    check(run(of), expected)


def test_a_grid_searched_in_one_trial_is_what_plain_loops_give() -> None:
    """One trial chooses for all, and only it is recorded as having searched."""
    of = spec("log", search_trials=1, seed=3, **QUICK)
    expected, found = plainly(of), run(of)
    one = [table(expected.estimates)[0]]
    np.testing.assert_allclose(found.estimates, one, rtol=0, atol=1e-9)
    assert found.tests.shape == found.errors.shape == (1, 4)
    assert found.chosen.tolist() == expected.chosen
    np.testing.assert_allclose(found.accuracy, expected.accuracy, rtol=0, atol=1e-9)
    assert found.about["models"] == 4
    assert found.estimate == pytest.approx(max(one[0]))


def test_a_printed_configuration_is_trained_and_nothing_is_searched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(NAMES["configurations"], "digits", {"linear": {"log": [0.05, 1e-4]}})
    of = spec("log", **QUICK | {"grid": "printed"})
    one = json.dumps({"learning_rate": [0.05], "weight_decay": [1e-4]})
    found, searched = run(of), run(spec("log", **QUICK | {"grid": one}))
    assert np.array_equal(found.accuracy, searched.accuracy)
    assert found.configuration == {"learning_rate": 0.05, "weight_decay": 1e-4}
    assert found.estimates.shape == found.errors.shape == found.tests.shape == (0, 1)
    assert math.isnan(found.estimate)
    assert math.isnan(found.oracle[0])
    assert found.about["models"] == 0
    with Ledger(":memory:") as ledger:
        ledger.write(found)
        (kept,) = ledger.records()
    assert same(kept, found)


def test_halving_goes_on_with_the_best_third_of_each_round() -> None:
    """36 configurations, then 12, then 4; the last round is a search of these, for fewer epochs."""
    of = spec("log", **QUICK | {"grid": "halving", "epochs": 80, "search_trials": 1})
    found = run(of)
    first, second = found.about["rounds"]
    assert (first["epochs"], second["epochs"]) == (1, 3)
    assert first["configurations"] == configurations("paper")
    for before, after in ((first, second["configurations"]), (second, found.configurations)):
        order = np.argsort(-np.array(before["scores"]), kind="stable")
        best = sorted(order[: len(order) // 3])
        assert after == [before["configurations"][place] for place in best]
    assert len(found.configurations) == 4
    assert found.about["models"] == 36 + 12 + 4
    left = json.dumps(found.configurations)
    again = run(replace(of, grid=left, epochs=20, average=3))
    assert np.array_equal(found.estimates, again.estimates)
    assert np.array_equal(found.chosen, again.chosen)
    whole = run(replace(of, grid=json.dumps([found.configuration])))
    assert np.array_equal(found.accuracy, whole.accuracy)
    json.dumps(dict(found.about), allow_nan=False)


def test_seconds_of_killed_processes_count(tmp_path: Path) -> None:
    for name in ("search", "refit"):
        (tmp_path / f"{name}.seconds").write_text("1000.0")
    found = run(spec("log", **QUICK), checkpoint=tmp_path)
    assert 2000 < found.seconds < 3000
    assert 1000 < found.about["grid_seconds"] < 2000


def test_the_refit_learns_from_all_rows_or_from_those_that_did_not_choose() -> None:
    """The same choice: only the rows of the last training differ, and with them the curves."""
    one = {**QUICK, "grid": '{"learning_rate": [0.05]}'}
    released, text = (spec("mae", protocol=name, **one) for name in ("released", "text"))
    a, b = run(released), run(text)
    assert np.array_equal(a.estimates, b.estimates)
    assert np.array_equal(a.tests, b.tests)
    assert not np.array_equal(a.curves["test"], b.curves["test"])
    np.testing.assert_allclose(b.accuracy, b.tests[:, 0], rtol=0, atol=1e-12)


def test_a_record_says_all_that_reports_need() -> None:
    of = spec("ga-after", **QUICK)
    found = run(of)
    assert found.spec == of
    assert found.configurations == [
        {"learning_rate": rate, "weight_decay": decay} for rate in RATES for decay in DECAYS
    ]
    assert found.epochs.tolist() == [1, 2, 3, 4, 5]
    assert {name: line.shape for name, line in found.curves.items()} == dict.fromkeys(
        ("test", "train", "loss"), (2, 5)
    )
    np.testing.assert_allclose(found.accuracy, found.curves["test"][:, -3:].mean(1), atol=1e-6)
    assert found.about["approach"] == "ga-2019-after"
    assert found.about["models"] == 8
    assert found.about["device"] == "cpu"
    assert set(found.about["versions"]) >= {"torch", "ruleout"}
    assert 0 < found.about["grid_seconds"] < found.seconds
    json.dumps(dict(found.about))
    assert found.mean == pytest.approx(found.accuracy.mean())
    assert found.std == pytest.approx(np.std(found.accuracy, ddof=1))


def test_the_same_spec_gives_the_same_bits() -> None:
    of = spec("nn-before", **QUICK)
    one, other = run(of), run(of)
    assert np.array_equal(one.accuracy, other.accuracy)
    assert np.array_equal(one.estimates, other.estimates)
    for name in one.curves:
        assert np.array_equal(one.curves[name], other.curves[name])


@pytest.mark.filterwarnings("ignore:a learning rate of:UserWarning")
def test_a_configuration_that_diverges_is_not_chosen() -> None:
    of = replace(spec("free-before", **QUICK), grid='{"learning_rate": [1e308, 0.01]}')
    found = run(of)
    assert np.isnan(found.estimates[:, 0]).all()
    assert np.isfinite(found.estimates[:, 1]).all()
    assert found.chosen.tolist() == [1, 1]
    assert found.about["diverged"] == 2
    assert found.oracle[1] == found.configurations[1]


@pytest.mark.filterwarnings("ignore:a learning rate of:UserWarning")
def test_a_grid_that_diverges_altogether_is_an_error() -> None:
    of = replace(spec("free-before", **QUICK), grid='{"learning_rate": [1e308]}')
    with pytest.raises(ValueError, match="no configuration has a finite estimate"):
        run(of)


def test_progress_is_told() -> None:
    told: list[tuple[int, int]] = []
    run(spec("log", **QUICK), progress=lambda done, every: told.append((done, every)))
    assert told[-1] == (5, 5)
    assert told == sorted(told)


def test_the_time_of_a_cell_is_that_of_the_trials_that_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was timed before: steps are, of one trial where one searches."""
    timed: list[int] = []

    def stand_in(_: Any, trials: list[Any], **__: Any) -> float:
        timed.append(len(trials))
        return 4.0 * len(trials)  # a second for each model of the grid

    monkeypatch.setattr(runner, "estimate_seconds", stand_in)
    with Ledger(":memory:") as ledger:
        every, one = (estimate(ledger, [spec("log", **QUICK, search_trials=n)]) for n in (0, 1))
    assert timed == [2, 1]
    assert [every, one] == pytest.approx([1.25 * 8, 1.25 * 4])


def test_workers_share_tasks_and_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their time is the sum by their number, never less than the longest task."""
    threads: list[int] = []

    def stand_in(*_: Any, **__: Any) -> float:
        threads.append(torch.get_num_threads())
        return 8.0

    monkeypatch.setattr(runner, "estimate_seconds", stand_in)
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with Ledger(":memory:") as ledger:
            alike = [spec(name, **QUICK) for name in ("log", "exp", "mae", "gce")]
            times = [estimate(ledger, alike, None, workers) for workers in (1, 2, 8)]
        assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)
    assert times == pytest.approx([40, 20, 10])
    assert threads == [4, 2, 1]


@pytest.mark.parametrize(("grid", "models"), [("paper", 37), ("halving", 2), ("printed", 1)])
def test_the_time_of_a_cell_is_that_of_its_grid(
    monkeypatch: pytest.MonkeyPatch, grid: str, models: int
) -> None:
    """Whatever is searched, the steps of the whole grid are timed and the models counted."""
    monkeypatch.setitem(NAMES["configurations"], "digits", {"linear": {"log": [0.05, 1e-4]}})
    monkeypatch.setattr(runner, "estimate_seconds", lambda *_, **__: 37.0)
    with Ledger(":memory:") as ledger:
        seconds = estimate(ledger, [spec("log", **QUICK | {"grid": grid, "trials": 1})])
    assert seconds == pytest.approx(1.25 * models)


LOSS = """
from ruleout import losses
@losses.register("own-sum", family="bounded", paper="this test")
def own(logits, excluded):
    return {scale} * (logits.softmax(-1) * excluded).sum(-1)
"""


def test_a_loss_whose_code_changed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the table; and a checkpoint of the other code is not gone on from."""
    monkeypatch.syspath_prepend(tmp_path)
    of = spec("own-sum", **QUICK)
    for scale, changed in ((1, False), (2, True)):
        (tmp_path / "own_sum.py").write_text(LOSS.format(scale=scale))
        monkeypatch.delitem(sys.modules, "own_sum", raising=False)
        linecache.checkcache()
        importlib.invalidate_caches()
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        importlib.import_module("own_sum")
        try:
            if not changed:
                found = run(of, checkpoint=tmp_path / "kept")
            else:
                with pytest.raises(InputError, match="other data or settings"):
                    run(of, checkpoint=tmp_path / "kept")
            (table,) = paper_tables(held(found))
            assert (
                "Cells of own-sum were computed by code that was changed" in table.cells.note
            ) == changed
        finally:
            losses.forget("own-sum")
    assert len(found.about["code"]) == 64
