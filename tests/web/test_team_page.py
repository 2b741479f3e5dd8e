"""What the team page shows, against hand counts and plain loops."""

from __future__ import annotations

import math
from collections import Counter
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from web.made import Make, at, make_items, said
from web.teams import START, TEAM, Member, label, page, project

from ruleout.labels.laws import Test as ChiSquare
from ruleout.web import Store, answer_log
from ruleout.web.answer_log import AnswerLog
from ruleout.web.importing import Earlier
from ruleout.web.schema import answers, items, questions, undone, users
from ruleout.web.team import team_page
from ruleout.web.team.team_page import team_view, time_ticks

# ------------------------------------------------------------------ reading


def _busy(make: Make) -> Store:
    """Make a project with answers of every kind, taken back, skipped and late."""
    store = make(make_items(12, gold=4), rounds=2, gold_rate=0.4, ask_which=True, lease_seconds=60)
    ann, bob = store.add_user("Ann"), store.add_user("Bob")
    for turn in range(8):
        for user in (ann, bob):
            question = store.next(user, 1, at(10 * turn))[0]
            kind = ("yes", "no", "skip", "yes")[(turn + user.id) % 4]
            store.answer(user, said(kind, question.id, took_ms=900 + turn), at(10 * turn + 1))
            if kind == "yes" and turn % 2:
                which = said("which", question.id, which=question.proposed[0])
                store.answer(user, which, at(10 * turn + 2))
    store.answer(ann, said("undo"), at(95))
    open_one = next(one for one in store.next(bob, 3, at(100)) if not one.gold)
    store.disable("Bob", now=at(101))
    for name in ("Cy", "Dee"):  # they take all that is free, and Bob's
        store.next(store.add_user(name), 60, at(102))
    store.disable("Bob", disabled=False, now=at(103))
    store.answer(bob, said("no", open_one.id), at(104))
    return store


def test_what_is_read_is_what_the_tables_hold(make: Make) -> None:
    store = _busy(make)
    log = store.answer_log()
    with store.reading() as db:
        query = (
            select(answers, questions, users.c.name.label("who"), items.c.name.label("about"))
            .join(questions, answers.c.question == questions.c.id)
            .join(items, questions.c.item == items.c.id)
            .join(users, answers.c.user == users.c.id)
            .order_by(answers.c.number)
        )
        wanted = db.execute(query).all()
        gone = set(db.execute(select(undone.c.answer)).scalars())
    assert len(log) == len(wanted) > 18
    for place, (row, one) in enumerate(zip(store.log(), wanted, strict=True)):
        assert (row.number, row.id, row.user, row.item) == (one.number, one.id, one.user, one.item)
        assert (row.user_name, row.item_name, row.round) == (one.who, one.about, one.round)
        assert (row.kind, row.proposed, row.excluded) == (one.kind, one.proposed, one.excluded)
        assert (row.which, row.undoes, row.took_ms) == (one.which, one.undoes, one.took_ms)
        assert (row.mode, row.law, row.seed) == (one.mode, one.law, one.seed)
        assert (row.sent, row.received) == (one.sent, one.received)
        assert (row.gold, row.late) == (one.gold, one.late)
        stands = one.number not in gone and not one.late and one.kind != "undo"
        assert row.counts == log.counts[place] == stands


