"""The table of ruled-out classes that everything else reads, kept as bits: eight to a byte."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, final, overload

import numpy as np
from numpy.typing import NDArray

from ruleout.labels.classes import (
    Classes,
    ClassName,
    agree,
    check_count,
    class_names,
    codes_of,
    encode,
    is_missing,
    plain,
    shown,
    to_array,
)
from ruleout.labels.errors import LabelError, brief, counted

if TYPE_CHECKING:
    import pandas
    import polars
    import scipy.sparse

Bits = NDArray[np.uint8]

_CELLS = 1 << 22  # cells unpacked at a time: 4 MiB of bool, whatever n is
_BARS = "▁▂▃▄▅▆▇█"
_MOST = 40  # bars in a histogram; more sizes share bars
_MEANINGS = {  # of the cells of a table, by what the table says
    "excluded": "1 means ruled out, 0 means still a candidate",
    "candidates": "1 means still a candidate, 0 means ruled out",
    "votes": "1 means that it may be this class, -1 that it is not, 0 that nobody knows",
}


@final
class LabelSets:
    """An immutable table that says, for each example, which classes were ruled out.

    Inside, eight classes share a byte: ten million rows of a thousand classes take 1.2 GiB.

    Parameters
    ----------
    excluded
        n rows by k classes of 0 and 1 (1: ruled out): an array, a nested list, a pandas or polars
        DataFrame whose columns are the classes, a scipy sparse matrix, or another `LabelSets`.
    classes
        Class names, or their number k for the names 0 … k-1. May be left out.
    unlabelled
        Accept rows that rule nothing out. A row that rules everything out is never accepted.

    Examples
    --------
    >>> sets = LabelSets([[1, 1, 0, 0], [0, 0, 1, 0]], ["cat", "dog", "bird", "fish"])
    >>> sets
    LabelSets(2 rows, 4 classes, 1.50 ruled out on average)
      sizes 1 ██  3
    >>> sets[0]
    ('cat', 'dog')
    >>> sets.candidates[1]
    array([ True,  True, False,  True])
    """

    __slots__ = ("_classes", "_packed")
    __hash__ = None  # type: ignore[assignment]  # equality reads the whole table
    __array_ufunc__ = None  # arithmetic and comparison with arrays are not element by element

    _packed: Bits
    _classes: tuple[ClassName, ...]

    def __init__(
        self, excluded: Any, classes: Classes | None = None, *, unlabelled: bool = False
    ) -> None:
        if hasattr(self, "_packed"):
            raise AttributeError("LabelSets cannot be changed; build a new one")
        packed, names = _table(excluded, classes)
        check_rows(packed, len(names), unlabelled=unlabelled)
        self._hold(packed, names)

    def _hold(self, packed: Bits, classes: tuple[ClassName, ...]) -> None:
        array = np.ascontiguousarray(packed)
        if array.base is not None and array.flags.writeable:
            array = array.copy()  # others own the memory
        array.flags.writeable = False
        object.__setattr__(self, "_packed", array)
        object.__setattr__(self, "_classes", classes)

    @classmethod
    def _trusted(cls, packed: Bits, classes: tuple[ClassName, ...]) -> LabelSets:
        """Wrap bits that are known to be good."""
        self = object.__new__(cls)
        self._hold(packed, classes)
        return self

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"LabelSets cannot be changed; build a new one to set {name!r}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"LabelSets cannot be changed; {name!r} stays")

    def __reduce__(self) -> tuple[Any, ...]:
        return LabelSets.from_packed, (self._packed, self._classes, True)

    @classmethod
    def from_lists(
        cls, excluded: Iterable[Iterable[Any]], classes: Classes, *, unlabelled: bool = False
    ) -> LabelSets:
        """Build from a list of ruled-out class names per row.

        When the names are text, whole numbers are read as positions.

        >>> LabelSets.from_lists([["cat", "dog"], ["bird"]], ["cat", "dog", "bird", "fish"]).sizes
        array([2, 1])
        """
        names = class_names(classes)
        return cls._checked(pack_codes(codes_of(excluded, names), names), names, unlabelled)

    @classmethod
    def from_candidates(
        cls, candidates: Any, classes: Classes | None = None, *, unlabelled: bool = False
    ) -> LabelSets:
        """Build from what each example may still be.

        Arrays, DataFrames and sparse matrices are read as tables of 0 and 1 (1: still possible);
        anything else as lists of class names.

        >>> LabelSets.from_candidates([["bird", "fish"]], ["cat", "dog", "bird", "fish"])[0]
        ('cat', 'dog')
        """
        if isinstance(candidates, LabelSets):
            raise LabelError("these are label sets already", "use them as they are")
        if len(getattr(candidates, "shape", ())) > 1 or hasattr(candidates, "tocsr"):
            packed, names = _table(candidates, classes, "candidates")
        elif classes is None:
            raise LabelError("no classes given", "pass classes=[...] with every class name")
        else:
            names = class_names(classes)
            packed = complement(pack_codes(codes_of(candidates, names), names), len(names))
        return cls._checked(packed, names, unlabelled)

    @classmethod
    def from_votes(
        cls, votes: Any, classes: Classes | None = None, *, unlabelled: bool = False
    ) -> LabelSets:
        """Build from n rows by k classes of votes: 1 for a class, -1 against it, 0 unknown.

        A row that votes for classes may be one of these alone; another one only rules out what it
        votes against. Arrays, DataFrames and sparse matrices are read as by `LabelSets` itself.

        >>> votes = [[0, -1, 0, 0], [1, 0, 1, 0]]  # not a dog; a cat or a bird
        >>> LabelSets.from_votes(votes, ["cat", "dog", "bird", "fish"]).to_candidates()
        [['cat', 'bird', 'fish'], ['cat', 'bird']]
        """
        return cls._checked(*_table(votes, classes, "votes"), unlabelled)

    @classmethod
    def from_single(cls, excluded: Any, classes: Classes) -> LabelSets:
        """Build from one ruled-out class per row (single complementary labels).

        >>> LabelSets.from_single([2, 0], classes=3).excluded.astype(int)
        array([[0, 0, 1],
               [1, 0, 0]])
        """
        names = class_names(classes)
        return cls._trusted(one_hot(encode(excluded, names, "excluded"), len(names)), names)

    @classmethod
    def from_labels(cls, labels: Any, classes: Classes) -> LabelSets:
        """Build from ordinary labels: every other class is ruled out.

        >>> LabelSets.from_labels(["dog"], ["cat", "dog", "bird"])[0]
        ('cat', 'bird')
        """
        names = class_names(classes)
        codes = encode(labels, names, "labels")
        return cls._trusted(complement(one_hot(codes, len(names)), len(names)), names)

    @classmethod
    def from_packed(cls, packed: Any, classes: Classes, unlabelled: bool = False) -> LabelSets:
        """Build from packed bits, as :attr:`packed` gives them.

        The array is taken over, not copied, and can no longer be written to.

        >>> LabelSets.from_packed(np.array([[0b011]], np.uint8), classes=3).sizes
        array([2])
        """
        names, array = class_names(classes), to_array(packed, "packed")
        k, wide = len(names), width(len(names))
        if array.dtype != np.uint8 or array.ndim != 2 or array.shape[1] != wide:
            problem = f"packed bits of {array.dtype} with shape {array.shape}"
            raise LabelError(problem, f"{k} classes need uint8 of shape (n, {wide})")
        if k % 8 and (beyond := array[:, -1] >> (k % 8) > 0).any():
            remedy = "pack with numpy.packbits(..., axis=1, bitorder='little')"
            raise LabelError("a bit beyond the last class is set", remedy, row=int(beyond.argmax()))
        return cls._checked(array, names, unlabelled)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        classes: Classes | None = None,
        column: str = "excluded",
        unlabelled: bool = False,
    ) -> LabelSets:
        """Read CSV, JSONL, Parquet or NPZ, chosen by the suffix; see :doc:`/files`."""
        from ruleout.labels.files import read

        return read(Path(path), classes, column, unlabelled)

    @classmethod
    def concatenate(cls, parts: Iterable[LabelSets]) -> LabelSets:
        """Put tables of the same classes below each other."""
        tables = list(parts)
        if not tables or not all(isinstance(table, LabelSets) for table in tables):
            raise LabelError("nothing to concatenate", "give a list of LabelSets")
        for table in tables[1:]:
            agree(tables[0].classes, table.classes)
        return cls._trusted(np.concatenate([table.packed for table in tables]), tables[0].classes)

    @classmethod
    def _checked(cls, packed: Bits, classes: tuple[ClassName, ...], unlabelled: bool) -> LabelSets:
        check_rows(packed, len(classes), unlabelled=unlabelled)
        return cls._trusted(packed, classes)

    @property
    def classes(self) -> tuple[ClassName, ...]:
        """The class names, all text or all whole numbers."""
        return self._classes

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes."""
        return len(self._packed), len(self._classes)

    @property
    def ndim(self) -> int:
        """Always 2."""
        return 2

    @property
    def packed(self) -> Bits:
        """The bits, uint8 (n, ⌈k/8⌉), class 0 in the lowest bit; read-only."""
        return self._packed.view()

    @property
    def excluded(self) -> NDArray[np.bool_]:
        """What was ruled out, bool (n, k). Unpacks every row, so slice first when n is large."""
        return unpack(self._packed, len(self._classes))

    @property
    def candidates(self) -> NDArray[np.bool_]:
        """What each example may still be, bool (n, k)."""
        return ~self.excluded

    @property
    def sizes(self) -> NDArray[np.intp]:
        """How many classes each row rules out."""
        return count(self._packed)

    @property
    def nbytes(self) -> int:
        """Memory of the packed table in bytes."""
        return self._packed.nbytes

    def __len__(self) -> int:
        return len(self._packed)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("LabelSets keeps packed bits, so an array of it is always a copy")
        return self.excluded if dtype is None else self.excluded.astype(dtype)

    def __iter__(self) -> Iterator[tuple[ClassName, ...]]:
        labels = np.array(self._classes, object)
        for piece in chunks(*self.shape):
            mask = unpack(self._packed[piece], len(self._classes))
            names, start = labels[np.nonzero(mask)[1]].tolist(), 0
            for size in mask.sum(1).tolist():
                yield tuple(names[start : start + size])
                start += size

    @overload
    def __getitem__(self, rows: int) -> tuple[ClassName, ...]: ...

    @overload
    def __getitem__(self, rows: slice | Sequence[int] | NDArray[Any]) -> LabelSets: ...

    def __getitem__(self, rows: Any) -> Any:
        """``sets[3]`` is that row's ruled-out names; any other index gives a `LabelSets`."""
        if isinstance(rows, tuple) and len(rows) == 2 and _is_everything(rows[1]):
            rows = rows[0]  # the way scikit-learn indexes rows: sets[rows, ...]
        if isinstance(rows, tuple):
            raise IndexError("LabelSets can be indexed by rows only; use .excluded for columns")
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            rows = rows.astype(np.intp) if rows.size == 0 and rows.dtype != np.bool_ else rows
            if rows.dtype.kind not in ("iu" if rows.ndim == 0 else "iub") or rows.ndim > 1:
                raise IndexError("index LabelSets by a row number, a slice, or a list of rows")
            if rows.ndim == 0:
                one = self._packed[int(rows)][None]
                return next(iter(LabelSets._trusted(one, self._classes)))
        return LabelSets._trusted(self._packed[rows], self._classes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSets):
            return NotImplemented
        if self._classes != other._classes or len(self) != len(other):
            return False
        pairs = ((self._packed[piece], other._packed[piece]) for piece in chunks(*self.shape))
        return self._packed is other._packed or all(np.array_equal(*both) for both in pairs)

    def __repr__(self) -> str:
        n, k = self.shape
        line = f"LabelSets({counted(n, 'row')}, {k} classes"
        if not n:
            return line + ")"
        sizes = self.sizes
        counts = np.bincount(sizes, minlength=k)[:k]
        first = 0 if counts[0] else 1
        step = -(-(k - first) // _MOST)
        edges = range(first, k, step)
        bars = [int(counts[edge : edge + step].sum()) for edge in edges]
        drawn = "".join(_BARS[-(-7 * bar // max(bars))] if bar else " " for bar in bars)
        low, high = (
            str(edge) if step == 1 else f"{edge}–{min(edge + step, k) - 1}"
            for edge in (edges[0], edges[-1])
        )
        return f"{line}, {sizes.mean():.2f} ruled out on average)\n  sizes {low} {drawn} {high}"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}\n  classes {escape(shown(self.classes))}</pre>"

    def pairs(self) -> tuple[NDArray[np.intp], LabelSets]:
        """Decompose into pairs of an example and one class it is not ("before shuffle").

        Return which row each pair comes from, and label sets that rule out one class each.

        >>> rows, single = LabelSets([[1, 1, 0], [0, 1, 0]]).pairs()
        >>> rows, single.to_single()
        (array([0, 0, 1]), array([0, 1, 1]))
        """
        rows, codes = self.nonzero()
        return rows, LabelSets._trusted(one_hot(codes, len(self._classes)), self._classes)

    def nonzero(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the row and the position of every class that was ruled out, row by row.

        >>> LabelSets([[1, 1, 0], [0, 1, 0]]).nonzero()
        (array([0, 0, 1]), array([0, 1, 1]))
        """
        rows, codes = [np.empty(0, np.intp)], [np.empty(0, np.intp)]
        for piece in chunks(*self.shape):
            row, code = np.nonzero(unpack(self._packed[piece], len(self._classes)))
            rows.append(row + piece.start)
            codes.append(code)
        return np.concatenate(rows), np.concatenate(codes)

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of each class among all that was ruled out, the `prior` of FREE, NN and GA.

        >>> LabelSets([[1, 1, 0], [0, 1, 0]]).shares
        array([0.33333333, 0.66666667, 0.        ])
        """
        counts = np.zeros(len(self._classes))
        for piece in chunks(*self.shape):
            counts += unpack(self._packed[piece], len(self._classes)).sum(0)
        return np.asarray(counts / max(counts.sum(), 1))

    def to_lists(self) -> list[list[ClassName]]:
        """Return the ruled-out class names of each row."""
        return [list(row) for row in self]

    def to_candidates(self) -> list[list[ClassName]]:
        """Return the class names still possible for each row."""
        flipped = complement(self._packed, len(self._classes))
        return LabelSets._trusted(flipped, self._classes).to_lists()

    def to_single(self) -> NDArray[Any]:
        """Return the one ruled-out class of each row; raise if a row has more or fewer."""
        return self._only(self._packed, "rules out", "keep rows with sizes == 1")

    def to_labels(self) -> NDArray[Any]:
        """Return the one class left for each row; raise if a row leaves more."""
        left = complement(self._packed, len(self._classes))
        return self._only(left, "leaves", "keep rows with sizes == k - 1")

    def to_frame(self) -> pandas.DataFrame:
        """Return a pandas DataFrame of bools, one column per class."""
        import pandas as pd

        return pd.DataFrame(self.excluded, columns=list(self._classes))

    def to_polars(self) -> polars.DataFrame:
        """Return a polars DataFrame of bools, one column per class (names become text)."""
        import polars as pl

        return pl.DataFrame(self.excluded, schema=[str(name) for name in self._classes])

    def to_sparse(self) -> scipy.sparse.csr_array:
        """Return a scipy CSR array of bools."""
        from scipy import sparse

        rows = [sparse.csr_array(self[piece].excluded) for piece in chunks(*self.shape)]
        empty = sparse.csr_array(self.shape, dtype=bool)
        return sparse.vstack(rows, format="csr") if rows else empty

    def write(self, path: str | Path) -> None:
        """Write CSV, JSONL, Parquet or NPZ, chosen by the suffix; see :doc:`/files`."""
        from ruleout.labels.files import write

        write(self, path)

    def _only(self, packed: Bits, verb: str, remedy: str) -> NDArray[Any]:
        sizes = count(packed)
        if (sizes != 1).any():
            row = int(np.argmax(sizes != 1))
            raise LabelError(f"the row {verb} {sizes[row]} classes, not one", remedy, row=row)
        codes = LabelSets._trusted(packed, self._classes).nonzero()[1]
        return np.asarray(np.array(self._classes)[codes])


def _table(
    source: Any, classes: Classes | None, kind: str = "excluded"
) -> tuple[Bits, tuple[ClassName, ...]]:
    """Read any table of that kind as what was ruled out, and settle its class names."""
    found: tuple[ClassName, ...] | None
    if isinstance(source, LabelSets) and kind == "excluded":
        packed, k, found = source.packed, len(source.classes), source.classes
    else:
        table, found = _sliceable(source)
        if table.ndim != 2:
            flat = "one ruled-out class per row goes into LabelSets.from_single, true labels into "
            flat += "LabelSets.from_labels"
            problem = f"expected a table of n rows and k classes, got {table.ndim} dimension(s)"
            raise LabelError(problem, flat if table.ndim < 2 else "give one row per example")
        n, k = table.shape
        check_count(k)
        rows = table.tocsr() if hasattr(table, "tocsr") else table
        packed = pack(lambda piece: _cells(rows[piece], piece, found, kind), n, k)
    if found is None:
        names = class_names(k if classes is None else classes)
    else:
        names = found if classes is None else agree(found, classes)
    if len(names) != k:
        problem = f"the table is {k} wide, but there are {len(names)} classes"
        raise LabelError(problem, "give one column per class")
    return packed, names


def _sliceable(source: Any) -> tuple[Any, tuple[ClassName, ...] | None]:
    """Return something to slice by rows, and the column names it brings."""
    if hasattr(source, "tocsr"):
        return source, None
    if hasattr(source, "column_names"):  # an Arrow table
        columns = [column.to_numpy(zero_copy_only=False) for column in source.columns]
        return np.stack(columns, axis=1), class_names(source.column_names)
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):  # pandas or polars
        return source.to_numpy(), class_names(list(source.columns))
    if isinstance(source, (list, tuple)):
        sizes = [f"{len(row)} cells" if hasattr(row, "__len__") else "no cells" for row in source]
        for row, size in enumerate(sizes):
            if size != sizes[0]:
                problem = f"the row has {size} where row 0 has {sizes[0]}"
                remedy = "give every row one cell per class; lists of names go into "
                raise LabelError(problem, f"{remedy}LabelSets.from_lists", row=row)
    return to_array(source, "the table"), None


def _cells(
    cells: Any, piece: slice, names: tuple[ClassName, ...] | None, kind: str
) -> NDArray[np.bool_]:
    """Return what a block of rows rules out, checked for values that a table cannot have."""
    block: NDArray[Any] = cells.toarray() if hasattr(cells, "toarray") else cells
    if block.dtype != np.bool_:
        block = _numbers(block, piece, names, kind)
    if kind == "votes":
        yes = block == 1
        return np.asarray(np.where(yes.any(1, keepdims=True), ~yes, block == -1))
    return np.asarray(block == (kind == "excluded"))


def _numbers(
    block: NDArray[Any], piece: slice, names: tuple[ClassName, ...] | None, kind: str
) -> NDArray[np.int8]:
    known, remedy = (-1, 0, 1) if kind == "votes" else (0, 1), _MEANINGS[kind]
    if block.dtype.kind in "iuf":
        good = (block == 0) | (block == 1) | (block == known[0])
    elif block.dtype.kind in "OUS":
        number = (int, float, np.number, np.bool_)
        good = np.frompyfunc(lambda one: isinstance(one, number) and one in known, 1, 1)(block)
    else:
        raise LabelError(f"the table is of type {block.dtype}", remedy)
    if good.all():
        return block.astype(np.int8)
    row, column = (int(i) for i in np.argwhere(~good.astype(np.bool_))[0])
    value, where = plain(block[row, column]), names[column] if names else column
    if is_missing(value):
        remedy = "fill in or drop missing values"
    elif isinstance(value, str):
        remedy = "for lists of class names use LabelSets.from_lists"
    elif names:
        remedy += "; leave out columns that are not classes"
    problem = f"{brief(value)} is {'not -1, 0 or 1' if kind == 'votes' else 'neither 0 nor 1'}"
    raise LabelError(problem, remedy, row=piece.start + row, column=where)


def _is_everything(index: object) -> bool:
    return index is Ellipsis or (isinstance(index, slice) and index == slice(None))


# ---------------------------------------------------------------------- rows as packed bits


def width(k: int) -> int:
    return (k + 7) // 8


def chunk_rows(k: int) -> int:
    """Rows of k cells that make a few MiB."""
    return max(1, _CELLS // max(k, 1))


def chunks(n: int, k: int) -> Iterator[slice]:
    """Cut n rows into slices of a few MiB of cells."""
    step = chunk_rows(k)
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def pack(rows: Callable[[slice], NDArray[Any]], n: int, k: int) -> Bits:
    """Pack n rows of k bools that `rows(slice)` hands out piece by piece."""
    bits = np.empty((n, width(k)), np.uint8)
    for piece in chunks(n, k):
        bits[piece] = np.packbits(rows(piece), axis=1, bitorder="little")
    return bits


def unpack(bits: Bits, k: int) -> NDArray[np.bool_]:
    return np.unpackbits(bits, axis=1, count=k, bitorder="little").view(np.bool_)


def one_hot(codes: NDArray[np.intp], k: int) -> Bits:
    packed = np.zeros((len(codes), width(k)), np.uint8)
    packed[np.arange(len(codes)), codes // 8] = np.left_shift(1, codes % 8)
    return packed


def has(bits: Bits, codes: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Tell of each row whether its class is among its bits."""
    byte = bits[np.arange(len(codes)), codes // 8]
    return np.asarray(byte >> (codes % 8).astype(np.uint8) & 1, np.bool_)


def count(bits: Bits) -> NDArray[np.intp]:
    sizes = np.empty(len(bits), np.intp)
    for piece in chunks(len(bits), bits.shape[1]):
        np.bitwise_count(bits[piece]).sum(axis=1, dtype=np.intp, out=sizes[piece])
    return sizes


def complement(bits: Bits, k: int) -> Bits:
    """Flip every class of every row; the padding stays zero."""
    every = np.packbits(np.ones(k, np.bool_), bitorder="little")
    return np.bitwise_xor(bits, every)


def check_rows(
    bits: Bits, k: int, *, unlabelled: bool, full: str = "leave at least one class as a candidate"
) -> None:
    """Raise unless every row leaves a candidate and, unless `unlabelled`, rules something out."""
    sizes = count(bits)
    if rows := np.flatnonzero(sizes == k).tolist():
        raise LabelError("every class is ruled out", full, row=rows, rank=1)
    if not unlabelled and (rows := np.flatnonzero(sizes == 0).tolist()):
        remedy, told = "rule out at least one class, drop the row, or pass", "unlabelled=True"
        raise LabelError("nothing is ruled out", remedy, argument=told, row=rows, rank=2)


def pack_codes(rows: Iterable[list[int]], classes: tuple[ClassName, ...]) -> Bits:
    """Pack rows of class positions; a class may occur in a row only once."""
    stream, k, done = iter(rows), len(classes), 0
    blocks = []
    while block := list(islice(stream, chunk_rows(k))):
        sizes = [len(row) for row in block]
        mask = np.zeros((len(block), k), np.bool_)
        mask[np.repeat(np.arange(len(block)), sizes), list(chain.from_iterable(block))] = True
        repeated = mask.sum(axis=1) != sizes
        if repeated.any():
            place = int(np.argmax(repeated))
            twice = next(code for code in block[place] if block[place].count(code) > 1)
            problem = f"class {brief(classes[twice])} appears twice"
            raise LabelError(problem, "name each class once", row=done + place)
        blocks.append(np.packbits(mask, axis=1, bitorder="little"))
        done += len(block)
    return np.concatenate(blocks) if blocks else np.empty((0, width(k)), np.uint8)
