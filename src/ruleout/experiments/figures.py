"""The paper's figures: accuracy by epoch of bounded and unbounded losses in the estimator."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ruleout.experiments.printed import label_of
from ruleout.experiments.records import Record
from ruleout.labels.atomic import atomic_write
from ruleout.labels.errors import InputError

__all__ = ["LOSSES", "draw"]

#: The losses of the figures, in the order of the paper, with colours for everybody's eyes.
LOSSES = {
    "mae": ("MAE", "#0072b2"),
    "mse": ("MSE", "#009e73"),
    "gce": ("GCE", "#56b4e9"),
    "phuber": ("PHuber-CE", "#cc79a7"),
    "cce": ("CCE", "#d55e00"),
}

_FIGURES = {"figure-1": ("test", "Test accuracy (%)"),
            "figure-2": ("train", "Training accuracy with true labels (%)")}  # fmt: skip


def draw(records: Sequence[Record], folder: str | Path, kinds: Sequence[str]) -> list[Path]:
    """Draw figures 1 and 2 with a panel for each data set, model and setting; return the files."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(
            "figures need matplotlib", "pip install 'ruleout[plot]', or leave out png and pdf"
        ) from None
    panels = _panels(records)
    if not panels:
        return []
    made = []
    for name, (curve, label) in _FIGURES.items():
        wide = min(4, len(panels))
        high = -(-len(panels) // wide)
        figure = Figure(figsize=(3.1 * wide, 2.6 * high + 0.5), layout="constrained")
        axes = figure.subplots(high, wide, squeeze=False).flat
        for place, (title, found) in zip(axes, panels.items(), strict=False):
            _panel(place, title, found, curve)
        for place in list(axes)[len(panels) :]:
            place.set_visible(False)
        handles, names = next(iter(figure.axes)).get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=5, frameon=False)
        figure.supylabel(label, fontsize=9)
        made += _save(figure, Path(folder) / name, kinds)
    return made


def _panels(records: Sequence[Record]) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in records:
        spec = record.spec
        drawn = spec.approach in LOSSES and not spec.law.startswith("fixed:")
        if drawn and {"test", "train"} <= record.curves.keys():
            own = "" if spec.features == "raw" else ", standardised"
            panel = found.setdefault(f"{label_of(spec.dataset)}, {spec.model}{own}", [])
            if spec.approach not in {one.spec.approach for one in panel}:  # of the first setting
                panel.append(record)
    return found


def _panel(axes: Any, title: str, records: Sequence[Record], curve: str) -> None:
    order = list(LOSSES)
    for record in sorted(records, key=lambda r: order.index(r.spec.approach)):
        name, colour = LOSSES[record.spec.approach]
        points = 100 * record.curves[curve].astype(float)
        mean, std = points.mean(0), points.std(0, ddof=min(1, len(points) - 1))
        axes.plot(record.epochs, mean, color=colour, label=name, linewidth=1.2)
        axes.fill_between(
            record.epochs, mean - std, mean + std, color=colour, alpha=0.2, linewidth=0
        )
    axes.set_title(title, fontsize=9)
    axes.set_xlabel("Epoch", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(alpha=0.3)


def _save(figure: Any, file: Path, kinds: Sequence[str]) -> list[Path]:
    made = []
    for kind in kinds:
        made.append(file.with_name(f"{file.name}.{kind}"))
        told = {"Software": None} if kind == "png" else {"CreationDate": None, "Producer": None}
        with atomic_write(made[-1]) as out:
            figure.savefig(out, format=kind, dpi=160, metadata=told)
    return made
