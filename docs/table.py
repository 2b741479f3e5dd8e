"""The table of approaches, from the registry."""

from __future__ import annotations

from pathlib import Path

import ruleout as ro
from ruleout.methods import PAPER


def rows() -> list[str]:
    lines = ["| name | in the paper | family | batches | published |", "|---|---|---|---|---|"]
    for name in ro.approaches():
        row = ro.approach(name)
        mark = row.label if name in PAPER else f"– ({row.label})"
        lines.append(f"| `{name}` | {mark} | {row.family} | {row.form} | {row.paper} |")
    return lines


def write_table(path: Path) -> None:
    path.write_text("\n".join(rows()) + "\n")
