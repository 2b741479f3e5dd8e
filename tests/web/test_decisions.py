"""Leads decide about contradictions: every number follows, no row is changed, all can be undone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from web.made import Make, at, said

from ruleout.web import RefusedError, Store, User
from ruleout.web.error_rates import error_rates, weights
from ruleout.web.importing import Earlier
from ruleout.web.project_export import write_bundle
from ruleout.web.team.team_page import team_view

A, B, C = range(3)


@pytest.fixture
def store(make: Make) -> Store:
    """Ann and Bob contradict each other about the first item, and agree on the second."""
    store = make(2, classes=("cat", "dog", "bird"))
    store.bring([
        Earlier(item="0.png", annotator="Ann", kind="which", which=A),
        Earlier(item="0.png", annotator="Bob", kind="no", proposed=(A,)),
        Earlier(item="1.png", annotator="Ann", kind="no", proposed=(B,)),
    ])  # fmt: skip
    return store


@pytest.fixture
def lea(store: Store) -> User:
    return store.add_user("Lea", "lead")


def number(store: Store, name: str = "0.png") -> int:
    return {item.name: number for number, item in store.items()}[name]


def known(store: Store, how: str = "intersection") -> dict[str, list[str]]:
    found = store.answer_log().known(how)  # type: ignore[arg-type]
    return {
        name: [str(one) for one in row] for name, row in zip(found.items, found.sets, strict=True)
    }


def test_a_class_settles_an_item_and_leaves_out_who_denied_it(store: Store, lea: User) -> None:
    assert [one.item for one in store.answer_log().contradictions()] == ["0.png"]
    store.decide(number(store), lea, which=B, now=at(5))
    log = store.answer_log()
    assert log.contradictions() == ()
    for how in ("intersection", "no"):
        assert known(store, how) == {"0.png": ["cat", "bird"], "1.png": ["dog"]}
    assert [row.counts for row in log] == [False, True, True]
    assert [(one.by, one.at, one.which) for one in log.decisions] == [("Lea", at(5), B)]
    sets = log.known("intersection")
    assert weights(log, sets.sets, sets.items, error_rates(log))[0] == 1


def test_answers_are_left_out_one_by_one(store: Store, lea: User) -> None:
    wrong = next(row.number for row in store.log() if row.user_name == "Ann")
    store.decide(number(store), lea, voids=[wrong])
    assert known(store) == {"0.png": ["cat"], "1.png": ["dog"]}


def test_a_which_falls_with_the_yes_before_it(make: Make) -> None:
    one = make(1)
    ann, lea = one.add_user("Ann"), one.add_user("Lea", "lead")
    question = one.next(ann)[0]
    yes = one.answer(ann, said("yes", question.id))
    one.answer(ann, said("which", question.id, which=question.proposed[0]))
    assert [row.counts for row in one.log()] == [True, True]
    first = next(row.number for row in one.log() if row.id == yes.id)
    one.decide(number(one), lea, voids=[first])
    assert [row.counts for row in one.log()] == [False, False]
    assert known(one) == {}


def test_a_decision_is_taken_back_by_another_row(store: Store, lea: User) -> None:
    before = known(store)
    for which in (A, B, None):
        store.decide(number(store), lea, which=which)
    assert known(store) == before
    log = store.answer_log()
    assert [one.item for one in log.contradictions()] == ["0.png"]
    assert [one.which for one in log.decisions] == [A, B, None]
    store.decide(number(store), lea, which=A)
    assert known(store)["0.png"] == ["dog", "bird"]
    assert store.check() == []


def test_what_is_known_to_be_wrong_contradicts_too(store: Store, lea: User) -> None:
    items = [replace(item, gold=B if item.name == "1.png" else None) for _, item in store.items()]
    store.grow(store.settings, items)
    log = store.answer_log()
    assert [one.item for one in log.contradictions()] == ["0.png", "1.png"]
    assert log.known("no").contradictions == ("0.png", "1.png")
    assert [one.item.gold for one in team_view(store).clashes] == [None, 1]
    store.decide(number(store, "1.png"), lea, which=C)  # the gold was wrong
    assert store.answer_log().gold_class.tolist() == [-1, C]
    assert [one.item for one in store.answer_log().contradictions()] == ["0.png"]


def test_people_are_judged_by_what_they_said(store: Store, lea: User) -> None:
    before = team_view(store)
    store.decide(number(store), lea, which=A)
    after = team_view(store)
    assert after.agreement == before.agreement
    assert [one.did for one in after.people] == [one.did for one in before.people]
    assert (len(before.clashes), len(after.clashes)) == (1, 0)
    assert [(one.item, one.which, one.by) for one in after.decided] == [("0.png", 0, "Lea")]


def test_an_export_uses_decisions_and_lists_them(store: Store, lea: User, tmp_path: Path) -> None:
    store.decide(number(store), lea, which=B, now=at(1))
    store.decide(number(store), lea, which=A, voids=[2], now=at(2))
    bundle, _ = write_bundle(store, tmp_path / "export")
    assert bundle.known.contradictions == ()
    lines = (tmp_path / "export" / "decisions.csv").read_text().splitlines()
    assert lines[0] == "item,class,left_out,by,time,in_force"
    assert [line.split(",")[:4] for line in lines[1:]] == [
        ["0.png", "dog", "", "Lea"], ["0.png", "cat", "2", "Lea"],
    ]  # fmt: skip
    assert [line.split(",")[-1] for line in lines[1:]] == ["no", "yes"]
    assert len((tmp_path / "export" / "contradictions.csv").read_text().splitlines()) == 1


def test_only_leads_decide_and_only_about_what_is_there(store: Store, lea: User) -> None:
    ann, item = store.add_user("Cy"), number(store)
    other = next(row.number for row in store.log() if row.item != item)
    for user, place, more in (
        (ann, item, {"which": A}), (lea, 999, {"which": A}), (lea, item, {"which": 3}),
        (lea, item, {"which": -1}), (lea, item, {"voids": [other]}), (lea, item, {"voids": [-5]}),
        (lea, "x", {"which": A}),
    ):  # fmt: skip
        with pytest.raises(RefusedError):
            store.decide(place, user, **more)  # type: ignore[arg-type]
    assert store.answer_log().decisions == ()
    store.disable("Lea")
    with pytest.raises(RefusedError):
        store.decide(item, lea, which=A)


def test_who_saw_fewer_decisions_overrides_none(store: Store, lea: User) -> None:
    mia, item = store.add_user("Mia", "lead"), number(store)
    store.decide(item, lea, which=A, seen=0)
    with pytest.raises(RefusedError, match=r"a lead decided about '0\.png' after") as refused:
        store.decide(item, mia, which=B, seen=0)
    assert refused.value.reason == "conflict"
    store.decide(number(store, "1.png"), mia, which=B, seen=0)
    store.decide(item, mia, which=C, seen=1)
    assert [one.which for one in store.answer_log().decisions] == [A, B, C]


def test_who_labels_on_is_not_disturbed(make: Make) -> None:
    store = make(3, rounds=2)
    lea, ann = store.add_user("Lea", "lead"), store.add_user("Ann")
    held = store.next(ann, 2)
    store.decide(held[0].item, lea, which=0)
    assert store.answer(ann, said("no", held[0].id)).status == "recorded"
    assert store.check() == []
