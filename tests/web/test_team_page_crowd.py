"""Twelve people whose error rates are known: the page finds them; and large logs are quick."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from web.teams import TEAM, label, page, project

from ruleout.web.team.team_page import team_view


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Everybody is asked about every item, each time with another set, and about 96 tests."""
    folder = tmp_path_factory.mktemp("crowd")
    with project(folder, 600, known=96, rounds=12, gold_rate=0.1) as store:
        label(store)
        yield team_view(store)


def test_kappa_puts_people_in_the_order_of_their_errors(view: Any) -> None:
    kappas = {one.user.name: one.agreement.kappa or 0.0 for one in view.people}
    for one in view.people:
        assert one.agreement.error is not None
        assert one.agreement.error < 0.15
        assert one.agreement.items == 504
        if one.user.name in ("Coin", "Dice"):
            assert abs(kappas[one.user.name]) < 4 * one.agreement.error
    assert max(kappas["Coin"], kappas["Dice"]) < kappas["Jonas"]
    assert kappas["Jonas"] < min(kappas[one.name] for one in TEAM[:9])
    assert max(kappas.values()) <= 1


def test_rates_on_gold_questions_come_out_as_constructed(view: Any) -> None:
    for one, found in zip(TEAM, view.people, strict=True):
        assert found.user.name == one.name
        assert found.gold.sensitivity is not None
        assert found.gold.specificity is not None
        assert found.gold.sensitivity.asked + found.gold.specificity.asked == 96
        assert found.gold.sensitivity.asked > 25 < found.gold.specificity.asked  # both polarities
        for rate, true in (
            (found.gold.sensitivity, one.sensitivity),
            (found.gold.specificity, one.specificity),
        ):
            slack = 4 * np.sqrt(true * (1 - true) / rate.asked)
            assert abs(rate.share - true) < slack
            assert rate.interval[0] <= rate.share <= rate.interval[1]


def test_who_tosses_a_coin_is_found(view: Any) -> None:
    assert {one.user.name for one in view.people if one.guesses} == {"Coin", "Dice"}


def test_proposals_pass_and_most_items_are_contradicted(view: Any) -> None:
    assert view.draws is not None
    assert view.draws.sizes_test is not None
    assert view.draws.classes_test is not None
    assert min(view.draws.sizes_test.p, view.draws.classes_test.p) > 0.001
    assert view.knowledge.contradicting > 400  # two of twelve answers are tossed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("classes", "cap", "seconds"), [(10, None, 2.5), (200, 20, 5.0)], ids=["ten", "two hundred"]
)
def test_a_hundred_thousand_answers_are_shown_in_seconds(
    tmp_path: Path, classes: int, cap: int | None, seconds: float
) -> None:
    """About 1 s for ten classes; time of this thread, since other programs may use the cores."""
    names = [f"class {n}" for n in range(classes)]
    with project(tmp_path, 10_000, classes=names, cap=cap, rounds=10) as store:
        label(store)
        begin = time.thread_time()
        view = team_view(store)
        first = time.thread_time() - begin
        begin = time.thread_time()
        team_view(store)
        again = time.thread_time() - begin
        print(f"{classes} classes: {first:.2f} s, again {again:.2f} s")
    assert sum(one.did.answers for one in view.people) == 100_000
    assert first < seconds
    assert again < 1
    assert len(page(view)) < 150_000
