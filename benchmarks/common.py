"""What the benchmarks share: repeated timing, the machine in words, and a result on disk."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

import ruleout

RESULTS = Path(__file__).parent / "results"


def seconds(work: Callable[[], object], repeats: int) -> float:
    """Return the median time of `repeats` calls, after one that does not count."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def machine() -> dict[str, Any]:
    """Describe the machine and the versions."""
    import torch  # late: the memory of the label benchmarks is theirs alone

    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.processor(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": torch.__version__,
        "ruleout": ruleout.__version__,
    }


def side_by_side(work: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], workers: int) -> Any:
    """Call `work` with each job in so many processes; what it returns comes in their order."""
    if workers <= 1:
        yield from (work(*job) for job in jobs)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for done in [pool.submit(work, *job) for job in jobs]:
            yield done.result()


def record(name: str, command: str, results: dict[str, Any]) -> None:
    """Write a result beside the benchmarks, with how it was obtained."""
    RESULTS.mkdir(exist_ok=True)
    date = datetime.now(UTC).date().isoformat()
    content = {"command": command, "date": date, "machine": machine(), "results": results}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=2) + "\n")
    print(f"recorded in {path}")
