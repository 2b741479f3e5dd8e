"""What is said of the time of a fit before it starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ruleout as ro
from ruleout.training import Trial, engine, estimate_seconds

X = np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32)
SETS = ro.draw(np.arange(3000) % 3, 3, seed=0)


class Clock:
    """A fit takes a moment to start, and a microsecond for each row of each model and epoch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.calls = 0.0, 0
        monkeypatch.setattr(engine, "fit_grid", self.fit)
        monkeypatch.setattr("time.perf_counter", lambda: self.now)

    def fit(self, _x: Any, trials: list[Trial], *, grid: Any, epochs: int, **_: Any) -> None:
        self.calls += 1
        rows = sum(len(trial.sets) for trial in trials)
        self.now += 0.05 + 1e-6 * rows * len(grid) * epochs


def deep(shape: tuple[int, ...], classes: int) -> Any:
    from torch import nn

    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(shape[0], classes)

        def forward(self, x: Any) -> Any:
            return self.last(x)

    return Own()


@pytest.mark.parametrize("model", ["linear", "mlp", deep])
@pytest.mark.parametrize("trials", [1, 2])
def test_a_few_steps_stand_for_all(
    monkeypatch: pytest.MonkeyPatch, model: Any, trials: int
) -> None:
    clock = Clock(monkeypatch)
    grid = {"learning_rate": [0.1, 0.01, 0.001]}
    found = estimate_seconds(X, [SETS] * trials, model=model, grid=grid, epochs=40)
    assert found == pytest.approx(1e-6 * 3000 * 3 * trials * 40)
    assert clock.calls == 3


def test_a_warmup_of_more_epochs_than_are_timed_is_no_obstacle() -> None:
    assert estimate_seconds(X[:50], SETS[:50], epochs=10, warmup=5) > 0


def test_slow_steps_are_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    monkeypatch.setattr(engine, "_QUICK", 0.0)
    assert estimate_seconds(X, SETS, model=deep, epochs=1000) > 1e-6 * 3000 * 1000
    assert clock.calls == 2


def test_short_fits_are_not_timed_if_a_rough_number_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch)
    short = estimate_seconds(X, SETS, epochs=10, roughly=True)
    assert short < 1
    assert estimate_seconds(X, SETS, epochs=20, roughly=True) == pytest.approx(2 * short)
    assert clock.calls == 0
    estimate_seconds(X, SETS, epochs=10**6, roughly=True)
    assert clock.calls > 0


def test_a_fit_tells_what_to_expect_with_the_epochs_as_they_will_be_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[dict[str, Any]] = []

    def estimate(*_: Any, **options: Any) -> float:
        asked.append(options)
        return 100.0

    monkeypatch.setattr("ruleout.estimator.classifier.estimate_seconds", estimate)
    monkeypatch.setattr("ruleout.estimator.classifier._STEPS", 300)
    told: list[float] = []
    clf = ro.RuleOutClassifier(grid={"learning_rate": [0.1, 0.01]}, random_state=0)
    clf.fit(X[:300], SETS[np.arange(300)], expect=told.append)
    assert told == [500.0]  # five folds on four fifths of the rows, and a quarter on top
    assert asked[0]["epochs"] == clf.n_iter_ > 100  # few rows: more than the default
    assert len(asked[0]["grid"]) == 2


def test_a_comparison_tells_what_to_expect_of_all_its_approaches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A decomposed set counts as often as it rules out classes, a refit as two configurations."""
    asked: list[dict[str, Any]] = []

    def estimate(*_: Any, **options: Any) -> float:
        asked.append(options)
        return 100.0

    class ToldError(Exception):
        pass

    def expect(seconds: float) -> None:
        raise ToldError(seconds)  # and nothing is trained

    monkeypatch.setattr("ruleout.comparison.comparing.estimate_seconds", estimate)
    sets = ro.draw(np.arange(300) % 10, 10, law=3, seed=0)
    grid = {"learning_rate": [0.1, 0.01, 0.001, 0.0001]}
    for names, times in ((["log"], 1.5), (["log", "exp", "pc-before"], 1.5 * (2 + 3))):
        with pytest.raises(ToldError) as told:
            ro.compare(X[:300], sets, approaches=names, grid=grid, epochs=7, expect=expect)
        assert told.value.args[0] == pytest.approx(100 * times)
    assert (asked[0]["epochs"], len(asked[0]["grid"]), asked[0]["model"]) == (7, 4, "linear")
