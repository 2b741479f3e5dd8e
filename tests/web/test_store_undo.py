"""Undo: new rows, newest first, nothing deleted."""

from __future__ import annotations

import pytest
from web.made import Make, asked_and_said, at, counted, said

from ruleout.web import RefusedError
from ruleout.web.entities import Turn, TurnRequest


def test_thirty_answers_are_taken_back_in_order_and_asked_again(make: Make) -> None:
    store = make(40)
    ann = store.add_user("Ann")
    given = [asked_and_said(store, ann, ("yes", "no", "skip")[n % 3]) for n in range(30)]
    back = [store.answer(ann, said("undo")) for _ in range(30)]
    assert [receipt.question for receipt in back] == [r.question for r in reversed(given)]
    assert {receipt.status for receipt in back} == {"recorded"}
    assert store.answer(ann, said("undo")).status == "nothing"
    again = [question.id for question in store.next(ann, 30)]
    assert again == [receipt.question for receipt in given]
    rows = list(store.log())
    assert len(rows) == 60
    assert not any(row.counts for row in rows)
    assert [row.undoes for row in rows[30:]] == [receipt.id for receipt in reversed(given)]
    assert store.check() == []


def test_an_answer_taken_back_can_be_given_anew(make: Make) -> None:
    store = make(1)
    ann = store.add_user("Ann")
    first = asked_and_said(store, ann, "yes")
    store.answer(ann, said("undo"))
    second = asked_and_said(store, ann, "no")
    assert second.question == first.question
    assert second.status == "recorded"
    assert [row.kind for row in counted(store)] == ["no"]


def test_undo_and_answer_by_turns_reach_back_no_further(make: Make) -> None:
    store = make(3)
    ann = store.add_user("Ann")
    asked_and_said(store, ann)
    for _ in range(25):
        asked_and_said(store, ann)
        store.answer(ann, said("undo"))
    assert len(counted(store)) == 1


def test_an_undo_sent_twice_takes_one_answer_back(make: Make) -> None:
    store = make(5)
    ann = store.add_user("Ann")
    for _ in range(3):
        asked_and_said(store, ann)
    undo = said("undo")
    assert len({store.answer(ann, undo) for _ in range(10)}) == 1
    assert len(counted(store)) == 2
    nothing = said("undo")
    for _ in range(2):
        store.answer(ann, said("undo"))
    assert store.answer(ann, nothing).status == "nothing"
    asked_and_said(store, ann)
    assert store.answer(ann, nothing).status == "nothing"


def test_an_undo_may_name_its_answer(make: Make) -> None:
    store = make(5)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    first, _ = asked_and_said(store, ann), asked_and_said(store, ann)
    assert store.answer(ann, said("undo", undoes=first.id)).question == first.question
    assert store.answer(ann, said("undo", undoes=first.id)).status == "nothing"
    for who, undoes in ((bob, first.id), (ann, "unheard-of")):
        with pytest.raises(RefusedError, match=r"no answer .* of yours"):
            store.answer(who, said("undo", undoes=undoes))


def test_a_yes_takes_its_which_along(make: Make) -> None:
    store = make(2)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    yes = store.answer(ann, said("yes", question.id))
    store.answer(ann, said("which", question.id, which=question.proposed[0]))
    assert store.answer(ann, said("undo")).question == question.id
    assert [(row.kind, row.counts) for row in store.log()] == [
        ("yes", False), ("which", False), ("undo", False),
    ]  # fmt: skip
    assert list(store.log())[-1].undoes == yes.id


def test_a_which_alone_may_be_taken_back_and_said_anew(make: Make) -> None:
    store = make(1, law="fixed:2")
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    store.answer(ann, said("yes", question.id))
    which = store.answer(ann, said("which", question.id, which=question.proposed[0]))
    store.answer(ann, said("undo", undoes=which.id))
    told = said("which", question.id, which=question.proposed[1])
    assert store.answer(ann, told).status == "recorded"
    assert [(row.kind, row.counts) for row in store.log()] == [
        ("yes", True), ("which", False), ("undo", False), ("which", True),
    ]  # fmt: skip


def test_a_skip_taken_back_too_late_stays_with_who_has_it(make: Make) -> None:
    store = make(1)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    asked_and_said(store, ann, "skip", at(0))
    theirs = store.next(bob, 1, at(1))[0]
    assert store.answer(ann, said("undo"), at(2)).status == "recorded"
    assert store.next(ann, 1, at(3)) == []
    assert store.answer(bob, said("no", theirs.id), at(4)).status == "recorded"


def test_of_two_who_take_a_skip_back_at_once_one_has_the_round(make: Make) -> None:
    store = make(1)
    people = [store.add_user("Ann"), store.add_user("Bob")]
    for user in people:
        asked_and_said(store, user, "skip")
    turns = store.turns([
        TurnRequest(user=user.id, hold=1, now=at(1), reply=said("undo")) for user in people
    ])  # fmt: skip
    held = [len(turn.questions) for turn in turns if isinstance(turn, Turn)]
    assert held == [1, 0]
    assert [len(store.next(user, 1, at(2))) for user in people] == held


def test_an_item_taken_back_and_left_goes_to_others(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    asked_and_said(store, ann, "no", at(0))
    assert store.next(bob, 1, at(50)) == []
    store.answer(ann, said("undo"), at(50))
    assert store.next(bob, 1, at(59)) == []
    assert len(store.next(bob, 1, at(60))) == 1


def test_a_late_answer_is_not_what_undo_reaches_for(make: Make) -> None:
    store = make(1)
    ann = store.add_user("Ann")
    first = asked_and_said(store, ann, "no")
    store.answer(ann, said("yes", first.question))
    store.answer(ann, said("undo"))
    assert list(store.log())[-1].undoes == first.id


def test_who_took_everything_back_may_be_asked_about_the_item_again(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    asked_and_said(store, ann, "no", at(0))
    store.answer(ann, said("undo"), at(1))
    assert len(store.next(bob, 1, at(20))) == 1
    assert len(store.next(ann, 1, at(40))) == 1
