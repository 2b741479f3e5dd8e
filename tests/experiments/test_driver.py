"""The driver: every task once, whoever works, whatever fails, whatever is killed."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from experiments.made import GRID, dying, ending, failing, keeping, noting, record, same, spec
from processes import QUICK

from ruleout.experiments import Ledger, Spec, drive, gather, run, runner, work, write_report
from ruleout.labels.errors import InputError
from ruleout.training.stack import Stack

NAMES = ("log", "exp", "mae", "mse", "gce", "cce")
SPECS = [spec(name) for name in NAMES]
Drive = Callable[..., None]


def notes(folder: Path) -> list[str]:
    file = folder / "notes"
    return file.read_text().split() if file.exists() else []


def wait_for(what: Callable[[], Any], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


# ---------------------------------------------------------------------- one process


def test_each_task_is_done_once_in_order(tmp_path: Path, place: str, driving: Drive) -> None:
    compute = partial(noting, notes=str(tmp_path / "notes"))
    driving(place, SPECS, compute=compute)
    assert notes(tmp_path) == list(NAMES)
    driving(place, SPECS, compute=compute)
    assert notes(tmp_path) == list(NAMES)  # nothing is computed again
    with Ledger(place) as ledger:
        assert all(same(one, record(one.spec)) for one in ledger.records())
        assert [one.spec for one in ledger.records()] == SPECS


def test_a_task_that_fails_is_tried_again_after_the_others(
    tmp_path: Path, place: str, driving: Drive
) -> None:
    compute = partial(failing, notes=str(tmp_path / "notes"), fails={"exp": 2})
    driving(place, SPECS, compute=compute)
    assert notes(tmp_path) == [*NAMES, "exp", "exp"]
    with Ledger(place) as ledger:
        assert len(ledger.records()) == len(SPECS)
        assert ledger.failures() == []


def test_a_task_that_always_fails_is_given_up_and_listed(
    tmp_path: Path, place: str, driving: Drive
) -> None:
    """After one try and three retries, with its error on one line; the others are done."""
    compute = partial(failing, notes=str(tmp_path / "notes"), fails={"exp": 99, "gce": 3})
    driving(place, SPECS, compute=compute)
    count = Counter(notes(tmp_path))
    assert (count["exp"], count["gce"], count["log"]) == (4, 4, 1)
    with Ledger(place) as ledger:
        (failure,) = ledger.failures()
        assert failure.spec == spec("exp")
        assert failure.given_up
        assert failure.error.startswith("ZeroDivisionError: exp is not well (made.py, line ")
        assert {one.spec.approach for one in ledger.records()} == set(NAMES) - {"exp"}
        ledger.forgive([spec("exp")])
    (tmp_path / "notes").unlink()
    driving(place, SPECS, compute=partial(noting, notes=str(tmp_path / "notes")))
    assert notes(tmp_path) == ["exp"]
    assert len(gather(place).records) == len(SPECS)


def test_retries_count_over_restarts(tmp_path: Path, place: str) -> None:
    compute = partial(failing, notes=str(tmp_path / "notes"), fails={"log": 99})
    with Ledger(place) as ledger:
        for _ in range(3):
            next(work(ledger, SPECS[:1], compute=compute))
    drive(place, SPECS[:1], compute=compute)
    assert len(notes(tmp_path)) == 4


@pytest.mark.parametrize("lost", [True, False])
def test_a_process_without_its_gpu_takes_no_other_task(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, lost: bool
) -> None:
    """Every task after it would fail, and soon all would be given up; an error alone is no loss."""

    def synchronize() -> None:
        if lost:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    compute = partial(failing, notes=str(tmp_path / "notes"), fails={"exp": 1})
    if lost:
        with pytest.raises(InputError, match=r"lost its GPU during .* exp: ZeroDivisionError: exp"):
            drive(place, SPECS, compute=compute)
        with Ledger(place) as ledger:
            assert [(one.spec, one.times) for one in ledger.failures()] == [(SPECS[1], 1)]
            assert ledger.claimed() == set()
    drive(place, SPECS, compute=compute)  # started again, in a process that has one
    assert len(gather(place).records) == len(SPECS)
    assert Counter(notes(tmp_path)) == Counter({one.approach: 1 for one in SPECS}) + Counter(
        ["exp"]
    )


def test_only_what_was_asked_for_is_done(tmp_path: Path, place: str, driving: Drive) -> None:
    with Ledger(place) as ledger:
        ledger.add(SPECS)
    driving(place, SPECS[2:4], compute=partial(noting, notes=str(tmp_path / "notes")))
    assert notes(tmp_path) == ["mae", "mse"]


def test_a_claimed_task_is_left_to_others(tmp_path: Path, place: str) -> None:
    compute = partial(noting, notes=str(tmp_path / "notes"))
    with Ledger(place) as ledger, Ledger(place) as other:
        with other.claim(SPECS[0]):
            assert list(work(ledger, SPECS[:3], compute=compute)) == SPECS[1:3]
        assert list(work(ledger, SPECS[:3], compute=compute)) == SPECS[:1]


def test_a_task_that_others_finished_meanwhile_is_not_done_again(
    tmp_path: Path, place: str
) -> None:
    """Between looking and claiming, another process may have done all of it."""
    compute = partial(noting, notes=str(tmp_path / "notes"))
    with Ledger(place) as ledger:
        claim = ledger.claim

        def late(spec: Spec) -> Any:
            ledger.write(record(spec))
            return claim(spec)

        ledger.claim = late  # type: ignore[method-assign]
        assert list(work(ledger, SPECS[:3], compute=compute)) == []
    assert notes(tmp_path) == []


def test_the_first_look_and_the_last_are_shown(tmp_path: Path, place: str, driving: Drive) -> None:
    seen: list[int] = []
    driving(
        place,
        SPECS,
        compute=partial(noting, notes=str(tmp_path / "notes")),
        seen=lambda ledger: seen.append(len(ledger.done())),
    )
    assert (seen[0], seen[-1]) == (0, len(SPECS))
    assert set(seen) == set(range(len(SPECS) + 1))


def test_interrupting_stops_at_once_and_keeps_what_is_done(place: str) -> None:
    def interrupted(of: Spec, *, device: str | None = None) -> Any:
        del device
        if of.approach == "mae":
            raise KeyboardInterrupt
        return record(of)

    with pytest.raises(KeyboardInterrupt):
        drive(place, SPECS, compute=interrupted)
    with Ledger(place) as ledger:
        assert len(ledger.records()) == 2
        assert ledger.failures() == []
        assert ledger.claimed() == set()


# ---------------------------------------------------------------------- several processes


def test_two_drivers_at_once_compute_no_task_twice(tmp_path: Path, place: str) -> None:
    """Both go on until all is done, also with tasks that fail now and then."""
    compute = partial(
        failing, notes=str(tmp_path / "notes"), fails={"mae": 1, "cce": 99}, takes=0.05
    )
    words = (place, SPECS)
    drivers = [QUICK.Process(target=drive, args=words, kwargs={"compute": compute}) for _ in "ab"]
    for driver in drivers:
        driver.start()
    for driver in drivers:
        driver.join(120)
    assert [driver.exitcode for driver in drivers] == [0, 0]
    expected = Counter(dict.fromkeys(NAMES, 1) | {"mae": 2, "cce": 4})
    assert Counter(notes(tmp_path)) == expected
    with Ledger(place) as ledger:
        assert len(ledger.records()) == len(SPECS) - 1


def test_a_task_of_a_killed_process_is_free_at_once(tmp_path: Path, place: str) -> None:
    slow = partial(noting, notes=str(tmp_path / "notes"), takes=600.0)
    driver = QUICK.Process(target=drive, args=(place, SPECS[:1]), kwargs={"compute": slow})
    driver.start()
    wait_for(lambda: notes(tmp_path))
    with Ledger(place) as ledger:
        assert ledger.claimed() == {SPECS[0].key}
        with ledger.claim(SPECS[0]) as mine:
            assert not mine
        driver.kill()
        driver.join(60)
        wait_for(lambda: not ledger.claimed(), 5)  # a server must first see that the line is gone
        with ledger.claim(SPECS[0]) as mine:
            assert mine
        assert ledger.open() == SPECS[:1]
        assert ledger.failures() == []  # a kill is no failure


@pytest.mark.parametrize(("grid", "at"), [(GRID, 4), (GRID, 40), ("halving", 4), ("halving", 20)])
def test_a_killed_cell_goes_on_and_gives_the_same_record(
    tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch, grid: str, at: int
) -> None:
    """In the search and in the refit: no epoch that was saved is trained again."""
    of = spec("log", "digits", trials=2, epochs=27, grid=grid)
    how: dict[str, Any] = {"checkpoints": tmp_path / "kept"}
    killed = how | {"compute": partial(dying, at=at)}
    driver = QUICK.Process(target=drive, args=(place, [of]), kwargs=killed)
    driver.start()
    epoch, epochs = Stack.run_epoch, list[int]()

    def counting(self: Stack) -> None:
        epoch(self)
        epochs.append(self.epoch)

    monkeypatch.setattr(Stack, "run_epoch", counting)
    calm = run(of)
    whole = len(epochs)
    driver.join(120)
    assert driver.exitcode == -signal.SIGKILL
    assert os.listdir(tmp_path / "kept") == [of.key]
    with Ledger(place) as ledger:
        assert ledger.claimed() == set()
    epochs.clear()
    drive(place, [of], **how)
    assert len(epochs) == whole - at
    (found,) = gather(place).records
    assert found.about["rounds" if grid == "halving" else "data"]
    times = {name: calm.about[name] for name in ("seconds", "grid_seconds")}
    assert same(replace(found, about={**found.about, **times}), calm)
    assert os.listdir(tmp_path / "kept") == []


def test_each_task_has_a_folder_until_it_is_recorded(
    tmp_path: Path, place: str, driving: Drive
) -> None:
    driving(place, SPECS[:3], compute=keeping, checkpoints=tmp_path / "kept")
    assert len(gather(place).records) == 3
    assert os.listdir(tmp_path / "kept") == []


def test_checkpoints_of_what_others_recorded_are_removed(tmp_path: Path, place: str) -> None:
    """A driver can be killed between writing and removing; cells under way keep theirs."""
    for one in SPECS[:2]:
        (tmp_path / one.key / "search").mkdir(parents=True)
    with Ledger(place) as ledger:
        ledger.write(record(SPECS[0]))
    drive(place, SPECS[:1], checkpoints=tmp_path)
    assert not (tmp_path / SPECS[0].key).exists()
    assert (tmp_path / SPECS[1].key).exists()


def test_workers_share_the_tasks(tmp_path: Path) -> None:
    compute = partial(failing, notes=str(tmp_path / "notes"), fails={"log": 1}, takes=0.05)
    drive(tmp_path / "a.sqlite", SPECS, workers=2, compute=compute)
    assert Counter(notes(tmp_path)) == Counter(dict.fromkeys(NAMES, 1) | {"log": 2})
    with Ledger(tmp_path / "a.sqlite") as ledger:
        assert all(same(one, record(one.spec)) for one in ledger.records())
        assert len(ledger.records()) == len(SPECS)


def test_a_worker_that_cannot_use_the_ledger_says_so_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_end_with", lambda _: None)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    with pytest.raises(SystemExit, match=r"^ruleout: .*: the ledger cannot be used \("):
        runner._helper(1, torch.get_num_threads(), [], str(tmp_path / "no" / "a"), SPECS)


def test_workers_that_all_die_are_told_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        drive(tmp_path / "a.sqlite", SPECS, workers=2, compute=ending)
    assert str(caught.value) == (
        "all workers ended, but 6 tasks are left; start again, with fewer workers if the memory "
        "is short"
    )


def tables(folder: Path) -> dict[str, bytes]:
    made = write_report(gather(folder / "a.sqlite"), folder, ["latex", "markdown", "csv"])
    return {file.name: file.read_bytes() for file in made}


def test_two_workers_give_the_tables_of_one(tmp_path: Path) -> None:
    """Real training: byte for byte the same, whoever computed what."""
    quick: dict[str, Any] = {"dataset": "digits", "trials": 2, "epochs": 2}
    specs = [spec(name, **quick) for name in ("log", "exp", "ga-before")]
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        drive(folder / "a.sqlite", specs, workers=workers)
        found.append(tables(folder))
    assert found[0] == found[1]
    assert len(found[0]) == 3  # no cell stands beside one of the paper
