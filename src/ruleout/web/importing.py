"""Answers that were given elsewhere: Label Studio, or a plain table.

:func:`read_label_studio` and :func:`read_answers` return :class:`Earlier` rows that are checked
against the items and classes of the project.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any, Literal, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from ruleout.labels.classes import shown, unknown
from ruleout.labels.errors import InputError, brief, nearest
from ruleout.labels.row_files import cell_of, naming, parse_json, read_rows, split
from ruleout.web.answer_log import IMPORTED
from ruleout.web.entities import Item, Kind
from ruleout.web.names import check_name, suggest
from ruleout.web.spreadsheet import unescaped

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
    with naming(path):
        answers = list(_answers(path, items, classes, left_out))
        notes = [f"{left_out[0]} row(s) that do not count: left out."] if left_out[0] else []
        return distinct(answers, notes)


def _answers(
    path: Path, items: Sequence[str], classes: Sequence[str], left_out: list[int]
) -> Iterator[Earlier]:
    known = dict.fromkeys(items)
    for row, (line, cells) in enumerate(read_rows(path)):
        where: dict[str, Any] = {"row": row, "line": line}
        kind = cell_of(cells, "kind", **where)
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
        item=_item(cell_of(cells, "item", **where), items, where),
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
    value = cell_of(cells, "annotator", **where)
    name = unescaped(value) if isinstance(value, str) else value
    return annotator_of(name, column="annotator", **where)


def _set(
    cells: dict[str, Any], column: str, kind: str, classes: Sequence[str], where: dict[str, Any]
) -> tuple[int, ...]:
    """Return the classes in a column; only a rule-out answer may name none or all but one."""
    value = cell_of(cells, column, **where)
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


_DAY_MS = 86_400_000


@dataclass(frozen=True, kw_only=True)
class Earlier:
    """An answer that was given elsewhere, ready for the store.

    `id` follows from the content: importing a file twice brings the same answers, not new ones.
    `logged` is its id in the log it comes from, so that a project knows its own answers again.
    `law` says that nobody knows how proposals were drawn, so that no risk relies on it.
    """

    item: str
    annotator: str
    kind: Kind
    proposed: tuple[int, ...] = ()
    excluded: tuple[int, ...] = ()
    which: int | None = None
    time: datetime | None = None
    took_ms: int | None = None
    logged: str | None = None
    law: str = IMPORTED

    @property
    def id(self) -> str:
        """A name for the answer, the same whenever the same answer is read."""
        time = None if self.time is None else self.time.isoformat()
        content = [self.item, self.annotator, self.kind, self.proposed, self.excluded, self.which]
        digest = hashlib.sha256(json.dumps([*content, time]).encode())
        return f"import-{digest.hexdigest()[:32]}"


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Answers in the order of the file, and notes on what was left out."""

    answers: tuple[Earlier, ...]
    notes: tuple[str, ...] = ()


def distinct(answers: Iterable[Earlier], notes: Sequence[str] = ()) -> Imported:
    """Keep each answer once, and say how many were repeats."""
    kept: dict[str, Earlier] = {}
    total = 0
    for answer in answers:
        total += 1
        kept.setdefault(answer.id, answer)
    repeats = total - len(kept)
    more = [f"{repeats} answer(s) stood in the file twice: read once."] if repeats else []
    return Imported(answers=tuple(kept.values()), notes=(*notes, *more))


def codes_of(names: Any, classes: Sequence[str], **where: Any) -> tuple[int, ...]:
    """Return the positions of class names, each named once, in rising order.

    >>> codes_of(["dog", "cat"], ["cat", "dog", "bird"])
    (0, 1)
    """
    if not isinstance(names, (list, tuple)):
        raise InputError(f"{brief(names)} is not a list of classes", "give class names", **where)
    found = set()
    for name in names:
        label = name.strip() if isinstance(name, str) else name
        if not isinstance(label, str) or label not in classes:
            raise unknown(label, tuple(classes), **where)
        if classes.index(label) in found:
            raise InputError(f"class {brief(label)} appears twice", "name each class once", **where)
        found.add(classes.index(label))
    return tuple(sorted(found))


def annotator_of(value: Any, **where: Any) -> str:
    """Return who answered.

    >>> annotator_of(" ada ")
    'ada'
    """
    text = str(value).strip() if isinstance(value, str) or type(value) is int else ""
    return check_name(text, "annotator", "say who answered", longest=200, **where)


