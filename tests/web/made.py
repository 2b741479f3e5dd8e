"""Small projects, replies and moments for the tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Protocol

from ruleout.web import Item, LogRow, Receipt, Reply, Store, User
from ruleout.web.store import _lots

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_NUMBERS = count()

#: How items get their numbers outside of the tests.
sparse_lots = _lots


class Make(Protocol):
    """Makes a project."""

    def __call__(self, items: int | list[Item] = 5, **settings: Any) -> Store:
        """Make it of so many items, or of these; settings by name."""


def make_items(n: int, gold: int = 0) -> list[Item]:
    """Make n items, the first `gold` of them of a known class."""
    return [
        Item(name=f"{i}.png", kind="image", path=f"{i}.png", gold=i % 6 if i < gold else None)
        for i in range(n)
    ]


def at(seconds: float) -> datetime:
    """Return a moment so long after the start."""
    return START + timedelta(seconds=seconds)


def said(kind: Any, question: int | None = None, **more: Any) -> Reply:
    """Make a reply with an id of its own."""
    return Reply(**{"id": f"reply-{next(_NUMBERS)}", "kind": kind, "question": question, **more})


def asked_and_said(store: Store, user: User, kind: Any = "no", now: datetime = START) -> Receipt:
    """Ask for one question and answer it."""
    question = store.next(user, 1, now)[0]
    return store.answer(user, said(kind, question.id), now)


def counted(store: Store) -> list[LogRow]:
    """Return the answers that stand and fill a round."""
    return [row for row in store.log() if row.counts and row.kind in ("yes", "no", "excluded")]
