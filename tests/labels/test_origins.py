"""Origins of sets, against sums over every set that can occur."""

from __future__ import annotations

from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from ruleout.labels import LabelError, LabelSets, draw
from ruleout.labels.origins import (
    Flips,
    PerRow,
    Transition,
    Uniform,
    evidence,
    judge,
    judge_with_labels,
    learn_origin,
    named_origin,
    wilson,
)

K = 4
R = np.array(
    [[0.05, 0.3, 0.6, 0.2], [0.5, 0.0, 0.4, 0.7], [0.2, 0.3, 0.1, 0.6], [0.4, 0.1, 0.2, 0.05]]
)
Q = np.array(
    [[0.1, 0.5, 0.2, 0.2], [0.3, 0.0, 0.6, 0.1], [0.25, 0.25, 0.0, 0.5], [0.7, 0.1, 0.2, 0.0]]
)
E = np.array([[0.0, 0.05, 0.1, 0.2]])


def subsets(sizes: range) -> list[tuple[int, ...]]:
    return [one for s in sizes for one in combinations(range(K), s)]


def table(some: list[tuple[int, ...]]) -> LabelSets:
    rows = [[int(c in one) for c in range(K)] for one in some]
    return LabelSets(rows, K, unlabelled=True)


def chance(kind: str, given: tuple[int, ...], y: int) -> float:
    """The probability of a set when y is true, written out."""
    if kind == "transition":
        every = [np.prod([Q[y, c] for c in one]) for one in combinations(range(K), len(given))]
        return float(np.prod([Q[y, c] for c in given]) / sum(every))
    if kind == "flips":
        every, none = np.prod(R[y]), np.prod(1 - R[y])  # such rows are drawn again
        plain = np.prod([R[y, c] if c in given else 1 - R[y, c] for c in range(K)])
        return float(plain / (1 - every - none))
    s = len(given)
    if kind == "by class":
        e = float(E[0, y])
        return (1 - e) / comb(K - 1, s) if y not in given else e / comb(K - 1, s - 1)
    return 0.9 / comb(K - 1, s) if y not in given else 0.1 / comb(K - 1, s - 1)


CASES: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "uniform, s=1": (Uniform(1, 0.1), subsets(range(1, 2))),
    "uniform, s=2": (Uniform(2, 0.1), subsets(range(2, 3))),
    "uniform, s=3": (Uniform(3, 0.1), subsets(range(3, 4))),
    "by class, s=1": (Uniform(1, E), subsets(range(1, 2))),
    "by class, s=2": (Uniform(2, E), subsets(range(2, 3))),
    "by class, s=3": (Uniform(3, E), subsets(range(3, 4))),
    "flips": (Flips(R), subsets(range(1, K))),
    "transition, s=1": (Transition(Q), subsets(range(1, 2))),
    "transition, s=2": (Transition(Q, 2), subsets(range(2, 3))),
    "transition, s=3": (Transition(Q, 3), subsets(range(3, 4))),
}


@pytest.mark.parametrize("name", list(CASES))
def test_likelihoods_are_those_written_out(name: str) -> None:
    origin, some = CASES[name]
    found = np.exp(origin.log_likelihood(table(some)))
    expected = np.array([[chance(name.split(",")[0], one, y) for y in range(K)] for one in some])
    found, expected = (v / v.sum(1, keepdims=True) for v in (found, expected))
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("name", list(CASES))
def test_credit_is_one_for_right_and_zero_for_wrong_predictions(name: str) -> None:
    """Exactly, summed over every set; and so are its variances (the mean of the wrong classes')."""
    origin, some = CASES[name]
    sets = table(some)
    for predicted in range(K):
        credit = origin.credit(sets).of(np.full(len(sets), predicted))
        variances = []
        for y in range(K):
            p = np.array([chance(name.split(",")[0], one, y) for one in some])
            assert p.sum() == pytest.approx(1)
            mean = float(p @ credit.value)
            assert mean == pytest.approx(float(y == predicted), abs=1e-9)
            variances.append(float(p @ np.square(credit.value - mean)))
        own = variances.pop(predicted)
        assert credit.right[0] == pytest.approx(own, abs=1e-9)
        assert credit.wrong[0] == pytest.approx(np.mean(variances), abs=1e-9)


