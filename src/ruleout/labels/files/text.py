"""CSV and JSONL: one row of names per line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, Any

from ruleout.labels.classes import Classes, shown
from ruleout.labels.errors import LabelError, brief, nearest
from ruleout.labels.files.rows import (
    COLUMN,
    Row,
    build,
    find,
    join,
    listed,
    parse_json,
    settle,
    split,
)
from ruleout.labels.sets import LabelSets

__all__ = [
    "MARK",
    "csv_cells",
    "csv_writer",
    "json_objects",
    "read_csv",
    "read_jsonl",
    "text_lines",
    "write_csv",
    "write_jsonl",
]

MARK = "classes: "  # a column of our CSV files with empty cells: its name holds the class list
_CELL = 131_072  # longest cell that Python's csv module reads


def text_lines(file: Path) -> Iterator[str]:
    """Yield lines with their endings; refuse what is not UTF-8 text."""
    with open(file, encoding="utf-8-sig", newline="") as stream:
        try:
            yield from stream
        except UnicodeDecodeError:
            raise LabelError("this is not UTF-8 text", "save the file as UTF-8") from None


def read_csv(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read a CSV file whose column holds names separated by ``|``."""
    table = csv.reader(text_lines(file), strict=True)
    try:
        header = next(table, [])
        place = find(column, header)
        lists = [name.removeprefix(MARK) for name in header if name.startswith(MARK)]
        classes = settle(parse_json(lists[0], line=1) if lists else None, wanted)
        return build(csv_cells(table, len(header), place), classes, column, unlabelled)
    except csv.Error as error:
        raise LabelError(
            f"this is not valid CSV ({error})", "mend the quotes", line=table.line_num
        ) from None


def csv_cells(table: Any, width: int, place: int) -> Iterator[Row]:
    """Yield the names in one column of each row; refuse rows that are not `width` cells wide."""
    row, blank = 0, []
    for cells in table:
        line = table.line_num
        if not cells:
            blank.append(line)
            continue
        if width == 1:  # then an empty line is a row, unless nothing follows
            yield from ((empty, []) for empty in blank)
            row += len(blank)
        blank = []
        if len(cells) != width:
            raise LabelError(
                f"the row has {len(cells)} cells where the header has {width}",
                "give every row the same cells, and quote cells that hold a comma",
                row=row,
                line=line,
            )
        yield line, split(cells[place])
        row += 1


def write_csv(sets: LabelSets, out: IO[bytes]) -> None:
    """Write a column of names separated by ``|``, and an empty one named after the class list."""
    with csv_writer(out) as table:
        table.writerow([COLUMN, _short(MARK + json.dumps(sets.classes))])
        for names in sets:
            table.writerow([_short(join(names)), ""])


@contextmanager
def csv_writer(out: IO[bytes], delimiter: str = ",") -> Iterator[Any]:
    """Yield a CSV writer whose lines end in a line feed, and which quotes both line ends.

    Before Python 3.13 the csv module quotes only the line end that it writes itself.
    """
    text = TextIOWrapper(out, "utf-8", newline="")
    yield csv.writer(_LineFeeds(text), lineterminator="\r\n", delimiter=delimiter)
    text.detach()


class _LineFeeds:
    def __init__(self, text: TextIOWrapper) -> None:
        self._text = text

    def write(self, line: str) -> int:
        return self._text.write(line.removesuffix("\r\n") + "\n")


def _short(cell: str) -> str:
    if len(cell) > _CELL:
        raise LabelError(f"a cell would be {len(cell)} characters long", "write .npz instead")
    return cell


def read_jsonl(file: Path, wanted: Classes | None, column: str, unlabelled: bool) -> LabelSets:
    """Read a JSONL file whose objects hold a list of names."""
    objects = json_objects(file)
    first, inside = list(_first(objects)), None
    if first and "classes" in first[0][1] and column not in first[0][1]:
        inside = first.pop()[1]["classes"]
    classes = settle(inside, wanted)
    return build(_values(chain(first, objects), column), classes, column, unlabelled)


def json_objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the object of every line that is not blank, with the number of the line."""
    for line, text in enumerate(text_lines(file), 1):
        if text.strip():
            value = parse_json(text, line=line)
            if not isinstance(value, dict):
                raise LabelError(
                    f"the line holds {brief(value)}, not an object",
                    'write lines like {"excluded": ["cat", "dog"]}',
                    line=line,
                )
            yield line, value


def _first(objects: Iterator[Any]) -> Iterator[Any]:
    for item in objects:
        yield item
        return


def _values(objects: Iterator[tuple[int, dict[str, Any]]], column: str) -> Iterator[Row]:
    for row, (line, value) in enumerate(objects):
        if column not in value:
            say = f"the keys are {shown(list(value))}"
            remedy = nearest(column, value, say)
            raise LabelError(f"there is no key {column!r}", remedy, row=row, line=line)
        yield line, listed(value[column], row=row, line=line, column=column)


def write_jsonl(sets: LabelSets, out: IO[bytes]) -> None:
    """Write an object with the class list, then an object per row."""
    out.write(json.dumps({"classes": sets.classes}).encode() + b"\n")
    for names in sets:
        out.write(json.dumps({COLUMN: names}).encode() + b"\n")
