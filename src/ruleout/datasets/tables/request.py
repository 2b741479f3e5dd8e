"""What the caller asks for, and which columns of a file that makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruleout.datasets.errors import DataError
from ruleout.labels.classes import Classes, shown
from ruleout.labels.errors import brief, nearest

__all__ = ["FILE", "Request", "choose", "locate"]

FILE = "file"  # the column of a label file that names the images


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of :func:`ruleout.datasets.read_table`, described there."""

    excluded: str | None = None
    label: str | None = None
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    classes: Classes | None = None
    labels_file: Path | None = None
    names: str | None = None
    files: tuple[str, ...] | None = None
    size: tuple[int, int] | None = None
    unlabelled: bool = False
    featureless: bool = False
    reading: Mapping[str, Any] | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The columns that hold labels."""
        return tuple(name for name in (self.excluded, self.label) if name is not None)

    @property
    def held(self) -> tuple[str, ...]:
        """The columns that hold labels or names, and are no features."""
        return self.named if self.names is None else (*self.named, self.names)

    @property
    def wanted(self) -> tuple[str, ...] | None:
        """The features to take and their order, where the caller or an earlier reading says so."""
        if self.features is None and self.reading is not None:
            return tuple(self.reading.get("features") or ()) or None
        return self.features

    def check(self) -> None:
        """Raise where the arguments contradict each other."""
        if self.excluded is not None and self.excluded == self.label:
            raise DataError(
                f"column {self.label!r} is asked for as ruled-out classes and as true labels",
                "name two columns",
            )
        for name in self.held:
            if name in (self.features or ()):
                what = "names" if name == self.names else "labels"
                raise DataError(
                    f"column {name!r} holds {what} and is asked for as a feature",
                    "take it out of the features",
                )
        for name in self.ignore:
            if name in self.held or name in (self.features or ()):
                raise DataError(f"column {name!r} is asked for and ignored", "do one of the two")
        for name in self.features or ():
            if (self.features or ()).count(name) > 1:
                raise DataError(f"feature {name!r} is asked for twice", "name each feature once")


def locate(name: str, names: Sequence[str]) -> str:
    """Return `name` if the file has such a column, else say which it may be."""
    if name not in names:
        say = f"the columns are {shown(names)}" if names else "the file has none"
        raise DataError(f"there is no column {name!r}", nearest(name, names, say))
    return name


def choose(names: Sequence[str], ask: Request) -> list[str]:
    """Return the columns that are to be features, in their order."""
    _check_names(names)
    for name in (*ask.held, *ask.ignore):
        locate(name, names)
    if ask.wanted is None:
        taken = {*ask.held, *ask.ignore, ""}  # what pandas saves its index as has no name
        features = [name for name in names if name not in taken]
        if not features and not ask.featureless:
            raise DataError("no column is left as a feature", f"the columns are {shown(names)}")
        return features
    missing = [name for name in ask.wanted if name not in names]
    if len(missing) == 1:
        locate(missing[0], names)
    if missing:
        raise DataError(
            f"{len(missing)} columns are missing: {shown(missing)}",
            f"the columns are {shown(names)}",
        )
    return list(ask.wanted)


def _check_names(names: Sequence[str]) -> None:
    if len(names) == 1 and (";" in names[0] or "\t" in names[0]):
        raise DataError(
            f"the header is {brief(names[0])}", "separate columns by commas, or name the file .tsv"
        )
    seen: set[str] = set()
    for name in names:
        if name in seen and name:
            raise DataError(f"column {name!r} stands twice", "name each column once")
        seen.add(name)