@pytest.mark.parametrize("name", list(CASES))
def test_what_is_drawn_follows_the_likelihood(name: str) -> None:
    origin, some = CASES[name]
    kind, n = name.split(",")[0], 40_000
    for y in range(K):
        drawn = origin.draw(np.full(n, y), K, seed=y).excluded @ (2 ** np.arange(K))
        counts = np.array([np.sum(drawn == sum(2**c for c in one)) for one in some])
        p = np.array([chance(kind, one, y) for one in some])
        assert counts.sum() == n
        np.testing.assert_allclose(counts / n, p, atol=4.5 * np.sqrt(0.25 / n))


W = np.array([[1.0, 0.2, 3.0, 0.5], [0.3, 1.0, 1.0, 2.0]])  # how readily, in two kinds of rows


def chance_by_weights(own: Any, given: tuple[int, ...], y: int) -> float:
    every = [one for one in combinations(range(K), len(given)) if y not in one]
    return float((y not in given) * np.prod(own[[*given]]) / sum(np.prod(own[[*o]]) for o in every))


@pytest.mark.parametrize("s", [1, 2, 3])
def test_rows_that_have_an_origin_of_their_own(s: int) -> None:
    """Likelihood and credit against sums over every set, of two kinds of rows beside each other."""
    some = subsets(range(s, s + 1))
    kind = np.repeat([0, 1], len(some))
    origin, sets = PerRow.of_weights(W[kind], s), table(some * 2)
    p = np.array([[chance_by_weights(W[w], one, y) for y in range(K)] for w in (0, 1)
                  for one in some])  # fmt: skip
    found = np.exp(origin.log_likelihood(sets))
    np.testing.assert_allclose(found / found.sum(1, keepdims=True), p / p.sum(1, keepdims=True))
    credit = origin.credit(sets)
    for w, c, y in product((0, 1), range(K), range(K)):
        rows = kind == w
        mean = p[rows, y] @ credit.value[rows, c]
        assert mean == pytest.approx(float(c == y), abs=1e-9)
        if c == y:
            spread = p[rows, y] @ np.square(credit.value[rows, c] - mean)
            assert spread == pytest.approx(credit.right[rows, c][0], abs=1e-9)


@pytest.mark.parametrize("way", ["origin", "chances"])
def test_what_is_drawn_of_rows_follows_their_own_origin(way: str) -> None:
    n, y, some = 6000, 2, subsets(range(2, 3))
    kind = np.arange(n) % 2
    by_hand = {"law": 2, "transition": W[kind] * (np.arange(K) != y)}
    how = {"transition": PerRow.of_weights(W[kind], 2)} if way == "origin" else by_hand
    drawn = draw(np.full(n, y), K, seed=1, **how).excluded @ (2 ** np.arange(K))
    for w in (0, 1):
        for one in some:
            share = np.mean(drawn[kind == w] == sum(2**c for c in one))
            assert share == pytest.approx(chance_by_weights(W[w], one, y), abs=0.04)


@pytest.mark.parametrize("weights", [[1, 2], [[1, 0, 1]], [[1, np.nan, 1]]])
def test_weights_that_are_none(weights: Any) -> None:
    with pytest.raises(LabelError, match="numbers above 0"):
        PerRow.of_weights(weights)


def test_as_many_origins_as_rows() -> None:
    with pytest.raises(LabelError, match="origins of 2 rows, sets of 1"):
        PerRow.of_weights(W).draw([0], K)


@pytest.mark.parametrize("origin", [Transition(Q, 2), Flips(R), Uniform(2, E)])
def test_draw_makes_what_an_origin_makes(origin: Any) -> None:
    y = np.arange(400) % K
    assert draw(y, K, seed=3, transition=origin) == origin.draw(y, K, 3)
    if isinstance(origin, Transition):
        assert draw(y, K, 2, seed=3, transition=Q) == origin.draw(y, K, 3)


def test_an_error_rate_that_the_sets_deny_makes_no_number() -> None:
    """Half of the rows are said to be wrong, but no prediction is ruled out."""
    sets = draw([0] * 200, 5, 2)
    assert evidence(sets, 0.5).judge(np.zeros(200, int)) is None
    assert evidence(sets, (15, 30)).judge(np.zeros(200, int)) is None
    assert evidence(sets, 0.0).judge(np.zeros(200, int)) is not None


