"""Plans: which specs make up a table, and the accuracies that the paper prints.

``printed.csv`` holds the 518 accuracies of the five tables of Feng et al., ICML 2020.
"""

import csv
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

from ruleout.datasets import names as dataset_names
from ruleout.experiments.specs import NAMES, Spec
from ruleout.experiments.specs import protocol as find_protocol
from ruleout.labels.classes import find_name
from ruleout.labels.errors import brief, nearest
from ruleout.labels.origins import named_origin
from ruleout.methods import PAPER
from ruleout.methods import approaches as approach_names
from ruleout.models import MODELS as MODEL_NAMES

#: The tables, as the command line names them: the name in ``printed.csv``.
TABLES = {name.replace("_", "-"): name for name in NAMES["tables"]}

#: The cells of all tables with linear models and MLPs, as the command line names them.
LINEAR_MLP = "linear-mlp"

#: What goes beyond the paper: later approaches, other laws, real boards.
BEYOND = "beyond"

#: The paper's names of data sets and of models: ours.
DATASETS: dict[str, str] = NAMES["datasets"]
MODELS: dict[str, str] = NAMES["models"]

_Names: TypeAlias = Sequence[str] | None

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
    marked_worse: bool | None  #: than EXP and LOG; None in tables without marks
    best: bool

    @property
    def row(self) -> str:
        """The approach as code names it."""
        name = self.approach.lower().removesuffix("-ce")
        before, shuffled, _ = self.group.partition("-shuffle")
        return f"{name}-{before}" if shuffled else name

    @property
    def place(self) -> tuple[str, str, str, str]:
        """Data set, model, approach and sizes, as specs name them."""
        return DATASETS[self.dataset], MODELS[self.model], self.row, self.sizes


