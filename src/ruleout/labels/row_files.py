"""Files of rows (CSV, TSV, JSONL, Parquet, JSON) read row by row, each with its line for errors.

Label sets, tables, items to label and imported answers are all read here; what only needs columns
is read faster by :mod:`ruleout.labels.files`, and comes here to find the line of a fault.
"""

from __future__ import annotations

import csv
import gzip
import json
import math
import os
import re
import resource
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path, PosixPath
from typing import Any, TypeAlias, TypeVar

from ruleout.labels.classes import ClassName, shown, unknown, whole
from ruleout.labels.errors import DataError, InputError, LabelError, brief, nearest

Used = TypeVar("Used")

SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
COLUMN = "excluded"  # the column of label sets in our own files
MARK = "classes: "  # a column of our CSV files with empty cells: its name holds the class list
META = b"ruleout.classes"  # where the schema of our Parquet files holds it
_MOST_BYTES = 1 << 30  # of a JSON file, which is read at once

Row: TypeAlias = tuple[int | None, dict[str, Any]]  # its line in a text file, and its cells


def suffix_of(file: Path) -> str:
    """Return what says how to read the file: ``.csv`` of ``a.CSV`` and of ``a.csv.gz``."""
    suffixes = [suffix.lower() for suffix in file.suffixes[-2:]]
    if suffixes[-1:] == [".gz"] and suffixes[0] in (".csv", ".tsv", ".jsonl"):
        return suffixes[0]
    return file.suffix.lower()


def check_suffix(file: Path, known: Sequence[str], suffix: str | None = None) -> None:
    if (suffix_of(file) if suffix is None else suffix) not in known:
        remedy = f"use one of {', '.join(known)}"
        raise LabelError(f"unknown file type {file.suffix!r}", remedy, file=file)


def check_out(out: Path, known: Sequence[str], source: Path | None = None) -> None:
    """Raise where a file cannot be written by its suffix, or is the one that is read."""
    check_suffix(out, known, out.suffix.lower())
    if source is not None and out.exists() and source.exists() and out.samefile(source):
        raise LabelError("this file is to be read and written", "give another name", file=out)


class SeparatedFile(PosixPath):
    """A text file of which somebody says what separates its cells."""

    separator = ""

    @classmethod
    def by(cls, mark: str, file: Path) -> SeparatedFile:
        """Return the file, its cells separated by `mark`: one character, or ``tab``."""
        if suffix_of(file) not in (".csv", ".tsv"):
            problem = "only CSV and TSV files have a separator"
            raise LabelError(problem, "leave it out:", file=file, argument="separator=...")
        made, name = cls(file), {"tab": "\t", "\\t": "\t"}.get(mark, mark)
        if len(name) != 1 or not name.isascii() or name in '"\r\n\0':
            remedy = "give one character such as ; or |, or the word tab, as"
            problem = f"{brief(mark)} cannot separate cells"
            raise LabelError(problem, remedy, file=file, argument="separator=...")
        made.separator = name
        return made


def separator_of(file: Path) -> str:
    """Return what separates cells: tabs in TSV, else commas unless the first lines say better."""
    if isinstance(file, SeparatedFile) and file.separator:
        return file.separator
    if suffix_of(file) == ".tsv":
        return "\t"
    lines = [re.sub('"[^"]*"?', "", line) for line in islice(text_lines(file), 2)]
    for mark in ";\t":
        counts = {line.count(mark) for line in lines}
        if lines and "," not in lines[0] and len(counts) == 1 and counts != {0}:
            return mark
    return ","


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Put the file, and the line of a row, into errors that do not name one."""
    try:
        yield
    except InputError as error:
        if error.file is None:
            error.file = file
            if error.rows and error.line is None:
                error.lines = lines_of(file, error.rows[: error.SHOWN])
        raise
    except MemoryError:
        problem = "this machine has too little memory to read it"
        raise LabelError(problem, "read a part of it", file=file) from None


@contextmanager
def reporting(path: Path) -> Iterator[None]:
    """Name the file in errors, and put what the system says into a sentence."""
    try:
        with naming(path):
            yield
    except OSError as error:
        problem = f"the file cannot be read ({error.strerror or error})"
        raise DataError(problem, "check its permissions", file=path) from None


@contextmanager
def readable(what: str, faults: Any = Exception, error: Any = LabelError) -> Iterator[None]:
    """Say in one sentence that a file is broken; readers say so in ways of their own."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except faults:
        raise error(f"this is not a readable {what}", "write it again") from None


