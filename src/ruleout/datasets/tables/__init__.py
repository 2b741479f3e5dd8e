"""A user's own data: CSV, TSV, Parquet, JSONL, NPZ, or a folder of images, by suffix.

In a table file one column holds what was ruled out, as class names separated by ``|`` or as lists;
every other column of numbers is a feature. pyarrow and Pillow are loaded when a file asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ruleout.datasets.tables.request import Request
from ruleout.datasets.tables.table import Table
from ruleout.labels.classes import Classes
from ruleout.labels.process import Seed
from ruleout.labels.sets import LabelSets

__all__ = ["Table", "draw_table", "read_table"]


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
    from ruleout.datasets.tables.reader import read  # late: it loads pyarrow

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
    from ruleout.datasets.tables.drawing import redraw  # late: it loads pyarrow

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
