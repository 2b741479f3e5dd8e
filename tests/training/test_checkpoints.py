"""Checkpoints: what was killed goes on to the same weights."""

from __future__ import annotations

import hashlib
import json
import os
import random
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from processes import QUICK
from tiers import COUNT

import ruleout as ro
from ruleout.training import GridFit, Stopping, Watch, fit_grid
from ruleout.training.stack import Stack

GRID = {"learning_rate": [1e-2, 1e-3], "weight_decay": [0.0, 1e-2]}


def data() -> tuple[Any, Any, list[ro.LabelSets]]:
    x, y = ro.datasets.load("digits").train
    return x[:400], y[:400], [ro.draw(y[:400], classes=10, seed=seed) for seed in (0, 1)]


def digest(fit: GridFit) -> str:
    found = hashlib.sha256()
    for name in sorted(fit.weights):
        found.update(fit.weights[name].numpy().tobytes())
    for name in sorted(fit.history):
        found.update(fit.history[name].tobytes())
    return found.hexdigest()


def options(model: str = "mlp", approach: str = "log") -> dict[str, Any]:
    x, y, sets = data()
    watch = {"held": Watch(y, x=x)}
    return {
        "x": x,
        "sets": sets,
        "model": model,
        "approach": approach,
        "grid": GRID,
        "epochs": 6,
        "stack": 2,
        "watch": watch,
        "stopping": Stopping("held/accuracy", patience=4),
        "checkpoint_seconds": 0.0,
    }


class KilledError(Exception):
    """Stands in for a power cut."""


@cache
def left_alone(model: str, approach: str) -> str:
    return digest(fit_grid(**options(model, approach)))


@pytest.mark.parametrize(
    ("model", "approach", "after"),
    [
        ("linear", "log", 1),
        ("linear", "log", 9),
        ("mlp", "nn-before", 5),
        ("mlp", "nn-before", 6),
        ("mlp", "nn-before", 20),
    ],
)
def test_a_run_that_broke_off_ends_with_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str, approach: str, after: int
) -> None:
    given, whole = options(model, approach), left_alone(model, approach)
    step, count = Stack.run_epoch, iter(range(1000))

    def breaking(stack: Stack) -> None:
        if next(count) == after:
            raise KilledError
        step(stack)

    monkeypatch.setattr(Stack, "run_epoch", breaking)
    with pytest.raises(KilledError):
        fit_grid(**given, checkpoint=tmp_path / "run")
    monkeypatch.setattr(Stack, "run_epoch", step)
    assert digest(fit_grid(**given, checkpoint=tmp_path / "run")) == whole


def test_a_finished_run_is_read_back_without_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = options()
    whole = digest(fit_grid(**given, checkpoint=tmp_path))

    def never(_: Stack) -> None:
        raise AssertionError

    monkeypatch.setattr(Stack, "run_epoch", never)
    assert digest(fit_grid(**given, checkpoint=tmp_path)) == whole


def test_the_stack_of_the_first_run_is_kept(tmp_path: Path) -> None:
    given = options()
    first = fit_grid(**given, checkpoint=tmp_path)
    again = fit_grid(**{**given, "stack": 1}, checkpoint=tmp_path)
    assert first.record["stack"] == again.record["stack"] == [1, 2]
    assert digest(first) == digest(again)


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    given = {**options("linear"), "checkpoint_seconds": 60.0}
    fit_grid(**given, checkpoint=tmp_path)
    for change in ({"seed": 1}, {"epochs": 7}, {"approach": "exp"}, {"x": given["x"] + 1}):
        with pytest.raises(ValueError) as caught:
            fit_grid(**{**given, **change}, checkpoint=tmp_path)
        assert str(caught.value) == (
            f"{tmp_path}: this checkpoint belongs to a run with other data or settings; "
            "choose another folder"
        )


def test_other_watches_models_and_starts_are_other_runs(tmp_path: Path) -> None:
    given = options("linear")
    base = fit_grid(given["x"], given["sets"], grid=GRID, epochs=1)
    fit_grid(**given, checkpoint=tmp_path)
    other = {"held": Watch((data()[1] + 1) % 10, x=given["x"])}
    for change in ({"watch": other}, {"model": "mlp"}, {"start": base}):
        with pytest.raises(ValueError, match="other data or settings"):
            fit_grid(**{**given, **change}, checkpoint=tmp_path)
    with pytest.raises(ValueError, match="a checkpoint is a folder; name another"):
        fit_grid(**given, checkpoint=tmp_path / "run.json")


