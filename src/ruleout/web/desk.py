"""What one annotator does inside one transaction: read once, written at the end.

Round trips to the database are what a turn costs, so open questions are read once for answering
and asking, and slots are written together.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Executable, Row

from ruleout.web import bulk, queries, users
from ruleout.web.proposals import Proposer
from ruleout.web.records import Question, Settings

__all__ = ["Desk", "question_of"]


class Desk:
    """One annotator at work: their open questions, and the slots that change hands."""

    def __init__(
        self, db: Connection, settings: Settings, proposer: Proposer, user: int, now: datetime
    ) -> None:
        self.db = db
        self.settings = settings
        self.proposer = proposer
        self.user = user
        self.now = now
        self.until = now + timedelta(seconds=settings.lease_seconds)
        self._slots: list[dict[str, Any]] = []
        self._open: list[Row[Any]] | None = None

    def row(self, query: Executable, **values: Any) -> Row[Any] | None:
        """Return the first row."""
        return self.db.execute(query, {"user": self.user, **values}).first()

    def lock(self) -> None:
        """Let nobody else act in the annotator's name until the transaction ends."""
        users.locked(self.db, self.user)

    def lock_for(self, reply: str) -> Row[Any] | None:
        """Lock, and return what was recorded under the id of a reply."""
        row = users.allowed(self.row(queries.SENDER, id=reply), self.user)
        return row if row.known is not None else None

    # ------------------------------------------------------------------ open questions

    def open(self, count: int) -> list[Row[Any]]:
        """Return the first open questions, `count` of them at most."""
        if self._open is None:
            self.write()
            query = {"user": self.user, "count": count}
            self._open = list(self.db.execute(queries.OPEN, query))
        return self._open[:count]

    def drop(self, question: int) -> None:
        """Leave out a question that was answered just now."""
        if self._open is not None:
            self._open = [row for row in self._open if row.id != question]

    def forget(self) -> None:
        """Have the open questions read again, since others may be open now."""
        self._open = None

    # ------------------------------------------------------------------ slots

    def hold(self, place: Any, question: int | None, answer: int | None = None) -> None:
        """Give the slot of a question to this annotator; to nobody where there is none."""
        mine = question is not None
        self._slots.append({
            "at_item": place.item, "at_round": place.round, "question": question,
            "holder": self.user if mine else None, "expires": self.until if mine else None,
            "answer": answer,
        })  # fmt: skip

    def still_open(self, row: Row[Any]) -> Question:
        """Return an open question; a lease that ran out begins anew."""
        if row.expires > self.now:
            return question_of(row._mapping, row.expires)
        self.hold(row, row.id)
        return question_of(row._mapping, self.until)

    def write(self) -> None:
        """Write down what changed hands."""
        bulk.hold(self.db, self.changed())

    def changed(self) -> list[dict[str, Any]]:
        """Return what changed hands, for who writes it down."""
        changed, self._slots = self._slots, []
        return changed


_OF_QUESTION = ("id", "item", "user", "round", "mode", "proposed", "law", "seed", "gold")


def question_of(row: Mapping[Any, Any], expires: datetime) -> Question:
    """Return the question of a row."""
    return Question(expires=expires, **{name: row[name] for name in _OF_QUESTION})
