"""The accuracies that the paper prints, and how its names are spelt in code.

``printed.csv`` holds the 518 accuracies of the five tables of Feng et al., ICML 2020.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ruleout.experiments.specs import Spec

__all__ = ["DATASETS", "MODELS", "TABLES", "Printed", "label_of", "printed", "printed_for"]

#: The tables, as the command line names them: the name in ``printed.csv``.
TABLES = {name: name.replace("-", "_") for name in
          ("uci", "linear", "deep", "fixed-linear", "fixed-mlp")}  # fmt: skip

#: The paper's names of data sets: ours.
DATASETS = {
    "Yeast": "yeast",
    "Texture": "texture",
    "Dermatology": "dermatology",
    "Synthetic Control": "synthetic-control",
    "MNIST": "mnist",
    "Kuzushiji": "kmnist",
    "Fashion": "fashion-mnist",
    "CIFAR-10": "cifar10",
    "20Newsgroups": "20newsgroups",
}

#: The paper's names of models: those that its code runs.
MODELS = {"linear": "linear", "mlp": "mlp", "resnet": "resnet32", "densenet": "densenet22"}


_KEY = ("table", "dataset", "model", "sizes", "group", "approach")


@dataclass(frozen=True)
class Printed:
    """One accuracy as printed, in percent; the first six names say which."""

    table: str
    dataset: str
    model: str
    sizes: str
    group: str
    approach: str
    mean: float
    std: float
    marked_worse: bool
    best: bool

    @property
    def row(self) -> str:
        """The approach as code names it."""
        return _row(self.group, self.approach)

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Data set, model, approach and sizes, as specs name them."""
        return DATASETS[self.dataset], MODELS[self.model], self.row, self.sizes


def _row(group: str, approach: str) -> str:
    """Return the name in code.

    >>> _row("before-shuffle", "GA"), _row("bounded", "PHuber-CE")
    ('ga-before', 'phuber')
    """
    name = approach.lower().removesuffix("-ce")
    return f"{name}-{group.removesuffix('-shuffle')}" if group.endswith("-shuffle") else name


@cache
def printed() -> tuple[Printed, ...]:
    """Return all that the paper prints, in its order.

    >>> len(printed()), printed()[0].row, printed()[0].mean
    (518, 'exp', 54.94)
    """
    text = files("ruleout.experiments").joinpath("printed.csv").read_text("utf-8")
    rows = csv.DictReader(text.splitlines())
    return tuple(
        Printed(
            **{name: row[name] for name in _KEY},
            mean=float(row["mean"]),
            std=float(row["std"]),
            marked_worse=row["marked_worse_than_ours"] == "yes",
            best=row["best"] == "yes",
        )
        for row in rows
    )


@cache
def _places() -> dict[tuple[str, str, str, str], Printed]:
    return {one.place: one for one in printed()}


def printed_for(spec: Spec) -> Printed | None:
    """Return what the paper prints for the cell of a spec; None where it prints nothing.

    >>> found = printed_for(Spec(dataset="yeast", approach="log"))
    >>> (found.mean, found.std) if found else None
    (60.11, 1.93)
    """
    return _places().get((spec.dataset, spec.model, spec.approach, spec.sizes))


def label_of(dataset: str) -> str:
    """Return the paper's name of a data set, or our own where it has none.

    >>> label_of("kmnist"), label_of("digits")
    ('Kuzushiji', 'digits')
    """
    return {ours: theirs for theirs, ours in DATASETS.items()}.get(dataset, dataset)
