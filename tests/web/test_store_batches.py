"""Many turns in one transaction: each as if alone, whoever else is there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import DataError, IntegrityError, OperationalError
from web.made import Make, at, counted, make_items, said
from web.servers import Server

from ruleout.web import (
    Question,
    RefusedError,
    Reply,
    Settings,
    Store,
    Turn,
    UnavailableError,
    User,
    database,
)
from ruleout.web import (
    store as store_module,
)
from ruleout.web.accounts import lock_user
from ruleout.web.database import one_by_one
from ruleout.web.entities import StoreError, TurnRequest
from ruleout.web.turns import take_turns


def people(store: Store, count: int) -> list[User]:
    """Add so many annotators."""
    return [store.add_user(f"user {n}") for n in range(count)]


def wish(user: User, reply: Reply | None = None, hold: int = 2, now: float = 0) -> TurnRequest:
    """Make a wish."""
    return TurnRequest(user=user.id, hold=hold, now=at(now), reply=reply)


def taken(store: Store, wishes: Sequence[TurnRequest]) -> list[Turn]:
    """Have all wishes fulfilled in one transaction."""
    commits: list[Any] = []
    note = commits.append
    event.listen(store._database.engine, "commit", note)
    found = store.turns(wishes)
    event.remove(store._database.engine, "commit", note)
    assert len(commits) == 1
    assert all(isinstance(turn, Turn) for turn in found), found
    return found  # type: ignore[return-value]


def statements(store: Store, wishes: Sequence[TurnRequest]) -> int:
    """Count the statements that the wishes take."""
    seen: list[str] = []
    note = lambda _c, _k, sql, *_: seen.append(sql)  # noqa: E731
    event.listen(store._database.engine, "before_cursor_execute", note)
    taken(store, wishes)
    event.remove(store._database.engine, "before_cursor_execute", note)
    return len([sql for sql in seen if not sql.startswith(("BEGIN", "SELECT set_config"))])


# ---------------------------------------------------------------------- the ordinary


def _played(store: Store, take: Callable[[Sequence[TurnRequest]], list[Any]]) -> list[Any]:
    """Let five people take nine turns each; return what they were told."""
    everyone, told = people(store, 5), []
    kind = "no" if store.settings.mode == "propose" else "excluded"
    held: dict[int, list[Question]] = {user.id: [] for user in everyone}
    for turn in range(9):
        more = {"excluded": (turn % 5,)} if kind == "excluded" else {}
        replies = [said(kind, held[u.id][0].id, **more) if held[u.id] else None for u in everyone]
        hold = 1 + turn % 3
        pairs = zip(everyone, replies, strict=True)
        found = take([wish(user, reply, hold, turn) for user, reply in pairs])
        for user, one in zip(everyone, found, strict=True):
            held[user.id] = one.questions
            told.append((one.receipt.status, one.receipt.item, one.questions))
    assert store.check() == []
    return told


@pytest.mark.parametrize("settings", [{}, {"rounds": 3}, {"mode": "rule-out"}])
def test_many_turns_at_once_are_the_same_as_one_after_another(
    make: Make, quick_folder: Path, settings: Any
) -> None:
    """Who gets which item, with which set, until when: to the last field."""
    store = make(60, **settings)
    with Store.create(
        f"sqlite:///{quick_folder / 'b.sqlite'}", store.settings, make_items(60)
    ) as other:
        each = _played(other, lambda wishes: [other.turns([one])[0] for one in wishes])
    assert _played(store, lambda wishes: taken(store, wishes)) == each


@pytest.mark.parametrize("gold_rate", [0.0, 0.4])
def test_fifty_turns_take_as_many_statements_as_two(make: Make, gold_rate: float) -> None:
    store = make(make_items(400, gold=0), gold_rate=gold_rate)
    everyone = people(store, 50)
    opened = [turn.questions[0].id for turn in taken(store, [wish(user) for user in everyone])]
    wishes = [wish(u, said("no", q)) for u, q in zip(everyone, opened, strict=True)]
    two, rest = wishes[:2], wishes[2:]
    if gold_rate:  # nobody has gold items to ask about; who would be due one is asked alone
        assert statements(store, rest) < 4 * len(rest)
        return
    few = statements(store, two)
    assert statements(store, rest) == few
    assert len(counted(store)) == 50


def _read(plan: dict[str, Any]) -> float:
    """Return how many rows the busiest step of a plan went through."""
    rows = sum(plan.get(name, 0) for name in ("Actual Rows", "Rows Removed by Filter"))
    return max([float(rows * plan["Actual Loops"]), *map(_read, plan.get("Plans", []))])


@pytest.mark.parametrize(("gold", "analysed"), [(0, False), (0, True), (4, True)])
def test_turns_read_no_more_in_a_project_that_has_grown(
    postgresql: Server, gold: int, analysed: bool
) -> None:
    """Nor does PostgreSQL compile them, whatever it believes of how much there is."""
    settings = Settings(classes=tuple("abcdef"), gold_rate=0.2 if gold else 0)
    with Store.create(postgresql.database(), settings, make_items(1500, gold)) as store:
        everyone, engine = people(store, 50), store._database.engine
        held = taken(store, [wish(user, hold=3) for user in everyone])
        plans: list[dict[str, Any]] = []

        def explain(_c: object, cursor: Any, sql: str, given: Any, *_: object) -> None:
            if sql.startswith(("SELECT", "UPDATE")) and "set_config" not in sql:
                inside = cursor.connection
                with inside.transaction(force_rollback=True):
                    inside.execute("SET LOCAL jit_above_cost = 0")
                    told = inside.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", given)
                    plans.extend(told.fetchone()[0])

        for turn in range(25):
            if turn == 24:
                if analysed:
                    with store._database.looking() as db:
                        db.execute(text("ANALYZE"))
                event.listen(engine, "before_cursor_execute", explain)
            pairs = zip(everyone, held, strict=True)
            replies = [wish(u, said("no", h.questions[0].id), 3, turn) for u, h in pairs]
            held = taken(store, replies)
    assert len(plans) == 6 or gold
    assert max(_read(plan["Plan"]) for plan in plans) <= 200
    assert not any("JIT" in plan for plan in plans)


def test_an_item_goes_to_one_annotator(make: Make) -> None:
    store = make(90)
    turns = taken(store, [wish(user, hold=3) for user in people(store, 30)])
    asked = [question.item for turn in turns for question in turn.questions]
    assert sorted(asked) == list(range(1, 91))
    owners = {one.user for turn in turns for one in turn.questions}
    assert len(owners) == 30


def test_nobody_is_asked_twice_about_an_item(make: Make) -> None:
    store = make(3, rounds=4)
    everyone = people(store, 4)
    turns = taken(store, [wish(user, hold=10) for user in everyone])
    for turn in turns:
        assert sorted(question.item for question in turn.questions) == [1, 2, 3]
    replies = [wish(user, said("no", turn.questions[0].id), 10)
               for user, turn in zip(everyone, turns, strict=True)]  # fmt: skip
    assert [len(turn.questions) for turn in taken(store, replies)] == [2] * 4
    assert store.check() == []


def test_few_items_for_many(make: Make) -> None:
    store = make(5)
    turns = taken(store, [wish(user, hold=3) for user in people(store, 9)])
    assert sorted(one.item for turn in turns for one in turn.questions) == [1, 2, 3, 4, 5]


def test_leases_that_ran_out_begin_anew_and_go_to_others(make: Make) -> None:
    store = make(4, lease_seconds=100)
    ann, bob, cem = people(store, 3)
    taken(store, [wish(ann, hold=2), wish(bob, hold=2)])
    mine, others = taken(store, [wish(ann, hold=2, now=200), wish(cem, hold=2, now=200)])
    assert [one.expires for one in mine.questions] == [at(300)] * 2
    assert [one.expires for one in others.questions] == [at(300)] * 2
    assert not {one.item for one in mine.questions} & {one.item for one in others.questions}


def test_skipped_items_are_free_for_the_others(make: Make) -> None:
    store = make(2)
    ann, bob, cem = people(store, 3)
    first, second = taken(store, [wish(ann, hold=1), wish(bob, hold=1)])
    skips = [wish(ann, said("skip", first.questions[0].id), 0),
             wish(bob, said("skip", second.questions[0].id), 0)]  # fmt: skip
    assert [turn.receipt.status for turn in taken(store, skips)] == ["recorded"] * 2
    assert len(store.next(cem, 2, at(0))) == 2
    assert store.next(ann, 2, at(0)) == []


# ---------------------------------------------------------------------- the odd


def _opened(store: Store, count: int) -> list[tuple[User, int]]:
    everyone = people(store, count)
    turns = taken(store, [wish(user) for user in everyone])
    return [(user, turn.questions[0].id) for user, turn in zip(everyone, turns, strict=True)]


def test_copies_of_a_reply_in_one_batch_are_one_row(make: Make) -> None:
    store = make(20)
    (ann, mine), (bob, his) = _opened(store, 2)
    reply = said("no", mine)
    found = taken(store, [wish(ann, reply), wish(bob, said("no", his)), *[wish(ann, reply)] * 9])
    mine_again = [turn for place, turn in enumerate(found) if place != 1]
    assert len({turn.receipt for turn in mine_again}) == 1
    assert {tuple(turn.questions) for turn in mine_again} == {tuple(mine_again[0].questions)}
    assert len(list(store.log())) == 2
    again = taken(store, [wish(ann, reply), wish(bob, said("undo"))])
    assert again[0].receipt == mine_again[0].receipt


def test_one_annotator_may_send_many_replies(make: Make) -> None:
    """A page that was offline sends its outbox; the order of arrival is kept."""
    store = make(make_items(20), ask_which=True)
    ann, bob = people(store, 2)
    mine, his = taken(store, [wish(ann, hold=4), wish(bob, hold=1)])
    first, second, third, _ = mine.questions
    found = taken(store, [
        wish(ann, said("yes", first.id), 4),
        wish(ann, said("which", first.id, which=first.proposed[0]), 4),
        wish(bob, said("no", his.questions[0].id), 1),
        wish(ann, said("no", second.id), 4),
        wish(ann, said("undo"), 4),
        wish(ann, said("skip", third.id), 4),
    ])  # fmt: skip
    assert [turn.receipt.status for turn in found] == ["recorded"] * 6
    kinds = [(row.user, row.kind, row.counts) for row in store.log()]
    assert kinds == [
        (ann.id, "yes", True), (bob.id, "no", True), (ann.id, "which", True),
        (ann.id, "no", False), (ann.id, "undo", False), (ann.id, "skip", True),
    ]  # fmt: skip
    assert second.id in [question.id for question in found[5].questions]
    assert store.check() == []


def test_who_is_refused_is_refused_alone(make: Make) -> None:
    store = make(40)
    (ann, mine), (bob, his), (cem, other), (dan, fourth) = _opened(store, 4)
    store.disable("user 3")
    before = len(list(store.log()))
    found = store.turns([
        wish(ann, said("no", mine)),
        wish(bob, said("no", mine)),  # asked of somebody else
        wish(bob, said("no", his)),
        wish(cem, said("excluded", other, excluded=(1,))),  # no answer to a proposal
        wish(cem, said("no", 10**6)),
        wish(dan, said("no", fourth)),  # closed
        TurnRequest(user=10**6, hold=1, now=at(0)),
        wish(cem, said("no", other, id="import-1")),
        wish(cem, said("no", other, id="x" * 101)),
        wish(cem, said("no", other, id=None)),
        wish(cem, said("no", other, id=["a"])),
        wish(cem, said("which", other, which=0)),
        wish(cem, said("no", other)),
    ])  # fmt: skip
    assert [isinstance(one, Turn) for one in found] == [
        True, False, True, *[False] * 9, True,
    ]  # fmt: skip
    assert all(isinstance(one, Turn | RefusedError) for one in found), found
    assert len(list(store.log())) == before + 3
    assert store.check() == []


def test_an_id_belongs_to_who_used_it_first(make: Make) -> None:
    store = make(20)
    (ann, mine), (bob, his) = _opened(store, 2)
    found = store.turns([wish(ann, said("no", mine, id="a")), wish(bob, said("no", his, id="a"))])
    assert isinstance(found[0], Turn)
    assert isinstance(found[1], RefusedError)
    assert found[1].reason == "conflict"
    found = store.turns([wish(bob, said("no", his, id="a")), wish(ann, said("no", 7, id="a"))])
    assert all(isinstance(one, RefusedError) and one.reason == "conflict" for one in found)


def test_late_answers_are_kept_and_do_not_count(make: Make) -> None:
    store = make(4, lease_seconds=100)
    (ann, mine), (bob, _) = _opened(store, 2)
    got = store.next(store.add_user("late"), 4, at(500))
    assert {one.item for one in got} == {1, 2, 3, 4}
    found = taken(store, [
        wish(ann, said("no", mine), 1, 600), wish(bob, None, 1, 600),
        TurnRequest(user=got[0].user, hold=1, now=at(600), reply=said("no", got[0].id)),
    ])  # fmt: skip
    assert [turn.receipt.status for turn in found] == ["late", "nothing", "recorded"]
    assert store.check() == []


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_gold_questions_come_as_often_as_one_by_one(make: Make, rate: float) -> None:
    """The draw depends on the annotator's last question, so the rate is that of the project."""
    store = make(make_items(700, gold=300), gold_rate=rate)
    everyone = people(store, 10)
    turns = taken(store, [wish(user, hold=1) for user in everyone])
    gold = [one.gold for turn in turns for one in turn.questions]
    for _ in range(25):
        wishes = [wish(user, said("no", turn.questions[0].id), 1)
                  for user, turn in zip(everyone, turns, strict=True)]  # fmt: skip
        turns = taken(store, wishes)
        gold += [one.gold for turn in turns for one in turn.questions]
    assert abs(sum(gold) / len(gold) - rate) < 4 * (rate * (1 - rate) / len(gold)) ** 0.5
    assert store.check() == []


