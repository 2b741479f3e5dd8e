"""``ruleout doctor``: what this machine has. Never fails."""

import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import typer

from ruleout.cli import shared_options as options
from ruleout.cli.common import show_rows

_NEEDED = ("ruleout", "torch", "numpy", "pyarrow", "scikit-learn", "scipy", "typer", "rich")


def doctor(as_json: options.AsJson = False) -> None:
    """Say what this machine has: versions, processors, memory, disk, and optional extras."""
    parts = {"versions": _versions, "machine": _machine, "GPU": _gpu}
    parts |= {"data": _data, "extras": _extras}
    found = {name: _safely(part) for name, part in parts.items()}
    if as_json:
        typer.echo(json.dumps(found))
        return
    rows = [
        ("" if place else part, *pair)
        for part, pairs in found.items()
        for place, pair in enumerate(pairs.items())
    ]
    show_rows(("", "", ""), rows)


def _safely(part: Callable[[], dict[str, str]]) -> dict[str, str]:
    try:
        return part()
    except Exception as error:  # a doctor does not fall ill
        return {"unknown": f"{type(error).__name__}: {' '.join(str(error).split())[:80]}"}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _versions() -> dict[str, str]:
    found = {"python": f"{platform.python_version()} ({sys.executable})"}
    return found | {name: _version(name) or "missing" for name in _NEEDED}


def _machine() -> dict[str, str]:
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    found = {"system": platform.platform(), "cores": str(count)}
    if hasattr(os, "sysconf"):
        page = os.sysconf("SC_PAGE_SIZE")
        found["memory"] = _gigabytes(page * os.sysconf("SC_PHYS_PAGES"))
        found["free memory"] = _gigabytes(page * os.sysconf("SC_AVPHYS_PAGES"))
    for place in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):  # of Linux
        level, kind, size = (
            (place / name).read_text().strip() for name in ("level", "type", "size")
        )
        if kind != "Instruction":
            found[f"L{level} cache"] = size
    return found


def _gpu() -> dict[str, str]:
    import torch

    if not torch.cuda.is_available():
        return {"CUDA": "none: training runs on the CPU"}
    found = {"CUDA": str(torch.version.cuda)}
    for place in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(place)
        found[f"device {place}"] = f"{about.name}, {_gigabytes(about.total_memory)}"
    return found


def _data() -> dict[str, str]:
    from ruleout.datasets import data_root

    root = data_root()
    place = next(folder for folder in (root, *root.parents) if folder.is_dir())
    writable = f"no: {place} refuses; set RULEOUT_DATA"
    with suppress(OSError), tempfile.TemporaryFile(dir=place):
        writable = "yes"
    return {
        "folder": f"{root}{'' if root == place else ' (will be made when needed)'}",
        "writable": writable,
        "free disk": _gigabytes(shutil.disk_usage(place).free),
    }


def _extras() -> dict[str, str]:
    """Look for each extra that the installed package names."""
    wanted: dict[str, list[str]] = {}
    for line in metadata.requires("ruleout") or []:
        match = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", line)
        if match and match[2] != "dev":
            wanted.setdefault(match[2], []).append(match[1])
    found = {}
    for extra, packages in wanted.items():
        missing = [package for package in packages if _version(package) is None]
        install = f"missing {', '.join(missing)}: pip install 'ruleout[{extra}]'"
        found[extra] = install if missing else "installed"
    return found


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