@cache
def printed() -> tuple[Printed, ...]:
    """Return all that the paper prints, in its order.

    >>> len(printed()), printed()[0].row, printed()[0].mean
    (518, 'exp', 54.94)
    """
    text = files("ruleout.experiments").joinpath("printed.csv").read_text("utf-8")
    return tuple(
        Printed(
            **{name: row[name] for name in _KEY},
            mean=float(row["mean"]),
            std=float(row["std"]),
            marked_worse={"yes": True, "no": False}.get(row["marked_worse_than_ours"]),
            best=row["best"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
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


@cache
def _tables() -> dict[tuple[str, str, str], str]:
    return {(one.place[0], one.place[1], one.sizes): one.table for one in printed()}


def table_of(spec: Spec) -> str:
    """Return the table that has the column of a spec, whatever its approach; else ``own``."""
    return _tables().get((spec.dataset, spec.model, spec.sizes), "own")


def label_of(dataset: str) -> str:
    """Return the paper's name of a data set, or our own where it has none."""
    return {ours: theirs for theirs, ours in DATASETS.items()}.get(dataset, dataset)


def plan(
    table: str | None,
    *,
    datasets: _Names = None,
    approaches: _Names = None,
    models: _Names = None,
    laws: _Names = None,
    protocol: str = "released",
    **settings: Any,
) -> list[Spec]:
    """Return one spec for each cell of a table, data set by data set, in the order of its rows.

    `table` is a name of :data:`~ruleout.experiments.TABLES`, or ``"linear-mlp"``: all cells but
    those of CIFAR-10, where `search_trials` is for MLPs alone. ``"beyond"``: later approaches, with
    ``auto``, laws that the paper does not have, and real boards with their own sets; by the grid
    ``"small"`` in 100 epochs unless the settings say otherwise. None: a table of your own, of the
    data sets and approaches that you name, with linear models unless `models` says otherwise. Else
    `datasets` and `approaches` choose, by the names of the paper or of code; those that the paper
    has nowhere, such as what :func:`ruleout.datasets.register` and :func:`ruleout.losses.register`
    added, become further columns and rows. `models` and `laws` take the place of those of the
    table: names as :func:`ruleout.models.build` and :func:`ruleout.size_law` know them, sets of
    three classes as ``"fixed:3"``. `settings` are those of :class:`Spec`: features, grid, trials,
    epochs, seed, precision, ...

    >>> specs = plan("uci")
    >>> len(specs), str(specs[0])
    (72, 'yeast, linear, exp')
    >>> len(plan("linear-mlp"))
    484
    >>> [spec.law for spec in plan("fixed-linear", approaches=["LOG"])][:2]
    ['fixed:1', 'fixed:2']
    >>> mine = plan(None, datasets=["digits"], approaches=["log", "clpl"], models=["mlp"])
    >>> [str(one) for one in mine]
    ['digits, mlp, log', 'digits, mlp, clpl']
    """
    if table == BEYOND:
        told = {"grid": "small", "epochs": 100, **settings, "protocol": protocol}
        return _beyond(datasets, approaches, models, laws, told)
    known = {name: [own] for name, own in TABLES.items()} | {LINEAR_MLP: list(TABLES.values())}
    tables = [] if table is None else find_name("table", table, known)
    law = find_protocol(protocol).law
    cells = [one for one in printed() if table is None or one.table in tables]
    if table == LINEAR_MLP:
        cells = [one for one in cells if one.model in ("linear", "mlp")]
    if table is None and (datasets is None or approaches is None):
        raise ValueError("a table of your own needs data sets and approaches; name some of each")
    for model in models or ():
        find_name("model", model, MODEL_NAMES)  # raises, as the next, for a name that is not known
    for one in laws or ():
        if one != "given":
            named_origin(re.sub("fixed:[0-9]+", "fixed:1", one), 99)  # each data set has its k
    sets = [(c.dataset, c.place[0]) for c in cells]
    rows = [(c.approach, c.row) for c in cells]
    wanted = _chosen("data set", datasets, sets, dataset_names(), DATASETS.values())
    chosen = _chosen("approach", approaches, rows, [*approach_names(), "auto"], PAPER)
    found = []
    for here in [[c for c in cells if c.table == one] for one in tables] or [[]]:
        fixed = [f"fixed:{c.sizes[2:]}" if c.sizes.startswith("s=") else law for c in here]
        places = [(*c.place[:2], drawn) for c, drawn in zip(here, fixed, strict=True)]
        found += [
            Spec(dataset=data, model=model, approach=row, law=drawn, protocol=protocol, **settings)
            for data in _of_table(wanted, [c.place[0] for c in here], DATASETS.values())
            for model, drawn in _columns(data, places, models, laws, law)
            for row in _of_table(chosen, [c.row for c in here], PAPER)
        ]
    if table == LINEAR_MLP:
        found = [replace(s, search_trials=0) if s.model == "linear" else s for s in found]
    return list(dict.fromkeys(found))


def _beyond(
    datasets: _Names, approaches: _Names, models: _Names, laws: _Names, settings: dict[str, Any]
) -> list[Spec]:
    """Return the cells beyond the paper; boards have their own sets, and are standardised."""
    told: dict[str, Any] = NAMES[BEYOND]
    asked = datasets or [*told["datasets"], *told["boards"]]
    rows, ways = approaches or told["approaches"], models or told["models"]
    found = []
    for name in asked:
        board = name.lower() in told["boards"]
        own = {"features": "standardised"} if board else {}
        drawn = ["given"] if board else laws or told["laws"]
        found += plan(
            None, datasets=[name], approaches=rows, models=ways, laws=drawn, **settings | own
        )
    return found


def _of_table(names: list[str], here: Collection[str], papers: Collection[str]) -> list[str]:
    """Return those that a table has, and those that the paper has nowhere."""
    return [name for name in names if not here or name in here or name not in papers]


def _columns(
    dataset: str, places: Sequence[tuple[str, str, str]], models: _Names, laws: _Names, law: str
) -> list[tuple[str, str]]:
    """Return models and laws of a data set: those of its table, of another column, or as asked."""
    here = list(dict.fromkeys(place[1:] for place in places if place[0] == dataset))
    if not here:  # a data set that the table does not have: with its first model and all its laws
        here = list(dict.fromkeys(place[1:] for place in places if place[1] == places[0][1]))
        here = here or [("linear", law)]
    if models is None and laws is None:
        return here
    chosen = models or list(dict.fromkeys(model for model, _ in here))
    drawn = laws or list(dict.fromkeys(one for _, one in here))
    return [(model, one) for model in chosen for one in drawn]


def _chosen(
    what: str, wanted: _Names, pairs: list[tuple[str, str]], own: list[str], papers: Iterable[str]
) -> list[str]:
    """Return our names, of a table that pairs the paper's with ours, or of what is registered."""
    if wanted is None:
        return list(dict.fromkeys(ours for _, ours in pairs))
    if not wanted:
        raise ValueError(f"no {what} is named; name some, or leave the option out")
    pairs = pairs + [(name, name) for name in own if name not in set(papers)]
    known = list(dict.fromkeys(name for pair in pairs for name in sorted(set(pair))))
    lower = {name.lower() for name in known}
    for name in wanted:
        if name.lower() not in lower:
            say = nearest(name, known, f"it has {', '.join(known)}")
            raise ValueError(f"the table has no {what} {brief(name)}; {say}")
    asked = {name.lower() for name in wanted}
    return list(dict.fromkeys(pair[1] for pair in pairs if asked & {n.lower() for n in pair}))
