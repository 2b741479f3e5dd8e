"""Replies: recorded once, validated, late where the slot has gone."""

from __future__ import annotations

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any

import pytest
from web.made import Make, at, counted, said

from ruleout.web import RefusedError, Reply

YES = {"kind": "yes"}


def test_a_reply_sent_ten_times_in_any_order_is_one_row_with_one_receipt(make: Make) -> None:
    store = make(8)
    ann = store.add_user("Ann")
    replies = [said("no", question.id) for question in store.next(ann, 8)]
    receipts = {reply.id: store.answer(ann, reply) for reply in replies}
    copies = replies * 10
    Random(0).shuffle(copies)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda reply: store.answer(ann, reply), copies))
    assert all(receipt == receipts[receipt.id] for receipt in found)
    assert len(list(store.log())) == 8


def test_copies_that_race_each_other_are_one_row(make: Make) -> None:
    store = make(8)
    ann = store.add_user("Ann")
    copies = [said("no", question.id) for question in store.next(ann, 8)] * 10
    Random(1).shuffle(copies)
    with ThreadPoolExecutor(16) as threads:
        found = list(threads.map(lambda reply: store.answer(ann, reply), copies))
    assert {receipt.status for receipt in found} == {"recorded"}
    assert len(set(found)) == len(list(store.log())) == 8


def test_a_copy_with_another_time_is_the_same_reply(make: Make) -> None:
    store = make(1)
    ann = store.add_user("Ann")
    reply = said("no", store.next(ann)[0].id, took_ms=5, sent=at(0))
    first = store.answer(ann, reply)
    later = dataclasses.replace(reply, took_ms=99, sent=at(50))
    assert store.answer(ann, later) == first


def test_an_id_with_another_content_is_refused(make: Make) -> None:
    store = make(2)
    ann = store.add_user("Ann")
    one, two = store.next(ann, 2)
    store.answer(ann, Reply(id="x", kind="yes", question=one.id))
    for other in (
        Reply(id="x", kind="no", question=one.id),
        Reply(id="x", kind="yes", question=two.id),
        Reply(id="x", kind="undo"),
    ):
        with pytest.raises(RefusedError, match="used for another reply") as refused:
            store.answer(ann, other)
        assert refused.value.reason == "conflict"
    assert len(list(store.log())) == 1


def test_an_id_of_somebody_else_is_refused_also_in_a_race(make: Make) -> None:
    store = make(20)
    people = [store.add_user(name) for name in ("Ann", "Bob", "Cem", "Dee")]

    def reply(who: int) -> str:
        question = store.next(people[who])[0]
        try:
            return store.answer(people[who], Reply(id="same", kind="no", question=question.id)).id
        except RefusedError as refused:
            return refused.reason

    with ThreadPoolExecutor(4) as threads:
        found = sorted(threads.map(reply, range(4)))
    assert found == ["conflict", "conflict", "conflict", "same"]


