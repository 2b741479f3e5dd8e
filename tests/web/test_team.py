"""The team page's numbers against plain loops, published examples and simulated teams."""

from __future__ import annotations

import math
from datetime import timedelta
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from web.logs import START, row, simulated

from ruleout.labels import size_law
from ruleout.web import team

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
    ada, bob = team.annotators(log)
    assert (ada.name, ada.kinds, ada.answers) == ("ada", {"yes": 1, "no": 1, "skip": 1}, 2)
    assert (ada.late, ada.undone, ada.items, ada.median_seconds) == (1, 1, 2, 3.0)
    assert (bob.name, bob.answers, bob.median_seconds) == ("bob", 1, None)


def test_nobody_answered_yet() -> None:
    assert team.annotators([]) == []
    assert team.pairs(team.ratings([], 3)) == []
    assert team.team_agreement({}).kappa is None
    assert team.growth([]).times == ()
    assert team.uniformity([], 4, size_law("released", 4)).sizes_test is None
    assert team.knowledge([], [], 4).mean_bits is None


# ------------------------------------------------------------------ agreement


def test_fleiss_is_that_of_his_published_example() -> None:
    # ten subjects, fourteen raters, five categories: kappa is 0.210
    counts = [
        (0, 0, 0, 0, 14),
        (0, 2, 6, 4, 2),
        (0, 0, 3, 5, 6),
        (0, 3, 9, 2, 0),
        (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0),
        (3, 2, 6, 3, 0),
        (2, 5, 3, 2, 2),
        (6, 5, 2, 1, 0),
        (0, 2, 2, 3, 7),
    ]
    table = [[c for c, n in enumerate(line) for _ in range(n)] for line in counts]
    observed, kappa = team.fleiss(table)
    assert observed == pytest.approx(0.378, abs=5e-4)
    assert kappa == pytest.approx(0.210, abs=5e-4)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=30))
def test_cohen_equals_a_plain_loop(decisions: list[tuple[int, int]]) -> None:
    n = len(decisions)
    chance = 0.0
    for category in range(3):
        first = second = 0
        for a, b in decisions:
            first += a == category
            second += b == category
        chance += first / n * second / n
    agree = sum(a == b for a, b in decisions) / n
    observed, kappa = team.cohen(decisions)
    assert observed == pytest.approx(agree)
    if len({value for pair in decisions for value in pair}) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx((agree - chance) / (1 - chance))


@given(st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=5), min_size=1, max_size=20))
def test_fleiss_equals_a_loop_over_pairs_of_people(table: list[list[int]]) -> None:
    per_thing, everything = [], []
    for decisions in table:
        met = [a == b for a, b in combinations(decisions, 2)]
        per_thing.append(sum(met) / len(met))
        everything += decisions
    agree = sum(per_thing) / len(per_thing)
    shares = [everything.count(category) / len(everything) for category in range(3)]
    chance = sum(share**2 for share in shares)
    observed, kappa = team.fleiss(table)
    assert observed == pytest.approx(agree)
    if len(set(everything)) == 1:
        assert kappa is None
    else:
        assert kappa == pytest.approx((agree - chance) / (1 - chance))


def test_only_decisions_about_the_same_thing_are_compared() -> None:
    log = [
        row("a", "yes", (0, 1), "ada"),
        row("a", "yes", (1, 0), "bob"),
        row("a", "no", (0, 2), "cy"),  # another set
        row("b", "yes", (0,), "ada"),
        row("b", "no", (0,), "bob"),
        row("c", "yes", (3,), "ada", counts=False),
        row("c", "yes", (3,), "bob"),
    ]
    (pair,) = team.pairs(team.ratings(log, 4))
    assert (pair.people, pair.things, pair.observed) == (("ada", "bob"), 2, 0.5)
    assert pair.kappa == pytest.approx(0.0)  # ada always says yes: chance explains it


def test_rule_out_answers_agree_class_by_class() -> None:
    log = [row("a", "excluded", (0, 1), "ada"), row("a", "excluded", (1, 2), "bob")]
    (pair,) = team.pairs(team.ratings(log, 4))
    assert (pair.things, pair.observed) == (4, 0.5)
    whole = team.team_agreement(team.ratings(log, 4))
    assert (whole.people, whole.things) == (("ada", "bob"), 4)
    assert whole.kappa == pytest.approx(0.0)