def test_the_log_is_read_again_only_after_an_answer(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = _busy(make)
    reads = []

    def counted(*given: Any) -> AnswerLog:
        reads.append(1)
        return read(*given)

    read = answer_log.read
    monkeypatch.setattr(answer_log, "read", counted)
    before = team_view(store, at(200))
    assert team_view(store, at(300)) == before
    assert len(reads) == 1
    store.answer(store.user("Ann"), said("undo"), at(301))
    after = team_view(store, at(302))
    assert len(reads) == 2
    assert _person(after, "Ann").did.undone == _person(before, "Ann").did.undone + 1


def _person(view: Any, name: str) -> Any:
    (found,) = [one for one in view.people if one.user.name == name]
    return found


# ------------------------------------------------------------------ people and totals


def test_people_are_counted_as_a_loop_over_the_log_counts_them(make: Make) -> None:
    store = _busy(make)
    view, log = team_view(store, at(200)), list(store.log())
    assert {one.user.name for one in view.people} == {"Ann", "Bob", "Cy", "Dee"}
    assert _person(view, "Cy").did.answers == 0
    for one in view.people[:2]:
        own = [r for r in log if r.user_name == one.user.name]
        kinds = Counter(r.kind for r in own if r.counts)
        did = one.did
        assert (did.yes, did.no, did.which) == (kinds["yes"], kinds["no"], kinds["which"])
        assert (did.skips, did.answers) == (kinds["skip"], kinds["yes"] + kinds["no"])
        assert did.late == sum(r.late for r in own)
        assert did.undone == sum(not r.counts and not r.late and r.kind != "undo" for r in own)
        took = sorted(r.took_ms / 1000 for r in own if r.counts and r.took_ms is not None)
        assert did.median_seconds == pytest.approx(np.median(took))
        assert one.per_hour == pytest.approx(store.progress(store.user(one.user.name)).per_hour)
    assert sum(one.did.late for one in view.people) == 1
    assert sum(one.did.undone for one in view.people) >= 1


def test_totals_are_those_of_the_store(make: Make) -> None:
    store = _busy(make)
    view, progress = team_view(store, at(200)), store.progress()
    assert view.progress == progress
    assert view.percent == 100 * progress.given // progress.wanted


def test_accounts_say_whether_they_are_open(make: Make) -> None:
    store = make(3)
    for name in ("open", "closed", "fresh"):
        store.add_user(name)
    store.accept(store.invite("open", now=at(0)), "a hash", now=at(1))
    store.disable("closed")
    store.invite("coming", "lead", now=at(0))
    view = team_view(store, at(10))
    states = {one.user.name: one.state for one in view.people}
    assert states["open"] == "open"
    assert states["closed"] == "closed"
    assert states["fresh"] == "no password yet"
    assert states["coming"].startswith("invited until ")
    later = team_view(store, at(0) + timedelta(days=8))
    assert _person(later, "coming").state == "no password yet"
    assert _person(later, "coming").user.role == "lead"


# ------------------------------------------------------------------ against plain loops


def test_knowledge_contradictions_and_draws_equal_loops(tmp_path: Path) -> None:
    with project(tmp_path, 240, known=8, rounds=3, gold_rate=0.2) as store:
        label(store, TEAM, share=0.7)
        view, log, found = team_view(store), list(store.log()), team_page.numbers(store)
        names = [item.name for _, item in store.items() if item.gold is None]
    left = {}
    for name in names:
        own = [r for r in log if r.item_name == name]
        left[name] = [
            c for c in range(8) if all((c in r.proposed) == (r.kind == "yes") for r in own)
        ]
    sizes = Counter(len(codes) for codes in left.values())
    known = view.knowledge
    assert np.bincount(found.candidates).tolist() == [sizes[n] for n in range(9)]
    assert known.narrowed == sum(sizes[n] for n in range(2, 8))
    assert (known.settled, known.untouched, known.contradicting) == (sizes[1], sizes[8], sizes[0])
    bits = [math.log2(len(codes)) for codes in left.values() if codes]
    assert known.mean_bits == pytest.approx(sum(bits) / len(bits))
    assert view.knowledge.contradicting == sizes[0] > team_page.MOST == len(view.clashes)
    for clash in view.clashes:
        assert left[clash.item.name] == []
        own = [r for r in log if r.item_name == clash.item.name]
        assert [one.number for one, _ in clash.said] == [r.number for r in own]
        assert [codes for _, codes in clash.said] == [r.proposed for r in own]
    assert view.draws is not None
    drawn = [r for r in log if not r.gold]
    assert view.draws.draws == len(drawn)
    assert found.draws is not None
    assert found.draws.sizes.tolist() == [
        sum(len(r.proposed) == s for r in drawn) for s in range(1, 8)
    ]
    assert found.draws.classes.tolist() == [sum(c in r.proposed for r in drawn) for c in range(8)]


def test_who_contradicts_whom_outright(make: Make) -> None:
    """Two exclude each other; in the other item, any two leave a class and all three none."""
    store = make(2, classes=("cat", "dog", "bird"), law="fixed:1", rounds=3)
    told = [("1", "ada", "yes", (0,)), ("1", "bob", "no", (0,))]
    told += [("2", name, "no", (code,)) for code, name in enumerate(("ada", "bob", "cy"))]
    names = [item.name for _, item in store.items()]
    store.bring(
        Earlier(item=names[int(n) - 1], annotator=who, kind=kind, proposed=about)  # type: ignore[arg-type]
        for n, who, kind, about in told
    )
    two, three = team_view(store, at(9)).clashes
    assert two.pairs == [("ada", "bob")]
    assert (three.pairs, len(three.said)) == ([], 3)


# ------------------------------------------------------------------ what is missing


def test_an_empty_project_says_what_to_do(tmp_path: Path) -> None:
    with project(tmp_path, 5) as store:
        view = team_view(store)
    assert (view.missing["answers"], view.missing["agreement"]) == ("unanswered", "alone")
    assert (view.growth, view.draws) == (None, None)
    assert (view.people, view.clashes, view.knowledge.untouched) == ([], [], 5)


def test_one_annotator_has_no_kappa(tmp_path: Path) -> None:
    with project(tmp_path, 10) as store:
        label(store, TEAM[:1])
        view = team_view(store)
    assert (view.missing["answers"], view.missing["agreement"]) == (None, "alone")
    assert view.people[0].agreement.kappa is None


def test_two_who_share_nothing_have_no_kappa_either(tmp_path: Path) -> None:
    with project(tmp_path, 10) as store:
        label(store, TEAM[:2])
        view = team_view(store)
    assert view.missing["agreement"] == "once"
    assert "--rounds 2" in page(view)


@pytest.mark.parametrize(
    ("known", "rate", "words"),
    [(0, 0.0, "--gold FILE"), (0, 0.1, "No item has a known class"), (4, 0.1, "answered yet")],
)
def test_without_gold_answers_it_says_which_step_is_missing(
    tmp_path: Path, known: int, rate: float, words: str
) -> None:
    with project(tmp_path, 10, known=known, gold_rate=rate) as store:
        assert words in page(team_view(store))


def test_rule_out_projects_have_no_draws_and_agree_where_a_class_is_left(make: Make) -> None:
    store = make(4, mode="rule-out", rounds=2)
    for name in ("Ann", "Bob"):
        user = store.add_user(name)
        for question in store.next(user, 4, at(0)):
            store.answer(user, said("excluded", question.id, excluded=(0, question.item)), at(1))
    view = team_view(store, at(9))
    assert view.draws is None
    assert view.missing["draws"] == "chosen"
    assert (view.agreement.observed, view.agreement.items) == (1.0, 4)
    assert view.people[0].did.excluded == 4


# ------------------------------------------------------------------ words


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (
            ChiSquare(3.0, 3),
            "are as the law gives: differences as large come by chance 39",
        ),
        (
            ChiSquare(13.0, 3),
            "not as the law gives: differences this large come by chance in 5 of",
        ),
        (ChiSquare(math.inf, 3), "fewer than once in 1,000"),
        (None, "Too few sets were drawn to test their sizes."),
    ],
)
def test_a_test_is_told_in_a_sentence(tmp_path: Path, test: ChiSquare | None, words: str) -> None:
    with project(tmp_path, 5) as store:
        label(store, TEAM[:1])
        view = team_view(store)
    view.draws.sizes_test = test
    assert words in page(view)


@pytest.mark.parametrize("hours", [0, 0.001, 0.2, 1, 5, 30, 200, 2000, 20_000, 400_000])
@pytest.mark.parametrize("most", [4, 8])
def test_moments_on_an_axis_are_few_and_inside(hours: float, most: int) -> None:
    begin = START + timedelta(minutes=7, seconds=13)
    end = begin + timedelta(hours=hours)
    found = time_ticks(begin, end, most)
    assert 1 <= len(found) <= most
    assert all(begin <= at <= end for at, _ in found)
    assert all(one != other for (_, one), (_, other) in pairwise(found))


def test_who_is_careless_is_not_said_to_guess(tmp_path: Path) -> None:
    with project(tmp_path, 60, known=60, gold_rate=0.1) as store:
        label(store, (Member("careless", 0.7, 0.8), Member("coin", 0.5, 0.5)))
        view = team_view(store)
    assert not _person(view, "careless").guesses
    assert _person(view, "coin").guesses
