"""Drawing and holding label sets: time and memory.

    python benchmarks/labels.py [--record]

Draws n=10⁶ sets of k=100 (at most 5 s and 1 GiB), then holds n=10⁷ sets of k=1000 (at most 1.4 GiB)
and unpacks 256 random rows of them (under 1 ms). Each part runs in a process of its own, so that
peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from typing import Any

import numpy as np
from common import record, seconds

import ruleout as ro

GIB = 2**30


def peak() -> float:
    """Peak memory of this process in GiB, imports included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIB


def draw() -> dict[str, float]:
    y = np.random.default_rng(0).integers(0, 100, 10**6)
    start = time.perf_counter()
    sets = ro.draw(y, 100, "released", seed=0)
    return {
        "seconds": time.perf_counter() - start,
        "peak_gib": peak(),
        "held_gib": sets.nbytes / GIB,
    }


def hold() -> dict[str, float]:
    rng = np.random.default_rng(0)
    packed = np.empty((10**7, 125), np.uint8)
    for piece in np.array_split(packed, 100):  # random rows, in place: nothing is held twice
        piece[:] = rng.integers(1, 255, piece.shape, np.uint8)
    sets = ro.LabelSets.from_packed(packed, 1000)
    rows = [rng.integers(0, len(sets), 256) for _ in range(200)]
    turn = iter(rows * 2)
    unpack = seconds(lambda: sets[next(turn)].excluded, 200)
    return {"held_gib": sets.nbytes / GIB, "peak_gib": peak(), "unpack_256_ms": unpack * 1e3}


def apart(part: str) -> dict[str, float]:
    """Run one part in a fresh process."""
    done = subprocess.run(
        [sys.executable, __file__, part], capture_output=True, text=True, check=True
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main() -> None:
    results: dict[str, Any] = {
        "draw n=1e6 k=100": apart("draw"),
        "hold n=1e7 k=1000": apart("hold"),
    }
    for name, figures in results.items():
        print(name, " ".join(f"{key}={value:.3f}" for key, value in figures.items()))
    if "--record" in sys.argv:
        record("labels", "python benchmarks/labels.py --record", results)


if __name__ == "__main__":
    parts = {"draw": draw, "hold": hold}
    if len(sys.argv) > 1 and sys.argv[1] in parts:
        print(json.dumps(parts[sys.argv[1]]()))
    else:
        main()
