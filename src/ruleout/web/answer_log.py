"""Reads the answer log, row by row, and checks that it agrees with the slots."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Integer, Row, Text, and_, func, or_, select, type_coerce

from ruleout.labels import Answers, LabelSets
from ruleout.labels.bits import width
from ruleout.labels.errors import InputError, brief
from ruleout.web.entities import IMPORTED, Kind, LogRow
from ruleout.web.names import suggest
from ruleout.web.schema import answers, invites, items, questions, slots, undone, users


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


Whole: TypeAlias = NDArray[np.intp]
Switch: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]  # bit c of a row, little end first, is class c

KINDS: tuple[Kind, ...] = get_args(Kind)
_SAYING: tuple[Kind, ...] = ("yes", "no", "which", "excluded")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """One entry per row of the log, in its order.

    `user` and `item` are positions in `users` and `items`, `kind` in ``KINDS``, `proposed` and
    `excluded` in `sets`, the distinct sets of the log. Where nothing was said, `which` and
    `took_ms` are -1. `received` is in microseconds since 1970.
    """

    users: tuple[str, ...]
    items: tuple[str, ...]
    sets: tuple[tuple[int, ...], ...]
    number: Whole
    user: Whole
    item: Whole
    round: Whole
    kind: Whole
    proposed: Whole
    excluded: Whole
    which: Whole
    took_ms: Whole
    received: Whole
    gold: Switch
    late: Switch
    counts: Switch
    imported: Switch
    _masks: dict[int, Bits] = field(default_factory=dict, repr=False)

    def is_kind(self, *kinds: Kind) -> Switch:
        """Tell which rows are of one of these kinds."""
        return np.isin(self.kind, [KINDS.index(kind) for kind in kinds])

    def standing(self, *, gold: bool = False) -> Whole:
        """Return the places of answers that count and say something, tests or the others."""
        return np.flatnonzero(self.counts & (self.gold == gold) & self.is_kind(*_SAYING))

    def masks(self, k: int) -> Bits:
        """Return `sets` as bits, one row each; made once."""
        if k not in self._masks:
            self._masks[k] = self._packed(k)
        return self._masks[k]

    def _packed(self, k: int) -> Bits:
        for codes in self.sets:
            for code in codes:
                if not 0 <= code < k:
                    problem = f"an answer is about class {code}, but there are {k} classes"
                    raise InputError(problem, "use the class list of the project")
        return packed((bits(codes) for codes in self.sets), k)

    def ruled_out(self, places: Whole, k: int) -> Bits:
        """Return what the answers at these places rule out."""
        masks, all_of = self.masks(k), packed([bits(range(k))], k)
        one_of = packed((1 << code for code in range(k)), k)
        kind, proposed = self.kind[places, None], masks[self.proposed[places]]
        choices = {
            "no": proposed,
            "yes": all_of & ~proposed,
            "which": all_of & ~one_of[self.which[places]],
            "excluded": masks[self.excluded[places]],
        }
        tests = [kind == KINDS.index(name) for name in _SAYING]
        return np.select(tests, [choices[name] for name in _SAYING], np.uint8(0))


Rows: TypeAlias = Iterable[LogRow] | Columns


def packed(masks: Iterable[int], k: int) -> Bits:
    """Return whole numbers as rows of bits, those of a class list of k.

    >>> packed([0b101, 0b10], 3)
    array([[5],
           [2]], dtype=uint8)
    """
    wide = width(k)
    content = b"".join(mask.to_bytes(wide, "little") for mask in masks)
    return np.frombuffer(content, np.uint8).reshape(-1, wide)


def numbered(values: Iterable[Hashable], known: Mapping[Any, int] | None = None) -> Any:
    """Number values in the order of appearance, after those that are `known`.

    >>> numbered(["b", "a", "b"])
    (array([0, 1, 0]), ['b', 'a'])
    """
    places: dict[Hashable, int] = dict(known or {})
    found = [places.setdefault(value, len(places)) for value in values]
    return np.array(found, np.intp), list(places)


def keys(*parts: Whole) -> Whole:
    """Return one number for each place, the same where all parts are.

    >>> keys(np.array([0, 1, 0]), np.array([5, 5, 5]))
    array([ 5, 11,  5])
    """
    found = np.zeros(len(parts[0]), np.intp)
    for part in parts:
        found = found * (int(part.max(initial=0)) + 1) + part
    return found


def moment(received: int) -> datetime:
    """Return the moment of an entry of `received`."""
    return _EPOCH + timedelta(microseconds=int(received))


def columns(rows: Rows) -> Columns:
    """Return the log as columns; those are returned as they are."""
    if isinstance(rows, Columns):
        return rows
    log = list(rows)
    user, users = numbered(row.user_name for row in log)
    item, items = numbered(row.item_name for row in log)
    both = [row.proposed for row in log] + [row.excluded for row in log]
    used, sets = numbered(both)
    return Columns(
        users=tuple(users), items=tuple(items), sets=tuple(sets), user=user, item=item,
        number=_whole([row.number for row in log]), round=_whole([row.round for row in log]),
        kind=_whole([KINDS.index(row.kind) for row in log]),
        proposed=used[: len(log)], excluded=used[len(log) :],
        which=_whole([-1 if row.which is None else row.which for row in log]),
        took_ms=_whole([-1 if row.took_ms is None else row.took_ms for row in log]),
        received=_whole([(row.received - _EPOCH) // timedelta(microseconds=1) for row in log]),
        gold=_switch([row.gold for row in log]), late=_switch([row.late for row in log]),
        counts=_switch([row.counts for row in log]),
        imported=_switch([row.law == IMPORTED for row in log]),
    )  # fmt: skip


def _whole(values: Sequence[int]) -> Whole:
    return np.array(values, np.intp)


def _switch(values: Sequence[bool]) -> Switch:
    return np.array(values, np.bool_)


def extent(db: Connection) -> tuple[int, int]:
    """Return what changes with every answer and with nothing else: the last number, the count."""
    last, count = db.execute(select(func.max(answers.c.number), func.count(answers.c.number))).one()
    return last or 0, count


def gold_classes(db: Connection) -> dict[str, int]:
    """Return the class of each item where it is known, by the item's name."""
    query = select(items.c.name, items.c.gold).where(items.c.gold.is_not(None))
    return {name: gold for name, gold in db.execute(query)}  # noqa: C416 - rows are no pairs to mypy


