"""Cells beyond the paper: `auto`, sets that are biased or wrong, and those that data come with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ruleout as ro
from ruleout.datasets.registry import REGISTRY
from ruleout.experiments import Ledger, Spec, gather, paper_tables, plan, run, runner
from ruleout.experiments.plans import printed_for, table_of
from ruleout.experiments.runner import prepare
from ruleout.labels.errors import InputError, LabelError


def test_the_plan_has_boards_with_their_own_sets_alone() -> None:
    specs = plan("beyond")
    assert {one.law for one in specs if one.dataset == "lost"} == {"given"}
    assert {one.law for one in specs if one.dataset == "digits"} == {
        "released", "fixed:1", "fixed:k-2", "strong:released", "released~0.2"
    }  # fmt: skip
    assert {(one.grid, one.epochs) for one in specs} == {("small", 100)}
    assert len(specs) == len(set(specs)) == 21 * 2 * (9 * 5 + 3)
    some = plan("beyond", datasets=["digits"], laws=["weak:fixed:1"], epochs=17, models=["linear"])
    assert {(one.law, one.epochs) for one in some} == {("weak:fixed:1", 17)}
    assert {one.law for one in plan("beyond", datasets=["Lost"])} == {"given"}
    with pytest.raises(LabelError):
        plan("beyond", datasets=["digits"], laws=["odd:released"])


@pytest.mark.parametrize("law", ["strong:released", "released~0.2", "fixed:k-2"])
def test_what_the_paper_does_not_draw_is_not_beside_it(law: str) -> None:
    spec = Spec(dataset="yeast", approach="log", law=law)
    assert printed_for(spec) is None
    assert table_of(spec) == "own"


def test_sets_are_drawn_as_the_law_says() -> None:
    data = prepare(Spec(dataset="digits", approach="log", law="released~0.2", trials=2))
    (trial, _), y = data.trials, data.train.target[0]
    assert trial.sets.excluded[np.arange(len(y)), y].mean() == pytest.approx(0.2, abs=0.03)
    with pytest.raises(InputError, match="digits comes without sets; name a law"):
        prepare(Spec(dataset="digits", approach="log", law="given"))


def test_sets_that_data_come_with_are_taken() -> None:
    x, y = ro.datasets.load("digits").train
    sets = ro.draw(y, 10, seed=5)

    data = replace(ro.datasets.load("digits"), name="mine", sets=sets)
    ro.datasets.register("mine", lambda: data)
    try:
        for features in ("raw", "standardised"):
            spec = Spec(dataset="mine", approach="cc", law="given", trials=2, features=features)
            for trial in prepare(spec).trials:
                assert trial.rows is not None
                same = sets[trial.rows % len(x)]
                assert np.array_equal(trial.sets.excluded, same.excluded)
    finally:
        REGISTRY.pop("mine")


@pytest.fixture
def skin() -> str:
    """Dermatology, where its files are."""
    if not next(one for one in ro.datasets.survey() if one.name == "dermatology").present:
        pytest.skip("dermatology is not here: set RULEOUT_DATA to a folder with the original files")
    return "dermatology"


def test_a_cell_of_auto_that_was_killed_goes_on_with_the_next_trial(
    skin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = Spec(dataset=skin, approach="auto", trials=2, grid="small", epochs=20)
    real, asked = runner._auto_trial, list[int]()

    def one(spec: Spec, t: int, device: str | None) -> dict[str, Any]:
        asked.append(t)
        if asked == [0, 1]:
            raise KeyboardInterrupt  # as a kill would, after the first trial
        return real(spec, t, device)

    monkeypatch.setattr(runner, "_auto_trial", one)
    with pytest.raises(KeyboardInterrupt):
        run(spec, checkpoint=tmp_path / "cell")
    found = run(spec, checkpoint=tmp_path / "cell")
    assert asked == [0, 1, 1]
    whole = run(spec)
    assert np.array_equal(found.accuracy, whole.accuracy)
    assert found.about["why"] == whole.about["why"]
    assert all(np.array_equal(found.curves[n], whole.curves[n]) for n in whole.curves)


def test_auto_is_a_row_like_others(skin: str, tmp_path: Path) -> None:
    spec = Spec(dataset=skin, approach="auto", trials=2, grid="small", epochs=20)
    found = run(spec)
    assert found.accuracy.shape == (2,)
    assert found.mean > 0.3
    assert len(found.about["why"]) == 2
    other = run(Spec(dataset=skin, approach="log", trials=2, grid="small", epochs=20))
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for record in (found, other):
            ledger.add([record.spec])
            ledger.write(record)
        (again,) = (one for one in ledger.records() if one.spec == spec)
        assert np.array_equal(again.accuracy, found.accuracy)
    (table,) = paper_tables(gather(tmp_path / "ledger.sqlite"))
    assert [row.label for row in table.cells.rows] == ["LOG", "auto"]
