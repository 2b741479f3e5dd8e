"""Answers that were given elsewhere: Label Studio, or a plain table."""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import parse_qs, unquote, urlsplit

from ruleout.labels import row_files
from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.web.entities import IMPORTED, Item, Kind
from ruleout.web.names import check_name, suggest
from ruleout.web.spreadsheet import unescaped

_KINDS = ("yes", "no", "which", "excluded", "skip")
_DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """An answer that was given elsewhere, ready for the store.

    `id` follows from the content: importing a file twice brings the same answers, not new ones.
    """

    item: str
    annotator: str
    kind: Kind
    proposed: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    which: int | None = None
    time: datetime | None = None
    took_ms: int | None = None
    logged: str | None = None  # its id in a log: a project knows its own answers again
    law: str = IMPORTED  # nobody knows how proposals were drawn, so no risk relies on it

    @property
    def id(self) -> str:
        time = None if self.time is None else self.time.isoformat()
        content = [self.item, self.annotator, self.kind, self.proposed, self.excluded, self.which]
        digest = hashlib.sha256(json.dumps([*content, time]).encode())
        return f"import-{digest.hexdigest()[:32]}"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Answers in the order of the file, and notes on what was left out."""

    answers: tuple[Earlier, ...]
    notes: tuple[str, ...] = ()


def _distinct(found: Sequence[Earlier], left_out: int, reason: str) -> Imported:
    """Keep each answer once, and say how many were repeats or left out."""
    kept: dict[str, Earlier] = {}
    for answer in found:
        kept.setdefault(answer.id, answer)
    notes = [f"{left_out} {reason}: left out."] if left_out else []
    if repeats := len(found) - len(kept):
        notes.append(f"{repeats} answer(s) occur in the file twice: read once.")
    return Imported(answers=tuple(kept.values()), notes=tuple(notes))


def _annotator(value: Any, column: str) -> str:
    text = str(value).strip() if isinstance(value, str) or type(value) is int else ""
    return check_name(text, "annotator", "say who answered", longest=200, column=column)


def _time(value: Any, column: str) -> datetime | None:
    """Return a moment from ISO 8601 text; one without a zone is in UTC."""
    if value is None or value == "":
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, AttributeError, OverflowError):
        problem = f"{brief(value)} is not a time"
        raise InputError(problem, "write it like 2026-01-31T12:00:00Z", column=column) from None


def _milliseconds(value: Any, factor: float, column: str) -> int | None:
    """Return how long an answer took; days are kept out, as somebody left the page open."""
    if value is None or value == "":
        return None
    try:
        taken = float(value) * factor
    except (ValueError, TypeError, OverflowError):
        taken = math.nan
    if isinstance(value, bool) or not taken >= 0:
        raise InputError(f"{brief(value)} is not a duration", "give a number from 0", column=column)
    return round(taken) if taken <= _DAY_MS else None


def read_answers(file: str | Path, items: Sequence[str], classes: Sequence[str]) -> Imported:
    """Read answers from CSV, TSV, JSONL or Parquet.

    Columns ``item``, ``annotator`` and ``kind`` must be there. ``proposed`` (of a yes or a no),
    ``excluded`` (of a rule-out answer) and ``which`` hold class names, in CSV separated by ``|``.
    ``time`` (ISO 8601), ``seconds`` and ``took_ms`` may be there. Where there is a column
    ``counts``, rows that do not count are left out, and so are undo rows. A column ``id``, which
    a log has, tells a project which answers are its own.
    """
    known = dict.fromkeys(items)
    plain = _plain if Path(file).suffix.lower() in (".csv", ".tsv") else lambda cells, _: cells
    found = list(
        row_files.map_rows(file, lambda _, cells: _answer(plain(cells, known), known, classes))
    )
    answers = [answer for answer in found if answer is not None]
    return _distinct(answers, len(found) - len(answers), "row(s) that do not count")


def _plain(cells: dict[str, Any], items: dict[str, None]) -> dict[str, Any]:
    """Undo what exports do to texts of CSV; an item may have been written without."""
    texts = {name: cells.get(name) for name in ("item", "annotator", "which", "id")}
    found = {name: unescaped(text) for name, text in texts.items() if isinstance(text, str)}
    return cells | {name: text for name, text in found.items() if name != "item" or text in items}


def _answer(
    cells: dict[str, Any], items: dict[str, None], classes: Sequence[str]
) -> Earlier | None:
    kind: Any = row_files.cell_of(cells, "kind")
    if kind == "undo" or cells.get("counts") in (False, "no", "false", "False", "0"):
        return None
    if not isinstance(kind, str) or kind not in _KINDS:
        remedy = nearest(kind, _KINDS, f"use one of {', '.join(_KINDS)}")
        raise InputError(f"unknown kind {brief(kind)}", remedy, column="kind")
    seconds = _milliseconds(cells.get("seconds"), 1000, "seconds")
    took = _milliseconds(cells.get("took_ms"), 1, "took_ms")
    which = _set(cells, "which", kind, classes) if kind == "which" else ()
    if len(which) > 1:
        raise InputError("which names several classes", "name one", column="which")
    return Earlier(
        item=_item(row_files.cell_of(cells, "item"), items),
        annotator=_annotator(row_files.cell_of(cells, "annotator"), "annotator"),
        kind=cast(Kind, kind),
        proposed=_set(cells, "proposed", kind, classes) if kind in ("yes", "no") else (),
        excluded=_set(cells, "excluded", kind, classes) if kind == "excluded" else (),
        which=which[0] if which else None,
        time=_time(cells.get("time"), "time"),
        took_ms=seconds if seconds is not None else took,
        logged=cells["id"] if isinstance(cells.get("id"), str) else None,
    )


def _item(value: Any, items: dict[str, None]) -> str:
    name = str(value) if isinstance(value, (str, int)) else ""
    for spelling in (name, name.strip()):
        if spelling in items:
            return spelling
    remedy = suggest(name, items, "name items as the project does")
    raise InputError(f"there is no item {brief(value)}", remedy, column="item")


def _set(cells: dict[str, Any], column: str, kind: str, classes: Sequence[str]) -> tuple[int, ...]:
    """Return the classes in a column; only a rule-out answer may name none or all but one."""
    value = row_files.cell_of(cells, column)
    try:
        if isinstance(value, str) and value in classes:
            return (classes.index(value),)
        codes = tuple(sorted(row_files.name_codes(row_files.names_in(value), tuple(classes))))
        if not codes and kind != "excluded":
            raise InputError("no class is named", f"name the classes that the {kind} is about")
        if len(codes) == len(classes):
            raise InputError("every class is named", "leave at least one class out")
    except InputError as error:
        error.column = column
        raise
    return codes


#: What a chosen choice says: it is this class; it is one of these; it is none of these.
Meaning: TypeAlias = Literal["which", "candidates", "excluded"]


def read_label_studio(
    file: str | Path,
    items: Sequence[Item],
    classes: Sequence[str],
    *,
    meaning: Meaning = "which",
    control: str | None = None,
    key: str | None = None,
    skip_unknown: bool = False,
) -> Imported:
    """Read the annotations of a Label Studio export.

    `control` is the ``name`` of the ``<Choices>`` tag, needed where there are several; `key` says
    where in a task's ``data`` the item is, by default in the first value that matches one.
    Cancelled annotations and empty ones become "skip". Predictions and drafts are not answers.
    """
    path, matcher, left_out = Path(file), Matcher(items), 0
    with row_files.naming(path):
        tasks = row_files.label_studio_tasks(path)
        control = control or _only_control(tasks)
        answers: list[Earlier] = []
        for row, task in enumerate(tasks):
            with row_files.at_row(row):
                item = matcher.find(task["data"], key, skip_unknown)
                left_out += item is None
                if item is not None:
                    answers += _annotated(task, item, classes, meaning, control)
        return _distinct(answers, left_out, "task(s) that match no item")


def _only_control(tasks: list[dict[str, Any]]) -> str | None:
    names: set[str] = set()
    for row, task in enumerate(tasks):
        with row_files.at_row(row):
            for _, _, chosen in row_files.label_studio_annotations(task):
                names.update(chosen)
    if len(names) > 1:
        problem = f"there are {len(names)} sets of choices, {shown(sorted(names))}"
        remedy = "name the one that holds the classes with"
        raise InputError(problem, remedy, argument="control=...")
    return names.pop() if names else None


def _annotated(
    task: dict[str, Any], item: str, classes: Sequence[str], meaning: Meaning, control: str | None
) -> Iterator[Earlier]:
    for annotation, who, choices in row_files.label_studio_annotations(task):
        chosen = [] if annotation.get("was_cancelled") is True else choices.get(control or "", [])
        yield Earlier(
            item=item,
            annotator=_annotator(who, "completed_by"),
            time=_time(annotation.get("created_at"), "created_at"),
            took_ms=_milliseconds(annotation.get("lead_time"), 1000, "lead_time"),
            **_said(sorted(row_files.name_codes(chosen, tuple(classes))), classes, meaning),
        )


def _said(codes: list[int], classes: Sequence[str], meaning: Meaning) -> dict[str, Any]:
    if not codes:
        return {"kind": "skip"}
    if meaning == "which":
        if len(codes) > 1:
            problem = f"{len(codes)} classes are chosen, {shown([classes[code] for code in codes])}"
            remedy = "say whether they are candidates or excluded, with"
            raise InputError(problem, remedy, argument="meaning=...")
        return {"kind": "which", "which": codes[0]}
    others = [code for code in range(len(classes)) if code not in codes]
    if meaning == "excluded" and not others:
        raise InputError("every class is ruled out", "leave a class unchosen")
    return {"kind": "excluded", "excluded": tuple(codes if meaning == "excluded" else others)}


_UPLOAD = re.compile("[0-9a-f]{8}-")  # what Label Studio puts before the name of an upload
_LONGEST = 4096  # characters of a path worth splitting up


class Matcher:
    """Finds items by name, by the end of a path, or by their text."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._names = {item.name for item in items}
        self._ends: dict[tuple[str, ...], list[str]] = {}
        self._texts: dict[str, list[str]] = {}
        for item in items:
            if item.kind == "image":
                parts = PurePosixPath(item.name).parts
                for place in range(len(parts)):
                    self._ends.setdefault(parts[place:], []).append(item.name)
            elif item.text is not None:
                self._texts.setdefault(item.text, []).append(item.name)
        self._longest = max(map(len, self._ends), default=1)

    def find(self, data: dict[str, Any], key: str | None, skip_unknown: bool) -> str | None:
        """Return the name of the item that `data` is about; None if unknown and that is allowed."""
        if key is not None and key not in data:
            remedy = suggest(key, data, f"the keys are {shown(list(data))}")
            raise InputError(f"data has no key {key!r}", remedy)
        values = [data[key]] if key is not None else list(data.values())
        texts = [str(value) for value in values if isinstance(value, (str, int))]
        match = next(filter(None, map(self._match, texts)), None)
        if match or skip_unknown:
            return match
        word = texts[0] if texts else ""
        remedy = suggest(PurePosixPath(word[-_LONGEST:]).name, self._names, "check the export")
        raise InputError(f"no item matches {brief(texts or values)}", remedy)

    def _match(self, text: str) -> str | None:
        spellings = list(_spellings(text))
        for spelling in spellings:
            if spelling in self._names:
                return spelling
        paths = (PurePosixPath(spelling).parts[-self._longest :] for spelling in spellings)
        ends = (self._ends.get(parts[at:]) for parts in paths for at in range(len(parts)))
        found = self._texts.get(text) or next(filter(None, ends), [])  # the longest end
        if len(found) > 1:
            raise InputError(f"{brief(text)} may be any of {shown(found, 3)}", "name items apart")
        return found[0] if found else None


def _spellings(text: str) -> Iterator[str]:
    """Yield a value as it is, then as the path of a URL, then without an upload's prefix."""
    yield text
    if len(text) > _LONGEST or "\n" in text:
        return
    try:
        parts = urlsplit(text)
    except ValueError:  # not even a broken URL
        return
    local = parse_qs(parts.query).get("d", []) if "local-files" in parts.path else []
    for path in (*local, unquote(parts.path).lstrip("/")):
        yield path
        folder, _, name = path.rpartition("/")
        if _UPLOAD.match(name):
            yield f"{folder}/{name[9:]}".lstrip("/")