def doors(db: Connection) -> dict[int, tuple[bool, datetime | None]]:
    """Return for each user whether they have a password, and until when an invite holds."""
    query = (
        select(users.c.id, users.c.password.is_not(None), func.max(invites.c.expires))
        .outerjoin(invites, invites.c.user == users.c.id)
        .group_by(users.c.id, users.c.password)
    )
    return {number: (bool(has), until) for number, has, until in db.execute(query)}


def read(db: Connection) -> Columns:
    """Read all items, all users and every answer in the order of arrival."""
    raw = db.execute(_QUERY).all()
    cells: list[tuple[Any, ...]] = list(zip(*raw, strict=True)) or [()] * 14
    number, user, item, round_, kind, proposed, excluded, which, took, received = cells[:10]
    gold, late, law, taken_back = cells[10:]
    place = {kind: at for at, kind in enumerate(KINDS)}
    user_ids, user_names = _names(db, users)
    item_ids, item_names = _names(db, items)
    used, sets = numbered(proposed + excluded)
    kinds = np.array([place[one] for one in kind], np.intp)
    stands = np.array([by is None for by in taken_back], np.bool_)
    is_late = np.array(late, np.bool_)
    return Columns(
        users=user_names, items=item_names, sets=tuple(tuple(json.loads(text)) for text in sets),
        user=numbered(user, user_ids)[0], item=numbered(item, item_ids)[0],
        number=np.array(number, np.intp), round=np.array(round_, np.intp), kind=kinds,
        proposed=used[: len(raw)], excluded=used[len(raw) :], which=_or_none(which),
        took_ms=_or_none(took), received=np.array(received, np.intp),
        gold=np.array(gold, np.bool_), late=is_late,
        counts=stands & ~is_late & (kinds != place["undo"]),
        imported=np.array([one == IMPORTED for one in law], np.bool_),
    )  # fmt: skip