def test_of_two_answers_about_one_thing_the_last_counts() -> None:
    log = [
        row("a", "yes", (0,), "ada"),
        row("a", "no", (0,), "ada", round=1),
        row("a", "no", (0,), "bob"),
    ]
    assert team.pairs(team.ratings(log, 4))[0].observed == 1.0


def test_agreement_is_inferred_from_different_sets() -> None:
    """Truthful annotators have kappa 1; those who err as often as not have 0; within 4 errors."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 6, 1500).tolist()
    for errors, wanted in ((0.0, 1.0), (0.5, 0.0)):
        log = simulated(truth, ("ada", "bob"), 6, errors=errors, seed=6)
        (pair,) = team.inferred_pairs(log, 6)
        assert pair.things == 1500
        assert pair.kappa is not None
        assert pair.error is not None
        assert pair.error < 0.1
        assert abs(pair.kappa - wanted) < 4 * pair.error


def test_inferred_agreement_equals_a_plain_loop_over_items() -> None:
    truth, k = [0, 2, 1, 3, 3], 4
    log = simulated(truth, ("ada", "bob"), k, errors=0.3, seed=1)
    u: dict[str, list[list[float]]] = {"ada": [], "bob": []}
    for one in log:
        s = len(one.proposed)
        q = (s * (s - 1) + (k - s) * (k - s - 1)) / (k * (k - 1))
        left = [c for c in range(k) if (c in one.proposed) == (one.kind == "yes")]
        u[one.user_name].append([((c in left) - q) / (1 - q) for c in range(k)])
    same = across = 0.0
    for i in range(5):
        for j in range(5):
            met = sum(a * b for a, b in zip(u["ada"][i], u["bob"][j], strict=True))
            same += met / 5 if i == j else 0
            across += met / 20 if i != j else 0
    (pair,) = team.inferred_pairs(log, k)
    assert pair.observed == pytest.approx(same)
    assert pair.kappa == pytest.approx((same - across) / (1 - across))


def test_the_same_draw_is_no_independent_evidence() -> None:
    log = [row(f"i{n}", "no", (0,), user, round=0) for n in range(9) for user in ("ada", "bob")]
    assert team.inferred_pairs(log, 4) == []


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
    (score,) = team.gold_scores(log, gold, 4)
    assert score.sensitivity == team.Rate(1, 2)
    assert score.specificity == team.Rate(1, 1)
    assert score.free == team.Rate(1, 2)
    assert team.Rate(0, 0).share is None
    assert team.Rate(0, 0).interval() == (0.0, 1.0)


@given(st.integers(1, 400), st.data())
def test_wilson_is_scipys(asked: int, data: Any) -> None:
    right = data.draw(st.integers(0, asked))
    level = data.draw(st.sampled_from([0.9, 0.95, 0.99]))
    wanted = stats.binomtest(right, asked).proportion_ci(level, method="wilson")
    low, high = team.Rate(right, asked).interval(level)
    assert low == pytest.approx(wanted.low, abs=1e-12)
    assert high == pytest.approx(wanted.high, abs=1e-12)
    assert 0 <= low <= right / asked <= high <= 1


# ------------------------------------------------------------------ uniformity


def test_sizes_and_classes_equal_scipy_and_a_loop() -> None:
    k, law = 5, size_law("released", 5)
    log = simulated([0] * 400, ("ada",), k, seed=3)
    found = team.uniformity(log, k, law)
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
    test = team.uniformity(log[:40], k, size_law("released", k)).sizes_test
    seen = [sum(len(one.proposed) == s for one in log[:40]) for s in range(1, k)]
    law = 40 * size_law("released", k)
    cells = [(seen[0] + seen[1], law[0] + law[1]), (seen[2], law[2]), (sum(seen[3:]), sum(law[3:]))]
    assert test is not None
    assert test.freedom == 2
    assert test.statistic == pytest.approx(sum((o - e) ** 2 / e for o, e in cells))


def test_sizes_that_are_rare_are_tested_together() -> None:
    k, sets = 8, [tuple(range(s)) for s in (3, 4, 5) for _ in range(9)]  # 27 · 4/8 · 4/7 = 7.7
    found = team.uniformity([row(f"i{n}", "no", one) for n, one in enumerate(sets)], k, LAW)
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
        found = team.uniformity(simulated([0] * 150, ("ada",), k, seed=seed), k, law)
        assert found.sizes_test is not None
        assert found.classes_test is not None
        p.append((found.sizes_test.p, found.classes_test.p))
    for test in np.array(p).T:
        assert stats.kstest(test, "uniform").pvalue > 0.001


def test_a_favoured_class_and_a_wrong_law_are_noticed() -> None:
    log = [row(f"i{n}", "no", (n % 2, 2)) for n in range(100)]
    found = team.uniformity(log, 5, size_law(2, 5))
    assert found.classes_test is not None
    assert found.classes_test.p < 1e-6
    wrong = team.uniformity(log, 5, size_law(3, 5)).sizes_test
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
    assert team.uniformity(log, 4, size_law("released", 4)).draws == 4


# ------------------------------------------------------------------ knowledge


def test_entropy_left_by_hand() -> None:
    log = [
        row("a", "no", (0, 1)),
        row("a", "no", (1, 2), round=1),  # 3 … 7 are left: 5 of 8
        row("b", "yes", (0, 1)),
        row("c", "which", (4,)),
        row("d", "yes", (0,)),
        row("d", "no", (0,), "bob"),
        row("e", "no", (0,), gold=True),
    ]
    found = team.knowledge(log, ["a", "b", "c", "d", "e", "f"], 8)
    assert found.candidates.tolist() == [5, 2, 1, 0, 8, 8]
    assert found.answers.tolist() == [2, 1, 1, 2, 0, 0]
    assert found.bits[[0, 1, 2, 4]] == pytest.approx([math.log2(5), 1, 0, 3])
    assert math.isnan(found.bits[3])
    assert found.mean_bits == pytest.approx((math.log2(5) + 1 + 0 + 3 + 3) / 5)


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 4), min_size=1, max_size=4))))
def test_candidates_equal_a_loop_over_classes(said: list[tuple[bool, set[int]]]) -> None:
    log = [row("a", "yes" if yes else "no", tuple(sorted(about))) for yes, about in said]
    left = [c for c in range(5) if all((c in about) == yes for yes, about in said)]
    assert team.knowledge(log, ["a"], 5).candidates.tolist() == [len(left)]
    assert bool(team.clashes(log, 5)) == (not left)


def test_who_contradicts_whom() -> None:
    log = [
        row("a", "yes", (0,), "bob"),
        row("a", "no", (0,), "ada"),
        row("b", "no", (0,), "ada"),
        row("b", "no", (1,), "bob"),
        row("b", "no", (2,), "cy"),
        row("c", "no", (0, 1), "ada"),
    ]
    two, three = team.clashes(log, 3)
    assert (two.item, two.pairs, two.answers) == ("a", (("ada", "bob"),), 2)
    assert (three.item, three.pairs, three.people) == ("b", (), ("ada", "bob", "cy"))


# ------------------------------------------------------------------ progress


def test_growth_counts_up_and_keeps_both_ends() -> None:
    log = simulated([0] * 1000, ("ada", "bob"), 4)
    found = team.growth(log, points=50)
    assert 50 <= len(found.times) <= 51
    assert found.times[0] == log[0].received
    assert found.times[-1] == log[-1].received
    assert (found.answers[0], found.answers[-1], found.items[-1]) == (1, 2000, 1000)
    for time, answers, items in zip(found.times, found.answers, found.items, strict=True):
        before = [one for one in log if one.received <= time]
        assert (answers, items) == (len(before), len({one.item_name for one in before}))


def test_which_after_yes_is_no_second_answer_and_a_skip_is_none() -> None:
    log = [row("a", "yes", (0, 1)), row("a", "which", (0,)), row("b", "skip", (0,))]
    found = team.growth(log)
    assert (found.answers, found.items) == ((1, 1), (1, 1))


def test_answers_of_one_moment_are_one_point() -> None:
    log = [row(f"i{n}", "no", (0,), received=START) for n in range(7)]
    found = team.growth(log, points=3)
    assert (found.times, found.answers, found.items) == ((START,), (7,), (7,))
    later = START + timedelta(days=1)
    found = team.growth([*log[:2], row("z", "no", (0,), received=later)], points=2)
    assert (found.times, found.answers) == ((START, later), (2, 3))
