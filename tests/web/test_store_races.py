"""Many annotators at once: no question twice, no answer lost, no false receipt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Condition, Thread
from time import sleep

import pytest
from processes import QUICK
from sqlalchemy import Connection, event, insert, text, update
from sqlalchemy.exc import IntegrityError, OperationalError
from tiers import COUNT
from web.made import Make, asked_and_said, at, counted, make_items, said

from ruleout.web import (
    Question,
    Receipt,
    RefusedError,
    Settings,
    Store,
    Turn,
    UnavailableError,
    User,
)
from ruleout.web.database import FairLock
from ruleout.web.entities import TurnRequest
from ruleout.web.importing import Earlier
from ruleout.web.schema import answers, questions, slots
from ruleout.web.turns import take_turns


def work(store: Store, user: User | int, batch: int = 2) -> list[tuple[Question, Receipt]]:
    """Answer until nothing is left."""
    done = []
    while asked := store.next(user, batch):
        for question in asked:
            done.append((question, store.answer(user, said("no", question.id, id=_id(question)))))
    return done


def _id(question: Question) -> str:
    return f"user-{question.user}-question-{question.id}"


def test_writers_are_let_in_in_the_order_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """One who gives up while waiting loses the place, and holds nobody up."""
    lock, entered = FairLock(1), []
    waits = Condition.wait

    def given_up(self: Condition, timeout: float | None = None) -> bool:
        if len(lock._waiting) == 3:
            raise KeyboardInterrupt
        return waits(self, timeout)

    monkeypatch.setattr(Condition, "wait", given_up)

    def write(name: int) -> None:
        try:
            with lock:
                entered.append(name)
        except KeyboardInterrupt:
            pass

    with lock:
        threads = [Thread(target=write, args=(name,)) for name in range(4)]
        for place, thread in enumerate(threads):
            thread.start()
            while len(lock._waiting) < min(place + 1, 2) or (place == 2 and thread.is_alive()):
                sleep(0.001)
            if place == 2:
                monkeypatch.undo()
    for thread in threads:
        thread.join()
    assert entered == [0, 1, 3]
    with lock:  # nobody took a place along
        pass


def in_a_process(job: tuple[str, int]) -> list[str]:
    """Work in a process of its own."""
    with Store.open(job[0]) as store:
        return [receipt.id for _, receipt in work(store, job[1]) if receipt.status == "recorded"]


def test_of_leads_who_decide_at_once_one_does(make: Make) -> None:
    """The others are told."""
    store = make(1)
    asked_and_said(store, store.add_user("Ann"))
    leads = [store.add_user(f"lead {n}", "lead") for n in range(8)]
    [(item, _)] = store.items()

    def decide(lead: User) -> str | None:
        try:
            store.decide(item, lead, voids=[1], seen=0)
        except RefusedError as error:
            return error.reason
        return None

    with ThreadPoolExecutor(8) as threads:
        told = Counter(threads.map(decide, leads))
    assert told == {None: 1, "conflict": 7}
    assert len(store.answer_log().decisions) == 1


def test_threads_share_the_items_without_overlap(make: Make) -> None:
    store = make(60, rounds=2)
    people = [store.add_user(f"user {n}") for n in range(24)]
    with ThreadPoolExecutor(24) as threads:
        done = [pair for found in threads.map(lambda who: work(store, who), people)
                for pair in found]  # fmt: skip
    places = Counter((question.item, question.round) for question, _ in done)
    assert len(places) == 120
    assert set(places.values()) == {1}
    assert {receipt.status for _, receipt in done} == {"recorded"}
    assert {row.id for row in counted(store)} == {receipt.id for _, receipt in done}
    assert store.check() == []


def test_processes_share_the_items_without_overlap(url: str, make: Make) -> None:
    store = make(40)
    people = [store.add_user(f"user {n}").id for n in range(3)]
    with ProcessPoolExecutor(3, mp_context=QUICK) as processes:
        done = list(processes.map(in_a_process, [(url, who) for who in people]))
    assert sorted(one for ids in done for one in ids) == sorted(row.id for row in counted(store))
    assert len(counted(store)) == 40
    assert store.check() == []


def test_two_tabs_of_one_person_get_the_same_questions(make: Make) -> None:
    store = make(50)
    ann = store.add_user("Ann")
    with ThreadPoolExecutor(10) as threads:
        found = list(threads.map(lambda _: store.next(ann, 3, at(0)), range(10)))
    assert all(questions == found[0] for questions in found)


def test_leases_that_expire_while_all_grab_go_to_one(make: Make) -> None:
    store = make(5, lease_seconds=10)
    people = [store.add_user(f"user {n}") for n in range(10)]
    for round_ in range(int(6 * max(1, COUNT))):
        ask = partial(store.next, count=2, now=at(20 * round_))
        with ThreadPoolExecutor(10) as threads:
            found = [question for asked in threads.map(ask, people) for question in asked]
        assert len({question.item for question in found}) == len(found) == 5
    assert store.check() == []


def test_gold_items_race_without_overlap(make: Make) -> None:
    store = make(make_items(80, gold=2), gold_rate=0.5)
    people = [store.add_user(f"user {n}") for n in range(12)]
    with ThreadPoolExecutor(12) as threads:
        done = [pair for found in threads.map(lambda who: work(store, who), people)
                for pair in found]  # fmt: skip
    assert {receipt.status for _, receipt in done} == {"recorded"}
    places = Counter((question.item, question.round) for question, _ in done)
    assert set(places.values()) == {1}
    assert store.progress().done == 80


def test_gold_questions_come_as_often_where_many_ask_at_once(make: Make) -> None:
    """Batches beside each other take different gold items; nobody goes without."""
    store = make(make_items(2200, gold=100), gold_rate=0.2)
    people = [store.add_user(f"user {n}").id for n in range(100)]

    def at_work(some: list[int]) -> list[bool]:
        turns, gold = store.turns([TurnRequest(user=one, hold=1, now=at(0)) for one in some]), []
        for _ in range(20):
            asked = [turn.questions[0] for turn in turns if isinstance(turn, Turn)]
            gold += [question.gold for question in asked]
            turns = store.turns([
                TurnRequest(user=one, hold=1, now=at(0), reply=said("no", question.id))
                for one, question in zip(some, asked, strict=True)
            ])  # fmt: skip
        return gold

    with ThreadPoolExecutor(4) as threads:
        found = [one for gold in threads.map(at_work, [people[n::4] for n in range(4)])
                 for one in gold]  # fmt: skip
    assert abs(sum(found) / len(found) - 0.2) < 5 * (0.2 * 0.8 / len(found)) ** 0.5
    assert store.check() == []


def test_an_import_meets_the_round_that_a_gold_question_adds_just_now(make: Make) -> None:
    """It waits for who asks, and takes the round after theirs."""
    store = make(make_items(60, gold=1), gold_rate=0.5)
    [gold] = [number for number, item in store.items() if item.gold is not None]
    people = iter([store.add_user(f"user {n}") for n in range(40)])
    while not any(one.item == gold for one in store.next(next(people), now=at(0))):
        pass  # who gets its own round
    answer = Earlier(item="0.png", annotator="Zed", kind="no", proposed=(1,))
    with ThreadPoolExecutor(1) as thread:
        with store._database.writing() as db:
            asked: list[Question] = []
            while not any(one.item == gold for one in asked):
                wish = TurnRequest(user=next(people).id, hold=1, now=at(0))
                [turn] = take_turns(db, store._refreshed, [wish])
                assert isinstance(turn, Turn)
                asked = turn.questions
            brought = thread.submit(store.bring, [answer])
            sleep(0.5)
            assert not brought.done()
        assert brought.result().added == 1
    [row] = store.log()
    assert row.round == asked[0].round + 1
    assert store.check() == []


# ---------------------------------------------------------------------- the database says no


def test_the_database_itself_allows_one_holder_per_round(make: Make) -> None:
    store = make(2, rounds=2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    hers, his = store.next(ann)[0], store.next(bob)[0]
    wrong = [
        insert(slots).values(item=hers.item, round=0, place=0, needed=True, test=False),
        insert(questions).values(item=hers.item, user=ann.id, round=hers.round, mode="propose",
                                 proposed=(1,), size=1, law="", seed=0, gold=False, given=at(0)),
        update(slots).where(slots.c.item == hers.item, slots.c.round == 1)
        .values(question=his.id, holder=bob.id, expires=at(0)),
        update(slots).where(slots.c.item == hers.item).values(holder=ann.id),
        update(slots).where(slots.c.item == hers.item).values(answer=99),
        insert(answers).values(id="x", user=99, kind="no", excluded=(), late=False, status="",
                               received=at(0), content=""),
    ]  # fmt: skip
    for statement in wrong:
        with pytest.raises(IntegrityError), store._database.writing() as db:
            db.execute(statement)
    assert store.check() == []


def test_a_database_that_fails_at_commit_gives_no_receipt(make: Make) -> None:
    store = make(3)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    reply = said("no", question.id)

    def broken(_: object) -> None:
        raise OperationalError("COMMIT", {}, Exception("disk I/O error"))

    event.listen(store._database.engine, "commit", broken)
    with pytest.raises(UnavailableError, match="disk I/O error"):
        store.answer(ann, reply)
    event.remove(store._database.engine, "commit", broken)
    assert list(store.log()) == []
    assert store.answer(ann, reply).status == "recorded"


def test_a_full_disk_gives_an_error_and_no_receipt(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.sqlite'}"
    with Store.create(url, Settings(classes=tuple("abc")), make_items(400)) as store:
        ann = store.add_user("Ann")
        asked_and_said(store, ann)
        event.listen(store._database.engine, "begin", _full)
        receipts: list[Receipt] = []
        with pytest.raises(UnavailableError, match=r"full\); nothing was acknowledged"):
            _go_on(lambda: asked_and_said(store, ann), receipts)
        event.remove(store._database.engine, "begin", _full)
        store._database.close()  # the limit is the connection's own
        assert {row.id for row in store.log()} >= {receipt.id for receipt in receipts}
        assert len(list(store.log())) == 1 + len(receipts)
        assert store.check() == []
        assert asked_and_said(store, ann).status == "recorded"


def _full(db: Connection) -> None:
    pages = db.execute(text("PRAGMA page_count")).scalar_one()
    db.execute(text(f"PRAGMA max_page_count = {pages}"))


def _go_on(step: Callable[[], Receipt], receipts: list[Receipt]) -> None:
    for _ in range(400):
        receipts.append(step())