def time_of(value: Any, **where: Any) -> datetime | None:
    """Return a moment from ISO 8601 text; one without a zone is in UTC.

    >>> time_of("2026-01-02T03:04:05Z").isoformat()
    '2026-01-02T03:04:05+00:00'
    """
    if value is None or value == "":
        return None
    try:
        time = value if isinstance(value, datetime) else datetime.fromisoformat(value.strip())
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, TypeError, AttributeError, OverflowError):
        raise InputError(
            f"{brief(value)} is not a time", "write it like 2026-01-31T12:00:00Z", **where
        ) from None


def milliseconds(value: Any, factor: float, **where: Any) -> int | None:
    """Return how long an answer took; days are kept out, as somebody left the page open.

    >>> milliseconds("1.5", 1000), milliseconds(None, 1000), milliseconds(1e9, 1000)
    (1500, None, None)
    """
    if value is None or value == "":
        return None
    try:
        taken = float(value) * factor
    except (ValueError, TypeError, OverflowError):
        taken = math.nan
    if isinstance(value, bool) or not taken >= 0:
        raise InputError(f"{brief(value)} is not a duration", "give a number from 0", **where)
    return round(taken) if taken <= _DAY_MS else None


#: What a chosen choice says: it is this class; it is one of these; it is none of these.
Meaning: TypeAlias = Literal["which", "candidates", "excluded"]

_MOST_BYTES = 1 << 30


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

    Parameters
    ----------
    meaning
        ``which``: the choice is the class, so there may be only one. ``candidates``: the choices
        are what it may be. ``excluded``: they are what it is not.
    control
        The ``name`` of the ``<Choices>`` tag; needed where there are several.
    key
        Where in a task's ``data`` the item is; by default the first value that matches an item.
        Uploads, local files and URLs match an image by the end of their path, texts an item's text.
    skip_unknown
        Leave out tasks that match no item, with a note, instead of raising.

    Notes
    -----
    Cancelled annotations and empty ones become "skip". Predictions and drafts are not answers.

    Raises
    ------
    InputError
        With the task as its row.
    """
    path, left_out = Path(file), Counter[str]()
    with naming(path):
        tasks = _tasks(path)
        matcher = Matcher(items)
        control = control or _only_control(tasks)
        answers: list[Earlier] = []
        for row, task in enumerate(tasks):
            item = matcher.find(_dict(task.get("data"), "data", row), key, row, skip_unknown)
            if item is None:
                left_out["task(s) that match no item"] += 1
                continue
            answers.extend(_annotated(task, row, item, classes, meaning, control))
        notes = [f"{count} {reason}: left out." for reason, count in left_out.items()]
        return distinct(answers, notes)


def _tasks(path: Path) -> list[dict[str, Any]]:
    if path.stat().st_size > _MOST_BYTES:
        raise InputError("the file is larger than 1 GiB", "export fewer tasks at a time")
    tasks = parse_json(path.read_bytes())
    if not isinstance(tasks, list):
        raise InputError("the file is not a list of tasks", "export as JSON from Label Studio")
    for row, task in enumerate(tasks):
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            remedy = "export as JSON, not JSON-MIN, from Label Studio"
            raise InputError("this is not a task with data", remedy, row=row)
    return tasks


def _dict(value: Any, what: str, row: int) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{what} is {brief(value)}, not an object", "export it again", row=row)
    return value


def _list(value: Any, what: str, row: int) -> list[Any]:
    if not isinstance(value, list):
        raise InputError(f"{what} is {brief(value)}, not a list", "export it again", row=row)
    return value


def _annotations(task: dict[str, Any], row: int) -> Iterator[dict[str, Any]]:
    found = task.get("annotations", task.get("completions", []))  # the name before version 1
    for one in _list(found, "annotations", row):
        yield _dict(one, "an annotation", row)


def _results(annotation: dict[str, Any], row: int) -> Iterator[dict[str, Any]]:
    for one in _list(annotation.get("result", []), "result", row):
        if _dict(one, "a result", row).get("type") == "choices":
            yield one


def _only_control(tasks: list[dict[str, Any]]) -> str | None:
    names = {
        str(result.get("from_name"))
        for row, task in enumerate(tasks)
        for annotation in _annotations(task, row)
        for result in _results(annotation, row)
    }
    if len(names) > 1:
        raise InputError(
            f"there are {len(names)} sets of choices, {shown(sorted(names))}",
            "say with control=... which one holds the classes",
        )
    return names.pop() if names else None


def _annotated(
    task: dict[str, Any],
    row: int,
    item: str,
    classes: Sequence[str],
    meaning: Meaning,
    control: str | None,
) -> Iterator[Earlier]:
    for annotation in _annotations(task, row):
        chosen: list[Any] = []
        for result in _results(annotation, row):
            if str(result.get("from_name")) == control:
                value = _dict(result.get("value"), "value", row)
                chosen += _list(value.get("choices"), "choices", row)
        if annotation.get("was_cancelled") is True:
            chosen = []
        said = _said(codes_of(chosen, classes, row=row), classes, meaning, row)
        when = annotation.get("created_at")
        yield Earlier(
            item=item,
            annotator=_annotator(annotation.get("completed_by"), row),
            time=time_of(when, row=row, column="created_at"),
            took_ms=milliseconds(annotation.get("lead_time"), 1000, row=row, column="lead_time"),
            **said,
        )


def _said(
    codes: tuple[int, ...], classes: Sequence[str], meaning: Meaning, row: int
) -> dict[str, Any]:
    if not codes:
        return {"kind": "skip"}
    if meaning == "which":
        if len(codes) > 1:
            raise InputError(
                f"{len(codes)} classes are chosen, {shown([classes[code] for code in codes])}",
                "say with meaning=... whether they are candidates or excluded",
                row=row,
            )
        return {"kind": "which", "which": codes[0]}
    others = tuple(code for code in range(len(classes)) if code not in codes)
    if meaning == "excluded" and not others:
        raise InputError("every class is ruled out", "leave a class unchosen", row=row)
    return {"kind": "excluded", "excluded": codes if meaning == "excluded" else others}


def _annotator(value: Any, row: int) -> str:
    """Return an email address, a user name or a number, whichever the export has."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return annotator_of("label-studio" if value is None else value, row=row, column="completed_by")


