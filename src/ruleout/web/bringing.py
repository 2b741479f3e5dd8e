"""Brings answers in that were given elsewhere, each once, whatever they say.

An answer takes a free round that its item needs, so that it is not asked for again; else, or where
its annotator has had a round of the item, a further one that is not needed. A "skip" takes none.
A "which" goes with the "yes" of its annotator to a set that holds the class, if there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from sqlalchemy import Connection, insert, select

from ruleout.labels.errors import brief
from ruleout.web import queries, replies, users
from ruleout.web.errors import RefusedError
from ruleout.web.records import IMPORTED, Brought, Settings
from ruleout.web.rounds import Place, Rounds, in_chunks
from ruleout.web.schema import answers, questions, slots
from ruleout.web.schema import items as item_table
from ruleout.web.schema import users as people

if TYPE_CHECKING:  # its readers need pyarrow, which the store does without
    from ruleout.web.importing import Earlier

__all__ = ["Bringing"]

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
        logged = {one.logged for one in given if one.logged and replies.storable(one.logged)}
        ids = [*by_id, *sorted(logged)]
        known = {row.id for row in in_chunks(self.db, select(answers.c.id), answers.c.id, ids)}
        return [one for number, one in by_id.items() if not known & {number, one.logged}]

    def _items(self, fresh: Sequence[Earlier]) -> dict[str, int]:
        """Return the numbers of the items by name; locked, so that rounds are added in turn."""
        names = dict.fromkeys(one.item for one in fresh)
        query = select(item_table.c.id, item_table.c.name).with_for_update(key_share=True)
        storable = [name for name in names if replies.storable(name)]
        found = {row.name: row.id for row in in_chunks(self.db, query, item_table.c.name, storable)}
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
            folded = users.folded(users.checked_name(name))
            if folded not in known:
                user = users.add(self.db, name, "annotator", self.now, disabled=True)
                known[folded] = user.id
                added.append(user.name)
            found[name] = known[folded]
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
            self.db.execute(queries.HOLD, [self._held(place, number) for place, number in takers])

    def _row(self, one: Earlier, place: Place) -> dict[str, Any]:
        return {
            "id": one.id, "user": place.user, "question": place.question, "kind": one.kind,
            "excluded": tuple(sorted(set(one.excluded))), "which": one.which, "late": False,
            "status": IMPORTED, "took_ms": replies.took(one.took_ms),
            "sent": replies.sent(one.time), "received": self.now, "content": IMPORTED,
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