# Plain values: what SQLAlchemy would make of each cell is made of each distinct one instead.
_QUERY = (
    select(
        answers.c.number, answers.c.user, questions.c.item, questions.c.round, answers.c.kind,
        type_coerce(questions.c.proposed, Text), type_coerce(answers.c.excluded, Text),
        answers.c.which, answers.c.took_ms, type_coerce(answers.c.received, Integer),
        type_coerce(questions.c.gold, Integer), type_coerce(answers.c.late, Integer),
        questions.c.law, undone.c.answer,
    )
    .join(questions, answers.c.question == questions.c.id)
    .outerjoin(undone, undone.c.answer == answers.c.number)
    .order_by(answers.c.number)
)  # fmt: skip


def _names(db: Connection, table: Any) -> tuple[dict[int, int], tuple[str, ...]]:
    """Return the place of each id, and the names in that order."""
    found = db.execute(select(table.c.id, table.c.name).order_by(table.c.id)).all()
    return {number: at for at, (number, _) in enumerate(found)}, tuple(name for _, name in found)


def _or_none(values: tuple[int | None, ...]) -> Any:
    return np.array([-1 if value is None else value for value in values], np.intp)


def bits(codes: Iterable[int]) -> int:
    """Return a number with these bits set.

    >>> bin(bits([0, 3]))
    '0b1001'
    """
    mask = 0
    for code in codes:
        mask |= 1 << code
    return mask


def every(k: int) -> int:
    """Return the bits of k classes.

    >>> bin(every(3))
    '0b111'
    """
    return (1 << k) - 1


def ruled_out(row: LogRow, k: int) -> int:
    """Return the classes that an answer rules out, as bits.

    "No" rules out the proposed set, "yes" all others, "which" all but one, and a rule-out answer
    what was clicked away; "skip" and "undo" say nothing.
    """
    _check(row, k)
    if row.kind == "no":
        return bits(row.proposed)
    if row.kind == "yes":
        return every(k) & ~bits(row.proposed)
    if row.kind == "which" and row.which is not None:
        return every(k) & ~bits([row.which])
    return bits(row.excluded) if row.kind == "excluded" else 0


def _check(row: LogRow, k: int) -> None:
    which = () if row.which is None else (row.which,)
    for code in (*row.proposed, *row.excluded, *which):
        if not 0 <= code < k:
            raise InputError(
                f"answer {row.number} is about class {code}, but there are {k} classes",
                "use the class list of the project",
            )


def standing(rows: Iterable[LogRow], *, gold: bool = False) -> Iterator[LogRow]:
    """Yield the answers that count and say something; `gold` asks for those that are tests."""
    return (
        row
        for row in rows
        if row.counts and row.gold == gold and row.kind in ("yes", "no", "which", "excluded")
    )


def by_item(rows: Iterable[LogRow]) -> dict[str, list[LogRow]]:
    """Return the rows of each item, in the order of the log."""
    found: dict[str, list[LogRow]] = {}
    for row in rows:
        found.setdefault(row.item_name, []).append(row)
    return found


def draws(rows: Iterable[LogRow]) -> Iterator[LogRow]:
    """Yield one row for each set that was drawn at random and asked about.

    A draw belongs to an item and a round. When two people answer the same draw, or one answers
    it, takes that back and answers again, it was still drawn once.
    """
    seen = set()
    for row in rows:
        draw = (row.item_name, row.round, row.proposed)
        asked = row.kind in ("yes", "no", "skip") and row.proposed
        if asked and not row.gold and row.law != IMPORTED and draw not in seen:
            seen.add(draw)
            yield row


def label_sets(masks: Iterable[int], classes: tuple[str, ...]) -> LabelSets:
    """Build label sets from bits.

    >>> label_sets([0b011, 0b100], ("cat", "dog", "bird")).to_lists()
    [['cat', 'dog'], ['bird']]
    """
    wide = width(len(classes))
    content = b"".join(mask.to_bytes(wide, "little") for mask in masks)
    packed = np.frombuffer(content, np.uint8).reshape(-1, wide)
    return LabelSets.from_packed(packed, classes, unlabelled=True)


