"""``ruleout demo``: the whole idea on digits, with what exists today."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from ruleout import LabelSets

__all__ = ["demo"]

_TRIALS, _STEPS, _BATCH, _RATE = 5, 400, 256, 1e-2


class _Data(NamedTuple):
    train: Tensor  # [n, d]
    truth: NDArray[np.intp]  # of the training rows: used to draw sets, never to train
    test: Tensor
    labels: Tensor  # of the test rows


def demo(
    figure: Annotated[
        Path | None, typer.Option(help="Also draw the accuracies to this PNG (needs matplotlib).")
    ] = None,
) -> None:
    """Train on digits with all eighteen approaches, from ruled-out classes only.

    Five linear models per approach, in one plain PyTorch loop of 400 steps.

    All approaches share one learning rate: choosing it needs the engine, not built yet.
    """
    from rich.console import Console
    from rich.table import Table

    import ruleout as ro
    from ruleout.methods import PAPER

    console = Console()
    data = _digits()
    sets = [ro.draw(data.truth, classes=10, law="released", seed=trial) for trial in range(_TRIALS)]
    console.print(f"Digits: {len(data.truth)} training rows, {len(data.test)} test rows.")
    console.print(f"What training sees instead of labels: {sets[0]!r}\n", highlight=False)
    table = Table(title="Test accuracy, mean ± standard deviation of 5 trials")
    for column in ("approach", "family", "batches", "accuracy"):
        table.add_column(column, justify="right" if column == "accuracy" else "left")
    results = {}
    start = time.perf_counter()
    for name in PAPER:
        row = ro.approach(name)
        results[name] = scores = _train(name, data, sets)
        figures = f"{100 * scores.mean():.1f} ± {100 * scores.std(ddof=1):.1f}"
        table.add_row(row.label, row.family, row.form, figures)
    known = _train("cce", data, [ro.LabelSets.from_labels(data.truth, 10)] * _TRIALS)
    ordinary = f"{100 * known.mean():.1f} ± {100 * known.std(ddof=1):.1f}"
    table.add_row("cross entropy", "true labels", "for comparison", ordinary, style="dim")
    console.print(table)
    console.print(
        f"{len(PAPER)} approaches, {_TRIALS} trials, {time.perf_counter() - start:.0f} s."
    )
    if figure is not None:
        _draw(results, known, figure)
        console.print(f"Figure: {figure}")


def _digits() -> _Data:
    import torch
    from sklearn.model_selection import train_test_split

    from ruleout.datasets import load

    x, y = load("digits").train
    x, test, y, labels = train_test_split(x, y, test_size=0.2, random_state=0, stratify=y)
    return _Data(torch.tensor(x), y, torch.tensor(test), torch.tensor(labels))


def _train(name: str, data: _Data, sets: list[LabelSets]) -> NDArray[np.float64]:
    """Train one linear model per trial, all stacked; return their test accuracies."""
    import numpy as np
    import torch

    import ruleout as ro

    row, trials = ro.approach(name), len(sets)
    k, random = len(sets[0].classes), torch.Generator().manual_seed(0)
    weights = torch.zeros(trials, data.train.shape[1], k, requires_grad=True)
    bias = torch.zeros(trials, 1, k, requires_grad=True)
    adam = torch.optim.Adam([weights, bias], lr=_RATE)
    examples, excluded = zip(*(_rows(one, row.form) for one in sets), strict=True)
    prior = np.stack([one.shares for one in sets])
    for _ in range(_STEPS):
        pick = [torch.randint(len(rows), (_BATCH,), generator=random) for rows in examples]
        x = torch.stack([data.train[rows[i]] for rows, i in zip(examples, pick, strict=True)])
        out = torch.stack([mask[i] for mask, i in zip(excluded, pick, strict=True)])
        loss = row.batch_loss(x @ weights + bias, out, prior=prior)
        adam.zero_grad()
        loss.sum().backward()  # type: ignore[no-untyped-call]
        adam.step()
    right = (data.test @ weights + bias).argmax(-1) == data.labels
    return np.asarray(right.double().mean(-1).numpy())


def _rows(sets: LabelSets, form: str) -> tuple[Tensor, Tensor]:
    """Return which example each row of the training set is, and what it rules out."""
    import torch

    if form != "pairs-before":
        return torch.arange(len(sets)), torch.from_numpy(sets.excluded)
    examples, single = sets.pairs()
    return torch.from_numpy(examples), torch.from_numpy(single.excluded)


def _draw(results: dict[str, NDArray[np.float64]], known: NDArray[np.float64], path: Path) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        typer.echo("--figure needs matplotlib: pip install 'ruleout[plot]'", err=True)
        raise typer.Exit(1) from None
    import ruleout as ro

    colours = dict(
        zip(
            (
                "upper-bound",
                "bounded",
                "unbounded",
                "before-shuffle",
                "after-shuffle",
                "partial-label",
            ),
            ("#4477aa", "#66ccee", "#ee6677", "#ccbb44", "#aa7733", "#aa3377"),
            strict=True,
        )
    )
    page = Figure(figsize=(7, 4.6), layout="constrained")
    axes = page.subplots()
    order = sorted(results, key=lambda name: float(results[name].mean()))
    for place, name in enumerate(order):
        scores, family = 100 * results[name], ro.approach(name).family
        mean, spread = scores.mean(), scores.std(ddof=1)
        axes.errorbar(mean, place, xerr=spread, fmt="o", color=colours[family], capsize=2)
    for family, colour in colours.items():
        axes.plot([], [], "o", color=colour, label=family)
    line = axes.axvline(100 * known.mean(), color="0.6", linestyle="--")
    line.set_label("true labels")
    axes.set_yticks(range(len(order)), order, fontsize=8)
    axes.set_xlabel("test accuracy on digits (%), mean ± std of 5 trials")
    axes.set_title("Linear models trained only on what each digit is not", fontsize=10)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=7, loc="upper left")
    page.savefig(path, dpi=160)
