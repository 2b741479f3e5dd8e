"""``ruleout demo``: the whole idea on digits, in under a minute."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ruleout.cli.common import Terminal, friendly
from ruleout.cli.compare import overall, show

if TYPE_CHECKING:
    from ruleout.comparison import Comparison, Progress

_TRIALS, _EPOCHS = 5, 30
_GRID = {"learning_rate": (3e-2, 1e-2, 3e-3), "weight_decay": (1e-3, 1e-5)}

_COLOURS = {
    "upper-bound": "#4477aa",
    "bounded": "#66ccee",
    "unbounded": "#ee6677",
    "before-shuffle": "#ccbb44",
    "after-shuffle": "#aa7733",
    "partial-label": "#aa3377",
}


@friendly()
def demo(
    out: Annotated[Path, "The folder for report.html and the tables."] = Path("ruleout-demo"),
    figure: Annotated[
        Path | None, "Also draw the accuracies to this PNG (needs matplotlib)."
    ] = None,
) -> None:
    """Compare all eighteen approaches on digits, trained on ruled-out classes only.

    Linear models; learning rate and weight decay are chosen without true labels, which serve only
    to draw the sets and to report.
    """
    started = time.perf_counter()
    if figure is not None and find_spec("matplotlib") is None:
        typer.echo("--figure needs matplotlib: pip install 'ruleout[plot]'", err=True)
        raise typer.Exit(1)
    out.mkdir(parents=True, exist_ok=True)
    console = Terminal()
    with overall() as progress:
        found = _compare(console, progress)
    show(console, found)
    facts = {"Data": "digits (scikit-learn), a random fifth to test", "Law": "released"}
    page = found.write(
        out, title="Digits, learned from what they are not", law="released", facts=facts
    )
    if figure is not None:
        _draw(found, figure)
        console.print(f"Figure: {figure}", soft_wrap=True)
    console.print(f"{time.perf_counter() - started:.0f} s. Report: {page}", soft_wrap=True)


def _compare(console: Any, progress: Progress) -> Comparison:
    """Compare the approaches, and ordinary training on true labels with them."""
    import ruleout as ro
    from ruleout.comparison import compare
    from ruleout.selection import split

    x, y = ro.datasets.load("digits").train
    train, test = split(len(y), 0.2, seed=0)
    sets = [ro.draw(y[train], classes=10, law="released", seed=trial) for trial in range(_TRIALS)]
    console.print(f"Digits: {len(train)} training rows, {len(test)} test rows.")
    console.print(
        f"What training sees instead of labels: {sets[0]!r}\n", highlight=False, soft_wrap=True
    )
    told: dict[str, Any] = {"grid": _GRID, "epochs": _EPOCHS, "test": (x[test], y[test])}
    found = compare(x[train], sets, progress=lambda d, n: progress(0.98 * d, n), **told)
    known = [ro.LabelSets.from_labels(y[train], 10)] * _TRIALS
    progress(0.98, "true labels")
    baseline = compare(x[train], known, approaches=["cce"], **told)
    return found.with_baseline(baseline, label="cross entropy", family="true labels")


def _draw(found: Comparison, path: Path) -> None:
    from matplotlib.figure import Figure

    page = Figure(figsize=(7, 4.6), layout="constrained")
    axes = page.subplots()
    rows = [row for row in reversed(found.ranked) if not row.baseline and not row.failed]
    for place, row in enumerate(rows):
        mean, spread = 100 * row.score, 100 * row.spread
        axes.errorbar(mean, place, xerr=spread, fmt="o", color=_COLOURS[row.family], capsize=2)
    for family, colour in _COLOURS.items():
        axes.plot([], [], "o", color=colour, label=family)
    line = axes.axvline(100 * found["cross entropy"].score, color="0.6", linestyle="--")
    line.set_label("true labels")
    axes.set_yticks(range(len(rows)), [row.approach for row in rows], fontsize=8)
    axes.set_xlabel(f"test accuracy on digits (%), mean ± std of {found.method.trials} trials")
    axes.set_title("Linear models trained only on what each digit is not", fontsize=10)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7, loc="upper left")
    page.savefig(path, dpi=160)
