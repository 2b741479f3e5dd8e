"""A project grows while people label: nothing is lost, and what was said stays what it was."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from web.made import Make, asked_and_said, at, make_items, said, sparse_lots

from ruleout.web import Grown, Item, Settings, Store, StoreError
from ruleout.web import store as store_module
from ruleout.web.importing import Earlier

Again = Callable[[], Store]


def grown(store: Store, items: Any = (), **changed: Any) -> Grown:
    return store.grow(replace(store.settings, **changed), items)


def more(n: int, gold: bool = False) -> list[Item]:
    return [
        Item(name=f"new {i}.png", kind="image", path=f"new {i}.png", gold=i % 6 if gold else None)
        for i in range(n)
    ]


def test_leases_stay_and_new_items_are_asked_after_the_old(make: Make, again: Again) -> None:
    serving = make(3)
    ann = serving.add_user("Ann")
    held = serving.next(ann, 2, at(0))
    done = grown(again(), [*make_items(3), *more(2)])
    assert (done.items, done.known) == (2, 3)
    assert serving.next(ann, 2, at(1)) == held
    for question in held:
        assert serving.answer(ann, said("no", question.id), at(2)).status == "recorded"
    names = [serving.item(one.item).name for one in serving.next(ann, 9, at(3))]
    assert len(names) == 3
    assert sorted(names[1:]) == ["new 0.png", "new 1.png"]
    assert [item.name for _, item in serving.items()][3:] == ["new 0.png", "new 1.png"]
    assert serving.progress().wanted == 5
    assert serving.check() == []


def test_a_number_does_not_tell_that_an_item_was_added(
    quick_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else gold questions that are added later would be known by their numbers."""
    monkeypatch.setattr(store_module, "_lots", sparse_lots)
    values = []
    for project in range(12):
        monkeypatch.setattr(store_module, "new_secret", lambda mine=project: mine)
        url = f"sqlite:///{quick_folder / str(project)}"
        with Store.create(url, Settings(classes=tuple("abcdef")), make_items(40)) as store:
            grown(store, more(20, gold=True), gold_rate=0.1)
            numbers = [number for number, _ in store.items()]
        assert len(set(numbers)) == 60
        values.append(stats.mannwhitneyu(numbers[:40], numbers[40:]).pvalue)
    assert stats.kstest(values, "uniform").pvalue > 1e-3


def test_a_running_store_asks_about_a_new_class(make: Make, again: Again) -> None:
    serving = make(40, law="fixed:1")
    ann = serving.add_user("Ann")
    asked_and_said(serving, ann)
    grown(again(), classes=tuple("abcdefg"))
    asked = serving.next(ann, 39)
    assert serving.settings.classes == tuple("abcdefg")
    assert 6 in {code for one in asked for code in one.proposed}


