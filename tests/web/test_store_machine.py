"""The store against a plain model: lists, loops and no database."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tiers import COUNT
from web.made import at, counted, make_items, said

from ruleout.web import Question, Settings, Store, User

PEOPLE, LEASE, ABSENCE = 3, 100, 3600


@dataclass
class Slot:
    """A round of an item, as the model sees it."""

    holder: int | None = None
    question: int | None = None
    expires: float = 0
    given: float = 0
    answer: str | None = None

    def free(self, now: float) -> bool:
        """Tell whether it may be handed out."""
        return self.answer is None and (self.holder is None or self.expires <= now)


@dataclass
class Said:
    """An answer, as the model sees it."""

    id: str
    user: int
    kind: str
    item: int
    slot: Slot
    question: int
    late: bool
    undone: bool = False


@dataclass
class Model:
    """Which items may be handed out, in plain loops."""

    slots: dict[tuple[int, int], Slot]
    said: list[Said] = field(default_factory=list)

    def may_have(self, user: int, item: int) -> bool:
        """Tell whether the user has neither spoken about the item nor holds it."""
        spoke = any(s.user == user and s.item == item and not s.undone for s in self.said)
        holds = any(i == item and slot.holder == user for (i, _), slot in self.slots.items())
        return not spoke and not holds

    def available(self, user: int, now: float) -> set[tuple[int, int]]:
        """Return what the user may be handed."""
        return {
            place
            for place, slot in self.slots.items()
            if slot.free(now) and self.may_have(user, place[0])
        }


class Machine(RuleBasedStateMachine):
    """Three people, a few items, a clock that jumps."""

    @initialize(items=st.integers(1, 2), rounds=st.integers(1, 2))
    def start(self, items: int, rounds: int) -> None:
        """Make a project."""
        self.folder = TemporaryDirectory(dir=_quick())
        url = f"sqlite:///{self.folder.name}/a.sqlite"
        asked = Settings(classes=tuple("abcdef"), rounds=rounds, lease_seconds=LEASE)
        self.store = Store.create(url, asked, make_items(items))
        self.people: list[User] = [self.store.add_user(f"user {n}") for n in range(PEOPLE)]
        places = [(i, r) for i in range(1, items + 1) for r in range(rounds)]
        self.model = Model({place: Slot() for place in places})
        self.asked: list[Question] = []
        self.now = 0.0
        self.signs: dict[int, float] = {}  # when somebody sent something last
        self.given: dict[int, float] = {}  # when a question was asked first

    @rule(seconds=st.sampled_from([99, 100, 3600, -3600]))
    def wait(self, seconds: float) -> None:
        """Let the clock run, or jump."""
        self.now += seconds

    @rule(who=st.integers(0, PEOPLE - 1), count=st.integers(1, 4))
    def ask(self, who: int, count: int) -> None:
        """Open questions come first and in order; new ones are those that the model allows."""
        user = self.people[who].id
        mine = sorted((s.question, s) for s in self.model.slots.values()
                      if s.holder == user and s.answer is None)[:count]  # fmt: skip
        found = self.store.next(user, count, at(self.now))
        assert [q.id for q in found[: len(mine)]] == [number for number, _ in mine]
        for _, slot in mine:
            sign = max(slot.given, self.signs.get(user, slot.given))
            if slot.expires <= self.now and self.now - sign <= ABSENCE:
                slot.expires = self.now + LEASE
        for question in found[len(mine) :]:
            self._handed_out(user, question)
        if len(found) < count:
            assert not self.model.available(user, self.now)

    def _handed_out(self, user: int, question: Question) -> None:
        place = (question.item, question.round)
        assert place in self.model.available(user, self.now)
        slot = self.model.slots[place]
        slot.holder, slot.question = user, question.id
        slot.expires = self.now + LEASE
        slot.given = self.given.setdefault(question.id, self.now)
        assert question.expires == at(slot.expires)
        if question.id not in {q.id for q in self.asked}:
            self.asked.append(question)

    @rule(data=st.data(), kind=st.sampled_from(["yes", "no", "skip"]))
    def answer(self, data: Any, kind: str) -> None:
        """Answer any question ever asked, twice."""
        if not self.asked:
            return
        question = data.draw(st.sampled_from(self.asked))
        slot = self.model.slots[question.item, question.round]
        late = slot.question != question.id or slot.answer is not None
        reply = said(kind, question.id)
        self.signs[question.user] = self.now
        for _ in range(2):
            receipt = self.store.answer(question.user, reply, at(self.now))
            assert receipt.status == ("late" if late else "recorded")
        self.model.said.append(
            Said(reply.id, question.user, kind, question.item, slot, question.id, late)
        )
        if not late and kind == "skip":
            slot.holder = slot.question = None
        elif not late:
            slot.answer = reply.id

    @rule(who=st.integers(0, PEOPLE - 1))
    def undo(self, who: int) -> None:
        """Take the last answer back."""
        user = self.people[who].id
        stands = [s for s in self.model.said if s.user == user and not s.late and not s.undone]
        receipt = self.store.answer(user, said("undo"), at(self.now))
        self.signs[user] = self.now
        if not stands:
            assert receipt.status == "nothing"
            return
        last = stands[-1]
        assert receipt.question == last.question
        last.undone = True
        slot = last.slot
        if slot.answer == last.id or (last.kind == "skip" and slot.question is None):
            slot.answer, slot.holder, slot.question = None, user, last.question
            slot.given = self.given[last.question]
            slot.expires = self.now + LEASE

    @invariant()
    def log_and_model_agree(self) -> None:
        """The same answers stand, at most one in each round."""
        if not hasattr(self, "store"):
            return
        stands = [s.id for s in self.model.said
                  if not s.late and not s.undone and s.kind != "skip"]  # fmt: skip
        found = counted(self.store)
        assert [row.id for row in found] == stands
        assert len({(row.item, row.round) for row in found}) == len(found)

    def teardown(self) -> None:
        """Nothing is broken in the end."""
        if hasattr(self, "store"):
            assert self.store.check() == []
            self.store.close()
            self.folder.cleanup()


def _quick() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


Machine.TestCase.settings = settings(
    max_examples=max(5, int(40 * min(COUNT, 10))), stateful_step_count=40, deadline=None
)
TestMachine = Machine.TestCase
