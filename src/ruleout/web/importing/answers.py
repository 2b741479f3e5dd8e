"""A plain table of earlier answers; the answer log of an export is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ruleout.labels.errors import InputError, brief, nearest
from ruleout.labels.files.rows import split
from ruleout.web.importing.earlier import (
    Earlier,
    Imported,
    annotator_of,
    codes_of,
    distinct,
    milliseconds,
    time_of,
)
from ruleout.web.items.names import suggest
from ruleout.web.items.rows import column_of, placed, read_rows
from ruleout.web.spreadsheet import unescaped

__all__ = ["read_answers"]

_KINDS = ("yes", "no", "which", "excluded", "skip")


def read_answers(file: str | Path, items: Sequence[str], classes: Sequence[str]) -> Imported:
    """Read answers from CSV, TSV, JSONL or Parquet.

    Columns ``item``, ``annotator`` and ``kind`` must be there. ``proposed`` (of a yes or a no),
    ``excluded`` (of a rule-out answer) and ``which`` hold class names, in CSV separated by ``|``.
    ``time`` (ISO 8601), ``seconds`` and ``took_ms`` may be there. Where there is a column
    ``counts``, rows that do not count are left out, and so are undo rows. A column ``id``, which
    a log has, tells a project which answers are its own.

    Raises
    ------
    InputError
        At the first row that cannot be used, with the nearest item or class where there is one.
    """
    path, left_out = Path(file), [0]
    with placed(path):
        answers = list(_answers(path, items, classes, left_out))
        notes = [f"{left_out[0]} row(s) that do not count: left out."] if left_out[0] else []
        return distinct(answers, notes)


def _answers(
    path: Path, items: Sequence[str], classes: Sequence[str], left_out: list[int]
) -> Iterator[Earlier]:
    known = dict.fromkeys(items)
    for row, (line, cells) in enumerate(read_rows(path)):
        where: dict[str, Any] = {"row": row, "line": line}
        kind = column_of(cells, "kind", **where)
        if kind == "undo" or cells.get("counts") in (False, "no", "false", "False", "0"):
            left_out[0] += 1
            continue
        if not isinstance(kind, str) or kind not in _KINDS:
            remedy = nearest(kind, _KINDS, f"use one of {', '.join(_KINDS)}")
            raise InputError(f"unknown kind {brief(kind)}", remedy, column="kind", **where)
        yield _answer(cells, kind, known, classes, where)


def _answer(
    cells: dict[str, Any],
    kind: Any,
    items: dict[str, None],
    classes: Sequence[str],
    where: dict[str, Any],
) -> Earlier:
    seconds = milliseconds(cells.get("seconds"), 1000, column="seconds", **where)
    took = milliseconds(cells.get("took_ms"), 1, column="took_ms", **where)
    which = _set(cells, "which", kind, classes, where) if kind == "which" else ()
    if len(which) > 1:
        raise InputError("which names several classes", "name one", column="which", **where)
    asked = kind in ("yes", "no")
    return Earlier(
        item=_item(column_of(cells, "item", **where), items, where),
        annotator=_who(cells, where),
        kind=kind,
        proposed=_set(cells, "proposed", kind, classes, where) if asked else (),
        excluded=_set(cells, "excluded", kind, classes, where) if kind == "excluded" else (),
        which=which[0] if which else None,
        time=time_of(cells.get("time"), column="time", **where),
        took_ms=seconds if seconds is not None else took,
        logged=unescaped(cells["id"]) if isinstance(cells.get("id"), str) else None,
    )


def _item(value: Any, items: dict[str, None], where: dict[str, Any]) -> str:
    name = str(value) if isinstance(value, (str, int)) else ""
    for spelling in (name, name.strip(), unescaped(name)):
        if spelling in items:
            return spelling
    remedy = suggest(name, items, "name items as the project does")
    raise InputError(f"there is no item {brief(value)}", remedy, column="item", **where)


def _who(cells: dict[str, Any], where: dict[str, Any]) -> str:
    value = column_of(cells, "annotator", **where)
    name = unescaped(value) if isinstance(value, str) else value
    return annotator_of(name, column="annotator", **where)


def _set(
    cells: dict[str, Any], column: str, kind: str, classes: Sequence[str], where: dict[str, Any]
) -> tuple[int, ...]:
    """Return the classes in a column; only a rule-out answer may name none or all but one."""
    value = column_of(cells, column, **where)
    value = [] if value is None else value
    if isinstance(value, str):
        value = [unescaped(value)] if unescaped(value) in classes else split(value)
    codes = codes_of(value, classes, column=column, **where)
    if not codes and kind != "excluded":
        remedy = f"name the classes that the {kind} is about"
        raise InputError("no class is named", remedy, column=column, **where)
    if len(codes) == len(classes):
        remedy = "leave at least one class out"
        raise InputError("every class is named", remedy, column=column, **where)
    return codes
