"""Brings answers in that were given elsewhere, each once, whatever they say.

An answer takes a free round that its item needs, so that it is not asked for again; else, or where
its annotator has had a round of the item, a further one that is not needed. A "skip" takes none.
A "which" goes with the "yes" of its annotator to a set that holds the class, if there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, and_, func, insert, or_, select

from ruleout.labels.classes import storable
from ruleout.labels.errors import brief
from ruleout.web.accounts import add_user, checked_name, folded
from ruleout.web.entities import IMPORTED, Brought, RefusedError, Settings
from ruleout.web.queries import hold, in_chunks
from ruleout.web.schema import answers, items, questions, slots, undone, users
from ruleout.web.turns import sent, took

if TYPE_CHECKING:  # its readers need pyarrow, which the store does without
    from ruleout.web.importing import Earlier

_Pairs: TypeAlias = "list[tuple[Earlier, _Place]]"


def bring(db: Connection, settings: Settings, given: Sequence[Earlier], now: datetime) -> Brought:
    """Add the answers that are new, and the people who are, inside one transaction."""
    fresh = _fresh(db, given)
    for one in fresh:
        _check(one, len(settings.classes))
    numbers = _item_numbers(db, fresh)
    who, added = _people(db, fresh, now)
    rounds = _Rounds(db, list(numbers.values()))
    found = {  # "which" comes last, when every "yes" has its place
        one.id: rounds.place(one, numbers[one.item], who[one.annotator])
        for one in sorted(fresh, key=lambda one: one.kind == "which")
    }
    pairs = [(one, found[one.id]) for one in fresh]
    if pairs:
        _write_questions(db, settings, pairs, now)
        _write_answers(db, pairs, now)
    return Brought(added=len(fresh), known=len(given) - len(fresh), users=added)


def _fresh(db: Connection, given: Sequence[Earlier]) -> list[Earlier]:
    """Return each answer once that is not there yet."""
    by_id: dict[str, Earlier] = {}
    for one in given:
        by_id.setdefault(one.id, one)
    logged = {one.logged for one in given if one.logged and storable(one.logged)}
    ids = [*by_id, *sorted(logged)]
    known = {row.id for row in in_chunks(db, select(answers.c.id), answers.c.id, ids)}
    return [one for number, one in by_id.items() if not known & {number, one.logged}]


def _check(one: Earlier, k: int) -> None:
    which = () if one.which is None else (one.which,)
    codes = (*one.proposed, *one.excluded, *which)
    most = {"yes": one.proposed, "no": one.proposed, "excluded": one.excluded}.get(one.kind, ())
    wrong = (
        one.kind not in ("yes", "no", "which", "excluded", "skip")
        or any(type(code) is not int or not 0 <= code < k for code in codes)
        or len(set(most)) == k
        or (one.kind in ("yes", "no") and not one.proposed)
        or (one.kind == "which") == (one.which is None)
    )
    if wrong:
        problem = f"the answer {brief(one.kind)} about {brief(one.item)} makes no sense here"
        raise RefusedError(problem, f"name classes 0 to {k - 1}, and not all of them")


def _item_numbers(db: Connection, fresh: Sequence[Earlier]) -> dict[str, int]:
    """Return the numbers of the items by name; locked, so that rounds are added in turn."""
    names = dict.fromkeys(one.item for one in fresh)
    query = select(items.c.id, items.c.name).with_for_update(key_share=True)
    rows = in_chunks(db, query, items.c.name, [name for name in names if storable(name)])
    found = {row.name: row.id for row in rows}
    for name in names:
        if name not in found:
            problem = f"there is no item {brief(name)}"
            raise RefusedError(problem, "name items as the project does", reason="unknown")
    return found


def _people(
    db: Connection, fresh: Sequence[Earlier], now: datetime
) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the numbers of the annotators by name; who is absent is added, disabled."""
    known = {row.folded: row.id for row in db.execute(select(users))}
    found, added = {}, []
    for name in dict.fromkeys(one.annotator for one in fresh):
        plain = folded(checked_name(name))
        if plain not in known:
            user = add_user(db, name, "annotator", now, disabled=True)
            known[plain] = user.id
            added.append(user.name)
        found[name] = known[plain]
    return found, tuple(added)


@dataclass
class _Place:
    """A round of an item for an annotator's answer."""

    item: int
    user: int
    round: int
    needed: bool | None = None  # by the item; None: there is no such round, as for a skip
    taker: str | None = None  # the id of the answer that fills it; None: it was filled before
    question: int | None = None


