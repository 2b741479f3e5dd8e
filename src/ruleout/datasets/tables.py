"""A user's own data: CSV, TSV, Parquet, JSONL, NPZ, or a folder of images, by suffix.

In a table file one column holds what was ruled out, as class names separated by ``|`` or as lists;
every other column of numbers is a feature. pyarrow and Pillow are loaded when a file asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.dataset import DataError
from ruleout.labels.classes import Classes, ClassName, shown
from ruleout.labels.errors import brief, nearest
from ruleout.labels.process import Seed
from ruleout.labels.sets import LabelSets


def read_table(
    path: str | Path,
    *,
    excluded: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    classes: Classes | None = None,
    labels_file: str | Path | None = None,
    names: str | None = None,
    files: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
    unlabelled: bool = False,
    featureless: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Table:
    r"""Read features, and with them what was ruled out or the true labels.

    Parameters
    ----------
    path
        ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``, ``.npz``, or a folder of images.
    excluded
        The column (in NPZ the array) of what was ruled out. None reads none.
    label
        The column (in NPZ the array) of the true labels. None reads none.
    features
        Exactly these columns, in this order; all others are ignored. By default every column that
        is not named otherwise is a feature, and must hold numbers (true and false count as 1, 0).
    ignore
        Columns that are no features.
    classes
        The class names, or their number. By default the list in the file; a file without one gets
        the sorted names seen in it, and :attr:`Table.notes` says so.
    labels_file
        For a folder: the table whose column ``file`` names the images, and which holds the column
        of labels; by default ``labels.csv`` in the folder. Where no labels are asked for, all
        images are read, sorted by name.
    names
        The column (in NPZ the array) that names the rows, for :attr:`Table.row_names`.
    files
        For a folder: exactly these images, by their paths below it, in this order.
    size
        For a folder: resize every image to (height, width).
    unlabelled
        Accept rows that rule nothing out.
    featureless
        Accept a file without features; then x has no columns.
    reading
        What :attr:`Table.reading` was when a model was trained: the same features in the same
        order, the same image size and channels.

    Raises
    ------
    InputError
        A ValueError: what is wrong, in which file, row and column, and how to mend it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "pets.csv")
    ...     _ = file.write_text("weight,age,not\n4.2,3,dog|fish\n0.1,1,dog\n9,7,cat\n")
    ...     pets = read_table(file, excluded="not")
    >>> pets
    Table('pets.csv', 3 rows of shape (2,), 3 classes, label sets)
    >>> pets.features, pets.classes
    (('weight', 'age'), ('cat', 'dog', 'fish'))
    >>> pets.sets[0]
    ('dog', 'fish')
    """
    from ruleout.datasets.table_files import read  # late: it loads pyarrow

    return read(
        Path(path).expanduser(),
        Request(
            excluded=excluded,
            label=label,
            features=None if features is None else tuple(features),
            ignore=tuple(ignore),
            classes=classes,
            labels_file=None if labels_file is None else Path(labels_file).expanduser(),
            names=names,
            files=None if files is None else tuple(files),
            size=size,
            unlabelled=unlabelled,
            featureless=featureless,
            reading=reading,
        ),
    )


def draw_table(
    path: str | Path,
    out: str | Path,
    *,
    label: str,
    law: Any = "released",
    seed: Seed = 0,
    classes: Classes | None = None,
    labels_file: str | Path | None = None,
    keep_label: bool = False,
    sets_only: bool = False,
) -> LabelSets:
    """Draw what is ruled out from true labels, and write the table again with it.

    A column ``excluded`` takes the place of the label column; all other columns stay. The suffix
    of `out` says how it is written; of a folder of images the label file is written.

    Parameters
    ----------
    path, label, classes, labels_file
        As in :func:`read_table`.
    out
        ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.npz``.
    law, seed
        As in :func:`ruleout.draw`.
    keep_label
        Write the true labels, too.
    sets_only
        Write the label sets alone, as :meth:`ruleout.LabelSets.write` does.
    """
    from ruleout.datasets.table_files import redraw  # late: it loads pyarrow

    ask = Request(
        label=label,
        classes=classes,
        labels_file=None if labels_file is None else Path(labels_file).expanduser(),
    )
    sets, _ = redraw(
        Path(path).expanduser(),
        Path(out).expanduser(),
        ask,
        law=law,
        seed=seed,
        keep_label=keep_label,
        sets_only=sets_only,
    )
    return sets


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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows of a user's data, in memory.

    Parameters
    ----------
    x
        float32 ``[n, d]``, one flattened row per example, every value finite.
    shape
        What a row is before flattening: ``(d,)``, or ``(channels, height, width)``.
    features
        The name of each column of `x`; empty for images.
    sets
        What was ruled out; None where nobody asked.
    labels
        The true label of each row, as class names; None where nobody asked.
    classes
        The class names; None without sets and labels.
    row_names
        The file name of each image, or what the column of names holds, else None.
    source
        The file or folder.
    sha256
        Of the bytes read.
    reading
        How it was read, as plain JSON: ``read_table(other, reading=...)`` does the same again.
    notes
        Sentences that a user should see once.
    """

    x: NDArray[np.float32]
    shape: tuple[int, ...]
    features: tuple[str, ...]
    sets: LabelSets | None = None
    labels: NDArray[Any] | None = None
    classes: tuple[ClassName, ...] | None = None
    row_names: tuple[str, ...] | None = None
    source: Path
    sha256: str
    reading: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        parts = [f"{len(self)} rows of shape {self.shape}"]
        if self.classes is not None:
            parts.append(f"{len(self.classes)} classes")
        if self.sets is not None:
            parts.append("label sets")
        if self.labels is not None:
            parts.append("true labels")
        return f"Table({self.source.name!r}, {', '.join(parts)})"