_UPLOAD = re.compile("[0-9a-f]{8}-")  # what Label Studio puts before the name of an upload
_LONGEST = 4096  # characters of a path worth splitting up


class Matcher:
    """Finds items by name, by the end of a path, or by their text.

    Examples
    --------
    >>> matcher = Matcher([Item(name="pets/cat.png", kind="image", path="pets/cat.png")])
    >>> matcher.find({"image": "/data/upload/3/0a1b2c3d-cat.png"}, None, 0, False)
    'pets/cat.png'
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._names = {item.name for item in items}
        self._ends: dict[str, list[str]] = {}
        self._texts: dict[str, list[str]] = {}
        for item in items:
            if item.kind == "image":
                self._ends.setdefault(PurePosixPath(item.name).name, []).append(item.name)
            elif item.text is not None:
                self._texts.setdefault(item.text, []).append(item.name)

    def find(
        self, data: dict[str, Any], key: str | None, row: int, skip_unknown: bool
    ) -> str | None:
        """Return the name of the item that `data` is about; None if unknown and that is allowed."""
        if key is not None and key not in data:
            remedy = suggest(key, data, f"the keys are {shown(list(data))}")
            raise InputError(f"data has no key {key!r}", remedy, row=row)
        values = [data[key]] if key is not None else list(data.values())
        texts = [str(value) for value in values if isinstance(value, (str, int))]
        for text in texts:
            match = self._match(text, row)
            if match is not None:
                return match
        if skip_unknown:
            return None
        word = texts[0] if texts else ""
        remedy = suggest(PurePosixPath(word[-_LONGEST:]).name, self._names, "check the export")
        raise InputError(f"no item matches {brief(texts or values)}", remedy, row=row)

    def _match(self, text: str, row: int) -> str | None:
        for spelling in _spellings(text):
            if spelling in self._names:
                return spelling
        found = self._texts.get(text) or self._by_end(text)
        if len(found) > 1:
            problem = f"{brief(text)} may be any of {shown(found, 3)}"
            raise InputError(problem, "name items apart", row=row)
        return found[0] if found else None

    def _by_end(self, text: str) -> list[str]:
        """Return the images whose path shares the longest end with this one."""
        for spelling in _spellings(text):
            path = PurePosixPath(spelling)
            found = self._ends.get(path.name, [])
            if len(found) > 1:
                shared = [_shared(path, PurePosixPath(name)) for name in found]
                pairs = zip(found, shared, strict=True)
                found = [name for name, depth in pairs if depth == max(shared)]
            if found:
                return found
        return []


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


def _shared(one: PurePosixPath, other: PurePosixPath) -> int:
    depth = 0
    for a, b in zip(reversed(one.parts), reversed(other.parts), strict=False):
        if a != b:
            break
        depth += 1
    return depth