# ---------------------------------------------------------------------- when things fail


def _crossed(state: str | None, kind: type[Exception] = OperationalError) -> Exception:
    cause = Exception("deadlock detected")
    cause.sqlstate = state  # type: ignore[attr-defined]
    error = UnavailableError("deadlock detected")
    error.__cause__ = kind("UPDATE", {}, cause)
    return error


@pytest.mark.parametrize(
    ("error", "again"),
    [
        (_crossed("40P01"), True),
        (_crossed("40001"), True),
        (_crossed("55P03"), True),
        (_crossed("53100"), False),  # the disk is full
        (_crossed(None), False),  # SQLite is locked, or its disk is full
        (_crossed("22003", DataError), True),
        (IntegrityError("INSERT", {}, Exception("twice")), True),
        (TypeError("a reply of no known shape"), True),
        (StoreError("x", "y"), True),
    ],
)
def test_what_may_go_well_one_by_one(error: Exception, again: bool) -> None:
    assert one_by_one(error) is again


@pytest.mark.parametrize("state", ["40P01", "55P03"])
def test_turns_in_each_others_way_are_done_one_by_one(
    make: Make, monkeypatch: pytest.MonkeyPatch, state: str
) -> None:
    store = make(20)
    wishes = [wish(user, said("no", mine)) for user, mine in _opened(store, 3)]

    def crossed(db: Any, current: Any, requests: Sequence[TurnRequest]) -> Any:
        if len(requests) > 1:
            raise _crossed(state)
        if requests[0] is wishes[1]:
            raise KeyError("of one alone")
        return take_turns(db, current, requests)

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "take_turns", crossed)
        found = store.turns(wishes)
    assert [isinstance(one, Turn) for one in found] == [True, False, True]
    assert isinstance(found[1], KeyError)
    assert len(list(store.log())) == 2
    assert store.check() == []


