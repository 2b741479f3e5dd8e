"""Features of the items of a project: its images, the cells of its rows, or a file of one's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruleout.datasets import Table, read_table
from ruleout.labels.errors import InputError, brief
from ruleout.web.entities import Item
from ruleout.web.project import Project
from ruleout.web.spreadsheet import FORMULA, inert

if TYPE_CHECKING:
    import pyarrow as pa


#: The column, or the array of an NPZ file, that names the items in a file of features.
KEY = "item"

_REMEDY = f"give numbers for each item with --features-from FILE, whose column {KEY!r} names it"


def read_features(
    project: Project,
    items: Sequence[Item],
    source: str | Path | None = None,
    *,
    features: Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    size: tuple[int, int] | None = None,
    reading: Mapping[str, Any] | None = None,
) -> Table:
    """Read the features of some items, in their order; ``row_names`` are the items' names.

    Parameters
    ----------
    source
        A CSV, TSV, JSONL, Parquet or NPZ file with a column (an array) ``item``: an embedding, or
        any other numbers. Items it does not name are left out, and a note says so. Without it
        images are decoded, and the cells of rows read as numbers.
    features, ignore, size, reading
        As in :func:`ruleout.datasets.read_table`.
    """
    if source is not None:
        found = read_table(
            source, names=KEY, features=features, ignore=ignore, size=size, reading=reading
        )
        return _aligned(found, items)
    kinds = {item.kind for item in items}
    if kinds == {"image"} and project.images is not None:
        return _images(project.images, items, features, ignore, size, reading)
    if kinds != {"row"}:
        raise InputError("the items of the project are text", _REMEDY, file=project.folder)
    if size is not None:
        raise InputError("rows of a table have no size", "leave --size out", file=project.folder)
    return _cells(project, items, features, ignore, reading)


def _aligned(found: Table, items: Sequence[Item]) -> Table:
    """Pick the rows of a file in the order of the items; what is missing is said."""
    place = {name: row for row, name in enumerate(found.row_names or ())}
    is_plain = any(name.startswith(FORMULA) for name in place)  # not spelled as exports do
    rows = {
        item.name: place.get(item.name if is_plain else inert(item.name), place.get(item.name))
        for item in items
    }
    kept = {name: row for name, row in rows.items() if row is not None}
    if not kept:
        problem = f"the column {KEY!r} names none of the items"
        raise InputError(problem, "name items as the project does", file=found.source)
    notes = list(found.notes)
    if left := len(rows) - len(kept):
        notes.append(f"{left:,} of {len(rows):,} items are not in {found.source}: left out.")
    x = found.x[list(kept.values())]
    return replace(found, x=x, row_names=tuple(kept), notes=tuple(notes))


def _images(
    folder: Path,
    items: Sequence[Item],
    features: Sequence[str] | None,
    ignore: Sequence[str],
    size: tuple[int, int] | None,
    reading: Mapping[str, Any] | None,
) -> Table:
    if reading is not None and reading.get("kind") != "images":
        raise InputError("the model reads columns, and the items are images", _REMEDY, file=folder)
    files = [item.path or item.name for item in items]
    found = read_table(
        folder, files=files, features=features, ignore=ignore, size=size, reading=reading
    )
    return replace(found, row_names=tuple(item.name for item in items))


def _cells(
    project: Project,
    items: Sequence[Item],
    features: Sequence[str] | None,
    ignore: Sequence[str],
    reading: Mapping[str, Any] | None,
) -> Table:
    """Read the cells that annotators see as numbers, by the rules of a table file.

    The file they came from is not read again: it may hold the true class in another column.
    """
    from ruleout.datasets.tables import Request, choose, to_matrix
    from ruleout.labels.row_files import naming

    if reading is not None and reading.get("kind") != "columns":
        raise InputError("the model reads images, and the items are rows", _REMEDY)
    ask = Request(
        features=None if features is None else tuple(features), ignore=tuple(ignore),
        reading=reading,
    )  # fmt: skip
    with naming(project.folder):
        ask.check()
        names = choose(list(dict.fromkeys(name for item in items for name in item.cells)), ask)
        columns = _columns(items, names)
        x, coarse = to_matrix(columns)
    notes = [f"Columns {brief(coarse)} lose digits as float32."] if coarse else []
    return Table(
        x=x,
        shape=(len(names),),
        features=tuple(names),
        row_names=tuple(item.name for item in items),
        source=project.folder,
        sha256=sha256(x.tobytes()).hexdigest(),
        reading={"kind": "columns", "features": names},
        notes=tuple(notes),
    )


def _columns(items: Sequence[Item], names: Sequence[str]) -> pa.Table:
    """Return columns of numbers where all cells are such, else of text."""
    import pyarrow as pa

    columns = {}
    for name in names:
        cells = [item.cells.get(name) for item in items]
        if all(cell is None or isinstance(cell, (bool, int, float)) for cell in cells):
            numbers = [None if cell is None else float(cell) for cell in cells]
            columns[name] = pa.chunked_array([pa.array(numbers, pa.float64())])
        else:
            texts = [None if cell is None else str(cell) for cell in cells]
            columns[name] = pa.chunked_array([pa.array(texts, pa.string())])
    return pa.table(columns)
