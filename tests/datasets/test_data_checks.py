"""What an inspection finds, what it leaves alone, and that its tests are what they claim."""

from __future__ import annotations

import json
from itertools import combinations, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from tiers import COUNT

import ruleout as ro
from ruleout.datasets import data_checks, inspect, load
from ruleout.datasets.data_checks import (
    Counts,
    Shares,
    count_by_size,
    count_by_truth,
    given_truth,
    marginals,
    pairs,
    same,
)
from ruleout.datasets.tables import equal_groups, row_hashes
from ruleout.labels import Law


def drawn(
    k: int, n: int, law: Law, rng: np.random.Generator, alpha: float = 1.0
) -> tuple[ro.LabelSets, NDArray[np.intp], NDArray[np.float64]]:
    """Draw sets of classes whose shares are drawn, too."""
    shares = rng.dirichlet(np.full(k, alpha))
    y = rng.choice(k, n, p=shares)
    return ro.draw(y, k, law, rng), y, shares


def preferring(
    y: NDArray[np.intp], k: int, s: int, strength: float, rng: np.random.Generator
) -> ro.LabelSets:
    """An annotator who would rather rule out neighbours of the true class."""
    far = np.abs(np.arange(k) - y[:, None])
    weight = np.where(np.minimum(far, k - far) <= 2, strength, 1.0)
    clock = rng.exponential(size=(len(y), k)) / weight
    clock[np.arange(len(y)), y] = np.inf
    mask = np.zeros((len(y), k), np.bool_)
    np.put_along_axis(mask, np.argsort(clock, 1)[:, :s], True, 1)
    return ro.LabelSets(mask)


# ---------------------------------------------------------------------- the mathematics


@pytest.mark.parametrize(("k", "s"), [(k, s) for k in range(4, 8) for s in range(2, k - 1)])
def test_covariance_of_pair_residuals_is_exact(k: int, s: int) -> None:
    """Enumerate every set: mean zero, rank k(k-3)/2, and the operator that `pairs` inverts."""
    shares = np.random.default_rng(k).dirichlet(np.ones(k))
    both = list(combinations(range(k), 2))
    mean, cover, vectors = np.zeros(len(both)), np.zeros((len(both), len(both))), []
    for chosen in combinations(range(k), s):
        mask = np.isin(np.arange(k), chosen).astype(float)
        one = Counts(s, 1, mask, np.outer(mask, mask))
        residual = data_checks._residual(one, k)
        vector = np.array([residual[a, b] for a, b in both])
        chance = (1 - shares[list(chosen)].sum()) / comb(k - 1, s)
        mean += chance * vector
        cover += chance * np.outer(vector, vector)
        vectors.append((vector, residual))
    assert np.allclose(mean, 0)
    assert np.linalg.matrix_rank(cover, 1e-10) == k * (k - 3) // 2
    spreads = data_checks._spreads(k, s)
    for vector, residual in vectors:
        image = data_checks._cover(residual, spreads, shares)
        assert np.allclose([image[a, b] for a, b in both], cover @ vector)
    expected = np.array([data_checks._moments(one, shares)[2][a, b] for a, b in both])
    assert np.allclose(expected, cover.diagonal())


@pytest.mark.parametrize("law", ["released", 1, 4])
def test_shares_are_unbiased_and_their_errors_are_right(law: Law) -> None:
    rng, z = np.random.default_rng(0), []
    for _ in range(200):
        sets, _, shares = drawn(6, 800, law, rng)
        found, _ = marginals(count_by_size(sets), 6)
        assert np.isclose(found.shares.sum(), 1)
        z.append((found.shares - shares) / found.errors)
    assert np.abs(np.mean(z, 0)).max() < 4 / np.sqrt(200)
    assert 0.9 < np.std(z) < 1.1


def p_values(k: int, n: int, law: Law, turns: int, alpha: float = 1.0) -> dict[str, list[float]]:
    rng = np.random.default_rng(0)
    found: dict[str, list[float]] = {"pairs": [], "same": [], "truth": [], "balance": []}
    for _ in range(turns):
        sets, y, _ = drawn(k, n, law, rng, alpha)
        counts = list(count_by_size(sets, pairs=True))
        shares, balanced = marginals(counts, k)
        joint, sizes = pairs(counts, shares), same(counts, shares)
        truth = given_truth(count_by_truth(sets, y))
        for name, test in (("same", sizes), ("truth", truth), ("balance", balanced)):
            found[name] += [] if test is None else [test.p]
        found["pairs"] += [] if joint is None else [joint.pooled.p]
    return found