@contextmanager
def at_row(row: int, line: int | None = None) -> Iterator[None]:
    """Put the row into errors that do not name one."""
    try:
        yield
    except InputError as error:
        if not error.rows:
            error.rows, error.lines = [row], [] if line is None else [line]
        raise


def lines_of(file: Path, rows: Sequence[int]) -> list[int]:
    """Return the lines of rows, given in rising order; none where a file has no lines."""
    if suffix_of(file) not in (".csv", ".tsv", ".jsonl"):
        return []
    reader: Any = json_rows if suffix_of(file) == ".jsonl" else csv_rows
    try:
        first = enumerate(islice(reader(file)[1], rows[-1] + 1))
        return [line for row, (line, _) in first if row in rows]
    except (InputError, OSError):
        return []


def check_memory(*sizes: int) -> None:
    """Raise if float32 of these sizes cannot fit into this machine."""
    need = 4 * math.prod(sizes)
    have = min(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), memory_left())
    if need > have:
        times = " × ".join(f"{size:,}" for size in sizes)
        problem = f"{times} numbers take {need / 1e9:.1f} GB of memory, there are {have / 1e9:.1f}"
        raise LabelError(problem, "read a part of it, or use a larger machine")


def memory_left() -> float:
    """Return the bytes that ``ulimit -v`` still allows this process, infinity without a limit."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    if allowed == resource.RLIM_INFINITY:
        return math.inf
    taken = Path("/proc/self/statm").read_text().split()[0] if os.path.exists("/proc") else 0
    return allowed - int(taken) * os.sysconf("SC_PAGE_SIZE")


def map_rows(file: str | Path, use: Callable[[int, dict[str, Any]], Used]) -> Iterator[Used]:
    """Yield what `use` makes of each row, given its number and cells; its errors say where.

    Class lists that files of this package carry are left out. Cells of CSV and TSV files are
    texts; other files keep their types.
    """
    path = Path(file)
    check_suffix(path, SUFFIXES)
    readers = {".jsonl": lambda path: json_rows(path)[1], ".parquet": _parquet}
    with naming(path):
        for row, (line, cells) in enumerate(readers.get(suffix_of(path), _csv)(path)):
            with at_row(row, line):
                used = use(row, cells)
            yield used


def _csv(file: Path) -> Iterator[Row]:
    header, rows = csv_rows(file, blank_rows=False)
    check_unique(header, line=1)
    places = [(place, name) for place, name in enumerate(header) if not name.startswith(MARK)]
    for line, cells in rows:
        yield line, {name: cells[place] for place, name in places}


def _parquet(file: Path) -> Iterator[Row]:
    from ruleout.labels.files import parquet_file  # late: it loads pyarrow

    with parquet_file(file) as table:
        check_unique(table.schema_arrow.names)
        for batch in table.iter_batches(batch_size=1024):
            yield from ((None, cells) for cells in batch.to_pylist())


def text_lines(file: Path) -> Iterator[str]:
    """Yield lines with their endings, of a gzip file too; refuse what is not UTF-8 text."""
    opener: Any = gzip.open if file.suffix.lower() == ".gz" else open
    with opener(file, "rt", encoding="utf-8-sig", newline="") as stream:
        try:
            yield from stream
        except UnicodeDecodeError:
            raise LabelError("this is not UTF-8 text", "save the file as UTF-8") from None
        except (gzip.BadGzipFile, EOFError, zlib.error):
            raise LabelError("this is not a readable gzip file", "write it again") from None


def csv_rows(
    file: Path, *, blank_rows: bool = True
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header, and the line and cells of every row, all as wide as the header.

    A blank line is not a row; in a file of one column it is an empty cell, unless nothing follows
    it or `blank_rows` is False.
    """
    lines = _csv_lines(file)
    _, header = next(lines, (0, None))
    if header is None:
        raise LabelError("the file is empty", "give a first line that names the columns")
    if not header:
        raise LabelError("the first line is blank", "name the columns there", line=1)
    return header, _full_rows(lines, len(header), blank_rows and len(header) == 1)