#: ``no``: only "no" and rule-out answers, as in the paper. ``intersection``: every answer.
How: TypeAlias = Literal["no", "intersection"]


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """An item whose answers rule out every class together, and those answers."""

    item: str
    answers: tuple[LogRow, ...]


@dataclass(frozen=True, kw_only=True)
class Known:
    """Label sets, and what became of the items that have none; every item is in one of the four.

    Attributes
    ----------
    sets
        What is ruled out, one row per item of `items`.
    items
        The names of the rows, in the order of the project.
    contradictions
        Items for which nothing would be left.
    unlabelled
        Items of which nothing is known; rows of `sets` too, if that was asked for.
    tests
        Items that were only ever asked about to test annotators.
    """

    sets: LabelSets
    items: tuple[str, ...]
    contradictions: tuple[Contradiction, ...]
    unlabelled: tuple[str, ...]
    tests: tuple[str, ...]


def known(
    rows: Iterable[LogRow],
    items: Sequence[str],
    classes: Sequence[str],
    how: How = "no",
    *,
    unlabelled: bool = False,
) -> Known:
    """Combine the answers about each item into what they rule out together.

    Parameters
    ----------
    rows
        The answer log; rows that do not count are passed over.
    items
        The names of all items, in the order the result is to have.
    classes
        The class names.
    how
        ``no``: a "no" rules the proposed set out, a rule-out answer what was clicked away, and
        other answers say nothing. ``intersection``: a "yes" also rules out everything outside
        the proposed set, and "which" all classes but one.
    unlabelled
        Give items of which nothing is known an empty row, instead of only listing them.
    """
    k, log = len(classes), list(rows)
    answers, tested = _by_known_item(log, items), {row.item_name for row in log if row.gold}
    found: dict[str, int] = {}
    wrong, unknown, tests = [], [], []
    for item in items:
        used = [row for row in answers.get(item, ()) if how != "no" or row.kind in _NO]
        mask = _union(used, k)
        if mask == every(k):
            wrong.append(Contradiction(item=item, answers=tuple(used)))
        elif mask:
            found[item] = mask
        elif item in tested and item not in answers:
            tests.append(item)
        else:
            unknown.append(item)
            if unlabelled:
                found[item] = 0
    return Known(
        sets=label_sets(found.values(), tuple(classes)),
        items=tuple(found),
        contradictions=tuple(wrong),
        unlabelled=tuple(unknown),
        tests=tuple(tests),
    )


_NO = ("no", "excluded")


def _union(rows: Iterable[LogRow], k: int) -> int:
    mask = 0
    for row in rows:
        mask |= ruled_out(row, k)
    return mask


def _by_known_item(log: list[LogRow], items: Sequence[str]) -> dict[str, list[LogRow]]:
    answers, names = by_item(standing(log)), set(items)
    for item in answers:
        if item not in names:
            remedy = suggest(item, items, "give all items of the project")
            raise InputError(f"the log is about an item {brief(item)} that is not there", remedy)
    return answers