@pytest.mark.parametrize(
    ("k", "n", "law"), [(10, 1000, "released"), (4, 500, 2), (5, 800, "paper"), (10, 2000, 7)]
)
def test_p_values_are_uniform_for_unbalanced_classes(k: int, n: int, law: Law) -> None:
    found = p_values(k, n, law, 150)
    for name in ("pairs", "same", "truth"):
        if found[name]:
            assert len(found[name]) > 100
            assert stats.kstest(found[name], "uniform").pvalue > 1e-3, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "law"),
    [(10, 2000, "released"), (6, 300, 3), (30, 3000, "released"), (5, 1000, "paper")],
)
def test_p_values_are_uniform_in_many_turns(k: int, n: int, law: Law) -> None:
    turns = int(1000 * COUNT)
    found = p_values(k, n, law, turns)
    for name in ("pairs", "same", "truth"):
        if found[name]:
            assert stats.kstest(found[name], "uniform").pvalue > 1e-3, name
            often = np.mean(np.array(found[name]) < 0.05)
            assert abs(often - 0.05) < 4 * np.sqrt(0.05 * 0.95 / len(found[name])) + 0.01, name


def test_balanced_classes_pass_and_unbalanced_ones_fail_the_balance_test() -> None:
    assert (
        stats.kstest(p_values(6, 500, "released", 150, alpha=1e9)["balance"], "uniform").pvalue
        > 1e-3
    )
    assert max(p_values(6, 5000, "released", 20, alpha=1.0)["balance"]) < 1e-3


@pytest.mark.parametrize(("strength", "power"), [(1.0, (0.0, 0.1)), (3.0, (0.95, 1.0))])
def test_power_against_an_annotator_with_preferences(
    strength: float, power: tuple[float, float]
) -> None:
    rng, caught = np.random.default_rng(0), []
    for _ in range(30):
        y = rng.choice(10, 3000, p=rng.dirichlet(np.full(10, 5.0)))
        sets = preferring(y, 10, 3, strength, rng)
        found = inspect(sets, labels=y)
        caught.append(
            [found["pairs"].level == "warning", found["wrong classes"].level == "warning"]
        )
    for rate in np.mean(caught, 0):
        assert power[0] <= rate <= power[1]


def test_sizes_that_depend_on_the_class_are_found() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=4000)
    small, large = ro.draw(y, 5, 1, rng), ro.draw(y, 5, 3, rng)
    mask = np.where((y < 2)[:, None], small.excluded, large.excluded)
    found = inspect(ro.LabelSets(mask))
    assert found["sizes and classes"].level == "warning"


# ---------------------------------------------------------------------- what is said


def test_good_data_bring_no_warnings() -> None:
    x, y = load("digits").train
    found = inspect(ro.draw(y, 10, seed=0), x, y)
    assert [item.name for item in found] == [
        "sizes",
        "size law",
        "class rates",
        "class shares",
        "pairs",
        "sizes and classes",
        "true class",
        "wrong classes",
        "meaning",
        "plausible classes",
        "predictions by size",
        "constant columns",
        "equal rows",
    ]
    assert found.warnings == ()
    assert found["size law"].numbers["p"]["released"] > 0.01
    assert found["size law"].numbers["p"]["paper"] < 1e-6
    assert sum(found["class shares"].numbers["shares"].values()) == pytest.approx(1)
    assert "nothing" not in found
    with pytest.raises(KeyError):
        found["nothing"]


def test_findings_are_plain_json() -> None:
    x, y = load("digits").train
    found = inspect(ro.draw(y, 10, seed=0), x, y)
    assert json.loads(json.dumps(found.to_dicts(), allow_nan=False))[0]["name"] == "sizes"


def test_true_labels_given_as_ruled_out_classes_are_noticed() -> None:
    x, y = load("digits").train
    found = inspect(ro.LabelSets.from_single(y, 10), x)
    assert [item.name for item in found.warnings] == ["meaning"]
    assert "give true labels as such" in found["meaning"].message
    single = ro.draw(y, 10, law=1, seed=0)
    assert inspect(single, x).warnings == ()
    assert inspect(single).warnings[0].message == (
        "Every row lists one class. If that is what the row is, not what it is not, give it as "
        "true labels: --label, or LabelSets.from_labels."
    )


def test_candidates_given_as_ruled_out_classes_are_noticed() -> None:
    x, y = load("digits").train
    flipped = ro.LabelSets(ro.draw(y, 10, law=3, seed=0).candidates)
    assert "use LabelSets.from_candidates" in inspect(flipped, x)["meaning"].message


