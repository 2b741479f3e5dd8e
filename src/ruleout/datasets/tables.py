"""A user's own data: CSV, TSV, Parquet, JSONL, NPZ, .mat, or a folder of images, by suffix.

In a table file one column holds what was ruled out, as class names separated by ``|`` or as lists;
every other column of numbers is a feature. Columns of very different sizes (:class:`Scaling`) and
equal rows (:func:`row_hashes`) are found here, too. pyarrow and Pillow are loaded when a file asks
for them.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.text_columns import add_words
from ruleout.labels import row_files
from ruleout.labels.atomic import atomic_write
from ruleout.labels.classes import (
    Classes,
    ClassName,
    class_names,
    look_alikes,
    shown,
    unknown,
    whole,
)
from ruleout.labels.errors import DataError, InputError, LabelError, brief, counted, nearest
from ruleout.labels.laws import Law, Seed
from ruleout.labels.origins import Evidence, Uniform, evidence, named_origin
from ruleout.labels.row_files import COLUMN, names_in, reporting
from ruleout.labels.sets import LabelSets, chunk_rows, chunks

if TYPE_CHECKING:
    import pyarrow as pa

    from ruleout.labels.files import Cells, Columns

SUFFIXES = (".csv", ".tsv", ".parquet", ".jsonl", ".npz")
ARCHIVES = (".npz", ".mat")  # of arrays, not of columns
BOARD = "partial_target"  # the candidates in .mat files of the field
KEY = "item"  # the column that names the rows in a file of features
FILE = "file"  # the column of a label file that names the images
FOLDER = "folder"  # the label of images that lie in folders of their class, without a label file
WEIGHT = "weight"  # the column of a label file that says how likely each row is right

LARGEST = float(np.finfo(np.float32).max) / 4  # number of which float32 still holds differences
_EXACT, _IDS = 2**24, 2**64  # float32 holds every whole number up to here; ids end there
_ROWS = 4096  # rows that models predict at a time: batches are multiples of it
_APART = 100  # times as large, from where on raw columns lose
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: what differs differs in all bits
_NAMELESS = re.compile(r"(Unnamed: \d+|__index_level_\d+__)?")  # what pandas saves its index as
_VERDICTS = {"accept": 1, "yes": 1, "true": 1, "1": 1, "reject": 0, "no": 0, "false": 0, "0": 0}
_VERDICTS |= {"ignore": -1, "skip": -1, "": -1}  # what annotation tools write about a class


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Table:
    """Rows of a user's data, in memory."""

    #: ``[n, d]``, one flattened row per example, every value finite; a SciPy CSR array where a .mat
    #: file holds a sparse matrix
    x: Any
    shape: tuple[int, ...]  #: of a row before it is flat: ``(channels, height, width)`` or ``(d,)``
    features: tuple[str, ...]  #: the name of each column of `x`; empty for images
    sets: LabelSets | None = None  #: what was ruled out; None where nobody asked
    #: what the sets say of every class, if some of them are wrong; None: they never are
    evidence: Evidence | None = None
    labels: NDArray[Any] | None = None  #: the true labels, as class names; None: nobody asked
    classes: tuple[ClassName, ...] | None = None  #: the class names; None without sets and labels
    row_names: tuple[str, ...] | None = None  #: files of images, or what a column of names holds
    #: what each row weighs in training, as a column says; for a folder of images also how likely it
    #: is right, from 0 to 1, where the label file has a column ``weight``
    weight: NDArray[np.float64] | None = None
    groups: NDArray[np.intp] | None = None  #: the number of each row's group; None: nobody asked
    annotators: NDArray[Any] | None = None  #: who ruled it out, by name; None: nobody asked
    known: NDArray[Any] | None = None  #: the true class of some rows as text, else empty
    items: NDArray[Any] | None = None  #: what the row is about, by name; None: nobody asked
    raw: Table | None = None  #: the answers as they were read, of a table that joins them
    source: Path  #: the file or folder
    sha256: str  #: of the bytes read
    #: how it was read, as plain JSON: ``read_table(other, reading=...)`` does the same again
    reading: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  #: sentences that a user should see once

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def __repr__(self) -> str:
        return self.described(len(self))

    def described(self, rows: int) -> str:
        """Say what is in all the rows of which these are some."""
        parts = [f"{counted(rows, 'row')} of shape {self.shape}"]
        if self.classes is not None:
            parts.append(f"{len(self.classes)} classes")
        held = {"label sets": self.sets, "true labels": self.labels}
        parts += [what for what, found in held.items() if found is not None]
        return f"Table({self.source.name!r}, {', '.join(parts)})"

    def heard(self, error: Any = 0.0) -> Table:
        """Return the table with what its sets say of every class, if some of them are wrong.

        Where annotators or items were read, all answers about an item become one row, and how often
        each person is wrong is learnt. `error` is as for :func:`ruleout.evidence`.
        """
        assert self.sets is not None  # what was ruled out was read
        if self.annotators is None and self.items is None:
            truth, notes = self.truth(), self.notes
            notes += () if truth is None or np.any(error) else self._denied(truth)
            found = evidence(self.sets, error, truth=truth)
            return replace(self, evidence=found, notes=(*notes, *_kinds(found)))
        first, about = self._places()
        who = np.zeros(len(self), np.intp)
        if self.annotators is not None:
            who = np.unique(self.annotators, return_inverse=True)[1]
        said = evidence(self.sets, error, items=about, people=who, truth=self.truth(first))
        names = ["all"] if self.annotators is None else np.unique(self.annotators).tolist()
        many = f"{len(names):,} people gave " if len(names) > 1 else ""
        note = f"{many}{counted(len(self), 'answer')} about {counted(len(first), 'item')}"
        if said.errors is not None:
            own, mean = 100 * said.errors, 100 * said.errors[who].mean()
            note += f"; by how far they agree, {mean:.1f} % are wrong"
            ends = ((own.argmin(), ", of the best"), (own.argmax(), " and the worst"))
            for place, word in ends if own.min() < own.max() else ():
                note += f"{word} ({brief(names[place])}) {own[place]:.1f} %"
            note += "; the error rate that is given takes the place of this mean" * bool(
                np.any(error)
            )
            note += "."
        else:
            rate = "the error rate is as given" if np.any(error) else "they count as never wrong"
            note += f", too few about the same to tell how many are wrong: {rate}."
        codes = row_hashes(self.x)
        differ = len(np.unique(about[codes != codes[first][about]]))
        if differ:
            note += f" Features differ between answers about {differ:,} of these items: the first "
            note += "answer's count. Is --item the right column?"
        called = self.row_names if self.items is None else tuple(self.items.tolist())
        held = replace(self, row_names=called, annotators=None, items=None).part(first)
        notes = (*self.notes, note, *_kinds(said))
        return replace(held, evidence=said, sets=said.sets, raw=self, notes=notes)

    def part(self, rows: Any) -> Table:
        """Return some of the rows, in this order: a slice, or their numbers."""
        columns = ("x", "sets", "labels", "weight", "groups", "annotators", "items", "known")
        held: Any = {name: getattr(self, name) for name in columns}
        held = {name: column[rows] for name, column in held.items() if column is not None}
        if self.row_names is not None:
            held["row_names"] = tuple(np.array(self.row_names, object)[rows].tolist())
        return replace(self, **held)

    def truth(self, rows: Any = slice(None)) -> NDArray[np.intp] | None:
        """Return the position of each row's class where it is known, else -1."""
        if self.known is None or self.sets is None:
            return None
        places = {str(name): place for place, name in enumerate(self.sets.classes)} | {"": -1}
        return np.array([places[name] for name in self.known[rows].tolist()], np.intp)

    def _denied(self, truth: NDArray[np.intp]) -> tuple[str, ...]:
        """Say how many rows rule out the class that they are known to have, if any do."""
        assert self.sets is not None
        rows = np.flatnonzero((truth >= 0) & (self.sets.sizes > 0))
        wrong = int(self.sets[rows].excluded[np.arange(len(rows)), truth[rows]].sum())
        say = f"{wrong:,} of {len(rows):,} rows rule out the class that they are known to have; "
        if 2 * wrong > len(rows):
            say += "see whether these are the true classes (numbers count from 0), and the sets "
            say += "what was ruled out."
        else:
            say += f"--error-rate {wrong}/{len(rows)} expects as many elsewhere."
        return (say,) * (wrong > 0)

    def _places(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the first row about each item, and about which item each row is."""
        if self.items is None and not self.x.shape[1]:
            raise DataError("without features, nothing says what answers are about", "name --item")
        names = row_hashes(self.x) if self.items is None else self.items
        _, first, about = np.unique(names, return_index=True, return_inverse=True)
        order = np.argsort(first)
        first, about = first[order], np.argsort(order)[about]
        for name in ("labels", "groups", "known", "weight"):
            column = getattr(self, name)
            if column is not None and (bad := np.flatnonzero(column != column[first][about])).size:
                what = "weights" if name == "weight" else name
                problem = f"answers about one item have different {what}"
                raise DataError(problem, "give them the same", row=bad.tolist(), file=self.source)
        return first, about


def _kinds(said: Evidence) -> tuple[str, ...]:
    """Say of how many rows the true class is known, and how many others have a set, or nothing."""
    if said.truth is None:
        return ()
    known, silent = said.truth >= 0, said.sets.sizes == 0
    rest = f"{int((~known & ~silent).sum()):,} have a set, {int(silent.sum()):,} say nothing"
    return (
        f"The true class of {counted(int(known.sum()), 'row')} is known; of the others {rest}.",
    )


def read_table(
    path: str | Path,
    *,
    excluded: str | None = None,
    candidates: str | None = None,
    votes: str | Sequence[str] = (),
    answer: str | None = None,
    label: str | None = None,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    text: Sequence[str] = (),
    weight: str | None = None,
    group: str | None = None,
    annotator: str | None = None,
    item: str | None = None,
    known: str | None = None,
    features_from: str | Path | None = None,
    classes: Classes | None = None,
    labels_file: str | Path | None = None,
    separator: str | None = None,
    names: str | None = None,
    files: Sequence[str] | None = None,
    size: tuple[int, int] | None = None,
    unlabelled: bool = False,
    featureless: bool = False,
    skip_bad_rows: bool = False,
    reading: Mapping[str, Any] | None = None,
) -> Table:
    r"""Read features, and with them what was ruled out or the true labels.

    Parameters
    ----------
    path
        ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl``, ``.npz``, ``.mat``, or a folder of images.
    excluded
        The column (in NPZ and .mat the array) of what was ruled out. None reads none.
    candidates
        Instead of it, the column of what each row may still be: ``"partial_target"`` in the boards
        of partial-label learning.
    votes
        Instead of both, a column for each class, named like it, or in NPZ and .mat an array: 1 for
        the class, -1 against it, 0 unknown, as :meth:`ruleout.LabelSets.from_votes` reads them.
    answer
        The column that says what an annotation tool's user answered about `candidates`: accept
        leaves these alone, reject rules them out, and rows with ignore are left out. Then only
        `features`, `text` and `features_from` bring features.
    label
        The column (in NPZ and .mat the array) of the true labels. None reads none. Images without a
        label file that lie in folders of their class, as in ``cat/1.png``, are labelled by
        ``"folder"``.
    features
        Exactly these columns, in this order; all others are ignored. By default every column that
        is not named otherwise is a feature, and must hold numbers (true and false count as 1, 0).
    ignore
        Columns that are not features.
    text
        Columns of text: each becomes up to 2,000 features, the tf-idf of its most frequent words.
    weight, group
        The columns (in NPZ the arrays) of what each row weighs, and of what it belongs to.
    annotator, item
        Where rows are answers of several people, the columns of who gave them and about what;
        :meth:`Table.heard` joins them.
    known
        The column of the true class of some rows, empty elsewhere, beside what was ruled out:
        :meth:`Table.heard` lets them teach, and correct what sets say.
    features_from
        Another table that has the features, such as an embedding. A column ``item`` of both names
        the rows; those that the other does not have are left out, and a note says so.
    classes
        The class names, or their number. By default the list in the file; a file without one gets
        the sorted names seen in it, and :attr:`Table.notes` says so.
    labels_file
        For a folder: the table whose column ``file`` names the images, and which holds the column
        of labels; by default ``labels.csv`` in the folder. Where no labels are asked for, all
        images are read, sorted by name. Its column ``weight`` becomes :attr:`Table.weight`.
    separator
        What separates the cells of a CSV or TSV file, or ``"tab"``; by default the file shows it.
    names
        The column (in NPZ the array) that names the rows, for :attr:`Table.row_names`.
    files
        For a folder: exactly these images, by their paths below it, in this order.
    size
        For a folder: resize every image to (height, width).
    unlabelled
        Accept rows that rule nothing out, as with `known`.
    featureless
        Accept a file without features; then x has no columns.
    skip_bad_rows
        Leave out rows of a table that cannot be used, such as those with an empty cell, and of
        `files` those that are no images, instead of raising; :attr:`Table.notes` say how many and
        why.
    reading
        What :attr:`Table.reading` was when a model was trained: the same features in the same
        order, the same image size and channels.

    Raises
    ------
    InputError
        A ValueError: what is wrong, in which file, row and column, and how to fix it.

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
    return next(read_batches(wide=None, **locals()))


def read_batches(path: str | Path, *, wide: int | None = 1, **options: Any) -> Iterator[Table]:
    """Read what :func:`read_table` reads a batch of rows at a time, in the memory of one batch.

    CSV, TSV and Parquet files are read in batches; everything else is one batch. The rows, the
    errors and the notes, which the last batch has, are those of reading all at once. A column of
    names, and bad rows to skip where the classes are not named, need all rows at once.

    Parameters
    ----------
    path, options
        As for :func:`read_table`.
    wide
        How many numbers the caller makes of a row, such as one for each class: batches are of
        65,536 rows, or fewer where rows or what is made of them are wide. None: a single batch.
    """
    return batches(Path(os.path.expanduser(path)), Request(**options), wide)


def draw_table(
    path: str | Path,
    out: str | Path,
    *,
    label: str,
    law: Any = "released",
    seed: Seed = 0,
    classes: Classes | None = None,
    labels_file: str | Path | None = None,
    separator: str | None = None,
    keep_label: bool = False,
    sets_only: bool = False,
) -> LabelSets:
    """Draw what is ruled out from true labels, and write the table again with it.

    A column ``excluded`` takes the place of the label column; all other columns stay. The suffix
    of `out` says how it is written; of a folder of images the label file is written.

    Parameters
    ----------
    path, label, classes, labels_file, separator
        As in :func:`read_table`.
    out
        ``.csv``, ``.tsv``, ``.parquet``, ``.jsonl`` or ``.npz``.
    law, seed
        As in :func:`ruleout.draw`; also a name of :func:`~ruleout.labels.origins.named_origin`,
        with mistakes (``"released~0.1"``) or preferences (``"strong:released"``).
    keep_label
        Write the true labels, too.
    sets_only
        Write the label sets alone, as :meth:`ruleout.LabelSets.write` does.
    """
    ask = Request(label=label, classes=classes, labels_file=labels_file, separator=separator)
    return redraw(Path(path), Path(out), ask, law, seed, keep_label, sets_only)[0]


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments of :func:`ruleout.datasets.read_table`, described there."""

    excluded: str | None = None
    candidates: str | None = None
    votes: str | Sequence[str] = ()
    answer: str | None = None
    label: str | None = None
    features: Sequence[str] | None = None
    ignore: Sequence[str] = ()
    text: Sequence[str] = ()
    weight: str | None = None
    group: str | None = None
    annotator: str | None = None
    item: str | None = None
    known: str | None = None
    features_from: str | Path | None = None
    classes: Classes | None = None
    labels_file: str | Path | None = None
    separator: str | None = None
    names: str | None = None
    files: Sequence[str] | None = None
    size: tuple[int, int] | None = None
    unlabelled: bool = False
    featureless: bool = False
    skip_bad_rows: bool = False
    reading: Mapping[str, Any] | None = None

    @property
    def about(self) -> str | None:
        """The column that says what was ruled out, or what was not."""
        return self.candidates if self.excluded is None else self.excluded

    @property
    def voted(self) -> tuple[str, ...]:
        """The columns of votes, or the array."""
        return (self.votes,) if isinstance(self.votes, str) else tuple(self.votes)

    @property
    def kind(self) -> str:
        """What sets are read from: excluded, candidates or votes."""
        return "votes" if self.voted else "excluded" if self.candidates is None else "candidates"

    @property
    def named(self) -> tuple[str, ...]:
        return tuple(name for name in (self.about, self.label) if name is not None)

    @property
    def held(self) -> tuple[str, ...]:
        """The columns that hold labels, names, groups or text, and are not numbers."""
        people = (self.annotator, self.item, self.known)
        more = (self.answer, self.names, self.group, *people, *self.texts)
        return tuple(dict.fromkeys((*self.named, *(name for name in more if name is not None))))

    @property
    def words(self) -> Mapping[str, Any]:
        """What an earlier reading learned about the words of text columns."""
        found = (self.reading or {}).get("text")
        return found if isinstance(found, Mapping) else {}

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.text or self.words)

    @property
    def numeric(self) -> list[str]:
        """The columns of numbers that are not features: weights and votes."""
        return [*([] if self.weight is None else [self.weight]), *self.voted]

    @property
    def taken(self) -> tuple[str, ...]:
        """All columns that are read and are not features."""
        return (*self.held, *self.numeric)

    @property
    def wanted(self) -> tuple[str, ...] | None:
        """The features to take and their order, where the caller or an earlier reading says so."""
        if self.features is None and self.reading is not None:
            found = tuple(self.reading.get("features") or ())
            return found if found or self.words else None
        return None if self.features is None else tuple(self.features)

    def separated(self, file: Path) -> Path:
        """Return a file of which is known what separates its cells, where that was said."""
        told = self.separator is not None and not file.is_dir()
        return row_files.SeparatedFile.by(str(self.separator), file) if told else file

    def check(self) -> None:
        if self.excluded is not None and self.candidates is not None:
            problem = "columns of ruled-out classes and of candidates are asked for"
            raise DataError(problem, "name one of the two")
        if self.voted and self.about is not None:
            raise DataError("votes and a column of sets are asked for", "name one of the two")
        if self.answer is not None and self.candidates is None:
            problem = f"column {self.answer!r} is asked for as answers, but not what they are about"
            raise DataError(problem, "name its column with candidates=... (--candidates)")
        if self.about is not None and self.about == self.label:
            what = "ruled-out classes" if self.candidates is None else "candidates"
            problem = f"column {self.label!r} is asked for as {what} and as true labels"
            raise DataError(problem, "name two columns")
        if self.weight in (*self.held, *self.voted):
            problem = f"column {self.weight!r} is asked for as weights and as something else"
            raise DataError(problem, "name two columns")
        apart = (*self.named, self.annotator, self.item, self.known, self.answer, *self.voted)
        for name in apart[len(self.named) :]:
            if name is not None and apart.count(name) > 1:
                raise DataError(f"column {name!r} is asked for twice", "name two columns")
        kinds = {self.weight: "weights", self.group: "groups", self.names: "names"}
        kinds |= {self.annotator: "people", self.item: "items", self.known: "true classes"}
        kinds |= {self.answer: "answers"} | dict.fromkeys(self.voted, "votes")
        kinds |= dict.fromkeys(self.texts, "text")
        for name in self.taken:
            if name in (self.wanted or ()):
                what = kinds.get(name, "labels")
                problem = f"column {name!r} holds {what} and is asked for as a feature"
                raise DataError(problem, "take it out of the features")
        for name in self.ignore:
            if name in self.taken or name in (self.features or ()):
                raise DataError(f"column {name!r} is asked for and ignored", "do one of the two")
        for name in self.features or ():
            if [*(self.features or ())].count(name) > 1:
                raise DataError(f"feature {name!r} is asked for twice", "name each feature once")


def choose(names: Sequence[str], ask: Request) -> list[str]:
    row_files.check_separator(names)
    row_files.check_unique([name for name in names if name])
    for name in (*ask.taken, *ask.ignore):
        row_files.find_column(name, names)
    if ask.wanted is None:
        taken = {*ask.taken, *ask.ignore}
        features = [name for name in names if name not in taken and not _NAMELESS.fullmatch(name)]
        remedy = f"the columns are {shown(names)}"
        if ask.answer is not None:  # beside answers, tools write down much that is not a feature
            features, remedy = [], "with answers, name --features, --text or --features-from"
        if not features and not ask.featureless and not ask.texts:
            raise DataError("no column is left as a feature", remedy)
        return features
    missing = [name for name in ask.wanted if name not in names]
    if len(missing) == 1:
        row_files.find_column(missing[0], names)
    if missing:
        problem = f"{len(missing)} columns are missing: {shown(missing)}"
        raise DataError(problem, f"the columns are {shown(names)}")
    return list(ask.wanted)


def batches(path: Path, ask: Request, wide: int | None = None) -> Iterator[Table]:
    path = ask.separated(path)
    with reporting(path):
        ask.check()
        if ask.features_from is not None:
            yield _with_features(path, ask, Path(os.path.expanduser(ask.features_from)))
            return
        if path.is_dir():
            from ruleout.datasets.image_folders import read_folder

            yield read_folder(path, ask)
            return
        check_file(path)
        if not (ask.size is None and ask.labels_file is None and ask.files is None):
            raise DataError("this is a file", "only a folder of images takes a size and labels")
        if path.suffix.lower() in ARCHIVES:
            from ruleout.datasets.archives import read_archive

            yield read_archive(path, ask)
        else:
            yield from _Reader(path, ask, wide).tables()


def sha256_of(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def check_file(path: Path) -> None:
    if row_files.suffix_of(path) not in (known := (*SUFFIXES, ".mat", ".json")):
        kinds = f"use {', '.join(known)}, or a folder of images"
        raise DataError(f"unknown file type {path.suffix!r}", kinds)
    if not os.path.lexists(path):
        folder = path.parent
        if not folder.is_dir():
            raise DataError("there is no such file", f"the folder {folder} does not exist either")
        names = sorted(entry.name for entry in folder.iterdir())
        raise DataError("there is no such file", nearest(path.name, names, "check the name"))
    if not path.is_file():
        raise DataError("this is not a file", "give the name of a file")


def columns_of(path: Path, ask: Request, choosing: Any, *, raw: bool = False) -> Columns:
    """Read the columns that `choosing` picks and those that hold labels or names."""
    from ruleout.labels.files import column_batches  # late: it loads pyarrow

    if path.is_dir():
        from ruleout.datasets.image_folders import class_folders

        return class_folders(path, choosing)
    check_file(path)
    if path.suffix.lower() in ARCHIVES:
        problem = f"a {path.suffix} file has no columns"
        raise DataError(problem, "use .csv, .tsv, .parquet or .jsonl")
    told = {"raw": raw, "skip": ask.skip_bad_rows, "whole": True}
    columns = next(column_batches(path, choosing, ask.held, **told))
    if not columns.rows:
        raise DataError("the file has no rows", "give at least one")
    return columns


class _Reader:
    """Columns of a file become tables, batch by batch, with the notes and errors of all at once.

    What is wrong with rows is kept until all are read: the fault that counts is that of the first
    column that has any, and it names all its rows.
    """

    def __init__(self, path: Path, ask: Request, wide: int | None) -> None:
        guess = bool(ask.named) and ask.classes is None
        more = (ask.names, ask.group, ask.weight, ask.text, ask.annotator, ask.item, ask.known)
        if any(more) or (guess and ask.skip_bad_rows):
            wide = None  # names occur once in all rows; rows that stay say which classes there are
        self._path, self._ask, self._wide = path, ask, wide
        self._header: list[str] = []
        self._places: dict[object, int] = {}  # of columns, in the order in which they are checked
        self._classes: tuple[ClassName, ...] | None = None
        self._fractional, self._coarse = set[str](), set[str]()
        self._faults: dict[tuple[int, int], tuple[InputError, array[int]]] = {}
        self._skipped, self._ignored, self._guesses, self._digest = 0, 0, (), ""

    def tables(self) -> Iterator[Table]:
        """Yield tables of as many rows, whatever is read at a time; the last has the notes."""
        held: list[Table] = []
        for part in self._parts():
            held.append(part)
            wide = max(self._wide or 1, part.x.shape[1])
            rows = _ROWS * max(1, min(16, chunk_rows(wide) // _ROWS))
            if self._wide is not None and sum(map(len, held)) > rows:
                whole = _joined(held)
                cut = (len(whole) - 1) // rows * rows
                yield from (whole.part(slice(at, at + rows)) for at in range(0, cut, rows))
                held = [whole.part(slice(cut, None))]
        last = _joined(held)
        yield replace(last, notes=tuple(self._notes(last.features)))

    def _parts(self) -> Iterator[Table]:
        from ruleout.labels.files import column_batches  # late: it loads pyarrow

        if self._ask.reading is not None and self._ask.reading.get("kind") != "columns":
            raise DataError("this is a table, and images are wanted", "give a folder of images")
        skip, rows, kept = self._ask.skip_bad_rows, 0, 0
        told = {"skip": skip, "whole": self._wide is None}
        for columns in column_batches(self._path, self._choose, self._ask.held, **told):
            table = self._checked(columns, rows)
            rows, self._skipped = rows + columns.rows, self._skipped + columns.skipped
            if table is not None and (skip or not self._faults):
                kept += len(table)
                yield table
        if not rows:
            raise DataError("the file has no rows", "give at least one")
        if self._faults and not (skip and kept):
            error, bad = self._faults[(max if skip else min)(self._faults)]
            error.rows = bad
            raise error
        if not kept:
            problem = "no row says anything"
            raise DataError(problem, "give some that accept or reject", column=self._ask.answer)

    def _choose(self, names: list[str]) -> list[str]:
        self._header, features = names, choose(names, self._ask)
        order = [*features, None, *self._ask.taken]  # in between, classes are settled
        self._places = {name: place for place, name in enumerate(order)}
        return [*features, *self._ask.numeric]

    def _checked(self, columns: Columns, start: int) -> Table | None:
        """Return the rows that can be used, where there are any; keep what is wrong with others."""
        rows, skip = np.arange(start, start + columns.rows), self._ask.skip_bad_rows
        while len(rows):
            try:
                if mute := _ignored(columns, self._ask):
                    columns, rows = columns.without(mute), np.delete(rows, mute)
                    self._ignored += len(mute)
                    continue
                table = self._table(columns)
            except InputError as error:
                if error.lines or (skip and not error.rows):  # of the file, not of its cells
                    raise
                key = self._places.get(error.column, self._places[None]), error.rank
                self._faults.setdefault(key, (error, array("q")))[1].extend(rows[list(error.rows)])
                if not error.rows:  # classes are not known: features alone can be looked at
                    self._ask = replace(self._ask, excluded=None, candidates=None, label=None)
                if not skip:
                    return None
                columns, rows = columns.without(error.rows), np.delete(rows, list(error.rows))
            else:
                if (names := self._ask.names) is None:
                    return table
                called = row_names(columns.cells[names], names, again=self._ask.item == names)
                return replace(table, row_names=called)
        return None

    def _table(self, columns: Columns) -> Table:
        from ruleout.labels.files import column_batches

        ask, fractional = self._ask, set(self._fractional)
        features = columns.features.drop_columns(ask.numeric)
        x, coarse = to_matrix(features, fractional)
        known = self._classes or ask.classes is not None or columns.classes is not None
        if ask.named and not known and self._wide is not None:
            naming = ask.named if ask.known is None else (*ask.named, ask.known)
            parts = column_batches(self._path, lambda _: [], naming)
            self._classes = _seen((part.cells for part in parts), ask)
        found = labelled(columns, ask, self._classes)
        self._guesses = found.pop("notes")
        self._fractional, self._coarse = fractional, self._coarse | {*coarse}
        self._digest = self._digest or sha256_of(self._path)
        held = with_words(x, features.column_names, columns.rows, columns.cells, ask)
        return Table(**held, **found, source=self._path, sha256=self._digest)

    def _notes(self, features: tuple[str, ...]) -> Iterator[str]:
        """Say which rows were left out and why, what classes were taken, and what was lost."""
        yield from _left_out(self._skipped, "they are not whole", [], self._path)
        yield from _left_out(self._ignored, "their answer says nothing", [], self._path)
        for _, (error, rows) in sorted(self._faults.items(), key=itemgetter(0)):
            why = f"{error.problem} in column {error.column!r}"
            yield from _left_out(len(rows), why, [] if self._skipped else rows, self._path)
        yield from self._guesses
        taken = {*self._ask.taken, *self._ask.ignore}
        if self._ask.wanted is None and any(map(_NAMELESS.fullmatch, {*self._header} - taken)):
            yield "A column without a name, such as a saved index, is left out."
        coarse = [name for name in features if name in self._coarse - self._fractional]
        if coarse:
            yield (
                f"The columns {shown(coarse)} hold whole numbers above 16,777,216, which lose "
                "their last digits as float32. Ignore them if they are ids or dates."
            )


def with_words(
    x: NDArray[Any], names: list[str], rows: int, cells: Mapping[str, Any], ask: Request
) -> dict[str, Any]:
    """Return columns of numbers, and the words of text columns behind them, as a table has them."""
    x = x if names else np.empty((rows, 0), np.float32)
    reading: dict[str, Any] = {"kind": "columns", "features": names}
    words = list[str]()
    if ask.texts:
        x, words, reading["text"] = add_words(x, cells, ask.texts, ask.words)
    return {"x": x, "shape": (x.shape[1],), "features": (*names, *words), "reading": reading}


def _joined(tables: list[Table]) -> Table:
    """Put batches below each other, which have features, sets and labels at most."""
    held: dict[str, Any] = {}
    for name in ("x", "sets", "labels") if len(tables) > 1 else ():
        parts = [getattr(table, name) for table in tables]
        if parts[0] is not None:
            held[name] = (LabelSets.concatenate if name == "sets" else np.concatenate)(parts)
    return replace(tables[0], **held)


def _with_features(path: Path, ask: Request, file: Path) -> Table:
    """Read rows without features, and theirs from another file, where that has them."""
    if path.is_dir():
        remedy = f"give its label file in its place, with a column {KEY!r}"
        raise DataError("a folder of images has its own features", remedy)
    both: Any = {"names": ask.item or KEY, "features_from": None}
    both["item"] = both["names"] if ask.item or ask.annotator else None
    own: Any = {"features": (), "ignore": (), "text": (), "reading": None}
    rows = next(batches(path, replace(ask, **own, **both)))
    found = next(batches(file, Request(names=KEY, **{name: getattr(ask, name) for name in own})))
    place = {name: row for row, name in enumerate(found.row_names or ())}
    kept = [row for row, name in enumerate(rows.row_names or ()) if name in place]
    if not kept:
        remedy = f"name rows in {path.name} as there"
        raise DataError(f"the column {KEY!r} names none of the rows", remedy, file=file)
    notes = [*rows.notes, *found.notes]
    if left := len(rows) - len(kept):
        notes.append(f"{left:,} of {len(rows):,} rows are not in {file}: left out.")
    rows = rows.part(kept)
    held: Any = {name: getattr(found, name) for name in ("shape", "features", "reading")}
    held["x"] = found.x[[place[name] for name in rows.row_names or ()]]
    return replace(rows, **held, notes=tuple(notes))


def _left_out(many: int, why: str, rows: Sequence[int], path: Path) -> list[str]:
    """Say how many rows were left out, why, and which; nothing where there were none."""
    if not many:
        return []
    rows = rows[: InputError.SHOWN]
    lines = row_files.lines_of(path, rows) if rows else []
    places = [f"line {line}" for line in lines] or [f"row {row}" for row in rows]
    where = f" ({', '.join(places)}{', …' if many > len(places) else ''})" if places else ""
    return [f"{many:,} row(s) left out: {why}{where}."]


def to_matrix(
    table: pa.Table, fractional: set[str] | None = None
) -> tuple[NDArray[np.float32], list[str]]:
    """Return float32 ``[n, d]`` and the names of columns of whole numbers that lose digits in it.

    Columns that are not of whole numbers are entered in `fractional`; those there stay.
    """
    from ruleout.labels.files import numbers

    fractional = set() if fractional is None else fractional
    x = np.empty((table.num_rows, table.num_columns), np.float32)
    coarse = []
    for place, name in enumerate(table.column_names):
        values = numbers(table.column(place))
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 0.0)
        if not math.isfinite(high - low) or max(-low, high) > LARGEST:
            raise _bad_cells(table.column(place), values, name)
        x[:, place] = values
        if name not in fractional and (values != np.rint(values)).any():
            fractional.add(name)
        elif _EXACT < max(-low, high) < _IDS and (values != x[:, place]).any():
            coarse.append(name)
    return x, [name for name in coarse if name not in fractional]


def _bad_cells(column: pa.ChunkedArray, values: NDArray[np.float64], name: str) -> DataError:
    from ruleout.labels.files import shown_cell

    rows = np.flatnonzero(~(np.abs(values) <= LARGEST)).tolist()
    value, remedy = values[rows[0]], "fill it in, drop the row, or ignore the column"
    if math.isinf(value):
        problem = "the cell is infinite"
    elif not math.isnan(value):
        problem, remedy = f"{value:g} is too large for float32", "scale the column"
    elif found := shown_cell(column, rows[0]):
        problem = f"{found} is not a number"
        remedy = f"ignore the column (--ignore {name}), take its words (--text {name}), or turn "
        remedy += "it into numbers"
    else:
        problem = "the cell is empty"
    return DataError(problem, remedy, row=rows, column=name)


def labelled(
    columns: Columns, ask: Request, seen: tuple[ClassName, ...] | None = None
) -> dict[str, Any]:
    """Return what was asked for beside features, and notes about it, as a table holds them.

    Where neither the file nor the caller says what the classes are, they are those `seen`.
    """
    aside = partial(weight_and_groups, ask, columns.numbers, columns.cells.__getitem__)
    if not ask.named and not ask.voted:
        return {"notes": (), **aside()}
    from ruleout.labels.files import build, settle  # late: it loads pyarrow

    cells, inside = columns.cells, columns.classes
    guessed = inside is None and ask.classes is None and not ask.voted
    wanted = (ask.voted or None) if ask.classes is None else ask.classes
    classes = (seen or _seen([cells], ask)) if guessed else settle(inside, wanted)
    notes = guess_notes(classes) if guessed else []
    may_be_empty = ask.unlabelled or ask.known is not None
    held: dict[str, Any] = {"classes": classes, "notes": tuple(notes)}
    if ask.about is not None:
        told: dict[str, Any] = {"candidates": ask.candidates is not None}
        if ask.answer is not None:
            told["candidates"] = _verdicts(cells[ask.answer], ask.answer) > 0
        if guessed:
            told["full"] = (
                "if there are more classes, name them all with --classes, else leave the row out "
                "(--skip-bad-rows)"
            )
        held["sets"] = build(cells[ask.about], classes, ask.about, may_be_empty, **told)
    if ask.voted:
        import pyarrow as pa

        votes = pa.table({name: _votes(columns, name) for name in ask.voted})
        held["sets"] = LabelSets.from_votes(votes, classes, unlabelled=may_be_empty)
    if ask.label is not None:
        held["labels"] = _labels(cells[ask.label], classes, ask.label)
    held |= aside()
    if ask.known is not None:
        held["known"] = known_classes(held["known"].tolist(), classes, ask.known)
    return held


def _votes(columns: Columns, name: str) -> NDArray[np.float64]:
    """Return a column of votes, in which empty cells are NaN."""
    from ruleout.labels.files import shown_cell

    values, column = columns.numbers(name), columns.features.column(name)
    for row in np.flatnonzero(np.isnan(values)).tolist():
        if found := shown_cell(column, row):
            problem, remedy = f"{found} is not a vote", "write 1 for the class, -1 against it, or 0"
            raise DataError(problem, remedy, row=row, column=name)
    return values


def known_classes(cells: list[str], classes: tuple[ClassName, ...], column: str) -> NDArray[Any]:
    """Return the true classes of some rows as they are called, else empty."""
    own = {"", *map(str, classes)}
    names = [whole(name, own) for name in cells]
    if bad := [row for row, name in enumerate(names) if name not in own]:
        raise unknown(names[bad[0]], classes, row=bad, column=column)
    return np.array(names)


def _verdicts(cells: Cells, column: str) -> NDArray[np.int8]:
    """Return what was answered: 1 is accept, 0 is reject, -1 says nothing."""
    values = list(cells.values)
    words = ["" if value is None else str(value).strip().lower() for value in values]
    if bad := [place for place, word in enumerate(words) if word not in _VERDICTS]:
        problem, where = f"unknown answer {brief(values[bad[0]])}", cells.rows(bad)
        raise DataError(problem, "use accept, reject or ignore", row=where, column=column)
    found = np.array([_VERDICTS[word] for word in words], np.int8)
    return found if cells.codes is None else found[cells.codes]


def _ignored(columns: Columns, ask: Request) -> list[int]:
    """Return the rows whose answer says nothing, or is about nothing."""
    if ask.answer is None:
        return []
    names = np.array([bool(value) for value in columns.cells[str(ask.about)]], np.bool_)
    silent = _verdicts(columns.cells[ask.answer], ask.answer) < 0
    return list(np.flatnonzero(silent | ~names).tolist())


def row_names(cells: Iterable[Any], column: str, again: bool = False) -> tuple[str, ...]:
    """Return the names of the rows as text; each occurs once, unless `again` says otherwise."""
    names = ["" if cell is None else str(cell) for cell in cells]
    seen: set[str] = set()
    for row, name in enumerate(names):
        if not name or (name in seen and not again):
            problem = f"the name {brief(name)} appears twice" if name else "the name is empty"
            remedy = "give every row a name of its own, or name the items of answers with --item"
            raise DataError(problem, remedy, row=row, column=column)
        seen.add(name)
    return tuple(names)


def weight_and_groups(
    ask: Request, numbers: Callable[[str], NDArray[Any]], cells: Callable[[str], Iterable[Any]]
) -> dict[str, Any]:
    """Return what each row weighs, its group, who said it and about what, where that was asked."""
    found: dict[str, Any] = {}
    if ask.weight is not None:
        found["weight"] = weight = numbers(ask.weight)
        bad = np.flatnonzero(~((weight >= 0) & (weight < np.inf))).tolist()
        if bad or not weight.any():
            problem = "the weight is not a number of at least 0" if bad else "every row weighs zero"
            remedy = "give numbers, some of them above zero"
            raise DataError(problem, remedy, row=bad, column=ask.weight)
    kinds = {"groups": ask.group, "annotators": ask.annotator, "items": ask.item}
    kinds["known"] = ask.known
    for kind, column in kinds.items():
        if column is None:
            continue
        names = ["" if cell is None else str(cell).strip() for cell in cells(column)]
        empty = [row for row, name in enumerate(names) if not name]
        if empty and kind != "known":
            remedy = f"name the {kind[:-1]} of each row"
            raise DataError("the cell is empty", remedy, row=empty, column=column)
        found[kind] = (
            np.unique(names, return_inverse=True)[1] if kind == "groups" else np.array(names)
        )
    return found


def guess_notes(classes: tuple[ClassName, ...]) -> list[str]:
    """Say that the class list is only what was seen, and which of the names look alike."""
    seen = (
        f"The classes are those seen in the data, {shown(classes)}: a class that never occurs "
        "there is missing. Name all with --classes."
    )
    return [seen, *look_alikes(classes)]


def _seen(batches: Iterable[Mapping[str, Cells]], ask: Request) -> tuple[ClassName, ...]:
    """Sort the names that occur; names that are all whole numbers become such."""
    names, labels, known = set[str](), set[str](), set[str]()
    fault: LabelError | None = None
    for cells in batches:
        for value in () if ask.about is None else cells[ask.about].values:
            try:
                names.update(_texts(names_in(value)))
            except LabelError as error:  # a cell that holds no names is reported with its row
                fault = fault or error
        labels.update(_texts(() if ask.label is None else cells[ask.label].values))
        for value in () if ask.known is None else cells[ask.known].values:
            known.add("" if value is None else str(value).strip())
    _check_separator(names)
    names = {*names, *labels, *(whole(name, names) for name in known)} - {""}
    if not any(re.fullmatch(r"-?\d+\.\d*[1-9]\d*", name) for name in names):
        names = set(map(whole, names))
    if len(names) < 2 and fault is not None:
        fault.column = str(ask.about)
        raise fault
    if len(names) < 2:
        problem = f"{len(names)} class name(s) occur in the data"
        remedy = "name all classes with classes=[...] (--classes cat,dog,bird)"
        raise DataError(problem, remedy, column=" and ".join(ask.named))
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", name) for name in names):
        return class_names(sorted(int(name) for name in names))
    return class_names(sorted(names))


def _check_separator(names: set[str]) -> None:
    """Raise if names look like lists that are separated by something else than ``|``."""
    parts = {name: [part.strip() for part in re.split("[,;]", name)] for name in names}
    times = Counter(part for split_up in parts.values() for part in set(split_up))
    for name in sorted(names):
        if len(parts[name]) > 1 and any(times[part] > 1 for part in parts[name] if part):
            remedy = "separate class names by |, or name all classes with classes=[...]"
            raise DataError(f"{brief(name)} looks like several class names", remedy)


def _texts(values: Iterable[object]) -> list[str]:
    """Return the names among values, as CSV has them."""
    return [str(value).strip() for value in map(_plain, values) if _is_name(value)]


def _is_name(name: object) -> bool:
    return isinstance(name, (str, int)) and not isinstance(name, bool)


def _labels(cells: Cells, classes: tuple[ClassName, ...], column: str) -> NDArray[Any]:
    places: dict[object, int] = {str(name): place for place, name in enumerate(classes)}
    values = [_plain(value) for value in cells.values]
    names = (str(value).strip() if _is_name(value) else None for value in values)
    codes = np.array([places.get(whole(name, places), -1) for name in names], np.intp)
    if bad := np.flatnonzero(codes < 0).tolist():
        value = values[bad[0]]
        where: dict[str, Any] = {"row": cells.rows(bad), "column": column}
        if value in (None, ""):
            raise DataError("the cell is empty", "fill in the label or drop the row", **where)
        raise unknown(value, classes, **where)
    codes = codes if cells.codes is None else codes[cells.codes]
    return np.asarray(np.array(classes)[codes])


def _plain(value: object) -> object:
    """Write true and 1.0 the way other files do: ``true`` and ``1``."""
    if isinstance(value, bool):
        return str(value).lower()
    return whole(value) if isinstance(value, float) else value


def redraw(
    path: Path, out: Path, ask: Request, law: Law, seed: Seed, keep_label: bool, sets_only: bool
) -> tuple[LabelSets, tuple[str, ...]]:
    import pyarrow as pa

    from ruleout.labels.files import name_lists, npz_arrays, write_columns

    path, out = (Path(os.path.expanduser(one)) for one in (path, out))
    path, label = ask.separated(path), str(ask.label)
    suffix = out.suffix.lower()
    row_files.check_out(out, SUFFIXES, path)
    if path.suffix.lower() in ARCHIVES or (suffix == ".npz" and not sets_only):
        table, columns = next(batches(path, replace(ask, featureless=sets_only))), None
    else:
        table, columns = _of_columns(path, ask, raw=suffix in (".csv", ".tsv"))
    table = replace(table, x=dense(table.x))
    names = table.classes or ()
    origin = named_origin(law, names) if isinstance(law, str) else Uniform(law)
    sets = origin.draw(table.labels, names, seed)
    if sets_only:
        sets.write(out)
    elif suffix == ".npz":
        arrays: dict[str, Any] = {"x": table.x.reshape(len(table), *table.shape)}
        arrays |= {"features": np.array(table.features)} if table.features else {}
        arrays |= {label: table.labels} if keep_label else {}
        with atomic_write(out) as stream:
            np.savez(stream, **arrays | npz_arrays(sets))
    elif len(table.shape) > 1:
        raise DataError("images go into .npz", "write .npz, or use --sets-only", file=out)
    else:
        if columns is None:
            numbers = {name: table.x[:, place] for place, name in enumerate(table.features)}
            columns = pa.table({**numbers, label: table.labels})
        if COLUMN in columns.column_names and (keep_label or label != COLUMN):
            problem = f"there is a column {COLUMN!r} already"
            raise DataError(problem, "rename it, or use --sets-only", file=path)
        place = columns.column_names.index(label) + keep_label
        lists = pa.array(sets.to_lists(), name_lists(sets.classes))
        put = columns.add_column if keep_label else columns.set_column
        drawn = put(place, COLUMN, lists)  # behind the label, or in its place
        write_columns(out, drawn.schema, drawn.to_batches(), sets.classes)
    return sets, table.notes


def _of_columns(path: Path, ask: Request, raw: bool) -> tuple[Table, pa.Table]:
    """Read all columns of a table, or of the label file of a folder, whatever they hold."""
    import pyarrow as pa

    from ruleout.datasets.image_folders import label_file

    order: list[str] = []

    def everything(names: list[str]) -> list[str]:
        choose(names, replace(ask, featureless=True))
        order.extend(names)
        return [name for name in names if name != ask.label]

    with reporting(path):
        file = label_file(path, ask) if path.is_dir() else path
    with reporting(file):
        found = columns_of(file, ask, everything, raw=raw)
        told = labelled(found, ask)
    empty = np.empty((found.rows, 0), np.float32)
    table = Table(x=empty, shape=(0,), features=(), source=file, sha256="", **told)
    return table, found.features.append_column(str(ask.label), pa.array(table.labels)).select(order)


class Scaling(NamedTuple):
    """What brings columns together: less their mean, over their spread, ``[d]`` each.

    The spread is the standard deviation; a constant column is not divided. A column that is zero
    in most rows, as a word is, or in a sparse matrix, keeps its zeros: it is divided by the root
    mean square of its other values.
    """

    mean: NDArray[np.float32]
    spread: NDArray[np.float32]

    @classmethod
    def of(cls, x: Any) -> Self:
        """Look at rows ``[n, ...]``: an array, or a CSR matrix."""
        n, sparse = x.shape[0], hasattr(x, "indptr")
        if sparse:
            counted = (x.data != 0, x.data, x.data**2.0)
            filled, total, squares = (np.bincount(x.indices, v, x.shape[1]) for v in counted)
        else:
            flat = x.reshape(n, -1)
            filled, total = np.count_nonzero(flat, 0), flat.sum(0, dtype=np.float64)
            squares = np.einsum("nd,nd->d", flat, flat, dtype=np.float64)
        size, keeps = np.sqrt(squares / np.maximum(filled, 1)), (2 * filled < n) | sparse
        mean = np.where(keeps, 0, total / n)
        spread = np.where(keeps, size, np.sqrt(np.maximum(squares / n - mean**2, 0)))
        return cls(mean.astype("f"), np.where(spread > 1e-7 * size, spread, 1).astype("f"))

    @classmethod
    def of_range(cls, x: Any) -> Self:
        """Bring every column to between 0 and 1, by its least and largest value."""
        if hasattr(x, "indptr"):
            least = np.zeros(x.shape[1])
            most = np.asarray(abs(x).max(0).todense()).ravel()
        else:
            flat = x.reshape(x.shape[0], -1)
            least, most = flat.min(0), flat.max(0)
        return cls(least.astype("f"), np.where(most > least, most - least, 1).astype("f"))

    def __call__(self, x: Any) -> Any:
        if hasattr(x, "indptr"):
            return type(x)((x.data / self.spread[x.indices], x.indices, x.indptr), x.shape)
        return ((x.reshape(len(x), -1) - self.mean) / self.spread).reshape(x.shape)

    @property
    def apart(self) -> bool:
        """Whether columns are too far apart, or from 1, for a model to learn well from all."""
        size = np.hypot(self.mean, self.spread)
        return bool(max(size.max(), 1) > _APART * min(self.spread.min(), 1))

    def problem(self, features: Sequence[str]) -> str | None:
        """Say that columns are too far apart, or from 1, naming the worst; None: they are not."""
        size = np.hypot(self.mean, self.spread)
        large, small = int(size.argmax()), int(self.spread.argmin())
        if not self.apart:
            return None
        most, least = (float(f"{one:.2g}") for one in (size[large], self.spread[small]))
        return (
            f"Columns differ in size, from each other or from 1: {brief(features[large])} holds "
            f"values of about {most:g}, and {brief(features[small])} varies by about {least:g}"
        )


def dense(x: Any) -> Any:
    """Return an array, also of a CSR matrix."""
    return x.toarray() if hasattr(x, "toarray") else x


def row_hashes(x: Any) -> NDArray[np.uint64]:
    """Return a number of 64 bits for each row: equal rows have the same, others hardly ever.

    `x` is an array, or a CSR matrix, which has the hashes of the same rows in an array.
    """
    n, d = x.shape[0], math.prod(x.shape[1:])
    kind = np.dtype("f4" if x.dtype == np.float32 else "f8")
    wide = (d, kind.itemsize // 4)
    factors = np.random.default_rng(0).integers(1 << 63, size=wide, dtype=np.uint64) * 2 + 1

    def summed(values: NDArray[Any], factors: NDArray[np.uint64]) -> NDArray[np.uint64]:
        words = (np.ascontiguousarray(values, kind) + kind.type(0)).view(np.uint32)  # -0 becomes 0
        mixed = words * factors
        mixed = (mixed ^ mixed >> np.uint64(32)) * _MIX  # of 0 it is 0
        return np.asarray(mixed.sum(1, dtype=np.uint64))

    if hasattr(x, "indptr"):
        each = summed(x.data[:, None], factors[x.indices])
        ends = np.append(np.uint64(0), np.cumsum(each, dtype=np.uint64))
        return np.asarray(np.diff(ends[x.indptr]))
    codes = np.empty(n, np.uint64)
    for piece in chunks(n, d):
        codes[piece] = summed(x[piece].reshape(piece.stop - piece.start, d), factors.ravel())
    return codes


def equal_groups(codes: NDArray[np.uint64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the rows that share a code, group by group, and where each group starts."""
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    follows = np.append(False, codes[1:] == codes[:-1])[: len(codes)]
    member = follows | np.append(follows[1:], False)[: len(codes)]
    return order[member], np.flatnonzero(~follows[member])
