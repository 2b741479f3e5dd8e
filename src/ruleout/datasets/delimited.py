"""Text tables of the UCI and KEEL repositories: rows and columns counted before conversion."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ruleout.datasets.base import Dataset
from ruleout.datasets.content import check_sum, located
from ruleout.datasets.downloads import obtain
from ruleout.datasets.errors import DataError
from ruleout.datasets.registry import TableSet
from ruleout.labels.errors import brief

__all__ = ["load_table", "read_delimited"]


_LARGEST = float(np.finfo(np.float32).max)


class _Row(NamedTuple):
    line: int  # counted from 1, as editors do
    cells: list[str]


def load_table(name: str, entry: TableSet, root: Path) -> Dataset:
    """Load a text table: all its rows to train, features as they stand in the file."""
    x, y = obtain(entry.file, root, lambda file: read_delimited(file, entry))
    return Dataset(
        name=name,
        x_train=x,
        y_train=y,
        classes=entry.classes,
        shape=x.shape[1:],
        source=entry.source,
    )


def read_delimited(file: Path, entry: TableSet) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    r"""Read features and labels from a text table, or from a zip archive with one in it.

    Blank lines and KEEL's header, whose lines start with ``@``, are left out.

    Raises
    ------
    DataError
        Naming the file, row, line and column (counted from 0), for anything not as described.

    Examples
    --------
    >>> import tempfile
    >>> from ruleout.datasets.registry import DataFile
    >>> two = DataFile("uci", "two.data", "", "https://example.org/two.data", 1000, (2, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "two.data")
    ...     _ = file.write_text("0.5,1,cat\n2,?,dog\n")
    ...     read_delimited(file, TableSet(
    ...         file=two, classes=("cat", "dog"), source="", comma=True, missing=1))
    (array([[0.5, 1. ],
           [2. , 1. ]], dtype=float32), array([0, 1]))
    """
    with located(file):
        rows = _rows(_text(file, entry.file.most), entry)
        y = _labels(rows, entry)
        x = _numbers(rows, entry)
        _fill(x, entry)
        text = "".join(",".join(row.cells) + "\n" for row in rows)
        check_sum(entry.file.sha256 or None, text.encode())
    return x.astype(np.float32), y


def _text(file: Path, most: int) -> str:
    with open(file, "rb") as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise DataError(f"the file has more than {most:,} bytes")
    if data[:2] == b"PK":
        data = _unzip(file, most)
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise DataError(f"byte 0x{data[error.start]:02x} is not ASCII text", line=line) from None


def _unzip(file: Path, most: int) -> bytes:
    """Return the one .dat file in a zip archive; what it says about sizes is not believed."""
    try:
        with zipfile.ZipFile(file) as archive:
            found = [info for info in archive.infolist() if info.filename.endswith(".dat")]
            if len(found) != 1:
                raise DataError(f"the zip archive has {len(found)} .dat files instead of one")
            if found[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise DataError("the zip archive is packed in an unusual way")
            with archive.open(found[0]) as member:
                data = member.read(most + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError("the zip archive is damaged or has a password") from None
    if len(data) > most:
        raise DataError(f"the zip archive unpacks to more than {most:,} bytes")
    return data


def _rows(text: str, entry: TableSet) -> list[_Row]:
    """Split into cells; their counts are checked."""
    wanted, columns = entry.file.shape
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("@")]
    if len(lines) != wanted:
        raise DataError(f"the file has {len(lines):,} rows instead of {wanted:,}")
    rows: list[_Row] = []
    for number, line in lines:
        cells = line.split("," if entry.comma else None)
        if len(cells) != columns:
            problem = f"the row has {len(cells)} cells instead of {columns}"
            raise DataError(problem, row=len(rows), line=number)
        rows.append(_Row(number, [cell.strip() for cell in cells]))
    return rows


def _labels(rows: list[_Row], entry: TableSet) -> NDArray[np.int64]:
    """Return positions among the classes."""
    if not entry.labelled:
        each = len(rows) // len(entry.classes)
        return np.repeat(np.arange(len(entry.classes)), each)
    place = {str(name): number for number, name in enumerate(entry.classes)}
    for number, row in enumerate(rows):
        if row.cells[-1] not in place:
            problem = f"{brief(row.cells[-1])} is not one of the classes {', '.join(place)}"
            raise DataError(problem, row=number, line=row.line, column=len(row.cells) - 1)
    return np.array([place[row.cells[-1]] for row in rows], np.int64)


def _numbers(rows: list[_Row], entry: TableSet) -> NDArray[np.float64]:
    """Return the features, NaN where one is missing."""
    x = np.empty((len(rows), entry.features))
    for number, row in enumerate(rows):
        for place, cell in enumerate(row.cells[entry.first : entry.first + entry.features]):
            column = entry.first + place
            try:
                x[number, place] = _number(cell, column == entry.missing)
            except ValueError:
                problem = f"{brief(cell)} is not a finite number"
                raise DataError(problem, row=number, line=row.line, column=column) from None
    return x


def _number(cell: str, missing: bool) -> float:
    if missing and cell == "?":
        return np.nan
    value = float(cell)
    if not abs(value) <= _LARGEST or "_" in cell:  # Python reads 1_0 as 10
        raise ValueError
    return value


def _fill(x: NDArray[np.float64], entry: TableSet) -> None:
    """Put the mean of the known values in the place of missing ones."""
    if entry.missing is None:
        return
    column = x[:, entry.missing - entry.first]
    unknown = np.isnan(column)
    if unknown.all():
        raise DataError("no row has a value", column=entry.missing)
    column[unknown] = column[~unknown].mean()
