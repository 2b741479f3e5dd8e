"""Plans: which specs make up a table of the paper."""

from __future__ import annotations

import csv
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from ruleout.experiments.specs import Spec
from ruleout.experiments.specs import protocol as find_protocol
from ruleout.labels.errors import brief, nearest

__all__ = ["plan"]


def plan(
    table: str,
    *,
    datasets: Collection[str] | None = None,
    approaches: Collection[str] | None = None,
    protocol: str = "released",
    **settings: Any,
) -> list[Spec]:
    """Return one spec for each cell of a table, data set by data set, in the order of its rows.

    Parameters
    ----------
    table
        A name of :data:`~ruleout.experiments.TABLES`.
    datasets, approaches
        Only these, by the names of the paper or of code.
    protocol, settings
        For :class:`Spec`: features, grid, trials, epochs, seed, precision, ...

    Examples
    --------
    >>> specs = plan("uci")
    >>> len(specs), str(specs[0])
    (72, 'yeast, linear, exp')
    >>> [spec.law for spec in plan("fixed-linear", approaches=["LOG"])][:2]
    ['fixed:1', 'fixed:2']
    """
    if table not in TABLES:
        say = nearest(table, TABLES, f"the tables are {', '.join(TABLES)}")
        raise ValueError(f"unknown table {brief(table)}; {say}")
    cells = [one for one in printed() if one.table == TABLES[table]]
    cells = _only(cells, "data set", datasets, lambda c: {c.dataset, c.place[0]})
    cells = _only(cells, "approach", approaches, lambda c: {c.approach, c.row})
    law = find_protocol(protocol).law
    order = list(dict.fromkeys((c.dataset, c.model, c.sizes) for c in cells))
    cells.sort(key=lambda c: order.index((c.dataset, c.model, c.sizes)))
    return [_spec(cell, law, protocol=protocol, **settings) for cell in cells]


def _spec(cell: Printed, law: str, **settings: Any) -> Spec:
    dataset, model, approach, sizes = cell.place
    drawn = f"fixed:{sizes[2:]}" if sizes.startswith("s=") else law
    return Spec(dataset=dataset, model=model, approach=approach, law=drawn, **settings)


def _only(
    cells: list[Printed], what: str, wanted: Collection[str] | None, names: Any
) -> list[Printed]:
    """Keep the cells that were asked for; a name that no cell has is refused."""
    if wanted is None:
        return cells
    if not wanted:
        raise ValueError(f"no {what} is named; name some, or leave the option out")
    known = list(dict.fromkeys(name for cell in cells for name in sorted(names(cell))))
    lower = {name.lower(): name for name in known}
    found = set()
    for name in wanted:
        if name.lower() not in lower:
            say = nearest(name, known, f"it has {', '.join(known)}")
            raise ValueError(f"the table has no {what} {brief(name)}; {say}")
        found.add(name.lower())
    return [cell for cell in cells if found & {name.lower() for name in names(cell)}]


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
