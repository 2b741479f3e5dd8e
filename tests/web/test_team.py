"""The team page's numbers against plain loops, published examples and simulated teams."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from web.logs import START, log_of, row, simulated

from ruleout.labels import propose, size_law
from ruleout.web.answer_log import AnswerLog
from ruleout.web.entities import LogRow
from ruleout.web.team.agreement import agreement, guessing
from ruleout.web.team.annotators import annotators, growth, work_days
from ruleout.web.team.team_page import Rate, gold_rates, uniformity

# ------------------------------------------------------------------ counts


def test_annotators_are_counted_by_kind_and_what_was_undone_is_no_answer() -> None:
    log = [
        row("a", "yes", (0,), took_ms=1000),
        row("b", "no", (0,), took_ms=3000),
        row("b", "skip", (1,), took_ms=8000),
        row("c", "no", (0,), counts=False),  # undone
        row("c", "undo"),
        row("d", "no", (0,), counts=False, late=True),
        row("a", "yes", (2, 3), user="bob", took_ms=None),
        row("a", "which", (2,), user="bob", took_ms=None),
    ]
    ada, bob = annotators(log_of(log))
    assert (ada.name, ada.yes, ada.no, ada.skips, ada.answers) == ("ada", 1, 1, 1, 2)
    assert (ada.late, ada.undone, ada.items, ada.median_seconds) == (1, 1, 2, 3.0)
    assert (bob.name, bob.answers, bob.median_seconds) == ("bob", 1, None)


def test_nobody_answered_yet() -> None:
    nothing = log_of([])
    assert annotators(nothing) == []
    assert (agreement(nothing)[1], agreement(nothing)[0].kappa) == ({}, None)
    assert guessing(nothing) == set()
    assert growth(nothing).times == ()
    assert uniformity(nothing, size_law("released", 4)).sizes_test is None


def test_days_add_up_to_a_plain_loop() -> None:
    rng, rows, now = np.random.default_rng(2), [], START
    for n in range(300):
        now += timedelta(minutes=float(rng.exponential(9)))
        kind = ("yes", "no", "skip", "undo")[int(rng.integers(4))]
        user = ("ada", "bob")[int(rng.integers(2))]
        law = "imported" if n % 9 == 0 else "released"
        stands = bool(rng.random() < 0.8) and kind != "undo"
        rows.append(row(f"i{n}", kind, (0,), user, received=now, counts=stands, law=law))
    pause, wanted = timedelta(minutes=20), dict[tuple[date, str], list[float]]()
    for user in ("ada", "bob"):
        last = None
        for one in rows:
            if one.user_name != user or one.law == "imported":
                continue
            done = wanted.setdefault((one.received.date(), user), [0, 0.0])
            done[0] += one.counts and one.kind in ("yes", "no")
            if last is not None and one.received - last <= pause:
                done[1] += (one.received - last).total_seconds() / 3600
            last = one.received
    found = work_days(log_of(rows), pause)
    assert [(one.day, one.annotator) for one in found] == sorted(wanted)
    for name, day, *done in found:
        assert done == pytest.approx(wanted[day, name])
    assert len({day for _, day, *_ in found}) > 1


# ------------------------------------------------------------------ agreement


def crowd(
    n: int, k: int, right: dict[str, float], *, which: bool = False, each: int = 3, seed: int = 0
) -> AnswerLog:
    """Ask `each` of these people about every item, with another set each time.

    They are right at a given rate; after "yes", `which` is asked as well.
    """
    rng, people, rows = np.random.default_rng(seed), list(right), []
    truth = rng.integers(0, k, n).tolist()
    for turn in range(each):
        for item, mask in enumerate(propose(n, k, "released", rng).excluded):
            user, about = people[(item + turn) % len(people)], np.flatnonzero(mask).tolist()
            is_right = rng.random() < right[user]
            kind = "yes" if bool(mask[truth[item]]) == is_right else "no"
            rows.append(row(f"item {item}", kind, tuple(about), user, round=turn))
            if which and kind == "yes":
                knows = truth[item] in about and rng.random() < 2 * right[user] - 1
                code = truth[item] if knows else rng.choice(about)
                rows.append(row(f"item {item}", "which", (int(code),), user, round=turn))
    return log_of(rows, k)


@pytest.mark.parametrize("which", [False, True])
@pytest.mark.parametrize("n", [40, 400])
def test_people_who_are_always_right_have_kappa_one(n: int, which: bool) -> None:
    whole, each = agreement(crowd(n, 8, dict.fromkeys(("ada", "bob", "cy"), 1.0), which=which))
    assert [one.kappa for one in each.values()] == [1.0, 1.0, 1.0]
    assert (whole.kappa, whole.observed, whole.items) == (1.0, 1.0, n)


def test_who_tosses_a_coin_has_kappa_zero() -> None:
    """Over 40 teams, each with one: the mean is 0 within four errors, and none is above 1."""
    coins, others = [], []
    for seed in range(40):
        right = {"ada": 1.0, "bob": 1.0, "cy": 1.0, "coin": 0.5}
        found = agreement(crowd(120, 6, right, seed=seed))[1]
        coins.append(found["coin"].kappa or 0.0)
        others += [found[name].kappa or 0.0 for name in ("ada", "bob", "cy")]
    assert max(*coins, *others) <= 1.0
    assert abs(np.mean(coins)) < 4 * np.std(coins) / math.sqrt(40)
    assert np.mean(others) > 0.5


def test_the_error_of_kappa_is_about_how_far_it_varies() -> None:
    right = {"ada": 0.9, "bob": 0.8, "cy": 0.9}
    found = [agreement(crowd(150, 6, right, which=True, seed=s))[1]["bob"] for s in range(25)]
    spread = np.std([one.kappa or 0.0 for one in found])
    assert spread < np.mean([one.error or 0.0 for one in found]) < 3 * spread


answers_of_three = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.sampled_from(["ada", "bob", "cy"]),
        st.sampled_from(["yes", "no", "which", "excluded"]),
        st.sets(st.integers(0, 3), min_size=1, max_size=3),
    ),
    min_size=1,
    max_size=40,
)


@given(answers_of_three)
def test_kappa_equals_a_plain_loop_over_pairs_of_answers(said: list[Any]) -> None:
    left: dict[tuple[str, int], set[int]] = {}
    rows = []
    for turn, (item, user, kind, about) in enumerate(said):
        rows.append(row(f"item {item}", kind, tuple(sorted(about)), user, round=turn))
        ok = about if kind == "yes" else {min(about)} if kind == "which" else set(range(4)) - about
        left[user, item] = left.get((user, item), set(range(4))) & ok
    found = agreement(log_of(rows, 4))[1]
    for name in ("ada", "bob", "cy"):
        own = {item: z for (user, item), z in left.items() if user == name}
        rest: dict[int, list[set[int]]] = {}
        for (user, item), z in left.items():
            if user != name and item in own:
                rest.setdefault(item, []).append(z)
        n = len(rest)
        if not n:
            assert name not in found
            continue
        apart = {
            (i, j): sum(not own[i] & z for z in rest[j]) / len(rest[j]) for i in rest for j in rest
        }
        seen = sum(apart[i, i] for i in rest) / n
        chance = sum(apart[i, j] for i in rest for j in rest if i != j) / max(n * (n - 1), 1)
        assert found[name].items == n
        assert found[name].observed == pytest.approx(1 - seen)
        if chance == 0:
            assert found[name].kappa is None
        else:
            assert found[name].kappa == pytest.approx(1 - seen / chance)


def test_tests_are_compared_only_where_nothing_else_is_shared() -> None:
    gold = [row(f"t{n}", ("yes", "no")[n % 2], (0,), u, gold=True) for n in range(4) for u in "ab"]
    assert agreement(log_of(gold))[0].items == 4
    both = [*gold, row("x", "yes", (0,), "a"), row("x", "no", (0,), "b")]
    assert agreement(log_of(both))[0].items == 1


# ------------------------------------------------------------------ guessing


def test_who_guesses_is_found_by_what_others_say_and_nobody_else_is() -> None:
    right = {"ada": 1.0, "bob": 0.95, "cy": 0.8, "dee": 0.9, "coin": 0.5}
    for seed, which in enumerate([False, True] * 3):
        assert guessing(crowd(600, 8, right, which=which, seed=seed)) == {"coin"}


def test_who_always_says_no_carries_no_information() -> None:
    log = crowd(300, 6, dict.fromkeys(("ada", "bob", "cy"), 1.0))
    no = [row(f"item {n}", "no", (n % 6, (n + 1) % 6), "nay", round=9) for n in range(300)]
    rows = [log.row(place) for place in range(len(log))]
    assert guessing(log_of([*rows, *no], 6)) == {"nay"}


def test_of_two_who_disagree_nobody_knows_who_guesses() -> None:
    log = crowd(400, 8, {"ada": 1.0, "coin": 0.5}, each=2)
    assert guessing(log) == set()


def test_gold_tells_even_of_one() -> None:
    def answered(user: str, errors: int) -> list[LogRow]:
        kinds = ["yes" if (n < errors) == (n % 2 == 0) else "no" for n in range(30)]
        sets = [(0, 1) if n % 2 else (1, 2) for n in range(30)]
        return [row("t", k, s, user, gold=True) for k, s in zip(kinds, sets, strict=True)]

    rows = [*answered("ada", 2), *answered("coin", 15)]
    assert guessing(log_of(rows, gold={"t": 0})) == {"coin"}
    assert guessing(log_of(answered("coin", 15), gold={"t": 0})) == {"coin"}


def test_clicks_at_random_are_guesses() -> None:
    rng, rows = np.random.default_rng(4), []
    for n in range(200):
        truth = int(rng.integers(0, 6))
        for user in ("ada", "bob", "cy", "any"):
            drawn = rng.permutation(6)
            codes = [c for c in drawn.tolist() if user == "any" or c != truth][:3]
            rows.append(row(f"item {n}", "excluded", tuple(sorted(codes)), user))
    assert guessing(log_of(rows, 6)) == {"any"}


# ------------------------------------------------------------------ gold


def test_sensitivity_and_specificity_by_hand() -> None:
    gold = {"a": 0, "b": 1}
    log = [
        row("a", "yes", (0, 1), gold=True),  # right
        row("a", "no", (0, 2), gold=True),  # wrong: the set holds it
        row("b", "no", (0, 2), gold=True),  # right
        row("b", "which", (1,), gold=True),  # right
        row("b", "excluded", (1, 2), gold=True),  # wrong
        row("b", "yes", (0, 2), gold=True, counts=False),
        row("b", "yes", (0, 2)),  # no test
        row("z", "yes", (0, 2), gold=True),  # class not known
    ]
    found = gold_rates(log_of(log, gold=gold))
    assert found == {"ada": (Rate(1, 2), Rate(1, 1), Rate(1, 2))}
    assert gold_rates(log_of(log[:1], gold=gold)) == {"ada": (Rate(1, 1), None, None)}


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(asked: int, data: Any) -> None:
    right = data.draw(st.integers(0, asked))
    wanted = stats.binomtest(right, asked).proportion_ci(0.95, method="wilson")
    low, high = Rate(right, asked).interval
    assert low == pytest.approx(wanted.low, abs=1e-12)
    assert high == pytest.approx(wanted.high, abs=1e-12)
    assert 0 <= low <= right / asked <= high <= 1


# ------------------------------------------------------------------ uniformity


def test_sizes_and_classes_equal_scipy_and_a_loop() -> None:
    k, law = 5, size_law("released", 5)
    log = simulated([0] * 400, ("ada",), k, seed=3)
    found = uniformity(log_of(log, k), law)
    seen = [sum(len(one.proposed) == s for one in log) for s in range(1, k)]
    wanted = stats.chisquare(seen, 400 * law)
    assert found.sizes.tolist() == seen
    assert found.sizes_test is not None
    assert found.sizes_test.statistic == pytest.approx(wanted.statistic)
    assert found.sizes_test.p == pytest.approx(wanted.pvalue)
    total = 0.0
    for s in range(1, k):
        sets = [one.proposed for one in log if len(one.proposed) == s]
        spread = len(sets) * s * (k - s) / (k * (k - 1))
        for c in range(k):
            times = sum(c in proposed for proposed in sets)
            total += (times - len(sets) * s / k) ** 2 / spread
    assert found.classes_test is not None
    assert found.classes_test.statistic == pytest.approx(total)
    assert found.classes_test.freedom == 16
    assert found.classes.sum() == sum(len(one.proposed) for one in log)
    assert found.classes_expected == pytest.approx(found.classes.sum() / k)


def test_small_sizes_are_taken_together() -> None:
    k = 6
    log = simulated([0] * 60, ("ada",), k, seed=4)  # 60 · 6/62 = 5.8 of size 1, 14.5 of size 2
    test = uniformity(log_of(log[:40], k), size_law("released", k)).sizes_test
    seen = [sum(len(one.proposed) == s for one in log[:40]) for s in range(1, k)]
    law = 40 * size_law("released", k)
    cells = [(seen[0] + seen[1], law[0] + law[1]), (seen[2], law[2]), (sum(seen[3:]), sum(law[3:]))]
    assert test is not None
    assert test.freedom == 2
    assert test.statistic == pytest.approx(sum((o - e) ** 2 / e for o, e in cells))


def test_sizes_that_are_rare_are_tested_together() -> None:
    k, sets = 8, [tuple(range(s)) for s in (3, 4, 5) for _ in range(9)]  # 27 · 4/8 · 4/7 = 7.7
    found = uniformity(log_of([row(f"i{n}", "no", one) for n, one in enumerate(sets)], k), LAW)
    spread = sum(len(one) * (k - len(one)) / (k * (k - 1)) for one in sets)
    counts = [sum(c in one for one in sets) for c in range(k)]
    assert found.classes_test is not None
    assert found.classes_test.freedom == k - 1
    mean = sum(counts) / k
    wanted = sum((count - mean) ** 2 for count in counts) / spread
    assert found.classes_test.statistic == pytest.approx(wanted)


LAW = size_law("released", 8)


def test_uniform_proposals_pass_about_as_often_as_they_should() -> None:
    k, law = 6, size_law("released", 6)
    p = []
    for seed in range(120):
        found = uniformity(log_of(simulated([0] * 150, ("ada",), k, seed=seed), k), law)
        assert found.sizes_test is not None
        assert found.classes_test is not None
        p.append((found.sizes_test.p, found.classes_test.p))
    for test in np.array(p).T:
        assert stats.kstest(test, "uniform").pvalue > 0.001


def test_a_favoured_class_and_a_wrong_law_are_noticed() -> None:
    log = [row(f"i{n}", "no", (n % 2, 2)) for n in range(100)]
    found = uniformity(log_of(log, 5), size_law(2, 5))
    assert found.classes_test is not None
    assert found.classes_test.p < 1e-6
    wrong = uniformity(log_of(log, 5), size_law(3, 5)).sizes_test
    assert wrong is not None
    assert (wrong.statistic, wrong.p) == (math.inf, 0.0)


def test_a_draw_counts_once_and_tests_and_imports_never() -> None:
    log = [
        row("a", "yes", (0,)),
        row("a", "no", (0,), "bob"),
        row("a", "no", (0,), round=1),
        row("a", "skip", (1,), round=2),
        row("a", "which", (0,), proposed=(0,)),
        row("b", "yes", (0,), gold=True),
        row("b", "yes", (0,), law="imported"),
        row("c", "no", (0,), counts=False),
    ]
    assert uniformity(log_of(log, 4), size_law("released", 4)).draws == 4


# ------------------------------------------------------------------ progress


def test_growth_counts_up_and_keeps_both_ends() -> None:
    log = simulated([0] * 1000, ("ada", "bob"), 4)
    found = growth(log_of(log), points=50)
    assert 50 <= len(found.times) <= 51
    assert found.times[0] == log[0].received
    assert found.times[-1] == log[-1].received
    assert (found.answers[0], found.answers[-1], found.items[-1]) == (1, 2000, 1000)
    for time, answers, items in zip(found.times, found.answers, found.items, strict=True):
        before = [one for one in log if one.received <= time]
        assert (answers, items) == (len(before), len({one.item_name for one in before}))


def test_which_after_yes_is_no_second_answer_and_a_skip_is_none() -> None:
    log = [row("a", "yes", (0, 1)), row("a", "which", (0,)), row("b", "skip", (0,))]
    found = growth(log_of(log))
    assert (found.answers, found.items) == ((1, 1), (1, 1))


def test_answers_of_one_moment_are_one_point() -> None:
    log = [row(f"i{n}", "no", (0,), received=START) for n in range(7)]
    found = growth(log_of(log), points=3)
    assert (found.times, found.answers, found.items) == ((START,), (7,), (7,))
    later = START + timedelta(days=1)
    found = growth(log_of([*log[:2], row("z", "no", (0,), received=later)]), points=2)
    assert (found.times, found.answers) == ((START, later), (2, 3))
