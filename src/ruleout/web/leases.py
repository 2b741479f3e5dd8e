"""Who is asked what: hands out questions, each to one annotator at a time.

An annotator's own open questions come first. Then free rounds of items in the project's order,
then rounds whose lease has expired (last, since an answer to those may still be on its way).
Gold questions come in between at the project's rate, each item once per annotator.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ruleout.web import queries
from ruleout.web.desk import Desk, question_of
from ruleout.web.proposals import Proposal, chance
from ruleout.web.records import Mode, Question, Settings

__all__ = ["MOST", "Asking", "gold_is_due", "question_row"]

#: The most questions somebody may have open through one request.
MOST = 100

_GOLD = 1  # tells the draw of "gold or not" from every other draw


@dataclass(frozen=True)
class Asking:
    """Asks one annotator, who is locked."""

    desk: Desk

    def next(self, count: int) -> list[Question]:
        """Return up to `count` questions that are now this annotator's."""
        found = [self.desk.still_open(row) for row in self.desk.open(count)]
        while len(found) < count and (slot := self._pick()) is not None:
            found.append(self._lease(slot))
        return found

    # ------------------------------------------------------------------ what is next

    def _pick(self) -> Row[Any] | None:
        """Take a round that needs this annotator, or a gold one in its stead."""
        desk = self.desk
        slot = desk.row(queries.FREE) or desk.row(queries.EXPIRED, now=desk.now)
        if slot is not None and self._gold_is_due():
            return self._gold() or slot
        return slot

    def _gold_is_due(self) -> bool:
        settings = self.desk.settings
        if not settings.gold_rate:
            return False
        last = self.desk.row(queries.LAST_QUESTION)
        return gold_is_due(settings, self.desk.user, last and last[0])

    def _gold(self) -> Row[Any] | None:
        """Take a round of a gold item, a further one where all are taken."""
        item = self.desk.row(queries.GOLD_ITEM)
        if item is None:
            return None
        taken = self.desk.row(queries.GOLD_SLOT, item=item.id, now=self.desk.now)
        return taken or self._further(item)

    def _further(self, item: Row[Any]) -> Row[Any]:
        number = self.desk.db.execute(queries.LAST_ROUND, {"item": item.id}).scalar_one() + 1
        row = {"item": item.id, "round": number, "place": item.place, "needed": False, "test": True}
        return self.desk.db.execute(queries.ADD_SLOT, row).one()

    # ------------------------------------------------------------------ the lease

    def _lease(self, slot: Row[Any]) -> Question:
        """Give the slot to this annotator, with the question they had there before, if any."""
        if slot.earlier is None:
            question = self._ask(slot)
        else:
            row = self.desk.db.execute(queries.QUESTION, {"question": slot.earlier}).one()
            question = question_of(row._mapping, self.desk.until)
        self.desk.hold(slot, question.id)
        self.desk.write()
        return question

    def _ask(self, slot: Row[Any]) -> Question:
        desk, gold = self.desk, None
        if slot.test:
            gold = desk.db.execute(queries.GOLD_CLASS, {"item": slot.item}).scalar_one()
        drawn = desk.proposer.proposal(slot.item, slot.round, gold)
        row = question_row(slot, desk.user, drawn, desk.settings.mode, desk.now)
        number = desk.db.execute(queries.ADD_QUESTION, row).scalar_one()
        return question_of(row | {"id": number}, desk.until)


def gold_is_due(settings: Settings, user: int, last: int | None) -> bool:
    """Tell whether the question after the user's last one is a gold one."""
    return chance(settings.seed, _GOLD, user, last or 0) < settings.gold_rate


def question_row(
    slot: Row[Any], user: int, drawn: Proposal, mode: Mode, now: datetime
) -> dict[str, Any]:
    """Return the row of a question about the item of a slot."""
    return {
        "item": slot.item, "user": user, "round": slot.round, "gold": slot.test, "mode": mode,
        "proposed": drawn.classes, "size": len(drawn.classes), "law": drawn.law,
        "seed": drawn.seed, "given": now,
    }  # fmt: skip