def every_answer(
    rows: Iterable[LogRow], items: Sequence[str], classes: Sequence[str]
) -> tuple[Answers, tuple[Contradiction, ...]]:
    """Return every "yes" and "no" with its question, for the unbiased risk.

    ``answers.per_item()`` then gives what :func:`ruleout.losses.answered` takes, with
    ``answers.items`` as positions in `items`. That risk is unbiased because the question is drawn
    before the answer is known. So it takes neither "which" and rule-out answers, nor imported
    proposals, nor tests; and a draw that was answered twice enters once.

    Returns
    -------
    answers, contradictions
        Items whose answers contradict each other are in the second alone.
    """
    k, place = len(classes), {item: number for number, item in enumerate(items)}
    log = [row for row in standing(rows) if row.kind in ("yes", "no") and row.law != IMPORTED]
    used: list[LogRow] = []
    wrong = []
    for item, asked in _by_known_item(log, items).items():
        if _union(asked, k) == every(k):
            wrong.append(Contradiction(item=item, answers=tuple(asked)))
        else:
            used.extend(draws(asked))
    used.sort(key=lambda row: place[row.item_name])
    answers = Answers(
        label_sets((bits(row.proposed) for row in used), tuple(classes)),
        np.array([row.kind == "yes" for row in used], np.bool_),
        np.array([place[row.item_name] for row in used], np.intp),
    )
    return answers, tuple(sorted(wrong, key=lambda one: place[one.item]))


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is known of each item, in the order the items were given.

    Attributes
    ----------
    answers
        How many answers stand.
    candidates
        How many classes all answers together leave; 0 is a contradiction.
    bits
        The entropy left, log2 of `candidates`: every candidate is as likely as the others. NaN
        for a contradiction, and log2 k where nothing is known.
    """

    answers: NDArray[np.intp]
    candidates: NDArray[np.intp]
    bits: NDArray[np.float64]

    @property
    def mean_bits(self) -> float | None:
        """The mean over items without contradictions; None if there are none."""
        good = self.bits[self.candidates > 0]
        return float(good.mean()) if len(good) else None


class Said(NamedTuple):
    """One answer: who said what about which classes."""

    who: str
    kind: Kind
    about: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Clash:
    """An item whose answers leave nothing.

    `said` are the answers, in the order of the log. `pairs` are people who contradict each other
    outright, one "no" and "yes" to the same set, say. It may be empty: three answers can leave
    nothing while any two leave something.
    """

    item: str
    people: tuple[str, ...]
    answers: int
    pairs: tuple[tuple[str, str], ...]
    said: tuple[Said, ...]


def knowledge(rows: Rows, items: Sequence[str], k: int) -> Knowledge:
    """Say for each item how much its answers leave open, tests left out.

    Examples
    --------
    >>> knowledge([], ["a"], 8).bits
    array([3.])
    """
    log = columns(rows)
    counts, left = _left(log, k)
    place = {name: at for at, name in enumerate(log.items)}
    at = np.array([place.get(name, len(log.items)) for name in items], np.intp)
    candidates = np.r_[left, k][at]
    return Knowledge(
        answers=np.r_[counts, 0][at],
        candidates=candidates,
        bits=np.where(candidates > 0, np.log2(np.maximum(candidates, 1)), np.nan),
    )


def _left(log: Columns, k: int) -> tuple[Whole, Whole]:
    """Return for each item of the log how many answers stand and how many classes they leave."""
    places = log.standing()
    order = places[np.argsort(log.item[places], kind="stable")]
    counts = np.bincount(log.item[places], minlength=len(log.items))
    left = np.full(len(log.items), k, np.intp)
    if len(order):
        starts = (np.cumsum(counts) - counts)[counts > 0]
        union = np.bitwise_or.reduceat(log.ruled_out(order, k), starts, axis=0)
        left[counts > 0] -= np.bitwise_count(union).sum(1, dtype=np.intp)
    return counts, left


def clashes(rows: Rows, k: int, most: int | None = None) -> list[Clash]:
    """List the items whose answers leave nothing, in the order of the log; at most so many."""
    log = columns(rows)
    places = log.standing()
    places = places[_left(log, k)[1][log.item[places]] == 0]
    found: dict[int, list[int]] = {}
    for place, item in zip(places.tolist(), log.item[places].tolist(), strict=True):
        if item in found or most is None or len(found) < most:
            found.setdefault(item, []).append(place)
    return [_clash(log, log.items[item], np.array(own), k) for item, own in found.items()]


def _clash(log: Columns, item: str, places: Whole, k: int) -> Clash:
    out = log.ruled_out(places, k)
    who = [log.users[user] for user in log.user[places]]
    opposed = {
        (min(who[i], who[j]), max(who[i], who[j]))
        for i, j in combinations(range(len(who)), 2)
        if np.bitwise_count(out[i] | out[j]).sum() == k
    }
    return Clash(
        item=item,
        people=tuple(sorted(set(who))),
        answers=len(places),
        pairs=tuple(sorted(opposed)),
        said=tuple(_said(log, place) for place in places.tolist()),
    )


def _said(log: Columns, place: int) -> Said:
    kind = KINDS[log.kind[place]]
    about = log.sets[(log.excluded if kind == "excluded" else log.proposed)[place]]
    if kind == "which":
        about = (int(log.which[place]),)
    return Said(log.users[log.user[place]], kind, about)