def test_of_true_labels_the_interval_is_wilsons() -> None:
    """All classes but one are ruled out: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n)."""
    n, hits, z = 50, 47, 1.959963984540054
    sets = LabelSets.from_labels([0] * n, K)
    credit = Uniform(K - 1).credit(sets).of(np.array([0] * hits + [1] * (n - hits)))
    p = hits / n
    half = z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    ends = [(p + z**2 / (2 * n) + sign * half) / (1 + z**2 / n) for sign in (-1, 1)]
    np.testing.assert_allclose(judge(credit), [p, *ends], atol=1e-12)


def test_the_interval_of_what_is_never_wrong_ends_at_one() -> None:
    """To the last bit: rounding had left 1 outside in half of the draws."""
    for seed in range(30):
        y = np.random.default_rng(seed).integers(K, size=200)
        assert judge(Uniform().credit(Uniform().draw(y, K, seed)).of(y)).high == 1, seed


@pytest.mark.parametrize("accuracy", [0.6, 0.9, 0.99])
@pytest.mark.parametrize("error", [0.0, 0.1])
@pytest.mark.parametrize("kind", ["uniform", "flips"])
def test_intervals_hold_the_truth(kind: str, error: float, accuracy: float) -> None:
    random, held, k, n = np.random.default_rng(7), 0, 6, 200
    rates = np.full((k, k), 0.5) + (error - 0.5) * np.eye(k)
    origin: Any = Uniform("paper", error) if kind == "uniform" else Flips(rates)
    for seed in range(400):
        y = random.integers(k, size=n)
        predicted = np.where(random.random(n) < accuracy, y, (y + 1) % k)
        found = judge(origin.credit(origin.draw(y, k, seed)).of(predicted))
        held += found.low <= accuracy <= found.high
    assert held >= 0.92 * 400


@pytest.mark.parametrize("accuracy", [0.6, 0.9, 0.99])
def test_intervals_hold_the_truth_with_a_rate_from_thirty_gold_questions(accuracy: float) -> None:
    random, held, k, n, error = np.random.default_rng(8), 0, 10, 200, 0.1
    origin = Uniform("released", error)
    for seed in range(150):
        y = random.integers(k, size=n)
        predicted = np.where(random.random(n) < accuracy, y, (y + 1) % k)
        sets = origin.draw(y, k, seed)
        wrong = int(random.binomial(30, error))
        found = evidence(sets, (wrong, 30)).judge(predicted)
        held += found is not None and found.low <= accuracy <= found.high
    assert held >= 0.92 * 150


@pytest.mark.parametrize("accuracy", [0.6, 0.85])
@pytest.mark.parametrize("error", [0.05, 0.1])
def test_how_often_a_rate_from_gold_questions_leaves_the_truth_inside(
    accuracy: float, error: float
) -> None:
    """Exactly: all counts of wrong gold answers, and of sets that leave the prediction possible."""
    k, n, s, asked, held = 6, 60, 3, 30, 0.0
    stays = accuracy * (1 - error) + (1 - accuracy) * (1 - (s - error) / (k - 1))
    both = ((asked, error), (n, stays))
    golds, counts = (np.asarray(binom.pmf(range(m + 1), m, p)) for m, p in both)
    for wrong, count in product(range(asked + 1), range(n + 1)):
        if (chance := golds[wrong] * counts[count]) > 1e-5:
            out = np.tile([False] * 3 + [True] * 3, (n, 1))
            out[count:] = ~out[count:]
            found = evidence(LabelSets(out, k), (wrong, asked)).judge(np.zeros(n, int))
            held += chance * (found is not None and found.low <= accuracy <= found.high)
    assert 0.94 < held < 0.975


