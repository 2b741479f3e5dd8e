"""kill -9 of drivers, workers and nodes at random moments: no run lost or doubled, same tables."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiers import COUNT

from ruleout.datasets import survey
from ruleout.experiments import Ledger, gather

ROOT = os.environ.get("RULEOUT_DATA", "no-such-folder")
DATA = ("dermatology", "synthetic-control")
KINDS = {".csv", ".tex", ".md"}
CELLS = 36
LONGEST = {
    "local": 14.0,
    "shared": 14.0,
    "ray": 25.0,
}  # seconds from the first import to the report


def start(folder: Path, ledger: str, *more: str, out: str = "out") -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    words = ["paper", "uci", "--datasets", "Dermatology,Synthetic Control", "--trials", "2",
             "--epochs", "12", "--workers", "2", "--ledger", ledger,
             "--out", str(folder / out), *more]  # fmt: skip
    with (folder / f"errors-{out}").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-c", "from ruleout.cli import app; app()", *words],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )


def children(process: int) -> list[int]:
    try:
        text = Path(f"/proc/{process}/task/{process}/children").read_text()
    except OSError:  # gone, or no Linux
        return []
    return [int(word) for word in text.split()]


def helpers(process: int) -> list[int]:
    """Return the children that compute, without multiprocessing's own."""
    found = []
    for one in children(process):
        with suppress(OSError):  # gone meanwhile
            found += [one] * (b"spawn_main" in Path(f"/proc/{one}/cmdline").read_bytes())
    return found


def alive(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def kill_the_driver(process: subprocess.Popen[bytes]) -> None:
    """Kill the driver alone; its workers end by themselves."""
    helpers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    end = time.monotonic() + 60  # they may be importing torch on a busy machine
    while left := [helper for helper in helpers if alive(helper)]:
        assert time.monotonic() < end, f"workers {left} outlive their driver"
        time.sleep(0.05)


def kill_one(found: list[int], dice: random.Random) -> bool:
    """Kill one of some processes; False where there is none any more."""
    try:
        if found:
            os.kill(dice.choice(found), signal.SIGKILL)
    except ProcessLookupError:
        return False
    return bool(found)


def tables(folder: Path) -> dict[str, bytes]:
    found = {f.name: f.read_bytes() for f in (folder / "out").iterdir() if f.suffix in KINDS}
    assert {"accuracy.csv"} < found.keys()
    assert {Path(name).suffix for name in found} == KINDS
    return found


def check(folder: Path, ledger: str, calm: Path) -> None:
    """Every cell is there once, with the numbers and the tables of the undisturbed run."""
    with Ledger(ledger) as opened:
        ids = [number for (number,) in opened._rows("SELECT id FROM records ORDER BY id")]
        assert opened._rows("SELECT count(*) FROM failures") == [(0,)]
        assert opened.claimed() == set()
    assert len(ids) == CELLS
    if ledger.endswith(".sqlite"):
        assert ids == list(range(1, CELLS + 1))  # none was written twice, none was taken back
    held = gather(ledger)
    expected = {one.spec.key: one for one in gather(calm / "a.sqlite").records}
    assert {one.spec.key for one in held.records} == expected.keys()
    for one in held.records:
        other = expected[one.spec.key]
        for name in ("accuracy", "estimates", "errors", "tests", "chosen"):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for name, lines in one.curves.items():
            assert np.array_equal(lines, other.curves[name], equal_nan=True)
    assert tables(folder) == tables(calm)


@pytest.fixture(scope="session")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nobody disturbs."""
    for name in DATA:
        if not next(one for one in survey(ROOT) if one.name == name).present:
            pytest.skip(f"{name} is not in {ROOT}: set RULEOUT_DATA to a folder with the files")
    folder = tmp_path_factory.mktemp("calm")
    assert start(folder, str(folder / "a.sqlite")).wait(300) == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["local", "shared", "ray"])
def test_killed_at_twenty_random_moments_the_tables_are_the_same(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, calm: Path
) -> None:
    """On one machine, on two drivers that share a server, and on two nodes of Ray."""
    made: Any = request.getfixturevalue("ray_cluster") if engine == "ray" else None
    more = ["--engine", "ray"] if engine == "ray" else []
    kinds = ["driver", "worker"] + ["node"] * (engine == "ray")
    dice, killed, rounds, moments = random.Random(0), Counter[str](), 0, max(1, int(20 * COUNT))
    while killed.total() < moments:
        folder = tmp_path / f"round-{rounds}"
        ledger = str(folder / "a.sqlite")
        if engine == "shared":
            ledger = str(request.getfixturevalue("postgresql").database())
        for attempt in range(8):
            process = start(folder, ledger, *more)
            beside = [start(folder, ledger, out="b")] if engine == "shared" else []
            while process.poll() is None:
                try:
                    process.wait(dice.uniform(0, LONGEST[engine]) if attempt < 7 else 300)
                except subprocess.TimeoutExpired:
                    kind = dice.choice(kinds)
                    if kind == "node":
                        made.kill_node()
                        made.start_node()
                    elif kind == "worker":
                        found = made.workers() if made else helpers(process.pid)
                        if not kill_one(found, dice):
                            continue
                    else:
                        for one in [process, *beside][: dice.choice([1, 2])]:
                            kill_the_driver(one)
                    killed[kind] += 1
            for one in beside:
                assert one.wait(300) in (0, 1, -signal.SIGKILL)
            told = (folder / "errors-out").read_text()
            assert process.returncode in (0, -signal.SIGKILL) or "all workers ended" in told, told
            if process.returncode == 0:
                break
        rounds += 1
        check(folder, ledger, calm)
    print(f"{engine}: {rounds} sweeps of {CELLS} cells, killed {dict(killed)}")