def test_of_a_new_class_old_answers_say_nothing(make: Make, again: Again) -> None:
    store = make(2, law="fixed:2", rounds=2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    held = store.next(ann, 2)
    store.answer(ann, said("yes", held[0].id))
    assert len(store.answer_log().known("intersection").items) == 1
    grown(again(), classes=tuple("abcdefg"))
    store.answer(ann, said("yes", held[1].id))  # asked before, answered after
    for log in (store.answer_log(), again().answer_log()):
        assert log.candidates.tolist() == [3, 3]
        assert log.early().all()
        assert log.known("intersection").items == ()  # or the new class would seem to be the answer
        assert len(log.every_answer().yes) == 0  # drawn from fewer classes than there are
    new = store.next(bob, 1)[0]
    store.answer(bob, said("yes", new.id))
    item = [number for number, _ in store.items()].index(new.item)
    log = store.answer_log()
    assert len(log.every_answer().yes) == 1
    assert (6 in new.proposed) == bool(
        log.known("intersection").sets is not None and _left(log, item, 6)
    )


def test_an_old_no_and_a_new_yes_say_nothing_of_a_new_class_where_no_alone_is_heard(
    make: Make, again: Again
) -> None:
    store = make(1, law="fixed:2", rounds=2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    store.answer(ann, said("no", store.next(ann, 1)[0].id))
    grown(again(), classes=tuple("abcdefg"))
    store.answer(bob, said("yes", store.next(bob, 1)[0].id))
    log = store.answer_log()
    assert (log.early("no").tolist(), log.early().tolist()) == ([True], [False])
    assert log.known("no").items == ()


def _left(log: Any, item: int, code: int) -> bool:
    return not (log.excluded_by_all[item, code >> 3] >> (code & 7)) & 1


def test_more_rounds_ask_again_of_others(make: Make, again: Again) -> None:
    store = make(3)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    store.bring([Earlier(item="0.png", annotator="Bob", kind="skip")])  # has no slot
    for _ in range(3):
        asked_and_said(store, ann)
    assert store.next(bob, 3) == []
    grown(again(), rounds=3)
    assert store.next(ann, 9) == []
    assert len(store.next(bob, 9)) == 2  # and the one that he skipped goes to others
    assert all(one.proposed for one in store.next(bob, 9))
    assert (store.progress().given, store.progress().wanted) == (3, 9)
    assert store.check() == []


def test_known_items_become_tests(make: Make) -> None:
    store = make(30)
    ann = store.add_user("Ann")
    asked_and_said(store, ann)
    items = [replace(item, gold=2) if n < 20 else item for n, (_, item) in enumerate(store.items())]
    assert grown(store, items, gold_rate=0.5).gold == 20
    asked = store.next(ann, 9)
    assert {store.item(one.item).gold for one in asked if one.gold} == {2}
    assert {store.item(one.item).gold for one in asked if not one.gold} <= {None}
    assert grown(store, items).gold == 0


def test_what_fails_half_way_has_changed_nothing(
    make: Make, again: Again, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make(3)
    before = store.settings, list(store.items()), store.progress()

    def killed(**_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store_module, "Grown", killed)
        with pytest.raises(KeyboardInterrupt):
            grown(store, more(2), classes=tuple("abcdefg"), rounds=2)
    for one in (store, again()):
        assert (one.settings, list(one.items()), one.progress()) == before
    assert grown(store, more(2), classes=tuple("abcdefg"), rounds=2).items == 2


def test_people_label_on_while_a_project_grows(make: Make, again: Again) -> None:
    make(20, rounds=2, law="fixed:2", gold_rate=0.2)
    store, other = again(), again()
    people = [store.add_user(name) for name in ("Ann", "Bob", "Cy")]

    def label(number: int) -> list[str]:
        told = []
        for turn in range(8):
            mine = (store, other)[turn % 2]
            for question in mine.next(people[number], 1):
                reply = said(("yes", "no")[turn % 2], question.id)
                told.append(mine.answer(people[number], reply).id)
        return told

    with ThreadPoolExecutor(3) as threads:
        work = [threads.submit(label, number) for number in range(3)]
        for step in range(4):
            items = [replace(one, name=f"{step} {one.name}") for one in more(5, gold=step == 2)]
            grown(again(), items, classes=tuple("abcdefghijk"[: 7 + step]), rounds=2 + step)
        told = [one for each in work for one in each.result()]
    log = list(store.log())
    assert sorted(told) == sorted(row.id for row in log)
    assert store.check() == []
    sizes = np.array([len(row.proposed) for row in log])
    assert (sizes == 2).all()


@pytest.mark.parametrize(
    ("items", "changed", "sentence"),
    [
        ((), {"classes": tuple("abcdeg")}, "asks about 6 classes .*at the end"),
        ((), {"rounds": 0}, "rounds = 0"),
        ((), {"rounds": 5000}, "rounds = 5000"),
        ((), {"mode": "rule-out"}, "make a new project"),
        ((), {"classes": (*"abcdef", "a")}, "'a' appears twice"),
        (([Item(name="0.png", kind="image", sha256="x")]), {}, "'0.png' is there already"),
        (([Item(name="new", kind="text", text="a")]), {}, "are of the kind 'image'"),
        (([Item(name="new", kind="image", gold=6)]), {}, "gold class 6"),
        ([*more(1), *more(1)], {}, "'new 0.png' is taken"),
    ],
)
def test_what_a_project_cannot_become_is_refused(
    make: Make, items: Any, changed: Any, sentence: str
) -> None:
    store = make()
    with pytest.raises((StoreError, ValueError), match=sentence):
        grown(store, items, **changed)
    assert len(list(store.items())) == 5


def test_a_known_class_is_not_overwritten(make: Make) -> None:
    store = make(make_items(3, gold=1))
    with pytest.raises(StoreError, match=r"'0\.png' is known to be 'a'; .* team page"):
        grown(store, [replace(make_items(1)[0], gold=3)])
