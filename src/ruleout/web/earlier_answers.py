"""Brings answers in that were given elsewhere, each once, whatever they say.

An answer takes a free round that its item needs, so that it is not asked for again; else, or where
its annotator has had a round of the item, a further one that is not needed. A "skip" takes none.
A "which" goes with the "yes" of its annotator to a set that holds the class, if there is one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, and_, func, insert, or_, select

from ruleout.labels.classes import storable
from ruleout.labels.errors import brief
from ruleout.web.accounts import add_user, checked_name, folded
from ruleout.web.entities import IMPORTED, Brought, RefusedError, Settings
from ruleout.web.queries import hold, in_chunks
from ruleout.web.schema import answers, questions, slots, undone
from ruleout.web.schema import items as item_table
from ruleout.web.schema import users as people
from ruleout.web.turns import sent, took

if TYPE_CHECKING:
    from ruleout.web.importing import Earlier


_Pairs: TypeAlias = "list[tuple[Earlier, Place]]"


@dataclass(frozen=True)
class Bringing:
    """Imports answers, inside one transaction."""

    db: Connection
    settings: Settings
    now: datetime

    def bring(self, given: Sequence[Earlier]) -> Brought:
        """Add the answers that are new, and the people who are."""
        fresh = self._fresh(given)
        for one in fresh:
            _check(one, len(self.settings.classes))
        items = self._items(fresh)
        who, added = self._people(fresh)
        pairs = self._placed(fresh, items, who)
        if pairs:
            self._ask(pairs)
            self._answer(pairs)
        return Brought(added=len(fresh), known=len(given) - len(fresh), users=added)

    # ------------------------------------------------------------------ what is meant

    def _fresh(self, given: Sequence[Earlier]) -> list[Earlier]:
        """Return each answer once that is not there yet."""
        by_id: dict[str, Earlier] = {}
        for one in given:
            by_id.setdefault(one.id, one)
        logged = {one.logged for one in given if one.logged and storable(one.logged)}
        ids = [*by_id, *sorted(logged)]
        known = {row.id for row in in_chunks(self.db, select(answers.c.id), answers.c.id, ids)}
        return [one for number, one in by_id.items() if not known & {number, one.logged}]

    def _items(self, fresh: Sequence[Earlier]) -> dict[str, int]:
        """Return the numbers of the items by name; locked, so that rounds are added in turn."""
        names = dict.fromkeys(one.item for one in fresh)
        query = select(item_table.c.id, item_table.c.name).with_for_update(key_share=True)
        kept = [name for name in names if storable(name)]
        found = {row.name: row.id for row in in_chunks(self.db, query, item_table.c.name, kept)}
        for name in names:
            if name not in found:
                problem = f"there is no item {brief(name)}"
                raise RefusedError(problem, "name items as the project does", reason="unknown")
        return found

    def _people(self, fresh: Sequence[Earlier]) -> tuple[dict[str, int], tuple[str, ...]]:
        """Return the numbers of the annotators by name; who is absent is added, disabled."""
        known = {row.folded: row.id for row in self.db.execute(select(people))}
        found, added = {}, []
        for name in dict.fromkeys(one.annotator for one in fresh):
            plain = folded(checked_name(name))
            if plain not in known:
                user = add_user(self.db, name, "annotator", self.now, disabled=True)
                known[plain] = user.id
                added.append(user.name)
            found[name] = known[plain]
        return found, tuple(added)

    def _placed(
        self, fresh: Sequence[Earlier], items: dict[str, int], who: dict[str, int]
    ) -> _Pairs:
        """Find a place for each answer; "which" comes last, when every "yes" has its own."""
        rounds = Rounds(self.db, items.values())
        found: dict[str, Place] = {}
        for one in sorted(fresh, key=lambda one: one.kind == "which"):
            item, user = items[one.item], who[one.annotator]
            place = rounds.of_yes(item, user, one.which) if one.kind == "which" else None
            place = place or rounds.take(item, user, one.id, fills=one.kind != "skip")
            if one.kind == "yes":
                rounds.said_yes(place, one.proposed)
            found[one.id] = place
        return [(one, found[one.id]) for one in fresh]

    # ------------------------------------------------------------------ what is written

    def _ask(self, pairs: _Pairs) -> None:
        """Write a question down for every place that is taken now."""
        takers = [(one, place) for one, place in pairs if place.taker == one.id]
        rows = [self._question(one, place) for one, place in takers]
        query = insert(questions).returning(questions.c.id, sort_by_parameter_order=True)
        numbers = self.db.execute(query, rows).scalars() if rows else ()
        for (_, place), number in zip(takers, numbers, strict=True):
            place.question = number

    def _question(self, one: Earlier, place: Place) -> dict[str, Any]:
        modes = {"excluded": "rule-out", "skip": self.settings.mode}
        proposed = tuple(sorted(set(one.proposed)))
        return {
            "item": place.item, "user": place.user, "round": place.round, "gold": False,
            "mode": modes.get(one.kind, "propose"), "proposed": proposed, "size": len(proposed),
            "law": IMPORTED, "seed": 0, "given": self.now,
        }  # fmt: skip

    def _answer(self, pairs: _Pairs) -> None:
        """Write the answers down, and fill the rounds."""
        query = insert(answers).returning(answers.c.number, sort_by_parameter_order=True)
        rows = [self._row(one, place) for one, place in pairs]
        numbers = self.db.execute(query, rows).scalars().all()
        takers = [(place, number) for (one, place), number in zip(pairs, numbers, strict=True)
                  if place.taker == one.id and place.needed is not None]  # fmt: skip
        further = [self._further(place) for place, _ in takers if not place.needed]
        if further:
            self.db.execute(insert(slots), further)
        if takers:
            hold(self.db, [self._held(place, number) for place, number in takers])

    def _row(self, one: Earlier, place: Place) -> dict[str, Any]:
        return {
            "id": one.id, "user": place.user, "question": place.question, "kind": one.kind,
            "excluded": tuple(sorted(set(one.excluded))), "which": one.which, "late": False,
            "status": IMPORTED, "took_ms": took(one.took_ms),
            "sent": sent(one.time), "received": self.now, "content": IMPORTED,
        }  # fmt: skip

    def _further(self, place: Place) -> dict[str, Any]:
        """Return a round that nobody is asked for, so that its place in the order is no matter."""
        row = {"item": place.item, "round": place.round, "place": 0}
        return {**row, "needed": False, "test": False}

    def _held(self, place: Place, number: int) -> dict[str, Any]:
        return {
            "at_item": place.item, "at_round": place.round, "question": place.question,
            "holder": place.user, "expires": self.now, "answer": number,
        }  # fmt: skip


def _check(one: Earlier, k: int) -> None:
    """Raise unless the answer makes sense in a project of k classes."""
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


_CHUNK = 1000  # values in one statement; databases allow some ten thousand


@dataclass
class Place:
    """A round of an item for an annotator's answer.

    `taker` is the id of the answer that fills it, None where it was filled before. `needed` says
    whether the item needs the round, None that there is no such round, as for a skip.
    """

    item: int
    user: int
    round: int
    needed: bool | None = None
    taker: str | None = None
    question: int | None = None


class Rounds:
    """The rounds of some items: what is free, who has had one, what the last is."""

    def __init__(self, db: Connection, items: Iterable[int]) -> None:
        self._items = list(items)
        self._free: defaultdict[int, list[int]] = defaultdict(list)
        self._last: dict[int, int] = {}
        self._yes: defaultdict[tuple[int, int], list[tuple[Place, tuple[int, ...]]]]
        self._yes = defaultdict(list)
        self._read_slots(db)
        self._read_yes(db)

    def _read_slots(self, db: Connection) -> None:
        free = select(slots.c.item, slots.c.round).where(slots.c.question.is_(None), slots.c.needed)
        free = free.order_by(slots.c.item, slots.c.round.desc()).with_for_update(key_share=True)
        for row in in_chunks(db, free, slots.c.item, self._items):
            self._free[row.item].append(row.round)
        # Who skipped a round may take that back, and gets the same question there again.
        same = and_(slots.c.item == questions.c.item, slots.c.round == questions.c.round)
        asked = select(questions.c.item, questions.c.user).join(slots, same)
        asked = asked.where(or_(slots.c.needed, slots.c.test))
        rows = in_chunks(db, asked, questions.c.item, self._items)
        self._had = {(row.item, row.user) for row in rows}
        for table in (slots, questions):  # a skip has a question and no slot
            last = select(table.c.item, func.max(table.c.round).label("last"))
            for row in in_chunks(db, last.group_by(table.c.item), table.c.item, self._items):
                self._last[row.item] = max(row.last, self._last.get(row.item, 0))

    def _read_yes(self, db: Connection) -> None:
        """Find every imported "yes" that no "which" has followed."""
        query = (
            select(questions, answers.c.kind)
            .join(answers, answers.c.question == questions.c.id)
            .outerjoin(undone, undone.c.answer == answers.c.number)
            .where(questions.c.law == IMPORTED, undone.c.answer.is_(None))
            .where(answers.c.kind.in_(("yes", "which")))
        )
        rows = list(in_chunks(db, query, questions.c.item, self._items))
        followed = {row.id for row in rows if row.kind == "which"}
        for row in rows:
            if row.id not in followed:
                self.said_yes(Place(row.item, row.user, row.round, question=row.id), row.proposed)

    def take(self, item: int, user: int, taker: str, *, fills: bool) -> Place:
        """Take a free round, or make a further one."""
        free = self._free[item]
        if fills and free and (item, user) not in self._had:
            self._had.add((item, user))
            return Place(item, user, free.pop(), needed=True, taker=taker)
        self._last[item] += 1
        needed = False if fills else None
        return Place(item, user, self._last[item], needed=needed, taker=taker)

    def said_yes(self, place: Place, proposed: tuple[int, ...]) -> None:
        """Remember a "yes", which a "which" may follow."""
        self._yes[place.item, place.user].append((place, proposed))

    def of_yes(self, item: int, user: int, which: int | None) -> Place | None:
        """Return where a "yes" to a set with this class stands, once."""
        said = self._yes[item, user]
        for number, (place, proposed) in enumerate(said):
            if which in proposed:
                del said[number]
                return place
        return None
