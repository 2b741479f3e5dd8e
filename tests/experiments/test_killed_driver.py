"""kill -9 of ``ruleout paper`` at random moments: no run lost or doubled, the same tables."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tiers import COUNT

from ruleout.datasets import survey
from ruleout.experiments import gather

ROOT = os.environ.get("RULEOUT_DATA", "no-such-folder")
DATA = ("dermatology", "synthetic-control")
KINDS = {".csv", ".tex", ".md"}
CELLS = 36
LONGEST = 14.0  # seconds until a kill: from the first import to the report


def start(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    words = ["paper", "uci", "--datasets", "Dermatology,Synthetic Control", "--trials", "2",
             "--epochs", "12", "--workers", "2", "--ledger", str(folder / "a.sqlite"),
             "--out", str(folder / "out")]  # fmt: skip
    with (folder / "errors").open("wb") as errors:
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
    end = time.monotonic() + 20
    while left := [helper for helper in helpers if alive(helper)]:
        assert time.monotonic() < end, f"workers {left} outlive their driver"
        time.sleep(0.05)


def tables(folder: Path) -> dict[str, bytes]:
    found = {f.name: f.read_bytes() for f in (folder / "out").iterdir() if f.suffix in KINDS}
    assert {"accuracy.csv"} < found.keys()
    assert {Path(name).suffix for name in found} == KINDS
    return found


def check(folder: Path, calm: Path) -> None:
    """Every cell is there once, with the numbers and the tables of the undisturbed run."""
    connection = sqlite3.connect(folder / "a.sqlite")
    ids = [number for (number,) in connection.execute("SELECT id FROM records ORDER BY id")]
    assert connection.execute("SELECT count(*) FROM failures").fetchone() == (0,)
    connection.close()
    assert ids == list(range(1, CELLS + 1))  # none was written twice, none was taken back
    held = gather(folder / "a.sqlite")
    expected = {one.spec.key: one for one in gather(calm / "a.sqlite").records}
    assert {one.spec.key for one in held.records} == expected.keys()
    for one in held.records:
        other = expected[one.spec.key]
        for name in ("accuracy", "estimates", "errors", "tests", "chosen"):
            assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for name, lines in one.curves.items():
            assert np.array_equal(lines, other.curves[name], equal_nan=True)
    assert tables(folder) == tables(calm)
    assert not (folder / "a.sqlite-claims").exists()


@pytest.mark.slow
def test_killed_at_twenty_random_moments_the_tables_are_the_same(tmp_path: Path) -> None:
    for name in DATA:
        if not next(one for one in survey(ROOT) if one.name == name).present:
            pytest.skip(f"{name} is not in {ROOT}: set RULEOUT_DATA to a folder with the files")
    calm = tmp_path / "calm"
    assert start(calm).wait(300) == 0
    dice, killed, rounds, moments = random.Random(0), 0, 0, max(1, int(20 * COUNT))
    while killed < moments:
        folder = tmp_path / f"round-{rounds}"
        for attempt in range(8):
            process = start(folder)
            try:
                code = process.wait(dice.uniform(0, LONGEST) if attempt < 7 else 300)
            except subprocess.TimeoutExpired:
                kill_the_driver(process)
                killed += 1
            else:
                assert code == 0, (folder / "errors").read_text()
                break
        rounds += 1
        check(folder, calm)
