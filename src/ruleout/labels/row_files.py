"""What all files of names share: settle the class list, look names up, place the first fault."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import IO, Any, TypeAlias

from ruleout.labels.bits import pack_codes
from ruleout.labels.classes import Classes, ClassName, agree, class_names, shown, unknown
from ruleout.labels.errors import LabelError, brief, nearest
from ruleout.labels.sets import LabelSets

COLUMN = "excluded"  # the column that `write` makes and `read` looks for
FULL = "every class is ruled out"

Row: TypeAlias = tuple[int | None, list[Any]]  # the line where a text file has one, and the names


def settle(inside: Any, wanted: Classes | None) -> tuple[ClassName, ...]:
    """Return the class list of the file, or the one asked for; the two must not differ."""
    if inside is None:
        if wanted is None:
            raise LabelError(
                "the file does not say what the classes are",
                "pass classes=[...] with every class name",
            )
        return class_names(wanted)
    if not isinstance(inside, list):
        raise LabelError("the file's class list is not a list", "mend it, or write the file again")
    found = class_names(inside)
    return found if wanted is None else agree(found, wanted)


def build(
    rows: Iterable[Row], classes: tuple[ClassName, ...], column: str, unlabelled: bool
) -> LabelSets:
    """Build label sets from rows of names."""
    names: dict[Any, int] = {name: code for code, name in enumerate(classes)}
    if isinstance(classes[0], int):  # in text files whole numbers are text
        names.update((str(name), code) for code, name in enumerate(classes))

    def codes() -> Iterator[list[int]]:
        for row, (line, labels) in enumerate(rows):
            where = {"row": row, "line": line, "column": column}
            found = [names.get(label, -1) if type(label) is str else -1 for label in labels]
            if -1 in found:  # whole numbers, spaces around names, or a fault
                found = [_lookup(label, names, classes, where) for label in labels]
            _check(found, classes, unlabelled, where)
            yield found

    return LabelSets._trusted(pack_codes(codes(), classes), classes)


def _lookup(
    label: Any, names: dict[Any, int], classes: tuple[ClassName, ...], where: dict[str, Any]
) -> int:
    code = None
    if isinstance(label, str):
        code = names.get(label, names.get(label.strip()))
    elif isinstance(label, int) and not isinstance(label, bool):
        code = names.get(label)
    if code is None:
        error = unknown(label, classes, **where)
        if isinstance(label, str) and any(
            part.strip() in names for part in re.split("[,;/]", label)
        ):
            error.remedy = "separate class names by |"
        raise error
    return code


def _check(
    found: list[int], classes: tuple[ClassName, ...], unlabelled: bool, where: dict[str, Any]
) -> None:
    if len(set(found)) < len(found):
        twice = next(code for code in found if found.count(code) > 1)
        raise LabelError(
            f"class {brief(classes[twice])} stands twice", "name each class once", **where
        )
    if len(found) == len(classes):
        raise LabelError(FULL, "leave at least one class as a candidate", **where)
    if not found and not unlabelled:
        raise LabelError(
            "nothing is ruled out",
            "rule out at least one class, drop the row, or pass unlabelled=True",
            **where,
        )


def find(column: str, header: Sequence[str]) -> int:
    """Return where `column` stands in the header."""
    if column in header:
        if header.count(column) > 1:
            raise LabelError(f"column {column!r} stands twice", "name each column once")
        return header.index(column)
    if len(header) == 1 and column in re.split("[;\t]", header[0]):
        raise LabelError(f"the header is {brief(header[0])}", "separate columns by commas")
    say = f"the columns are {shown(header)}" if header else "the file is empty"
    raise LabelError(f"there is no column {column!r}", nearest(column, header, say))


def split(cell: str) -> list[str]:
    r"""Split ``cat|dog`` into names; ``\|`` and ``\\`` stand for the characters themselves."""
    if not cell.strip():
        return []
    if "\\" not in cell:
        return cell.split("|")
    names, name, letters = [], "", iter(cell)
    for letter in letters:
        if letter == "|":
            names.append(name)
            name = ""
        else:
            name += next(letters, "\\") if letter == "\\" else letter
    return [*names, name]


def join(names: Iterable[ClassName]) -> str:
    """Write names as one cell, the way :func:`split` reads it."""
    return "|".join(str(name).replace("\\", "\\\\").replace("|", "\\|") for name in names)


def parse_json(text: str | bytes, **where: Any) -> Any:
    """Read JSON, or say where it is broken."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise LabelError("this is not valid JSON", "mend or remove it", **where) from None


def listed(value: Any, **where: Any) -> list[Any]:
    """Return `value` if it is a list."""
    if not isinstance(value, list):
        found = "nothing" if value is None else brief(value)
        raise LabelError(f"the row holds {found}, not a list", "give class names", **where)
    return value


META = b"ruleout.classes"
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
