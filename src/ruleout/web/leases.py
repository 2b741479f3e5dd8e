"""Who is asked what: hands out questions, each to one annotator at a time.

An annotator's own open questions come first. Then free rounds of items in the project's order,
then rounds whose lease has expired (last, since an answer to those may still be on its way).
Gold questions come in between at the project's rate, each item once per annotator.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Executable, Row

from ruleout.labels.errors import brief
from ruleout.web import queries, users
from ruleout.web.errors import RefusedError
from ruleout.web.proposals import Proposer, chance
from ruleout.web.records import Question, Settings

__all__ = ["MOST", "Asking"]

#: The most questions somebody may have open through one request.
MOST = 100

_GOLD = 1  # tells the draw of "gold or not" from every other draw


@dataclass(frozen=True)
class Asking:
    """Asks one annotator, inside one transaction."""

    db: Connection
    settings: Settings
    proposer: Proposer
    user: int
    now: datetime

    def next(self, count: int) -> list[Question]:
        """Return up to `count` questions that are now this annotator's."""
        if not isinstance(count, int) or not 1 <= count <= MOST:
            raise RefusedError(f"{brief(count)} questions asked for", f"ask for 1 to {MOST}")
        users.locked(self.db, self.user)
        found = self._open(count)
        while len(found) < count and (slot := self._pick()) is not None:
            found.append(self._lease(slot))
        return found

    @property
    def _until(self) -> datetime:
        return self.now + timedelta(seconds=self.settings.lease_seconds)

    def _row(self, query: Executable, **values: Any) -> Row[Any] | None:
        return self.db.execute(query, {"user": self.user, **values}).first()

    # ------------------------------------------------------------------ what is theirs

    def _open(self, count: int) -> list[Question]:
        """Return the open questions; a lease that ran out begins anew."""
        rows = self.db.execute(queries.OPEN, {"user": self.user, "count": count}).all()
        return [_question(row, self._renewed(row)) for row in rows]

    def _renewed(self, row: Row[Any]) -> datetime:
        if row.expires > self.now:
            return row.expires  # type: ignore[no-any-return]
        self.db.execute(queries.RENEW, {"at_question": row.id, "expires": self._until})
        return self._until

    # ------------------------------------------------------------------ what is next

    def _pick(self) -> Row[Any] | None:
        """Take a round that needs this annotator, or a gold one in its stead."""
        slot = self._row(queries.FREE) or self._row(queries.EXPIRED, now=self.now)
        if slot is not None and self._gold_is_due():
            return self._gold() or slot
        return slot

    def _gold_is_due(self) -> bool:
        if not self.settings.gold_rate:
            return False
        last = self._row(queries.LAST_QUESTION)
        draw = (self.settings.seed, _GOLD, self.user, (last and last[0]) or 0)
        return chance(*draw) < self.settings.gold_rate

    def _gold(self) -> Row[Any] | None:
        """Take a round of a gold item, a further one where all are taken."""
        item = self._row(queries.GOLD_ITEM)
        if item is None:
            return None
        return self._row(queries.GOLD_SLOT, item=item.id, now=self.now) or self._further(item)

    def _further(self, item: Row[Any]) -> Row[Any]:
        number = self.db.execute(queries.LAST_ROUND, {"item": item.id}).scalar_one() + 1
        row = {"item": item.id, "round": number, "place": item.place, "needed": False, "test": True}
        return self.db.execute(queries.ADD_SLOT, row).one()

    # ------------------------------------------------------------------ the lease

    def _lease(self, slot: Row[Any]) -> Question:
        """Give the slot to this annotator, with the question they had there before, if any."""
        row = self._row(queries.QUESTION_AT, item=slot.item, round=slot.round) or self._ask(slot)
        held = {"question": row.id, "holder": self.user, "expires": self._until, "answer": None}
        self.db.execute(queries.HOLD, {"at_item": slot.item, "at_round": slot.round, **held})
        return _question(row, self._until)

    def _ask(self, slot: Row[Any]) -> Row[Any]:
        gold = None
        if slot.test:
            gold = self.db.execute(queries.GOLD_CLASS, {"item": slot.item}).scalar_one()
        drawn = self.proposer.proposal(slot.item, slot.round, gold)
        row = {
            "item": slot.item, "user": self.user, "round": slot.round, "gold": slot.test,
            "mode": self.settings.mode, "proposed": drawn.classes, "size": len(drawn.classes),
            "law": drawn.law, "seed": drawn.seed, "given": self.now,
        }  # fmt: skip
        return self.db.execute(queries.ADD_QUESTION, row).one()


def _question(row: Row[Any], expires: datetime) -> Question:
    return Question(
        id=row.id, item=row.item, user=row.user, round=row.round, mode=row.mode,
        proposed=row.proposed, law=row.law, seed=row.seed, gold=row.gold, expires=expires,
    )  # fmt: skip