def test_ordinary_labels_are_called_so() -> None:
    found = inspect(ro.LabelSets.from_labels([0, 1, 2, 1], 3))
    assert found["sizes"].message == (
        "4 rows rule out 2.00 of 3 classes on average, all of them as many. One class is left in "
        "every row: these are ordinary labels."
    )


def test_rows_that_rule_out_the_truth_are_counted() -> None:
    found = inspect(ro.LabelSets.from_lists([[0], [1], [2]], 3), labels=[1, 1, 2])
    assert found["true class"].message == (
        "2 of 3 rows (66.7 %) rule out their true class: rows 1, 2."
    )


def test_mistakes_that_depend_on_the_class_are_found() -> None:
    """As a chi-square test of a table of two rows has it."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=2000)
    p = []
    for often in ([0.1, 0.1, 0.1, 0.1], [0.05, 0.1, 0.05, 0.3]):
        wrong = rng.random(2000) < np.take(often, y)
        listed = np.where(wrong, y, (y + rng.integers(1, 4, size=2000)) % 4)
        found = inspect(ro.LabelSets.from_single(listed, 4), labels=y)["mistakes"]
        table = [np.bincount(y[part], minlength=4) for part in (wrong, ~wrong)]
        wanted = stats.chi2_contingency(table, correction=False)
        assert found.numbers["p"] == pytest.approx(wanted.pvalue)
        p.append(found)
    assert [one.level for one in p] == ["fine", "warning"]
    assert p[1].message.startswith("Mistakes depend on the class (p < 0.001): of the rows of 3, ")
    assert "mistakes" not in inspect(ro.draw(y, 4, seed=0), labels=y)


def test_bad_rows_of_a_text_file_are_named_by_their_lines(tmp_path: Path) -> None:
    """As the errors of the same command name them."""
    file = tmp_path / "a.csv"
    file.write_text("x,not\n" + "\n1,a\n\n1,a\n1,a\n1,a\n1,a\n1,a\n")
    sets = ro.LabelSets.from_lists([["a"]] * 6, ["a", "b"])
    found = inspect(sets, labels=["b", "a", "a", "a", "a", "a"], file=file)
    assert found["true class"].message.endswith(": lines 5, 6, 7, 8, 9.")
    assert found["true class"].numbers["first"] == [1, 2, 3, 4, 5]


def test_p_values_never_contradict_what_is_said_of_them() -> None:
    """What is called fine never shows p < 0.001, and what is warned of always does."""
    rng = np.random.default_rng(0)
    for n in (60, 100, 200, 500):
        for _ in range(40):
            k = int(rng.integers(3, 8))
            y = rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))
            law = rng.dirichlet(np.full(k - 1, 2.0))
            for item in inspect(ro.draw(y, k, law, rng), labels=y):
                if item.name == "size law":
                    fits = max((p for p in item.numbers["p"].values() if p is not None), default=1)
                    assert ("fit the law" in item.message) <= (fits >= 0.01)
                    assert "fit the law" not in item.message or "p < 0.001" not in item.message
                elif item.level == "fine":
                    assert "p < 0.001" not in item.message
                elif item.level == "warning" and item.name in ("pairs", "wrong classes"):
                    assert "p < 0.001" in item.message


def test_an_excess_that_may_be_chance_is_called_so() -> None:
    """60 rows: the features point to a listed class more often than allowed, but not clearly."""
    rng = np.random.default_rng(1)
    listed = rng.integers(3, size=60)
    x = 0.7 * np.eye(3)[listed] + rng.normal(size=(60, 3))
    found = inspect(ro.LabelSets.from_single(listed, 3), x)["meaning"]
    assert found.level == "fine"
    assert found.numbers["rate"] > found.numbers["most"]
    assert found.message.endswith("allow up to 50.0 %; the difference may be chance.")


@pytest.mark.parametrize(
    "names", [["Cat", "cat", "dog"], ["caf\u00e9", "cafe\u0301", "tea"], ["NA", "nan", "dog"]]
)
def test_class_names_that_look_alike_are_warned_of(names: list[str]) -> None:
    found = inspect(ro.draw(np.arange(90) % 3, names, seed=0))
    assert found["class names"].level == "warning"
    assert "class names" not in inspect(ro.draw(np.arange(90) % 3, ["cat", "dog", "tea"], seed=0))


def test_too_few_rows_and_no_features_are_warned_of() -> None:
    sets = ro.draw([0, 1], 3, seed=0)
    found = inspect(sets, np.ones((2, 0), np.float32))
    assert {"few rows", "features"} <= {item.name for item in found.warnings}
    assert found["few rows"].message.startswith("2 rows with sets for 3 classes: too few")
    assert "few rows" not in inspect(ro.draw(np.arange(10) % 3, 3, seed=0))


def test_classes_never_or_always_ruled_out() -> None:
    found = inspect(ro.LabelSets.from_lists([["a", "b"], ["a"], ["a", "c"]] * 20, list("abcd")))
    assert "'d' is never ruled out" in found["class rates"].message
    always = inspect(ro.LabelSets.from_lists([["a", "b"], ["a", "c"]] * 20, list("abc")))
    assert "'a' is ruled out in every row: no row can be of it" in always["class rates"].message


def test_a_class_ruled_out_more_often_than_possible() -> None:
    rng = np.random.default_rng(0)
    single = rng.choice(4, 1000, p=[0.7, 0.1, 0.1, 0.1])  # at most a third is possible
    found = inspect(ro.LabelSets.from_single(single, 4))
    assert found["class shares"].level == "warning"
    assert "Is it listed where it is the answer?" in found["class shares"].message


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (1, 1, 2, 3), (1, 3, 3, 3)])
def test_the_sign_test_is_exact_or_careful(sizes: tuple[int, ...]) -> None:
    """By enumeration: how often a class that no row is of is ruled out at least so often."""
    k, n = 5, len(sizes)
    counts = [sum(how) for how in product(*([0] * (k - 1 - s) + [1] * s for s in sizes))]
    for most in range(1 + sum(sizes) // (k - 1), n + 1):
        rates = np.full(k, (sum(sizes) - most) / (k - 1) / n)
        rates[2] = most / n
        p = Shares(1 - rates, rates, rates).signs(n)
        tail = min(1.0, k * float(np.mean([count >= most for count in counts])))
        assert p >= tail - 1e-12
        if len({*sizes}) == 1:
            assert p == pytest.approx(tail)


def test_one_row_rejects_no_assumption() -> None:
    """Its standard errors are 0, which once made any set impossible."""
    for size in range(1, 10):
        found = inspect(ro.LabelSets.from_lists([list(range(size))], 10))
        assert found["class shares"].level == "fine"
        assert found["class shares"].numbers["p"] == 1


def test_equal_rows_and_contradictions() -> None:
    x = np.array([[1, 2], [3, 4], [1, 2], [-0.0, 1], [0.0, 1], [3, 4]], np.float32)
    sets = ro.LabelSets.from_lists([[0], [0], [1, 2], [1], [1], [1]], 3)
    found = inspect(sets, x)
    assert found["equal rows"].message == "3 rows have the same features as an earlier row."
    assert found["contradictions"].message == (
        "1 group(s) of rows with the same features rule out every class together, such as rows "
        "0, 2: some of them are wrong."
    )
    assert found["contradictions"].numbers == {"groups": 1, "first": [0, 2]}


def test_equal_rows_agree_with_numpy() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(3, size=(500, 5)).astype(np.float32)
    order, starts = equal_groups(row_hashes(x))
    _, inverse, times = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    assert sorted(order.tolist()) == np.flatnonzero(times[inverse] > 1).tolist()
    assert len(starts) == (times > 1).sum()
    for group in np.split(order, starts[1:]):
        assert (x[group] == x[group[0]]).all()


def test_columns_that_say_nothing_are_named() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    x[:, 0], x[:, 2] = np.arange(50) + 7, 5
    sets = ro.draw(np.arange(50) % 4, 4, seed=0)
    found = inspect(sets, x, features=["id", "weight", "unit"])
    assert found["row numbers"].message == "Column 'id' holds the number of the row: ignore it."
    assert found["constant columns"].message == "Column 'unit' holds the same value in every row."
    assert "1 of 3 columns hold" in inspect(sets, x)["row numbers"].message


def test_rows_that_rule_nothing_out_are_counted_and_otherwise_left_alone() -> None:
    sets = ro.draw(np.arange(300) % 5, 5, seed=0)
    mask = np.concatenate([sets.excluded, np.zeros((30, 5), bool)])
    found = inspect(ro.LabelSets(mask, unlabelled=True), labels=np.zeros(330, int))
    assert found["empty rows"].numbers == {"rows": 30}
    alone = inspect(sets)
    for name in ("class rates", "class shares", "pairs"):
        assert found[name].numbers == alone[name].numbers
    nothing = inspect(ro.LabelSets(np.zeros((3, 4), bool), unlabelled=True))
    assert [item.name for item in nothing] == ["sizes", "empty rows"]
    assert len(inspect(ro.LabelSets(np.zeros((0, 4), bool)))) == 1


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 40])
def test_few_classes_and_few_rows_never_fail(k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(k, size=n)
    found = inspect(ro.draw(y, k, seed=0), rng.normal(size=(n, 2)), y)
    assert "sizes" in found


def test_many_classes_are_inspected_without_pairs() -> None:
    y = np.arange(2000) % 1500
    found = inspect(ro.draw(y, 1500, law=3, seed=0), labels=y)
    assert "pairs" not in found
    assert "class shares" in found


def test_many_rows_are_sampled_for_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ruleout.datasets.data_checks._WORK", 100 * 500)
    found = inspect(ro.draw(np.arange(3000) % 10, 10, seed=0), labels=np.arange(3000) % 10)
    assert found["pairs"].numbers["rows"] == 500
    assert found["sizes"].numbers["rows"] == 3000


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"x": np.ones((2, 2))}, "x has 2 rows, the sets have 3; give one set per row"),
        ({"labels": [0, 1]}, "2 labels for 3 sets; give one label per row"),
        ({"labels": [0, 1, 7]}, "row 2, column 'labels': unknown class 7; the classes are 0, 1, 2"),
    ],
)
def test_what_does_not_belong_together(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError) as caught:
        inspect(ro.draw([0, 1, 2], 3), **options)
    assert str(caught.value) == sentence


def test_known_rows_are_tested_for_being_a_random_part() -> None:
    """By an exact test, whatever the origin: it rejects too seldom rather than too often."""
    rng, p = np.random.default_rng(0), []
    for _ in range(200):
        y = rng.choice(5, 300, p=[0.4, 0.3, 0.1, 0.1, 0.1])
        sets = ro.draw(y, 5, 2, rng, transition=rng.random((5, 5)) + 0.1)
        part = np.where(rng.random(300) < 0.2, y, -1)
        found = data_checks.Inspection(sets.classes).add(sets, truth=part).findings()
        p.append(found["known rows"].numbers["p"])
    assert np.mean(np.array(p) < 0.05) < 0.07
    assert np.mean(np.array(p) < 0.5) > 0.1
    biased = np.where((y == 0) & (rng.random(300) < 0.5), y, -1)
    found = data_checks.Inspection(sets.classes).add(sets, truth=biased).findings()
    assert found["known rows"].level == "warning"
    assert "are not a random part of all (p < 0.001)" in found["known rows"].message
    assert "known rows" not in data_checks.Inspection(sets.classes).add(sets, truth=y).findings()


def test_known_rows_of_some_classes_alone_are_no_random_part() -> None:
    """They need no sets: other rows rule out all classes that occur among them."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=400)
    out = np.array(ro.draw(y, 4, 2, rng).excluded)
    known = np.where((y < 2) & (rng.random(400) < 0.3), y, -1)
    out[known >= 0] = False
    sets = ro.LabelSets(out, list("abcd"), unlabelled=True)
    found = data_checks.Inspection(sets.classes).add(sets, truth=known).findings()["known rows"]
    share = out[known < 0][:, :2].all(1).mean()
    said = f"'a', 'b' are all ruled out in 0.0 % of them, in {100 * share:.1f} % of the others."
    assert found.message.endswith(said)
    assert not ro.evidence(sets, truth=known).corrected
    rare = np.where(rng.random(400) < 0.05, np.where(y == 3, -1, y), -1)  # too few to tell
    assert (rare >= 0).sum() < 30
    few = data_checks.Inspection(sets.classes).add(sets, truth=rare).findings()
    assert few["known rows"].numbers["p"] > 1e-3


def test_columns_that_are_the_truth_are_named() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=200)
    wrong = np.where(rng.random(200) < 0.1, rng.integers(3, size=200), y)
    x = np.c_[rng.integers(3, size=200), y, wrong, rng.normal(size=200)].astype(float)
    sets = ro.draw(y, 3, 1, 0)
    names = ["chance", "truth", "near", "other"]
    found = [one for one in inspect(sets, x, features=names) if "among features" in one.name]
    assert [one.numbers["column"] for one in found] == ["truth"]
    assert "Name it with --label, or leave it out with --ignore" in found[0].message
    for silent in (inspect(sets[:20], x[:20], features=names), inspect(sets, x)):
        assert "true class among features" not in silent
