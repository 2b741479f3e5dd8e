"""An answer from elsewhere, checked, and what every reader of such answers needs."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ruleout.labels.classes import unknown
from ruleout.labels.errors import InputError, brief
from ruleout.web.answer_log import IMPORTED
from ruleout.web.items.names import check_name
from ruleout.web.records import Kind

__all__ = ["Earlier", "Imported", "annotator_of", "codes_of", "distinct", "milliseconds", "time_of"]

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
        raise InputError(f"{brief(names)} is no list of classes", "give class names", **where)
    found = set()
    for name in names:
        label = name.strip() if isinstance(name, str) else name
        if not isinstance(label, str) or label not in classes:
            raise unknown(label, tuple(classes), **where)
        if classes.index(label) in found:
            raise InputError(f"class {brief(label)} stands twice", "name each class once", **where)
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
            f"{brief(value)} is no time", "write it like 2026-01-31T12:00:00Z", **where
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
        raise InputError(f"{brief(value)} is no duration", "give a number from 0", **where)
    return round(taken) if taken <= _DAY_MS else None
