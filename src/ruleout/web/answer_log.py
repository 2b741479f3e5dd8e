"""The answer log in columns: what answers rule out together, and what is a contradiction.

The team page, exports, `ruleout label status` and learning all read this one log, and what is known
of each item is worked out here alone: an answer leaves some classes possible, and all answers about
an item together leave those that each of them does. Where they leave none, or rule out a class that
is known to be right, they contradict each other, and the item is in no label set, until a lead
decides what it is or which answers to leave out. Questions about items whose class is known test
annotators: they are asked with a chosen polarity, not at random, so they say nothing here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, Text, and_, func, or_, select, type_coerce

from ruleout.labels import Answers, LabelSets
from ruleout.labels.errors import InputError
from ruleout.labels.sets import Bits, complement, count, has, one_hot, width
from ruleout.web import schema
from ruleout.web.entities import IMPORTED, Decision, Kind, LogRow, Settings
from ruleout.web.schema import answers, decisions, items, project, questions, slots, undone, users

Whole: TypeAlias = NDArray[np.intp]
Switch: TypeAlias = NDArray[np.bool_]

#: ``no``: only "no" and rule-out answers, as in the paper. ``intersection``: every answer.
How: TypeAlias = Literal["no", "intersection"]

KINDS: tuple[Kind, ...] = get_args(Kind)
_SAYING: tuple[Kind, ...] = ("yes", "no", "which", "excluded")
#: Which kinds of answers are heard by each way to combine them; none named: all that say something.
HEARD: dict[str, tuple[Kind, ...]] = {
    "no": ("no", "excluded"),
    "answers": ("yes", "no"),
    "intersection": (),
}


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """An item whose answers rule out every class together, or the one that is known; and these."""

    item: str
    answers: tuple[LogRow, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """Label sets, one row per item of `items`, and the items that have none."""

    sets: LabelSets
    items: tuple[str, ...]
    contradictions: tuple[str, ...]  # whose answers, of any kind, leave no class
    unlabelled: tuple[str, ...]  # of which nothing is known; rows of `sets` too, if asked for
    tests: tuple[str, ...]  # of known class, or only ever asked about to test annotators


class AnswerLog:
    """Every answer in the order of arrival, one entry each, with all items and users.

    Where nothing was said, numbers are -1.
    """

    def __init__(
        self,
        cells: Mapping[str, Sequence[Any]],
        settings: Settings,
        people: Sequence[Any],
        things: Sequence[Any],
        decided: Sequence[Decision] = (),
    ) -> None:
        """Make columns of numbers; users are (id, name) and items (id, name, class or None)."""
        self.cells, self.classes = cells, settings.classes  # cells: as the database has them
        self.users = tuple(name for _, name in people)
        self.items = tuple(name for _, name, _ in things)
        self.decisions = tuple(decided)
        which = {one.item: one.which for one in in_force(decided)}
        # the class of each item, where a lead decided on one, or where it is known beforehand
        self.decided, gold = _whole(map(which.get, self.items)), _whole(code for *_, code in things)
        self.gold_class = np.where((gold >= 0) & (self.decided >= 0), self.decided, gold)
        distinct = dict.fromkeys([*cells["proposed"], *cells["excluded"]])
        codes: list[list[int]] = json.loads(f"[{','.join(distinct)}]")  # in one go: much faster
        self.sets = tuple(map(tuple, codes))  # the distinct ones of the log
        at = {text: place for place, text in enumerate(distinct)}  # in `sets`
        self.proposed, self.excluded = (
            _whole(map(at.get, cells[name])) for name in ("proposed", "excluded")
        )
        self.number, self.round = _whole(cells["number"]), _whole(cells["round"])
        self.user = _places([number for number, _ in people], cells["user"])  # in `users`
        self.item = _places([number for number, *_ in things], cells["item"])  # in `items`
        # how many classes there were when its question was asked
        sizes = np.array([*(k for _, k in settings.grown), len(settings.classes)], np.intp)
        until = np.searchsorted([last for last, _ in settings.grown], _whole(cells["question"]))
        self.asked_of = sizes[until]
        self.kind = _whole(map(KINDS.index, cells["kind"]))  # in ``KINDS``
        self.which, self.took_ms = _whole(cells["which"]), _whole(cells["took_ms"])
        self.received = _whole(cells["received"])  # microseconds since 1970
        self.gold, self.late = (np.array(cells[name], np.bool_) for name in ("gold", "late"))
        self.imported = np.array([law == IMPORTED for law in cells["law"]], np.bool_)
        # whether it stands: neither late, nor undone, nor itself an undo
        stands = np.array([by is None for by in cells["undone"]], np.bool_)
        self.counts = stands & ~self.late & ~self.is_kind("undo")

    def __len__(self) -> int:
        return len(self.number)

    def __iter__(self) -> Iterator[LogRow]:
        return map(self.row, range(len(self)))

    @property
    def k(self) -> int:
        return len(self.classes)

    def is_kind(self, *kinds: Kind) -> Switch:
        return np.isin(self.kind, [KINDS.index(kind) for kind in kinds])

    def standing(self, *kinds: Kind, gold: bool = False) -> Whole:
        """Return the places of answers that count and say something, tests or the others."""
        these = self.is_kind(*(kinds or _SAYING)) & (self.gold == gold)
        return np.flatnonzero(self.counts & ~self.voided & these)

    @cached_property
    def voided(self) -> Switch:
        """Which answers leads left out: one by one, or since they rule out what the item is.

        A "which" falls with the "yes" that it follows.
        """
        found = np.isin(self.number, [n for one in in_force(self.decisions) for n in one.voids])
        asked = keys(_whole(self.cells["question"]), self.user)
        found |= self.is_kind("which") & np.isin(asked, asked[found & self.is_kind("yes")])
        truth = self.decided[self.item]
        places = np.flatnonzero((truth >= 0) & ~self.gold)
        found[places] |= has(self.ruled_out(places), truth[places])
        return found

    def undecided(self) -> AnswerLog:
        """Return the log as people gave it, which tells how far they can be trusted."""
        return self.changed(decisions=(), decided=np.full_like(self.decided, -1))

    def changed(self, **columns: Any) -> AnswerLog:
        """Return the log with other columns; what was worked out of the old ones is forgotten."""
        found = copy(self)
        for name in vars(self).keys() & vars(AnswerLog).keys():  # cached properties
            delattr(found, name)
        vars(found).update(columns)
        return found

    @cached_property
    def members(self) -> tuple[Whole, Whole]:
        """Every class of every one of `sets`: the place of the set, and the class."""
        place = np.repeat(np.arange(len(self.sets)), [len(codes) for codes in self.sets])
        code = np.fromiter(chain.from_iterable(self.sets), np.intp, len(place))
        for wrong in (*code[(code < 0) | (code >= self.k)], *self.which[self.which >= self.k]):
            raise InputError(
                f"an answer is about class {wrong}, but there are {self.k} classes",
                "use the class list of the project",
            )
        return place, code

    @cached_property
    def masks(self) -> Bits:
        """`sets` as packed bits, one row each."""
        place, code = self.members
        found = np.zeros((len(self.sets), width(self.k)), np.uint8)
        np.bitwise_or.at(found, (place, code >> 3), (1 << (code & 7)).astype(np.uint8))
        return found

    def ruled_out(self, places: Whole) -> Bits:
        """Return the classes that each of these answers rules out.

        "No" rules out the proposed set, "yes" all others, "which" all but one, and a rule-out
        answer what was clicked away; "skip" and "undo" say nothing. Nobody rules a class out that
        was not there when they were asked.
        """
        kind, proposed = self.kind[places, None], self.masks[self.proposed[places]]
        sizes, at = np.unique(self.asked_of[places], return_inverse=True)
        there = np.packbits(np.arange(self.k) < sizes[:, None], axis=1, bitorder="little")[at]
        named = one_hot(np.maximum(self.which[places], 0), self.k)
        choices: dict[Kind, Bits] = {
            "no": proposed,
            "yes": complement(proposed, self.k) & there,
            "which": complement(named, self.k) & there,
            "excluded": self.masks[self.excluded[places]],
        }
        tests = [kind == KINDS.index(name) for name in choices]
        return np.select(tests, list(choices.values()), np.uint8(0))

    def union(self, places: Whole) -> Bits:
        """Return what these answers rule out together, for every item."""
        found = np.zeros((len(self.items), width(self.k)), np.uint8)
        np.bitwise_or.at(found, self.item[places], self.ruled_out(places))
        return found

    @cached_property
    def answered(self) -> Whole:
        """How many answers about each item stand, tests left out."""
        return np.bincount(self.item[self.standing()], minlength=len(self.items))

    @cached_property
    def excluded_by_all(self) -> Bits:
        """What all answers about each item, and decisions, rule out together."""
        return self._with_decisions(self.union(self.standing()))

    def _with_decisions(self, out: Bits) -> Bits:
        settled = np.flatnonzero(self.decided >= 0)
        out[settled] = complement(one_hot(self.decided[settled], self.k), self.k)
        return out

    @cached_property
    def candidates(self) -> Whole:
        """How many classes all answers about each item leave; 0 is a contradiction."""
        out = self.excluded_by_all
        denied = (self.gold_class >= 0) & has(out, np.maximum(self.gold_class, 0))
        return np.where(denied, 0, self.k - count(out))

    def contradictions(self, most: int | None = None) -> tuple[Contradiction, ...]:
        """Return the items whose answers contradict each other, in the order of the project."""
        places = self.standing()
        wrong = np.flatnonzero(self.candidates == 0)[:most]
        places = places[np.isin(self.item[places], wrong)]
        places = places[np.argsort(self.item[places], kind="stable")]
        each = np.split(places, np.searchsorted(self.item[places], wrong)[1:])
        return tuple(
            Contradiction(item=self.items[item], answers=tuple(map(self.row, own.tolist())))
            for item, own in zip(wrong.tolist(), each, strict=bool(len(wrong)))
        )

    def early(self, *kinds: Kind) -> Switch:
        """Tell which items have answers of these kinds (none named: any) to old questions alone.

        There were fewer classes then, so nothing is said of the others.
        """
        asked, places = np.zeros(len(self.items), np.intp), self.standing(*kinds)
        np.maximum.at(asked, self.item[places], self.asked_of[places])
        return np.asarray((asked > 0) & (asked < self.k) & (self.decided < 0))

    def known(self, how: How = "no", *, unlabelled: bool = False) -> Known:
        """Combine the answers about each item into what they rule out together.

        Items whose answers of any kind contradict each other are left out, whatever `how` is.
        With `unlabelled`, items of which nothing is known get an empty row.
        """
        kinds = HEARD[how]
        out = self._with_decisions(self.union(self.standing(*kinds)))
        out[self.early(*kinds)] = 0  # what could not be ruled out would seem to be the answer
        wrong, empty, given = self.candidates == 0, count(out) == 0, self.gold_class >= 0
        tested = np.bincount(self.item[self.gold], minlength=len(self.items)) > 0
        tests = tested & (self.answered == 0) & (self.decided < 0)
        tests |= given & ~empty & ~wrong  # models are judged by these
        unknown = ~wrong & empty & ~tests
        rows = ~wrong & ~empty & ~given | unknown & unlabelled

        def names(chosen: Switch) -> tuple[str, ...]:
            return tuple(self.items[at] for at in np.flatnonzero(chosen).tolist())

        return Known(
            sets=LabelSets.from_packed(out[rows], self.classes, unlabelled=True),
            items=names(rows),
            contradictions=names(wrong),
            unlabelled=names(unknown),
            tests=names(tests),
        )

    def every_answer(self, *, contradicting: bool = False) -> Answers:
        """Return every "yes" and "no" with its question, for the unbiased risk.

        ``per_item()`` of it gives what :func:`ruleout.losses.answered` takes. That risk is unbiased
        because the question is drawn before the answer is known, among all classes. So it takes
        neither "which" and rule-out answers, nor imported proposals, nor tests, nor what was asked
        when there were fewer classes; a draw that was answered twice enters once, and items whose
        answers contradict each other never, unless they are asked for.
        """
        places = self.standing("yes", "no")
        drawn = ~self.imported[places] & (self.asked_of[places] == self.k)
        places = places[drawn & (contradicting | (self.candidates > 0)[self.item[places]])]
        used = self.draws(places)
        used = used[np.lexsort((used, self.item[used]))]
        masks = self.masks[self.proposed[used]]
        asked = LabelSets.from_packed(masks, self.classes, unlabelled=True)
        return Answers(asked, self.is_kind("yes")[used], self.item[used])

    def draws(self, places: Whole) -> Whole:
        """Return the first of these places for each set that was drawn.

        A draw belongs to an item and a round. When two people answer the same draw, or one answers
        it, takes that back and answers again, it was still drawn once.
        """
        drawn = keys(self.item[places], self.round[places], self.proposed[places])
        return places[np.unique(drawn, return_index=True)[1]]

    def row(self, place: int) -> LogRow:
        """Return one answer with all that belongs to it."""
        cell = {name: col[place] for name, col in self.cells.items() if name not in _UNTOLD}
        cell |= {
            "item_name": self.items[self.item[place]],
            "user_name": self.users[self.user[place]],
            "proposed": self.sets[self.proposed[place]],
            "excluded": self.sets[self.excluded[place]],
            "gold": bool(cell["gold"]),
            "late": bool(cell["late"]),
            "counts": bool(self.counts[place] and not self.voided[place]),
            "sent": None if cell["sent"] is None else schema.moment(cell["sent"]),
            "received": schema.moment(cell["received"]),
        }
        return LogRow(**cell)


def in_force(decided: Sequence[Decision]) -> list[Decision]:
    """Return the last decision about each item, unless that takes the others back."""
    last = {one.number: one for one in decided}
    return [one for one in last.values() if one.voids or one.which is not None]


def keys(*parts: Whole) -> Whole:
    """Return one number for each place, the same where all parts are."""
    found = np.zeros(len(parts[0]), np.intp)
    for part in parts:
        found = found * (int(part.max(initial=0)) + 1) + part
    return found


# Plain values: what SQLAlchemy would make of each cell is made of each distinct one instead.
_ASKED, _SAID = ("item", "round", "mode", "law", "seed"), ("number", "id", "user", "kind")
_CELLS: dict[str, Any] = {
    **{name: questions.c[name] for name in _ASKED},
    **{name: answers.c[name] for name in (*_SAID, "which", "undoes", "took_ms")},
    **{name: type_coerce(answers.c[name], Integer) for name in ("late", "sent", "received")},
    "proposed": type_coerce(questions.c.proposed, Text),
    "excluded": type_coerce(answers.c.excluded, Text),
    "gold": type_coerce(questions.c.gold, Integer),
    "question": questions.c.id,
    "undone": undone.c.answer,
}
_UNTOLD = ("undone", "question")  # what a row of the log does not repeat
_QUERY = (
    select(*_CELLS.values())
    .join(questions, answers.c.question == questions.c.id)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .order_by(answers.c.number)
)


_DECISIONS = (
    select(decisions.c.at, users.c.name.label("by"), items.c.id.label("number"),
           items.c.name.label("item"), decisions.c.which, decisions.c.voids)
    .join(users, decisions.c.by == users.c.id).join(items, decisions.c.item == items.c.id)
    .order_by(decisions.c.number)
)  # fmt: skip


def read(db: Connection, settings: Settings) -> AnswerLog:
    """Read all items, all users and every answer; an undo that found nothing says nothing."""
    raw = db.execute(_QUERY).all()
    cells = dict(zip(_CELLS, zip(*raw, strict=True) if raw else [()] * len(_CELLS), strict=True))
    people = select(users.c.id, users.c.name).order_by(users.c.id)
    things = select(items.c.id, items.c.name, items.c.gold).order_by(items.c.position)
    decided = [Decision(**row) for row in db.execute(_DECISIONS).mappings()]
    named, given = db.execute(people).all(), db.execute(things).all()
    return AnswerLog(cells, settings, named, given, decided)


def _places(numbers: Sequence[int], asked: Sequence[int]) -> Whole:
    """Return where each is among the numbers, which come in any order."""
    order = np.argsort(_whole(numbers))
    return order[np.searchsorted(_whole(numbers), _whole(asked), sorter=order)]


def _whole(values: Iterable[int | None]) -> Whole:
    return np.array([-1 if value is None else value for value in values], np.intp)


def extent(db: Connection) -> tuple[int, ...]:
    """Return what changes with every answer, decision and growth, and with nothing else."""
    ends = func.max(answers.c.number), func.count(answers.c.number), func.max(decisions.c.number)
    parts = (select(one).scalar_subquery() for one in (*ends, project.c.revision))
    return tuple(one or 0 for one in db.execute(select(*parts)).one())


def disagreements(db: Connection) -> list[str]:
    """Return where log and slots disagree; empty: every answer that counts has its slot."""
    # a "which" follows the "yes" that fills its round; one that was imported may stand alone
    alone = and_(answers.c.kind == "which", questions.c.size == 0)
    counted = (
        select(answers.c.number, answers.c.id, questions.c.item, questions.c.round)
        .join(questions, answers.c.question == questions.c.id)
        .outerjoin(undone, undone.c.answer == answers.c.number)
        .where(~answers.c.late, undone.c.answer.is_(None))
        .where(or_(answers.c.kind.in_(("yes", "no", "excluded")), alone))
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
