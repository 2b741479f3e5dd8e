"""The tables of engine.md, from what benchmarks/engine.py recorded; a file may be missing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE.parent / "benchmarks" / "results"
FIGURE = Path("_static", "growth.png")

_CPU = {
    "case": "36 configurations",
    "stacked ms": "stacked, ms",
    "plain ms": "plain loop, ms",
    "plain / stacked": "plain / stacked",
    "loader / stacked": "DataLoader / stacked",
    "stack": "trained at once",
}
_CUDA = {
    "models": "models",
    "precision": "precision",
    "epochs": "epochs",
    "seconds": "seconds",
    "update floor s (28 bytes, 4.8 TB/s)": "floor of memory, s",
    "arithmetic floor s": "floor of arithmetic, s",
    "first 25 epochs, compiling": "first 25 epochs, compiling, s",
    "one plain eager run s": "one plain run, s (scaled)",
    "180 plain / stacked": "180 × plain / stacked",
}


def read(name: str, results: Path = RESULTS) -> dict[str, Any] | None:
    """Return what was recorded under a name; None where nothing was."""
    file = results / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def table(rows: list[dict[str, Any]], heads: dict[str, str]) -> list[str]:
    lines = ["| " + " | ".join(heads.values()) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    return lines + [
        "| " + " | ".join(_cell(row.get(name)) for name in heads) + " |" for row in rows
    ]


def _cell(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "–", True: "yes", False: "no"}[value]
    return " × ".join(map(str, value)) if isinstance(value, list) else str(value)


def origin(told: dict[str, Any], machine: str) -> str:
    """Say where numbers come from."""
    torch = told["machine"].get("torch")
    return f"`{told['command']}`, {told['date']}, {machine}, torch {torch}."


def cpu(told: dict[str, Any] | None) -> list[str]:
    if told is None:
        return ["*Not recorded in this checkout: `python benchmarks/engine.py --record`.*"]
    rows, machine = told["results"]["rows"], told["machine"]
    lines = [
        *table(rows, _CPU),
        "",
        origin(told, f"{machine['cpu']}, {machine['threads']} threads"),
    ]
    share = next((row["share of the matrix rate"] for row in rows if _SHARE in row), None)
    if share is not None:
        lines[-1] += (
            f" The large MLP runs at {100 * share:.0f} % of this machine's own rate of matrix "
            "products."
        )
    return lines


_SHARE = "share of the matrix rate"


def cuda(told: dict[str, Any] | None) -> list[str]:
    if told is None:
        return [
            "*Not recorded in this checkout: `python benchmarks/engine.py --device cuda --record`.*"
        ]
    lines = [*table(told["results"]["rows"], _CUDA), "", origin(told, str(told["machine"]["gpu"]))]
    lines[-1] += (
        " A plain run (float32, eager) is timed for two epochs and scaled to all; 180 of them were "
        "not run. Floors: "
        "an update moves 28 bytes per parameter at 4.8 TB/s, and products run at the peak rate of "
        "the device."
    )
    return lines


_IMAGES = {
    "models": "models side by side",
    "precision": "precision",
    "compiled": "compiled",
    "images/s": "images/s, all models",
    "ratio to eager": "to the faster eager loop",
    "first epoch s": "first epoch, s",
}


def convolutions(told: dict[str, Any] | None) -> list[str]:
    if told is None:
        how = "`python benchmarks/engine.py --convolutions --record`"
        return [f"*Not recorded in this checkout: {how}.*"]
    rows = told["results"]["rows"]
    loops = [f"{rows[0][f'eager {name} images/s']:,}" for name in ("float32", "bf16")]
    say = f" The eager loop: {loops[0]} images/s in float32, {loops[1]} in bf16 with channels last."
    return [*table(rows, _IMAGES), "", origin(told, str(told["machine"]["gpu"])) + say]


def precisions(told: dict[str, Any] | None) -> list[str]:
    """Return accuracies, one column for each precision."""
    if told is None:
        return [
            "*Not recorded in this checkout: `python benchmarks/engine.py --precisions --record`.*"
        ]
    found: dict[tuple[str, float], dict[str, Any]] = {}
    names: dict[str, str] = {}
    for row in told["results"]["rows"]:
        key, name = (row["model"], row["learning rate"]), row["precision"]
        own = found.setdefault(key, {"model": key[0], "learning rate": f"{key[1]:g}"})
        own[name] = f"{row['mean']:.2f} ± {row['std']:.2f}"
        names[name] = name
    heads = {"model": "model", "learning rate": "learning rate", **names}
    return [*table(list(found.values()), heads), "", origin(told, str(told["machine"]["gpu"]))]


def growth(told: dict[str, Any] | None, folder: Path = HERE) -> list[str]:
    if told is None or not (folder / FIGURE).exists():
        how = "`python benchmarks/engine.py --growth --record`, then `python docs/growth.py`"
        return [f"*Not drawn in this checkout: {how}.*"]
    machine = f"{told['machine']['cpu']}, {told['machine']['threads']} threads"
    return [f"![How the time of an epoch grows]({FIGURE})", "", origin(told, machine)]


_PRECISIONS = "engine-precisions"
_FASHION = ("Fashion-MNIST, test accuracy in %, mean ± standard deviation of the trials:", "")


def write_measured(path: Path, results: Path = RESULTS) -> None:
    lines = ["### On a CPU", "", *cpu(read("engine", results))]
    lines += ["", "### On a GPU", "", *cuda(read("engine-cuda", results))]
    lines += ["", "### A ResNet on a GPU", "", *convolutions(read("engine-convolutions", results))]
    lines += [
        "",
        "### Accuracy and precision",
        "",
        *_FASHION,
        *precisions(read(_PRECISIONS, results)),
    ]
    lines += ["", "### How it grows", "", *growth(read("engine-growth", results))]
    path.write_text("\n".join(lines) + "\n")