def test_with_gold_questions_the_interval_is_a_profile_over_the_rate() -> None:
    """In plain loops: each accuracy that is near enough at some rate that is near enough."""
    random, k, n, wrong, asked, more = np.random.default_rng(4), 5, 80, 2, 30, 0.03
    y = random.integers(k, size=n)
    predicted = np.where(random.random(n) < 0.7, y, (y + 1) % k)
    sets = Uniform("released", 0.08).draw(y, k, random)
    inside = []
    for rate in np.linspace(0.002, 0.3, 150):
        top = bottom = right = missed = both = 0.0
        for row, c in enumerate(predicted):
            a, b = 1 - rate, 1 - (int(sets.sizes[row]) - rate) / (k - 1)
            if a > b + 1e-9:
                v1, v0 = a * (1 - a) / (a - b) ** 2, b * (1 - b) / (a - b) ** 2
                weight = 1 / (0.5 * v1 + 0.5 * v0 + 0.25)
                top += weight * ((not sets.excluded[row, c]) - b) / (a - b)
                bottom += weight
                right, missed = right + weight**2 * v1, missed + weight**2 * v0
                both += weight**2
        for t in np.linspace(0, 1, 201):
            spread = (t * right + (1 - t) * missed + t * (1 - t) * both) / bottom**2
            far = (wrong - asked * rate) ** 2 / (asked * rate * (1 - rate))
            if far + (top / bottom - t) ** 2 / (spread + more**2) <= 1.96**2:
                inside.append(t)
    found: Any = evidence(sets, (wrong, asked)).judge(predicted, spread=more)
    np.testing.assert_allclose(found[1:], [min(inside), max(inside)], atol=0.006)


def test_no_number_where_the_sets_may_say_nothing() -> None:
    sets = Uniform(1).draw([0] * 50, 10, 0)
    assert evidence(sets, (3, 30)).judge(np.zeros(50, int)) is None


def test_rows_that_occur_often_are_as_many_rows() -> None:
    random = np.random.default_rng(3)
    credit = Uniform().credit(Uniform().draw(random.integers(K, size=60), K, 1))
    some, times = credit.of(random.integers(K, size=60)), random.integers(1, 5, size=60)
    often = type(some)(*(np.repeat(part, times) for part in some))
    np.testing.assert_allclose(judge(some, times), judge(often), atol=1e-12)


def test_rows_of_a_group_that_agree_count_as_one() -> None:
    """Ten equal rows each: as wide as the interval of one of ten; also where all are right."""
    for hits in (17, 20):
        sets = LabelSets.from_labels([0] * 20, K)
        one = Uniform().credit(sets).of(np.array([0] * hits + [1] * (20 - hits)))
        ten = type(one)(*(np.repeat(part, 10) for part in one))
        found = judge(ten, groups=np.repeat(np.arange(20), 10))
        np.testing.assert_allclose(found, judge(one), atol=1e-9)


def judged_with_labels(labels: int, accuracy: float, seed: int, avoid: float) -> tuple[Any, Any]:
    """Sets of three classes; the predicted one is ruled out `avoid` times as often as others."""
    random, k, n = np.random.default_rng(seed), 10, 1500
    y = random.integers(k, size=n)
    right = random.random(n) < accuracy
    predicted = np.where(right, y, (y + 1) % k)
    chances = np.ones((n, k))
    chances[np.arange(n), predicted] = avoid
    chances[np.arange(n), y] = 0
    sets = draw(y, k, 3, random, transition=chances)
    credit = Uniform().credit(sets).of(predicted)
    hits = np.where(np.arange(n) < labels, right, np.nan)
    return judge_with_labels(credit.value, hits), judge(credit)


@pytest.mark.parametrize("accuracy", [0.5, 0.8, 0.97])
@pytest.mark.parametrize("labels", [30, 100])
def test_some_true_labels_correct_what_sets_say(labels: int, accuracy: float) -> None:
    """People avoid what looks plausible: without labels the estimate is far too good."""
    found = [judged_with_labels(labels, accuracy, seed, avoid=0.3) for seed in range(100)]
    held = [one.low <= accuracy <= one.high for one, _ in found]
    assert np.mean(held) >= 0.89
    if accuracy < 0.9:
        assert np.mean([blind.low > accuracy for _, blind in found]) > 0.8


def test_sets_that_tell_much_make_intervals_narrower_than_labels_alone() -> None:
    wide = []
    for seed in range(30):
        found = judged_with_labels(200, 0.5, seed, avoid=1.0)[0]
        alone = wilson(100, 200)
        wide.append((found.high - found.low) / (alone.high - alone.low))
    assert np.mean(wide) < 0.95


