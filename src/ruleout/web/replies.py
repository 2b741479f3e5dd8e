"""Whether a reply makes sense, before the store looks at what it answers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import get_args

from sqlalchemy import Row

from ruleout.labels.errors import brief
from ruleout.web.errors import RefusedError
from ruleout.web.records import Kind, Reply

__all__ = ["check", "check_against", "content", "sent", "storable", "took"]

_MOST = 100  # characters of a reply's id
_RESERVED = "import-"  # so that no reply can stand in for an answer that is yet to be imported
_KINDS = {"propose": ("yes", "no", "skip", "which"), "rule-out": ("excluded", "skip")}


def check(reply: Reply) -> None:
    """Raise unless the reply is well formed, whatever it answers."""
    for name, text in (("id", reply.id), ("undoes", reply.undoes)):
        if text is not None and not _is_id(text):
            problem = f"the reply's {name} is {brief(text)}"
            raise RefusedError(problem, f"use 1 to {_MOST} letters, digits and marks of ASCII")
    if str(reply.id).startswith(_RESERVED):
        problem = f"the reply's id begins with {_RESERVED!r}, as those of imported answers do"
        raise RefusedError(problem, "begin it otherwise")
    if reply.id is None or reply.kind not in get_args(Kind):
        raise RefusedError(f"there is no reply of kind {brief(reply.kind)}", "reload the page")
    for code in (*reply.excluded, *(() if reply.which is None else (reply.which,))):
        if type(code) is not int:
            raise RefusedError(f"there is no class {brief(code)}", "name classes by their numbers")
    extra = {
        "excluded": bool(reply.excluded) and reply.kind != "excluded",
        "which": reply.which is not None and reply.kind != "which",
        "undoes": reply.undoes is not None and reply.kind != "undo",
    }
    for name, is_wrong in extra.items():
        if is_wrong:
            raise RefusedError(f"a reply of kind {reply.kind!r} has no {name!r}", "leave it out")


def check_against(reply: Reply, question: Row[tuple[object, ...]], classes: int) -> None:
    """Raise unless the reply answers the question."""
    if reply.kind not in _KINDS[question.mode]:
        known = ", ".join(_KINDS[question.mode])
        raise RefusedError(f"{reply.kind!r} does not answer question {question.id}", f"use {known}")
    if reply.kind == "which" and reply.which not in question.proposed:
        problem = f"class {brief(reply.which)} is not in the proposed set"
        raise RefusedError(problem, "choose one of the classes that were proposed")
    if reply.kind == "excluded":
        _check_excluded(reply.excluded, classes)


def _check_excluded(excluded: tuple[int, ...], classes: int) -> None:
    for code in excluded:
        if not 0 <= code < classes:
            raise RefusedError(
                f"there is no class {brief(code)}", f"classes are 0 to {classes - 1}"
            )
    if not 1 <= len(set(excluded)) <= classes - 1:
        problem = f"{len(set(excluded))} of {classes} classes are ruled out"
        raise RefusedError(problem, f"rule out 1 to {classes - 1}, or skip")


def content(reply: Reply) -> str:
    """Return what the reply says as text; a copy sent again says the same."""
    said = [reply.kind, reply.question, sorted(set(reply.excluded)), reply.which, reply.undoes]
    return json.dumps(said)


def took(ms: int | None) -> int | None:
    """Return the time taken, None where a client's clock made no sense."""
    return ms if type(ms) is int and 0 <= ms < 2**31 else None


def sent(at: datetime | None) -> datetime | None:
    """Return when a client sent something, by its own clock; no zone means UTC."""
    if at is None or at.tzinfo is None:
        return at and at.replace(tzinfo=UTC)
    try:
        return at.astimezone(UTC)
    except OverflowError:  # at the edge of what a calendar can hold
        return None


def _is_id(text: object) -> bool:
    fits = isinstance(text, str) and 1 <= len(text) <= _MOST
    return fits and all("!" <= c <= "~" for c in str(text))


def storable(text: str | None) -> bool:
    """Tell whether both databases can hold the text: no NUL, no half of a surrogate pair."""
    return text is None or not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text)