def _csv_lines(file: Path) -> Iterator[tuple[int, list[str]]]:
    table = csv.reader(text_lines(file), strict=True, delimiter=separator_of(file))
    try:
        for cells in table:
            yield table.line_num, cells
    except csv.Error as error:
        problem = f"this is not valid CSV ({error})"
        remedy = "shorten the cell" if "field limit" in str(error) else "fix the quotes"
        raise LabelError(problem, remedy, line=table.line_num) from None


def _full_rows(
    lines: Iterator[tuple[int, list[str]]], width: int, blank_rows: bool
) -> Iterator[tuple[int, list[str]]]:
    row, blank = 0, []
    for line, cells in lines:
        if not cells:
            blank.append(line)
            continue
        if blank_rows:
            yield from ((empty, [""]) for empty in blank)
            row += len(blank)
        blank = []
        if len(cells) != width:
            problem = f"the row has {len(cells)} cells where the header has {width}"
            remedy = "give every row the same cells, and quote cells that hold the separator"
            raise LabelError(problem, remedy, row=row, line=line)
        yield line, cells
        row += 1


def json_rows(
    file: Path, skipped: list[int] | None = None
) -> tuple[Any, Iterator[tuple[int, dict[str, Any]]]]:
    """Return the class list if the first line holds one, and line and object of every row.

    Lines that hold no object are collected in `skipped`; without it they raise.
    """
    objects = _task_rows(file) if suffix_of(file) == ".json" else _json_objects(file, skipped)
    first = list(islice(objects, 1))
    inside = first.pop()[1]["classes"] if first and set(first[0][1]) == {"classes"} else None
    return inside, chain(first, objects)


def _json_objects(file: Path, skipped: list[int] | None) -> Iterator[tuple[int, dict[str, Any]]]:
    for line, text in enumerate(text_lines(file), 1):
        if not text.strip():
            continue
        try:
            value = parse_json(text, line=line)
            if not isinstance(value, dict):
                remedy = 'write lines like {"excluded": ["cat", "dog"]}'
                raise LabelError(f"the line holds {brief(value)}, not an object", remedy, line=line)
        except LabelError:
            if skipped is None:
                raise
            skipped.append(line)
        else:
            yield line, value