@pytest.mark.parametrize("accuracy", [0.6, 1.0])
def test_true_labels_of_rows_that_belong_together_count_once(accuracy: float) -> None:
    """Whether sets help (0.6) or not: rows that are there five times make nothing narrower."""
    random, rows = np.random.default_rng(3), np.arange(300)
    hits = (random.random(300) < accuracy).astype(float)
    value, known = hits + 0.3 * random.normal(size=300), np.where(rows < 80, hits, np.nan)
    once = judge_with_labels(value, known)
    often = judge_with_labels(np.tile(value, 5), np.tile(known, 5), groups=np.tile(rows, 5))
    np.testing.assert_allclose(often, once, atol=0.01)


@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("many", [1, 2, 5])
def test_intervals_hold_with_few_groups(many: int, labels: bool) -> None:
    """Of groups a model gets some nearly all right and others hardly: 70 % on average."""
    held, groups = [], np.repeat(np.arange(many), 30)
    for seed in range(150):
        random = np.random.default_rng([seed, many])
        y = random.integers(K, size=len(groups))
        right = random.random(len(groups)) < random.beta(1.6, 0.7, size=many)[groups]
        said = evidence(Uniform().draw(y, K, random), truth=y if labels else None)
        found = said.judge(np.where(right, y, (y + 1) % K), groups=groups)
        assert found is not None
        held.append(found.low <= 1.6 / 2.3 <= found.high)
    assert np.mean(held) > 0.91


def test_no_true_label_at_all() -> None:
    with pytest.raises(LabelError, match="no row has a true label"):
        judge_with_labels(np.ones(3), np.full(3, np.nan))


@pytest.mark.parametrize("kind", [Uniform, Transition, Flips])
def test_origins_are_learnt_from_classes_and_from_what_is_likely(kind: Any) -> None:
    """With true classes these are counts; with chances EM finds nearly the same."""
    random, n = np.random.default_rng(5), 6000
    origin: Any = Uniform(2, E) if kind is Uniform else kind(R if kind is Flips else Q)
    y = random.integers(K, size=n)
    sets = origin.draw(y, K, 1)
    seen = np.eye(K)[y] * 1.5 + random.normal(size=(n, K))  # a model that is often right
    before = np.exp(1.5 * seen)
    before /= before.sum(1, keepdims=True)
    by_class, by_chance = learn_origin(kind, sets, y), learn_origin(kind, sets, before)
    truth, exact, near = (
        one.error if kind is Uniform else one.rates for one in (origin, by_class, by_chance)
    )
    np.testing.assert_allclose(exact, truth, atol=0.04)
    np.testing.assert_allclose(near, truth, atol=0.08)


def test_a_matrix_is_learnt_from_sets_of_several_sizes() -> None:
    """As many rows as make the estimate sharp; chances of sets, not shares of classes."""
    random, n = np.random.default_rng(5), 20_000
    y = random.integers(K, size=n)
    sets = Transition(Q, [0.2, 0.5, 0.3]).draw(y, K, 1)
    np.testing.assert_allclose(learn_origin(Transition, sets, y).rates, Q, atol=0.02)


def test_what_is_learnt_from_classes_is_counted() -> None:
    sets = LabelSets([[0, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]], 3)
    found = learn_origin(Flips, sets, [0, 0, -1, 2])._moments()[0]  # row 2 does not count
    out, total = np.array([[0, 2, 1], [0, 0, 0], [1, 1, 0]]), np.array([2, 0, 1])
    for y in range(3):
        for c in range(3):
            pooled = 1 / 5 if y == c else (5 + 1) / 2 / 5
            assert found[y, c] == pytest.approx((out[y, c] + 2 * pooled) / (total[y] + 2), abs=1e-4)