def test_one_who_is_locked_elsewhere_holds_nobody_else_up(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that stands still in the midst of a turn."""
    store = make(20)
    if store._database.file:
        return  # SQLite has one writer anyway
    monkeypatch.setattr(database, "_TURNS", database._TURNS.replace("5s", "200ms"))
    opened = _opened(store, 3)
    with store._database.writing() as elsewhere:
        lock_user(elsewhere, opened[1][0].id)
        found = store.turns([wish(user, said("no", mine)) for user, mine in opened])
    assert [isinstance(one, Turn) for one in found] == [True, False, True]
    assert isinstance(found[1], UnavailableError)
    assert store.check() == []


def test_a_commit_that_fails_gives_nobody_a_receipt(make: Make) -> None:
    store = make(20)
    wishes = [wish(user, said("no", mine)) for user, mine in _opened(store, 3)]

    def broken(_: object) -> None:
        raise OperationalError("COMMIT", {}, Exception("disk I/O error"))

    event.listen(store._database.engine, "commit", broken)
    with pytest.raises(UnavailableError):
        store.turns(wishes)
    event.remove(store._database.engine, "commit", broken)
    assert list(store.log()) == []
    assert [turn.receipt.status for turn in taken(store, wishes)] == ["recorded"] * 3


# ---------------------------------------------------------------------- a crowd


@pytest.mark.parametrize("gold", [0, 40])
def test_a_crowd_that_does_everything(make: Make, gold: int) -> None:
    """Threads of many people answer, skip, take back and send again; nothing is doubled or lost."""
    rate = 0.2 if gold else 0.0
    store = make(make_items(60, gold=gold), rounds=2, gold_rate=rate, ask_which=True)

    def work(user: User) -> Counter[str]:
        random = Random(user.id)
        said_so: Counter[str] = Counter()
        held = store.next(user, 3)
        for _ in range(40):
            kind = random.choice(["yes", "no", "no", "skip", "undo"])
            if kind != "undo" and not held:
                break
            reply = said(kind, None if kind == "undo" else held[0].id)
            turns = [store.turn(user, reply, 3) for _ in range(random.choice([1, 1, 2]))]
            assert len({turn.receipt for turn in turns}) == 1
            said_so[turns[0].receipt.status] += 1
            held = turns[-1].questions
        return said_so

    with ThreadPoolExecutor(12) as threads:
        told = sum(threads.map(work, people(store, 12)), Counter())
    assert told["late"] == 0  # nobody's lease ran out
    rows = [row for row in store.log() if not row.late]
    assert len(rows) == told["recorded"]
    full = counted(store)
    assert len({(row.item, row.round) for row in full}) == len(full)
    assert len({(row.item, row.user) for row in full}) == len(full)
    assert store.check() == []
