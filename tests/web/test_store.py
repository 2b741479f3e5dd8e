"""The store: what is put in comes out, on both databases."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest
from web.made import Make, asked_and_said, at, counted, make_items, said

from ruleout.labels.errors import InputError
from ruleout.web import Item, RefusedError, Settings, Store, StoreError


def test_settings_and_items_come_back_as_they_were(make: Make, again: Callable[[], Store]) -> None:
    items = [
        Item(name="ünï/a.png", kind="image", path="ünï/a.png", sha256="0" * 64, gold=2),
        Item(name="t'; DROP TABLE items;--", kind="text", text="two\nlines \N{SNOWMAN}"),
        Item(name="r", kind="row", cells={"x": 1.5, "<b>": "\0", "none": None}),
    ]
    settings = {"law": "paper", "cap": 3, "rounds": 4, "gold_rate": 0.25, "ask_which": True}
    store = make(items, seed=2**63 - 1, **settings)
    other = again()
    assert other.settings == store.settings
    assert other.settings.classes == tuple("abcdef")
    assert [item for _, item in other.items()] == items
    assert [item for _, item in other.items(2, 3)] == items[1:]
    assert [other.item(number) for number, _ in other.items()] == items


@pytest.mark.parametrize("number", [0, -1, 4, 2**40, 10**30, True, "1", None])
def test_an_item_that_is_not_there_is_refused(make: Make, number: int) -> None:
    with pytest.raises(RefusedError, match="no item"):
        make(3).item(number if number is not True else 9)


def test_every_item_is_asked_once_in_the_seeded_order(make: Make) -> None:
    store = make(30, seed=5)
    ann = store.add_user("Ann")
    order = [asked_and_said(store, ann).item for _ in range(30)]
    assert sorted(order) == list(range(1, 31))  # type: ignore[type-var]
    assert order != sorted(order)  # type: ignore[type-var]
    assert store.next(ann, 1) == []


def test_a_reload_shows_the_same_questions(make: Make) -> None:
    store = make(10)
    ann = store.add_user("Ann")
    first = store.next(ann, 3, at(0))
    assert store.next(ann, 3, at(1)) == first
    store.answer(ann, said("yes", first[0].id), at(2))
    assert store.next(ann, 3, at(3))[:2] == first[1:]


def test_progress_counts_items_answers_skips_and_pace(make: Make) -> None:
    store = make(4, rounds=2)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    asked_and_said(store, ann, "yes", at(0))
    asked_and_said(store, ann, "skip", at(5))
    asked_and_said(store, ann, "no", at(10))
    for second in (20, 30, 40, 50):
        asked_and_said(store, bob, "no", at(second))
    told = store.progress()
    assert (told.items, told.wanted, told.given, told.answers, told.skips) == (4, 8, 6, 6, 1)
    assert told.done == 2
    assert told.per_hour == pytest.approx(360)
    assert told.seconds_left == pytest.approx(20)
    of_ann = store.progress(ann)
    assert (of_ann.answers, of_ann.skips) == (2, 1)
    assert of_ann.per_hour == pytest.approx(360)


def test_progress_does_not_tell_which_question_was_gold(make: Make) -> None:
    """Every answer moves what an annotator sees by one; in the end all is done."""
    store = make(make_items(60, gold=40), gold_rate=0.4)
    ann = store.add_user("Ann")
    seen, gold = [store.progress(ann)], 0
    for second in range(40):
        gold += store.next(ann, 1, at(second))[0].gold
        asked_and_said(store, ann, "no", at(second))
        seen.append(store.progress(ann))
    assert 5 < gold < 35
    assert [one.given for one in seen] == [*range(41)]
    assert {one.wanted for one in seen} == {60}  # the known items are among those asked about
    left = [one.seconds_left for one in seen[2:]]
    assert left == pytest.approx([float(60 - one.given) for one in seen[2:]])
    second = 40
    while store.next(ann, 1, at(second)):
        asked_and_said(store, ann, "no", at(second))
        second += 1
    told = store.progress(ann)
    assert (told.given, told.seconds_left) == (told.wanted, 0)
    assert store.progress().given == 60


def test_few_known_items_make_more_to_answer_than_the_items_need(make: Make) -> None:
    store = make(make_items(60, gold=3), gold_rate=0.4)
    assert store.progress(store.add_user("Ann")).wanted == 95  # 57 others are three fifths of it
    assert store.progress().wanted == 60


def test_a_new_project_has_no_pace(make: Make) -> None:
    told = make(2).progress()
    assert (told.done, told.per_hour, told.seconds_left) == (0, None, None)


def test_the_log_says_everything(make: Make) -> None:
    store = make(1, cap=2, seed=3)
    ann = store.add_user("Ann")
    question = store.next(ann, 1, at(0))[0]
    store.answer(ann, said("yes", question.id, took_ms=900, sent=at(2)), at(1))
    store.answer(ann, said("which", question.id, which=question.proposed[0]), at(2))
    yes, which = store.log()
    assert (yes.item_name, yes.user_name, yes.round) == ("0.png", "Ann", 0)
    assert (yes.proposed, yes.law, yes.seed) == (
        question.proposed, "released, at most 2", question.seed,
    )  # fmt: skip
    assert (yes.took_ms, yes.sent, yes.received) == (900, at(2), at(1))
    assert (which.kind, which.which, which.counts) == ("which", question.proposed[0], True)
    assert len(counted(store)) == 1


def test_a_log_read_halfway_does_not_block_writers(make: Make) -> None:
    store = make(20)
    ann = store.add_user("Ann")
    for _ in range(10):
        asked_and_said(store, ann)
    reading = store.log()
    next(reading)
    asked_and_said(store, ann)
    assert len(list(reading)) == 9
    assert len(list(store.log())) == 11


# ---------------------------------------------------------------------- what is refused


def test_a_moment_without_a_zone_is_refused(make: Make) -> None:
    store = make(1)
    with pytest.raises(ValueError, match="no time zone"):
        store.next(store.add_user("Ann"), 1, datetime(2026, 1, 1))


@pytest.mark.parametrize("count", [0, -1, 101, 10**30, 1.5, "2"])
def test_an_impossible_number_of_questions_is_refused(make: Make, count: int) -> None:
    store = make(1)
    with pytest.raises(RefusedError, match="ask for 1 to 100"):
        store.next(store.add_user("Ann"), count)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"classes": ("a",)}, "class"),
        ({"law": "unheard"}, "law"),
        ({"cap": 0}, "cap from 1 to 5"),
        ({"cap": 6}, "cap from 1 to 5"),
        ({"law": "fixed:4", "cap": 3}, "raise the cap"),
        ({"mode": "guess"}, "mode"),
        ({"rounds": 0}, "rounds"),
        ({"gold_rate": 1.5}, "gold_rate"),
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"seed": -1}, "seed"),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    tmp_path: Path, wrong: dict[str, object], sentence: str
) -> None:
    settings = Settings(**{"classes": tuple("abcdef"), **wrong})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=sentence):
        Store.create(f"sqlite:///{tmp_path / 'a.sqlite'}", settings, make_items(2))


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([], "no items"),
        ([Item(name="a", kind="text"), Item(name="a", kind="text")], "row 1: .* taken"),
        ([Item(name="", kind="text")], "empty"),
        ([Item(name="a\0", kind="text")], "cannot be stored"),
        ([Item(name="a", kind="text", text="\udcff")], "cannot be stored"),
        ([Item(name="a", kind="text", gold=6)], "gold class 6"),
    ],
)
def test_items_that_make_no_sense_are_refused_whole(
    url: str, items: list[Item], sentence: str
) -> None:
    settings = Settings(classes=tuple("abcdef"))
    with pytest.raises(StoreError, match=sentence):
        Store.create(url, settings, items)
    Store.create(url, settings, make_items(1)).close()  # nothing was left behind
