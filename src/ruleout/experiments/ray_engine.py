"""The engine "ray": a Ray cluster does the tasks, and this process alone writes to the ledger.

A task under way is claimed, and its record comes back to the driver. So a killed driver loses what
was under way and nothing else, and a task whose worker or node dies is done again elsewhere. Data
travel once to each node, as an object that its workers share.
"""

import logging
import os
import pickle
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from ruleout.datasets import Dataset, load
from ruleout.experiments import runner
from ruleout.experiments.ledger import RETRIES, Ledger, Record
from ruleout.experiments.specs import Spec
from ruleout.labels.errors import InputError


def drive_ray(
    path: str | Path,
    specs: Sequence[Spec],
    *,
    device: str | None = None,
    workers: int = 0,
    compute: runner.Run = runner.run,
    seen: Callable[[Ledger], None] = lambda _: None,
    cpus: float = 1,
    gpus: float = 0.25,
    checkpoints: str | Path | None = None,
    modules: Iterable[str] = (),
) -> None:
    """Work through tasks on a Ray cluster; what is not said here is as for :func:`drive`.

    The cluster is that of ``RAY_ADDRESS``, else the one that runs on this machine, else one that
    is started for the time being. A task takes `cpus` cores and, on CUDA, `gpus` GPUs. At most
    `workers` tasks are under way; 0: as many as the cluster has room for. `checkpoints` must be a
    folder that all nodes share.
    """
    needs = {"CPU": cpus} | ({} if device in (None, "cpu") else {"GPU": gpus})
    made = pickle.dumps(runner.going_on(compute, checkpoints))
    given = device, max(1, int(cpus)), made, runner.registering(modules), sys.path
    if needs.get("GPU", 0) > 1 and gpus % 1:
        raise InputError(f"Ray gives no task {gpus:g} GPUs", "say a whole number, or less than 1")
    data: dict[str, Any] = {}
    running: dict[Any, tuple[Spec, ExitStack]] = {}
    with _cluster() as ray, Ledger(path) as ledger, ExitStack() as claims:
        if not _room(ray, needs):
            takes = " and ".join(f"{amount:g} {name}" for name, amount in needs.items())
            problem = f"the Ray cluster has no room for a task, which takes {takes}"
            raise InputError(problem, "start Ray on more nodes, or let tasks take less")
        # Ray does a task again whose worker or node died; errors are told, not raised.
        claims.callback(lambda: [ray.cancel(one, force=True) for one in running])
        task = ray.remote(num_cpus=cpus, num_gpus=needs.get("GPU", 0), max_retries=RETRIES)(_do)
        ledger.add(specs)
        seen(ledger)
        while (left := ledger.open(specs)) or running:
            most, busy = workers or _room(ray, needs), {spec for spec, _ in running.values()}
            for spec in (one for one in left if one not in busy):
                if len(running) >= most:
                    break
                claim = ExitStack()
                if not claim.enter_context(ledger.claim(spec)) or not ledger.open([spec]):
                    claim.close()
                    continue
                claims.enter_context(claim)
                if compute is runner.run and spec.dataset not in data:  # nothing else reads data
                    data[spec.dataset] = ray.put(load(spec.dataset))
                running[task.remote(spec, data.get(spec.dataset), given)] = spec, claim
            over = ray.wait(list(running), timeout=runner.PAUSE)[0] if running else []
            for one in over:
                spec, claim = running.pop(one)
                _settle(ray, ledger, spec, one)
                claim.close()
            runner.tidy(ledger, checkpoints)
            seen(ledger)
            time.sleep(0 if running or over else runner.PAUSE)  # others have what is left


@contextmanager
def _cluster() -> Iterator[Any]:
    """Connect to Ray, or start it; leave a connection of the caller's own as it is."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed", "run pip install 'ruleout[ray]'") from None
    if ray.is_initialized():
        yield ray
        return
    host, _, port = os.environ.get("RAY_ADDRESS", "").rpartition(":")
    try:
        if port.isdecimal() and "/" not in host:  # Ray would go on trying for minutes
            socket.create_connection((host, int(port)), 10).close()
        ray.init(include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        text = " ".join(str(error).split())[:300]
        say = "check RAY_ADDRESS, and that `ray start` has made this machine a node"
        raise InputError(f"Ray cannot be reached ({text})", say) from None
    try:
        yield ray
    finally:
        ray.shutdown()


def _room(ray: Any, needs: dict[str, float]) -> int:
    """Return how many tasks the nodes can do at a time, each by one; nodes may come and go."""
    nodes = [one["Resources"] for one in ray.nodes() if one["Alive"]]
    return sum(int(min(have.get(name, 0) / much for name, much in needs.items())) for have in nodes)


def _do(spec: Spec, data: Dataset | None, given: tuple[Any, ...]) -> Record | str:
    """Do a task in a worker, with a user's own modules where the driver finds them."""
    device, threads, compute, modules, folders = given
    sys.path.extend(folder for folder in folders if folder not in sys.path)
    for module in modules:
        import_module(module)
    torch.set_num_threads(threads)
    if data is not None:
        runner.SENT[spec.dataset] = data
    return runner.attempt(spec, device, pickle.loads(compute))  # our driver's own bytes


def _settle(ray: Any, ledger: Ledger, spec: Spec, over: Any) -> None:
    """Write down what a task returned, or that its worker died as often as it may be tried."""
    try:
        runner.settle(ledger, spec, ray.get(over))
    except ray.exceptions.RayError as error:
        told = getattr(error, "cause", None) or error
        for _ in range(1 + RETRIES):
            ledger.fail(spec, " ".join(f"{type(told).__name__}: {told}".split())[:500])
