"""What becomes of a reply: it is recorded once, and counts if its question still holds the slot.

Whether an answer counts depends on the slot alone, never on the clock: a lease that ran out but
was not given away still counts, and however a clock jumps, a slot takes one answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row

from ruleout.labels.errors import brief
from ruleout.web import queries, replies
from ruleout.web.desk import Desk
from ruleout.web.errors import RefusedError
from ruleout.web.records import IMPORTED, Receipt, Reply
from ruleout.web.schema import key

__all__ = ["Answering", "answer_row"]


@dataclass(frozen=True)
class Answering:
    """Takes one reply of one annotator, who wants `hold` questions open after it."""

    desk: Desk
    reply: Reply
    hold: int = 0

    def receipt(self) -> Receipt:
        """Record the reply, unless it has been, and return its receipt."""
        replies.check(self.reply)
        known = self.desk.lock_for(self.reply.id)
        return self._recorded() if known is None else self._replayed(known)

    def _replayed(self, row: Row[Any]) -> Receipt:
        if row.by != self.desk.user or row.content != replies.content(self.reply):
            problem = f"the reply id {brief(self.reply.id)} has been used for another reply"
            raise RefusedError(problem, "give every reply an id of its own", reason="conflict")
        return Receipt(id=row.known, status=row.status, item=row.item, question=row.question)

    def _recorded(self) -> Receipt:
        if self.reply.kind == "undo":
            return self._undo()
        question = self._question()
        replies.check_against(self.reply, question, len(self.desk.settings.classes))
        return self._which(question) if self.reply.kind == "which" else self._answer(question)

    def _question(self) -> Row[Any]:
        number = key(self.reply.question)
        row = self._among_open(number) or self.desk.row(queries.QUESTION, question=number)
        if row is None:
            problem = f"there is no question {brief(self.reply.question)}"
            raise RefusedError(problem, "ask for the next question", reason="unknown")
        if row.user != self.desk.user:
            problem = f"question {row.id} was asked of somebody else"
            raise RefusedError(problem, "log in as who got it", reason="foreign")
        return row

    def _among_open(self, number: int) -> Row[Any] | None:
        """Look among the open questions, which are read anyway if some are to follow."""
        rows = self.desk.open(self.hold + 1) if self.hold else ()
        return next((row for row in rows if row.id == number), None)

    # ------------------------------------------------------------------ answers

    def _answer(self, question: Row[Any]) -> Receipt:
        late = question.held != question.id or question.answered is not None
        number = self._write(question, late=late)
        if not late and self.reply.kind == "skip":
            self.desk.hold(question, None)
        elif not late:
            self.desk.hold(question, question.id, number)
        self.desk.drop(question.id)
        return self._told("late" if late else "recorded", question)

    def _which(self, question: Row[Any]) -> Receipt:
        """Record which class it is; it counts with the "yes" that it belongs to."""
        yes = self.desk.row(queries.STANDING_ON, question=question.id, kind="yes")
        if yes is None:
            problem = f"question {question.id} has no 'yes' yet"
            raise RefusedError(problem, "answer 'yes' first", reason="conflict")
        told = self.desk.row(queries.STANDING_ON, question=question.id, kind="which")
        late = yes.late or told is not None
        self._write(question, late=late)
        return self._told("late" if late else "recorded", question)

    # ------------------------------------------------------------------ undo

    def _undo(self) -> Receipt:
        target = self.desk.row(queries.LAST_ANSWER) if self.reply.undoes is None else self._named()
        if target is None:
            self._write(None, status="nothing")
            return self._told("nothing", None)
        question = self.desk.db.execute(queries.QUESTION, {"question": target.question}).one()
        by = self._write(question, undoes=target.id)
        for number in (target.number, *self._followers(target)):
            self.desk.db.execute(queries.ADD_UNDONE, {"answer": number, "by": by})
        self._reopen(question, target)
        return self._told("recorded", question)

    def _named(self) -> Row[Any] | None:
        """Return the answer that the undo names, None if it has been taken back already."""
        row = self.desk.row(queries.REPLY, id=self.reply.undoes)
        theirs = row is not None and row.user == self.desk.user and row.status != IMPORTED
        if row is None or not theirs or row.kind == "undo":
            problem = f"there is no answer {brief(self.reply.undoes)} of yours to take back"
            raise RefusedError(problem, "name one of your own answers", reason="unknown")
        return self.desk.row(queries.STANDING, number=row.number)

    def _followers(self, target: Row[Any]) -> list[int]:
        """Return the "which" that falls with its "yes"."""
        if target.kind != "yes":
            return []
        on = {"user": self.desk.user, "question": target.question, "kind": "which"}
        return [row.number for row in self.desk.db.execute(queries.STANDING_ON, on)]

    def _reopen(self, question: Row[Any], target: Row[Any]) -> None:
        """Give the question back to its annotator, where the slot is theirs or free."""
        answered = question.answered == target.number
        skipped = target.kind == "skip" and question.held is None and not target.late
        if answered or skipped:
            self.desk.hold(question, question.id)
            self.desk.forget()

    # ------------------------------------------------------------------ rows

    def _write(
        self,
        question: Row[Any] | None,
        *,
        late: bool = False,
        status: str | None = None,
        undoes: str | None = None,
    ) -> int:
        about = None if question is None else question.id
        row = answer_row(self.reply, self.desk.user, about, self.desk.now) | {
            "undoes": undoes, "late": late, "status": status or ("late" if late else "recorded"),
        }  # fmt: skip
        return int(self.desk.db.execute(queries.ADD_ANSWER, row).scalar_one())

    def _told(self, status: Any, question: Row[Any] | None) -> Receipt:
        place = {} if question is None else {"item": question.item, "question": question.id}
        return Receipt(id=self.reply.id, status=status, **place)


def answer_row(reply: Reply, user: int, question: int | None, now: datetime) -> dict[str, Any]:
    """Return the row of a reply that counts."""
    return {
        "id": reply.id, "user": user, "question": question, "kind": reply.kind,
        "excluded": tuple(sorted(set(reply.excluded))), "which": reply.which, "undoes": None,
        "late": False, "status": "recorded", "took_ms": replies.took(reply.took_ms),
        "sent": replies.sent(reply.sent), "received": now, "content": replies.content(reply),
    }  # fmt: skip
