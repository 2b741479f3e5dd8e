"""Answers from elsewhere: brought in once, whatever they say, and heard by every export."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest
from web.made import Make, asked_and_said, at, make_items, said

from ruleout.web import Brought, RefusedError, Store
from ruleout.web.importing import Earlier, read_answers
from ruleout.web.project_export import write_log


def earlier(item: int, who: str, kind: Any, about: tuple[int, ...] = (), **more: Any) -> Earlier:
    """Make an answer; `about` is the set it is about."""
    named = {"excluded": "excluded", "which": "which"}.get(kind, "proposed")
    said_of = about[0] if kind == "which" else about
    return Earlier(item=f"{item}.png", annotator=who, kind=kind, **{named: said_of, **more})


def names(store: Store) -> list[str]:
    """Return the names of the items."""
    return [item.name for _, item in store.items()]


def test_what_is_brought_is_in_the_log_as_it_was(make: Make) -> None:
    store = make(4)
    given = [
        earlier(0, "Ann", "no", (1, 2), time=at(-99), took_ms=700),
        earlier(1, "Bob", "yes", (0, 5)),
        earlier(1, "Bob", "which", (5,)),
        earlier(2, "Bob", "excluded", (3,)),
        earlier(3, "Cem", "skip"),
    ]
    assert store.bring(given, at(5)) == Brought(added=5, known=0, users=("Ann", "Bob", "Cem"))
    rows = list(store.log())
    assert [(r.id, r.item_name, r.user_name, r.kind, r.proposed, r.excluded, r.which, r.sent,
             r.took_ms) for r in rows] == [
        (e.id, e.item, e.annotator, e.kind, e.proposed, e.excluded, e.which, e.time, e.took_ms)
        for e in given[:2]
    ] + [(given[2].id, "1.png", "Bob", "which", (0, 5), (), 5, None, None)] + [
        (e.id, e.item, e.annotator, e.kind, e.proposed, e.excluded, e.which, e.time, e.took_ms)
        for e in given[3:]
    ]  # fmt: skip
    assert {(row.law, row.gold, row.late, row.counts) for row in rows} == {
        ("imported", False, False, True)
    }
    assert {row.received for row in rows} == {at(5)}
    assert store.check() == []


def test_absent_annotators_become_users_who_may_not_come_in(make: Make) -> None:
    store = make(3)
    ann = store.add_user("Ann")
    brought = store.bring([earlier(0, "ANN", "no", (1,)), earlier(1, "Bob", "no", (1,))])
    assert brought.users == ("Bob",)
    assert [(user.name, user.disabled) for user in store.users()] == [("Ann", False), ("Bob", True)]
    assert store.password("Bob") == (store.user("Bob"), None)
    assert [row.user for row in store.log()] == [ann.id, store.user("Bob").id]


def test_bringing_twice_adds_nothing(make: Make) -> None:
    store = make(6, rounds=2)
    given = _many(6)
    assert store.bring(given, at(0)).added == len(given)
    before = list(store.log())
    again = store.bring([*given, *given], at(9))
    assert (again.added, again.known, again.users) == (0, 2 * len(given), ())
    assert list(store.log()) == before
    more = store.bring([*given, earlier(0, "Zed", "no", (1,))], at(10))
    assert (more.added, more.known, more.users) == (1, len(given), ("Zed",))
    assert store.check() == []


def _many(items: int, seed: int = 0) -> list[Earlier]:
    random = Random(seed)
    found = {}
    for _ in range(items * 6):
        kind = random.choice(["yes", "no", "which", "excluded", "skip"])
        about = tuple(sorted(random.sample(range(6), 1 if kind == "which" else 3)))
        one = earlier(random.randrange(items), random.choice("ABCDE"), kind,
                      () if kind == "skip" else about)  # fmt: skip
        found[one.id] = one
    return list(found.values())


def test_contradictions_are_kept_even_of_one_person(make: Make) -> None:
    store = make(1)
    store.bring([earlier(0, "Ann", "no", (0, 1)), earlier(0, "Ann", "yes", (0, 1)),
                 earlier(0, "Bob", "which", (3,)), earlier(0, "Bob", "which", (4,))])  # fmt: skip
    assert [len(one.answers) for one in store.answer_log().contradictions()] == [4]
    assert store.check() == []
    assert (store.progress().given, store.progress().answers) == (1, 4)


def test_a_round_that_is_filled_is_not_asked_again(make: Make) -> None:
    store = make(5, rounds=2)
    store.bring([earlier(n, who, "no", (1,)) for n in range(3) for who in ("Ann", "Bob")])
    cem = store.add_user("Cem")
    assert {store.item(q.item).name for q in store.next(cem, 10)} == {"3.png", "4.png"}
    told = store.progress()
    assert (told.done, told.given, told.answers) == (3, 6, 6)


def test_an_item_that_still_needs_answers_is_asked_of_others(make: Make) -> None:
    store = make(2, rounds=2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    store.bring([earlier(0, "Ann", "no", (1,)), earlier(0, "Ann", "yes", (2,))])
    assert [store.item(q.item).name for q in store.next(ann, 5)] == ["1.png"]
    assert sorted(q.item for q in store.next(bob, 5)) == [1, 2]
    assert store.progress().given == 1


def test_a_skip_leaves_the_round_to_others(make: Make) -> None:
    store = make(1)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    store.bring([earlier(0, "Ann", "skip")])
    assert store.next(ann) == []
    question = store.next(bob)[0]
    assert question.law == "released"
    assert store.answer(bob, said("no", question.id)).status == "recorded"
    assert store.progress().skips == 1


def test_an_open_question_stays_with_who_has_it(make: Make) -> None:
    store = make(1)
    ann = store.add_user("Ann")
    question = store.next(ann)[0]
    store.bring([earlier(0, "Ann", "yes", (1,)), earlier(0, "Bob", "no", (1,))])
    assert store.answer(ann, said("no", question.id)).status == "recorded"
    assert [row.counts for row in store.log()] == [True] * 3
    assert store.check() == []


def test_which_goes_with_its_yes_wherever_that_stands(make: Make) -> None:
    store = make(3)
    store.bring([earlier(0, "Ann", "which", (2,)), earlier(0, "Ann", "yes", (1, 2)),
                 earlier(1, "Ann", "yes", (1, 2))])  # fmt: skip
    store.bring([earlier(1, "Ann", "which", (1,)), earlier(1, "Ann", "which", (2,)),
                 earlier(2, "Ann", "which", (0,))])  # fmt: skip
    rows = {(row.item_name[0], row.kind, row.which): row for row in store.log()}
    assert rows["0", "which", 2].round == rows["0", "yes", None].round
    assert rows["1", "which", 1].round == rows["1", "yes", None].round
    assert rows["1", "which", 2].round != rows["1", "yes", None].round
    assert rows["2", "which", 0].proposed == ()
    assert store.progress().done == 3
    assert store.check() == []


def test_undo_does_not_reach_what_was_brought(make: Make) -> None:
    store = make(3)
    ann = store.add_user("Ann")
    one = earlier(0, "Ann", "no", (1,))
    store.bring([one])
    assert store.answer(ann, said("undo")).status == "nothing"
    with pytest.raises(RefusedError, match=r"no answer .* of yours"):
        store.answer(ann, said("undo", undoes=one.id))
    asked_and_said(store, ann)
    assert store.answer(ann, said("undo")).status == "recorded"
    assert [row.counts for row in store.log()] == [True, False, False]


def test_a_reply_cannot_take_the_place_of_an_import(make: Make) -> None:
    store = make(2)
    ann, one = store.add_user("Ann"), earlier(0, "Ann", "no", (1,))
    question = store.next(ann)[0]
    with pytest.raises(RefusedError, match="imported answers"):
        store.answer(ann, said("yes", question.id, id=one.id))
    assert store.bring([one]).added == 1


def test_gold_items_take_imports_without_testing_anybody(make: Make) -> None:
    store = make(make_items(12, gold=3), gold_rate=0.5, seed=1)
    store.bring([earlier(n, "Ann", "no", (4,)) for n in range(3)])
    bob = store.add_user("Bob")
    for question in store.next(bob, 12):
        store.answer(bob, said("no", question.id))
    rows = list(store.log())
    assert not any(row.gold for row in rows if row.user_name == "Ann")
    assert any(row.gold for row in rows if row.user_name == "Bob")
    assert store.check() == []


@pytest.mark.parametrize(
    ("wrong", "sentence", "reason"),
    [
        (Earlier(item="gone.png", annotator="Ann", kind="skip"), "no item 'gone.png'", "unknown"),
        (Earlier(item="a\0\udcff", annotator="Ann", kind="skip"), "no item", "unknown"),
        (earlier(1, "a\nb", "skip"), "the name", "invalid"),
        (earlier(1, "a" * 65, "skip"), "the name", "invalid"),
        (earlier(1, "Ann", "undo"), "makes no sense", "invalid"),
        (earlier(1, "Ann", "no", (6,)), "makes no sense", "invalid"),
        (earlier(1, "Ann", "no", (-1,)), "makes no sense", "invalid"),
        (earlier(1, "Ann", "yes"), "makes no sense", "invalid"),
        (earlier(1, "Ann", "no", tuple(range(6))), "makes no sense", "invalid"),
        (earlier(1, "Ann", "excluded", tuple(range(6))), "makes no sense", "invalid"),
        (earlier(1, "Ann", "which", (6,)), "makes no sense", "invalid"),
        (Earlier(item="1.png", annotator="Ann", kind="which"), "makes no sense", "invalid"),
    ],
)  # fmt: skip
def test_one_wrong_answer_and_nothing_is_brought(
    make: Make, wrong: Earlier, sentence: str, reason: str
) -> None:
    store = make(2)
    with pytest.raises(RefusedError, match=sentence) as refused:
        store.bring([earlier(0, "Bob", "no", (1,)), wrong])
    assert refused.value.reason == reason
    assert (store.users(), list(store.log())) == ([], [])


def test_nothing_brought_is_nothing_done(make: Make) -> None:
    assert make(1).bring([]) == Brought(added=0, known=0, users=())


def test_an_export_of_one_project_can_be_brought_into_another(make: Make, tmp_path: Path) -> None:
    store = make(8, rounds=2)
    store.bring(_many(8, seed=3), at(0))
    ann = store.add_user("Ann Other")
    for second in range(6):
        for question in store.next(ann, 1, at(second)):
            kind = ("yes", "no", "skip")[second % 3]
            store.answer(ann, said(kind, question.id), at(second))
    file, classes = tmp_path / "log.jsonl", store.settings.classes
    write_log(store.log(), classes, file)
    read = read_answers(file, names(store), classes)
    with Store.create(f"sqlite:///{tmp_path / 'b.sqlite'}", store.settings, make_items(8)) as other:
        assert other.bring(read.answers).added == len(list(store.log()))
        for how in ("no", "intersection"):
            one, two = (s.answer_log().known(how) for s in (store, other))
            assert one.items == two.items
            assert one.sets.to_lists() == two.sets.to_lists()
            assert len(one.contradictions) == len(two.contradictions)
        assert len(other.answer_log().every_answer().items) == 0
        assert other.check() == []


def test_a_file_brought_by_many_at_once_while_others_answer_is_brought_once(make: Make) -> None:
    store = make(make_items(40, gold=5), rounds=2, gold_rate=0.3)
    people = [store.add_user(f"user {n}") for n in range(4)]
    given = _many(40)

    def work(n: int) -> int:
        if n < 3:
            return store.bring(given).added
        for _ in range(12):
            for question in store.next(people[n - 3], 2):
                store.answer(people[n - 3], said("no", question.id))
        return 0

    with ThreadPoolExecutor(7) as threads:
        assert sum(threads.map(work, range(7))) == len(given)
    assert store.check() == []
    assert len([row for row in store.log() if row.law == "imported"]) == len(given)


def test_an_item_that_its_annotator_skipped_takes_their_earlier_answer(make: Make) -> None:
    store = make(1, rounds=2)
    ann = store.add_user("Ann")
    question = store.next(ann, 1, at(0))[0]
    store.answer(ann, said("skip", question.id, id="skip"), at(1))
    assert store.bring([earlier(0, "Ann", "no", (1, 2))], at(2)).added == 1
    assert store.answer(ann, said("undo", undoes="skip"), at(3)).status == "recorded"
    assert [one.id for one in store.next(ann, 1, at(4))] == [question.id]
    assert store.answer(ann, said("no", question.id), at(5)).status == "recorded"
    assert store.check() == []


def test_an_item_whose_lease_ran_out_takes_the_earlier_answer_of_who_had_it(make: Make) -> None:
    store = make(1, lease_seconds=10)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    late = store.next(ann, 1, at(0))[0]
    asked_and_said(store, bob, "skip", at(20))
    assert store.bring([earlier(0, "Ann", "no", (1, 2))], at(30)).added == 1
    assert store.answer(ann, said("no", late.id), at(40)).status == "late"
    assert store.check() == []
