"""The engine on Ray: what it says when there is no cluster to work with."""

from __future__ import annotations

import gc
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from experiments.made import ending, noting, spec
from typer.testing import CliRunner
from web.servers import free_port

from ruleout.cli import app
from ruleout.experiments import Ledger, drive_ray, runner
from ruleout.labels.errors import InputError


def test_without_ray_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(InputError) as caught:
        drive_ray(tmp_path / "a.sqlite", [spec()])
    assert str(caught.value) == "Ray is not installed; run pip install 'ruleout[ray]'"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--device", "gpu"], "unknown device 'gpu'; say 'cpu' or 'cuda'"),
        (["--precision", "tf32"], "tf32 needs a CUDA device"),
    ],
)
def test_what_no_node_can_do_is_told_before_anything_runs(words: list[str], says: str) -> None:
    result = CliRunner().invoke(app, ["paper", "uci", "--engine", "ray", *words])
    assert result.exit_code == 1
    assert says in result.output


def test_waiting_for_what_others_have_claimed_takes_no_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = {"Alive": True, "Resources": {"CPU": 8.0}}
    ray = SimpleNamespace(is_initialized=lambda: True, nodes=lambda: [node], remote=MagicMock())
    monkeypatch.setitem(sys.modules, "ray", ray)
    monkeypatch.setattr(runner, "PAUSE", 0)
    held: list[int] = []

    def seen(_: Ledger) -> None:
        held.append(sum(type(one) is ExitStack for one in gc.get_objects()))
        if len(held) == 4:
            raise KeyboardInterrupt

    path, stopped = tmp_path / "a.sqlite", pytest.raises(KeyboardInterrupt)
    with Ledger(path) as other, other.claim(spec()), stopped:
        drive_ray(path, [spec()], seen=seen)
    assert held[1] == held[-1]


@pytest.mark.slow
def test_a_cluster_that_is_not_there_is_told_at_once(
    ray_cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ray_cluster
    monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{free_port()}")
    with pytest.raises(InputError, match=r"^Ray cannot be reached \(.*; check RAY_ADDRESS, and"):
        drive_ray(tmp_path / "a.sqlite", [spec()])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "takes"),
    [
        ({"device": "cuda"}, "1 CPU and 0.25 GPU"),
        ({"device": "cuda", "workers": 2}, "1 CPU and 0.25 GPU"),
        ({"cpus": 2}, "2 CPU"),  # both nodes have one
    ],
)
def test_tasks_that_no_node_has_room_for_are_told(
    ray_cluster: Any, tmp_path: Path, how: dict[str, Any], takes: str
) -> None:
    assert ray_cluster
    with pytest.raises(InputError) as caught:
        drive_ray(tmp_path / "a.sqlite", [spec()], **how)
    assert str(caught.value) == (
        f"the Ray cluster has no room for a task, which takes {takes}; start Ray on more nodes, or "
        "let tasks take less"
    )


def test_more_than_one_gpu_is_a_whole_number(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^Ray gives no task 1.5 GPUs; say a whole number"):
        drive_ray(tmp_path / "a.sqlite", [spec()], device="cuda", gpus=1.5)


@pytest.mark.slow
def test_what_was_under_way_is_ended_on_a_connection_of_the_callers_own(
    ray_cluster: Any, tmp_path: Path
) -> None:
    assert ray_cluster
    import ray

    notes = tmp_path / "notes"

    def seen(_: Ledger) -> None:
        if notes.exists():
            raise KeyboardInterrupt

    ray.init(log_to_driver=False)
    try:
        compute = partial(noting, notes=str(notes), takes=300.0)
        with pytest.raises(KeyboardInterrupt):
            drive_ray(tmp_path / "a.sqlite", [spec()], compute=compute, seen=seen)
        end = time.monotonic() + 30
        while ray.available_resources().get("CPU") != ray.cluster_resources()["CPU"]:
            assert time.monotonic() < end
            time.sleep(0.2)
    finally:
        ray.shutdown()


@pytest.mark.slow
def test_both_nodes_work_at_a_time(ray_cluster: Any, tmp_path: Path) -> None:
    assert ray_cluster
    specs = [spec(name) for name in ("log", "exp", "mae", "mse")]
    seen: list[int] = []
    compute = partial(noting, notes=str(tmp_path / "notes"), takes=3.0)
    path = tmp_path / "a.sqlite"
    drive_ray(path, specs, compute=compute, seen=lambda ledger: seen.append(len(ledger.claimed())))
    assert max(seen) == 2
    with Ledger(path) as ledger:
        assert len(ledger.records()) == 4
        assert ledger.claimed() == set()


@pytest.mark.slow
def test_a_task_that_always_kills_its_worker_is_given_up(ray_cluster: Any, tmp_path: Path) -> None:
    assert ray_cluster
    drive_ray(tmp_path / "a.sqlite", [spec()], compute=ending)
    with Ledger(tmp_path / "a.sqlite") as ledger:
        (failure,) = ledger.failures()
    assert failure.given_up
    assert failure.error.startswith("WorkerCrashedError: The worker died unexpectedly")
