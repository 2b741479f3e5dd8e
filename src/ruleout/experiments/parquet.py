"""A ledger as Parquet files, to be read by anything and kept with the results.

- ``cells.parquet``: a row for each spec, with all its settings and how it was computed;
- ``trials.parquet``: the accuracy and the choice of each trial;
- ``configurations.parquet``: the criterion of every configuration in each trial;
- ``curves.parquet``: accuracy and loss by epoch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ruleout.experiments.records import Record
from ruleout.experiments.specs import Spec
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError

__all__ = ["read", "write"]

_NAMES = ("cells", "trials", "configurations", "curves")


def write(records: Sequence[Record], folder: str | Path, *, curves: bool = True) -> list[Path]:
    """Write records to a folder; the same records always give the same files.

    Without curves, which are most of it, figures cannot be drawn from the folder.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    made = []
    for name, table in zip(_NAMES, _tables(records, curves), strict=True):
        made.append(place / f"{name}.parquet")
        with atomic_write(made[-1]) as out:
            pq.write_table(table, out, compression="zstd", compression_level=19)
    return made


def _tables(records: Sequence[Record], drawn: bool) -> list[pa.Table]:
    cells, trials, tried, curves = [], [], [], []
    for r in records:
        key = r.spec.key
        texts = {"configurations": json.dumps(r.configurations), "about": json.dumps(dict(r.about))}
        cells.append({"key": key} | asdict(r.spec) | texts | {"epochs_kept": r.epochs.tolist()})
        for t, accuracy in enumerate(r.accuracy):
            own = {"key": key, "trial": t}
            trials.append(own | {"accuracy": accuracy, "chosen": int(r.chosen[t])})
            for c, setting in enumerate(r.configurations):
                values = {"estimate": r.estimates, "error": r.errors, "test": r.tests}
                told = own | {"configuration": c} | setting
                tried.append(told | {name: table[t, c] for name, table in values.items()})
            for name, lines in r.curves.items() if drawn else ():
                curves.append(own | {"name": name, "points": lines[t]})
    points = pa.schema(
        [("key", pa.string()), ("trial", pa.int64()), ("name", pa.string()),
         ("points", pa.list_(pa.float32()))]
    )  # fmt: skip
    made = [pa.Table.from_pylist(rows) for rows in (cells, trials, tried)]
    return [*made, pa.Table.from_pylist(curves, points)]


def read(folder: str | Path) -> list[Record]:
    """Read what :func:`write` wrote."""
    place = Path(folder)
    tables = [_rows(place / f"{name}.parquet") for name in _NAMES]
    try:
        cells, *parts = tables
        grouped = [_by_key(rows) for rows in parts]
        return [_record(one, *(part.get(one["key"], []) for part in grouped)) for one in cells]
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"these files are not a ledger ({type(error).__name__}: {error})",
            "name a folder that `ruleout report` wrote",
            file=place,
        ) from None


def _rows(file: Path) -> list[dict[str, Any]]:
    if not file.is_file():
        raise InputError(
            "the file is missing", "name a ledger, or the folder of its Parquet files", file=file
        )
    try:
        rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"this is not Parquet ({error})", "write it again", file=file) from None
    return rows


def _by_key(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row["key"], []).append(row)
    return found


def _record(cell: dict[str, Any], trials: Any, tried: Any, curves: Any) -> Record:
    def table(name: str) -> Any:
        return np.array([row[name] for row in tried], float).reshape(len(trials), -1)

    names = dict.fromkeys(row["name"] for row in curves)
    made = Record(
        spec=Spec(**{one.name: cell[one.name] for one in fields(Spec)}),
        configurations=json.loads(cell["configurations"]),
        chosen=np.array([row["chosen"] for row in trials], np.intp),
        estimates=table("estimate"),
        errors=table("error"),
        tests=table("test"),
        accuracy=np.array([row["accuracy"] for row in trials], float),
        epochs=np.array(cell["epochs_kept"], np.intp),
        curves={
            name: np.array([r["points"] for r in curves if r["name"] == name], np.float32)
            for name in names
        },
        about=json.loads(cell["about"]),
    )
    if made.estimates.shape != (len(trials), len(made.configurations)):
        raise ValueError("configurations are missing")
    if not all(0 <= chosen < len(made.configurations) for chosen in made.chosen):
        raise ValueError("a choice lies outside the grid")
    if made.spec.key != cell["key"]:
        raise ValueError("a key is not that of its settings")
    return made