def test_a_search_has_two_folders(tmp_path: Path) -> None:
    x, _, sets = data()
    run: dict[str, Any] = {"grid": GRID, "epochs": 2, "checkpoint": tmp_path}
    one, two = (ro.selection.search(x, sets, **run) for _ in range(2))
    assert one.final is not None
    assert two.final is not None
    assert digest(one.final) == digest(two.final)


def test_damaged_files_are_refused_in_one_sentence(tmp_path: Path) -> None:
    given = {**options("linear"), "checkpoint_seconds": 60.0}
    fit_grid(**given, checkpoint=tmp_path)
    file = next(tmp_path.glob("*.safetensors"))
    whole = file.read_bytes()
    for damage in (b"", whole[:100], b"\xff" * 50, whole[:-7]):
        file.write_bytes(damage)
        with pytest.raises(ValueError) as caught:
            fit_grid(**given, checkpoint=tmp_path)
        assert str(caught.value) == f"{file}: this checkpoint is damaged; remove it to start anew"
    (tmp_path / "run.json").write_text("{")
    with pytest.raises(ValueError, match="this checkpoint cannot be read; remove it to start anew"):
        fit_grid(**given, checkpoint=tmp_path)
    (tmp_path / "run.json").write_text(
        json.dumps({"schema": 99, "key": "", "size": [1, 1], "blocks": []})
    )
    with pytest.raises(
        ValueError, match="was written by a newer ruleout; update ruleout, or remove it"
    ):
        fit_grid(**given, checkpoint=tmp_path)


def train(folder: Path) -> None:
    """Train with checkpoints and write the hash of the weights; the tests kill this."""
    torch.set_num_threads(1)
    x, y = ro.datasets.load("digits").train
    sets = [ro.draw(y, classes=10, seed=seed) for seed in (0, 1)]
    fit = fit_grid(
        x,
        sets,
        model="mlp",
        model_options={"hidden": (50,)},
        approach="nn-after",
        grid=GRID,
        epochs=30,
        stack=2,
        checkpoint=folder / "run",
        checkpoint_seconds=0.0,
    )
    (folder / "digest").write_text(digest(fit))


def _ends(folder: Path, seconds: float) -> bool:
    """Train in a process of its own, which is killed after so many seconds."""
    process = QUICK.Process(target=train, args=(folder,))
    process.start()
    process.join(seconds)
    ended = process.exitcode is not None
    process.kill()
    process.join()
    assert process.exitcode == 0 or not ended
    return ended


def _kill_and_resume(tmp_path: Path, moments: int) -> None:
    """Kill -9 at random moments, start again, compare with a run left in peace."""
    calm = tmp_path / "calm"
    calm.mkdir()
    assert _ends(calm, 300)
    expected = (calm / "digest").read_text()
    dice, killed, rounds = random.Random(0), 0, 0
    while killed < moments:
        folder = tmp_path / f"round-{rounds}"
        folder.mkdir()
        for attempt in range(8):
            may_kill = attempt < 7 and killed < moments
            if _ends(folder, dice.expovariate(3) if may_kill else 300):
                break
            killed += 1
        rounds += 1
        assert (folder / "digest").read_text() == expected


def test_killed_twice_the_weights_are_the_same(tmp_path: Path) -> None:
    _kill_and_resume(tmp_path, 2)


@pytest.mark.slow
def test_killed_at_fifty_random_moments_the_weights_are_the_same(tmp_path: Path) -> None:
    _kill_and_resume(tmp_path, max(1, int(50 * COUNT)))


def test_a_full_disk_stops_the_run_and_leaves_the_last_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, whole = options("linear"), left_alone("linear", "log")
    fsync, count = os.fsync, iter(range(1000))

    def full(descriptor: int) -> None:
        if next(count) >= 4:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        fit_grid(**given, checkpoint=tmp_path)
    monkeypatch.setattr(os, "fsync", fsync)
    assert not [file for file in tmp_path.iterdir() if file.suffix not in (".json", ".safetensors")]
    assert digest(fit_grid(**given, checkpoint=tmp_path)) == whole
    assert np.isfinite(fit_grid(**given, checkpoint=tmp_path).history["loss"][:, :, 0]).all()