def _task_rows(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield a row for each annotation of a Label Studio export: its task's data, and its choices.

    Beside them stand ``item`` (the number of the task), ``annotator`` and ``answer``: accept, or
    ignore where it was cancelled. What the data call so is theirs.
    """
    for row, task in enumerate(label_studio_tasks(file)):
        with at_row(row):
            for one, who, chosen in label_studio_annotations(task):
                answer = "ignore" if one.get("was_cancelled") is True else "accept"
                told = {"item": task.get("id"), "annotator": who, "answer": answer}
                yield row, told | task["data"] | chosen


def label_studio_tasks(file: Path) -> list[dict[str, Any]]:
    if file.stat().st_size > _MOST_BYTES:
        raise InputError("the file is larger than 1 GiB", "export fewer tasks at a time")
    tasks = parse_json(file.read_bytes())
    if not isinstance(tasks, list):
        raise InputError("the file is not a list of tasks", "export as JSON from Label Studio")
    for row, task in enumerate(tasks):
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            remedy = "export as JSON, not JSON-MIN, from Label Studio"
            raise InputError("this is not a task with data", remedy, row=row)
    return tasks


def label_studio_annotations(
    task: dict[str, Any],
) -> Iterator[tuple[dict[str, Any], Any, dict[str, list[Any]]]]:
    """Yield the annotations of a task, each with who made it and what every control chose."""
    found = task.get("annotations", task.get("completions", []))  # the name before version 1
    for one in _expect(list, found, "annotations"):
        results = _expect(dict, one, "an annotation").get("result", [])
        chosen: dict[str, list[Any]] = {}
        for result in _expect(list, results, "result"):
            if _expect(dict, result, "a result").get("type") == "choices":
                value = _expect(dict, result.get("value"), "value")
                own = chosen.setdefault(str(result.get("from_name")), [])
                own += _expect(list, value.get("choices"), "choices")
        who = one.get("completed_by")
        if isinstance(who, dict):
            who = who.get("email") or who.get("username") or who.get("id")
        yield one, "label-studio" if who is None else who, chosen


def _expect(kind: type, value: Any, what: str) -> Any:
    if not isinstance(value, kind):
        wanted = "an object" if kind is dict else "a list"
        raise InputError(f"{what} is {brief(value)}, not {wanted}", "export it again")
    return value


def parse_json(text: str | bytes, **where: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise LabelError("this is not valid JSON", "fix or remove it", **where) from None


def find_column(name: str, names: Sequence[str]) -> str:
    """Return `name` if it is the name of one column, else say which may be meant."""
    check_separator(names)
    if name not in names:
        say = f"the columns are {shown(names)}" if names else "the file has none"
        raise LabelError(f"there is no column {name!r}", nearest(name, names, say))
    check_unique([found for found in names if found == name])
    return name


def cell_of(cells: dict[str, Any], column: str) -> Any:
    return cells[column] if column in cells else cells[find_column(column, list(cells))]


def check_separator(names: Sequence[str]) -> None:
    if len(names) == 1 and re.search("[;\t]", names[0]):
        remedy = "separate columns by commas, semicolons or tabs in every line"
        raise LabelError(f"the header is {brief(names[0])}", remedy)


def check_unique(names: Sequence[str], **where: Any) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise LabelError(f"column {name!a} appears twice", "name each column once", **where)
        seen.add(name)


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


def names_in(value: Any, unlabelled: bool = True) -> list[Any]:
    """Return the names in a cell: text separated by ``|``, a list, or one whole number."""
    if isinstance(value, str):
        return split(value)
    if value is None and unlabelled:
        return []
    if isinstance(value, int) and not isinstance(value, bool):
        return [value]
    if not isinstance(value, list):
        found = "nothing" if value is None else brief(value)
        raise LabelError(f"the row holds {found}, not a list", "give class names")
    return value


def name_places(classes: tuple[ClassName, ...]) -> dict[object, int]:
    """Map class names to their places, whole numbers also as the text that they are in CSV."""
    places: dict[object, int] = {str(name): place for place, name in enumerate(classes)}
    return places | {name: place for place, name in enumerate(classes)}


def name_codes(
    names: list[Any], classes: tuple[ClassName, ...], places: dict[object, int] | None = None
) -> list[int]:
    """Return the places of class names that a cell holds, each named once."""
    places = name_places(classes) if places is None else places
    found = [places.get(name, -1) if type(name) is str else -1 for name in names]
    if -1 in found:  # whole numbers, spaces around names, or a fault
        found = [_code(name, classes, places) for name in names]
    if len(set(found)) < len(found):
        twice = next(code for code in found if found.count(code) > 1)
        raise LabelError(f"class {brief(classes[twice])} appears twice", "name each class once")
    return found


def _code(name: Any, classes: tuple[ClassName, ...], places: dict[object, int]) -> int:
    code, parts = None, []
    if isinstance(name, str):
        code = places.get(name, places.get(whole(name.strip())))
        parts = [part.strip() for part in re.split("[,;/]", name)]
    elif isinstance(name, (int, float)) and not isinstance(name, bool):
        code = places.get(whole(name))
    if code is None:
        error = unknown(name, classes)
        if any(part in places for part in parts):
            error.remedy = "separate class names by |"
        raise error
    return code
