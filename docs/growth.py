"""The figure of engine.md: how the time of an epoch grows.

python benchmarks/engine.py --growth --record
python docs/growth.py          # draws docs/_static/growth.png
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from measured import FIGURE, HERE, RESULTS, read

_NAMES = {
    "n": "rows",
    "d": "features",
    "k": "classes",
    "grid": "configurations",
    "s": "ruled out per row, LOG",
    "s (before shuffle)": "ruled out per row, NN before shuffle",
}


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    sweeps = list(dict.fromkeys(row["against"] for row in rows))
    page = Figure(figsize=(9, 5.4), layout="constrained")
    for axes, name in zip(page.subplots(-(-len(sweeps) // 3), 3).flat, sweeps, strict=False):
        own = [row for row in rows if row["against"] == name]
        values, times = [row["value"] for row in own], [row["ms"] for row in own]
        axes.plot(values, times, "o-", color="#4477aa", markersize=4)
        line = [times[-1] * value / values[-1] for value in values]
        axes.plot(values, line, "--", color="0.7", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(values, [f"{value:,}" for value in values], fontsize=7)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_ylim(min(times) / 2, max(times) * 2)
        axes.set_title(_NAMES.get(name, name), fontsize=9)
        axes.set_ylabel("ms per epoch", fontsize=8)
        axes.tick_params(axis="y", labelsize=7)
        axes.grid(alpha=0.25)
    page.suptitle("Time of an epoch; dashed: in proportion", fontsize=10)
    page.savefig(path, dpi=150)


def main() -> None:
    told = read("engine-growth")
    if told is None:
        print(f"{RESULTS / 'engine-growth.json'} is not there; nothing was drawn")
        return
    draw(told["results"]["rows"], HERE / FIGURE)
    print(f"drawn: {HERE / FIGURE}")


if __name__ == "__main__":
    main()