@pytest.mark.parametrize("kind", [Uniform, Transition, Flips])
def test_rows_that_rule_out_nothing_say_nothing(kind: Any) -> None:
    """What is learnt, and how a model is judged, is the same with and without them."""
    random, n = np.random.default_rng(7), 400
    origin: Any = Uniform(2, E) if kind is Uniform else kind(R if kind is Flips else Q)
    y = random.integers(K, size=n)
    sets, asked = origin.draw(y, K, 1), np.arange(0, n, 2)
    some = sets.excluded
    some[1::2] = False
    some = LabelSets(some, K, unlabelled=True)
    told = np.eye(K)[y] * 0.6 + 0.1
    for known in (y, told):
        whole, part = learn_origin(kind, some, known), learn_origin(kind, sets[asked], known[asked])
        one, two = (found.error if kind is Uniform else found.rates for found in (whole, part))
        np.testing.assert_allclose(one, two, atol=1e-9)
    said, alone = (evidence(these, origin=whole) for these in (some, sets[asked]))
    assert said.judge(y) == pytest.approx(alone.judge(y[asked]), abs=1e-9)
    assert (said.likelihood[1::2] == 0).all()
    assert (np.asarray(said.level)[1::2] == 0).all()  # nor of how often sets are wrong


@pytest.mark.parametrize(
    "known",
    [[0], [0, 1, 7], [[0.5, 0.5]], [[-1, 1, 1]] * 3, ["a", "b", "c"], [[np.inf, 0, 0, 0]] * 3],
)
def test_what_is_known_must_be_classes_or_chances(known: Any) -> None:
    with pytest.raises(LabelError, match="give 3 positions, or 3 rows of 4"):
        learn_origin(Flips, table([(0,), (1,), (2,)]), known)


