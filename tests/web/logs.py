"""Logs made for tests: one row at a time, or of a whole simulated team."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import numpy as np

from ruleout.labels import propose
from ruleout.web.entities import LogRow

CLASSES = ("cat", "dog", "bird", "fish")
START = datetime(2026, 1, 1, tzinfo=UTC)
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
