"""Reads the answer log, row by row, and checks that it agrees with the slots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, Row, and_, or_, select

from ruleout.web.records import LogRow
from ruleout.web.schema import answers, items, questions, slots, undone, users

__all__ = ["disagreements", "rows"]


def rows(db: Connection) -> Iterator[LogRow]:
    """Yield every answer in the order of arrival; an undo that found nothing says nothing."""
    query = (
        select(
            answers, questions.c.item, items.c.name.label("item_name"),
            users.c.name.label("user_name"), questions.c.round, questions.c.mode,
            questions.c.proposed, questions.c.law, questions.c.seed, questions.c.gold, _counts,
        )
        .join(questions, answers.c.question == questions.c.id)
        .join(items, questions.c.item == items.c.id)
        .join(users, answers.c.user == users.c.id)
        .outerjoin(undone, undone.c.answer == answers.c.number)
        .order_by(answers.c.number)
    )  # fmt: skip
    for row in db.execute(query.execution_options(yield_per=1000)):
        yield _logged(row)


_counts = and_(~answers.c.late, undone.c.answer.is_(None), answers.c.kind != "undo").label("counts")

#: A "which" follows the "yes" that fills its round; one that was imported may stand alone.
_alone = and_(answers.c.kind == "which", questions.c.size == 0)
_fills = or_(answers.c.kind.in_(("yes", "no", "excluded")), _alone)


def _logged(row: Row[Any]) -> LogRow:
    return LogRow(
        id=row.id, number=row.number, item=row.item, item_name=row.item_name, user=row.user,
        user_name=row.user_name, round=row.round, kind=row.kind, mode=row.mode,
        proposed=row.proposed, law=row.law, seed=row.seed, excluded=row.excluded,
        which=row.which, undoes=row.undoes, gold=row.gold, late=row.late, counts=bool(row.counts),
        took_ms=row.took_ms, sent=row.sent, received=row.received,
    )  # fmt: skip


def disagreements(db: Connection) -> list[str]:
    """Return where log and slots disagree; empty: every answer that counts has its slot."""
    counted = (
        select(answers.c.number, answers.c.id, questions.c.item, questions.c.round)
        .join(questions, answers.c.question == questions.c.id)
        .outerjoin(undone, undone.c.answer == answers.c.number)
        .where(_counts, _fills)
        .subquery()
    )
    same = and_(slots.c.item == counted.c.item, slots.c.round == counted.c.round)
    astray = select(counted.c.id).outerjoin(slots, same & (slots.c.answer == counted.c.number))
    hollow = select(slots.c.answer).outerjoin(counted, slots.c.answer == counted.c.number)
    lost = db.execute(astray.where(slots.c.item.is_(None))).scalars()
    held = slots.c.answer.is_not(None), counted.c.number.is_(None)
    return [f"answer {one} counts but has no slot" for one in lost] + [
        f"a slot holds answer {one}, which does not count"
        for one in db.execute(hollow.where(*held)).scalars()
    ]