@pytest.mark.parametrize("row", [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
def test_rates_that_never_make_a_set_are_refused(row: list[float]) -> None:
    """Drawing would look for one without end."""
    with pytest.raises(LabelError, match="rules out nothing, or everything; give rates"):
        Flips([[0.0, 0.5, 0.5], row, [0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    "more", [{"error": 0.1}, {"error": (0, 30)}, {"items": [0, 0], "people": [0, 1]}]
)
def test_an_origin_has_its_own_error_rates(more: Any) -> None:
    with pytest.raises(LabelError, match="leave error and people out"):
        evidence(table([(0,), (1,)]), origin=Transition(Q), **more)


def test_sets_that_a_matrix_cannot_make_are_impossible() -> None:
    found = Transition(np.eye(3)[[1, 2, 0]]).log_likelihood(LabelSets([[0, 1, 0], [0, 1, 1]], 3))
    np.testing.assert_array_equal(found, [[0, -np.inf, -np.inf], [-np.inf] * 3])
    with pytest.raises(LabelError, match="2 classes are to be ruled out, but fewer have a chance"):
        Transition(np.eye(3)[[1, 2, 0]], 2).draw([0], 3)


@pytest.mark.parametrize("text", ["released~x", "released~1", "weak:fixed:1~0.2", "fixed:9~0.1"])
def test_a_name_of_an_origin_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(LabelError):
        named_origin(text, 5)


def test_origins_have_names() -> None:
    y = np.arange(5).repeat(2000)
    noisy = named_origin("fixed:2~0.2", 5).draw(y, 5, 1)
    assert noisy.excluded[np.arange(len(y)), y].mean() == pytest.approx(0.2, abs=0.02)
    most = named_origin("weak:fixed:k-2", 5).draw(y, 5, 1)
    assert (most.sizes == 3).all()
    assert not most.excluded[np.arange(len(y)), y].any()


def test_answers_tell_of_rows_whose_class_is_not_known() -> None:
    """A few true classes beside many answers do not switch the answers off."""
    q = np.array([[0, 0.8, 0.2], [0.5, 0, 0.5], [0.1, 0.9, 0]])
    y = np.arange(600) % 3
    rows = np.repeat(np.arange(600), 3)
    sets = Transition(q).draw(y[rows], 3, seed=1)
    known = np.where(np.arange(600) < 6, y, -1)
    found = learn_origin(Transition, sets, known, items=rows).rates
    np.testing.assert_allclose(found, q, atol=0.1)


@pytest.mark.parametrize("origin", [Transition(Q), Flips(R)])
def test_classes_must_be_as_many_as_rates(origin: Any) -> None:
    with pytest.raises(LabelError, match="rates of 4 classes, sets of 3; give equal classes"):
        origin.draw([0, 1, 2], 3)


def test_a_bias_needs_a_law() -> None:
    with pytest.raises(LabelError, match="'strong' names no law; write strong:released"):
        named_origin("strong", 5)


def test_an_even_matrix_makes_uniform_sets() -> None:
    even = (1 - np.eye(5)) / 4
    sets = draw([0, 1, 2, 3, 4] * 9, 5, seed=1)
    one, two = Transition(even).credit(sets), Uniform().credit(sets)
    for part, other in zip(one, two, strict=True):
        np.testing.assert_allclose(part, other, atol=1e-12)
    lost = Transition(even).log_likelihood(sets)
    np.testing.assert_array_equal(np.isneginf(lost), sets.excluded)
    assert np.ptp(np.where(sets.excluded, lost.max(1)[:, None], lost), axis=1).max() < 1e-12


def test_evidence_of_an_origin() -> None:
    """A matrix in the place of error rates: its likelihood teaches, its credit judges."""
    random = np.random.default_rng(6)
    y = random.integers(K, size=3000)
    predicted = np.where(random.random(3000) < 0.7, y, (y + 1) % K)
    sets = Transition(Q).draw(y, K, 1)
    said = evidence(sets, origin=Transition(Q))
    wanted = Q.T[sets.excluded.argmax(1)]
    chance = np.exp(said.likelihood)
    np.testing.assert_allclose(chance, wanted / wanted.max(1, keepdims=True), atol=1e-12)
    found: Any = said.judge(predicted)
    blind: Any = evidence(sets).judge(predicted)
    assert found.low < 0.7 < found.high
    assert not blind.low < 0.7 < blind.high


def test_many_classes_take_no_time() -> None:
    """Boards have 171 and more, of which few are left: all sums over sets took hours."""
    k, random = 171, np.random.default_rng(0)
    q = random.dirichlet(np.full(k, 5.0), k) * (1 - np.eye(k)) + 1e-4
    origin = Transition(q / q.sum(1, keepdims=True), f"fixed:{k - 4}")
    y = random.integers(k, size=4000)
    credit = origin.credit(origin.draw(y, k, seed=1))
    right, wrong = credit.of(y), credit.of((y + 1) % k)
    for found, mean, variance in ((right, 1, right.right), (wrong, 0, wrong.wrong)):
        error = np.sqrt(variance.mean() / len(y))
        assert abs(found.value.mean() - mean) < 4 * error
    assert right.right.mean() == pytest.approx(right.value.var(), rel=0.2)


EYE: Any = np.eye(3)
TWO = LabelSets([[1, 0, 0], [0, 1, 0]], 3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Transition([[0, 1], [0.5, 0.2]]), "row 1 of the matrix sums to 0.7, not to 1"),
        (lambda: Transition([[0, 1], [-0.5, 1.5]]), "row 1 of the rates holds more than probab"),
        (lambda: evidence(TWO, origin=EYE), "the origin is ndarray; wrap a matrix in"),
        (lambda: evidence(TWO, items=[0, 1], people=[0]), "people are [0]; give 2 numbers, c"),
        (lambda: evidence(TWO, items=[0]), "items are [0]; give 2 numbers of rows, counted"),
    ],
)
def test_what_is_wrong_is_named(call: Any, sentence: str) -> None:
    with pytest.raises(LabelError) as caught:
        call()
    assert str(caught.value).startswith(sentence)


def test_a_number_stays_right_where_easy_rows_get_larger_sets() -> None:
    """Given class and size all sets are alike, so the assumption holds; larger sets say more."""
    random, n, k = np.random.default_rng(0), 40_000, 8
    y = random.integers(k, size=n)
    easy = random.random(n)
    predicted = np.where(random.random(n) < easy, y, (y + 1) % k)
    sizes = np.clip((easy * (k - 1)).astype(int) + 1, 1, k - 1)
    order = np.argsort(random.random((n, k)) + 2 * (np.arange(k) == y[:, None]), 1)  # truth last
    out = np.zeros((n, k), int)
    np.put_along_axis(out, order, (np.arange(k) < sizes[:, None]).astype(int), 1)
    assert not out[np.arange(n), y].any()
    assert (out.sum(1) == sizes).all()
    found = evidence(LabelSets(out, k)).judge(predicted)
    assert found is not None
    truth = float((predicted == y).mean())
    assert found.low <= truth <= found.high
    assert found.estimate == pytest.approx(truth, abs=0.01)
    credit = evidence(LabelSets(out, k)).credit.of(predicted)
    assert np.average(credit.value, weights=credit.weight) > truth + 0.05  # as it was before
