"""Time and memory of check, predict and evaluate of large tables, which are read in batches.

    python benchmarks/streaming.py [--rows 10000000] [--before SRC] [--record]

Each command runs in a process of its own; its peak is the resident memory that the system counted.
`--before` is the folder ``src`` of an older version, which is measured beside this one, on a tenth
of the rows: it reads everything at once.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from common import record

import ruleout as ro

FEATURES, CLASSES, PIECE = 10, 10, 250_000
SOURCE = Path(ro.__file__).parents[1]


def pieces(rows: int) -> Iterator[pa.Table]:
    """Yield points around ten places, sets drawn for them, and the true class."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(CLASSES, FEATURES))
    for start in range(0, rows, PIECE):
        y = rng.integers(CLASSES, size=min(PIECE, rows - start))
        x = (places[y] + rng.normal(size=(len(y), FEATURES))).round(4)
        names = [f"c{place}" for place in range(CLASSES)]
        columns: dict[str, Any] = {f"x{place}": x[:, place] for place in range(FEATURES)}
        columns["not"] = ["|".join(map(str, row)) for row in ro.draw(y, names, seed=start)]
        yield pa.table(columns | {"is": np.array(names)[y]})


def write(folder: Path, rows: int) -> list[Path]:
    files = [folder / f"{rows}.csv", folder / f"{rows}.parquet"]
    if not all(file.exists() for file in files):
        parts = pieces(rows)
        first = next(parts)
        with (
            arrow_csv.CSVWriter(files[0], first.schema) as text,
            pq.ParquetWriter(files[1], first.schema) as binary,
        ):
            for part in chain([first], parts):
                text.write_table(part)
                binary.write_table(part)
    return files


def run(source: Path, *arguments: object) -> dict[str, float]:
    """Run a command; return its seconds and the most memory it held, in MB."""
    began = time.perf_counter()
    child = os.fork()
    if not child:
        os.environ["PYTHONPATH"] = str(source)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.execv(sys.executable, [sys.executable, "-m", "ruleout", *map(str, arguments)])
    _, status, used = os.wait4(child, 0)
    if status:
        raise SystemExit(f"{arguments}: status {status}")
    taken = time.perf_counter() - began
    return {"seconds": round(taken, 1), "peak_mb": round(used.ru_maxrss / 1024)}


def measured(source: Path, folder: Path, rows: int) -> dict[str, Any]:
    model, found = folder / "model", {}
    for file in write(folder, rows):
        sets = ("--excluded", "not")
        jobs = {
            "check": ("check", file, *sets, "--label", "is"),
            "predict": ("predict", model, file, "--out", folder / f"out{file.suffix}"),
            "evaluate": ("evaluate", model, file, *sets),
            "evaluate by labels": ("evaluate", model, file, "--label", "is"),
        }
        for name, arguments in jobs.items():
            found[f"{name} {file.suffix}"] = run(source, *arguments)
            print(f"{rows:,} rows, {name} {file.suffix}: {found[f'{name} {file.suffix}']}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "streaming"))
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    given.folder.mkdir(exist_ok=True)
    few = write(given.folder, 20_000)[0]
    options = ("--excluded", "not", "--ignore", "is", "--grid", "none", "--epochs", 3)
    run(SOURCE, "fit", few, *options, "--out", given.folder / "model")
    found: dict[str, Any] = {"features": FEATURES, "classes": CLASSES}
    if given.before:
        few_rows = given.rows // 10
        found["before"] = {str(few_rows): measured(given.before, given.folder, few_rows)}
    rows = (given.rows // 10, given.rows)
    found["after"] = {str(n): measured(SOURCE, given.folder, n) for n in rows}
    if given.record:
        record("streaming", f"python benchmarks/streaming.py --rows {given.rows} --record", found)


if __name__ == "__main__":
    main()
