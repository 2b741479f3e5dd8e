"""Label Studio: the JSON that its export calls JSON, with results of type ``choices``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ruleout.labels.classes import shown
from ruleout.labels.errors import InputError, brief
from ruleout.labels.files.rows import parse_json
from ruleout.web.importing.earlier import (
    Earlier,
    Imported,
    annotator_of,
    codes_of,
    distinct,
    milliseconds,
    time_of,
)
from ruleout.web.importing.matching import Matcher
from ruleout.web.items.rows import placed
from ruleout.web.records import Item

__all__ = ["Meaning", "read_label_studio"]

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
    with placed(path):
        tasks = _tasks(path)
        matcher = Matcher(items)
        control = control or _only_control(tasks)
        answers: list[Earlier] = []
        for row, task in enumerate(tasks):
            item = matcher.find(_dict(task.get("data"), "data", row), key, row, skip_unknown)
            if item is None:
                left_out["task(s) that match no item"] += 1
                continue
            answers.extend(_answers(task, row, item, classes, meaning, control))
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
            raise InputError("this is no task with data", remedy, row=row)
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


def _answers(
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
            annotator=_who(annotation.get("completed_by"), row),
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


def _who(value: Any, row: int) -> str:
    """Return an email address, a user name or a number, whichever the export has."""
    if isinstance(value, dict):
        value = value.get("email") or value.get("username") or value.get("id")
    return annotator_of("label-studio" if value is None else value, row=row, column="completed_by")