def test_a_question_of_somebody_else_is_refused(make: Make) -> None:
    store = make(2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    question = store.next(ann)[0]
    for kind in ("yes", "no", "skip"):
        with pytest.raises(RefusedError, match="somebody else") as refused:
            store.answer(bob, said(kind, question.id))
        assert refused.value.reason == "foreign"
    with pytest.raises(RefusedError, match="somebody else"):
        store.answer(bob, said("which", question.id, which=question.proposed[0]))


@pytest.mark.parametrize("number", [None, 0, -1, 999, 2**31, 10**30, "1", 1.0, True])
def test_a_question_that_is_not_there_is_refused(make: Make, number: Any) -> None:
    store = make(2)
    ann = store.add_user("Ann")
    store.next(ann, 2)
    with pytest.raises(RefusedError, match="no question"):
        store.answer(ann, said("no", number))


@pytest.mark.parametrize(
    ("mode", "reply", "sentence"),
    [
        ("propose", {"kind": "excluded", "excluded": (1,)}, "does not answer"),
        ("rule-out", YES, "does not answer"),
        ("rule-out", {"kind": "no"}, "does not answer"),
        ("rule-out", {"kind": "which", "which": 0}, "does not answer"),
        ("rule-out", {"kind": "excluded"}, "0 of 6 classes"),
        ("rule-out", {"kind": "excluded", "excluded": tuple(range(6))}, "6 of 6 classes"),
        ("rule-out", {"kind": "excluded", "excluded": (1, 6)}, "no class 6"),
        ("rule-out", {"kind": "excluded", "excluded": (-1,)}, "no class -1"),
        ("rule-out", {"kind": "excluded", "excluded": (1, "1")}, "no class '1'"),
        ("propose", {"kind": "which", "which": 1.0}, "no class 1.0"),
        ("propose", {**YES, "excluded": (1,)}, "has no 'excluded'"),
        ("propose", {**YES, "which": 1}, "has no 'which'"),
        ("propose", {**YES, "undoes": "x"}, "has no 'undoes'"),
        ("propose", {"kind": "perhaps"}, "no reply of kind"),
        ("propose", {**YES, "id": ""}, "reply's id"),
        ("propose", {**YES, "id": "a" * 101}, "reply's id"),
        ("propose", {**YES, "id": "a\0"}, "reply's id"),
        ("propose", {**YES, "id": "ä"}, "reply's id"),
        ("propose", {"kind": "which", "which": 0}, "no 'yes' yet|not in the proposed"),
    ],
)
def test_a_reply_that_makes_no_sense_is_refused(
    make: Make, mode: str, reply: dict[str, Any], sentence: str
) -> None:
    store = make(1, mode=mode)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    with pytest.raises(RefusedError, match=sentence):
        store.answer(ann, said(**{"question": question.id, **reply}))
    assert list(store.log()) == []
    assert [q.id for q in store.next(ann)] == [question.id]


def test_a_strange_duration_does_not_lose_the_answer(make: Make) -> None:
    store = make(3)
    ann = store.add_user("Ann")
    for question, ms in zip(store.next(ann, 3), (-5, 2**40, 10**30), strict=True):
        store.answer(ann, said("no", question.id, took_ms=ms))
    assert [row.took_ms for row in store.log()] == [None] * 3


def test_a_strange_clock_of_a_client_does_not_lose_the_answer(make: Make) -> None:
    store = make(4)
    ann = store.add_user("Ann")
    east, west = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    clocks = (datetime.min.replace(tzinfo=east), datetime.max.replace(tzinfo=west),
              datetime.min, at(0).astimezone(east))  # fmt: skip
    for question, sent in zip(store.next(ann, 4), clocks, strict=True):
        store.answer(ann, said("no", question.id, sent=sent))
    assert [row.sent for row in store.log()] == [
        None,
        None,
        datetime.min.replace(tzinfo=UTC),
        at(0),
    ]


def test_rule_out_keeps_the_classes(make: Make) -> None:
    store = make(1, mode="rule-out")
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    assert question.proposed == ()
    store.answer(ann, said("excluded", question.id, excluded=(4, 0, 4)))
    assert [row.excluded for row in store.log()] == [(0, 4)]


# ---------------------------------------------------------------------- which


def test_which_needs_a_yes_and_a_class_of_the_set(make: Make) -> None:
    store = make(2, law="fixed:3")
    ann = store.add_user("Ann")
    first, second = store.next(ann, 2)
    store.answer(ann, said("yes", first.id))
    store.answer(ann, said("no", second.id))
    outside = next(code for code in range(6) if code not in first.proposed)
    with pytest.raises(RefusedError, match="not in the proposed set"):
        store.answer(ann, said("which", first.id, which=outside))
    with pytest.raises(RefusedError, match="no 'yes' yet"):
        store.answer(ann, said("which", second.id, which=second.proposed[0]))
    told = said("which", first.id, which=first.proposed[1])
    assert store.answer(ann, told).status == "recorded"
    assert store.answer(ann, told).status == "recorded"
    assert store.answer(ann, said("which", first.id, which=first.proposed[0])).status == "late"
    assert [row.counts for row in store.log()] == [True, True, True, False]


def test_which_after_a_late_yes_is_kept_but_does_not_count(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    question = store.next(ann, 1, at(0))[0]
    store.next(bob, 1, at(20))
    assert store.answer(ann, said("yes", question.id), at(21)).status == "late"
    told = said("which", question.id, which=question.proposed[0])
    assert store.answer(ann, told, at(22)).status == "late"
    assert counted(store) == []


# ---------------------------------------------------------------------- late


def test_a_second_answer_to_a_question_is_late(make: Make) -> None:
    store = make(1)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    assert store.answer(ann, said("yes", question.id)).status == "recorded"
    assert store.answer(ann, said("no", question.id)).status == "late"
    assert [(row.kind, row.late, row.counts) for row in store.log()] == [
        ("yes", False, True), ("no", True, False),
    ]  # fmt: skip


def test_a_lease_that_expired_but_was_not_given_away_still_counts(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann = store.add_user("Ann")
    question = store.next(ann, 1, at(0))[0]
    assert store.answer(ann, said("yes", question.id), at(10_000)).status == "recorded"


def test_an_answer_after_the_item_went_to_somebody_else_is_late(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    mine = store.next(ann, 1, at(0))[0]
    assert store.next(bob, 1, at(9)) == []
    theirs = store.next(bob, 1, at(10))[0]
    assert (theirs.item, theirs.round, theirs.proposed) == (mine.item, mine.round, mine.proposed)
    late = said("yes", mine.id)
    assert store.answer(ann, late, at(11)).status == "late"
    assert store.answer(bob, said("no", theirs.id), at(12)).status == "recorded"
    assert store.answer(ann, late, at(13)).status == "late"
    assert [(row.user_name, row.late, row.counts) for row in store.log()] == [
        ("Ann", True, False), ("Bob", False, True),
    ]  # fmt: skip
    assert store.check() == []
