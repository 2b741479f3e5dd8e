"""A turn: an answer and the questions after it, in one step."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from web.made import Make, at, counted, make_items, said

from ruleout.web import Question, RefusedError, Settings, Store, User


def test_a_turn_is_an_answer_and_then_the_open_questions(make: Make) -> None:
    store = make(10)
    ann = store.add_user("Ann")
    first, *others = store.next(ann, 3, at(0))
    turn = store.turn(ann, said("no", first.id), 3, at(1))
    assert (turn.receipt.status, turn.receipt.question) == ("recorded", first.id)
    assert turn.questions[:2] == others
    assert turn.questions == store.next(ann, 3, at(2))
    assert len({question.item for question in (first, *turn.questions)}) == 4


@pytest.mark.parametrize("mode", ["propose", "rule-out"])
@pytest.mark.parametrize("gold_rate", [0.0, 0.5])
def test_turns_do_what_answer_and_next_do(quick_folder: Path, mode: Any, gold_rate: float) -> None:
    settings = Settings(classes=tuple("abcdef"), mode=mode, gold_rate=gold_rate, rounds=2)
    found = []
    for way in (_by_turns, _step_by_step):
        url = f"sqlite:///{quick_folder / way.__name__}"
        with Store.create(url, settings, make_items(25, gold=6)) as store:
            found.append((way(store), list(store.log()), store.progress(), store.check()))
    assert found[0] == found[1]
    assert len(found[0][1]) > 60


def _replies(mode: str, question: Question, turn: int) -> list[dict[str, Any]]:
    """Every kind of reply, with undo by name and of the last; ids are the same every time."""
    number = f"{question.user}-{turn}"
    if turn % 7 == 3:
        return [{"id": f"u{number}", "kind": "undo"}]
    if mode == "rule-out":
        kind = {"kind": "skip"} if turn % 5 == 4 else {"kind": "excluded", "excluded": (0, 3)}
        return [{"id": f"a{number}", "question": question.id, **kind}]
    kind = {"kind": ("yes", "no", "no", "yes", "skip")[turn % 5]}
    more = {"id": f"w{number}", "question": question.id, "kind": "which"}
    which = [{**more, "which": question.proposed[0]}] if turn % 5 == 0 else []
    return [{"id": f"a{number}", "question": question.id, **kind}, *which]


def _played(store: Store, step: Any) -> list[Any]:
    people = [store.add_user(name) for name in ("Ann", "Bob")]
    told, held = [], {user.id: store.next(user, 3, at(0)) for user in people}
    for turn in range(40):
        for user in people:
            for reply in (
                _replies(store.settings.mode, held[user.id][0], turn) if held[user.id] else ()
            ):
                receipt, held[user.id] = step(user, said(**reply), at(turn))
                told.append((receipt, held[user.id]))
    return told  # fmt: skip


def _by_turns(store: Store) -> list[Any]:
    def step(user: User, reply: Any, now: Any) -> Any:
        turn = store.turn(user, reply, 3, now)
        return turn.receipt, turn.questions

    return _played(store, step)


def _step_by_step(store: Store) -> list[Any]:
    return _played(store, lambda user, reply, now: (
        store.answer(user, reply, now), store.next(user, 3, now)))  # fmt: skip


def test_a_turn_sent_again_gives_the_same_receipt_and_questions(make: Make) -> None:
    store = make(10)
    ann = store.add_user("Ann")
    reply = said("no", store.next(ann, 3)[0].id)
    first = store.turn(ann, reply, 3, at(0))
    assert [store.turn(ann, reply, 3, at(1)) for _ in range(5)] == [first] * 5
    assert len(list(store.log())) == 1


def test_copies_of_a_turn_that_race_each_other_are_one(make: Make) -> None:
    store = make(30)
    ann = store.add_user("Ann")
    for _ in range(5):
        reply = said("no", store.next(ann, 3, at(0))[0].id)
        with ThreadPoolExecutor(8) as threads:
            found = list(threads.map(lambda _, r=reply: store.turn(ann, r, 3, at(0)), range(8)))
        assert all(turn == found[0] for turn in found)
        assert len(found[0].questions) == 3
    assert len(list(store.log())) == 5
    assert store.check() == []


def test_two_tabs_that_answer_at_once_hold_no_more_than_asked_for(make: Make) -> None:
    store = make(90)
    ann = store.add_user("Ann")
    with ThreadPoolExecutor(3) as threads:
        for _ in range(8):
            replies = [said("no", question.id) for question in store.next(ann, 3, at(0))]
            turns = list(threads.map(lambda reply: store.turn(ann, reply, 3, at(0)), replies))
            assert {turn.receipt.status for turn in turns} == {"recorded"}
    asked = {question.id for question in store.next(ann, 3, at(0))}
    assert max(asked) == 8 * 3 + 3  # no question was handed out that the others had no need of
    assert store.check() == []


def test_a_turn_that_holds_nothing_asks_nothing(make: Make) -> None:
    store = make(5)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    turn = store.turn(ann, said("no", question.id), 0)
    assert (turn.receipt.status, turn.questions) == ("recorded", [])


@pytest.mark.parametrize("hold", [-1, 101, 1.5, "3", None])
def test_a_turn_that_asks_for_the_impossible_records_nothing(make: Make, hold: Any) -> None:
    store = make(5)
    ann = store.add_user("Ann")
    reply = said("no", store.next(ann)[0].id)
    with pytest.raises(RefusedError, match="0 to 100"):
        store.turn(ann, reply, hold)
    assert list(store.log()) == []


def test_a_refused_reply_hands_nothing_out(make: Make) -> None:
    store = make(5)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    hers = store.next(ann)[0]
    for reply in (said("no", hers.id), said("no", 99), said("which", hers.id, which=0)):
        with pytest.raises(RefusedError):
            store.turn(bob, reply, 3)
    assert len(store.next(ann, 100)) == 5


def test_a_late_turn_still_gets_questions(make: Make) -> None:
    store = make(4, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    hers = store.next(ann, 1, at(0))[0]
    his = store.next(bob, 4, at(20))
    assert hers.item in {question.item for question in his}
    turn = store.turn(ann, said("no", hers.id), 3, at(21))
    assert (turn.receipt.status, turn.questions) == ("late", [])
    for question in his[:2]:
        store.turn(bob, said("skip", question.id), 0, at(22))
    again = store.turn(ann, said("yes", hers.id), 3, at(23))
    assert again.receipt.status == "late"
    assert {q.item for q in again.questions} == {q.item for q in his[:2]} - {hers.item}
    assert store.check() == []


def test_an_undo_brings_its_question_back_in_the_same_turn(make: Make) -> None:
    store = make(10)
    ann = store.add_user("Ann")
    held = store.next(ann, 3, at(0))
    answered = []
    for second in range(20):
        reply = said("no", held[0].id)
        answered.append((reply.id, held[0].id))
        held = store.turn(ann, reply, 3, at(second)).questions or held
        if len(held) < 2:
            break
    for number, question in reversed(answered):
        turn = store.turn(ann, said("undo", undoes=number), 3, at(60))
        assert turn.receipt.question == question
        assert question in {q.id for q in turn.questions} or len(turn.questions) == 3
    assert counted(store) == []
    assert store.check() == []


def test_a_lease_that_ran_out_begins_anew_in_a_turn(make: Make) -> None:
    store = make(5, lease_seconds=10)
    ann = store.add_user("Ann")
    first, second = store.next(ann, 2, at(0))
    turn = store.turn(ann, said("no", first.id), 1, at(60))
    assert [(q.id, q.expires) for q in turn.questions] == [(second.id, at(70))]


# ---------------------------------------------------------------------- who may see what


def test_an_annotator_sees_what_they_were_asked_about_and_a_lead_everything(make: Make) -> None:
    store = make(5)
    ann, lead = store.add_user("Ann"), store.add_user("Lea", "lead")
    asked = store.next(ann, 2)
    store.answer(ann, said("no", asked[0].id))
    assert [store.item(q.item, ann) for q in asked] == [store.item(q.item) for q in asked]
    assert [store.item(n, lead) for n in range(1, 6)] == [store.item(n) for n in range(1, 6)]
    for number in {1, 2, 3, 4, 5, 6, 0, -1, 2**40} - {q.item for q in asked}:
        with pytest.raises(RefusedError, match="no item") as refused:
            store.item(number, ann)
        assert refused.value.reason == "unknown"


def test_a_project_keeps_its_identity(make: Make, url: str, tmp_path: Path) -> None:
    first = make(2).identity
    with Store.open(url) as again:
        assert again.identity == first
    other = f"sqlite:///{tmp_path / 'other.sqlite'}"
    with Store.create(other, Settings(classes=tuple("ab")), make_items(1)) as store:
        assert store.identity != first
    assert len(first) == 16
    assert int(first, 16) >= 0


def test_a_turn_takes_eight_statements(make: Make) -> None:
    store = make(20)
    ann = store.add_user("Ann")
    held = store.next(ann, 3)
    seen: list[str] = []
    event.listen(
        store._database.engine, "before_cursor_execute", lambda _c, _k, sql, *_: seen.append(sql)
    )
    store.turn(ann, said("no", held[0].id), 3)
    assert len([sql for sql in seen if not sql.startswith(("BEGIN", "SELECT set_config"))]) == 8
