"""Who is asked what, and until when."""

from __future__ import annotations

from web.made import Make, asked_and_said, at, counted, make_items, said

from ruleout.web import Question, Store, User


def test_an_expired_lease_of_ones_own_begins_anew(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    first = store.next(ann, 1, at(0))[0]
    second = store.next(ann, 1, at(60))[0]
    assert (first.id, first.expires, second.expires) == (second.id, at(10), at(70))
    assert store.next(bob, 1, at(65)) == []


def test_fresh_items_go_before_expired_leases(make: Make) -> None:
    store = make(2, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    hers = store.next(ann, 1, at(0))[0]
    his = store.next(bob, 2, at(99))
    assert his[0].item != hers.item
    assert his[1].item == hers.item


def test_a_question_lost_and_won_back_is_the_same_question(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    first = store.next(ann, 1, at(0))[0]
    store.next(bob, 1, at(20))
    assert store.next(ann, 1, at(25)) == []
    back = store.next(ann, 1, at(40))[0]
    assert back.id == first.id
    assert store.answer(ann, said("no", back.id), at(41)).status == "recorded"


def test_an_item_gets_its_answers_from_different_people(make: Make) -> None:
    store = make(6, rounds=3)
    people = [store.add_user(name) for name in ("Ann", "Bob", "Cem", "Dee")]
    for _ in range(6):
        for person in people:
            for question in store.next(person, 1):
                store.answer(person, said("no", question.id))
    pairs = [(row.item, row.user) for row in counted(store)]
    assert len(pairs) == len(set(pairs)) == 18
    assert store.progress().done == 6


def test_one_person_cannot_fill_two_rounds_of_an_item(make: Make) -> None:
    store = make(3, rounds=2)
    ann = store.add_user("Ann")
    assert len({question.item for question in store.next(ann, 10)}) == 3
    assert len(store.next(ann, 10)) == 3


def test_a_skipped_item_goes_to_others_with_the_same_set(make: Make) -> None:
    store = make(1)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    question = store.next(ann)[0]
    store.answer(ann, said("skip", question.id))
    assert store.next(ann) == []
    assert store.next(bob)[0].proposed == question.proposed


def test_rounds_of_an_item_propose_different_sets(make: Make) -> None:
    store = make(20, rounds=2, classes=tuple("abcdefghijklmnop"))
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    first = {q.item: q.proposed for q in store.next(ann, 20)}
    second = {q.item: q.proposed for q in store.next(bob, 20)}
    assert first.keys() == second.keys()
    assert all(first[item] != second[item] for item in first)


def test_what_a_disabled_user_had_open_goes_to_others_at_once(make: Make) -> None:
    store = make(1)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    store.next(ann, 1, at(0))
    store.disable("Ann", now=at(1))
    assert len(store.next(bob, 1, at(1))) == 1


def test_a_page_that_nobody_sits_at_keeps_no_questions_from_others(make: Make) -> None:
    store = make(4, lease_seconds=600)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    first = store.next(ann, 4, at(0))
    store.answer(ann, said("no", first[0].id), at(1000))
    for now in range(1000, 30_000, 150):  # as the page asks by itself
        held = store.next(ann, 3, at(now))
    assert [one.id for one in held] == [one.id for one in first[1:]]
    assert max(one.expires for one in held) <= at(1000 + 3600 + 600)
    hers = store.turn(ann, said("no", held[0].id), 2, at(30_000))  # she is back
    assert {one.expires for one in hers.questions} == {at(30_600)}
    assert len(store.next(bob, 3, at(30_601))) == 2


# ---------------------------------------------------------------------- clocks


def test_a_clock_that_jumps_an_hour_gives_one_answer_per_round(make: Make) -> None:
    store = make(12, rounds=2)
    people = [store.add_user(name) for name in ("Ann", "Bob", "Cem")]
    clock, held = 0.0, []
    for turn, jump in enumerate([0, 3600, -3600, -3600, 3600, 7200, -7200, 1, 1, 3600] * 3):
        clock += jump
        person = people[turn % 3]
        held += [(person, question) for question in store.next(person, 3, at(clock))]
        who, question = held[(turn * 7) % len(held)]
        store.answer(who, said("no", question.id), at(clock - jump / 2))
    for who, question in held:
        store.answer(who, said("yes", question.id), at(-3600))
    places = [(row.item, row.round) for row in counted(store)]
    assert len(places) == len(set(places))
    assert store.check() == []


# ---------------------------------------------------------------------- gold


def test_gold_comes_at_its_rate_and_holds_the_class_half_the_time(make: Make) -> None:
    store = make(make_items(640, gold=160), gold_rate=0.2, seed=1)
    people = [store.add_user(name) for name in ("Ann", "Bob")]
    asked = [q for person in people for _ in range(2) for q in _answered(store, person, 100)]
    gold = [q for q in asked if q.gold]
    known = {number: item.gold for number, item in store.items()}
    inside = sum(known[q.item] in q.proposed for q in gold)
    assert abs(len(gold) - 80) < 4 * (400 * 0.2 * 0.8) ** 0.5
    assert abs(inside - len(gold) / 2) < 4 * (len(gold) / 4) ** 0.5
    assert all(q.gold == (known[q.item] is not None) for q in asked)
    assert {q.law for q in gold} == {"released, gold half the time"}


def _answered(store: Store, person: User, count: int) -> list[Question]:
    found = store.next(person, count)
    for question in found:
        store.answer(person, said("no", question.id))
    return found


def test_a_gold_item_is_asked_of_everybody_once(make: Make) -> None:
    store = make(make_items(60, gold=3), gold_rate=0.5, seed=2)
    people = [store.add_user(name) for name in ("Ann", "Bob", "Cem", "Dee")]
    for person in people:
        _answered(store, person, 14)
    gold = [(row.item, row.user_name) for row in counted(store) if row.gold]
    assert len(gold) == len(set(gold)) == 12
    rounds = sorted((row.item, row.round) for row in counted(store) if row.gold)
    items = sorted(number for number, item in store.items() if item.gold is not None)
    assert rounds == [(item, number) for item in items for number in range(4)]


def test_a_project_of_gold_alone_is_finished_too(make: Make) -> None:
    store = make(make_items(6, gold=6), gold_rate=0.1)
    ann = store.add_user("Ann")
    while _answered(store, ann, 2):
        pass
    assert store.progress().done == 6


def test_known_items_are_ordinary_without_a_gold_rate(make: Make) -> None:
    store = make(make_items(4, gold=4))
    assert [q.gold for q in store.next(store.add_user("Ann"), 4)] == [False] * 4


def test_further_gold_answers_do_not_count_as_needed(make: Make) -> None:
    store = make(make_items(10, gold=1), gold_rate=0.5, seed=4)
    people = [store.add_user(name) for name in ("Ann", "Bob")]
    for person in people * 10:
        if store.next(person):
            asked_and_said(store, person)
    told = store.progress()
    assert (told.wanted, told.given, told.done, told.answers) == (10, 10, 10, 11)


def test_nobody_is_tested_when_nothing_is_left_to_do(make: Make) -> None:
    store = make(make_items(20, gold=10), gold_rate=0.5, seed=4)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    while _answered(store, ann, 5):
        pass
    assert store.progress().done == 20
    assert store.next(bob, 20) == []