class _Rounds:
    """The rounds of some items: what is free, who has had one, what the last is."""

    def __init__(self, db: Connection, numbers: list[int]) -> None:
        free = select(slots.c.item, slots.c.round).where(slots.c.question.is_(None), slots.c.needed)
        free = free.order_by(slots.c.item, slots.c.round.desc()).with_for_update(key_share=True)
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        for row in in_chunks(db, free, slots.c.item, numbers):
            self._free[row.item].append(row.round)
        # Who skipped a round may take that back, and gets the same question there again.
        same = and_(slots.c.item == questions.c.item, slots.c.round == questions.c.round)
        asked = select(questions.c.item, questions.c.user).join(slots, same)
        asked = asked.where(or_(slots.c.needed, slots.c.test))
        rows = in_chunks(db, asked, questions.c.item, numbers)
        self._had = {(row.item, row.user) for row in rows}
        self._last: dict[int, int] = {}
        for table in (slots, questions):  # a skip has a question and no slot
            last = select(table.c.item, func.max(table.c.round).label("last"))
            for row in in_chunks(db, last.group_by(table.c.item), table.c.item, numbers):
                self._last[row.item] = max(row.last, self._last.get(row.item, 0))
        self._yes: defaultdict[tuple[int, int], list[tuple[_Place, tuple[int, ...]]]]
        self._yes = defaultdict(list)  # every imported "yes" that no "which" has followed
        query = (
            select(questions, answers.c.kind)
            .join(answers, answers.c.question == questions.c.id)
            .outerjoin(undone, undone.c.answer == answers.c.number)
            .where(questions.c.law == IMPORTED, undone.c.answer.is_(None))
            .where(answers.c.kind.in_(("yes", "which")))
        )
        said = list(in_chunks(db, query, questions.c.item, numbers))
        followed = {row.id for row in said if row.kind == "which"}
        for row in said:
            if row.id not in followed:
                place = _Place(row.item, row.user, row.round, question=row.id)
                self._yes[row.item, row.user].append((place, row.proposed))

    def place(self, one: Earlier, item: int, user: int) -> _Place:
        """Return the round that an answer takes, or that of the "yes" it goes with."""
        said = self._yes[item, user]
        if one.kind == "which":
            for number, (place, proposed) in enumerate(said):
                if one.which in proposed:
                    del said[number]
                    return place
        fills, free = one.kind != "skip", self._free[item]
        if fills and free and (item, user) not in self._had:
            self._had.add((item, user))
            place = _Place(item, user, free.pop(), needed=True, taker=one.id)
        else:
            self._last[item] += 1
            needed = False if fills else None
            place = _Place(item, user, self._last[item], needed=needed, taker=one.id)
        if one.kind == "yes":
            said.append((place, one.proposed))
        return place


def _write_questions(db: Connection, settings: Settings, pairs: _Pairs, now: datetime) -> None:
    """Write a question down for every place that is taken now."""
    modes = {"excluded": "rule-out", "skip": settings.mode}
    takers = [(one, place) for one, place in pairs if place.taker == one.id]
    rows: list[dict[str, Any]] = [
        {"item": place.item, "user": place.user, "round": place.round, "gold": False,
         "mode": modes.get(one.kind, "propose"), "proposed": tuple(sorted(set(one.proposed))),
         "size": len(set(one.proposed)), "law": IMPORTED, "seed": 0, "given": now}
        for one, place in takers
    ]  # fmt: skip
    query = insert(questions).returning(questions.c.id, sort_by_parameter_order=True)
    numbers = db.execute(query, rows).scalars() if rows else ()
    for (_, place), number in zip(takers, numbers, strict=True):
        place.question = number


def _write_answers(db: Connection, pairs: _Pairs, now: datetime) -> None:
    """Write the answers down, and fill the rounds."""
    rows: list[dict[str, Any]] = [
        {"id": one.id, "user": place.user, "question": place.question, "kind": one.kind,
         "excluded": tuple(sorted(set(one.excluded))), "which": one.which, "late": False,
         "status": IMPORTED, "took_ms": took(one.took_ms), "sent": sent(one.time),
         "received": now, "content": IMPORTED}
        for one, place in pairs
    ]  # fmt: skip
    query = insert(answers).returning(answers.c.number, sort_by_parameter_order=True)
    numbers = db.execute(query, rows).scalars().all()
    filled = [(place, number) for (one, place), number in zip(pairs, numbers, strict=True)
              if place.taker == one.id and place.needed is not None]  # fmt: skip
    further = [  # nobody is asked for them, so that their place in the order does not matter
        {"item": one.item, "round": one.round, "place": 0, "needed": False, "test": False}
        for one, _ in filled if not one.needed
    ]  # fmt: skip
    if further:
        db.execute(insert(slots), further)
    hold(db, [
        {"at_item": one.item, "at_round": one.round, "question": one.question,
         "holder": one.user, "expires": now, "answer": number}
        for one, number in filled
    ])  # fmt: skip
