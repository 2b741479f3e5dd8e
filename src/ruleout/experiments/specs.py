"""Specs: an experiment as data. One spec is one cell of a table, and one stacked grid."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from importlib.resources import files
from tomllib import loads
from typing import Any

from ruleout.labels.classes import find_name
from ruleout.labels.errors import InputError, brief
from ruleout.labels.laws import LAWS

#: What the paper calls things, what it says of its tables, and its two readings.
NAMES: dict[str, Any] = loads(
    files("ruleout.experiments").joinpath("paper.toml").read_text("utf-8")
)

#: Grids that have a name. ``printed``: the configuration that the paper's source prints, and no
#: search; ``halving``: the paper's grid, of which most configurations train for fewer epochs.
GRIDS = ("paper", "printed", "halving")

#: The rounds of successive halving: by what they divide the epochs. Each goes on with a third of
#: the configurations of the round before, the best: 36, 12 and 4. All take as long as 1.4 whole
#: runs; the last is long enough to show which losses overfit, where short ones prefer no weight
#: decay.
HALVING = (125, 32, 4)

#: How features are handed to a model.
FEATURES = ("raw", "standardised")


@dataclass(frozen=True, kw_only=True)
class Spec:
    """All that decides the numbers of a cell, and nothing else; not where it is computed.

    >>> spec = Spec(dataset="yeast", approach="log", trials=2)
    >>> spec.key[:8] == Spec(dataset="yeast", approach="log", trials=2).key[:8]
    True
    >>> spec.key == Spec(dataset="yeast", approach="log", trials=3).key
    False
    """

    dataset: str  #: a name that :func:`ruleout.datasets.load` knows
    approach: str  #: the row of the table; the protocol says which form of it runs
    model: str = "linear"  #: a name that :func:`ruleout.models.build` knows
    #: how sets are drawn, a name that :func:`ruleout.labels.origins.named_origin` knows; ``given``:
    #: those that the data come with
    law: str = "released"
    protocol: str = "released"  #: ``released`` or ``text``
    #: ``raw``, or ``standardised``: every feature with mean 0 and standard deviation 1 over the
    #: training rows of the trial
    features: str = "raw"
    #: ``"paper"``, ``"printed"``, ``"halving"``, ``"small"`` (8), or JSON text of the values
    grid: str = "paper"
    criterion: str = "accuracy"  #: what chooses a configuration
    share: float = 0.1  #: of the training rows, on which it chooses
    per_trial: bool = False  #: whether every trial chooses for itself, or the mean over trials
    trials: int = 5
    epochs: int = 250
    batch_size: int = 256
    average: int = 10  #: over how many last epochs accuracies and the criterion are averaged
    test_share: float = 0.1  #: of the rows, for data sets without official test rows
    seed: int = 0  #: of splits, label sets, first weights and batch order; approaches share them
    precision: str = "float32"  #: as for :func:`ruleout.fit_grid`
    search_trials: int = 0  #: how many trials, the first, search the grid for all; 0: every trial

    def __post_init__(self) -> None:
        protocol(self.protocol)
        if self.features not in FEATURES:
            say = f"say {' or '.join(map(repr, FEATURES))}"
            raise InputError(f"features are {brief(self.features)}", say)
        if not 1 <= self.average <= self.epochs:
            problem = f"the last {self.average} of {self.epochs} epochs cannot be averaged"
            raise InputError(problem, "give at least as many epochs")
        if not 0 <= self.search_trials <= self.trials or (self.search_trials and self.per_trial):
            problem = f"{self.search_trials} of {self.trials} trials cannot search the grid"
            say = "give at most as many as there are trials, and one choice for all of them"
            raise InputError(problem, say)
        if self.grid not in (*GRIDS, "small"):
            try:
                json.loads(self.grid)
            except ValueError:
                say = f"say {', '.join((*GRIDS, 'small'))}, or give values as JSON"
                raise InputError(f"unknown grid {brief(self.grid)}", say) from None
        if self.grid == "printed" and self.search_trials:
            raise InputError("a printed configuration is not searched", "leave search_trials out")
        if self.grid == "printed" and not self._in_print:
            raise InputError(f"the paper prints no configuration for {self}", "search a grid")

    @property
    def _in_print(self) -> list[float] | None:
        """Learning rate and weight decay as the paper's source has them."""
        found: Any = NAMES["configurations"]
        for name in (self.dataset, self.model, self.approach):
            found = found.get(name, {})
        return found or None

    @property
    def values(self) -> Any:
        """The grid as :func:`ruleout.fit_grid` takes it; halving begins with all of it."""
        if self.grid == "printed":
            return [dict(zip(("learning_rate", "weight_decay"), self._in_print or (), strict=True))]
        if self.grid == "small":
            return self.grid
        return "paper" if self.grid in GRIDS else json.loads(self.grid)

    @property
    def searching(self) -> int:
        """How many trials search the grid."""
        alone = self.grid == "printed" or self.approach == "auto"  # which chooses for itself
        return 0 if alone else self.search_trials or self.trials

    @property
    def runs(self) -> str:
        """The name of the approach that is trained."""
        return protocol(self.protocol).runs(self.approach)

    @property
    def sizes(self) -> str:
        """How the paper's tables name the law, where they have it."""
        if self.law in LAWS:
            return "uniform-over-sets"
        return f"s={self.law[6:]}" if self.law.startswith("fixed:") else self.law

    @property
    def setting(self) -> dict[str, Any]:
        """All but the cell: what every cell of one table shares.

        Cells whose grid was searched in fewer trials stand beside the others, and say so.
        """
        apart = ("dataset", "model", "approach", "law", "search_trials")
        told = {name: value for name, value in asdict(self).items() if name not in apart}
        return told | {"law": "fixed" if self.law.startswith("fixed:") else self.law}

    @property
    def comparable(self) -> dict[str, Any]:
        """What cells must share to stand in one table of the paper: all but how much was computed.

        Trials, precision, and which grid of those that have a name may differ; reports say where.
        """
        told = {n: v for n, v in self.setting.items() if n not in ("trials", "precision")}
        return told | {"grid": "paper" if self.grid in GRIDS else self.grid}

    @property
    def fullness(self) -> tuple[bool, int, bool, int]:
        """By which the best of several specs of one cell is found, the largest."""
        return self.grid == "paper", self.trials, self.grid == "halving", self.searching

    @property
    def chosen_by(self) -> str:
        """What chose the configuration, in a few words."""
        if self.grid == "printed":
            return "printed"
        if self.approach == "auto":
            return "auto"
        trials = f" in {self.search_trials} trial" if self.search_trials else ""
        return (
            f"{self.criterion}{' by halving' * (self.grid == 'halving')}{trials}"
            f"{' per trial' * self.per_trial}"
        )

    @cached_property
    def key(self) -> str:
        """The hash of everything above."""
        return sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        """Return the spec as text, always the same for the same spec."""
        told = asdict(self)
        if not self.search_trials:  # as specs were written before there was this name
            del told["search_trials"]
        return json.dumps(told, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Spec:
        """Read what :meth:`to_json` wrote.

        >>> spec = Spec(dataset="yeast", approach="log")
        >>> Spec.from_json(spec.to_json()) == spec
        True
        """
        found: Mapping[str, Any] = json.loads(text)
        unknown = sorted(set(found) - {one.name for one in fields(cls)})
        if unknown:
            say = "it was written by a newer version of ruleout: update it"
            raise InputError(f"a spec has the unknown name {brief(unknown[0])}", say)
        return cls(**found)

    def __str__(self) -> str:
        sizes = "" if self.law in LAWS else f", {self.sizes}"
        return f"{self.dataset}, {self.model}, {self.approach}{sizes}"


@dataclass(frozen=True)
class Protocol:
    """One reading of the paper."""

    name: str  #: ``released`` or ``text``
    law: str  #: how sizes are drawn where the table says "uniform over sets"
    refit: bool  #: whether the choice is trained again on all rows, those included that chose
    source: str  #: what it follows, as part of a sentence
    sizes: str  #: how it draws sizes, as part of a sentence
    differs: str  #: what else is its own, as part of a sentence
    #: which form of an approach runs, where it is not the one of that name
    forms: Mapping[str, str] = field(default_factory=dict)

    def about(self, law: str = "") -> str:
        """Say in a sentence what follows the protocol; other laws than its own are not its."""
        sizes = f"{self.sizes}, " if law in ("", self.law) else ""
        return f"{self.source}: {sizes}{self.differs}."

    def runs(self, approach: str) -> str:
        """Return the name of the approach that is trained for a row of the tables.

        >>> protocol("released").runs("ga-before"), protocol("text").runs("log")
        ('ga-2019-before', 'log-text')
        """
        return self.forms.get(approach, approach)


PROTOCOLS = {name: Protocol(name, **told) for name, told in NAMES["protocols"].items()}


def protocol(name: str) -> Protocol:
    """Return the protocol of that name.

    >>> protocol("released").law
    'released'
    """
    return find_name("protocol", name, PROTOCOLS)
