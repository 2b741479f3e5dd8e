"""Logs made for tests: one row at a time, or of a whole simulated team."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np

from ruleout.labels import propose
from ruleout.web.answer_log import AnswerLog
from ruleout.web.entities import LogRow, Settings

CLASSES = ("cat", "dog", "bird", "fish")
NAMES = ["a", "b", "c", "d", "e", "f", "g"]
START = datetime(2026, 1, 1, tzinfo=UTC)
_START = int(START.timestamp()) * 1_000_000
_numbers = count(1)


def row(
    item: str, kind: Any, about: tuple[int, ...] = (), user: str = "ada", **more: Any
) -> LogRow:
    """Make a row of the log; `about` is what the answer is about, whatever its kind."""
    number = next(_numbers)
    given: dict[str, Any] = {
        "id": f"answer-{number}",
        "number": number,
        "item": 0,
        "item_name": item,
        "user": sum(map(ord, user)),
        "user_name": user,
        "round": 0,
        "kind": kind,
        "mode": "rule-out" if kind == "excluded" else "propose",
        "proposed": about if kind in ("yes", "no", "skip") else (),
        "law": "released",
        "seed": 7,
        "excluded": about if kind == "excluded" else (),
        "which": about[0] if kind == "which" else None,
        "undoes": None,
        "gold": False,
        "late": False,
        "counts": kind != "undo",
        "took_ms": 1000,
        "sent": START + timedelta(seconds=number),
        "received": START + timedelta(seconds=number),
    }
    return LogRow(**(given | more))


def log_of(
    rows: Sequence[LogRow],
    k: int | Sequence[str] = CLASSES,
    items: Sequence[str] = (),
    gold: Mapping[str, int] | None = None,
) -> AnswerLog:
    """Make the log that these rows would be read as; `k` is the classes or how many there are."""
    classes = tuple(f"class {n}" for n in range(k)) if isinstance(k, int) else tuple(k)
    names = list(dict.fromkeys([*items, *(one.item_name for one in rows)]))
    number = {name: at for at, name in enumerate(names)}
    people = list(dict.fromkeys(one.user_name for one in rows))

    def micro(at: datetime | None) -> int | None:
        return None if at is None else (at - START) // timedelta(microseconds=1) + _START

    made = [
        vars(one)
        | {
            "question": 1,
            "item": number[one.item_name],
            "user": people.index(one.user_name),
            "proposed": json.dumps(one.proposed),
            "excluded": json.dumps(one.excluded),
            "undone": None if one.counts or one.late or one.kind == "undo" else 0,
            "sent": micro(one.sent),
            "received": micro(one.received),
        }
        for one in rows
    ]
    columns = (*LogRow.__dataclass_fields__, "undone", "question")
    known = gold or {}
    return AnswerLog(
        {column: [one[column] for one in made] for column in columns},
        Settings(classes=classes),
        list(enumerate(people)),
        [(at, name, known.get(name)) for name, at in number.items()],
    )


def simulated(
    truth: list[int],
    users: tuple[str, ...],
    k: int,
    *,
    errors: float = 0.0,
    seed: int = 0,
    gold: bool = False,
) -> list[LogRow]:
    """Ask every user about every item, each with a fresh set; answers err at a rate."""
    rng = np.random.default_rng(seed)
    rows = []
    for turn, user in enumerate(users):
        sets = propose(len(truth), k, "released", rng).excluded
        for item, (y, mask) in enumerate(zip(truth, sets, strict=True)):
            yes = bool(mask[y]) != bool(rng.random() < errors)
            about = tuple(int(code) for code in np.flatnonzero(mask))
            name = f"item {item}"
            rows.append(row(name, "yes" if yes else "no", about, user, round=turn, gold=gold))
    return rows


#: A small log with every kind of answer; ``e`` is contradicted, ``g`` only a test.
LOG = [
    row("a", "no", (0, 1)),
    row("b", "yes", (0, 1)),
    row("c", "excluded", (3,)),
    row("c", "no", (0,), "bob", round=1),
    row("d", "yes", (1, 2)),
    row("d", "which", (2,)),
    row("e", "no", (0, 1)),
    row("e", "no", (2, 3), "bob", round=1),
    row("f", "skip", (0,)),
    row("f", "no", (1,), counts=False),
    row("f", "undo"),
    row("g", "no", (0,), gold=True),
]
